//! Several ways, held against each other.
//!
//! The figures are those of `cosched compare`: medians over the rounds with bootstrap intervals, and ratios from the
//! pairs within each round ([`cosched_core::statistics`]). They are found anew from the runs, or
//! read from the JSON that `compare --json` printed, where the runs are no longer there.

use cosched_core::Exit;
use cosched_core::result::{MachineDescription, RunResult};
use cosched_core::statistics::{Estimate, Verdict, median_estimate, ratio_estimate};
use serde::Deserialize;

use crate::Way;

/// The version of the JSON that can be read.
pub const SCHEMA: &str = "cosched-compare/2";

/// Several ways, compared. Every field is as in `docs/compare-json.md`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Comparison {
    /// What it was measured on.
    pub machine: MachineDescription,
    /// Complete rounds.
    pub rounds: usize,
    /// One per way; the first one is what the others are held against.
    pub ways: Vec<Compared>,
}

/// One way.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Compared {
    /// Its name.
    pub way: String,
    /// From the first start to the last end.
    pub total_seconds: Estimate,
    /// That, over the sum of the programs' times alone.
    pub ratio_to_solo_sum: Option<Estimate>,
    /// Mean time from a program's arrival to its end.
    pub mean_turnaround_seconds: Option<Estimate>,
    /// Largest slowdown / smallest slowdown.
    pub unfairness: Option<Estimate>,
    /// The longest time that any program was frozen at a stretch.
    pub responsiveness_longest_gap_seconds: Estimate,
    /// 0 to 1.
    pub cpu_utilisation: Estimate,
    /// Programs that failed, in all rounds.
    pub failed: usize,
    /// How often something was not as wanted, in all rounds.
    pub deviations: usize,
    /// Beside the first way; `None` for that one.
    pub against: Option<Against>,
}

/// A way beside another one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Against {
    /// The other one's name.
    pub way: String,
    /// Total time over its total time, pair by pair.
    pub total_ratio: Estimate,
    /// What that says.
    pub verdict: Verdict,
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

    /// Sums up. `None` with fewer than two ways, if they have not equally many runs, or if these are of different
    /// programs: then there is nothing to compare.
    pub fn of(ways: &[Way]) -> Option<Comparison> {
        let first = ways.first().filter(|_| ways.len() > 1)?;
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
        let compared = ways.iter().enumerate();
        let compared = compared.map(|(i, way)| Compared::of(way, (i > 0).then_some(first)));
        Some(Comparison {
            machine: model.machine.clone(),
            rounds,
            ways: compared.collect::<Option<_>>()?,
        })
    }
}

impl Compared {
    fn of(way: &Way, against: Option<&Way>) -> Option<Compared> {
        let known = |figure: fn(&RunResult) -> Option<f64>| {
            way.runs.iter().map(figure).collect::<Option<Vec<f64>>>()
        };
        let median = |figure: fn(&RunResult) -> f64| {
            median_estimate(&way.runs.iter().map(figure).collect::<Vec<_>>())
        };
        let against = match against {
            Some(first) => {
                let total_ratio = ratio_estimate(&totals(way), &totals(first))?;
                let verdict = total_ratio.verdict();
                Some(Against { way: first.name.clone(), total_ratio, verdict })
            }
            None => None,
        };
        let failed = |run: &RunResult| {
            run.programs.iter().filter(|program| program.exit != Some(Exit::Code(0))).count()
        };
        Some(Compared {
            way: way.name.clone(),
            total_seconds: median(|run| run.total_seconds)?,
            ratio_to_solo_sum: known(solo_sum).and_then(|solo| ratio_estimate(&totals(way), &solo)),
            mean_turnaround_seconds: known(|run| run.metrics.mean_turnaround_seconds)
                .and_then(|known| median_estimate(&known)),
            unfairness: known(|run| run.metrics.unfairness)
                .and_then(|known| median_estimate(&known)),
            responsiveness_longest_gap_seconds: median(|run| {
                run.metrics.responsiveness_longest_gap_seconds
            })?,
            cpu_utilisation: median(|run| run.metrics.cpu_utilisation)?,
            failed: way.runs.iter().map(failed).sum(),
            deviations: way.runs.iter().map(|run| run.deviations.len()).sum(),
            against,
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

fn totals(way: &Way) -> Vec<f64> {
    way.runs.iter().map(|run| run.total_seconds).collect()
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
    fn six_rounds_that_all_say_the_same_give_a_verdict_and_five_do_not() {
        let slow = [10.0, 11.0, 10.5, 10.2, 10.8, 10.1];
        let fast = slow.map(|total| total / 2.0);
        let compared = Comparison::of(&[way("linux", &slow), way("gang", &fast)]).unwrap();
        assert_eq!(compared.ways[0].against, None);
        assert_eq!(compared.ways[1].against.as_ref().unwrap().verdict, Verdict::Better);
        let sentence = compared.ways[1].sentence().unwrap();
        assert!(sentence.starts_with("gang is better than linux: 0.50"), "{sentence}");
        let few = Comparison::of(&[way("linux", &slow[..5]), way("gang", &fast[..5])]).unwrap();
        assert_eq!(few.ways[1].sentence(), None);
    }

    #[test]
    fn runs_of_different_programs_or_rounds_are_not_compared() {
        let mut other = way("gang", &[1.0]);
        other.runs[0].programs[0].name = "something else".into();
        assert_eq!(Comparison::of(&[way("linux", &[2.0]), other]), None);
        assert_eq!(Comparison::of(&[way("linux", &[2.0, 2.0]), way("gang", &[1.0])]), None);
        assert_eq!(Comparison::of(&[way("linux", &[2.0])]), None);
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
    fn a_printed_comparison_is_read_and_anything_else_is_refused() {
        let estimate = r#"{"value": 2.0, "interval": [1.5, 2.5]}"#;
        let text = format!(
            r#"{{"schema": "{SCHEMA}", "rounds": 3, "interrupted": false,
                "machine": {{"cpus": 2, "model": null, "kernel": "6.18"}},
                "ways": [{{"way": "gang", "total_seconds": {estimate}, "ratio_to_solo_sum": null,
                    "mean_turnaround_seconds": null, "unfairness": null, "failed": 0, "deviations": 0,
                    "responsiveness_longest_gap_seconds": {estimate}, "cpu_utilisation": {estimate},
                    "against": null, "samples": {{}}}}]}}"#
        );
        let read = Comparison::parse(&text).unwrap();
        assert_eq!((read.rounds, read.ways[0].total_seconds.value), (3, 2.0));
        let error = |text: &str| Comparison::parse(text).unwrap_err().to_string();
        assert!(error(r#"{"schema": "cosched-run/1"}"#).contains("no comparison"));
        assert!(error(&text.replace("\"failed\"", "\"fail\"")).contains("missing field `failed`"));
    }
}
