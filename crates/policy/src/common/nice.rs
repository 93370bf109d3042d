//! Weights as nice values of the kernel.

/// The kernel's weight of a thread grows by this with each nice value (`sched_prio_to_weight`).
const STEP: f64 = 1.25;
/// The highest nice value.
const NICEST: f64 = 19.0;

/// The nice value for this weight, where the heaviest one has this weight. The heaviest one keeps
/// its nice value: to lower any takes a right that users lack.
pub(crate) fn nice(weight: f64, heaviest: f64) -> i8 {
    let steps = (heaviest / weight).ln() / STEP.ln();
    steps.round().clamp(0.0, NICEST) as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's weight for nice value 0 is 1024, for 3 it is 526, and for 6 it is 272.
    #[test]
    fn half_the_weight_is_three_steps() {
        assert_eq!([nice(1.0, 1.0), nice(1.0, 2.0), nice(1.0, 4.0)], [0, 3, 6]);
        assert_eq!([nice(0.01, 100.0), nice(5.0, 5.0), nice(0.9, 1.0)], [19, 0, 0]);
    }
}
