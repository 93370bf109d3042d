//! What the threads of a program did with their CPU time, and what waiting for each other cost
//! them.
//!
//! The quantities are those of section 2.3 of the paper on the time donating barrier, with
//! equations 1 to 3 as functions. Only a simulator can distinguish a check of unchanged memory from
//! useful work. Of real programs, [`barrier_stats`](crate::barrier_stats) has what they know.

use std::ops::Add;

use serde::{Deserialize, Serialize};

/// Sums over all threads of a program, and over all of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// CPU time of useful work, T_E, seconds.
    pub useful_seconds: f64,
    /// CPU time in which threads only checked whether they may go on, T_WS, seconds.
    pub spun_seconds: f64,
    /// How much less than their share of the machine they got, [`lag`], seconds; negative where
    /// they got more.
    pub lag_seconds: f64,
    /// How many barriers were opened.
    pub barriers: u64,
    /// From the first thread's arrival at a barrier to the last one's, T'_BL (eq. 5), summed over
    /// the barriers, seconds.
    pub latency_seconds: f64,
    /// The longest latency of a barrier.
    pub longest_latency_seconds: f64,
    /// From a barrier's first arrival to each thread's own, T_cpt (eq. 4; eq. 6 with donation),
    /// summed over threads and barriers, seconds.
    #[serde(default)]
    pub completion_seconds: f64,
    /// How often a waiting thread gave its CPU to a sibling that was late.
    pub donations: u64,
}

impl Waits {
    /// The mean latency of a barrier, seconds; `None` without barriers.
    pub fn mean_latency_seconds(&self) -> Option<f64> {
        mean(self.barriers, self.latency_seconds)
    }
}

/// The mean of so many, in the unit of their sum; `None` without any.
pub(crate) fn mean(count: u64, sum: f64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// The sum of two runs.
impl Add for Waits {
    type Output = Waits;

    fn add(self, other: Waits) -> Waits {
        Waits {
            useful_seconds: self.useful_seconds + other.useful_seconds,
            spun_seconds: self.spun_seconds + other.spun_seconds,
            lag_seconds: self.lag_seconds + other.lag_seconds,
            barriers: self.barriers + other.barriers,
            latency_seconds: self.latency_seconds + other.latency_seconds,
            longest_latency_seconds: self
                .longest_latency_seconds
                .max(other.longest_latency_seconds),
            completion_seconds: self.completion_seconds + other.completion_seconds,
            donations: self.donations + other.donations,
        }
    }
}

/// A thread's share of a machine for a time: t P w, with P CPUs and w the thread's part of all
/// weights. In the paper it can exceed one CPU where there are more CPUs than threads. Here it
/// cannot.
pub fn share(time: f64, cpus: f64, weight: f64) -> f64 {
    time * (cpus * weight).min(1.0)
}

/// How much less than its share a thread received, Lag = t P w - Received. Equation 1.
pub fn lag(share: f64, received: f64) -> f64 {
    share - received
}

/// The useful part of the CPU time that a thread received, T_E = Received - T_WS. Equation 2; with
/// [`lag`], equation 3.
pub fn useful(received: f64, spun: f64) -> f64 {
    received - spun
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_lag_and_useful_time_agree_as_in_equations_1_to_3() {
        // 3 s on two CPUs among four equal threads: 1.5 s each. One received 1 s, and spun for 0.25
        // s of it.
        let share = share(3.0, 2.0, 0.25);
        let (received, spun) = (1.0, 0.25);
        assert_eq!((share, lag(share, received)), (1.5, 0.5));
        assert_eq!(useful(received, spun), share - lag(share, received) - spun);
    }

    #[test]
    fn a_thread_never_has_more_than_one_cpu() {
        assert_eq!(share(3.0, 16.0, 0.25), 3.0);
    }

    #[test]
    fn runs_are_summed_except_the_longest_barrier() {
        let one = Waits {
            barriers: 2,
            latency_seconds: 1.0,
            longest_latency_seconds: 0.75,
            ..Waits::default()
        };
        let both =
            one + Waits { barriers: 6, longest_latency_seconds: 0.5, latency_seconds: 1.0, ..one };
        assert_eq!((both.barriers, both.longest_latency_seconds), (8, 0.75));
        assert_eq!(both.mean_latency_seconds(), Some(0.25));
        assert_eq!(Waits::default().mean_latency_seconds(), None);
    }
}
