//! The kernel's handling of threads: it queues them, gives them CPUs, and takes CPUs away.

use crate::fair::EnqueueReason;
use crate::kernel::Order;
use crate::model::Op;
use crate::queue::mix;
use crate::thread::{Doing, ThreadState, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// A blocked thread becomes runnable.
    pub(crate) fn wake(&mut self, tid: Tid) {
        let now = self.now;
        let wake = self.about(self.hardware.wake_nanos, tid);
        let thread = &mut self.threads[tid as usize];
        if thread.place != ThreadState::Blocked {
            return;
        }
        match thread.waiting {
            WaitTarget::Time => {
                thread.waiting = WaitTarget::No;
                thread.at += 1;
            }
            // A thread without work in a program is not waiting for a sibling.
            WaitTarget::No | WaitTarget::Region { .. } => {}
            WaitTarget::Barrier { .. } | WaitTarget::Lock | WaitTarget::Queue => {
                self.count_wait(tid);
            }
        }
        let thread = &mut self.threads[tid as usize];
        thread.changed = now;
        thread.doing = Doing::Nothing;
        thread.owes += wake;
        self.comes_back(tid);
        self.make_runnable(tid, EnqueueReason::Woken);
    }

    /// A duration around the usual one, for example of a wake-up: from half of it to half more. A
    /// constant duration would fall into step with a lock that is taken and released at a steady
    /// pace, which does not happen on real machines.
    fn about(&self, usual: f64, tid: Tid) -> f64 {
        const PARTS: u64 = 1 << 20;
        let part = (self.chance(tid, 0) % PARTS) as f64 / PARTS as f64;
        usual * (0.5 + part)
    }

    /// Queues a thread on the CPU that suits it, or holds it while its program is frozen.
    pub(crate) fn make_runnable(&mut self, tid: Tid, how: EnqueueReason) {
        let program = self.program_of(tid);
        let cpu = usize::from(self.threads[tid as usize].cpu);
        let lingers = self.threads[tid as usize].turn.delayed;
        if how == EnqueueReason::Fresh {
            self.settles(tid);
        }
        if self.programs[program].frozen {
            if lingers {
                self.let_sleep(tid, cpu);
            }
            self.threads[tid as usize].place = ThreadState::Held;
            return;
        }
        self.programs[program].runnable += 1;
        if lingers {
            self.catch_up(cpu);
            self.stays_awake(tid, cpu);
            self.is_queued(tid, cpu, how);
        } else {
            let cpu = self.place(tid, how);
            self.enqueue(tid, cpu, how);
        }
    }

    pub(crate) fn enqueue(&mut self, tid: Tid, cpu: usize, how: EnqueueReason) {
        self.catch_up(cpu);
        self.come_to(tid, cpu, how);
        self.is_queued(tid, cpu, how);
    }

    /// Gives a thread a place in a queue, without preempting a thread there yet. Accounts on that
    /// CPU are up to date.
    fn come_to(&mut self, tid: Tid, cpu: usize, how: EnqueueReason) {
        self.join(tid, cpu, how);
        let thread = &mut self.threads[tid as usize];
        if usize::from(thread.cpu) != cpu {
            thread.cpu = cpu as u16;
            // Its lines in the inner caches of the other CPU are not here.
            thread.owes += self.hardware.switch_nanos;
        }
        let turn = thread.turn;
        self.cpus[cpu].queue.push(turn);
    }

    /// Updates the running thread's account before another thread joins. Under EEVDF, its turn may
    /// be found to be over (`update_curr`).
    fn catch_up(&mut self, cpu: usize) {
        let Some(current) = self.cpus[cpu].current else { return };
        self.account(current);
        if matches!(self.kernel.order, Order::Eevdf { .. }) && self.turn_is_over(cpu) {
            self.threads[current as usize].expired = true;
            self.unsettle(cpu);
        }
    }

    /// Moves a queued thread to the queue of another CPU, where it preempts no thread.
    pub(crate) fn bring(&mut self, tid: Tid, from: usize, to: usize) {
        if let Some(current) = self.cpus[from].current {
            self.account(current);
        }
        self.leave_queue(tid, from);
        self.come_to(tid, to, EnqueueReason::Moved);
        self.count_queued(tid, to);
    }

    fn is_queued(&mut self, tid: Tid, cpu: usize, how: EnqueueReason) {
        self.count_queued(tid, cpu);
        if self.preempts(tid, cpu, how) {
            self.unsettle(cpu);
        } else {
            self.start_clock(cpu);
        }
        if self.kernel.is_solaris() {
            self.set_clock(cpu);
        }
        self.stir_waiters(tid, cpu);
    }

    fn count_queued(&mut self, tid: Tid, cpu: usize) {
        let now = self.now;
        let thread = &mut self.threads[tid as usize];
        thread.place = ThreadState::Queued;
        thread.changed = now;
        let (rank, program) = (thread.turn.rank, thread.turn.program);
        self.waiting_changes(cpu, true, rank);
        self.load_changes(cpu, program, true);
    }

    /// Ticks are needed only where a thread waits.
    fn start_clock(&mut self, cpu: usize) {
        if !self.cpus[cpu].ticking {
            self.cpus[cpu].ticking = true;
            self.set_clock(cpu);
        }
    }

    /// Sets the time of the kernel's next check of a busy CPU: its tick, if a thread waits there or
    /// if ticks take time, or an earlier interruption.
    fn set_clock(&mut self, cpu: usize) {
        let all = self.hardware.tick_nanos > 0.0 || self.kernel.is_solaris();
        let next = match self.cpus[cpu].ticking || all {
            true => self.tick_after(cpu, self.now),
            false => u64::MAX,
        };
        let kernel = self.next_interruption(cpu).min(self.next_housekeeping(cpu));
        let at = next.min(kernel).min(self.next_steal(cpu));
        if at < u64::MAX {
            let slot = self.tick_slot(cpu);
            self.agenda.set(slot, at);
        }
    }

    /// The time at which a kernel thread, or a thread of another program, needs the CPU for a
    /// moment. This takes no time here. But the kernel then also checks whether a turn is over, so
    /// CPUs that tick together get out of step.
    fn next_interruption(&mut self, cpu: usize) -> u64 {
        let often = self.hardware.interruptions_per_second;
        if often <= 0.0 {
            return u64::MAX;
        }
        if self.cpus[cpu].interruption <= self.now {
            let most = ((2e9 / often) as u64).max(1);
            self.cpus[cpu].interruption = self.now + 1 + self.chance(u32::MAX - 1, cpu) % most;
        }
        self.cpus[cpu].interruption
    }

    /// When a CPU ticks next after a time.
    fn tick_after(&self, cpu: usize, time: u64) -> u64 {
        let tick = self.kernel.tick.0;
        time + tick - (time + tick - self.phase(cpu)) % tick
    }

    /// The tick at which a kernel thread that a timer has woken takes the CPU. Where other threads
    /// wait for the CPU, it runs between two of them, and causes no additional switch.
    fn next_housekeeping(&mut self, cpu: usize) -> u64 {
        let often = self.hardware.housekeeping_per_second;
        if often <= 0.0 {
            return u64::MAX;
        }
        if self.cpus[cpu].housekeeping <= self.now {
            let most = ((2e9 / often) as u64).max(1);
            let timer = self.now + self.chance(u32::MAX - 2, cpu) % most;
            self.cpus[cpu].housekeeping = self.tick_after(cpu, timer);
        }
        self.cpus[cpu].housekeeping
    }

    /// The time in each period at which the clock of a CPU ticks: together with the others, where
    /// jitter is modelled.
    pub(crate) fn phase(&self, cpu: usize) -> u64 {
        let skewed = self.kernel.skew_tick && self.hardware.interruptions_per_second == 0.0;
        if skewed { mix(self.seed ^ cpu as u64) % self.kernel.tick.0 } else { 0 }
    }

    /// The clock interrupts a CPU, or something else does.
    pub(crate) fn tick(&mut self, cpu: usize) {
        let is_tick = self.now % self.kernel.tick.0 == self.phase(cpu);
        let waited_for = !self.cpus[cpu].queue.is_empty();
        self.cpus[cpu].ticking = waited_for;
        let Some(current) = self.cpus[cpu].current else {
            if waited_for {
                self.set_clock(cpu);
            }
            return;
        };
        self.account(current);
        if is_tick && self.hardware.tick_nanos > 0.0 {
            let cost = self.about(self.hardware.tick_nanos, current);
            self.threads[current as usize].owes += cost;
            self.unprice(cpu);
        }
        if waited_for {
            self.reweigh(cpu, current);
        }
        if is_tick {
            self.charge(current, cpu);
        }
        let kernel = [self.cpus[cpu].interruption, self.cpus[cpu].housekeeping];
        if waited_for && self.turn_is_over(cpu) {
            self.threads[current as usize].expired = true;
            self.unsettle(cpu);
        } else if kernel.contains(&self.now) {
            self.interrupt(cpu, current);
        }
        if waited_for && is_tick {
            self.push_away(cpu);
        }
        self.let_steal(cpu);
        self.set_clock(cpu);
    }

    /// Something else has had the CPU for a moment. The next thread is chosen as if none had run
    /// before.
    fn interrupt(&mut self, cpu: usize, current: Tid) {
        self.threads[current as usize].protected = f64::NEG_INFINITY;
        match self.next_in(cpu) {
            Some(_) => self.unsettle(cpu),
            None => {
                self.threads[current as usize].used.switches[1] += 1;
                self.begin_turn(current, cpu);
            }
        }
    }

    /// Divides shares of programs again among their threads that are runnable now.
    fn reweigh(&mut self, cpu: usize, current: Tid) {
        let program = &self.programs[self.program_of(current)];
        if program.part.is_some() {
            self.reweight(current, cpu);
        } else if program.grouped {
            self.threads[current as usize].turn.weight = self.weight(current);
        }
        for position in 0..self.cpus[cpu].queue.len() {
            let tid = self.cpus[cpu].queue[position].tid;
            let program = &self.programs[self.program_of(tid)];
            if program.part.is_some() {
                self.reweight(tid, cpu);
            } else if program.grouped {
                let weight = self.weight(tid);
                self.threads[tid as usize].turn.weight = weight;
                self.cpus[cpu].queue[position].weight = weight;
            }
        }
    }

    /// Takes a thread from its CPU or its queue.
    pub(crate) fn take_off(&mut self, tid: Tid, to: ThreadState) {
        let place = self.threads[tid as usize].place;
        let cpu = usize::from(self.threads[tid as usize].cpu);
        match place {
            ThreadState::Running => {
                self.account(tid);
                self.give_back(cpu);
                self.keep_average(cpu);
                let lingers = to == ThreadState::Blocked && self.lingers(tid, cpu);
                if lingers {
                    self.threads[tid as usize].turn.delayed = true;
                    let turn = self.threads[tid as usize].turn;
                    self.cpus[cpu].queue.push(turn);
                } else {
                    self.part(tid, cpu);
                }
                self.cpus[cpu].current = None;
                self.off_cpu(tid);
                self.unsettle(cpu);
            }
            ThreadState::Queued => {
                if let Some(current) = self.cpus[cpu].current {
                    self.account(current);
                }
                self.leave_queue(tid, cpu);
            }
            ThreadState::Blocked | ThreadState::Held | ThreadState::Ended => {
                if to == ThreadState::Ended && self.threads[tid as usize].turn.delayed {
                    self.let_sleep(tid, cpu);
                }
            }
        }
        if matches!(place, ThreadState::Running | ThreadState::Queued) {
            let program = self.program_of(tid);
            self.programs[program].runnable -= 1;
        }
        if place == ThreadState::Running {
            self.load_changes(cpu, self.threads[tid as usize].turn.program, false);
        }
        let now = self.now;
        let thread = &mut self.threads[tid as usize];
        thread.changed = now;
        thread.place = to;
    }

    pub(crate) fn leave_queue(&mut self, tid: Tid, cpu: usize) {
        self.keep_average(cpu);
        self.part(tid, cpu);
        self.cpus[cpu].remove(tid);
        let waited = self.now - self.threads[tid as usize].changed;
        self.threads[tid as usize].used.queued += waited;
        let turn = self.threads[tid as usize].turn;
        self.waiting_changes(cpu, false, turn.rank);
        self.load_changes(cpu, turn.program, false);
    }

    /// A thread is no longer on its CPU: the speed of others may change.
    fn off_cpu(&mut self, tid: Tid) {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        self.threads[tid as usize].seen = self.now;
        self.threads[tid as usize].dispatch.went = self.now;
        self.leaves_lines(tid);
        self.stir(tid);
        self.unprice(cpu);
        self.leaves_waiters(tid);
    }

    /// A running thread goes to sleep.
    pub(crate) fn block(&mut self, tid: Tid) {
        self.tally_sleep(tid);
        self.threads[tid as usize].doing = Doing::Nothing;
        self.threads[tid as usize].used.switches[0] += 1;
        self.take_off(tid, ThreadState::Blocked);
    }

    /// Accounts for the time that a sleeper has waited for others.
    pub(crate) fn count_wait(&mut self, tid: Tid) {
        let thread = &mut self.threads[tid as usize];
        let waited = self.now - thread.changed;
        thread.used.waited += waited;
        let (at, index) = (thread.at as usize, usize::from(thread.index));
        let program = &mut self.programs[usize::from(thread.turn.program)];
        if let Some(Op::Acquire(lock)) = program.model.script.get(at) {
            program.sync.locks[usize::from(*lock)].waited[index] += waited;
        }
    }

    /// Gives a CPU to the next thread.
    pub(crate) fn choose(&mut self, cpu: usize) {
        if let Some(current) = self.cpus[cpu].current {
            self.account(current);
        }
        let mut next = self.next_in(cpu);
        if next.is_none() && self.cpus[cpu].current.is_none() {
            self.pull(cpu);
            next = self.next_in(cpu);
        }
        // With its own place in the order of turns, the running thread may be the next, too.
        if next.is_some() && self.give_back(cpu) {
            next = self.next_in(cpu);
        }
        if let Some(next) = next {
            let before = self.cpus[cpu].current;
            self.switch(cpu, next);
            if let Some(before) = before {
                self.makes_room(before, cpu);
            }
        }
        if !self.cpus[cpu].queue.is_empty() {
            self.start_clock(cpu);
        }
    }

    /// The thread on a CPU, with an up-to-date account, yields it to the one at a position of the
    /// queue.
    pub(crate) fn yield_to(&mut self, cpu: usize, next: usize) {
        self.switch(cpu, next);
        self.start_clock(cpu);
    }

    /// Puts the thread at a position of the queue on the CPU.
    fn switch(&mut self, cpu: usize, next: usize) {
        let now = self.now;
        let before = self.cpus[cpu].current.take();
        if let Some(current) = before {
            self.tally_loss(current, self.cpus[cpu].queue[next].program);
            let thread = &mut self.threads[current as usize];
            thread.place = ThreadState::Queued;
            thread.changed = now;
            thread.used.switches[1] += 1;
            let turn = thread.turn;
            self.off_cpu(current);
            self.cpus[cpu].queue.push(turn);
            self.waiting_changes(cpu, true, turn.rank);
        }
        let turn = self.cpus[cpu].queue.remove(next);
        let tid = turn.tid;
        self.waiting_changes(cpu, false, turn.rank);
        let last = self.cpus[cpu].last.replace(tid);
        self.cpus[cpu].current = Some(tid);
        self.finds_lines(tid, cpu);
        let cost = if last == Some(tid) { 0.0 } else { self.hardware.switch_nanos };
        let most = self.hardware.most_owed();
        self.begin_turn(tid, cpu);
        self.tally_turn(tid);
        let thread = &mut self.threads[tid as usize];
        thread.expired = false;
        thread.place = ThreadState::Running;
        thread.used.queued += now - thread.changed;
        thread.since = now;
        thread.changed = now;
        thread.owes = (thread.owes + cost).min(most);
        self.stir(tid);
        // The event that it spins for may have come while it was off its CPU.
        if matches!(self.threads[tid as usize].doing, Doing::Spin { .. }) {
            self.ready.push(tid);
        }
        self.unprice(cpu);
        if !self.cpus[cpu].ticking {
            self.set_clock(cpu);
        }
        if let Some(before) = before {
            self.stir_waiters(before, cpu);
        }
    }
}
