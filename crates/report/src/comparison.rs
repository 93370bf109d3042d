//! Several variants of an experiment, compared: the document of `cosched compare`, described in
//! `docs/json.md`.
//!
//! Figures are medians over the rounds, and ratios from the pairs within each round, with 95 %
//! intervals ([`cosched_results::statistics`]). `compare` and `report` compute them from the runs.
//! Where the runs are gone, they are read from the JSON that `compare --json` printed.

mod check;
#[cfg(test)]
mod tests;
mod verdict;

use cosched_core::Exit;
use cosched_results::json;
use cosched_results::result::{Backends, MachineDescription, RunResult};
use cosched_results::statistics::{Estimate, Verdict, comparison, median_estimate, ratio_estimate};
use serde::{Deserialize, Serialize};

use crate::disturbance::disturbed_rounds;
use crate::history::History;
use crate::variant::VariantRuns;
use check::{ComparisonFault, alike};

/// The version of the JSON that is written and read.
pub const SCHEMA: &str = "cosched-compare/4";

/// The versions before, which had other keys, and are still read.
const EARLIER_SCHEMAS: [&str; 2] = ["cosched-compare/2", "cosched-compare/3"];
/// Simulated variants that differ by less are called equal.
const NEGLIGIBLE: f64 = 0.005;

/// Several variants, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine on which it was measured.
    pub machine: MachineDescription,
    /// Whether that machine was simulated.
    #[serde(default)]
    pub simulated: bool,
    /// Complete rounds.
    pub rounds: usize,
    /// Whether it was ended before its last round.
    pub interrupted: bool,
    /// Whether its rounds are in a folder, so that it can be continued.
    #[serde(skip)]
    pub can_continue: bool,
    /// The rounds, counted from 1, in which other processes took CPU time that matters; older
    /// documents lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed_rounds: Vec<usize>,
    /// One per variant; the others are compared with the first one.
    #[serde(alias = "ways")]
    pub variants: Vec<Compared>,
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Its name.
    #[serde(rename = "variant", alias = "way")]
    pub name: String,
    /// The policy and the options that were given for this variant only, where there are any.
    #[serde(default, alias = "asked")]
    pub options: Option<String>,
    /// The policy that decided in place of the variant's, where programs could not take turns by
    /// weight; older documents lack it.
    #[serde(default)]
    pub decided_by: Option<String>,
    /// How programs were frozen and bound to CPUs.
    #[serde(alias = "rungs")]
    pub backends: Backends,
    /// From the first start to the last end.
    pub total_seconds: Estimate,
    /// Total time / sum of the programs' solo times in the same round; `None` where those are
    /// unknown.
    pub ratio_to_solo_sum: Option<Estimate>,
    /// Mean time from a program's arrival to its end.
    pub mean_turnaround_seconds: Option<Estimate>,
    /// Largest slowdown / smallest slowdown.
    pub unfairness: Option<Estimate>,
    /// Sum of the programs' speed-ups by CPU time; older documents lack it.
    #[serde(default)]
    pub extended_weighted_speedup: Option<Estimate>,
    /// The longest single freeze of any program.
    pub responsiveness_longest_gap_seconds: Estimate,
    /// The longest single wait of any program, for its start or frozen; older documents lack it.
    #[serde(default)]
    pub longest_wait_seconds: Option<Estimate>,
    /// 0 to 1.
    pub cpu_utilisation: Estimate,
    /// CPU time of cosched itself, in percent of one CPU.
    pub own_cpu_percent: Estimate,
    /// Programs that failed, in all rounds.
    pub failed: usize,
    /// Deviations from the plan, in all rounds.
    pub deviations: usize,
    /// The comparison with the first variant; `None` for the first one itself.
    pub against: Option<Against>,
    /// The figures of each round.
    pub samples: RoundFigures,
}

/// A variant compared with another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The other one's name.
    #[serde(alias = "way")]
    pub variant: String,
    /// Total time / its total time, pair by pair.
    pub total_ratio: Estimate,
    /// The verdict on total time.
    pub verdict: Verdict,
    /// Mean turnaround / its mean turnaround, pair by pair.
    pub turnaround_ratio: Option<Estimate>,
    /// The verdict on mean turnaround.
    pub turnaround_verdict: Option<Verdict>,
    /// Whether as many programs failed in both variants; if not, there is no verdict.
    #[serde(default = "yes")]
    pub failed_alike: bool,
}

/// The figures of each round, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundFigures {
    /// From the first start to the last end.
    pub total_seconds: Vec<f64>,
    /// The sum of the programs' solo times.
    pub solo_sum_seconds: Vec<Option<f64>>,
    /// Mean time from a program's arrival to its end.
    pub mean_turnaround_seconds: Vec<Option<f64>>,
    /// Largest slowdown / smallest slowdown.
    pub unfairness: Vec<Option<f64>>,
    /// Sum of the programs' speed-ups by CPU time; older documents lack it.
    #[serde(default)]
    pub extended_weighted_speedup: Vec<Option<f64>>,
    /// The longest single freeze of any program.
    pub responsiveness_longest_gap_seconds: Vec<f64>,
    /// The longest single wait of any program, for its start or frozen.
    #[serde(default)]
    pub longest_wait_seconds: Vec<f64>,
    /// 0 to 1.
    pub cpu_utilisation: Vec<f64>,
    /// CPU time of cosched itself, in percent of one CPU.
    pub own_cpu_percent: Vec<f64>,
}

/// Why runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and fields mean")]
pub enum Incomparable {
    #[error("there is no run")]
    NoRun,
    #[error("the variants have different numbers of runs")]
    Rounds,
    #[error("the runs have different programs")]
    Programs,
    #[error("{program} is {} in {}, and {} in {}", one.1, one.0, other.1, other.0)]
    Work {
        program: String,
        /// A variant, and what the program does in it.
        one: (String, String),
        /// Another one.
        other: (String, String),
    },
    #[error("runs of {variant} differ in their {setting}")]
    Settings {
        variant: String,
        /// The setting that differs, by its name in run.json.
        setting: &'static str,
    },
    #[error("{} is of {}, and {} of {}", one.0, one.1, other.0, other.1)]
    Machines {
        /// A variant, and its machine in words.
        one: (String, String),
        /// Another one.
        other: (String, String),
    },
    #[error("{variant} was interrupted ({signal})")]
    Interrupted { variant: String, signal: String },
}

/// Why a comparison could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and fields mean")]
pub enum ComparisonError {
    #[error(
        "is no comparison with the schema '{SCHEMA}'; name a folder of runs, or what `cosched \
         compare --json` printed"
    )]
    OtherSchema,
    #[error("is damaged: {0}; compare again")]
    Damaged(String),
    #[error(
        "{} {}; no comparison can be like this, so the file is damaged: compare again",
        fault.0,
        fault.1
    )]
    Impossible { fault: ComparisonFault },
}

impl Comparison {
    /// Reads what `cosched compare --json` printed.
    ///
    /// # Errors
    /// When it is not JSON, has a schema that cannot be read, lacks a field, or has an impossible
    /// value.
    pub fn parse(text: &str) -> Result<Comparison, ComparisonError> {
        Comparison::of_json(json::read(text.as_bytes()).map_err(ComparisonError::Damaged)?)
    }

    /// Reads a comparison from parsed JSON.
    ///
    /// # Errors
    /// Those of [`Comparison::parse`].
    pub fn of_json(value: serde_json::Value) -> Result<Comparison, ComparisonError> {
        if value["schema"] != SCHEMA && !EARLIER_SCHEMAS.iter().any(|it| value["schema"] == *it) {
            return Err(ComparisonError::OtherSchema);
        }
        let mut comparison: Comparison = json::of_value(value).map_err(ComparisonError::Damaged)?;
        comparison.schema = SCHEMA.to_owned();
        // Older documents call too few rounds no difference.
        for against in comparison.variants.iter_mut().filter_map(|it| it.against.as_mut()) {
            if against.total_ratio.interval.is_none() {
                against.verdict = Verdict::TooFewRounds;
            }
            if against.turnaround_ratio.is_some_and(|ratio| ratio.interval.is_none()) {
                against.turnaround_verdict = Some(Verdict::TooFewRounds);
            }
        }
        match check::printed(&comparison) {
            Ok(()) => Ok(comparison),
            Err(fault) => Err(ComparisonError::Impossible { fault }),
        }
    }

    /// Compares variants by their runs. The caller has to say whether rounds are missing.
    ///
    /// # Errors
    /// Unless all runs are complete, of one workload and on one machine, and each variant has as
    /// many.
    pub fn of(variants: &[VariantRuns]) -> Result<Comparison, Incomparable> {
        alike(variants)?;
        Comparison::of_checked(variants).ok_or(Incomparable::NoRun)
    }

    fn of_checked(variants: &[VariantRuns]) -> Option<Comparison> {
        let first = variants.first()?;
        let rounds = first.runs.len();
        let model = first.runs.first()?;
        let samples = RoundFigures::of(&first.runs);
        let compared = variants.iter().enumerate();
        let first = First { variant: first, failed: failures(&first.runs), samples };
        let compared =
            compared.map(|(i, variant)| Compared::of(variant, (i > 0).then_some(&first)));
        Some(Comparison {
            schema: SCHEMA.to_owned(),
            machine: model.machine.clone(),
            simulated: model.machine.is_simulated(),
            rounds,
            interrupted: false,
            can_continue: false,
            disturbed_rounds: disturbed_rounds(variants),
            variants: compared.collect::<Option<_>>()?,
        })
    }
}

/// The value for documents that lack the field.
fn yes() -> bool {
    true
}

/// The variant with which the others are compared.
struct First<'a> {
    variant: &'a VariantRuns,
    /// Programs that failed, over all rounds.
    failed: usize,
    samples: RoundFigures,
}

fn failures(runs: &[RunResult]) -> usize {
    let programs = runs.iter().flat_map(|run| &run.programs);
    programs.filter(|program| program.exit != Some(Exit::Code(0))).count()
}

impl Compared {
    fn of(variant: &VariantRuns, first: Option<&First<'_>>) -> Option<Compared> {
        let samples = RoundFigures::of(&variant.runs);
        let failed = failures(&variant.runs);
        let against = match first {
            Some(first) => Some(Against::of(variant, &samples, failed, first)?),
            None => None,
        };
        let median_of_known =
            |samples: &[Option<f64>]| known(samples).and_then(|known| median_estimate(&known));
        Some(Compared {
            name: variant.name.clone(),
            options: None,
            decided_by: variant.runs.iter().find_map(|run| run.decided_by.clone()),
            backends: variant.runs.first()?.backends.clone(),
            total_seconds: median_estimate(&samples.total_seconds)?,
            ratio_to_solo_sum: known(&samples.solo_sum_seconds)
                .and_then(|solo| ratio_estimate(&samples.total_seconds, &solo)),
            mean_turnaround_seconds: median_of_known(&samples.mean_turnaround_seconds),
            unfairness: median_of_known(&samples.unfairness),
            extended_weighted_speedup: median_of_known(&samples.extended_weighted_speedup),
            responsiveness_longest_gap_seconds: median_estimate(
                &samples.responsiveness_longest_gap_seconds,
            )?,
            longest_wait_seconds: median_estimate(&samples.longest_wait_seconds),
            cpu_utilisation: median_estimate(&samples.cpu_utilisation)?,
            own_cpu_percent: median_estimate(&samples.own_cpu_percent)?,
            failed,
            deviations: variant.runs.iter().map(|run| run.deviations.len()).sum(),
            against,
            samples,
        })
    }
}

impl Against {
    fn of(
        variant: &VariantRuns,
        own: &RoundFigures,
        failed: usize,
        first: &First<'_>,
    ) -> Option<Against> {
        let total_ratio = comparison(&own.total_seconds, &first.samples.total_seconds)?;
        let turnarounds =
            known(&own.mean_turnaround_seconds).zip(known(&first.samples.mean_turnaround_seconds));
        let turnaround_ratio = turnarounds.and_then(|(own, first)| comparison(&own, &first));
        let failed_alike = failed == first.failed;
        let simulated = variant.runs.first().is_some_and(|run| run.machine.is_simulated());
        let says = |ratio: Estimate| judged(ratio, failed_alike, simulated);
        Some(Against {
            variant: first.variant.name.clone(),
            total_ratio,
            verdict: says(total_ratio),
            turnaround_ratio,
            turnaround_verdict: turnaround_ratio.map(says),
            failed_alike,
        })
    }
}

/// What a ratio of times shows, unless different numbers of programs failed on its two sides.
fn judged(ratio: Estimate, failed_alike: bool, simulated: bool) -> Verdict {
    // Simulated runs have no noise, so an interval may be narrower than anything that matters.
    match simulated && (ratio.value - 1.0).abs() < NEGLIGIBLE {
        _ if ratio.interval.is_none() => Verdict::TooFewRounds,
        false if failed_alike => ratio.verdict(),
        _ => Verdict::NoDifference,
    }
}

impl RoundFigures {
    fn of(runs: &[RunResult]) -> RoundFigures {
        fn each<T>(runs: &[RunResult], figure: impl Fn(&RunResult) -> T) -> Vec<T> {
            runs.iter().map(figure).collect()
        }
        RoundFigures {
            total_seconds: each(runs, |run| run.total_seconds),
            solo_sum_seconds: each(runs, solo_sum),
            mean_turnaround_seconds: each(runs, |run| run.metrics.mean_turnaround_seconds),
            unfairness: each(runs, |run| run.metrics.unfairness),
            extended_weighted_speedup: each(runs, |run| run.metrics.extended_weighted_speedup),
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

/// The sum of the solo times. `None` if one is unknown, or if a program ran on as a co-runner after
/// it was done: then the run holds more work.
fn solo_sum(run: &RunResult) -> Option<f64> {
    let solo = run.programs.iter().map(|program| {
        let done = program.arrived_seconds + program.turnaround_seconds?;
        let last = program.timeline.last().map_or(0.0, |span| span.1);
        // Times are rounded to microseconds.
        program.solo_seconds.filter(|_| last <= done + 2e-6)
    });
    solo.sum()
}
