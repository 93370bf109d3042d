//! The order in a CPU's queue: whose turn it is, when a turn is over, and who may interrupt.
//!
//! Queues are short (a few threads per CPU), so they are searched, not sorted.

use crate::kernel::{Kernel, Order};
use crate::thread::{Thread, Tid};
use crate::world::World;

impl World {
    /// The weight of a thread: its program's share, divided among the program's runnable threads where programs have
    /// shares of their own.
    pub(crate) fn weight(&self, tid: Tid) -> f64 {
        let program = &self.programs[usize::from(self.threads[tid as usize].program)];
        match self.kernel.groups {
            true => program.weight / f64::from(program.runnable.max(1)),
            false => program.weight,
        }
    }

    /// What a thread that comes to a queue is given: a fair place in it.
    pub(crate) fn join(&mut self, tid: Tid, cpu: usize, woken: bool) {
        let least = self.least(cpu);
        let before = self.least(usize::from(self.threads[tid as usize].cpu));
        let average = self.average(cpu);
        let stretch = Kernel::stretch(self.cpus.len());
        let weight = self.weight(tid);
        let thread = &mut self.threads[tid as usize];
        match self.kernel.order {
            Order::Eevdf { slice } => {
                // It keeps the lag that it left with (`place_entity`), within one slice.
                let slice = slice.0 as f64 * stretch / weight;
                // Who slept has worked off what it was ahead, since 6.12 in its queue.
                let most = if woken { 0.0 } else { slice };
                thread.vruntime = average + thread.ahead.clamp(-slice, most);
                thread.deadline = thread.vruntime + slice;
            }
            Order::Cfs { latency, .. } => {
                let credit = if woken { latency.0 as f64 * stretch / 2.0 } else { 0.0 };
                thread.vruntime = least + (thread.vruntime - before).max(-credit);
            }
            Order::RoundRobin { .. } => {
                self.turns += 1.0;
                thread.vruntime = self.turns;
            }
        }
    }

    /// Notes how far a thread is ahead of its queue when it leaves it.
    pub(crate) fn part(&mut self, tid: Tid, cpu: usize) {
        let average = self.average(cpu);
        let thread = &mut self.threads[tid as usize];
        thread.ahead = thread.vruntime - average;
    }

    /// The position in its queue of the thread that comes next; `None` if the one that runs goes on.
    pub(crate) fn next_in(&self, cpu: usize) -> Option<usize> {
        let average = self.average(cpu);
        let of = |tid: &Tid| &self.threads[*tid as usize];
        let key = |thread: &Thread| -> (u8, f64) {
            match self.kernel.order {
                // Whoever has had more than its share is not eligible, and comes after all who are.
                Order::Eevdf { .. } if thread.vruntime > average + 0.5 => (1, thread.vruntime),
                Order::Eevdf { .. } => (0, thread.deadline),
                Order::Cfs { .. } | Order::RoundRobin { .. } => (0, thread.vruntime),
            }
        };
        let before = |a: (u8, f64), b: (u8, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        let queue = &self.cpus[cpu].queue;
        let keys = queue.iter().map(|tid| key(of(tid))).enumerate();
        let (best, first) = keys.min_by(|a, b| before(a.1, b.1))?;
        let goes_on = |current: &Tid| before(key(of(current)), first).is_le();
        (!self.cpus[cpu].current.as_ref().is_some_and(goes_on)).then_some(best)
    }

    /// Whether the running thread's turn is over; its account is up to date. A new turn begins then.
    pub(crate) fn turn_is_over(&mut self, cpu: usize) -> bool {
        let Some(tid) = self.cpus[cpu].current else { return false };
        let stretch = Kernel::stretch(self.cpus.len());
        let weight = self.weight(tid);
        let queued = self.cpus[cpu].queue.len() as f64;
        let all: f64 =
            weight + self.cpus[cpu].queue.iter().map(|tid| self.weight(*tid)).sum::<f64>();
        let now = self.now;
        let thread = &mut self.threads[tid as usize];
        let held = (now - thread.picked) as f64;
        match self.kernel.order {
            Order::Eevdf { slice } => {
                let over = thread.vruntime >= thread.deadline;
                if over {
                    thread.deadline = thread.vruntime + slice.0 as f64 * stretch / weight;
                }
                over
            }
            Order::Cfs { latency, granularity, .. } => {
                let (latency, granularity) =
                    (latency.0 as f64 * stretch, granularity.0 as f64 * stretch);
                let period = latency.max(granularity * (queued + 1.0));
                held >= (period * weight / all).max(granularity)
            }
            Order::RoundRobin { quantum } => {
                let over = held >= quantum.0 as f64;
                if over {
                    self.turns += 1.0;
                    thread.vruntime = self.turns;
                }
                over
            }
        }
    }

    /// Whether a thread that has just come to the queue takes the CPU from the one that runs; accounts are up to date.
    pub(crate) fn preempts(&self, tid: Tid, cpu: usize) -> bool {
        let Some(current) = self.cpus[cpu].current else { return true };
        let (new, old) = (&self.threads[tid as usize], &self.threads[current as usize]);
        match self.kernel.order {
            // RUN_TO_PARITY: who has begun a slice finishes it.
            Order::Eevdf { .. } => old.vruntime >= old.deadline && new.deadline < old.deadline,
            Order::Cfs { wakeup, .. } => {
                let wakeup = wakeup.0 as f64 * Kernel::stretch(self.cpus.len());
                old.vruntime - new.vruntime > wakeup / self.weight(tid)
            }
            Order::RoundRobin { .. } => false,
        }
    }

    /// The least virtual runtime on a CPU; it never goes back.
    fn least(&mut self, cpu: usize) -> f64 {
        let on = self.on(cpu).map(|tid| self.threads[tid as usize].vruntime);
        let least = on.fold(f64::INFINITY, f64::min);
        let kept = &mut self.cpus[cpu].least;
        if least.is_finite() && least > *kept {
            *kept = least;
        }
        *kept
    }

    /// The average virtual runtime on a CPU, by weight: where a thread with its fair share stands.
    fn average(&self, cpu: usize) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for tid in self.on(cpu) {
            let weight = self.weight(tid);
            sum += weight * self.threads[tid as usize].vruntime;
            weights += weight;
        }
        if weights > 0.0 { sum / weights } else { self.cpus[cpu].average }
    }

    /// Everybody on a CPU: the one that runs, and its queue.
    fn on(&self, cpu: usize) -> impl Iterator<Item = Tid> + '_ {
        let cpu = &self.cpus[cpu];
        cpu.current.into_iter().chain(cpu.queue.iter().copied())
    }

    /// Keeps the average of a queue for when it is empty.
    pub(crate) fn keep_average(&mut self, cpu: usize) {
        self.cpus[cpu].average = self.average(cpu);
    }
}
