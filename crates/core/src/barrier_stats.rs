//! Barrier statistics, as the threads of a program have counted them.
//!
//! [`waits`](crate::waits) has what only a simulator can know. This module has what a real
//! program's threads know of their own waits at cosched's barriers: how many there were, how many
//! lasted longer than the first checks, and what the threads did then.

use serde::{Deserialize, Serialize};

use crate::waits::mean;

/// Sums over all threads of a program, and over all of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BarrierStats {
    /// Barriers that all threads have passed.
    pub barriers: u64,
    /// Waits that ended within the first checks, which take some microseconds.
    #[serde(alias = "glanced")]
    pub spun_briefly: u64,
    /// Longer waits in which the thread spun to the end.
    #[serde(alias = "looked_on")]
    pub spun: u64,
    /// Longer waits in which the thread let others run between checks.
    #[serde(alias = "gave_way")]
    pub yielded: u64,
    /// Longer waits in which the thread slept.
    pub slept: u64,
    /// Longer waits in which the thread knew what the threads did that it waited for.
    pub knew: u64,
    /// Total length of the longer waits, after the first checks, seconds.
    pub waited_seconds: f64,
    /// The times of the paper; `None`: in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<BarrierTimes>,
}

/// The times of section 2.3 of the paper on the time donating barrier, as far as a real program's
/// threads know them of themselves. [`Waits`](crate::Waits) has them of simulated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BarrierTimes {
    /// CPU time in which threads spun, in waits of any length, T_WS (eq. 2), seconds.
    pub spun_seconds: f64,
    /// From the first thread's arrival to the round's completion as this thread saw it, T'_BL
    /// (eq. 5), summed over the rounds, seconds.
    pub latency_seconds: f64,
    /// The longest latency of a round.
    pub longest_latency_seconds: f64,
    /// From a round's first arrival to each thread's own, T_cpt (eq. 4; eq. 6 where threads
    /// donate), summed over threads and rounds, seconds; by the timed rounds. `None`: none was, or
    /// it is an older file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_seconds: Option<f64>,
}

impl BarrierStats {
    /// How often a thread arrived before the last one.
    pub fn waits(&self) -> u64 {
        self.spun_briefly.saturating_add(self.long_waits())
    }

    /// How often such a thread waited longer than the first checks.
    pub fn long_waits(&self) -> u64 {
        self.spun.saturating_add(self.yielded).saturating_add(self.slept)
    }

    /// The mean latency of a barrier, seconds; `None`: there was none, or it was not timed.
    pub fn mean_latency_seconds(&self) -> Option<f64> {
        mean(self.barriers, self.times?.latency_seconds)
    }

    /// How long after the first thread of a round a thread arrived, on average, seconds; `None`:
    /// there was no barrier, or that was not counted.
    pub fn mean_completion_seconds(&self) -> Option<f64> {
        mean(self.barriers.saturating_add(self.waits()), self.times?.completion_seconds?)
    }

    /// The share of `some` in all waits; 0 without waits.
    pub fn share(&self, some: u64) -> f64 {
        match self.waits() {
            0 => 0.0,
            all => some as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_latency_is_that_of_timed_barriers() {
        let times = BarrierTimes { latency_seconds: 0.5, ..BarrierTimes::default() };
        let stats = BarrierStats { barriers: 4, times: Some(times), ..BarrierStats::default() };
        assert_eq!(stats.mean_latency_seconds(), Some(0.125));
        let [earlier, none] =
            [BarrierStats { times: None, ..stats }, BarrierStats { barriers: 0, ..stats }];
        assert_eq!((earlier.mean_latency_seconds(), none.mean_latency_seconds()), (None, None));
    }

    #[test]
    fn the_mean_completion_is_that_of_all_arrivals() {
        let times = BarrierTimes { completion_seconds: Some(0.5), ..BarrierTimes::default() };
        let stats =
            BarrierStats { barriers: 4, slept: 6, times: Some(times), ..BarrierStats::default() };
        assert_eq!(stats.mean_completion_seconds(), Some(0.05));
        let earlier = BarrierStats { times: Some(BarrierTimes::default()), ..stats };
        assert_eq!(earlier.mean_completion_seconds(), None);
    }

    #[test]
    fn shares_of_no_waits_do_not_divide_by_zero() {
        let stats = BarrierStats { spun_briefly: 6, spun: 1, slept: 3, ..BarrierStats::default() };
        assert_eq!((stats.waits(), stats.long_waits(), stats.share(stats.slept)), (10, 4, 0.3));
        assert_eq!(BarrierStats::default().share(0), 0.0);
        let lie =
            BarrierStats { spun_briefly: u64::MAX, slept: u64::MAX, ..BarrierStats::default() };
        assert_eq!(lie.waits(), u64::MAX);
    }
}
