//! A comparison for people: a table, and a sentence for each variant.

use comfy_table::Cell;
use cosched_core::engine::outcome::Ended;
use cosched_report::comparison::{Compared, RoundFigures};
use cosched_report::{Comparison, disturbance, molding, silence};
use cosched_results::result::{ProgramResult, RunResult};
use cosched_results::statistics::{Estimate, FEWEST_TO_COMPARE, median_estimate};

use super::Experiment;
use crate::deviations;
use crate::ui::table;

/// The table and the sentences of an experiment; the last one is the verdict.
pub fn show(comparison: &Comparison, experiment: &Experiment) -> String {
    let runs = || experiment.variants.iter().flat_map(|variant| &variant.runs);
    let impossible = disturbance::impossible_solos(runs());
    let (columns, pauses) = columns(comparison);
    let mut shown = table::table(&columns.iter().map(|(header, _)| *header).collect::<Vec<_>>());
    for variant in &comparison.variants {
        shown.add_row(columns.iter().map(|(_, cell)| cell(variant)));
    }
    let longest = "'longest pause' is the longest time that any program was paused at a stretch; \
                   waiting to begin is not in it.";
    let options = comparison
        .variants
        .iter()
        .filter_map(|variant| Some(format!("{}: {}.", variant.name, variant.options.as_ref()?)));
    let lines = [shown.to_string()].into_iter().chain(simulated(comparison));
    let lines = lines.chain([rounds(comparison, experiment)]);
    let lines = lines.chain(solo_times(&experiment.variants));
    let lines = lines.chain(pauses.then(|| longest.to_owned())).chain(options);
    let lines = lines.chain(comparison.sentences()).chain(experiment.failures.iter().cloned());
    let lines = lines.chain(of_variants(&experiment.variants)).chain(impossible);
    let lines = lines.chain(disturbance::disturbed_rounds_in_words(&experiment.variants));
    lines.chain(comparison.verdict_below_lines()).collect::<Vec<_>>().join("\n")
}

type SummaryColumn = (&'static str, Box<dyn Fn(&Compared) -> Cell>);

/// The columns that say something, and whether pauses are among them. What is known of no variant
/// has no column.
fn columns(comparison: &Comparison) -> (Vec<SummaryColumn>, bool) {
    fn column(header: &'static str, cell: impl Fn(&Compared) -> String + 'static) -> SummaryColumn {
        (header, Box::new(move |variant| table::number(cell(variant))))
    }
    let any = |known: fn(&Compared) -> bool| comparison.variants.iter().any(known);
    let pauses = any(|variant| variant.responsiveness_longest_gap_seconds.value > 0.0);
    let mut columns: Vec<SummaryColumn> = vec![
        ("variant", Box::new(|variant| table::text(&variant.name))),
        column("total s", |variant| {
            spread(variant.total_seconds, &variant.samples.total_seconds, 2)
        }),
    ];
    if any(|variant| variant.ratio_to_solo_sum.is_some()) {
        columns.push(column("/ sum of solo", |variant| {
            let RoundFigures { total_seconds, solo_sum_seconds, .. } = &variant.samples;
            let rounds = total_seconds.iter().zip(solo_sum_seconds);
            let ratios = rounds.map(|(total, solo)| solo.map(|solo| total / solo));
            maybe(variant.ratio_to_solo_sum, &ratios.collect::<Vec<_>>(), 3)
        }));
    }
    if any(|variant| variant.mean_turnaround_seconds.is_some()) {
        columns.push(column("mean turnaround s", |variant| {
            maybe(variant.mean_turnaround_seconds, &variant.samples.mean_turnaround_seconds, 2)
        }));
    }
    if any(|variant| variant.unfairness.is_some()) {
        columns.push(column("unfairness", |variant| {
            maybe(variant.unfairness, &variant.samples.unfairness, 2)
        }));
    }
    if pauses {
        let longest = |variant: &Compared| {
            let samples = &variant.samples.responsiveness_longest_gap_seconds;
            spread(variant.responsiveness_longest_gap_seconds, samples, 2)
        };
        columns.push(column("longest pause s", longest));
    }
    columns.push(column("CPU use %", |variant| {
        format!("{:.0}", variant.cpu_utilisation.value * 100.0)
    }));
    columns.push(column("failed", |variant| variant.failed.to_string()));
    (columns, pauses)
}

fn simulated(comparison: &Comparison) -> Option<String> {
    let model = comparison.machine.model.as_deref().unwrap_or("a machine without a name");
    let text =
        format!("Simulated on {model}: no program was run. Each round has a seed of its own.");
    comparison.simulated.then_some(text)
}

/// How many rounds count, and what these can show.
fn rounds(comparison: &Comparison, experiment: &Experiment) -> String {
    match comparison.rounds {
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
        1 => "One run each: any difference may be chance.".to_owned(),
        n if comparison.variants.iter().any(|variant| variant.total_seconds.interval.is_none()) => {
            format!("Medians of {n} interleaved runs each, with the least and the most.")
        }
        n if n < FEWEST_TO_COMPARE => {
            format!("Medians of {n} interleaved runs each, with 95 % intervals.")
        }
        n => format!(
            "Medians of {n} interleaved runs each, with 95 % intervals. Ratios have 98 % \
             intervals, so that chance is rarely taken for a difference."
        ),
    }
}

/// The solo times that were measured in the rounds, be they used or not.
fn solo_times(variants: &[cosched_report::VariantRuns]) -> Option<String> {
    let runs = || variants.iter().flat_map(|variant| &variant.runs).filter(|run| run.solo_runs);
    let mut times: Vec<String> = Vec::new();
    for program in &runs().next()?.programs {
        let same =
            |run: &RunResult| run.programs.iter().find(|it| it.name == program.name).cloned();
        let solo = |it: ProgramResult| it.solo_seconds.or(it.rejected_solo_seconds);
        // All variants of a round have one solo time; a variant may lack it.
        let known = variants.iter().map(|variant| {
            variant.runs.iter().filter_map(same).filter_map(solo).collect::<Vec<f64>>()
        });
        let samples = known.max_by_key(Vec::len).unwrap_or_default();
        let time = median_estimate(&samples).map(|median| spread(median, &samples, 2));
        times.extend(time.map(|time| format!("{} {time} s", program.name)));
    }
    (!times.is_empty()).then(|| format!("Solo times: {}.", times.join(", ")))
}

/// Deviations and choices, with all variants of which it is true.
fn of_variants(variants: &[cosched_report::VariantRuns]) -> Vec<String> {
    let mut listed: Vec<(String, Vec<&str>)> = Vec::new();
    for variant in variants {
        let sentences = [
            deviations::sentences(&variant.runs),
            silence::sentences(&variant.runs),
            molding::sentences(&variant.runs),
        ];
        for sentence in sentences.into_iter().flatten() {
            match listed.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, names)) => names.push(&variant.name),
                None => listed.push((sentence, vec![&variant.name])),
            }
        }
    }
    listed.iter().map(|(sentence, names)| format!("{}: {sentence}", names.join(", "))).collect()
}

/// A figure with its interval; with the least and the most of few rounds.
fn spread(estimate: Estimate, samples: &[f64], digits: usize) -> String {
    let Estimate { value, interval } = estimate;
    let least = samples.iter().copied().min_by(f64::total_cmp);
    let most = samples.iter().copied().max_by(f64::total_cmp);
    match interval.or(least.zip(most).filter(|_| samples.len() > 1)) {
        Some((low, high)) => format!("{value:.digits$} ({low:.digits$}–{high:.digits$})"),
        None => format!("{value:.digits$}"),
    }
}

fn maybe(estimate: Option<Estimate>, samples: &[Option<f64>], digits: usize) -> String {
    let known: Vec<f64> = samples.iter().flatten().copied().collect();
    estimate.map_or("–".to_owned(), |estimate| spread(estimate, &known, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_are_shown_with_the_least_and_the_most() {
        let estimate = |interval| Estimate { value: 4.0, interval };
        assert_eq!(spread(estimate(None), &[4.5, 3.0, 4.0], 1), "4.0 (3.0–4.5)");
        assert_eq!(spread(estimate(Some((3.5, 4.2))), &[4.5, 3.0], 1), "4.0 (3.5–4.2)");
        assert_eq!(spread(estimate(None), &[4.0], 1), "4.0");
        assert_eq!(maybe(None, &[None], 1), "–");
        assert_eq!(maybe(Some(estimate(None)), &[Some(3.0), Some(5.0)], 1), "4.0 (3.0–5.0)");
    }
}
