//! When everything is read, and what has come since the last time.

use cosched_core::{AtExpiry, Cause, Nanos, Plan, Sample, Token, Wake};

use super::interval::{Going, SampledInterval};

/// The wake-up at which everything is read. Tokens of the policies in force have small numbers.
pub(super) const SAMPLES: Token = Token(100);

/// The interval under way, and when it ends.
#[derive(Debug)]
pub(super) struct IntervalSampling {
    interval: Going,
    /// A program arrived or ended since the last sample.
    disturbed: bool,
    /// How many intervals in a row were given up for arrivals and ends.
    spoilt: u32,
    /// The end of the interval.
    at: Nanos,
    /// The wake-up that was requested last.
    asked_for: Nanos,
}

impl IntervalSampling {
    pub(super) fn new() -> IntervalSampling {
        let (at, asked_for) = (Nanos::NEVER, Nanos::NEVER);
        IntervalSampling { interval: Going::default(), disturbed: false, spoilt: 0, at, asked_for }
    }

    pub(super) fn add(&mut self, causes: &[Cause], samples: &[Sample]) {
        self.interval.add(causes, samples);
    }

    /// What was done in the interval, if it is over now.
    pub(super) fn ended(&mut self, causes: &[Cause]) -> Option<SampledInterval> {
        causes.contains(&Cause::Woke(SAMPLES)).then(|| {
            self.asked_for = Nanos::NEVER;
            self.interval.end()
        })
    }

    /// Whether a program arrived or ended in the interval that is over. Another one begins.
    pub(super) fn take_disturbed(&mut self) -> bool {
        std::mem::take(&mut self.disturbed)
    }

    /// The interval was given up, or counts.
    pub(super) fn judged(&mut self, counts: bool) {
        self.spoilt = if counts { 0 } else { self.spoilt + 1 };
    }

    /// A program arrived or ended. Returns whether the interval is to be given up for it: not if
    /// `most` in a row were.
    pub(super) fn disturb(&mut self, most: u32) -> bool {
        self.disturbed |= self.spoilt < most;
        self.disturbed
    }

    pub(super) fn end_at(&mut self, at: Nanos) {
        self.at = at;
    }

    /// The interval ends at this time, unless it ends earlier.
    pub(super) fn end_by(&mut self, at: Nanos) {
        self.at = self.at.min(at);
    }

    /// There is nothing to find out.
    pub(super) fn stop(&mut self) {
        self.spoilt = 0;
        self.interval.end();
        self.at = Nanos::NEVER;
    }

    /// Requests a wake-up at the end of the interval, if that has changed.
    pub(super) fn wake(&mut self, plan: &mut Plan) {
        if self.at != self.asked_for {
            self.asked_for = self.at;
            plan.wake.push(Wake { token: SAMPLES, at: self.at, first: AtExpiry::Read });
        }
    }
}
