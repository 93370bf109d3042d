//! Locks and groups of CPUs: when the threads of a group come to locks.
//!
//! The slides on thread shuffling draw, for each socket, in which part of 100 ms its threads arrive
//! at a lock. The kernel's part keeps of each thread the first arrival in a window at a lock that
//! had to be waited for. So each window is read once it is over; the *range* of a group is the time
//! from the first of its threads' arrivals to the last.

use std::collections::BTreeMap;

use cosched_core::{CpuSet, Nanos};
use cosched_linux::observe::monitor::{ThreadUse, WINDOW};

/// The windows of an interval.
#[derive(Debug, Default)]
pub struct Arrivals {
    groups: Vec<CpuSet>,
    /// The window that is read next.
    next: u64,
    /// For each program and group: the sum of its ranges, and of how many windows.
    ranges: BTreeMap<(u32, usize), (Nanos, u32)>,
    /// Threads with an end that was seen when a window was read.
    ended: Vec<ThreadUse>,
}

impl Arrivals {
    /// Of the threads on each of these groups of CPUs, from a time on the kernel's clock on.
    pub fn new(groups: Vec<CpuSet>, now: Nanos) -> Arrivals {
        Arrivals { groups, next: now.0 / WINDOW.0, ..Arrivals::default() }
    }

    /// The groups of CPUs; none: nothing is counted.
    pub fn groups(&self) -> &[CpuSet] {
        &self.groups
    }

    /// When the next window is over; `None`: no groups were asked for.
    pub fn due(&self) -> Option<Nanos> {
        (!self.groups.is_empty()).then(|| Nanos((self.next + 1) * WINDOW.0))
    }

    /// Takes in a window that is over.
    pub fn hear(&mut self, reading: &[ThreadUse], now: Nanos) {
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        // If this comes late, what is left of it is the latest one that is over.
        let window = now.0 / WINDOW.0 - 1;
        self.next = window + 1;
        let mut spans: BTreeMap<(u32, usize), (Nanos, Nanos, u32)> = BTreeMap::new();
        for thread in reading {
            let arrival = thread.arrivals.iter().find(|arrival| arrival.window == window);
            let (Some(arrival), Some(group)) = (arrival, group_of(thread, &self.groups)) else {
                continue;
            };
            let span = (arrival.at, arrival.at, 0);
            let span = spans.entry((thread.program, group)).or_insert(span);
            *span = (span.0.min(arrival.at), span.1.max(arrival.at), span.2 + 1);
        }
        // One thread alone has no range.
        for (key, (first, last, _)) in spans.into_iter().filter(|(_, span)| span.2 > 1) {
            let (sum, windows) = self.ranges.entry(key).or_default();
            *sum += last - first;
            *windows += 1;
        }
    }

    /// Keeps the threads that have ended for the interval's end.
    pub fn keep_ended(&mut self, reading: &[ThreadUse]) {
        self.ended.extend(reading.iter().filter(|thread| thread.now.is_none()));
    }

    /// The threads that have ended since the last call.
    pub fn ended(&mut self) -> Vec<ThreadUse> {
        std::mem::take(&mut self.ended)
    }

    /// The mean range of each program and group since the last call.
    pub fn ranges(&mut self) -> BTreeMap<(u32, usize), Nanos> {
        let ranges = std::mem::take(&mut self.ranges).into_iter();
        ranges.map(|(key, (sum, windows))| (key, Nanos(sum.0 / u64::from(windows)))).collect()
    }
}

/// The group with the CPU on which a thread ran last.
pub(super) fn group_of(thread: &ThreadUse, groups: &[CpuSet]) -> Option<usize> {
    let cpu = usize::from(thread.cpu?);
    groups.iter().position(|group| group.contains(cpu))
}

#[cfg(test)]
mod tests {
    use cosched_linux::observe::monitor::{LockArrival, ThreadActivity};

    use super::*;

    fn thread(cpu: u16, window: u64, after: u64) -> ThreadUse {
        let at = Nanos(window * WINDOW.0 + after * 1_000_000);
        let mut thread = ThreadUse::of_nothing(0, i32::from(cpu));
        (thread.cpu, thread.now) = (Some(cpu), Some(ThreadActivity::Running));
        thread.arrivals[(window & 1) as usize] = LockArrival { window, at };
        thread
    }

    fn groups() -> Vec<CpuSet> {
        ["0-1", "2-3"].map(|cpus| cpus.parse().unwrap()).to_vec()
    }

    #[test]
    fn a_groups_range_is_the_mean_over_windows() {
        let mut arrivals = Arrivals::new(groups(), Nanos(7 * WINDOW.0));
        let first = [thread(0, 7, 10), thread(1, 7, 40), thread(2, 7, 0), thread(3, 6, 90)];
        arrivals.hear(&first, Nanos(8 * WINDOW.0));
        arrivals.hear(&[thread(0, 8, 5), thread(1, 8, 15)], Nanos(9 * WINDOW.0 + 3));
        arrivals.hear(&[thread(0, 8, 5), thread(1, 8, 15)], Nanos(9 * WINDOW.0 + 4));
        // Of the second group only one thread came in each window.
        assert_eq!(arrivals.ranges(), BTreeMap::from([((0, 0), Nanos::from_millis(20))]));
        assert!(arrivals.ranges().is_empty());
        assert_eq!(arrivals.due(), Some(Nanos(10 * WINDOW.0)));
    }

    #[test]
    fn without_groups_no_window_is_read() {
        let mut arrivals = Arrivals::new(Vec::new(), Nanos::ZERO);
        assert_eq!(arrivals.due(), None);
        arrivals.hear(&[thread(0, 0, 1), thread(1, 0, 9)], Nanos(3 * WINDOW.0));
        assert!(arrivals.ranges().is_empty());
    }
}
