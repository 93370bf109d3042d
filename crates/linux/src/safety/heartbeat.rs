//! The heartbeat: the time by which cosched will have done something again.
//!
//! *Problem.* A cosched that is stuck (it writes to a pipe that is not read, its cgroup is frozen,
//! it gets no CPU, it waits for a lock of a program without a CPU) thaws no program. From outside
//! it looks like a cosched that waits for the end of a long quantum.
//!
//! *Idea.* Before it waits, cosched writes down until when; while it works, it writes that it works
//! now. The time is in eight bytes of memory that the sentinel has open, too, so that neither waits
//! for the other. A time that is past by more than [`SLACK`] means that cosched is stuck. Eight
//! more bytes are for the other direction: when the sentinel last checked. A sentinel that is
//! stopped, or frozen with its cgroup, guards nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use cosched_core::Nanos;

use crate::kernel::clock::monotonic;

/// How late cosched may be.
const SLACK: u64 = 500_000_000;
/// How long one piece of work takes at most.
const WORK: u64 = 500_000_000;
/// How long a sentinel that checks every half second may be silent.
const SILENCE: u64 = 2_000_000_000;
/// Where the two times are in memory.
const DUE: u64 = 0;
const CHECK: u64 = 8;

/// The time, on the kernel's monotonic clock, and the memory in which it is.
#[derive(Debug)]
pub(crate) struct Heartbeat(pub(super) File);

impl Heartbeat {
    /// The heartbeat of a cosched that has promised nothing yet, at the beginning of this memory.
    pub(crate) fn new(memory: File) -> Heartbeat {
        let heartbeat = Heartbeat(memory);
        heartbeat.waits_until(Nanos::NEVER);
        heartbeat.checks();
        heartbeat
    }

    pub(crate) fn memory(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// cosched waits, until this time on the kernel's monotonic clock at most.
    pub(crate) fn waits_until(&self, at: Nanos) {
        // If memory cannot be written, nothing else works either.
        let _ = self.0.write_all_at(&at.0.to_ne_bytes(), DUE);
    }

    pub(crate) fn works(&self) {
        self.waits_until(Nanos(monotonic() + WORK));
    }

    pub(crate) fn is_missed(&self) -> bool {
        self.is_past(DUE, SLACK)
    }

    pub(crate) fn checks(&self) {
        let _ = self.0.write_all_at(&monotonic().to_ne_bytes(), CHECK);
    }

    /// Whether the sentinel has stopped checking.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.is_past(CHECK, SILENCE)
    }

    fn is_past(&self, place: u64, slack: u64) -> bool {
        let mut time = [0; size_of::<u64>()];
        let read = self.0.read_exact_at(&mut time, place);
        read.is_ok() && monotonic() > u64::from_ne_bytes(time).saturating_add(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_missed_when_it_is_long_overdue() {
        let ours = Heartbeat::new(tempfile::tempfile().unwrap());
        let theirs = Heartbeat(ours.memory().unwrap());
        assert!(!theirs.is_missed(), "nothing was promised");
        ours.works();
        assert!(!theirs.is_missed());
        ours.waits_until(Nanos(monotonic() - SLACK / 2));
        assert!(!theirs.is_missed(), "a little late");
        ours.waits_until(Nanos(monotonic() - SLACK));
        assert!(theirs.is_missed());
    }
}
