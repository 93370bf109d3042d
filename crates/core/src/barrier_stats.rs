//! Barrier statistics, as the threads of a program have counted them.
//!
//! [`waits`](crate::waits) has what only a simulator can know. This module has what a real
//! program's threads know of their own waits at cosched's barriers: how many there were, how many
//! lasted longer than the first checks, and what the threads did then.

use serde::{Deserialize, Serialize};

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
    fn shares_of_no_waits_do_not_divide_by_zero() {
        let stats = BarrierStats { spun_briefly: 6, spun: 1, slept: 3, ..BarrierStats::default() };
        assert_eq!((stats.waits(), stats.long_waits(), stats.share(stats.slept)), (10, 4, 0.3));
        assert_eq!(BarrierStats::default().share(0), 0.0);
        let lie =
            BarrierStats { spun_briefly: u64::MAX, slept: u64::MAX, ..BarrierStats::default() };
        assert_eq!(lie.waits(), u64::MAX);
    }
}
