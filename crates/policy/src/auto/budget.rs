//! What finding out may cost: trials, and ways to run that were none too good.
//!
//! *Problem.* Only trying tells which way is the better one, and while it is tried, the worse one is in force.
//!
//! *Idea.* What a try leaves undone of what is done otherwise is its cost, as time of the whole machine. It is added up. After
//! a try there is no other before all of them together, and another one that costs as much as the last, are a small part of the
//! run, nor before a pause that doubles each time: where nothing changes, the same will be found again. Other programs make the
//! pause short again, and a try that is expected to cost nothing need not wait for its end. Whoever takes turns and looks back
//! pays half as much, since turns may be what is best.

use cosched_core::Nanos;

/// The first pause between trials, and the longest.
const PAUSES: (Nanos, Nanos) = (Nanos::from_secs(2), Nanos::from_secs(64));
/// A run lasts so many times as long as its trials have cost, before there is another one.
pub(super) const BUDGET: u64 = 20;

/// What trials have cost, and when there may be another one.
#[derive(Debug)]
pub(super) struct Budget {
    began: Option<Nanos>,
    explored: Nanos,
    /// What the last one of them has cost.
    last: Nanos,
    pause: Nanos,
    next: Nanos,
}

impl Budget {
    pub(super) fn new() -> Budget {
        Budget {
            began: None,
            explored: Nanos::ZERO,
            last: Nanos::ZERO,
            pause: PAUSES.0,
            next: Nanos::ZERO,
        }
    }

    /// The run goes on, or begins.
    pub(super) fn runs(&mut self, now: Nanos) {
        self.began.get_or_insert(now);
    }

    /// What all of it has cost so far.
    pub(super) fn explored(&self) -> Nanos {
        self.explored
    }

    /// When the next trial may begin.
    pub(super) fn next(&self) -> Nanos {
        self.next
    }

    /// For so long this part of the machine's work, 0 to 1, was not done.
    pub(super) fn pay(&mut self, seconds: f64, lost: f64) {
        self.last = Nanos((seconds * lost.clamp(0.0, 1.0) * 1e9) as u64);
        self.explored += self.last;
    }

    /// From when on trials have cost little enough of the run, with the next one.
    fn affordable(&self) -> Nanos {
        self.began.unwrap_or_default() + (self.explored + self.last) * BUDGET
    }

    /// Whether there may be a trial that is expected to cost nothing, by what those before have cost.
    pub(super) fn is_kept(&self, now: Nanos) -> bool {
        now >= self.began.unwrap_or_default() + self.explored * BUDGET
    }

    /// Whether all may run side by side again for such a moment, even if nothing comes of it.
    pub(super) fn allows_looking_back(&self, now: Nanos, moment: Nanos) -> bool {
        let cost = (self.explored + moment) * (2 * BUDGET);
        now >= self.next.max(self.began.unwrap_or_default() + cost)
    }

    /// Something was tried: there is a pause now.
    pub(super) fn pause(&mut self, now: Nanos) {
        self.next = self.affordable().max(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSES.1);
    }

    /// Other programs are there: what was found may hold no longer.
    pub(super) fn renew(&mut self, now: Nanos) {
        (self.pause, self.next) = (PAUSES.0, self.next.min(self.affordable().max(now)));
    }
}
