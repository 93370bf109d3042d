//! A comparison for people: a table, and a sentence for each way.

use comfy_table::Table;
use cosched_core::engine::outcome::Ended;
use cosched_core::statistics::{Estimate, FEWEST_TO_COMPARE};
use cosched_report::comparison::Compared;
use cosched_report::{Comparison, molding, silence};

use super::Experiment;
use crate::{deviations, table};

/// The table and the sentences of an experiment.
pub(crate) fn show(comparison: &Comparison, experiment: &Experiment) -> String {
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
    for way in &comparison.ways {
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
    let simulated = comparison.simulated.then(|| {
        let model = comparison.machine.model.as_deref().unwrap_or("a machine without a name");
        format!("Simulated on {model}: no program was run. Each round has a seed of its own.")
    });
    let rounds = match comparison.rounds {
        n if comparison.interrupted => {
            let how = match experiment.ended {
                Ended::Interrupted(by) => format!("Interrupted ({})", by.name()),
                Ended::Complete => "Ended early by what went wrong".to_owned(),
            };
            match n {
                1 => format!("{how}: one complete round counts."),
                n => format!("{how}: {n} complete rounds count."),
            }
        }
        1 => "One run each: differences below a fifth mean nothing. `--runs 10` tells more."
            .to_owned(),
        n if n < FEWEST_TO_COMPARE => {
            format!("Medians of {n} interleaved runs each; verdicts take {FEWEST_TO_COMPARE}.")
        }
        n => format!(
            "Medians of {n} interleaved runs each, with 95 % intervals; comparisons have intervals of 98 %."
        ),
    };
    let longest = "'longest freeze' is the longest time that any program was frozen at a stretch; waiting to begin is not in it.";
    let sentences = comparison.ways.iter().filter_map(Compared::sentence);
    let deviated = experiment.ways.iter().flat_map(|way| {
        let told = [
            deviations::sentences(&way.runs),
            silence::sentences(&way.runs),
            molding::sentences(&way.runs),
        ];
        let told = told.into_iter().flatten();
        told.map(move |sentence| format!("{}: {sentence}", way.name))
    });
    let lines = [format!("{shown}")].into_iter().chain(simulated);
    let asked = comparison
        .ways
        .iter()
        .filter_map(|way| Some(format!("{}: {}.", way.way, way.asked.as_ref()?)));
    let lines = lines.chain([rounds, longest.to_owned()]).chain(asked);
    let failures = experiment.failures.iter().cloned();
    let lines = lines.chain(sentences).chain(failures).chain(deviated);
    lines.collect::<Vec<_>>().join("\n")
}

/// A figure with its interval.
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
