//! The constants of `faithful`.

use cosched_core::Nanos;

use crate::constant::{ms, params, secs};

params! {
    /// The constants of `faithful`.
    pub(crate) struct Params of "faithful" {
        /// How far the scaling factor may move before a new slice is chosen.
        range: f64 = 0.10, [0.0, 1.0], "scaling factor",
            "the paper, table I: the width of a row";
        /// Above this scaling factor a program hardly waits for locks or memory: nothing can be
        /// gained.
        nothing_to_win: f64 = 0.90, [0.0, 1.0], "scaling factor",
            "the paper, table I: its last row";
        /// The time at the beginning of a trial's moment without measurement.
        settle: Nanos = ms(15), [ms(1), secs(10)], "time",
            "threads keep their earlier deadlines for some milliseconds";
        /// The measured time of a trial's moment.
        moment: Nanos = ms(60), [ms(1), secs(10)], "time", "assumed";
        /// The interval between two measurements.
        usual: Nanos = secs(1), [ms(10), secs(100)], "time", "the paper, section III-D";
        /// The shortest time between two counts of a program's threads until it has several.
        look: Nanos = ms(10), [ms(1), secs(10)], "time",
            "assumed: a look takes some 50 us of live time";
        /// How late its first threads may be noticed, as a part of its age.
        late: f64 = 0.02, [0.0, 1.0], "part of its age", "assumed";
        /// How late they may be noticed at most, however old it is.
        latest: Nanos = ms(100), [ms(1), secs(10)], "time", "assumed";
        /// The interval until the first decision, with the guard. With a longer one, a short live
        /// program ends before it gains anything.
        first: Nanos = ms(100), [ms(10), secs(100)], "time", "assumed";
    }
}
