//! The choices for the policy `fair-progress`.

use cosched_policy::FairOptions;

use super::choice::choices;

choices! {
    /// What the machine's memory can carry, and what training may cost.
    FairChoices {
        /// Peak bandwidth of this machine's memory, in cache lines of 64 bytes per microsecond.
        "peak-bandwidth" peak_bandwidth: Option<f64>,
        /// CPU time that may be left idle to measure how fast programs are alone.
        "training-limit" training_limit: Option<TrainingLimit>,
        /// The training limit as one knob from 0 to 1.
        "fairness" fairness: Option<TrainingLimit>,
        /// Whether programs are measured in order of arrival, not the least-known program first.
        "no-distribution" no_distribution: bool,
        /// Whether no program is measured for several quanta in sequence.
        "no-sequences" no_sequences: bool,
        /// Whether a phase that never ran undisturbed has its speed with the co-runners that
        /// disturb it least.
        "by-corunners" by_corunners: bool,
        /// Whether it is not sampled where in its code a program is.
        "no-phases" no_phases: bool,
        /// Whether solo speeds are those of the simulator (simulated machines only).
        "optimal" optimal: bool,
    } and {
        /// The peak bandwidth of the simulated machine, or the one that was measured here.
        usual_peak: Option<f64>,
    }
}

/// The share of CPU time that may be left idle; `None`: no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingLimit(pub Option<f64>);

impl FairChoices {
    /// The options as the policy takes them.
    pub fn options(&self) -> FairOptions {
        let default = FairOptions::default();
        let peak = self.peak_bandwidth.or(self.usual_peak);
        FairOptions {
            peak,
            training_limit: self.limit().map_or(default.training_limit, |limit| limit.0),
            distribution: !self.no_distribution,
            sequential: !self.no_sequences,
            by_corunners: self.by_corunners || peak.is_none(),
            phases: !self.no_phases,
            optimal: self.optimal,
        }
    }

    /// The limit, by either of its two options.
    fn limit(&self) -> Option<TrainingLimit> {
        self.training_limit.or(self.fairness)
    }

    /// Takes what is not given here from `there`.
    pub fn over(&self, there: &FairChoices) -> FairChoices {
        let limited = if self.limit().is_some() { self } else { there };
        let (training_limit, fairness) = (limited.training_limit, limited.fairness);
        FairChoices { training_limit, fairness, ..self.each_over(there) }
    }
}
