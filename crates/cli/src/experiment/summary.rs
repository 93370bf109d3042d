//! What the rounds of an experiment show: a figure with its interval for every way, and a verdict
//! against the first one.

use comfy_table::Table;
use cosched_core::Exit;
use cosched_core::result::{MachineDescription, RunResult, Rungs};
use cosched_core::statistics::{Estimate, Verdict, median_estimate, ratio_estimate};
use serde::Serialize;

use super::{Experiment, Way};
use crate::{deviations, table};

/// The version of the JSON document.
const SCHEMA: &str = "cosched-compare/2";

/// Several ways, compared.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    schema: &'static str,
    machine: MachineDescription,
    /// Complete rounds.
    rounds: usize,
    /// Whether it was ended before its last round.
    interrupted: bool,
    ways: Vec<Compared>,
}

/// One way.
#[derive(Debug, Serialize)]
struct Compared {
    way: String,
    /// How programs were frozen and bound.
    rungs: Rungs,
    /// From the first start to the last end.
    total_seconds: Estimate,
    /// That, over the sum of the times alone in the same round; `null` where those are unknown.
    ratio_to_solo_sum: Option<Estimate>,
    mean_turnaround_seconds: Option<Estimate>,
    /// Largest over smallest slowdown.
    unfairness: Option<Estimate>,
    /// The longest time that any program was frozen at a stretch.
    responsiveness_longest_gap_seconds: Estimate,
    /// 0 to 1.
    cpu_utilisation: Estimate,
    /// CPU time of cosched itself, in percent of one CPU.
    own_cpu_percent: Estimate,
    /// Programs that failed, over all rounds.
    failed: usize,
    /// How often something was not as wanted, over all rounds.
    deviations: usize,
    /// What that was, for people.
    #[serde(skip)]
    deviated: Vec<String>,
    /// Against the first way; `null` for the first one.
    against: Option<Against>,
    /// What each round gave.
    samples: Samples,
}

/// A way beside another one.
#[derive(Debug, Serialize)]
struct Against {
    way: String,
    /// Total time over total time, pair by pair.
    total_ratio: Estimate,
    verdict: Verdict,
    /// Mean turnaround over mean turnaround, pair by pair.
    turnaround_ratio: Option<Estimate>,
    turnaround_verdict: Option<Verdict>,
}

#[derive(Debug, Default, Serialize)]
struct Samples {
    total_seconds: Vec<f64>,
    solo_sum_seconds: Vec<Option<f64>>,
    mean_turnaround_seconds: Vec<Option<f64>>,
    unfairness: Vec<Option<f64>>,
    responsiveness_longest_gap_seconds: Vec<f64>,
    cpu_utilisation: Vec<f64>,
    own_cpu_percent: Vec<f64>,
}

impl Comparison {
    /// Sums up; `None` when no round is complete.
    pub(crate) fn of(
        experiment: &Experiment,
        ways: &[Way],
        machine: &MachineDescription,
        planned: u16,
    ) -> Option<Comparison> {
        let column = |i: usize| experiment.rounds.iter().map(move |results| &results[i]);
        let mut samples: Vec<Samples> = (0..ways.len()).map(|i| column(i).collect()).collect();
        if experiment.open_ended {
            samples.iter_mut().for_each(|own| own.solo_sum_seconds.fill(None));
        }
        let first = experiment.rounds.first()?;
        let compared = ways.iter().zip(samples.iter()).enumerate().map(|(i, (way, own))| {
            let against = (i > 0).then(|| against(ways[0], own, &samples[0])).flatten();
            let compared = Compared::new(*way, first[i].rungs.clone(), own, against)?;
            Some(Compared {
                failed: column(i).map(failures).sum(),
                deviations: column(i).map(|result| result.deviations.len()).sum(),
                deviated: deviations::sentences(column(i)),
                ..compared
            })
        });
        let compared = compared.collect::<Option<Vec<_>>>()?;
        let ways =
            compared.into_iter().zip(samples).map(|(way, samples)| Compared { samples, ..way });
        Some(Comparison {
            schema: SCHEMA,
            machine: machine.clone(),
            rounds: experiment.rounds.len(),
            interrupted: experiment.rounds.len() < usize::from(planned),
            ways: ways.collect(),
        })
    }

    /// A table, and a sentence for each way.
    pub(crate) fn show(&self) -> String {
        let header = [
            "way",
            "total s",
            "/ sum of solo",
            "mean turnaround s",
            "unfairness",
            "longest freeze s",
            "CPU use %",
            "failed",
        ];
        let mut shown: Table = table::table(&header);
        for way in &self.ways {
            shown.add_row([
                table::text(&way.way),
                table::number(spread(way.total_seconds, 2)),
                table::number(maybe(way.ratio_to_solo_sum, 3)),
                table::number(maybe(way.mean_turnaround_seconds, 2)),
                table::number(maybe(way.unfairness, 2)),
                table::number(spread(way.responsiveness_longest_gap_seconds, 2)),
                table::number(format!("{:.0}", way.cpu_utilisation.value * 100.0)),
                table::number(way.failed),
            ]);
        }
        let sentences = self.ways.iter().filter_map(Compared::sentence);
        let rounds = match self.rounds {
            n if self.interrupted => format!("Interrupted: {n} complete round(s) count."),
            1 => "One run each: differences below a fifth mean nothing. `--runs 10` tells more."
                .to_owned(),
            n @ ..6 => format!("Medians of {n} interleaved runs each; intervals take 6."),
            n => format!("Medians of {n} interleaved runs each, with 95 % intervals."),
        };
        let longest = "'longest freeze' is the longest time that any program was frozen at a stretch; waiting to begin is not in it.";
        let lines = [format!("{shown}"), rounds, longest.to_owned()];
        let deviated = self.ways.iter().flat_map(|way| {
            way.deviated.iter().map(move |sentence| format!("{}: {sentence}", way.way))
        });
        lines.into_iter().chain(sentences).chain(deviated).collect::<Vec<_>>().join("\n")
    }
}

impl Compared {
    fn new(way: Way, rungs: Rungs, own: &Samples, against: Option<Against>) -> Option<Compared> {
        let solo: Option<Vec<f64>> = own.solo_sum_seconds.iter().copied().collect();
        let every = |samples: &[Option<f64>]| -> Option<Estimate> {
            median_estimate(&samples.iter().copied().collect::<Option<Vec<f64>>>()?)
        };
        Some(Compared {
            way: way.to_string(),
            rungs,
            total_seconds: median_estimate(&own.total_seconds)?,
            ratio_to_solo_sum: solo.and_then(|solo| ratio_estimate(&own.total_seconds, &solo)),
            mean_turnaround_seconds: every(&own.mean_turnaround_seconds),
            unfairness: every(&own.unfairness),
            responsiveness_longest_gap_seconds: median_estimate(
                &own.responsiveness_longest_gap_seconds,
            )?,
            cpu_utilisation: median_estimate(&own.cpu_utilisation)?,
            own_cpu_percent: median_estimate(&own.own_cpu_percent)?,
            failed: 0,
            deviations: 0,
            deviated: Vec::new(),
            against,
            samples: Samples::default(),
        })
    }

    /// What a person wants to know.
    fn sentence(&self) -> Option<String> {
        let against = self.against.as_ref()?;
        let (value, other) = (against.total_ratio.value, &against.way);
        let (low, high) = against.total_ratio.interval?;
        let range = format!("{value:.2} of the total time ({low:.2} to {high:.2})");
        Some(match against.verdict {
            Verdict::Better => format!("{} is better than {other}: {range}.", self.way),
            Verdict::Worse => format!("{} is worse than {other}: {range}.", self.way),
            Verdict::NoDifference => format!(
                "{} against {other}: no difference that this many runs can show: {range}.",
                self.way
            ),
        })
    }
}

fn against(way: Way, own: &Samples, other: &Samples) -> Option<Against> {
    let total_ratio = ratio_estimate(&own.total_seconds, &other.total_seconds)?;
    let known = |samples: &Samples| -> Option<Vec<f64>> {
        samples.mean_turnaround_seconds.iter().copied().collect()
    };
    let turnaround_ratio =
        known(own).zip(known(other)).and_then(|(own, other)| ratio_estimate(&own, &other));
    Some(Against {
        way: way.to_string(),
        total_ratio,
        verdict: total_ratio.verdict(),
        turnaround_ratio,
        turnaround_verdict: turnaround_ratio.map(|ratio| ratio.verdict()),
    })
}

impl<'a> FromIterator<&'a RunResult> for Samples {
    fn from_iter<T: IntoIterator<Item = &'a RunResult>>(results: T) -> Samples {
        let mut samples = Samples::default();
        for result in results {
            let solo = result.programs.iter().map(|program| program.solo_seconds).sum();
            samples.total_seconds.push(result.total_seconds);
            samples.solo_sum_seconds.push(solo);
            samples.mean_turnaround_seconds.push(result.metrics.mean_turnaround_seconds);
            samples.unfairness.push(result.metrics.unfairness);
            samples
                .responsiveness_longest_gap_seconds
                .push(result.metrics.responsiveness_longest_gap_seconds);
            samples.cpu_utilisation.push(result.metrics.cpu_utilisation);
            samples.own_cpu_percent.push(result.own.cpu_percent);
        }
        samples
    }
}

fn failures(result: &RunResult) -> usize {
    result.programs.iter().filter(|program| program.exit != Some(Exit::Code(0))).count()
}

/// A figure, and half the width of its interval at its wider side.
fn spread(estimate: Estimate, digits: usize) -> String {
    let Estimate { value, interval } = estimate;
    match interval {
        Some((low, high)) => format!("{value:.digits$} ({low:.digits$}–{high:.digits$})"),
        None => format!("{value:.digits$}"),
    }
}

fn maybe(estimate: Option<Estimate>, digits: usize) -> String {
    estimate.map_or("–".to_owned(), |estimate| spread(estimate, digits))
}
