//! How the time of a program alone depends on its thread count.
//!
//! *Problem.* The best thread count of a program with co-runners depends on what each further
//! thread adds. This is known only for the counts with which it was run alone.
//!
//! *Idea.* A few counts are measured. Between two of them the speed is assumed to be on the line
//! through both. Below the lowest it is proportional to the threads, and above the highest it does
//! not grow.

use crate::time::Nanos;

/// The largest number of counts that are kept. Doubling from 1, they reach 128 threads.
const MOST: usize = 8;

/// The time of one run alone, for some thread counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speedup {
    /// Ascending by threads; entries from `count` on have no meaning.
    points: [(u16, Nanos); MOST],
    count: usize,
}

impl Speedup {
    /// The speed-up of these thread counts with their times, at most eight. The lowest and the
    /// highest count are always kept. `None` if there is none, or one makes no sense.
    pub fn new(times: &[(u16, Nanos)]) -> Option<Speedup> {
        let mut times = times.to_vec();
        times.sort_unstable();
        times.dedup_by_key(|(threads, _)| *threads);
        if times.is_empty() || times.iter().any(|(n, time)| *n == 0 || *time == Nanos::ZERO) {
            return None;
        }
        while times.len() > MOST {
            times.remove(times.len() - 2);
        }
        let mut points = [(0, Nanos::ZERO); MOST];
        points[..times.len()].copy_from_slice(&times);
        Some(Speedup { points, count: times.len() })
    }

    /// The thread counts with their times, ascending.
    pub fn times(&self) -> &[(u16, Nanos)] {
        &self.points[..self.count]
    }

    /// Runs per second with this many threads.
    pub fn speed(&self, threads: u16) -> f64 {
        let speed = |(_, time): (u16, Nanos)| 1.0 / time.as_secs_f64();
        let times = self.times();
        let above = times.partition_point(|(known, _)| *known < threads);
        match (above.checked_sub(1).map(|below| times[below]), times.get(above)) {
            (_, Some(exact)) if exact.0 == threads => speed(*exact),
            (Some(below), Some(above)) => {
                let part = f64::from(threads - below.0) / f64::from(above.0 - below.0);
                speed(below) + part * (speed(*above) - speed(below))
            }
            (None, Some(fewest)) => speed(*fewest) * f64::from(threads) / f64::from(fewest.0),
            (Some(most), None) => speed(most),
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speedup(times: &[(u16, u64)]) -> Option<Speedup> {
        let times: Vec<_> = times.iter().map(|(n, ms)| (*n, Nanos::from_millis(*ms))).collect();
        Speedup::new(&times)
    }

    #[test]
    fn speeds_are_interpolated_between_measurements() {
        let known = speedup(&[(4, 250), (2, 500), (8, 200)]).unwrap();
        assert_eq!(
            [1, 2, 3, 4, 6, 8, 16].map(|n| known.speed(n)),
            [1.0, 2.0, 3.0, 4.0, 4.5, 5.0, 5.0]
        );
    }

    /// A curve of more points than needed keeps its first and last.
    #[test]
    fn impossible_speedups_are_refused() {
        assert_eq!(speedup(&[]), None);
        assert_eq!(speedup(&[(0, 5)]), None);
        assert_eq!(speedup(&[(1, 5), (2, 0)]), None);
        let many: Vec<_> = (1..20).map(|n| (n, 100)).collect();
        let kept = speedup(&many).unwrap();
        assert_eq!((kept.times().len(), kept.times()[0].0, kept.times()[7].0), (8, 1, 19));
    }
}
