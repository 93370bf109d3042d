//! Several ways, held against each other: the document of `cosched compare`, described in `docs/compare-json.md`.
//!
//! Figures are medians over the rounds, and ratios from the pairs within each round, with 95 % intervals
//! ([`cosched_core::statistics`]). They are found from the runs, by `compare` and by `report` alike, or read from the
//! JSON that `compare --json` printed, where the runs are no longer there.

use cosched_core::Exit;
use cosched_core::result::{MachineDescription, RunResult, Rungs};
use cosched_core::statistics::{Estimate, Verdict, comparison, median_estimate, ratio_estimate};
use serde::{Deserialize, Serialize};

use crate::Way;

/// The version of the JSON that is written and read.
pub const SCHEMA: &str = "cosched-compare/2";

/// Several ways, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// What it was measured on.
    pub machine: MachineDescription,
    /// Whether that machine was simulated.
    #[serde(default)]
    pub simulated: bool,
    /// Complete rounds.
    pub rounds: usize,
    /// Whether it was ended before its last round.
    pub interrupted: bool,
    /// One per way; the first one is what the others are held against.
    pub ways: Vec<Compared>,
}

/// One way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Its name.
    pub way: String,
    /// How programs were frozen and bound.
    pub rungs: Rungs,
    /// From the first start to the last end.
    pub total_seconds: Estimate,
    /// That, over the sum of the programs' times alone in the same round; `None` where those are unknown.
    pub ratio_to_solo_sum: Option<Estimate>,
    /// Mean time from a program's arrival to its end.
    pub mean_turnaround_seconds: Option<Estimate>,
    /// Largest slowdown / smallest slowdown.
    pub unfairness: Option<Estimate>,
    /// The longest time that any program was frozen at a stretch.
    pub responsiveness_longest_gap_seconds: Estimate,
    /// 0 to 1.
    pub cpu_utilisation: Estimate,
    /// CPU time of cosched itself, in percent of one CPU.
    pub own_cpu_percent: Estimate,
    /// Programs that failed, in all rounds.
    pub failed: usize,
    /// How often something was not as wanted, in all rounds.
    pub deviations: usize,
    /// Beside the first way; `None` for that one.
    pub against: Option<Against>,
    /// What each round gave.
    pub samples: Samples,
}

/// A way beside another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The other one's name.
    pub way: String,
    /// Total time over its total time, pair by pair.
    pub total_ratio: Estimate,
    /// What that says.
    pub verdict: Verdict,
    /// Mean turnaround over its mean turnaround, pair by pair.
    pub turnaround_ratio: Option<Estimate>,
    /// What that says.
    pub turnaround_verdict: Option<Verdict>,
}

/// The figures of each round, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// From the first start to the last end.
    pub total_seconds: Vec<f64>,
    /// The sum of the programs' times alone.
    pub solo_sum_seconds: Vec<Option<f64>>,
    /// Mean time from a program's arrival to its end.
    pub mean_turnaround_seconds: Vec<Option<f64>>,
    /// Largest slowdown / smallest slowdown.
    pub unfairness: Vec<Option<f64>>,
    /// The longest time that any program was frozen at a stretch.
    pub responsiveness_longest_gap_seconds: Vec<f64>,
    /// 0 to 1.
    pub cpu_utilisation: Vec<f64>,
    /// CPU time of cosched itself, in percent of one CPU.
    pub own_cpu_percent: Vec<f64>,
}

/// Why a comparison could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// It is of another version, or something else.
    #[error(
        "is no comparison with the schema '{SCHEMA}'; name a folder of runs, or what `cosched compare --json` printed"
    )]
    OtherSchema,
    /// A field is missing or wrong.
    #[error("is damaged: {0}; compare again")]
    Damaged(serde_json::Error),
}

impl Comparison {
    /// Reads what `cosched compare --json` printed.
    ///
    /// # Errors
    /// When it is not JSON, has another schema than [`SCHEMA`], or lacks a field.
    pub fn parse(text: &str) -> Result<Comparison, ComparisonError> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(ComparisonError::Damaged)?;
        if value["schema"] != SCHEMA {
            return Err(ComparisonError::OtherSchema);
        }
        serde_json::from_value(value).map_err(ComparisonError::Damaged)
    }

    /// Sums up. `None` without a run, if the ways have not equally many runs, or if these are of different programs:
    /// then there is nothing to compare. Whether rounds are missing is for the caller to say.
    pub fn of(ways: &[Way]) -> Option<Comparison> {
        let first = ways.first()?;
        let rounds = first.runs.len();
        let model = first.runs.first()?;
        let names = |run: &RunResult| -> Vec<String> {
            run.programs.iter().map(|program| program.name.clone()).collect()
        };
        let alike = |way: &Way| {
            way.runs.len() == rounds && way.runs.iter().all(|run| names(run) == names(model))
        };
        if !ways.iter().all(alike) {
            return None;
        }
        let samples = Samples::of(&first.runs);
        let compared = ways.iter().enumerate();
        let compared = compared
            .map(|(i, way)| Compared::of(way, (i > 0).then_some((first.name.as_str(), &samples))));
        Some(Comparison {
            schema: SCHEMA.to_owned(),
            machine: model.machine.clone(),
            simulated: model.machine.is_simulated(),
            rounds,
            interrupted: false,
            ways: compared.collect::<Option<_>>()?,
        })
    }
}

impl Compared {
    fn of(way: &Way, first: Option<(&str, &Samples)>) -> Option<Compared> {
        let samples = Samples::of(&way.runs);
        let against = match first {
            Some((name, first)) => Some(Against::of(&samples, name, first)?),
            None => None,
        };
        let failed = |run: &RunResult| {
            run.programs.iter().filter(|program| program.exit != Some(Exit::Code(0))).count()
        };
        let median_of_known =
            |samples: &[Option<f64>]| known(samples).and_then(|known| median_estimate(&known));
        Some(Compared {
            way: way.name.clone(),
            rungs: way.runs.first()?.rungs.clone(),
            total_seconds: median_estimate(&samples.total_seconds)?,
            ratio_to_solo_sum: known(&samples.solo_sum_seconds)
                .and_then(|solo| ratio_estimate(&samples.total_seconds, &solo)),
            mean_turnaround_seconds: median_of_known(&samples.mean_turnaround_seconds),
            unfairness: median_of_known(&samples.unfairness),
            responsiveness_longest_gap_seconds: median_estimate(
                &samples.responsiveness_longest_gap_seconds,
            )?,
            cpu_utilisation: median_estimate(&samples.cpu_utilisation)?,
            own_cpu_percent: median_estimate(&samples.own_cpu_percent)?,
            failed: way.runs.iter().map(failed).sum(),
            deviations: way.runs.iter().map(|run| run.deviations.len()).sum(),
            against,
            samples,
        })
    }

    /// What a person wants to know; `None` for the first way, and with too few rounds to tell.
    pub fn sentence(&self) -> Option<String> {
        let against = self.against.as_ref()?;
        let (low, high) = against.total_ratio.interval?;
        let (way, other, value) = (&self.way, &against.way, against.total_ratio.value);
        let range = format!("{value:.2} of its total time ({low:.2} to {high:.2})");
        Some(match against.verdict {
            Verdict::Better => format!("{way} is better than {other}: {range}."),
            Verdict::Worse => format!("{way} is worse than {other}: {range}."),
            Verdict::NoDifference => {
                format!(
                    "{way} against {other}: no difference that this many rounds can show: {range}."
                )
            }
        })
    }
}

impl Against {
    fn of(own: &Samples, name: &str, first: &Samples) -> Option<Against> {
        let total_ratio = comparison(&own.total_seconds, &first.total_seconds)?;
        let turnarounds =
            known(&own.mean_turnaround_seconds).zip(known(&first.mean_turnaround_seconds));
        let turnaround_ratio = turnarounds.and_then(|(own, first)| comparison(&own, &first));
        Some(Against {
            way: name.to_owned(),
            total_ratio,
            verdict: total_ratio.verdict(),
            turnaround_ratio,
            turnaround_verdict: turnaround_ratio.map(|ratio| ratio.verdict()),
        })
    }
}

impl Samples {
    fn of(runs: &[RunResult]) -> Samples {
        fn each<T>(runs: &[RunResult], figure: impl Fn(&RunResult) -> T) -> Vec<T> {
            runs.iter().map(figure).collect()
        }
        Samples {
            total_seconds: each(runs, |run| run.total_seconds),
            solo_sum_seconds: each(runs, solo_sum),
            mean_turnaround_seconds: each(runs, |run| run.metrics.mean_turnaround_seconds),
            unfairness: each(runs, |run| run.metrics.unfairness),
            responsiveness_longest_gap_seconds: each(runs, |run| {
                run.metrics.responsiveness_longest_gap_seconds
            }),
            cpu_utilisation: each(runs, |run| run.metrics.cpu_utilisation),
            own_cpu_percent: each(runs, |run| run.own.cpu_percent),
        }
    }
}

/// The samples, if every round gave one.
fn known(samples: &[Option<f64>]) -> Option<Vec<f64>> {
    samples.iter().copied().collect()
}

/// The sum of the times alone. `None` if one is unknown, or if a program ran on after it was done
/// for the others' sake: then the run holds more work than that.
fn solo_sum(run: &RunResult) -> Option<f64> {
    let solo = run.programs.iter().map(|program| {
        let done = program.arrived_seconds + program.turnaround_seconds?;
        let last = program.timeline.last().map_or(0.0, |span| span.1);
        // Times are rounded to microseconds.
        program.solo_seconds.filter(|_| last <= done + 2e-6)
    });
    solo.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    fn way(name: &str, totals: &[f64]) -> Way {
        let run = |total: &f64| RunResult { total_seconds: *total, ..testkit::gang() };
        Way { name: name.into(), runs: totals.iter().map(run).collect() }
    }

    #[test]
    fn seven_rounds_that_all_say_the_same_give_a_verdict_and_six_do_not() {
        let slow = [10.0, 11.0, 10.5, 10.2, 10.8, 10.1, 10.4];
        let fast = slow.map(|total| total / 2.0);
        let compared = Comparison::of(&[way("linux", &slow), way("gang", &fast)]).unwrap();
        assert_eq!(compared.ways[0].against, None);
        assert_eq!(compared.ways[1].against.as_ref().unwrap().verdict, Verdict::Better);
        let sentence = compared.ways[1].sentence().unwrap();
        assert!(sentence.starts_with("gang is better than linux: 0.50"), "{sentence}");
        let few = Comparison::of(&[way("linux", &slow[..6]), way("gang", &fast[..6])]).unwrap();
        assert_eq!(few.ways[1].sentence(), None);
    }

    #[test]
    fn runs_of_different_programs_or_rounds_are_not_compared() {
        let mut other = way("gang", &[1.0]);
        other.runs[0].programs[0].name = "something else".into();
        assert_eq!(Comparison::of(&[way("linux", &[2.0]), other]), None);
        assert_eq!(Comparison::of(&[way("linux", &[2.0, 2.0]), way("gang", &[1.0])]), None);
        assert_eq!(Comparison::of(&[way("linux", &[])]), None);
    }

    #[test]
    fn a_program_that_runs_on_for_the_others_sake_leaves_no_sum_of_times_alone() {
        let mut run = testkit::gang();
        assert_eq!(solo_sum(&run), Some(0.6));
        let later = run.programs[1].timeline[1];
        run.programs[0].timeline.push(later);
        assert_eq!(solo_sum(&run), None);
    }

    #[test]
    fn a_way_alone_has_figures_and_nothing_to_be_held_against() {
        let one = Comparison::of(&[way("linux", &[2.0, 3.0, 4.0])]).unwrap();
        assert_eq!((one.rounds, one.ways[0].total_seconds.value), (3, 3.0));
        assert_eq!(one.ways[0].against, None);
    }

    #[test]
    fn what_is_printed_is_read_again_and_anything_else_is_refused() {
        let ways = [way("linux", &[2.0, 2.5]), way("gang", &[1.0, 1.5])];
        let printed = Comparison::of(&ways).unwrap();
        let text = serde_json::to_string(&printed).unwrap();
        assert_eq!(Comparison::parse(&text).unwrap(), printed);
        let error = |text: &str| Comparison::parse(text).unwrap_err().to_string();
        assert!(error(r#"{"schema": "cosched-run/1"}"#).contains("no comparison"));
        assert!(error(&text.replace("\"failed\"", "\"fail\"")).contains("missing field `failed`"));
        // Written before simulated comparisons were there.
        let earlier = text.replace("\"simulated\":false,", "");
        assert!(earlier.len() < text.len() && Comparison::parse(&earlier).unwrap() == printed);
    }
}
