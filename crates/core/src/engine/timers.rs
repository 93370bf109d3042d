//! The wake-ups and measurements that a policy has requested.

use crate::id::ProgramId;
use crate::plan::{AtExpiry, Observe, Plan, Wake};
use crate::sample::Measure;
use crate::time::Nanos;

/// Wake-ups by token, measurements by program and kind.
#[derive(Debug, Default)]
pub(super) struct Timers {
    wakes: Vec<Wake>,
    observed: Vec<(Observe, Nanos)>,
}

impl Timers {
    pub(super) fn adopt(&mut self, plan: &Plan, now: Nanos) {
        for wake in &plan.wake {
            self.wakes.retain(|w| w.token != wake.token);
            if wake.at != Nanos::NEVER {
                self.wakes.push(*wake);
            }
        }
        for observe in &plan.observe {
            let same = |o: &Observe| o.program == observe.program && o.measure == observe.measure;
            self.observed.retain(|(o, _)| !same(o));
            if observe.period != Nanos::ZERO {
                self.observed.push((*observe, now + observe.period));
            }
        }
    }

    /// When the next wake-up or periodic measurement is due.
    pub(super) fn next(&self) -> Nanos {
        let wakes = self.wakes.iter().map(|w| w.at);
        let reads = self.observed.iter().map(|(_, due)| *due);
        wakes.chain(reads).min().unwrap_or(Nanos::NEVER)
    }

    /// Removes and returns the wake-ups that are due, earliest first.
    pub(super) fn due(&mut self, now: Nanos) -> Vec<Wake> {
        let (mut due, later): (Vec<Wake>, Vec<Wake>) =
            self.wakes.drain(..).partition(|wake| wake.at <= now);
        self.wakes = later;
        due.sort_by_key(|w| (w.at, w.token));
        due
    }

    /// The measurements to make now: those with a period that is over, with everything else that is
    /// observed of the same program; or all of them at a wake-up that reads.
    pub(super) fn take_reads(&mut self, now: Nanos, all: bool) -> Vec<Observe> {
        let due_now = self.observed.iter().filter(|(_, due)| all || *due <= now);
        let of: Vec<Option<ProgramId>> = due_now.map(|(observe, _)| observe.program).collect();
        let mut reads = Vec::new();
        for (observe, due) in &mut self.observed {
            if of.contains(&observe.program) {
                reads.push(*observe);
                *due = now + observe.period;
            }
        }
        reads
    }

    /// Makes the list of a program's threads due, if it is observed.
    pub(super) fn hurry(&mut self, program: ProgramId, now: Nanos) {
        for (observe, due) in &mut self.observed {
            if observe.program == Some(program) && observe.measure == Measure::Threads {
                *due = now;
            }
        }
    }

    /// Forgets the measurements of programs that are no longer there.
    pub(super) fn forget(&mut self, gone: impl Fn(&Observe) -> bool) {
        self.observed.retain(|(o, _)| !gone(o));
    }
}

/// Whether a due wake-up reads measurements first.
pub(super) fn reads(wakes: &[Wake]) -> bool {
    wakes.iter().any(|w| w.first != AtExpiry::Nothing)
}

/// Whether a due wake-up freezes everything first.
pub(super) fn freezes(wakes: &[Wake]) -> bool {
    wakes.iter().any(|w| w.first == AtExpiry::FreezeAndRead)
}
