//! The time donating barrier: a thread that waits gives its CPU to a late sibling that has none.
//!
//! *Problem.* Where programs share CPUs, a thread that all others wait for at a barrier may have
//! lost its CPU, to another program or even to a sibling that only waits for it. Spinning then
//! wastes CPUs, and sleeping leaves them to others.
//!
//! *Idea.* Algorithms 2 and 3 and section 4.2 of Wu, Peng and Jin, "Time Donating Barrier for
//! efficient task scheduling in competitive multicore systems". A thread that waits at a barrier
//! marks this (its barrier participation status, BAPS, is true; here: it waits for the barrier's
//! present round). It checks its siblings again and again while it is on a CPU:
//!
//! 1. a sibling that has not arrived yet and waits for a CPU moves to this one, and gets the rest
//!    of the turn (lines 4 to 7);
//! 2. if there is none, the next thread on this CPU gets the CPU, as the kernel decides (line 10).
//!    Here that is as in `sched_yield`, which lets others run only as far as that is fair. The
//!    thread that waits stays in the queue, never sleeps, and checks again when its turn comes;
//! 3. if there is no next thread, it keeps its CPU and checks again.
//!
//! The last thread to arrive opens the barrier, which makes the BAPS of all threads false at once.
//! A thread on a CPU sees it. A thread that waits for a CPU becomes a late sibling for the next
//! barrier, and is given time there.
//!
//! *What is exchanged.* Under `cfs`, virtual runtimes are exchanged. The present ones are exchanged
//! back when the turn is over, so that it is charged to the thread that gave it. Here this also
//! happens when the sibling leaves its CPU earlier. Under `eevdf`, deadlines are exchanged too,
//! because they end turns. Under `balance`, the two also exchange their CPUs, so that siblings stay
//! apart. Where there are no virtual runtimes (`rr`, Solaris, fixed priorities), there is nothing
//! to donate: threads spin for ever.

use crate::model::{AtBarrier, Op};
use crate::thread::{Doing, ThreadState, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// The duration of a check, nanoseconds: two light system calls and a walk over the siblings.
/// Assumed.
const LOOK: u64 = 500;
/// Until an event.
const EVER: u64 = u64::MAX;

impl SimulatedWorld {
    /// A thread has arrived at a closed barrier, or at a CPU where it finds it closed.
    pub(crate) fn wait_donating(&mut self, tid: Tid, round: u64) -> bool {
        let can_give = self.can_give(tid);
        let thread = &mut self.threads[tid as usize];
        thread.waiting = WaitTarget::Barrier { round };
        // Costs that it owes for arriving here are paid before it checks.
        let left = if can_give { LOOK + thread.owes.ceil() as u64 } else { EVER };
        thread.doing = Doing::Spin { left };
        self.unprice_thread(tid);
        false
    }

    /// Whether a thread shares its CPU by virtual runtimes.
    fn can_give(&self, tid: Tid) -> bool {
        self.kernel.is_fair() && self.threads[tid as usize].turn.rank == 0
    }

    /// Whether a thread waits at a barrier, in a program that donates.
    pub(crate) fn is_donor(&self, tid: Tid) -> bool {
        let waits = matches!(self.threads[tid as usize].waiting, WaitTarget::Barrier { .. });
        waits && self.donates(self.program_of(tid))
    }

    fn donates(&self, program: usize) -> bool {
        self.programs[program].model.barrier == Some(AtBarrier::Donate)
    }

    /// The time donating policy, for a thread that waits on a CPU (algorithm 3).
    pub(crate) fn look_around(&mut self, tid: Tid) {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        self.give_back(cpu);
        if !self.can_give(tid) {
            self.look_after(tid, EVER);
        } else if let Some(laggard) = self.preempted_laggard(tid) {
            self.donate(tid, laggard);
        } else {
            match self.next_if_yielding(tid, cpu) {
                Ok(next) => {
                    self.tally_yield(tid, false);
                    self.yield_to(cpu, next);
                }
                Err(until) => self.look_after(tid, until.max(LOOK)),
            }
        }
    }

    /// A thread keeps its CPU: nothing changes for this long, unless there is an event.
    fn look_after(&mut self, tid: Tid, left: u64) {
        self.threads[tid as usize].doing = Doing::Spin { left };
        self.unprice_thread(tid);
    }

    /// The first sibling that has not arrived at the barrier, waits for a CPU, and may use this
    /// thread's.
    fn preempted_laggard(&self, tid: Tid) -> Option<Tid> {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        let suits = |other: &Tid| {
            let thread = &self.threads[*other as usize];
            let own = usize::from(thread.cpu);
            thread.place == ThreadState::Queued
                && self.is_late(*other)
                && self.can_give(*other)
                && self.may_use(*other, cpu)
                && (!self.kernel.apart || self.may_use(tid, own))
        };
        self.programs[self.program_of(tid)].tids().find(suits)
    }

    /// Whether a thread has not arrived at the barrier where its siblings wait: its BAPS is false.
    fn is_late(&self, tid: Tid) -> bool {
        let thread = &self.threads[tid as usize];
        let program = &self.programs[usize::from(thread.turn.program)];
        let barrier = match program.model.script.get(thread.at as usize) {
            Some(Op::Barrier(number)) => &program.sync.barriers[usize::from(*number)],
            Some(Op::TeamBarrier) => &program.sync.team.region,
            _ => return true,
        };
        thread.waiting != WaitTarget::Barrier { round: barrier.round }
    }

    /// A thread on a CPU gives it, and its place in the order of turns, to a sibling that waits for
    /// one.
    fn donate(&mut self, donor: Tid, laggard: Tid) {
        let of = |tid: Tid| usize::from(self.threads[tid as usize].cpu);
        let (cpu, from) = (of(donor), of(laggard));
        if from != cpu {
            self.bring(laggard, from, cpu);
        }
        self.trade_places(donor, laggard);
        self.threads[laggard as usize].gift = Some(donor);
        self.tally_yield(donor, true);
        if let Some(next) = self.cpus[cpu].queue.iter().position(|turn| turn.tid == laggard) {
            self.yield_to(cpu, next);
        }
        if from != cpu && self.kernel.apart {
            self.move_queued(donor, cpu, from);
        }
    }

    /// If the thread on a CPU is at the end of a donated turn, each of the two gets its own place
    /// back. Returns whether so.
    pub(crate) fn give_back(&mut self, cpu: usize) -> bool {
        let Some(tid) = self.cpus[cpu].current else { return false };
        let Some(donor) = self.threads[tid as usize].gift.take() else { return false };
        let stands = matches!(
            self.threads[donor as usize].place,
            ThreadState::Running | ThreadState::Queued
        );
        // A thread that sleeps, or has ended, is in no queue.
        if !(stands && self.can_give(donor) && self.can_give(tid)) {
            return false;
        }
        self.account(donor);
        self.trade_places(donor, tid);
        true
    }

    /// A thread has begun to wait for a CPU. A thread that waits at a barrier on that CPU checks
    /// again. If the first one is late, its siblings that wait on other CPUs check again, too.
    pub(crate) fn stir_waiters(&mut self, tid: Tid, cpu: usize) {
        if let Some(current) = self.cpus[cpu].current {
            self.look_again(current);
        }
        let program = self.program_of(tid);
        if self.donates(program) && self.is_late(tid) {
            self.programs[program].tids().for_each(|sibling| self.look_again(sibling));
        }
    }

    /// A thread that waits on a CPU checks now, if its next check would be later.
    fn look_again(&mut self, tid: Tid) {
        let thread = &self.threads[tid as usize];
        let spins =
            thread.place == ThreadState::Running && matches!(thread.doing, Doing::Spin { .. });
        if !(spins && self.is_donor(tid) && self.can_give(tid)) {
            return;
        }
        self.account(tid);
        let thread = &mut self.threads[tid as usize];
        let soon = LOOK + thread.owes.ceil() as u64;
        if let Doing::Spin { left } = &mut thread.doing {
            *left = soon.min(*left);
        }
        self.unprice_thread(tid);
    }
}
