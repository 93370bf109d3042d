//! When it is seen whether threads wait in their runtimes.
//!
//! To see it takes samples of where in their code programs are, which cost some per cent of their time. So it is done in the
//! intervals from which something follows soon, and in no others.

use std::collections::BTreeSet;

use cosched_core::{Measure, Nanos, Observe, Plan, ProgramId};

/// How soon it is seen again after it was found that threads hardly wait; twice as late each time,
const SOONEST: Nanos = Nanos::from_millis(500);
/// but no later than this.
const LATEST: Nanos = Nanos::from_secs(2);

/// Of whom it is seen.
#[derive(Debug)]
pub(super) struct Watch {
    is_wanted: bool,
    seen: BTreeSet<ProgramId>,
    was_on: bool,
    next_pause: Nanos,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { is_wanted: false, seen: BTreeSet::new(), was_on: false, next_pause: SOONEST }
    }

    /// It was seen that threads hardly wait: for how long it need not be seen again.
    pub(super) fn pause(&mut self) -> Nanos {
        let pause = self.next_pause;
        self.next_pause = (pause * 2).min(LATEST);
        pause
    }

    /// What was seen before need not be so any more.
    pub(super) fn renew(&mut self) {
        self.next_pause = SOONEST;
    }

    /// It is to be seen until the interval ends that is going on, or begins now.
    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// The same of something new, as if it had not been seen before.
    pub(super) fn want_anew(&mut self) {
        self.seen.clear();
        self.is_wanted = true;
    }

    /// Whether it is seen in the interval that is going on.
    pub(super) fn is_on(&self) -> bool {
        self.is_wanted
    }

    /// Whether it was seen in the interval that ended last.
    pub(super) fn was_on(&self) -> bool {
        self.was_on
    }

    /// An interval ends, and nothing more is wanted so far.
    pub(super) fn end(&mut self) {
        (self.was_on, self.is_wanted) = (!self.seen.is_empty(), false);
    }

    /// Nothing is to follow from it any more.
    pub(super) fn stop(&mut self) {
        self.is_wanted = false;
    }

    /// Has all that are `inside` seen from now on, or nobody any more.
    pub(super) fn switch(&mut self, inside: &[ProgramId], plan: &mut Plan) {
        self.seen.retain(|id| inside.contains(id));
        let is_seen = |id: &&ProgramId| self.seen.contains(id);
        let changes = inside.iter().filter(|id| is_seen(id) != self.is_wanted);
        let period = if self.is_wanted { Nanos::NEVER } else { Nanos::ZERO };
        let measure = Measure::RuntimeTime;
        plan.observe.extend(changes.map(|id| Observe { program: Some(*id), measure, period }));
        self.seen = inside.iter().copied().filter(|_| self.is_wanted).collect();
    }
}
