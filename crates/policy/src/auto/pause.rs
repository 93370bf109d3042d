//! The time without solo probes after taking turns was given up.

use cosched_core::Nanos;

use super::params::Params;

/// A pause. Each is twice as long as the one before.
#[derive(Debug)]
pub(super) struct Pause {
    ends: Nanos,
    /// The length of the next one.
    next: Nanos,
}

impl Pause {
    pub(super) fn new(params: Params) -> Pause {
        Pause { ends: Nanos::ZERO, next: params.first_pause }
    }

    /// The end of the pause, if there is one now.
    pub(super) fn end(&self, now: Nanos) -> Option<Nanos> {
        Some(self.ends).filter(|ends| now < *ends)
    }

    /// Turns were given up.
    pub(super) fn begin(&mut self, now: Nanos, params: Params) {
        self.ends = now + self.next;
        self.next = (self.next * 2).min(params.longest_pause);
    }

    /// What is known does not count any more: the pause ends, and the next one is a first one.
    pub(super) fn forget(&mut self, now: Nanos, params: Params) {
        (self.next, self.ends) = (params.first_pause, self.ends.min(now));
    }
}
