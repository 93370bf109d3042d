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
//! A thread that wakes up goes back to its CPU while its cache is warm, else to the CPU with
//! the threads of lowest priority; idle CPUs take from any queue. A thread that loses its CPU to
//! a higher priority searches for a lower one elsewhere. A thread that has used up a turn goes to
//! the next CPU's queue if that is shorter.
//!
//! *Source.* `ts.c`, `fx.c`, `disp.c` and the manual page `ts_dptbl(4)` (names in brackets); the
//! book "Solaris Internals". Left out: the interactive class, kernel priorities, the swapper,
//! processor sets, and how lgroups are chosen.

use cosched_core::{Level, Nanos};

use crate::fair::EnqueueReason;
use crate::queue::mix;
use crate::thread::ThreadState;
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// The highest level of time sharing, where programs begin that an interactive shell starts; no
/// thread is raised from it.
const TOP: u8 = 59;
/// The first level of a thread that joins time sharing from another class (`tsmedumdpri`).
const MIDDLE: u8 = 29;
/// The time between raises of priorities (`ts_update`).
const RAISE: u64 = 1_000_000_000;
/// This many ticks after it was put on a CPU, a thread's cache there no longer counts
/// (`rechoose_interval`).
const WARM: u64 = 3;
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
    /// When it was last put on a CPU.
    pub(crate) came: u64,
}

impl Default for Dispatch {
    fn default() -> Dispatch {
        let left = quantum(TOP).0;
        Dispatch { level: TOP, fixed: false, due: false, left, displaced: false, came: 0 }
    }
}

impl Dispatch {
    /// Whether it comes before others of its priority (`setfrontdq`): displaced, or asleep for less
    /// than a tick.
    pub(crate) fn returns_first(&self, how: EnqueueReason, now: u64, tick: u64) -> bool {
        match how {
            EnqueueReason::Fresh => false,
            EnqueueReason::Woken => self.came / tick == now / tick,
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

    /// The CPU for a thread that becomes runnable (`setbackdq`).
    pub(crate) fn dispatch_to(&self, tid: Tid, own: usize, how: EnqueueReason) -> usize {
        if how == EnqueueReason::Fresh || !self.may_use(tid, own) {
            return self.least_ranked(tid, own);
        }
        if self.cpus[own].load == 0 {
            return own;
        }
        let cold = self.now > self.threads[tid as usize].dispatch.came + WARM * self.kernel.tick.0;
        match self.idle_for(tid, own) {
            Some(idle) => idle,
            None if cold => self.least_ranked(tid, own),
            None => self.or_next(tid, own),
        }
    }

    /// An idle CPU, near ones first; it would take the thread from any queue.
    fn idle_for(&self, tid: Tid, own: usize) -> Option<usize> {
        let idle = |level| {
            let around = self.shape.around(own, level).iter().map(|cpu| usize::from(*cpu));
            let idle = around.filter(|cpu| self.cpus[*cpu].load == 0 && self.may_use(tid, *cpu));
            idle.min_by_key(|cpu| self.chance(tid, *cpu))
        };
        idle(Some(Level::Llc)).or_else(|| idle(None))
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

    /// A thread has lost its CPU, and waits in its queue: it may run earlier elsewhere.
    pub(crate) fn makes_room(&mut self, tid: Tid, cpu: usize) {
        if !self.kernel.is_solaris() {
            return;
        }
        let displaced = !std::mem::replace(&mut self.threads[tid as usize].expired, false);
        self.threads[tid as usize].dispatch.displaced = displaced;
        let to = self.idle_for(tid, cpu).unwrap_or_else(|| match displaced {
            true => self.least_ranked(tid, cpu),
            false => self.or_next(tid, cpu),
        });
        if to != cpu {
            self.move_queued(tid, cpu, to);
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
