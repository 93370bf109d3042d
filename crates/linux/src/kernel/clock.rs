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

    /// An instant of this clock on the kernel's own monotonic clock.
    pub fn monotonic(&self, at: Nanos) -> Nanos {
        Nanos(self.origin.saturating_add(at.0))
    }

    /// An instant of the kernel's monotonic clock on this one; earlier than the start counts as the
    /// start.
    pub(crate) fn of_monotonic(&self, at: Nanos) -> Nanos {
        Nanos(at.0.saturating_sub(self.origin))
    }

    /// The kernel's form of an instant of this clock.
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

/// Clock ticks since boot, as start times of processes are counted (1/100 s on every usual kernel).
pub(crate) fn ticks_since_boot() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    tv_sec as u64 * 100 + tv_nsec as u64 / 10_000_000
}

/// CPU time of this process so far.
pub fn own_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
