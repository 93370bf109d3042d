//! How well a policy has estimated a program's speed alone.

use cosched_core::estimates::EstimateSources;
use serde::{Deserialize, Serialize};

use super::build::to_microseconds;
use crate::metrics::ProgramTimes;

/// What `fair-progress` has estimated of a program, over all quanta in which its work was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimatesResult {
    /// CPU time that it used in them.
    pub cpu_seconds: f64,
    /// CPU time that this work would have taken alone, as estimated.
    pub solo_cpu_seconds: f64,
    /// [`ProgramTimes::estimation_accuracy`]; `None` where the CPU time alone is not known.
    pub accuracy: Option<f64>,
    /// [`ProgramTimes::accuracy_without_estimates`].
    pub accuracy_without: Option<f64>,
    /// How many quanta have their speed alone from where.
    pub sources: EstimateSources,
    /// CPU time that quanta took longer than alone, by where their speed alone was from then.
    #[serde(default)]
    pub slowed_seconds: EstimateSources<f64>,
    /// How much the speeds alone of quanta of one phase differ; `None` where that is not known.
    pub phase_deviation: Option<f64>,
    /// CPU time that was left idle for its training until it was done.
    pub training_idle_seconds: f64,
}

impl EstimatesResult {
    pub(super) fn of(times: &ProgramTimes) -> Option<EstimatesResult> {
        let estimates = times.estimates?;
        Some(EstimatesResult {
            cpu_seconds: to_microseconds(estimates.cpu_seconds),
            solo_cpu_seconds: to_microseconds(estimates.solo_cpu_seconds),
            accuracy: times.estimation_accuracy(),
            accuracy_without: times.accuracy_without_estimates(),
            sources: estimates.sources,
            slowed_seconds: estimates.slowed.map(to_microseconds),
            phase_deviation: estimates.phase_deviation,
            training_idle_seconds: to_microseconds(estimates.training_idle_seconds),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cosched_core::Nanos;
    use cosched_core::engine::outcome::Outcome;
    use cosched_core::estimates::{EstimateSources, Estimates};

    use super::super::tests::{context, outcome};
    use super::super::{Context, PolicyCost, RunResult, Simulation};

    /// 2 s of CPU time, of which 1.6 s were measured and were worth 1.2 s alone; 1.6 s alone.
    fn run() -> RunResult {
        let (context, outcome) = estimated();
        RunResult::new(&outcome, &context)
    }

    fn estimated() -> (Context, Outcome) {
        let (mut context, mut outcome) = (context(), outcome());
        context.policy = "fair-progress".to_owned();
        context.programs[0].solo_cpu = Some(Nanos::from_millis(1600));
        outcome.programs[0].estimates = Some(Estimates {
            cpu_seconds: 1.6,
            solo_cpu_seconds: 1.2,
            sources: EstimateSources { own_low: 3, none: 1, ..EstimateSources::default() },
            slowed: EstimateSources { own_low: 0.4, ..EstimateSources::default() },
            phase_deviation: Some(0.05),
            training_idle_seconds: 0.5,
        });
        outcome.cost.reading = Nanos::from_millis(7);
        (context, outcome)
    }

    #[test]
    fn estimates_are_told_with_their_sources_and_accuracy() {
        let run = run();
        let estimates = run.programs[0].estimates.unwrap();
        // 1.6 / 1.2 times as fast alone, and 0.8 of it measured by CPU time.
        assert!((estimates.accuracy.unwrap() - 0.8 * 1.6 / 1.2).abs() < 1e-12);
        assert!((estimates.accuracy_without.unwrap() - 0.8).abs() < 1e-12);
        assert_eq!((estimates.sources.own_low, estimates.sources.none), (3, 1));
        assert_eq!(estimates.slowed_seconds.own_low, 0.4);
        assert_eq!(run.programs[0].solo_cpu_seconds, Some(1.6));
        // 1.6 / (2 + 0.5).
        assert!((run.metrics.extended_weighted_speedup.unwrap() - 0.64).abs() < 1e-12);
        let cost = PolicyCost { reading_seconds: 0.007, ..PolicyCost::default() };
        assert_eq!(run.own.policy_cost, Some(cost));
        let read = RunResult::read(run.to_json().as_bytes(), std::path::Path::new("x")).unwrap();
        assert_eq!(read, run);
    }

    /// A policy may run programs one after the other while CPUs are idle.
    #[test]
    fn speedups_by_cycles_need_a_policy_that_charges_idle_cpus() {
        let (mut context, outcome) = estimated();
        let mut known = |policy: &str, decided_by: Option<&str>| {
            context.policy = policy.to_owned();
            context.decided_by = decided_by.map(str::to_owned);
            RunResult::new(&outcome, &context).metrics.extended_weighted_speedup.is_some()
        };
        assert!(known("linux", None) && known("linux-groups", None));
        assert!(!known("fcfs", None) && !known("gang", None));
        assert!(!known("linux", Some("auto")));
    }

    /// A simulation takes no time to read, but counts samples.
    #[test]
    fn a_simulation_does_not_tell_what_its_policy_cost() {
        let (mut context, outcome) = estimated();
        assert!(RunResult::new(&outcome, &context).own.policy_cost.is_some());
        let (machine, kernel) = ("core:2".to_owned(), "cfs".to_owned());
        let set = BTreeMap::new();
        context.simulation = Some(Simulation { machine, kernel, seed: 1, set });
        assert_eq!(RunResult::new(&outcome, &context).own.policy_cost, None);
    }

    /// Half of its solo time shows that this was wrong, and the CPU time of the same runs with it.
    #[test]
    fn no_accuracy_rests_on_a_solo_time_that_cannot_be_true() {
        let (mut context, mut outcome) = (context(), outcome());
        context.programs[0].solo = Some(Nanos::from_secs(4));
        context.programs[0].solo_cpu = Some(Nanos::from_secs(4));
        outcome.programs[0].estimates =
            Some(Estimates { cpu_seconds: 1.0, solo_cpu_seconds: 1.0, ..Estimates::default() });
        let run = RunResult::new(&outcome, &context);
        assert_eq!(run.metrics.extended_weighted_speedup, None);
        assert_eq!(run.programs[0].solo_cpu_seconds, None);
        let estimates = run.programs[0].estimates.unwrap();
        assert_eq!((estimates.accuracy, estimates.accuracy_without), (None, None));
    }
}
