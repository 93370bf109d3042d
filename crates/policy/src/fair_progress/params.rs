//! The constants of `fair-progress`.

use crate::constant::params;

params! {
    /// The constants of `fair-progress`.
    pub(crate) struct Params of "fair-progress" {
        /// A training quantum is the whole one divided by this.
        part: u64 = 4, [1, 1000], "one over a part", "assumed";
        /// A program with less CPU time than this has no speed.
        least_cpu_time: f64 = 0.5e-3, [0.0, 1.0], "CPU seconds", "assumed";
        /// A set of co-runners counts from this many segments on: live measurements have noise.
        segments: u32 = 4, [1, 1000], "segments",
            "assumed: with fewer, the highest mean would be high by chance";
        /// The most sets of co-runners that are kept for a phase.
        most_sets: usize = 64, [1, 100_000], "sets", "limits memory";
        /// Two segments with a smaller distance belong to one phase.
        similar: f64 = 0.7, [0.0, 2.0], "Manhattan distance", "the FPS paper, table 3";
        /// Below this part of the peak, a segment has little traffic itself.
        own_low: f64 = 0.04, [0.0, 1.0], "part of the peak", "the FPS paper, section 4.1";
        /// Below this part of the peak, all programs together have little traffic.
        system_low: f64 = 1.0 / 3.0, [0.0, 1.0], "part of the peak", "the FPS paper, section 4.1";
        /// The most phases that are kept; later segments belong to no phase.
        most_phases: usize = 512, [1, 100_000], "phases", "limits memory";
        /// A phase must have occurred this often to be trained.
        seen: u32 = 2, [1, 1000], "segments", "the FPS paper, section 4.3: phases that repeat";
        /// Training of a phase is given up after this many failures.
        given_up: u32 = 6, [1, 1000], "failures", "assumed";
        /// Where work comes in lumps, on machines without counters, a phase is known after this
        /// many in valid segments.
        lumps: f64 = 20.0, [1.0, 10_000.0], "lumps", "one more or less is then 5 %";
        /// After this many segments it is known whether phases repeat.
        enough_segments: u32 = 20, [1, 10_000], "segments", "assumed";
        /// After this many quanta together, unknown speeds of two programs are not waited for any
        /// longer.
        enough_quanta: u32 = 8, [0, 1000], "quanta", "assumed: one of them reports nothing";
        /// A sequence begins after more failures than this.
        failed: u32 = 5, [0, 1000], "failures", "the FPS paper, section 4.4";
        /// A sequence begins above this share of failures.
        failure_ratio: f64 = 0.60, [0.0, 1.0], "part of the training",
            "the FPS paper, section 4.4";
        /// How many quanta a sequence has.
        sequence: u32 = 6, [1, 1000], "quanta", "the FPS paper, section 4.4 and table 3";
        /// The most phases that are predicted.
        several: usize = 3, [1, 1000], "phases", "assumed: the FPS paper does not say how many";
    }
}
