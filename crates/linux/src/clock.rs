//! The run's clock: CLOCK_MONOTONIC, counted from the start of the run.

use cosched_core::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Counts from its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock that stands at zero now.
    pub fn start() -> Clock {
        Clock { origin: monotonic() }
    }

    /// The present.
    pub fn now(&self) -> Nanos {
        Nanos(monotonic() - self.origin)
    }

    /// One of our instants on the kernel's own monotonic clock.
    pub fn monotonic(&self, at: Nanos) -> Nanos {
        Nanos(self.origin.saturating_add(at.0))
    }

    /// An instant of the kernel's monotonic clock on ours; what was before the start is then.
    pub fn of_monotonic(&self, at: Nanos) -> Nanos {
        Nanos(at.0.saturating_sub(self.origin))
    }

    /// The kernel's name for one of our instants.
    pub fn absolute(&self, at: Nanos) -> Timespec {
        let nanos = self.origin.saturating_add(at.0).min(i64::MAX as u64);
        Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
    }
}

/// Nanoseconds of the kernel's monotonic clock.
pub(crate) fn monotonic() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}
