//! How threads lost their CPUs, and what a program did in each interval, as in a trace of the
//! kernel.
//!
//! An involuntary switch is an *expiry* if the turn was used up, else a *preemption*: by a thread
//! of the same program (*backstabbing*, in the paper on faithful scheduling), or by another
//! program's. Counting costs an addition per switch. Intervals are kept only on request.

use cosched_core::{Level, Nanos, ProgramId};

use crate::solaris::PriorityChange;
use crate::thread::{ThreadState, ThreadUsage, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// Counts of a program, over all of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Switches after a turn that was used up; under Solaris also to the same thread.
    pub expired: u64,
    /// Preemptions by a thread of the same program.
    pub by_sibling: u64,
    /// Preemptions by another program's thread.
    pub by_other: u64,
    /// Switches in which a thread that waited at a barrier gave its CPU to a late sibling.
    pub donated: u64,
    /// Switches in which a thread that waited at a barrier yielded its CPU to the next thread.
    pub yielded: u64,
    /// How many of the first three were of a thread that held a lock.
    pub holders: u64,
    /// Switches because a thread waited for a lock.
    pub for_locks: u64,
    /// How many of these happened while the lock's holder had lost its CPU, and waited for one.
    pub holder_queued: u64,
    /// How often a lock went from one thread to another in the same package.
    pub transfers_inside: u64,
    /// How often a lock went from one thread to another in another package.
    pub transfers_across: u64,
    /// How often a thread was given a CPU.
    pub turns: u64,
    /// Changes of priority after a turn that was used up (time sharing).
    pub changes_expired: u64,
    /// Changes of priority after sleep.
    pub changes_slept: u64,
    /// Changes of priority of a running thread that was due.
    pub changes_ran: u64,
    /// Changes of priority of a thread that waited for a CPU.
    pub changes_waited: u64,
    /// How many of these were of a preempted thread.
    pub changes_preempted: u64,
}

impl Tally {
    fn since(&self, before: &Tally) -> Tally {
        Tally {
            expired: self.expired - before.expired,
            by_sibling: self.by_sibling - before.by_sibling,
            by_other: self.by_other - before.by_other,
            donated: self.donated - before.donated,
            yielded: self.yielded - before.yielded,
            holders: self.holders - before.holders,
            for_locks: self.for_locks - before.for_locks,
            holder_queued: self.holder_queued - before.holder_queued,
            transfers_inside: self.transfers_inside - before.transfers_inside,
            transfers_across: self.transfers_across - before.transfers_across,
            turns: self.turns - before.turns,
            changes_expired: self.changes_expired - before.changes_expired,
            changes_slept: self.changes_slept - before.changes_slept,
            changes_ran: self.changes_ran - before.changes_ran,
            changes_waited: self.changes_waited - before.changes_waited,
            changes_preempted: self.changes_preempted - before.changes_preempted,
        }
    }
}

/// What a program did in an interval; times are summed over its threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The run of the program.
    pub program: ProgramId,
    /// How many threads it has.
    pub threads: u16,
    /// The start.
    pub from: Nanos,
    /// The end.
    pub to: Nanos,
    /// Time on CPUs.
    pub ran: Nanos,
    /// Time on CPUs that this work takes alone.
    pub alone: Nanos,
    /// Time in queues for a CPU: divided by the interval, the mean length of its part of the run
    /// queue.
    pub queued: Nanos,
    /// Threads in queues for a CPU at the end: its part of the run queue, as seen by a tool that
    /// samples once an interval.
    pub queue: u16,
    /// Time asleep at locks, barriers and queues.
    pub waited: Nanos,
    /// From the first arrival of a thread of a package at a lock to the last one's, the mean over
    /// packages and windows of 100 ms; `None`: no two came.
    pub arrival_range: Option<Nanos>,
    /// Last-level references.
    pub references: f64,
    /// Last-level misses.
    pub misses: f64,
    /// Switches because a thread waited.
    pub voluntary: u64,
    /// All other switches, and changes of priority.
    pub tally: Tally,
}

#[derive(Debug)]
pub(crate) struct KeptIntervals {
    every: u64,
    from: u64,
    next: u64,
    pub(crate) rows: Vec<Interval>,
    /// By the program's position: its run, and what it had done when the interval began.
    before: Vec<(ProgramId, WatchedSums)>,
}

/// What a program has done since it began.
#[derive(Clone, Debug, Default)]
struct WatchedSums {
    used: ThreadUsage,
    tally: Tally,
    /// CPU time that its work takes alone, nanoseconds.
    alone: f64,
}

impl KeptIntervals {
    pub(crate) fn new(now: u64, every: Nanos) -> KeptIntervals {
        let every = every.0.max(1);
        KeptIntervals { every, from: now, next: now + every, rows: Vec::new(), before: Vec::new() }
    }
}

impl SimulatedWorld {
    /// Ends the intervals that end before a time; there is no event until then.
    pub(crate) fn keep_watch(&mut self, until: u64) {
        while let Some(watch) = self.watch.as_ref().filter(|watch| watch.next <= until) {
            self.now = watch.next;
            for run in 0..self.programs.len() {
                if self.programs[run].alive > 0 {
                    self.watch_end(run);
                }
            }
            if let Some(watch) = &mut self.watch {
                watch.from = watch.next;
                watch.next += watch.every;
            }
        }
    }

    /// Ends the interval of a program.
    pub(crate) fn watch_end(&mut self, run: usize) {
        let Some(mut watch) = self.watch.take() else { return };
        let program = &self.programs[run];
        let (id, tally, threads) = (program.id, program.tally, program.model.threads);
        let is_queued = |tid: &Tid| self.threads[*tid as usize].place == ThreadState::Queued;
        let queue = program.tids().filter(is_queued).count() as u16;
        let (mut used, mut by_mix) = (ThreadUsage::default(), vec![0.0; program.model.mixes.len()]);
        for tid in program.tids() {
            // To account for the thread itself would round its work once more than without a watch.
            let mut thread = self.threads[tid as usize].clone();
            thread.used = self.used(tid);
            thread.account(self.now, false);
            used = used.plus(thread.used);
            by_mix.iter_mut().zip(&thread.by_mix).for_each(|(all, one)| *all += one);
        }
        let alone = self.nanos_alone(run, &by_mix) * f64::from(threads);
        watch.before.resize(self.programs.len(), (id, WatchedSums::default()));
        let done = WatchedSums { used, tally, alone };
        let (of, before) = std::mem::replace(&mut watch.before[run], (id, done));
        let before = if of == id { before } else { WatchedSums::default() };
        let (did, counts) = (used.since(&before.used), tally.since(&before.tally));
        let arrival_range = self.programs[run].arrivals.mean_range(self.now);
        watch.rows.push(Interval {
            program: id,
            threads,
            from: Nanos(watch.from),
            to: Nanos(self.now),
            ran: Nanos(did.ran),
            alone: Nanos((alone - before.alone).round() as u64),
            queued: Nanos(did.queued),
            queue,
            waited: Nanos(did.waited),
            arrival_range,
            references: did.references,
            misses: did.misses,
            voluntary: did.switches[0],
            tally: counts,
        });
        self.watch = Some(watch);
    }

    /// Notes that a thread comes to a lock and has to wait, if intervals are kept.
    pub(crate) fn note_arrival(&mut self, tid: Tid, program: usize) {
        if self.watch.is_some() {
            let cpu = usize::from(self.threads[tid as usize].cpu);
            let package = self.shape.group(cpu, Level::Package);
            self.programs[program].arrivals.arrive(tid, package, self.now);
        }
    }

    fn tally(&mut self, tid: Tid) -> &mut Tally {
        let program = self.program_of(tid);
        &mut self.programs[program].tally
    }

    /// A running thread loses its CPU to a thread of program `to`.
    pub(crate) fn tally_loss(&mut self, tid: Tid, to: u16) {
        let thread = &mut self.threads[tid as usize];
        if std::mem::take(&mut thread.yields) {
            return;
        }
        let (expired, holds) = (thread.expired, thread.holds > 0);
        let sibling = thread.turn.program == to;
        let tally = self.tally(tid);
        match (expired, sibling) {
            (true, _) => tally.expired += 1,
            (false, true) => tally.by_sibling += 1,
            (false, false) => tally.by_other += 1,
        }
        tally.holders += u64::from(holds);
    }

    /// A thread has used up a turn, and keeps its CPU.
    pub(crate) fn tally_renewal(&mut self, tid: Tid) {
        self.tally(tid).expired += 1;
    }

    /// A running thread is about to leave its CPU voluntarily, and stays runnable: for a sibling,
    /// or for the next thread.
    pub(crate) fn tally_yield(&mut self, tid: Tid, donates: bool) {
        self.threads[tid as usize].yields = true;
        let tally = self.tally(tid);
        match donates {
            true => tally.donated += 1,
            false => tally.yielded += 1,
        }
    }

    /// A running thread goes to sleep.
    pub(crate) fn tally_sleep(&mut self, tid: Tid) {
        let thread = &self.threads[tid as usize];
        if thread.waiting != WaitTarget::Lock {
            return;
        }
        let queued = self
            .awaited(tid)
            .is_some_and(|holder| self.threads[holder as usize].place == ThreadState::Queued);
        let tally = self.tally(tid);
        tally.for_locks += 1;
        tally.holder_queued += u64::from(queued);
    }

    pub(crate) fn tally_turn(&mut self, tid: Tid) {
        self.tally(tid).turns += 1;
    }

    pub(crate) fn tally_change(&mut self, tid: Tid, why: PriorityChange) {
        let tally = self.tally(tid);
        match why {
            PriorityChange::Expired => tally.changes_expired += 1,
            PriorityChange::Slept => tally.changes_slept += 1,
            PriorityChange::Ran => tally.changes_ran += 1,
            PriorityChange::Waited { displaced } => {
                tally.changes_waited += 1;
                tally.changes_preempted += u64::from(displaced);
            }
        }
    }
}
