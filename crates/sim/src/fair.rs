//! The order in a CPU's queue: the next thread, the end of a turn, and preemption.
//!
//! A queue holds the keys of the order ([`QueueKey`]) next to each other in memory. Queues are
//! short (a few threads per CPU), so they are searched, not sorted. The cost is a few nanoseconds
//! for each thread that waits for the same CPU.
//!
//! Threads with a fixed priority come before all others, in order of priority and then of arrival.
//! Among the others, the rules of EEVDF are those of `kernel/sched/fair.c` in Linux 6.18 (names of
//! its functions in brackets), those of CFS the same file's in Linux 2.6.38.

use crate::cpu::QueueKey;
use crate::kernel::Order;
use crate::thread::ThreadState;
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// The largest rounding error of a virtual time, nanoseconds.
const ROUNDING: f64 = 1e-3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnqueueReason {
    /// For the first time.
    Fresh,
    /// From sleep.
    Woken,
    /// From another queue.
    Moved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextThread {
    /// The running thread goes on, or there is no thread.
    Same,
    /// The one at this position of the queue.
    At(usize),
}

/// A thread's place in a queue: relative to the lowest virtual runtime there (CFS) or to the
/// average (EEVDF).
#[derive(Clone, Copy, Debug)]
struct Stand {
    base: f64,
    vruntime: f64,
    deadline: f64,
}

impl SimulatedWorld {
    pub(crate) fn weight(&self, tid: Tid) -> f64 {
        self.weight_in(self.program_of(tid))
    }

    /// The weight of each thread of a program: that of its nice value. If the program has a share
    /// of its own, it is that share divided among its runnable threads.
    pub(crate) fn weight_in(&self, program: usize) -> f64 {
        let program = &self.programs[program];
        match (program.part, program.grouped) {
            (Some(part), _) => self.weight_of_part(part, program.runnable),
            (None, true) => program.weight / f64::from(program.runnable.max(1)),
            (None, false) => program.weight * program.nice_weight,
        }
    }

    /// Gives a place to a thread that joins a queue. Accounts on that CPU are up to date.
    pub(crate) fn join(&mut self, tid: Tid, cpu: usize, how: EnqueueReason) {
        let weight = self.weight(tid);
        let (average, all) = self.average(cpu);
        let (least, before) = match self.kernel.order {
            Order::Cfs { .. } => {
                (self.least(cpu), self.cpus[usize::from(self.threads[tid as usize].cpu)].least)
            }
            _ => (0.0, 0.0),
        };
        let order = self.kernel.order;
        self.leaves_debts(tid, cpu);
        let thread = &mut self.threads[tid as usize];
        let turn = &mut thread.turn;
        turn.weight = weight;
        match order {
            Order::Solaris { .. } => {
                self.turns += 1.0;
                let first = thread.dispatch.returns_first(how, self.now, self.kernel.tick.0);
                turn.vruntime = if first { -self.turns } else { self.turns };
            }
            _ if turn.rank > 0 => {
                self.turns += 1.0;
                turn.vruntime = self.turns;
            }
            Order::RoundRobin { .. } => {
                self.turns += 1.0;
                turn.vruntime = self.turns;
            }
            // `place_entity`: it keeps its lag, which its own weight then makes smaller.
            Order::Eevdf { .. } => {
                let lag = if all > 0.0 { thread.lag * (all + weight) / all } else { 0.0 };
                turn.vruntime = average - lag;
                turn.deadline = turn.vruntime
                    + match how {
                        EnqueueReason::Fresh => turn.slice / weight / 2.0,
                        EnqueueReason::Woken => turn.slice / weight,
                        EnqueueReason::Moved => thread.ahead,
                    };
            }
            Order::Cfs { latency, granularity, .. } => {
                let count = self.cpus[cpu].load as f64 + 1.0;
                let period = latency.0 as f64 * self.stretch;
                turn.vruntime = match how {
                    EnqueueReason::Fresh => {
                        let period = period.max(granularity.0 as f64 * self.stretch * count);
                        least + period / (all + weight)
                    }
                    EnqueueReason::Woken => {
                        (turn.vruntime - before + least).max(least - period / 2.0)
                    }
                    EnqueueReason::Moved => turn.vruntime - before + least,
                };
            }
        }
    }

    /// Records a thread's place in its queue when it leaves it (`update_entity_lag`).
    pub(crate) fn part(&mut self, tid: Tid, cpu: usize) {
        if !matches!(self.kernel.order, Order::Eevdf { .. }) {
            return;
        }
        let (average, _) = self.average(cpu);
        let tick = self.kernel.tick.0 as f64;
        let thread = &mut self.threads[tid as usize];
        let most = (2.0 * thread.turn.slice).max(tick) / thread.turn.weight;
        thread.lag = (average - thread.turn.vruntime).clamp(-most, most);
        thread.ahead = thread.turn.deadline - thread.turn.vruntime;
    }

    /// Whether a thread that goes to sleep stays in its queue until it is no longer ahead
    /// (`DELAY_DEQUEUE`).
    pub(crate) fn lingers(&self, tid: Tid, cpu: usize) -> bool {
        let turn = &self.threads[tid as usize].turn;
        matches!(self.kernel.order, Order::Eevdf { .. })
            && turn.rank == 0
            && turn.vruntime > self.average(cpu).0 + ROUNDING
    }

    /// The next thread on a CPU (`pick_eevdf`). With `protect`, a thread that has begun a slice
    /// finishes it, if it is not ahead of its share (`RUN_TO_PARITY`).
    fn pick(&self, cpu: usize, protect: bool) -> NextThread {
        let queue = &self.cpus[cpu].queue;
        if queue.is_empty() {
            return NextThread::Same;
        }
        let eligible = match self.kernel.order {
            Order::Eevdf { .. } => self.average(cpu).0 + ROUNDING,
            Order::Cfs { .. } | Order::RoundRobin { .. } | Order::Solaris { .. } => f64::INFINITY,
        };
        let eevdf = eligible.is_finite();
        // The highest rank comes first; then threads that are eligible; then the order's own key.
        let key = |turn: &QueueKey| match (turn.rank, eevdf) {
            (0, true) if turn.vruntime > eligible => (0, 1, turn.vruntime),
            (0, true) => (0, 0, turn.deadline),
            (rank, _) => (-i32::from(rank), 0, turn.vruntime),
        };
        let mut best = (0, key(&queue[0]));
        for (position, turn) in queue.iter().enumerate().skip(1) {
            let key = key(turn);
            if key < best.1 {
                best = (position, key);
            }
        }
        let Some(current) = self.cpus[cpu].current else { return NextThread::At(best.0) };
        let thread = &self.threads[current as usize];
        let own = key(&thread.turn);
        let is_protected = protect && eevdf && own.1 == 0 && best.1.0 == own.0 && own.0 == 0;
        if own < best.1 || (is_protected && thread.turn.vruntime < thread.protected) {
            return NextThread::Same;
        }
        NextThread::At(best.0)
    }

    /// The position in its queue of the next thread; `None` if the running thread goes on, or there
    /// is no thread. Delayed sleepers that would be next are dequeued.
    pub(crate) fn next_in(&mut self, cpu: usize) -> Option<usize> {
        while let NextThread::At(position) = self.pick(cpu, true) {
            let turn = self.cpus[cpu].queue[position];
            if !turn.delayed {
                return Some(position);
            }
            self.let_sleep(turn.tid, cpu);
        }
        None
    }

    /// A sleeper is no longer ahead, and leaves its queue; for its wait it gets nothing
    /// (`DELAY_ZERO`).
    pub(crate) fn let_sleep(&mut self, tid: Tid, cpu: usize) {
        self.keep_average(cpu);
        self.part(tid, cpu);
        self.cpus[cpu].remove(tid);
        let thread = &mut self.threads[tid as usize];
        thread.lag = thread.lag.min(0.0);
        thread.turn.delayed = false;
    }

    /// A sleeper that has stayed in its queue wakes up there (`requeue_delayed_entity`).
    pub(crate) fn stays_awake(&mut self, tid: Tid, cpu: usize) {
        let is_behind = self.threads[tid as usize].turn.vruntime < self.average(cpu).0;
        self.cpus[cpu].remove(tid);
        let (average, _) = self.average(cpu);
        let turn = &mut self.threads[tid as usize].turn;
        turn.delayed = false;
        if is_behind {
            turn.vruntime = average;
            turn.deadline = average + turn.slice / turn.weight;
        }
        self.cpus[cpu].queue.push(*turn);
    }

    /// A thread is put on a CPU: sets until when no other thread may preempt it
    /// (`set_protect_slice`).
    pub(crate) fn begin_turn(&mut self, tid: Tid, cpu: usize) {
        if !matches!(self.kernel.order, Order::Eevdf { .. }) {
            return;
        }
        let shortest = self.shortest(cpu);
        let thread = &mut self.threads[tid as usize];
        let turn = &thread.turn;
        thread.protected = match shortest < turn.slice {
            true => turn.deadline.min(turn.vruntime + shortest / turn.weight),
            false => turn.deadline,
        };
    }

    /// The shortest slice in a queue.
    fn shortest(&self, cpu: usize) -> f64 {
        let fair = self.cpus[cpu].queue.iter().filter(|turn| turn.rank == 0);
        fair.map(|turn| turn.slice).fold(f64::INFINITY, f64::min)
    }

    /// Whether another thread should be chosen, at a tick or when a thread joins; the running
    /// thread's account is up to date (`update_curr`, `check_preempt_tick`).
    pub(crate) fn turn_is_over(&mut self, cpu: usize) -> bool {
        let Some(tid) = self.cpus[cpu].current else { return false };
        let queue = &self.cpus[cpu].queue;
        let held = (self.now - self.threads[tid as usize].changed) as f64;
        let thread = &mut self.threads[tid as usize];
        let turn = &mut thread.turn;
        match self.kernel.order {
            // `charge` decides this.
            Order::Solaris { .. } => false,
            _ if turn.rank > 0 => {
                let peers = queue.iter().any(|other| other.rank == turn.rank);
                peers && held >= turn.slice && {
                    self.turns += 1.0;
                    turn.vruntime = self.turns;
                    true
                }
            }
            Order::RoundRobin { .. } => {
                let over = held >= turn.slice;
                if over {
                    self.turns += 1.0;
                    turn.vruntime = self.turns;
                }
                over
            }
            Order::Eevdf { .. } => {
                let over = turn.vruntime >= turn.deadline;
                if over {
                    turn.deadline = turn.vruntime + turn.slice / turn.weight;
                }
                !queue.is_empty() && (over || turn.vruntime >= thread.protected)
            }
            Order::Cfs { latency, granularity, .. } => {
                let waiting = queue.iter().filter(|turn| turn.rank == 0);
                let (mut all, mut count, mut least) = (turn.weight, 1.0, f64::INFINITY);
                for other in waiting {
                    all += other.weight;
                    count += 1.0;
                    least = least.min(other.vruntime);
                }
                let granularity = granularity.0 as f64 * self.stretch;
                let period = (latency.0 as f64 * self.stretch).max(granularity * count);
                let slice = period * turn.weight / all;
                held > slice || (held >= granularity && turn.vruntime - least > slice)
            }
        }
    }

    /// Whether a thread that has just joined the queue makes the CPU choose again; accounts are up
    /// to date (`check_preempt_wakeup_fair`).
    pub(crate) fn preempts(&mut self, tid: Tid, cpu: usize, how: EnqueueReason) -> bool {
        let Some(current) = self.cpus[cpu].current else { return true };
        let (new, old) = (self.threads[tid as usize].turn, self.threads[current as usize].turn);
        if new.rank != old.rank {
            return new.rank > old.rank;
        }
        if new.rank == 0 && new.idle != old.idle {
            if old.idle {
                self.threads[current as usize].protected = f64::NEG_INFINITY;
            }
            return old.idle;
        }
        let batch = self.programs[usize::from(new.program)].batch;
        match self.kernel.order {
            _ if new.rank > 0 || batch => false,
            Order::RoundRobin { .. } | Order::Solaris { .. } => false,
            Order::Eevdf { .. } => {
                let short = new.slice < old.slice;
                let next = self.pick(cpu, !short);
                let first =
                    matches!(next, NextThread::At(at) if self.cpus[cpu].queue[at].tid == tid);
                let thread = &mut self.threads[current as usize];
                if short && first {
                    thread.protected = old.vruntime;
                } else if short {
                    let bound = old.vruntime + new.slice / old.weight;
                    thread.protected = thread.protected.min(bound);
                }
                first
            }
            Order::Cfs { wakeup, .. } => {
                let wakeup = wakeup.0 as f64 * self.stretch;
                how != EnqueueReason::Moved && old.vruntime - new.vruntime > wakeup / new.weight
            }
        }
    }

    /// The lowest virtual runtime on a CPU; it never decreases.
    fn least(&mut self, cpu: usize) -> f64 {
        let current = self.cpus[cpu].current.map(|tid| self.threads[tid as usize].turn);
        let cpu = &mut self.cpus[cpu];
        let on = cpu.queue.iter().chain(current.iter()).filter(|turn| turn.rank == 0);
        let least = on.map(|turn| turn.vruntime).fold(f64::INFINITY, f64::min);
        if least.is_finite() && least > cpu.least {
            cpu.least = least;
        }
        cpu.least
    }

    /// The average virtual runtime on a CPU by weight, which is that of a thread with its fair
    /// share, and the sum of the weights. For an empty CPU: the last average.
    pub(crate) fn average(&self, cpu: usize) -> (f64, f64) {
        let cpu = &self.cpus[cpu];
        let current = cpu.current.map(|tid| &self.threads[tid as usize].turn);
        // Sums of differences: large numbers would leave no digits for small ones.
        let base = cpu.average;
        let (mut sum, mut weights) = (0.0, 0.0);
        for turn in cpu.queue.iter().chain(current).filter(|turn| turn.rank == 0) {
            sum += turn.weight * (turn.vruntime - base);
            weights += turn.weight;
        }
        (if weights > 0.0 { base + sum / weights } else { base }, weights)
    }

    /// Keeps the average of a CPU's queue, for when it is empty.
    pub(crate) fn keep_average(&mut self, cpu: usize) {
        match self.kernel.order {
            Order::Eevdf { .. } => self.cpus[cpu].average = self.average(cpu).0,
            Order::Cfs { .. } => {
                self.least(cpu);
            }
            Order::RoundRobin { .. } | Order::Solaris { .. } => {}
        }
    }

    /// Two threads with up-to-date accounts exchange their places in the order of turns:
    /// virtual runtimes, and deadlines. Each is relative to its queue, since those of two CPUs
    /// cannot be compared.
    pub(crate) fn trade_places(&mut self, one: Tid, other: Tid) {
        let (first, second) = (self.stand(one), self.stand(other));
        self.stand_at(one, first.base, &second);
        self.stand_at(other, second.base, &first);
    }

    /// A thread's place in its queue.
    fn stand(&mut self, tid: Tid) -> Stand {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        let base = match self.kernel.order {
            Order::Eevdf { .. } => self.average(cpu).0,
            _ => self.least(cpu),
        };
        let turn = &self.threads[tid as usize].turn;
        Stand { base, vruntime: turn.vruntime - base, deadline: turn.deadline - base }
    }

    fn stand_at(&mut self, tid: Tid, base: f64, stand: &Stand) {
        let thread = &mut self.threads[tid as usize];
        thread.turn.vruntime = base + stand.vruntime;
        thread.turn.deadline = base + stand.deadline;
        let (place, cpu) = (thread.place, usize::from(thread.cpu));
        if place == ThreadState::Running {
            self.begin_turn(tid, cpu);
        }
        self.refresh_turn(tid);
    }

    /// The next thread, by its position in the queue, on a CPU if its thread yields; or else after
    /// how many nanoseconds another try is useful. As `sched_yield`: CFS passes a thread over only
    /// for one that is not much ahead of it (`skip`, in `pick_next_entity`); under EEVDF its turn
    /// counts as used up (`yield_task_fair`, up to Linux 6.17).
    pub(crate) fn next_if_yielding(&mut self, tid: Tid, cpu: usize) -> Result<usize, u64> {
        let own = self.threads[tid as usize].turn;
        match self.kernel.order {
            Order::Cfs { wakeup, .. } => {
                self.cpus[cpu].current = None;
                let next = self.next_in(cpu);
                self.cpus[cpu].current = Some(tid);
                let next = next.ok_or(u64::MAX)?;
                let second = &self.cpus[cpu].queue[next];
                let most = wakeup.0 as f64 * self.stretch / second.weight;
                let too_much = second.vruntime - own.vruntime - most;
                if too_much > ROUNDING {
                    Err((too_much * own.weight).ceil() as u64)
                } else {
                    Ok(next)
                }
            }
            _ => {
                let thread = &mut self.threads[tid as usize];
                thread.turn.deadline = own.vruntime + own.slice / own.weight;
                thread.protected = f64::NEG_INFINITY;
                if let Some(next) = self.next_in(cpu) {
                    return Ok(next);
                }
                // The time at which the average reaches the thread that is the least ahead of it.
                let least = self.cpus[cpu].queue.iter().map(|turn| turn.vruntime);
                let least = least.fold(f64::INFINITY, f64::min);
                let (average, all) = self.average(cpu);
                Err(((least - average) * all).max(0.0).ceil() as u64)
            }
        }
    }

    /// Copies a thread's turn to its queue, if it is in one.
    pub(crate) fn refresh_turn(&mut self, tid: Tid) {
        let thread = &self.threads[tid as usize];
        if thread.place == ThreadState::Queued || thread.turn.delayed {
            let turn = thread.turn;
            let queue = &mut self.cpus[usize::from(thread.cpu)].queue;
            if let Some(queued) = queue.iter_mut().find(|queued| queued.tid == tid) {
                *queued = turn;
            }
        }
    }
}
