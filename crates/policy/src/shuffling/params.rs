//! The constants of `shuffling`.

use cosched_core::Nanos;

use crate::constant::{ms, params, secs};

/// How often threads are sampled, and shuffled if necessary. `--interval` sets it. The slides give
/// it as the shuffling interval.
pub(super) const INTERVAL: Nanos = ms(500);
/// The mean share of their time at locks above which threads are shuffled. `--threshold` sets it.
/// The slides do not give it.
pub(super) const THRESHOLD: f64 = 0.10;
/// By how much of their time threads have to be nearer to each other for new groups. `--hysteresis`
/// sets it. Ours.
pub(super) const HYSTERESIS: f64 = 0.02;

params! {
    /// The constants of `shuffling`.
    pub(crate) struct Params of "shuffling" {
        /// After this many intervals in a row without contention, threads are released.
        patience: u32 = 4, [1, 1000], "intervals", "assumed";
        /// How far the share of their time at locks may move until the guard assumes another phase.
        phase: f64 = 0.10, [0.0, 1.0], "part of the time", "assumed";
        /// The time at the beginning of a trial's moment without measurement.
        settle: Nanos = ms(100), [ms(1), secs(10)], "time",
            "threads move, sleeping ones when they wake up, and caches have to fill again";
        /// The measured time of a trial's moment, where intervals are not shorter.
        moment: Nanos = ms(200), [ms(1), secs(10)], "time", "assumed";
        /// Shares of time that differ by less are equal: the noise of live measurements moves no
        /// thread.
        tie: f64 = 0.01, [0.0001, 1.0], "part of the time", "assumed";
        /// A thread counts like this many that move, if it loses all of its time away from its
        /// pages.
        lost_per_move: f64 = 1000.0, [0.0, 1e6], "moves", "assumed: a move costs one thousandth";
        /// The additional time of a miss that goes to another node. It is not taken from a modelled
        /// machine's `remote_nanos`.
        farther: f64 = 60e-9, [0.0, 1e-6], "seconds",
            "assumed: memory of another socket is some 50 to 100 ns farther";
    }
}
