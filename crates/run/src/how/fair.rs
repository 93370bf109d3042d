//! The choices for the policy `fair-progress`.

use cosched_policy::FairOptions;

/// What the machine's memory can carry, and what training may cost.
#[derive(Clone, Debug, Default)]
pub struct FairChoices {
    /// Peak bandwidth of this machine's memory, in cache lines of 64 bytes per microsecond.
    pub peak_bandwidth: Option<f64>,
    /// CPU time that may be left idle to measure how fast programs are alone.
    pub training_limit: Option<TrainingLimit>,
    /// The training limit as one knob from 0 to 1.
    pub fairness: Option<TrainingLimit>,
    /// Whether programs are measured in order of arrival, not the least-known program first.
    pub no_distribution: bool,
    /// Whether no program is measured for several quanta in sequence.
    pub no_sequences: bool,
    /// Whether a phase that never ran undisturbed has its speed with the co-runners that disturb it
    /// least.
    pub by_corunners: bool,
    /// Whether it is not sampled where in its code a program is.
    pub no_phases: bool,
    /// Whether solo speeds are those of the simulator (simulated machines only).
    pub optimal: bool,
    /// The peak bandwidth of the simulated machine, or the one that was measured here.
    pub usual_peak: Option<f64>,
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
        FairChoices {
            peak_bandwidth: self.peak_bandwidth.or(there.peak_bandwidth),
            training_limit: limited.training_limit,
            fairness: limited.fairness,
            no_distribution: self.no_distribution || there.no_distribution,
            no_sequences: self.no_sequences || there.no_sequences,
            by_corunners: self.by_corunners || there.by_corunners,
            no_phases: self.no_phases || there.no_phases,
            optimal: self.optimal || there.optimal,
            usual_peak: self.usual_peak.or(there.usual_peak),
        }
    }

    /// The first option that was given, without its dashes.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("peak-bandwidth", self.peak_bandwidth.is_some()),
            ("training-limit", self.training_limit.is_some()),
            ("fairness", self.fairness.is_some()),
            ("no-distribution", self.no_distribution),
            ("no-sequences", self.no_sequences),
            ("by-corunners", self.by_corunners),
            ("no-phases", self.no_phases),
            ("optimal", self.optimal),
        ];
        all.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}
