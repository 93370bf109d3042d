//! Advice as a table and as JSON.

use cosched_policy::advice::{Candidate, Prediction};
use cosched_results::result::RunResult;
use serde::Serialize;

use super::Advice;
use crate::ui::table;

const SCHEMA: &str = "cosched-advise/2";

#[derive(Serialize)]
struct AdviceDocument<'a> {
    schema: &'static str,
    policy: String,
    cpus: usize,
    programs: Vec<AdvisedProgram<'a>>,
    requested: PredictionDocument,
    advised: PredictionDocument,
    /// Total time as requested against total time as advised: above 1 is a gain.
    gain: f64,
    /// The run that was made with these counts.
    applied: Option<&'a RunResult>,
}

#[derive(Serialize)]
struct AdvisedProgram<'a> {
    name: &'a str,
    command: &'a [String],
    requested_threads: u16,
    threads: u16,
    alone: Vec<AloneDocument>,
    requested_turnaround_seconds: f64,
    turnaround_seconds: f64,
    slowdown: f64,
}

#[derive(Serialize)]
struct AloneDocument {
    threads: u16,
    solo_seconds: f64,
    run_seconds: Vec<f64>,
    /// What disturbed the times, so that none was kept.
    disturbed: Option<String>,
}

#[derive(Serialize)]
struct PredictionDocument {
    total_seconds: f64,
    mean_turnaround_seconds: f64,
    unfairness: f64,
}

impl PredictionDocument {
    fn of(prediction: &Prediction) -> PredictionDocument {
        PredictionDocument {
            total_seconds: prediction.total_seconds,
            mean_turnaround_seconds: prediction.mean_turnaround_seconds(),
            unfairness: prediction.unfairness(),
        }
    }
}

/// The advice as JSON, with the run that was made of it.
pub(super) fn json(advice: &Advice<'_>, applied: Option<&RunResult>) -> String {
    let program = |i: usize| {
        let spec = &advice.workload.programs[i];
        let Candidate { speedup, rounds, .. } = &advice.candidates[i];
        let times = speedup.times().iter().enumerate();
        AdvisedProgram {
            name: &spec.name,
            command: &spec.command,
            requested_threads: advice.candidates[i].requested,
            threads: advice.counts[i],
            alone: times
                .map(|(count, (threads, solo))| AloneDocument {
                    threads: *threads,
                    solo_seconds: solo.as_secs_f64(),
                    run_seconds: rounds.iter().map(|r| r.times()[count].1.as_secs_f64()).collect(),
                    disturbed: advice.disturbed[i].get(count).cloned().flatten(),
                })
                .collect(),
            requested_turnaround_seconds: advice.requested.turnaround_seconds[i],
            turnaround_seconds: advice.advised.turnaround_seconds[i],
            slowdown: advice.advised.slowdowns[i],
        }
    };
    let document = AdviceDocument {
        schema: SCHEMA,
        policy: advice.policy.to_string(),
        cpus: advice.cpus,
        programs: (0..advice.counts.len()).map(program).collect(),
        requested: PredictionDocument::of(&advice.requested),
        advised: PredictionDocument::of(&advice.advised),
        gain: gain(advice),
        applied,
    };
    serde_json::to_string_pretty(&document).expect("there is no map, so it can be written as JSON")
}

impl Advice<'_> {
    /// How often each solo time was measured, at least.
    fn runs(&self) -> usize {
        let rounds = self.candidates.iter().map(|candidate| candidate.rounds.len());
        rounds.min().unwrap_or(0)
    }
}

fn gain(advice: &Advice<'_>) -> f64 {
    advice.requested.total_seconds / advice.advised.total_seconds
}

/// The advice for people: a row per program, and what is expected of it below.
pub(super) fn table(advice: &Advice<'_>) -> String {
    let header =
        ["program", "requests", "advised", "solo s, by threads", "turnaround s", "slowdown"];
    let mut table = table::figures(&header);
    for (i, spec) in advice.workload.programs.iter().enumerate() {
        let times = advice.candidates[i].speedup.times().iter();
        let times = times.enumerate().map(|(count, (n, solo))| {
            let disturbed = advice.disturbed[i].get(count).is_some_and(Option::is_some);
            format!("{n}: {:.3}{}", solo.as_secs_f64(), if disturbed { "*" } else { "" })
        });
        table.add_row([
            spec.name.clone(),
            advice.candidates[i].requested.to_string(),
            advice.counts[i].to_string(),
            times.collect::<Vec<_>>().join(", "),
            format!("{:.3}", advice.advised.turnaround_seconds[i]),
            format!("{:.2}", advice.advised.slowdowns[i]),
        ]);
    }
    let summary = |what: &str, prediction: &Prediction| {
        format!(
            "{what}: {:.2} s in all, mean turnaround {:.2} s, unfairness {:.2}.",
            prediction.total_seconds,
            prediction.mean_turnaround_seconds(),
            prediction.unfairness()
        )
    };
    let disturbed = advice.disturbed.iter().flatten().any(Option::is_some);
    let disturbed = disturbed
        .then(|| "The prediction rests on disturbed times. They are marked with *.".to_owned());
    let head = [
        table.to_string(),
        "Slowdown: turnaround / solo time with the requested threads. Below 1, fewer threads are \
         faster."
            .to_owned(),
    ];
    let prediction = [
        summary("As requested", &advice.requested),
        summary("As advised", &advice.advised),
        format!(
            "Predicted for {} on {} from solo times (medians of {}), without the costs of \
             caches and switches. --apply runs it.",
            advice.policy,
            cosched_report::words::count(advice.cpus, "CPU", "CPUs"),
            cosched_report::words::count(advice.runs(), "run", "runs"),
        ),
    ];
    let lines = head.into_iter().chain(disturbed).chain(prediction);
    lines.chain(advice.not_kept.iter().cloned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cosched_core::{Nanos, Speedup};
    use cosched_policy::Kind;
    use cosched_workload::Workload;

    use super::*;

    fn predicted() -> Prediction {
        Prediction { total_seconds: 1.0, turnaround_seconds: vec![1.0], slowdowns: vec![1.0] }
    }

    #[test]
    fn disturbed_times_are_named_before_the_advice() {
        let commands = vec![vec!["true".to_owned()]];
        let workload = Workload::from_commands(commands, Path::new("/tmp")).unwrap();
        let times = [(1, Nanos::from_secs(2)), (2, Nanos::from_secs(1))];
        let speedup = Speedup::new(&times).unwrap();
        let candidate = Candidate {
            arrives: Nanos::ZERO,
            runs: 1,
            requested: 2,
            speedup,
            cpu: None,
            rounds: vec![speedup],
        };
        let advice = |disturbed: Option<&str>| Advice {
            workload: &workload,
            policy: Kind::Gang,
            cpus: 2,
            candidates: vec![candidate.clone()],
            counts: vec![2],
            requested: predicted(),
            advised: predicted(),
            disturbed: vec![vec![None, disturbed.map(str::to_owned)]],
            not_kept: Vec::new(),
        };
        let shown = table(&advice(Some("other processes used 1.0 of 2 CPUs")));
        assert!(shown.contains("1: 2.000, 2: 1.000*"), "{shown}");
        let warning = "The prediction rests on disturbed times. They are marked with *.";
        let warned = shown.lines().position(|line| line == warning);
        let advised = shown.lines().position(|line| line.starts_with("As requested"));
        assert!(warned.is_some() && warned < advised, "{shown}");
        let shown = table(&advice(None));
        assert!(!shown.contains('*') && !shown.contains("disturbed"), "{shown}");
    }
}
