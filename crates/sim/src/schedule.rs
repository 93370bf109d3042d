//! What the kernel does with threads: queues them, gives them CPUs, takes CPUs away.

use crate::fair::Arrival;
use crate::kernel::Order;
use crate::model::Op;
use crate::queue::mix;
use crate::thread::{Doing, Place, Tid, Waiting};
use crate::world::World;

impl World {
    /// A blocked thread becomes runnable.
    pub(crate) fn wake(&mut self, tid: Tid) {
        let now = self.now;
        let wake = self.wake_cost(tid);
        let thread = &mut self.threads[tid as usize];
        if thread.place != Place::Blocked {
            return;
        }
        match thread.waiting {
            Waiting::Time => {
                thread.waiting = Waiting::No;
                thread.at += 1;
            }
            Waiting::No => {}
            Waiting::Barrier { .. } | Waiting::Lock | Waiting::Queue => {
                self.book_wait(tid);
            }
        }
        let thread = &mut self.threads[tid as usize];
        thread.changed = now;
        thread.doing = Doing::Nothing;
        thread.owes += wake;
        self.make_runnable(tid, Arrival::Woken);
    }

    /// What it takes to wake a thread: from half of the usual to half more. A wake-up that always took the same would
    /// fall into step with a lock that is taken and given back at a steady pace, which no real one does.
    fn wake_cost(&self, tid: Tid) -> f64 {
        const PARTS: u64 = 1 << 20;
        let part = (self.chance(tid, 0) % PARTS) as f64 / PARTS as f64;
        self.hardware.wake_nanos * (0.5 + part)
    }

    /// Queues a thread on the CPU that suits it, or keeps it aside while its program is frozen.
    pub(crate) fn make_runnable(&mut self, tid: Tid, how: Arrival) {
        let program = self.program_of(tid);
        let cpu = usize::from(self.threads[tid as usize].cpu);
        let lingers = self.threads[tid as usize].turn.delayed;
        if self.programs[program].frozen {
            if lingers {
                self.let_sleep(tid, cpu);
            }
            self.threads[tid as usize].place = Place::Held;
            return;
        }
        self.programs[program].runnable += 1;
        if lingers {
            self.catch_up(cpu);
            self.stays_awake(tid, cpu);
            self.is_queued(tid, cpu, how, false);
        } else {
            let cpu = self.place(tid, how);
            self.enqueue(tid, cpu, how);
        }
    }

    pub(crate) fn enqueue(&mut self, tid: Tid, cpu: usize, how: Arrival) {
        let over = self.catch_up(cpu);
        self.join(tid, cpu, how);
        let thread = &mut self.threads[tid as usize];
        if usize::from(thread.cpu) != cpu {
            thread.cpu = cpu as u16;
            // What it had in the caches there is not here.
            thread.owes += self.hardware.switch_nanos;
        }
        let turn = thread.turn;
        self.cpus[cpu].queue.push(turn);
        self.is_queued(tid, cpu, how, over);
    }

    /// Books the running thread's time before somebody comes. Tells whether its turn was found to be over on the way.
    fn catch_up(&mut self, cpu: usize) -> bool {
        let Some(current) = self.cpus[cpu].current else { return false };
        self.account(current);
        matches!(self.kernel.order, Order::Eevdf { .. }) && self.turn_is_over(cpu)
    }

    fn is_queued(&mut self, tid: Tid, cpu: usize, how: Arrival, over: bool) {
        let now = self.now;
        let thread = &mut self.threads[tid as usize];
        thread.place = Place::Queued;
        thread.changed = now;
        let rank = thread.turn.rank;
        self.waiting_changes(cpu, true, rank);
        self.load_changes(cpu, true);
        if self.preempts(tid, cpu, how) || over {
            self.unsettle(cpu);
        } else {
            self.start_clock(cpu);
        }
    }

    /// Ticks are needed only where somebody waits.
    fn start_clock(&mut self, cpu: usize) {
        if !self.cpus[cpu].ticking {
            self.cpus[cpu].ticking = true;
            self.set_clock(cpu);
        }
    }

    /// Sets when the kernel looks at a busy CPU next: at its tick, if somebody waits there, or at an interruption before.
    /// All CPUs tick together, as Linux' do unless it is started with `skew_tick`.
    fn set_clock(&mut self, cpu: usize) {
        let tick = self.kernel.tick.0;
        let next =
            if self.cpus[cpu].ticking { self.now - self.now % tick + tick } else { u64::MAX };
        let at = next.min(self.next_interruption(cpu));
        if at < u64::MAX {
            let slot = self.tick_slot(cpu);
            self.agenda.set(slot, at);
        }
    }

    /// When a thread of the kernel's own, or of another program, will want the CPU for a moment. What it does takes no
    /// time here; but whether a turn is over is looked at then too, and so CPUs that tick together fall out of step.
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

    /// At which of its ticks a CPU looks around.
    pub(crate) fn phase(&self, cpu: usize) -> u64 {
        mix(self.seed ^ cpu as u64) % self.kernel.tick.0
    }

    /// The clock interrupts a CPU, or somebody else does.
    pub(crate) fn tick(&mut self, cpu: usize) {
        let is_tick = self.now % self.kernel.tick.0 == 0;
        let waited_for = !self.cpus[cpu].queue.is_empty();
        self.cpus[cpu].ticking = waited_for;
        let Some(current) = self.cpus[cpu].current else {
            if waited_for {
                self.set_clock(cpu);
            }
            return;
        };
        self.account(current);
        if waited_for {
            self.reweigh(cpu, current);
        }
        if waited_for && self.turn_is_over(cpu) {
            self.unsettle(cpu);
        } else if self.now == self.cpus[cpu].interruption {
            self.threads[current as usize].used.switches[1] += 1;
        }
        if waited_for && is_tick {
            self.push_away(cpu);
        }
        self.set_clock(cpu);
    }

    /// Shares of programs are divided anew among those of their threads that now want to run.
    fn reweigh(&mut self, cpu: usize, current: Tid) {
        if self.programs[self.program_of(current)].grouped {
            self.threads[current as usize].turn.weight = self.weight(current);
        }
        for position in 0..self.cpus[cpu].queue.len() {
            let tid = self.cpus[cpu].queue[position].tid;
            if self.programs[self.program_of(tid)].grouped {
                let weight = self.weight(tid);
                self.threads[tid as usize].turn.weight = weight;
                self.cpus[cpu].queue[position].weight = weight;
            }
        }
    }

    /// Takes a thread from its CPU or its queue.
    pub(crate) fn take_off(&mut self, tid: Tid, to: Place) {
        let place = self.threads[tid as usize].place;
        let cpu = usize::from(self.threads[tid as usize].cpu);
        match place {
            Place::Running => {
                self.account(tid);
                self.keep_average(cpu);
                let lingers = to == Place::Blocked && self.lingers(tid, cpu);
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
            Place::Queued => {
                if let Some(current) = self.cpus[cpu].current {
                    self.account(current);
                }
                self.leave_queue(tid, cpu);
            }
            Place::Blocked | Place::Held | Place::Ended => {
                if to == Place::Ended && self.threads[tid as usize].turn.delayed {
                    self.let_sleep(tid, cpu);
                }
            }
        }
        if matches!(place, Place::Running | Place::Queued) {
            let program = self.program_of(tid);
            self.programs[program].runnable -= 1;
        }
        if place == Place::Running {
            self.load_changes(cpu, false);
        }
        let now = self.now;
        let thread = &mut self.threads[tid as usize];
        thread.changed = now;
        thread.place = to;
    }

    /// A thread leaves the queue that it waits in.
    pub(crate) fn leave_queue(&mut self, tid: Tid, cpu: usize) {
        self.keep_average(cpu);
        self.part(tid, cpu);
        self.cpus[cpu].remove(tid);
        let waited = self.now - self.threads[tid as usize].changed;
        self.threads[tid as usize].used.queued += waited;
        self.waiting_changes(cpu, false, self.threads[tid as usize].turn.rank);
        self.load_changes(cpu, false);
    }

    /// A thread is no longer on its CPU: others may get on faster.
    fn off_cpu(&mut self, tid: Tid) {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        self.threads[tid as usize].seen = self.now;
        self.stir(tid);
        self.unprice(cpu);
    }

    /// A running thread goes to sleep.
    pub(crate) fn block(&mut self, tid: Tid) {
        self.threads[tid as usize].doing = Doing::Nothing;
        self.threads[tid as usize].used.switches[0] += 1;
        self.take_off(tid, Place::Blocked);
    }

    /// Books the time that a sleeper has waited for others.
    pub(crate) fn book_wait(&mut self, tid: Tid) {
        let thread = &mut self.threads[tid as usize];
        let waited = self.now - thread.changed;
        thread.used.waited += waited;
        let (at, index) = (thread.at as usize, usize::from(thread.index));
        let program = &mut self.programs[usize::from(thread.turn.program)];
        if let Some(Op::Acquire(lock)) = program.model.script.get(at) {
            program.sync.locks[usize::from(*lock)].waited[index] += waited;
        }
    }

    /// Gives a CPU to whoever comes next.
    pub(crate) fn choose(&mut self, cpu: usize) {
        if let Some(current) = self.cpus[cpu].current {
            self.account(current);
        }
        let mut next = self.next_in(cpu);
        if next.is_none() && self.cpus[cpu].current.is_none() {
            self.pull(cpu);
            next = self.next_in(cpu);
        }
        if let Some(next) = next {
            self.switch(cpu, next);
        }
        if !self.cpus[cpu].queue.is_empty() {
            self.start_clock(cpu);
        }
    }

    /// Puts the thread at a position of the queue on the CPU.
    fn switch(&mut self, cpu: usize, next: usize) {
        let now = self.now;
        if let Some(current) = self.cpus[cpu].current.take() {
            let thread = &mut self.threads[current as usize];
            thread.place = Place::Queued;
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
        let cost = match last {
            Some(last) if last == tid => 0.0,
            last => self.hardware.switch_nanos + self.refill(tid, last),
        };
        self.begin_turn(tid, cpu);
        let thread = &mut self.threads[tid as usize];
        thread.place = Place::Running;
        thread.used.queued += now - thread.changed;
        thread.since = now;
        thread.changed = now;
        thread.owes += cost;
        self.stir(tid);
        // What it spins for may have come while it was off its CPU.
        if matches!(self.threads[tid as usize].doing, Doing::Spin { .. }) {
            self.ready.push(tid);
        }
        self.unprice(cpu);
        if !self.cpus[cpu].ticking {
            self.set_clock(cpu);
        }
    }
}
