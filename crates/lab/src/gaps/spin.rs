//! A program to be frozen: its threads spin, and it notes when it was stopped.
//!
//! Only the stopped program itself can tell when it ran again. An observer outside it needs a CPU,
//! and so changes what it measures. The threads read the clock in every turn. A thread that finds
//! that *no* thread has read it for a while prints the gap: the last reading before, and the first
//! one after.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cosched_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Threads of a running program leave no gap as long as this between them.
pub(super) const GAP: Nanos = Nanos::from_millis(1);
/// After this it ends by itself, whatever becomes of the process that started it.
const LIFE: Duration = Duration::from_secs(60);

/// How often it looks whether the process that reads the gaps still lives.
const LOOK: Duration = Duration::from_secs(1);

/// CLOCK_MONOTONIC.
pub(super) fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// A time in which no thread ran: from the last reading of the clock before it to the first one
/// after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
}

impl Gap {
    /// Reads a line that [`spin`] has printed; one that was cut short when the program was ended is
    /// none.
    pub(super) fn parse(line: &str) -> Option<Gap> {
        let (from, to) = line.strip_suffix(';')?.split_once(' ')?;
        Some(Gap { from: Nanos(from.parse().ok()?), to: Nanos(to.parse().ok()?) })
    }

    fn line(self) -> String {
        format!("{} {};", self.from.0, self.to.0)
    }
}

/// Spins with so many threads, and prints the gaps, as long as the process lives that reads
/// them. With no threads it ends at once.
pub fn spin(threads: u16, reader: u32) -> ExitCode {
    let (reader, end) = (PathBuf::from(format!("/proc/{reader}")), now() + LIFE.into());
    let latest = Arc::new(AtomicU64::new(now().0));
    for _ in 0..threads {
        let latest = latest.clone();
        std::thread::spawn(move || turn(&latest));
    }
    while threads > 0 && reader.exists() && now() < end {
        std::thread::sleep(LOOK);
    }
    ExitCode::SUCCESS
}

fn turn(latest: &AtomicU64) {
    loop {
        let to = now();
        // A thread that was stopped between the two lines comes with an old reading; it must not
        // set the others back. Only this one value is shared, so no order between values is needed.
        let from = Nanos(latest.fetch_max(to.0, Ordering::Relaxed));
        if to.since(from) > GAP {
            println!("{}", Gap { from, to }.line());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back_and_a_cut_line_is_not() {
        let gap = Gap { from: Nanos(12), to: Nanos(3_456_789) };
        assert_eq!(Gap::parse(&gap.line()), Some(gap));
        for cut in 0..gap.line().len() {
            assert_eq!(Gap::parse(&gap.line()[..cut]), None);
        }
    }
}
