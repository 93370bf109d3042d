//! How far the model is from the machine: the errors, and which orders of policies it gets wrong.

use cosched_core::format::count;
use cosched_results::result::{MachineDescription, RunResult};
use cosched_results::statistics::{Estimate, median, median_estimate};
use serde::Serialize;

use super::constants::Constants;
use crate::ui::table;

const SCHEMA: &str = "cosched-sim-check/2";

/// The figures of a run that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ComparedFigures([Option<f64>; 4]);

/// Their names, in that order; the first two are times, by which policies are put in order.
const METRICS: [&str; 4] =
    ["total_seconds", "mean_turnaround_seconds", "switches_per_second", "unfairness"];
/// The same for people.
const METRICS_IN_WORDS: [&str; 4] =
    ["total time", "mean turnaround", "switches per second", "unfairness"];
const TIMES: usize = 2;
/// An interval is wide if it is this share of what it belongs to.
const SCATTERED: f64 = 0.5;

impl ComparedFigures {
    /// The same with so many switches more.
    pub(super) fn with_switches(self, more: f64) -> ComparedFigures {
        let ComparedFigures([total, turnaround, switches, unfairness]) = self;
        let more = total.map(|total| more / total);
        ComparedFigures([total, turnaround, switches.zip(more).map(|(a, b)| a + b), unfairness])
    }

    pub(super) fn of(result: &RunResult) -> ComparedFigures {
        let switches = |program: &cosched_results::result::ProgramResult| {
            program.usage.voluntary_switches + program.usage.involuntary_switches
        };
        let switches: u64 = result.programs.iter().map(switches).sum();
        ComparedFigures([
            Some(result.total_seconds),
            result.metrics.mean_turnaround_seconds,
            Some(switches as f64 / result.total_seconds),
            result.metrics.unfairness,
        ])
    }
}

/// A workload under a policy: what each live run gave, and each simulated one.
#[derive(Clone, Debug, Default)]
pub(super) struct FigureSamples {
    pub(super) live: Vec<ComparedFigures>,
    pub(super) simulated: Vec<ComparedFigures>,
}

/// One figure of a workload under a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Cell {
    metric: &'static str,
    /// The median of the live runs.
    live: Estimate,
    /// The median over the seeds.
    simulated: f64,
    /// How far that is from the live figure, as a share of the live figure.
    error: f64,
    /// Whether it lies within the live interval.
    within: bool,
    /// Whether the live runs differ so much among themselves that their median says little: the
    /// interval is wider than half of it.
    scattered: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct PolicyRow {
    policy: String,
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct WorkloadSection {
    workload: String,
    rows: Vec<PolicyRow>,
    /// Pairs of policies that live runs distinguish in a metric.
    distinguishable: usize,
    wrong: Vec<WrongOrder>,
}

/// Two policies that the model puts in another order than the live runs, with intervals that do
/// not overlap.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct WrongOrder {
    metric: &'static str,
    faster: String,
    slower: String,
    live: [f64; 2],
    simulated: [f64; 2],
}

/// A program alone: how far its model is without co-runners.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SoloError {
    pub(super) program: String,
    pub(super) live_seconds: f64,
    pub(super) simulated_seconds: f64,
    error: f64,
}

impl SoloError {
    /// `None` without a live run.
    pub(super) fn new(program: String, live: &[f64], simulated_seconds: f64) -> Option<SoloError> {
        let live_seconds = median(live)?;
        let error = relative_error(live_seconds, simulated_seconds);
        Some(SoloError { program, live_seconds, simulated_seconds, error })
    }
}

#[derive(Debug, Serialize)]
pub(super) struct CheckReport {
    schema: &'static str,
    machine: MachineDescription,
    /// How often each workload ran under each policy.
    rounds: usize,
    /// What the models of the kernels were made with.
    constants: Constants,
    alone: Vec<SoloError>,
    sections: Vec<WorkloadSection>,
    /// Over all workloads, policies and metrics; shares.
    median_error: f64,
    worst_error: f64,
    /// For each metric, its median error.
    median_error_of: Vec<(&'static str, f64)>,
    /// Of all cells, the share within the live interval; and the worst error of those with live
    /// runs that agree.
    within: f64,
    worst_settled_error: f64,
    distinguishable: usize,
    wrong_orders: usize,
}

impl CheckReport {
    /// `samples` holds a list of policies for every workload.
    pub(super) fn new(
        machine: MachineDescription,
        constants: Constants,
        alone: Vec<SoloError>,
        samples: &[(String, Vec<(String, FigureSamples)>)],
    ) -> CheckReport {
        let sections: Vec<WorkloadSection> =
            samples.iter().map(|(workload, rows)| section(workload, rows)).collect();
        let cells = || sections.iter().flat_map(|s| &s.rows).flat_map(|row| &row.cells);
        let errors: Vec<f64> = cells().map(|cell| cell.error).collect();
        let of = |metric: &'static str| {
            let own = cells().filter(|cell| cell.metric == metric).map(|cell| cell.error);
            Some((metric, median(&own.collect::<Vec<f64>>())?))
        };
        let rounds = samples.iter().flat_map(|(_, rows)| rows).map(|(_, own)| own.live.len());
        CheckReport {
            schema: SCHEMA,
            machine,
            rounds: rounds.min().unwrap_or(0),
            constants,
            alone,
            median_error: median(&errors).unwrap_or(0.0),
            worst_error: errors.iter().copied().fold(0.0, f64::max),
            within: cells().filter(|cell| cell.within).count() as f64 / errors.len().max(1) as f64,
            worst_settled_error: cells()
                .filter(|cell| !cell.scattered)
                .map(|cell| cell.error)
                .fold(0.0, f64::max),
            median_error_of: METRICS.into_iter().filter_map(of).collect(),
            distinguishable: sections.iter().map(|section| section.distinguishable).sum(),
            wrong_orders: sections.iter().map(|section| section.wrong.len()).sum(),
            sections,
        }
    }

    /// The tables, and the line that says it all.
    pub(super) fn show(&self) -> String {
        let mut parts = Vec::new();
        let mut shown = table::table(&["program alone", "live s", "model s", "error %"]);
        for alone in &self.alone {
            shown.add_row([
                table::text(&alone.program),
                table::number(format!("{:.3}", alone.live_seconds)),
                table::number(format!("{:.3}", alone.simulated_seconds)),
                table::number(percent(alone.error)),
            ]);
        }
        parts.push(shown.to_string());
        let header = ["workload", "policy", "total s", "turnaround s", "switches /s", "unfairness"];
        let mut shown = table::table(&header);
        for section in &self.sections {
            for (i, row) in section.rows.iter().enumerate() {
                let name = if i == 0 { section.workload.as_str() } else { "" };
                let mut cells = vec![table::text(name), table::text(&row.policy)];
                cells.extend(METRICS.map(|metric| {
                    let cell = row.cells.iter().find(|cell| cell.metric == metric);
                    table::number(cell.map_or("–".to_owned(), Cell::text))
                }));
                shown.add_row(cells);
            }
        }
        parts.push(shown.to_string());
        parts.push(
            "Each figure: live, model, error in %; ~ marks live runs that scatter by more than \
             half of the figure."
                .to_owned(),
        );
        for section in &self.sections {
            parts.extend(section.wrong.iter().map(|wrong| wrong.sentence(&section.workload)));
        }
        let of = self.median_error_of.iter();
        let of: Vec<String> = of
            .map(|(metric, error)| format!("{} {} %", in_words(metric), percent(*error)))
            .collect();
        parts.push(format!(
            "Medians of {} each; distinguishable: {}. Median errors: \
             {}. {} % lie within \
             the live intervals; the worst error where live runs agree is {} %.",
            count(self.rounds, "run", "runs"),
            count(self.distinguishable, "pair of policies", "pairs of policies"),
            of.join(", "),
            percent(self.within),
            percent(self.worst_settled_error)
        ));
        parts.push(format!(
            "median error {} %, worst {} %, policy orders wrong: {}",
            percent(self.median_error),
            percent(self.worst_error),
            self.wrong_orders
        ));
        parts.join("\n")
    }
}

impl Cell {
    fn text(&self) -> String {
        let digits = if self.live.value < 10.0 { 3 } else { 0 };
        let (live, model) = (self.live.value, self.simulated);
        let mark = if self.scattered { "~" } else { "" };
        format!("{mark}{live:.digits$} {model:.digits$} {:>4}", percent(self.error))
    }
}

impl WrongOrder {
    fn sentence(&self, workload: &str) -> String {
        let WrongOrder { metric, faster, slower, live, simulated } = self;
        format!(
            "{workload}: {} of {faster} is below that of {slower} ({:.3} and {:.3}), but not in \
             the model ({:.3} and {:.3}).",
            in_words(metric),
            live[0],
            live[1],
            simulated[0],
            simulated[1]
        )
    }
}

fn in_words(metric: &str) -> &str {
    let words = METRICS.into_iter().zip(METRICS_IN_WORDS).find(|(name, _)| *name == metric);
    words.map_or(metric, |(_, words)| words)
}

fn section(workload: &str, samples: &[(String, FigureSamples)]) -> WorkloadSection {
    let rows: Vec<PolicyRow> = samples
        .iter()
        .map(|(policy, own)| {
            let cells = (0..METRICS.len()).filter_map(|metric| cell(metric, own));
            PolicyRow { policy: policy.clone(), cells: cells.collect() }
        })
        .collect();
    let mut section =
        WorkloadSection { workload: workload.to_owned(), rows, distinguishable: 0, wrong: vec![] };
    for metric in &METRICS[..TIMES] {
        let (distinguishable, wrong) = orders(metric, &section.rows);
        section.distinguishable += distinguishable;
        section.wrong.extend(wrong);
    }
    section
}

/// `None` where a figure is not known in every run.
fn cell(metric: usize, samples: &FigureSamples) -> Option<Cell> {
    let column = |figures: &[ComparedFigures]| -> Option<Vec<f64>> {
        figures.iter().map(|figures| figures.0[metric]).collect()
    };
    let live = median_estimate(&column(&samples.live)?)?;
    let simulated = median(&column(&samples.simulated)?)?;
    let error = relative_error(live.value, simulated);
    let (within, scattered) = live.interval.map_or((false, false), |(low, high)| {
        let within = (low..=high).contains(&simulated);
        (within, high - low > SCATTERED * live.value.abs())
    });
    Some(Cell { metric: METRICS[metric], live, simulated, error, within, scattered })
}

/// Of what was found, as a share of what is true; a truth of zero is missed by all of whatever was
/// found.
fn relative_error(truth: f64, found: f64) -> f64 {
    match truth == found {
        true => 0.0,
        false if truth == 0.0 => 1.0,
        false => (found - truth).abs() / truth.abs(),
    }
}

/// How many pairs of policies the live runs distinguish in a metric, and those of them that the
/// model puts in another order, or makes equal.
fn orders(metric: &'static str, rows: &[PolicyRow]) -> (usize, Vec<WrongOrder>) {
    let of = |row: &PolicyRow| row.cells.iter().find(|cell| cell.metric == metric).cloned();
    let known: Vec<(&str, Cell)> =
        rows.iter().filter_map(|row| Some((row.policy.as_str(), of(row)?))).collect();
    let (mut distinguishable, mut wrong) = (0, Vec::new());
    for (faster, a) in &known {
        for (slower, b) in &known {
            let (Some((_, high)), Some((low, _))) = (a.live.interval, b.live.interval) else {
                continue;
            };
            if high >= low {
                continue;
            }
            distinguishable += 1;
            if a.simulated >= b.simulated {
                wrong.push(WrongOrder {
                    metric,
                    faster: (*faster).to_owned(),
                    slower: (*slower).to_owned(),
                    live: [a.live.value, b.live.value],
                    simulated: [a.simulated, b.simulated],
                });
            }
        }
    }
    (distinguishable, wrong)
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(live: &[f64], simulated: &[f64]) -> FigureSamples {
        let figures = |times: &[f64]| {
            times
                .iter()
                .map(|time| ComparedFigures([Some(*time), Some(*time), Some(100.0), None]))
                .collect()
        };
        FigureSamples { live: figures(live), simulated: figures(simulated) }
    }

    fn report(rows: &[(&str, FigureSamples)]) -> CheckReport {
        let rows = rows.iter().map(|(policy, own)| ((*policy).to_owned(), own.clone())).collect();
        let machine = MachineDescription { cpus: 2, model: None, kernel: "6.18".into() };
        CheckReport::new(machine, Constants::default(), vec![], &[("w".to_owned(), rows)])
    }

    #[test]
    fn an_error_is_relative_to_the_live_median() {
        let report = report(&[("linux", samples(&[2.0, 9.0, 1.0], &[3.0, 2.5, 0.0]))]);
        let cells = &report.sections[0].rows[0].cells;
        assert_eq!((cells[0].live.value, cells[0].simulated, cells[0].error), (2.0, 2.5, 0.25));
        // Two times and a rate that is met; unfairness is not known.
        assert_eq!((cells.len(), report.median_error, report.worst_error), (3, 0.25, 0.25));
        assert_eq!(report.rounds, 3);
    }

    /// Their median says little, and the model can lie within their interval.
    #[test]
    fn scattered_live_runs_are_marked() {
        let settled = report(&[("linux", samples(&[2.0, 2.1, 2.0, 2.1, 2.2, 2.1], &[3.0]))]);
        let cell = &settled.sections[0].rows[0].cells[0];
        assert!(!cell.scattered && !cell.within);
        assert!((settled.worst_settled_error - 0.9 / 2.1).abs() < 1e-9);
        let scattered = report(&[("linux", samples(&[0.8, 4.0, 0.9, 3.8, 2.0, 2.0], &[3.0]))]);
        let cell = &scattered.sections[0].rows[0].cells[0];
        assert!(cell.scattered && cell.within && cell.text().starts_with("~2.000 3.000"));
        // What is left agrees: the rate, which is the same in all.
        assert_eq!(scattered.worst_settled_error, 0.0);
        assert!((scattered.within - 1.0).abs() < 1e-9);
    }

    /// Nothing instead of nothing is no error; something instead of nothing is the largest.
    #[test]
    fn errors_are_defined_where_the_live_median_is_zero() {
        assert_eq!(relative_error(0.0, 0.0), 0.0);
        assert_eq!(relative_error(0.0, 5.0), 1.0);
        assert_eq!(relative_error(4.0, 5.0), 0.25);
        assert_eq!(relative_error(4.0, 3.0), 0.25);
    }

    #[test]
    fn an_order_is_wrong_only_if_live_runs_differ() {
        let fast = &[1.0, 1.1, 1.0, 1.1, 1.0, 1.1];
        let slow = &[2.0, 2.1, 2.0, 2.1, 2.0, 2.1];
        let right = report(&[("a", samples(fast, &[1.3])), ("b", samples(slow, &[1.4]))]);
        assert_eq!((right.distinguishable, right.wrong_orders), (2, 0));
        let wrong = report(&[("a", samples(fast, &[1.4])), ("b", samples(slow, &[1.3]))]);
        assert_eq!((wrong.distinguishable, wrong.wrong_orders), (2, 2));
        assert_eq!(wrong.sections[0].wrong[0].faster, "a");
        let shown = wrong.show();
        for words in ["w: total time of a is below that of b (", "Median errors: total time 3"] {
            assert!(shown.contains(words) && !shown.contains("_seconds"), "{shown}");
        }
        let equal = report(&[("a", samples(fast, &[1.4])), ("b", samples(slow, &[1.4]))]);
        assert_eq!(equal.wrong_orders, 2);
        let low = &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let high = &[1.5, 2.5, 1.5, 2.5, 1.5, 2.5];
        let close = report(&[("a", samples(low, &[1.4])), ("b", samples(high, &[1.3]))]);
        assert_eq!((close.distinguishable, close.wrong_orders), (0, 0));
        // Five runs tell nothing.
        let few = report(&[("a", samples(&fast[1..], &[1.4])), ("b", samples(&slow[1..], &[1.3]))]);
        assert_eq!((few.distinguishable, few.wrong_orders), (0, 0));
    }

    #[test]
    fn the_last_line_says_it_all() {
        let report = report(&[("linux", samples(&[2.0], &[2.5]))]);
        let shown = report.show();
        assert_eq!(
            shown.lines().last(),
            Some("median error 25.0 %, worst 25.0 %, policy orders wrong: 0")
        );
    }
}
