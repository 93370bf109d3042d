//! Several ways, held against each other: the document of `cosched compare`, described in
//! `docs/json.md`.
//!
//! Figures are medians over the rounds, and ratios from the pairs within each round, with 95 %
//! intervals ([`cosched_core::statistics`]). They are found from the runs, by `compare` and by
//! `report` alike, or read from the JSON that `compare --json` printed, where the runs are no
//! longer there.

mod check;
#[cfg(test)]
mod tests;

use cosched_core::Exit;
use cosched_core::result::{MachineDescription, RunResult, Rungs};
use cosched_core::statistics::{Estimate, Verdict, comparison, median_estimate, ratio_estimate};
use serde::{Deserialize, Serialize};

use crate::Way;
use crate::history::History;
use check::{Fault, alike};

/// The version of the JSON that is written and read.
pub const SCHEMA: &str = "cosched-compare/2";
/// Simulated ways that differ by less are called equal.
const NEGLIGIBLE: f64 = 0.005;

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
    /// The policy and the options that were asked for it alone, where any were.
    #[serde(default)]
    pub asked: Option<String>,
    /// How programs were frozen and bound.
    pub rungs: Rungs,
    /// From the first start to the last end.
    pub total_seconds: Estimate,
    /// That, over the sum of the programs' times alone in the same round; `None` where those are
    /// unknown.
    pub ratio_to_solo_sum: Option<Estimate>,
    /// Mean time from a program's arrival to its end.
    pub mean_turnaround_seconds: Option<Estimate>,
    /// Largest slowdown / smallest slowdown.
    pub unfairness: Option<Estimate>,
    /// The longest time that any program was frozen at a stretch.
    pub responsiveness_longest_gap_seconds: Estimate,
    /// The longest time that any program waited at a stretch, for its start or frozen; older
    /// documents lack it.
    #[serde(default)]
    pub longest_wait_seconds: Option<Estimate>,
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
    /// Whether as many programs failed in both ways; if not, there is no verdict.
    #[serde(default = "yes")]
    pub failed_alike: bool,
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
    /// The longest time that any program waited at a stretch, for its start or frozen.
    #[serde(default)]
    pub longest_wait_seconds: Vec<f64>,
    /// 0 to 1.
    pub cpu_utilisation: Vec<f64>,
    /// CPU time of cosched itself, in percent of one CPU.
    pub own_cpu_percent: Vec<f64>,
}

/// Why runs cannot be held against each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// There is no run.
    #[error("there is no run of them")]
    NoRun,
    /// A way has more of them than another one.
    #[error("there are not equally many of each")]
    Rounds,
    /// They are of different workloads.
    #[error("they are not of the same programs")]
    Programs,
    /// A program does not do the same in all.
    #[error("{program} is {} in {}, and {} in {}", one.1, one.0, other.1, other.0)]
    Work {
        /// The program.
        program: String,
        /// A way, and what the program does in it.
        one: (String, String),
        /// Another one.
        other: (String, String),
    },
    /// The runs of a way were not made in the same manner.
    #[error("runs of {way} differ in their {setting}")]
    Settings {
        /// The way.
        way: String,
        /// What differs, as run.json calls it.
        setting: &'static str,
    },
    /// They were made on different machines, or some were simulated.
    #[error("{} is of {}, and {} of {}", one.0, one.1, other.0, other.1)]
    Machines {
        /// A way, and its machine in words.
        one: (String, String),
        /// Another one.
        other: (String, String),
    },
    /// A run was ended before its time, so it holds less work than others.
    #[error("{way} was interrupted ({signal})")]
    Interrupted {
        /// The way.
        way: String,
        /// What ended it.
        signal: String,
    },
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
    /// A field says what no comparison can be.
    #[error("{} {}; no comparison can be like this, so the file is damaged: compare again", fault.0, fault.1)]
    Impossible {
        /// The field, and what is wrong with it.
        fault: Fault,
    },
}

impl Comparison {
    /// Reads what `cosched compare --json` printed.
    ///
    /// # Errors
    /// When it is not JSON, has another schema than [`SCHEMA`], lacks a field, or says what no
    /// comparison can be.
    pub fn parse(text: &str) -> Result<Comparison, ComparisonError> {
        Comparison::of_json(serde_json::from_str(text).map_err(ComparisonError::Damaged)?)
    }

    /// The same of what is no text any more.
    ///
    /// # Errors
    /// Those of [`Comparison::parse`].
    pub fn of_json(value: serde_json::Value) -> Result<Comparison, ComparisonError> {
        if value["schema"] != SCHEMA {
            return Err(ComparisonError::OtherSchema);
        }
        let comparison = serde_json::from_value(value).map_err(ComparisonError::Damaged)?;
        match check::printed(&comparison) {
            Ok(()) => Ok(comparison),
            Err(fault) => Err(ComparisonError::Impossible { fault }),
        }
    }

    /// Sums up. Whether rounds are missing is for the caller to say.
    ///
    /// # Errors
    /// If the runs are none of one workload on one machine, as many of each way, and all complete.
    pub fn of(ways: &[Way]) -> Result<Comparison, Incomparable> {
        alike(ways)?;
        Comparison::of_checked(ways).ok_or(Incomparable::NoRun)
    }

    fn of_checked(ways: &[Way]) -> Option<Comparison> {
        let first = ways.first()?;
        let rounds = first.runs.len();
        let model = first.runs.first()?;
        let samples = Samples::of(&first.runs);
        let compared = ways.iter().enumerate();
        let first = First { way: first, failed: failures(&first.runs), samples };
        let compared = compared.map(|(i, way)| Compared::of(way, (i > 0).then_some(&first)));
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

/// Of documents from before it was told.
fn yes() -> bool {
    true
}

/// What the others are held against.
struct First<'a> {
    way: &'a Way,
    /// Programs that failed, over all rounds.
    failed: usize,
    samples: Samples,
}

fn failures(runs: &[RunResult]) -> usize {
    let programs = runs.iter().flat_map(|run| &run.programs);
    programs.filter(|program| program.exit != Some(Exit::Code(0))).count()
}

impl Compared {
    fn of(way: &Way, first: Option<&First<'_>>) -> Option<Compared> {
        let samples = Samples::of(&way.runs);
        let failed = failures(&way.runs);
        let against = match first {
            Some(first) => Some(Against::of(way, &samples, failed, first)?),
            None => None,
        };
        let median_of_known =
            |samples: &[Option<f64>]| known(samples).and_then(|known| median_estimate(&known));
        Some(Compared {
            way: way.name.clone(),
            asked: None,
            rungs: way.runs.first()?.rungs.clone(),
            total_seconds: median_estimate(&samples.total_seconds)?,
            ratio_to_solo_sum: known(&samples.solo_sum_seconds)
                .and_then(|solo| ratio_estimate(&samples.total_seconds, &solo)),
            mean_turnaround_seconds: median_of_known(&samples.mean_turnaround_seconds),
            unfairness: median_of_known(&samples.unfairness),
            responsiveness_longest_gap_seconds: median_estimate(
                &samples.responsiveness_longest_gap_seconds,
            )?,
            longest_wait_seconds: median_estimate(&samples.longest_wait_seconds),
            cpu_utilisation: median_estimate(&samples.cpu_utilisation)?,
            own_cpu_percent: median_estimate(&samples.own_cpu_percent)?,
            failed,
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
        if !against.failed_alike {
            return Some(format!(
                "{way} against {other}: other programs failed, so nothing follows: {range}."
            ));
        }
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
    fn of(way: &Way, own: &Samples, failed: usize, first: &First<'_>) -> Option<Against> {
        let total_ratio = comparison(&own.total_seconds, &first.samples.total_seconds)?;
        let turnarounds =
            known(&own.mean_turnaround_seconds).zip(known(&first.samples.mean_turnaround_seconds));
        let turnaround_ratio = turnarounds.and_then(|(own, first)| comparison(&own, &first));
        let failed_alike = failed == first.failed;
        let simulated = way.runs.first().is_some_and(|run| run.machine.is_simulated());
        // Simulated runs have no noise, so an interval may be narrower than anything that matters.
        let says = |ratio: Estimate| match simulated && (ratio.value - 1.0).abs() < NEGLIGIBLE {
            false if failed_alike => ratio.verdict(),
            _ => Verdict::NoDifference,
        };
        Some(Against {
            way: first.way.name.clone(),
            total_ratio,
            verdict: says(total_ratio),
            turnaround_ratio,
            turnaround_verdict: turnaround_ratio.map(says),
            failed_alike,
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
            longest_wait_seconds: each(runs, longest_wait),
            cpu_utilisation: each(runs, |run| run.metrics.cpu_utilisation),
            own_cpu_percent: each(runs, |run| run.own.cpu_percent),
        }
    }
}

/// The samples, if every round gave one.
fn known(samples: &[Option<f64>]) -> Option<Vec<f64>> {
    samples.iter().copied().collect()
}

fn longest_wait(run: &RunResult) -> f64 {
    let history = History::of(run);
    let waits = (0..run.programs.len()).filter_map(|slot| history.longest_wait(slot));
    waits.map(|wait| wait.length()).max().unwrap_or_default().as_secs_f64()
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
