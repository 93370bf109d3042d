//! The options of the policy `fair-progress` on the command line.

use clap::Args;
use cosched_policy::FairOptions;

use crate::how::fair::{FairChoices, TrainingLimit};

/// What the machine's memory can carry, and what training may cost.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FairArgs {
    /// Peak bandwidth of this machine's memory, in cache lines of 64 bytes per microsecond
    /// (fair-progress) [default: that of the simulated machine, or the one that `cosched profile
    /// --machine` has measured here. Without it, only a program that runs alone counts as
    /// undisturbed]
    #[arg(long, value_name = "LINES", allow_negative_numbers = true, value_parser = peak)]
    pub(crate) peak_bandwidth: Option<f64>,
    /// CPU time that may be left idle to measure how fast programs are alone, in percent of the CPU
    /// time that they use: 0 to 100, or "unlimited". More makes slowdowns more equal, and costs
    /// throughput (fair-progress) [default: 2]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = training)]
    pub(crate) training_limit: Option<TrainingLimit>,
    /// The training limit as one knob from 0 (no training) to 1 (no limit): f means a limit of 2 *
    /// f / (1 - f) percent, which may be above 100 (fair-progress) [default: 0.5]
    #[arg(long, value_name = "0..1", allow_negative_numbers = true, value_parser = fairness,
          conflicts_with = "training_limit")]
    pub(crate) fairness: Option<TrainingLimit>,
    /// Measure programs in order of arrival, not the least-known program first (fair-progress).
    #[arg(long)]
    pub(crate) no_distribution: bool,
    /// Never measure for several quanta in sequence where single quanta were not enough
    /// (fair-progress).
    #[arg(long)]
    pub(crate) no_sequences: bool,
    /// For a phase that never ran undisturbed, take its speed with the co-runners that disturb it
    /// least (fair-progress). That is the default where the peak bandwidth is not known.
    #[arg(long)]
    pub(crate) by_corunners: bool,
    /// Do not sample where in its code a program is: that costs nothing, but the phases of a
    /// program are not distinguishable (fair-progress).
    #[arg(long)]
    pub(crate) no_phases: bool,
    /// Take solo speeds from the simulator, and estimate none (fair-progress, simulated machines
    /// only).
    #[arg(long)]
    pub(crate) optimal: bool,
}

impl FairArgs {
    pub(super) fn choices(&self) -> FairChoices {
        let FairArgs { peak_bandwidth, training_limit, fairness, optimal, .. } = *self;
        let FairArgs { no_distribution, no_sequences, by_corunners, no_phases, .. } = *self;
        let default = FairChoices {
            no_distribution,
            no_sequences,
            by_corunners,
            no_phases,
            ..FairChoices::default()
        };
        FairChoices { peak_bandwidth, training_limit, fairness, optimal, ..default }
    }
}

fn peak(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(lines) if (1e-3..=1e6).contains(&lines) => Ok(lines),
        _ => Err("write lines per microsecond, from 0.001 to 1000000".to_owned()),
    }
}

fn training(text: &str) -> Result<TrainingLimit, String> {
    match text.parse::<f64>() {
        _ if text == "unlimited" => Ok(TrainingLimit(None)),
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(TrainingLimit(Some(percent / 100.0))),
        _ => Err("write percent from 0 to 100, or unlimited".to_owned()),
    }
}

/// A training limit from one knob: 0 is no training, 0.5 the default, 1 no limit.
fn fairness(text: &str) -> Result<TrainingLimit, String> {
    match text.parse::<f64>() {
        Ok(1.0) => Ok(TrainingLimit(None)),
        Ok(share) if (0.0..1.0).contains(&share) => {
            let middle = FairOptions::default().training_limit.unwrap_or_default();
            Ok(TrainingLimit(Some(middle * share / (1.0 - share))))
        }
        _ => Err("write a number from 0 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn a_training_limit_is_a_percentage_or_unlimited() {
        assert_eq!(training("2"), Ok(TrainingLimit(Some(0.02))));
        assert_eq!(training("unlimited"), Ok(TrainingLimit(None)));
        assert_eq!(fairness("0"), Ok(TrainingLimit(Some(0.0))));
        assert_eq!(fairness("0.5"), Ok(TrainingLimit(FairOptions::default().training_limit)));
        assert_eq!(fairness("1"), Ok(TrainingLimit(None)));
        assert!(fairness("1.1").is_err() && fairness("-0.1").is_err());
        assert!(training("-1").is_err() && training("2%").is_err() && peak("0").is_err());
    }

    #[test]
    fn a_negative_number_is_refused_with_the_range() {
        for (option, value, range) in [
            ("--training-limit", "-1", "percent from 0 to 100, or unlimited"),
            ("--fairness", "-0.1", "a number from 0 to 1"),
            ("--peak-bandwidth", "-5", "lines per microsecond"),
        ] {
            let words =
                ["cosched", "run", "--policy", "fair-progress", option, value, "--", "true"];
            let error = Cli::try_parse_from(words).unwrap_err().to_string();
            assert!(error.contains(range), "{option}: {error}");
        }
    }
}
