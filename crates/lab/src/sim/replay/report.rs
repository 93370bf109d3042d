//! What came of a replay: a table for people, JSON for scripts (docs/json.md).

use cosched_results::result::RunResult;
use cosched_sim::Hardware;
use cosched_workload::escaped;
use serde::Serialize;

use super::RecordedRun;
use super::program::{Replayed, SoloBasis};
use crate::sim::simulator::Scene;
use crate::ui::table::{known, number, table, text};

/// A model that is further off the total time of the record does not fit, percent...
const MOST_IN_ALL: f64 = 10.0;
/// ... or further off the time of any program.
const MOST_OF_A_PROGRAM: f64 = 25.0;

const SCHEMA: &str = "cosched-replay/1";

/// The recorded run, the model's version of it, and the answer.
#[derive(Debug, Serialize)]
pub(super) struct ReplayReport {
    schema: &'static str,
    /// The run, as it was named.
    run: String,
    machine: String,
    kernel: &'static str,
    seed: u64,
    recorded: ReplayFigures,
    model: ReplayFigures,
    /// Of the model against the record.
    error_percent: Errors,
    answer: ReplayFigures,
    programs: Vec<ReplayedProgram>,
    assumptions: Vec<String>,
}

/// One run as a whole; times in seconds.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ReplayFigures {
    policy: String,
    quantum_seconds: Option<f64>,
    placement: Option<String>,
    max_frozen_seconds: Option<f64>,
    total_seconds: f64,
    mean_turnaround_seconds: Option<f64>,
    unfairness: Option<f64>,
    cpu_utilisation: f64,
    #[serde(skip)]
    turnarounds: Vec<Option<f64>>,
}

/// How far the model is from the record, percent of the record.
#[derive(Debug, Serialize)]
struct Errors {
    total: Option<f64>,
    mean_turnaround: Option<f64>,
    unfairness: Option<f64>,
    cpu_utilisation: Option<f64>,
}

/// A program of the model, and what became of it in each run.
#[derive(Debug, Serialize)]
struct ReplayedProgram {
    name: String,
    threads: u16,
    runs: usize,
    cpu_seconds: f64,
    alone_seconds: f64,
    alone_from: SoloBasis,
    cut_cpu_seconds: f64,
    recorded_turnaround_seconds: Option<f64>,
    model_turnaround_seconds: Option<f64>,
    error_percent: Option<f64>,
    answer_turnaround_seconds: Option<f64>,
}

impl ReplayFigures {
    /// Of the record, or of a run of what was made from it.
    pub(super) fn of(run: &RunResult, programs: &[Replayed]) -> ReplayFigures {
        let of = |program: &Replayed| {
            let named = run.programs.iter().find(|known| known.name == program.spec.name);
            named.and_then(|known| known.turnaround_seconds)
        };
        ReplayFigures {
            policy: run.policy.clone(),
            quantum_seconds: run.quantum_seconds,
            placement: run.placement.clone(),
            max_frozen_seconds: run.max_frozen_seconds,
            total_seconds: run.total_seconds,
            mean_turnaround_seconds: run.metrics.mean_turnaround_seconds,
            unfairness: run.metrics.unfairness,
            cpu_utilisation: run.metrics.cpu_utilisation,
            turnarounds: programs.iter().map(of).collect(),
        }
    }
}

/// By how much of the record the model is off, in percent.
fn error(model: Option<f64>, recorded: Option<f64>) -> Option<f64> {
    let (model, recorded) = model.zip(recorded.filter(|value| *value > 0.0))?;
    Some(100.0 * (model / recorded - 1.0))
}

impl ReplayReport {
    pub(super) fn new(
        record: &RecordedRun,
        scene: &Scene,
        hardware: &Hardware,
        programs: &[Replayed],
        [recorded, model, answer]: [ReplayFigures; 3],
        assumptions: Vec<String>,
    ) -> ReplayReport {
        let program = |(i, program): (usize, &Replayed)| ReplayedProgram {
            name: program.spec.name.clone(),
            threads: program.job.model.threads,
            runs: record.result.programs[program.position].completions.len(),
            cpu_seconds: program.cpu_seconds,
            alone_seconds: program.alone_seconds,
            alone_from: program.basis,
            cut_cpu_seconds: program.cut_seconds,
            recorded_turnaround_seconds: recorded.turnarounds[i],
            model_turnaround_seconds: model.turnarounds[i],
            error_percent: error(model.turnarounds[i], recorded.turnarounds[i]),
            answer_turnaround_seconds: answer.turnarounds[i],
        };
        let error_percent = Errors {
            total: error(Some(model.total_seconds), Some(recorded.total_seconds)),
            mean_turnaround: error(model.mean_turnaround_seconds, recorded.mean_turnaround_seconds),
            unfairness: error(model.unfairness, recorded.unfairness),
            cpu_utilisation: error(Some(model.cpu_utilisation), Some(recorded.cpu_utilisation)),
        };
        ReplayReport {
            schema: SCHEMA,
            run: record.shown.clone(),
            machine: hardware.name.clone(),
            kernel: scene.kernel.name(),
            seed: scene.seed,
            programs: programs.iter().enumerate().map(program).collect(),
            recorded,
            model,
            error_percent,
            answer,
            assumptions,
        }
    }

    /// A row per figure, a row per program, and what was assumed.
    pub(super) fn show(&self) -> String {
        let recorded = format!("{} recorded", self.recorded.policy);
        let [model, answer] =
            [&self.recorded, &self.answer].map(|figures| format!("{} simulated", figures.policy));
        let header = ["", &recorded, &model, "error %", &answer];
        let columns = if self.answers_same() { header.len() - 1 } else { header.len() };
        let mut shown = table(&header[..columns]);
        let mut row = |name: &str, values: [Option<f64>; 3], error: Option<f64>, digits: usize| {
            let [recorded, model, answer] = values.map(|value| known(value, digits));
            let error = error.map_or("–".to_owned(), |percent| format!("{percent:+.1}"));
            let cells =
                [text(name), number(recorded), number(model), number(error), number(answer)];
            shown.add_row(cells.into_iter().take(columns));
        };
        let all = [&self.recorded, &self.model, &self.answer];
        let errors = &self.error_percent;
        row("total s", all.map(|run| Some(run.total_seconds)), errors.total, 2);
        let turnaround = all.map(|run| run.mean_turnaround_seconds);
        row("mean turnaround s", turnaround, errors.mean_turnaround, 2);
        row("unfairness", all.map(|run| run.unfairness), errors.unfairness, 2);
        let used = all.map(|run| Some(100.0 * run.cpu_utilisation));
        row("CPU use %", used, errors.cpu_utilisation, 0);
        for program in &self.programs {
            let times = [
                program.recorded_turnaround_seconds,
                program.model_turnaround_seconds,
                program.answer_turnaround_seconds,
            ];
            row(&format!("{} s", escaped(&program.name)), times, program.error_percent, 2);
        }
        let on = format!(
            "Simulated on the machine '{}'; the error is that of the model on the recorded run.",
            escaped(&self.machine)
        );
        let assumed = self.assumptions.iter().map(|what| format!("Assumed: {}.", escaped(what)));
        let next = self.answers_same().then(|| {
            "Next: name another policy with --policy, to see what it would have made of the run."
                .to_owned()
        });
        let last = self.misfit().into_iter().chain(next).collect();
        [vec![shown.to_string(), on], assumed.collect(), last].concat().join("\n")
    }

    /// What a model means that does not fit the recorded run; `None`: it fits.
    fn misfit(&self) -> Option<String> {
        let total = self.error_percent.total.unwrap_or_default().abs();
        let programs = self.programs.iter().filter_map(|program| program.error_percent);
        let program = programs.map(f64::abs).fold(0.0, f64::max);
        let of = match self.answers_same() {
            true => String::new(),
            false => format!(" for {}", self.answer.policy),
        };
        (total > MOST_IN_ALL || program > MOST_OF_A_PROGRAM).then(|| {
            format!(
                "The model's times are up to {:.0} % off for the recorded run, so its figures{of} \
                 say little.",
                total.max(program)
            )
        })
    }

    /// Whether the answer only repeats the model of the recorded run: the policy that is asked for
    /// is the recorded one, and no option changes what comes of it.
    fn answers_same(&self) -> bool {
        self.model == self.answer
    }
}
