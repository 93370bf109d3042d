//! When the threads of a package come to locks.
//!
//! The slides on thread shuffling draw, for each socket, in which part of 100 ms its threads arrive
//! at a lock. Here it is counted as `cosched stat` counts it on a real machine: of each thread the
//! first arrival in a window at a lock that has to be waited for. The *range* of a package is the
//! time from the first of its threads' arrivals to the last. A window counts once it is over.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::Nanos;

use crate::tid::Tid;

/// The length of a window, as on a real machine.
const WINDOW: Nanos = Nanos::from_millis(100);

/// The arrivals of a program's threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockArrivals {
    /// The number of the present window.
    window: u64,
    /// The threads that have arrived in it.
    seen: BTreeSet<Tid>,
    /// For each package the first and the last arrival, and how many threads arrived.
    spans: BTreeMap<usize, (u64, u64, u32)>,
    /// The sum of the ranges of earlier windows, and how many these are.
    ranges: (u64, u64),
}

impl LockArrivals {
    /// A thread on this package comes to a lock, and has to wait.
    pub(crate) fn arrive(&mut self, tid: Tid, package: usize, now: u64) {
        self.close(now);
        if self.seen.insert(tid) {
            let span = self.spans.entry(package).or_insert((now, now, 0));
            *span = (span.0, now, span.2 + 1);
        }
    }

    /// Adds the ranges of the present window if it is over.
    fn close(&mut self, now: u64) {
        let window = now / WINDOW.0;
        if window == self.window {
            return;
        }
        self.window = window;
        self.seen.clear();
        // One thread alone has no range.
        for (first, last, _) in std::mem::take(&mut self.spans).into_values().filter(|s| s.2 > 1) {
            self.ranges = (self.ranges.0 + last - first, self.ranges.1 + 1);
        }
    }

    /// The mean range since the last call; `None`: there was no window with two arrivals in a
    /// package.
    pub(crate) fn mean_range(&mut self, now: u64) -> Option<Nanos> {
        self.close(now);
        let (sum, count) = std::mem::take(&mut self.ranges);
        (count > 0).then(|| Nanos(sum / count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> u64 {
        milliseconds * 1_000_000
    }

    /// The threads of package 0 come after 10 and 40 ms of a window, and after 5 and 15 ms of the
    /// next one: 30 and 10 ms.
    #[test]
    fn a_packages_range_is_the_mean_over_windows() {
        let mut arrivals = LockArrivals::default();
        for (tid, package, at) in [(0, 0, 10), (2, 1, 20), (1, 0, 40), (0, 0, 90)] {
            arrivals.arrive(tid, package, ms(700 + at));
        }
        arrivals.arrive(0, 0, ms(805));
        arrivals.arrive(1, 0, ms(815));
        assert_eq!(arrivals.mean_range(ms(899)), Some(Nanos::from_millis(30)));
        assert_eq!(arrivals.mean_range(ms(900)), Some(Nanos::from_millis(10)));
        assert_eq!(arrivals.mean_range(ms(1000)), None);
    }

    /// Package 1 has one arrival only.
    #[test]
    fn a_thread_alone_has_no_range() {
        let mut arrivals = LockArrivals::default();
        arrivals.arrive(2, 1, ms(20));
        arrivals.arrive(2, 1, ms(70));
        assert_eq!(arrivals.mean_range(ms(100)), None);
    }
}
