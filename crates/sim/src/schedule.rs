//! What the kernel does with threads: queues them, gives them CPUs, takes CPUs away.

use crate::queue::mix;
use crate::thread::{Doing, Place, Tid, Waiting};
use crate::world::{Due, World};

impl World {
    /// A blocked thread becomes runnable.
    pub(crate) fn wake(&mut self, tid: Tid) {
        let thread = &mut self.threads[tid as usize];
        if thread.place != Place::Blocked {
            return;
        }
        if thread.waiting == Waiting::Time {
            thread.waiting = Waiting::No;
            thread.at += 1;
        }
        thread.doing = Doing::Nothing;
        thread.owes += self.hardware.wake_nanos;
        self.make_runnable(tid, true);
    }

    /// Queues a thread on the CPU that suits it, or keeps it aside while its program is frozen.
    pub(crate) fn make_runnable(&mut self, tid: Tid, woken: bool) {
        let program = self.program_of(tid);
        if self.programs[program].frozen {
            self.threads[tid as usize].place = Place::Held;
            return;
        }
        self.programs[program].runnable += 1;
        let cpu = self.place(tid, woken);
        self.enqueue(tid, cpu, woken);
    }

    pub(crate) fn enqueue(&mut self, tid: Tid, cpu: usize, woken: bool) {
        if let Some(current) = self.cpus[cpu].current {
            self.account(current);
        }
        self.join(tid, cpu, woken);
        let thread = &mut self.threads[tid as usize];
        if usize::from(thread.cpu) != cpu {
            thread.cpu = cpu as u16;
            // What it had in the caches there is not here.
            thread.owes += self.hardware.switch_nanos;
        }
        thread.place = Place::Queued;
        self.cpus[cpu].queue.push(tid);
        self.queued += 1;
        self.load_changes(cpu, true);
        if self.preempts(tid, cpu) {
            self.unsettle(cpu);
        }
        self.start_clocks(cpu);
    }

    /// Ticks are needed only where somebody waits, and balancing only while anybody does.
    fn start_clocks(&mut self, cpu: usize) {
        let tick = self.kernel.tick.0;
        let next = |phase: u64| self.now + tick - (self.now + tick - phase) % tick;
        let (own, common) = (next(self.phase(cpu)), next(0));
        if !self.cpus[cpu].ticking {
            self.cpus[cpu].ticking = true;
            self.due.push(own, Due::Tick(cpu as u16));
        }
        if !self.balancing {
            self.balancing = true;
            self.due.push(common, Due::Balance);
        }
    }

    /// When in each period the clock of a CPU ticks. Linux lets them tick together, and interrupts and its own
    /// threads shift what is between; here, where there are none, the clocks are shifted.
    fn phase(&self, cpu: usize) -> u64 {
        mix(self.seed ^ cpu as u64) % self.kernel.tick.0
    }

    /// The clock interrupts a CPU.
    pub(crate) fn tick(&mut self, cpu: usize) {
        if self.cpus[cpu].queue.is_empty() {
            self.cpus[cpu].ticking = false;
            return;
        }
        if let Some(current) = self.cpus[cpu].current {
            self.account(current);
            if self.turn_is_over(cpu) {
                self.unsettle(cpu);
            }
        }
        self.due.push(self.now + self.kernel.tick.0, Due::Tick(cpu as u16));
    }

    /// Takes a thread from its CPU or its queue.
    pub(crate) fn take_off(&mut self, tid: Tid, to: Place) {
        let place = self.threads[tid as usize].place;
        let cpu = usize::from(self.threads[tid as usize].cpu);
        if matches!(place, Place::Running | Place::Queued) {
            self.account(tid);
            self.keep_average(cpu);
            self.part(tid, cpu);
            let program = self.program_of(tid);
            self.programs[program].runnable -= 1;
            self.load_changes(cpu, false);
        }
        match place {
            Place::Running => {
                self.cpus[cpu].current = None;
                self.off_cpu(tid);
                self.unsettle(cpu);
            }
            Place::Queued => {
                self.cpus[cpu].queue.retain(|queued| *queued != tid);
                self.queued -= 1;
            }
            Place::Blocked | Place::Held | Place::Ended => {}
        }
        self.threads[tid as usize].place = to;
    }

    /// A thread is no longer on its CPU: its horizon is void, and others may get on faster.
    fn off_cpu(&mut self, tid: Tid) {
        self.threads[tid as usize].stamp += 1;
        self.stir(tid);
    }

    /// A running thread goes to sleep.
    pub(crate) fn block(&mut self, tid: Tid) {
        self.threads[tid as usize].doing = Doing::Nothing;
        self.threads[tid as usize].switches[0] += 1;
        self.take_off(tid, Place::Blocked);
    }

    /// Gives a CPU to whoever comes next.
    pub(crate) fn choose(&mut self, cpu: usize) {
        if let Some(current) = self.cpus[cpu].current {
            self.account(current);
        }
        if self.cpus[cpu].queue.is_empty() && self.cpus[cpu].current.is_none() {
            self.pull(cpu);
        }
        let Some(next) = self.next_in(cpu) else { return };
        let next_tid = self.cpus[cpu].queue[next];
        if let Some(current) = self.cpus[cpu].current {
            // Only whoever comes to its turn later than everybody else is taken off.
            self.threads[current as usize].place = Place::Queued;
            self.threads[current as usize].switches[1] += 1;
            self.off_cpu(current);
            self.cpus[cpu].queue.push(current);
            self.queued += 1;
            self.cpus[cpu].current = None;
        }
        self.cpus[cpu].queue.swap_remove(next);
        self.queued -= 1;
        let last = self.cpus[cpu].last.replace(next_tid);
        self.cpus[cpu].current = Some(next_tid);
        let now = self.now;
        let cost = match last {
            Some(last) if last == next_tid => 0.0,
            last => self.hardware.switch_nanos + self.refill(next_tid, last),
        };
        let thread = &mut self.threads[next_tid as usize];
        thread.place = Place::Running;
        thread.since = now;
        thread.picked = now;
        thread.owes += cost;
        self.stir(next_tid);
        // What it spins for may have come while it was off its CPU.
        if matches!(self.threads[next_tid as usize].doing, Doing::Spin { .. }) {
            self.ready.push(next_tid);
        }
        self.unpriced.push(next_tid);
    }
}
