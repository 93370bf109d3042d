//! The dispatcher of OpenSolaris: every thread has a priority, the thread with the highest runs,
//! and recent behaviour changes the priority.
//!
//! *Time sharing* (TS, the default): a table gives the length of a turn for each of 60 levels. It
//! also gives the level after a turn that was used up (ten lower), and after sleeping or waiting
//! (50 to 59). Turns are charged by the clock's tick. Once a second every thread is due, and is
//! raised: a thread that runs or waits for a CPU at once, a thread that sleeps when it wakes up.
//! Threads of one program therefore get different priorities, and take CPUs from each other.
//! *Fixed priority* (FX): as the plan says, with one slice; no thread is ever raised or lowered.
//!
//! Every thread has a home, a package. A thread that wakes up goes back to its CPU while its cache
//! is warm, and takes it from a lower priority there, even if other CPUs are idle. Else it goes to
//! the CPU with the threads of lowest priority at home, or in the machine if there is none below
//! its own. A thread that loses its CPU to a higher priority is the first in the queue there. A
//! thread that has used up a turn goes to the next CPU's queue if that is shorter. An idle CPU
//! takes threads from the queues of its package at once, and from others once they have waited
//! for 100 us.
//!
//! *Source.* `ts.c`, `fx.c`, `disp.c`, `lgrp.c` and the manual page `ts_dptbl(4)` (names in
//! brackets); the book "Solaris Internals". Left out: the interactive class, kernel priorities, the
//! swapper, and processor sets. `lgrp_choose` goes by averages of load; here the threads that have
//! their homes in a package count.

use cosched_core::{Level, Nanos};

use crate::fair::EnqueueReason;
use crate::queue::mix;
use crate::thread::{SimulatedThread, ThreadState};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// The highest level of time sharing, where programs begin that an interactive shell starts; no
/// thread is raised from it.
const TOP: u8 = 59;
/// The first level of a thread that joins time sharing from another class (`tsmedumdpri`).
const MIDDLE: u8 = 29;
/// The time between raises of priorities (`ts_update`).
const RAISE: u64 = 1_000_000_000;
/// This many ticks after it went off a CPU, a thread's cache there no longer counts
/// (`rechoose_interval`, `t_disp_time`).
const WARM: u64 = 3;
/// A thread that has waited for less is left to the CPUs of its package (`nosteal_nsec`).
const NO_STEAL: u64 = 100_000;
/// From this priority on, this many threads more may wait here than on the next CPU
/// (`RUNQ_MATCH_PRI`, `RUNQ_MAX_DIFF`).
const MATCH: (u8, usize) = (16, 2);

/// The length of a turn at a level (`ts_quantum`).
fn quantum(level: u8) -> Nanos {
    Nanos::from_millis(match level {
        0..=9 => 200,
        10..=19 => 160,
        20..=29 => 120,
        30..=39 => 80,
        40..=58 => 40,
        _ => 20,
    })
}

/// The level after a turn that was used up (`ts_tqexp`).
fn expired(level: u8) -> u8 {
    level.saturating_sub(10)
}

/// The level of a thread that was due, and sleeps or runs (`ts_slpret`).
fn returned(level: u8) -> u8 {
    match level {
        0..=29 => 50 + level / 10,
        30..=44 => 47 + level / 5,
        45..=47 => level + 11,
        48..=58 => 58,
        _ => TOP,
    }
}

/// The level of a thread that was due, and waits for a CPU (`ts_lwait`).
fn waited(level: u8) -> u8 {
    if level < 49 { returned(level) } else { TOP }
}

/// The dispatcher's data of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatch {
    /// Its priority.
    level: u8,
    /// Its class: FX, not TS.
    fixed: bool,
    /// A second has ended since it was last lowered or raised (`ts_dispwait`).
    due: bool,
    /// The rest of its turn, nanoseconds.
    left: u64,
    /// It lost its last CPU to a higher priority.
    displaced: bool,
    /// When it last went off a CPU (`t_disp_time`).
    pub(crate) went: u64,
    /// The package where its memory is (`t_lpl`), once it has one.
    home: Option<u16>,
}

impl Default for Dispatch {
    fn default() -> Dispatch {
        let left = quantum(TOP).0;
        Dispatch {
            level: TOP,
            fixed: false,
            due: false,
            left,
            displaced: false,
            went: 0,
            home: None,
        }
    }
}

impl Dispatch {
    /// Whether it comes before others of its priority (`setfrontdq`): displaced, or asleep for less
    /// than a tick.
    pub(crate) fn returns_first(&self, how: EnqueueReason, now: u64, tick: u64) -> bool {
        match how {
            EnqueueReason::Fresh => false,
            EnqueueReason::Woken => self.went / tick == now / tick,
            EnqueueReason::Moved => self.displaced,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriorityChange {
    Expired,
    Slept,
    Ran,
    /// It waited for a CPU; whether it had lost one to a higher priority.
    Waited {
        displaced: bool,
    },
}

impl SimulatedWorld {
    /// A thread joins the class of fixed priorities (a rank above 0), with a slice or 0 for the
    /// table's; or time sharing. Returns its rank.
    pub(crate) fn joins_class(&mut self, tid: Tid, rank: u8, slice: f64) -> u8 {
        let thread = &mut self.threads[tid as usize];
        let dispatch = &mut thread.dispatch;
        let before = (dispatch.level, dispatch.fixed);
        (dispatch.level, dispatch.fixed) = match rank {
            0 if dispatch.fixed => (MIDDLE, false),
            0 => before,
            rank => (rank - 1, true),
        };
        if before != (dispatch.level, dispatch.fixed) || slice != thread.turn.slice {
            dispatch.due = false;
            dispatch.left = if slice > 0.0 { slice as u64 } else { quantum(dispatch.level).0 };
        }
        dispatch.level + 1
    }

    /// A whole turn of a thread, nanoseconds.
    fn whole_turn(&self, tid: Tid) -> u64 {
        let thread = &self.threads[tid as usize];
        match thread.dispatch.fixed && thread.turn.slice > 0.0 {
            true => thread.turn.slice as u64,
            false => quantum(thread.dispatch.level).0,
        }
    }

    /// A thread of time sharing goes to a level, with a whole turn.
    fn goes_to(&mut self, tid: Tid, level: u8, why: PriorityChange) {
        let thread = &mut self.threads[tid as usize];
        let changes = thread.dispatch.level != level;
        thread.dispatch.level = level;
        thread.dispatch.due = false;
        thread.turn.rank = level + 1;
        thread.dispatch.left = quantum(level).0;
        if changes {
            self.tally_change(tid, why);
        }
    }

    /// The clock charges the thread that runs on a CPU (`ts_tick`, `fx_tick`).
    pub(crate) fn charge(&mut self, tid: Tid, cpu: usize) {
        if !self.kernel.is_solaris() {
            return;
        }
        self.raise();
        let tick = self.kernel.tick.0;
        let dispatch = &mut self.threads[tid as usize].dispatch;
        if dispatch.left > tick {
            dispatch.left -= tick;
            return;
        }
        let Dispatch { level, fixed, .. } = *dispatch;
        if !fixed {
            self.goes_to(tid, expired(level), PriorityChange::Expired);
        }
        let left = self.whole_turn(tid);
        self.turns += 1.0;
        let thread = &mut self.threads[tid as usize];
        thread.dispatch.left = left;
        thread.turn.vruntime = self.turns;
        let rank = thread.turn.rank;
        if self.cpus[cpu].queue.iter().any(|turn| turn.rank >= rank) {
            thread.expired = true;
            self.unsettle(cpu);
        } else {
            // It surrenders its CPU, is the next, and its switch is counted (`preempt`).
            thread.used.switches[1] += 1;
            self.tally_renewal(tid);
        }
    }

    /// Once a second, all threads of time sharing are due (`ts_update`), except those on the
    /// highest level.
    fn raise(&mut self) {
        if self.now < self.raised + RAISE {
            return;
        }
        self.raised = self.now - self.now % RAISE;
        let count = self.threads.len();
        // The thread that is raised first comes first; this changes from second to second.
        let first = (mix(self.seed ^ self.now) % count as u64) as usize;
        for tid in (0..count).map(|position| ((first + position) % count) as Tid) {
            let thread = &self.threads[tid as usize];
            let (place, Dispatch { level, fixed, displaced, .. }) = (thread.place, thread.dispatch);
            if fixed || level == TOP {
                continue;
            }
            match place {
                ThreadState::Running => self.goes_to(tid, returned(level), PriorityChange::Ran),
                ThreadState::Queued => {
                    self.goes_to(tid, waited(level), PriorityChange::Waited { displaced });
                    self.turns += 1.0;
                    self.threads[tid as usize].turn.vruntime = self.turns;
                    self.refresh_turn(tid);
                    let cpu = usize::from(self.threads[tid as usize].cpu);
                    if self.preempts(tid, cpu, EnqueueReason::Moved) {
                        self.unsettle(cpu);
                    }
                }
                ThreadState::Blocked | ThreadState::Held => {
                    self.threads[tid as usize].dispatch.due = true
                }
                ThreadState::Ended => {}
            }
        }
    }

    /// A sleeper wakes up (`ts_wakeup`).
    pub(crate) fn comes_back(&mut self, tid: Tid) {
        let Dispatch { level, due, .. } = self.threads[tid as usize].dispatch;
        if due && self.kernel.is_solaris() {
            self.goes_to(tid, returned(level), PriorityChange::Slept);
        }
    }

    /// The CPU for a thread that becomes runnable (`setbackdq`, `cpu_choose`).
    pub(crate) fn dispatch_to(&self, tid: Tid, own: usize, how: EnqueueReason) -> usize {
        if how == EnqueueReason::Fresh || !self.may_use(tid, own) {
            return self.lowest(tid);
        }
        let is_warm =
            self.now <= self.threads[tid as usize].dispatch.went + WARM * self.kernel.tick.0;
        let cpu = if is_warm { own } else { self.lowest(tid) };
        if self.highest(cpu) < Some(self.threads[tid as usize].turn.rank) {
            return cpu;
        }
        // An idle CPU takes it from the queue at once.
        self.idle_near(tid, cpu).unwrap_or_else(|| self.or_next(tid, cpu))
    }

    /// An idle CPU of the same package.
    fn idle_near(&self, tid: Tid, cpu: usize) -> Option<usize> {
        let around = self.shape.around(cpu, Some(Level::Package)).iter().copied().map(usize::from);
        let idle = around.filter(|cpu| self.cpus[*cpu].load == 0 && self.may_use(tid, *cpu));
        idle.min_by_key(|cpu| self.chance(tid, *cpu))
    }

    /// A new thread gets the package as its home that is home to the fewest (`lgrp_choose`).
    pub(crate) fn settles(&mut self, tid: Tid) {
        if !self.kernel.is_solaris() || self.threads[tid as usize].dispatch.home.is_some() {
            return;
        }
        let own = self.shape.group(usize::from(self.threads[tid as usize].cpu), Level::Package);
        let lives = |package: u16| {
            let here = |thread: &&SimulatedThread| {
                thread.dispatch.home == Some(package) && thread.place != ThreadState::Ended
            };
            self.threads.iter().filter(here).count()
        };
        let packages = self.shape.inside(None).map_or(&[][..], |(_, packages)| packages);
        let key = |package: &u16| {
            let size = self.shape.cpus(Level::Package, usize::from(*package)).len();
            let is_own = usize::from(*package) == own;
            (1000 * lives(*package) / size, !is_own, self.chance(tid, usize::from(*package)))
        };
        let home = packages.iter().copied().min_by_key(key);
        self.threads[tid as usize].dispatch.home = home;
    }

    /// The highest priority on a CPU or in its queue.
    pub(crate) fn highest(&self, cpu: usize) -> Option<u8> {
        let cpu = &self.cpus[cpu];
        let current = cpu.current.map(|tid| self.threads[tid as usize].turn.rank);
        cpu.queue.iter().map(|turn| turn.rank).chain(current).max()
    }

    /// The CPU with the lowest priority at home, if that is below the thread's own; else in the
    /// machine (`disp_lowpri_cpu`).
    fn lowest(&self, tid: Tid) -> usize {
        let thread = &self.threads[tid as usize];
        let (own, rank) = (usize::from(thread.cpu), thread.turn.rank);
        let lowest = |cpus: &[u16]| {
            let allowed = cpus.iter().copied().map(usize::from);
            let key = |cpu: &usize| {
                (self.highest(*cpu), self.cpus[*cpu].load, *cpu != own, self.chance(tid, *cpu))
            };
            allowed.filter(|cpu| self.may_use(tid, *cpu)).min_by_key(key)
        };
        let home = thread.dispatch.home.map(usize::from);
        let home = home.and_then(|home| lowest(self.shape.cpus(Level::Package, home)));
        let found = home.filter(|cpu| self.highest(*cpu) < Some(rank));
        found.or_else(|| lowest(self.shape.around(own, None))).unwrap_or(own)
    }

    /// Whether an idle CPU takes a waiting thread from another CPU's queue.
    pub(crate) fn may_steal(&self, tid: Tid, from: usize, to: usize) -> bool {
        let package = |cpu| self.shape.group(cpu, Level::Package);
        !self.kernel.is_solaris()
            || package(from) == package(to)
            || self.now >= self.threads[tid as usize].changed + NO_STEAL
    }

    /// When the next thread in a CPU's queue has waited long enough for CPUs of other packages;
    /// nanoseconds.
    pub(crate) fn next_steal(&self, cpu: usize) -> u64 {
        if !self.kernel.is_solaris() {
            return u64::MAX;
        }
        let queue = self.cpus[cpu].queue.iter();
        let ripe = queue.map(|turn| self.threads[turn.tid as usize].changed + NO_STEAL);
        ripe.filter(|at| *at > self.now).min().unwrap_or(u64::MAX)
    }

    /// Idle CPUs take what waits on this CPU and has waited long enough.
    pub(crate) fn let_steal(&mut self, cpu: usize) {
        if !self.kernel.is_solaris() || self.cpus[cpu].queue.is_empty() {
            return;
        }
        for to in 0..self.cpus.len() {
            if self.cpus[to].load == 0 {
                self.unsettle(to);
            }
        }
    }

    /// A CPU, or the next one behind the same cache if fewer of this priority wait there.
    fn or_next(&self, tid: Tid, cpu: usize) -> usize {
        let rank = self.threads[tid as usize].turn.rank;
        let waiting = |cpu: usize| {
            let others = self.cpus[cpu].queue.iter().filter(|turn| turn.tid != tid);
            others.filter(|turn| turn.rank == rank).count()
        };
        let around = self.shape.around(cpu, Some(Level::Llc));
        let position = around.iter().position(|other| usize::from(*other) == cpu).unwrap_or(0);
        let next = usize::from(around[(position + 1) % around.len()]);
        let more = if rank > MATCH.0 { MATCH.1 } else { 0 };
        match waiting(next) + more < waiting(cpu) && self.may_use(tid, next) {
            true => next,
            false => cpu,
        }
    }

    /// A thread has lost its CPU, and waits in its queue: first there if it has some of its turn
    /// left (`setfrontdq`), else last, or in the next CPU's queue. An idle CPU may take it.
    pub(crate) fn makes_room(&mut self, tid: Tid, cpu: usize) {
        if !self.kernel.is_solaris() {
            return;
        }
        let displaced = !std::mem::replace(&mut self.threads[tid as usize].expired, false);
        self.threads[tid as usize].dispatch.displaced = displaced;
        let stays = || if displaced { cpu } else { self.or_next(tid, cpu) };
        let to = self.idle_near(tid, cpu).unwrap_or_else(stays);
        if to != cpu {
            self.move_queued(tid, cpu, to);
        } else if displaced {
            self.turns += 1.0;
            self.threads[tid as usize].turn.vruntime = -self.turns;
            self.refresh_turn(tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_matches_the_manual_page() {
        // Level: quantum in ms, expired, returned from sleep, waited for a CPU.
        let rows = [
            (0, 200, 0, 50, 50),
            (9, 200, 0, 50, 50),
            (10, 160, 0, 51, 51),
            (19, 160, 9, 51, 51),
            (29, 120, 19, 52, 52),
            (34, 80, 24, 53, 53),
            (35, 80, 25, 54, 54),
            (40, 40, 30, 55, 55),
            (44, 40, 34, 55, 55),
            (45, 40, 35, 56, 56),
            (46, 40, 36, 57, 57),
            (47, 40, 37, 58, 58),
            (48, 40, 38, 58, 58),
            (49, 40, 39, 58, 59),
            (58, 40, 48, 58, 59),
            (59, 20, 49, 59, 59),
        ];
        for (level, turn, after, slept, ready) in rows {
            let found = (quantum(level), expired(level), returned(level), waited(level));
            assert_eq!(found, (Nanos::from_millis(turn), after, slept, ready), "level {level}");
        }
    }
}
