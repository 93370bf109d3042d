//! What scripts may rely on.

use std::fs;
use std::io;

use cosched_core::engine::latest::Latest;
use cosched_core::engine::outcome::{
    Completion, Decision, Deviation, Earlier, Ended, Missing, NotStarted, Outcome, ProgramOutcome,
    Span,
};
use cosched_core::waits::Waits;
use cosched_core::{Interruption, Nanos, Quantum, Why};
use serde_json::{Value, json};

use super::*;

fn completion(at: Nanos, exit: Exit) -> Completion {
    let usage = Usage {
        user_seconds: 1.5,
        system_seconds: 0.5,
        voluntary_switches: 3,
        involuntary_switches: 4,
        max_rss_kib: 1024,
        ..Usage::default()
    };
    Completion { at, exit, usage }
}

/// A program: it came at 1 s, ran from 2 s on CPUs 0 and 1, was frozen from 3 s, ended at 6 s.
pub(super) fn outcome() -> Outcome {
    let (seconds, cpus) = (Nanos::from_secs, Some(CpuSet::first(2)));
    let program = ProgramOutcome {
        arrived: seconds(1),
        started: Some(seconds(2)),
        completions: vec![completion(seconds(6), Exit::Code(0))].into(),
        done: Some(seconds(6)),
        ran: seconds(2),
        waited: seconds(3),
        frozen: [seconds(2)].into_iter().collect(),
        timeline: vec![
            Span { from: seconds(2), to: Nanos(3_000_000_499), cpus },
            Span { from: seconds(5), to: seconds(6), cpus: None },
        ]
        .into(),
        ..ProgramOutcome::default()
    };
    let gang = Quantum { round: 1, gang: 0, gangs: 2, length: Nanos::from_millis(100) }.into();
    let turn = Reason { program: Some(ProgramId::first(0)), why: Why::new("in-gang") };
    Outcome {
        ended: Ended::Complete,
        total: seconds(6),
        cpus: 2,
        programs: vec![program],
        decisions: vec![Decision {
            at: seconds(2),
            reasons: vec![Reason { program: None, why: gang }, turn],
        }]
        .into(),
        deviations: vec![Deviation {
            at: seconds(3),
            program: ProgramId::first(0),
            what: Aspect::Frozen,
            why: Refusal::TimedOut,
        }]
        .into(),
        wake_lateness: vec![Nanos::from_micros(50), Nanos::from_micros(150)].into(),
        switches: vec![Nanos::from_millis(100)].into(),
        cost: Default::default(),
        switch_gaps: vec![Nanos::from_millis(1)].into(),
    }
}

pub(super) fn context() -> Context {
    Context {
        policy: "gang".into(),
        decided_by: None,
        placement: Some("packed".into()),
        quantum: Some(Nanos::from_millis(100)),
        max_frozen: Some(Nanos::from_secs(1)),
        fill: None,
        started_at: "2026-01-01T00:00:00Z".into(),
        machine: MachineDescription { cpus: 2, model: None, kernel: "6.18.0".into() },
        simulation: None,
        backends: Backends { freezing: "signals".into(), pinning: "affinity".into() },
        own_cpu_seconds: 0.03,
        programs: vec![ProgramContext {
            name: "cg".into(),
            command: vec!["./cg".into(), "4".into()],
            threads: 2,
            molded: None,
            solo: Some(Nanos::from_millis(1500)),
            solo_cpu: None,
            after: Vec::new(),
            terms: Some(Terms {
                weight: 2.0,
                group: None,
                freezable: Some(true),
                misses_per_kilo_instruction: Some(3.0),
                memory_gigabytes_per_second: None,
            }),
            environment: None,
            barrier: None,
            instead_of_progress: None,
        }],
    }
}

fn written(outcome: &Outcome) -> Value {
    serde_json::from_str(&RunResult::new(outcome, &context()).to_json()).unwrap()
}

#[test]
fn the_file_has_the_fields_that_scripts_rely_on() {
    let file = written(&outcome());
    assert_eq!(
        (&file["schema"], &file["policy"], &file["total_seconds"], &file["interrupted_by"]),
        (&json!("cosched-run/3"), &json!("gang"), &json!(6.0), &json!(null))
    );
    let expected = json!({
        "name": "cg", "command": ["./cg", "4"], "threads": 2,
        "arrived_seconds": 1.0, "started_seconds": 2.0,
        "turnaround_seconds": 5.0, "running_seconds": 2.0, "waiting_seconds": 3.0,
        "solo_seconds": 1.5, "interference_seconds": 0.5, "slowdown": 5.0 / 1.5,
        "longest_frozen_seconds": 2.0, "exit_status": 0, "exit": {"code": 0},
        "completions": [{"at_seconds": 6.0, "exit": {"code": 0}}],
        "usage": {
            "user_seconds": 1.5, "system_seconds": 0.5, "voluntary_switches": 3,
            "involuntary_switches": 4, "max_rss_kib": 1024
        },
        "timeline": [[2.0, 3.0, "0-1"], [5.0, 6.0, null]],
        "left_running": false,
        "terms": {
            "weight": 2.0, "group": null, "freezable": true,
            "misses_per_kilo_instruction": 3.0, "memory_gigabytes_per_second": null
        }
    });
    assert_eq!(file["programs"], json!([expected]));
    assert_eq!(file["metrics"]["weighted_speedup"], json!(0.3));
    assert_eq!(file["metrics"]["cpu_utilisation"], json!(2.0 / 12.0));
    assert_eq!(file["metrics"]["responsiveness_max_seconds"], json!(2.0));
}

/// The sum is left out where no program reported its waiting.
#[test]
fn waiting_costs_are_summed_over_runs_where_known() {
    let mut with_waits = outcome();
    let mut completion = with_waits.programs[0].completions[0];
    completion.usage.waits = Some(Waits {
        useful_seconds: 1.000_000_2,
        barriers: 3,
        longest_latency_seconds: 0.5,
        completion_seconds: 0.125,
        ..Waits::default()
    });
    with_waits.programs[0].completions = vec![completion; 2].into();
    let expected = json!({
        "useful_seconds": 2.0, "spun_seconds": 0.0, "lag_seconds": 0.0, "barriers": 6,
        "latency_seconds": 0.0, "longest_latency_seconds": 0.5,
        "completion_seconds": 0.25, "donations": 0
    });
    assert_eq!(written(&with_waits)["programs"][0]["usage"]["waits"], expected);
    assert_eq!(written(&outcome())["programs"][0]["usage"].get("waits"), None);
}

#[test]
fn unfinished_work_is_not_compared_with_a_time_alone() {
    let mut failed = outcome();
    failed.programs[0].completions[0].exit = Exit::Code(1);
    let file = written(&failed);
    let program = &file["programs"][0];
    assert_eq!((&program["turnaround_seconds"], &program["exit_status"]), (&json!(5.0), &json!(1)));
    assert_eq!((&program["slowdown"], &program["solo_seconds"]), (&json!(null), &json!(null)));
    assert_eq!(file["metrics"]["weighted_speedup"], json!(null));
}

/// A program that could not be started has no complete run either.
#[test]
fn a_program_that_was_not_started_has_a_reason_in_the_file() {
    let (mut outcome, mut context) = (outcome(), context());
    let why = NotStarted { at: Nanos::from_secs(6), program: 0, why: Missing::Failed };
    let arrived = Nanos::from_secs(6);
    outcome.programs.push(ProgramOutcome { arrived, not_started: Some(why), ..Default::default() });
    let after = vec![AfterResult { program: "cg".into(), any_exit: false }];
    context.programs.push(ProgramContext {
        name: "lu".into(),
        after,
        ..context.programs[0].clone()
    });
    let result = RunResult::new(&outcome, &context);
    let mut file: Value = serde_json::from_str(&result.to_json()).unwrap();
    let program = &file["programs"][1];
    assert_eq!(program["after"], json!([{"program": "cg", "any_exit": false}]));
    assert_eq!(program["not_started"], json!({"program": "cg", "why": "failed"}));
    assert_eq!((&program["exit"], &program["turnaround_seconds"]), (&json!(null), &json!(null)));
    assert!(file["programs"][0].get("after").is_none());
    assert_eq!(RunResult::read(file.to_string().as_bytes(), "run.json".as_ref()).unwrap(), result);
    file["programs"][1]["not_started"]["program"] = json!("gone");
    let refusal = RunResult::read(file.to_string().as_bytes(), "run.json".as_ref()).unwrap_err();
    let expected = "programs[1].not_started.program is 'gone', which is no program of the run";
    assert!(refusal.to_string().contains(expected), "{refusal}");
}

#[test]
fn a_program_that_did_not_start_took_no_time() {
    let mut unstarted = outcome();
    unstarted.programs[0].started = None;
    unstarted.programs[0].completions[0].exit = Exit::Failed(28);
    let file = written(&unstarted);
    let program = &file["programs"][0];
    assert_eq!(
        (&program["turnaround_seconds"], &program["completions"]),
        (&json!(null), &json!([]))
    );
    assert_eq!(program["exit"], json!({"failed": 28}));
}

/// The own costs are what cosched itself used.
#[test]
fn the_file_has_decisions_deviations_and_own_costs() {
    let file = written(&outcome());
    let quantum =
        json!({"why": "quantum", "round": 1, "gang": 0, "gangs": 2, "length": 100_000_000});
    let in_gang = json!({"why": "in-gang", "program": {"slot": 0, "generation": 0}});
    assert_eq!(file["decisions"], json!([{"at_seconds": 2.0, "reasons": [quantum, in_gang]}]));
    assert_eq!(
        file["deviations"],
        json!([{
            "at_seconds": 3.0, "program": {"slot": 0, "generation": 0},
            "what": "frozen", "why": "timed-out"
        }])
    );
    assert_eq!(
        file["own"],
        json!({
            "cpu_percent": 0.5, "switches": 1,
            "wake_lateness": {"p50_seconds": 5e-5, "p99_seconds": 1.5e-4, "max_seconds": 1.5e-4},
            "switch_gap": {"p50_seconds": 1e-3, "p99_seconds": 1e-3, "max_seconds": 1e-3}
        })
    );
}

#[test]
fn an_interrupted_program_has_no_turnaround() {
    let mut outcome = outcome();
    outcome.ended = Ended::Interrupted(Interruption::Interrupt);
    outcome.programs[0].completions.clear();
    outcome.programs[0].done = None;
    let file = written(&outcome);
    assert_eq!(file["interrupted_by"], json!("SIGINT"));
    for key in ["turnaround_seconds", "solo_seconds", "slowdown", "exit_status", "exit"] {
        assert_eq!(file["programs"][0].get(key), Some(&Value::Null), "{key}");
    }
    assert_eq!(file["metrics"]["mean_turnaround_seconds"], Value::Null);
}

#[test]
fn two_runs_are_compared_with_two_runs_alone() {
    let mut outcome = outcome();
    let first = completion(Nanos::from_secs(3), Exit::Code(0));
    outcome.programs[0].completions.insert(0, first);
    let mut context = context();
    context.programs[0].solo = Some(Nanos::from_secs(1));
    let program = &RunResult::new(&outcome, &context).programs[0];
    assert_eq!((program.solo_seconds, program.interference_seconds), (Some(2.0), Some(0.0)));
    assert_eq!((program.exit_status, program.usage.user_seconds), (Some(0), 3.0));
}

#[test]
fn runs_after_the_last_counted_one_only_add_usage() {
    let mut outcome = outcome();
    outcome.programs[0].completions.push(completion(Nanos::from_secs(8), Exit::Code(1)));
    let program = &RunResult::new(&outcome, &context()).programs[0];
    assert_eq!((program.solo_seconds, program.exit_status), (Some(1.5), Some(0)));
    assert_eq!((program.completions.len(), program.usage.user_seconds), (2, 3.0));
}

#[test]
fn runs_that_were_cut_short_count_as_cpu_use() {
    let mut outcome = outcome();
    outcome.programs[0].unfinished = completion(Nanos::from_secs(6), Exit::Signal(15)).usage;
    let result = RunResult::new(&outcome, &context());
    assert_eq!(result.metrics.cpu_utilisation, 4.0 / 12.0);
    assert_eq!(result.programs[0].usage.user_seconds, 1.5, "of complete runs");
}

#[test]
fn a_saved_result_is_loaded_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let result = RunResult::new(&outcome(), &context());
    result.save(&file).unwrap();
    assert_eq!(RunResult::load(&file).unwrap(), result);
}

#[test]
fn every_time_is_rounded_to_microseconds() {
    fn check(name: &str, value: &Value) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| check(name, value)),
            Value::Array(values) => values.iter().for_each(|value| check(name, value)),
            Value::Number(number) if name.ends_with("seconds") || name == "timeline" => {
                let text = number.to_string();
                let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
                // The smallest are written as 5e-6.
                assert!(decimals.len() <= 6 || text.contains('e'), "{name}: {text}");
            }
            _ => {}
        }
    }
    let mut outcome = outcome();
    let third = Nanos(1_333_333_333);
    let program = &mut outcome.programs[0];
    program.frozen = [third, Nanos(1), Nanos(1)].into_iter().collect();
    program.done = Some(Nanos::from_secs(1) + third);
    program.completions.push(completion(third, Exit::Code(0)));
    program.completions[0].usage.user_seconds = 0.1;
    program.completions[1].usage.user_seconds = 0.2;
    let file = written(&outcome);
    check("", &file);
    assert_eq!(file["metrics"]["responsiveness_longest_gap_seconds"], json!(1.333333));
    assert_eq!(file["metrics"]["mean_turnaround_seconds"], json!(1.333333));
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let refusal = ResultError::Unwritable { file: "run.json".into(), source }.to_string();
    assert!(
        refusal.contains("no storage space") && refusal.contains("free some space"),
        "{refusal}"
    );
}

#[test]
fn files_of_another_schema_and_damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let refusal = |text: &str| {
        fs::write(&file, text).unwrap();
        RunResult::load(&file).unwrap_err().to_string()
    };
    let other = refusal(r#"{"schema": "cosched-run/4"}"#);
    let known = "has the schema 'cosched-run/4', but only 'cosched-run/1' to 'cosched-run/3' can";
    assert!(other.contains(known), "{other}");
    assert!(refusal("{\"schema\": ").contains("is damaged"));
    assert!(refusal(r#"{"schema": "cosched-run/1"}"#).contains("missing field `policy`"));
    let gone = RunResult::load(&folder.path().join("gone.json")).unwrap_err().to_string();
    assert!(gone.contains("gone.json: cannot be read"), "{gone}");
    assert!(gone.contains("name a folder that `cosched run --out` made"), "{gone}");
}

/// Version 2 had other names for a deviation's aspect and for how waits at barriers ended.
#[test]
fn a_result_of_an_earlier_version_is_read() {
    let mut run = RunResult::new(&outcome(), &context());
    let statistics = BarrierStats { spun_briefly: 6, spun: 3, ..BarrierStats::default() };
    let mode = BarrierMode::Donate;
    run.programs[0].barrier = Some(BarrierResult {
        mode,
        lacks: None,
        statistics: Some(statistics),
        between_regions: BTreeMap::new(),
    });
    let mut text = run.to_json();
    for (now, earlier) in [
        ("run/3", "run/2"),
        ("\"what\"", "\"wanted\""),
        ("\"spun_briefly\"", "\"glanced\""),
        ("\"spun\"", "\"looked_on\""),
    ] {
        assert!(text.contains(now), "{now}");
        text = text.replace(now, earlier);
    }
    assert_eq!(RunResult::read(text.as_bytes(), "run.json".as_ref()).unwrap(), run);
}

#[test]
fn other_files_are_not_called_damaged() {
    let path = "jobs.toml".as_ref();
    let refusal = |text: &str| RunResult::read(text.as_bytes(), path).unwrap_err().to_string();
    for (text, what) in [
        ("[[program]]\nname = 'a'", "it is no JSON object"),
        ("[1, 2]", "it is no JSON object"),
        ("{}", "it names no schema"),
        (r#"{"schema": "cosched-compare/2"}"#, "its schema is 'cosched-compare/2'"),
    ] {
        let expected = format!(
            "jobs.toml: is not a result of a run ({what}); name a folder that `cosched run --out` \
             made, or the run.json \
             in it"
        );
        assert_eq!(refusal(text), expected);
    }
    // An empty file, as a full disk leaves it.
    assert!(refusal("").contains("is damaged"));
}

#[test]
fn a_result_without_permission_is_reported_as_such() {
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    let refusal = ResultError::Unreadable { file: "run.json".into(), source: denied }.to_string();
    assert!(
        refusal.ends_with("denied; check its permissions, and those of its folders"),
        "{refusal}"
    );
}

#[test]
fn impossible_values_are_refused_with_file_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let refusal = |place: &str, value: Value| {
        let mut changed = written(&outcome());
        *changed.pointer_mut(place).unwrap() = value;
        fs::write(&file, changed.to_string()).unwrap();
        RunResult::load(&file).unwrap_err().to_string()
    };
    let twin = written(&outcome())["programs"][0].clone();
    for (place, value, field) in [
        ("/machine/cpus", json!(1025), "machine.cpus is 1025, but can be 1 to 1024"),
        ("/machine/cpus", json!(0), "machine.cpus is 0"),
        ("/total_seconds", json!(-3.0), "total_seconds is -3 s"),
        ("/total_seconds", json!(1e300), "total_seconds is 1e300 s, but"),
        ("/quantum_seconds", json!(-0.1), "quantum_seconds is -0.1 s"),
        ("/quantum_seconds", json!(0.0), "quantum_seconds is 0e0 s, but must be 1e-6 or more"),
        ("/max_frozen_seconds", json!(5e-324), "max_frozen_seconds is 5e-324 s, but must be 1e-6"),
        ("/programs/0/name", json!(""), "programs[0].name is empty"),
        ("/programs/0/command", json!([""]), "programs[0].command[0] is empty"),
        ("/programs/0/command", json!(["a", "b\0"]), "programs[0].command[1] has a NUL character"),
        ("/programs/0/command/0", json!("x".repeat(131072)), "programs[0].command[0] has 131072 b"),
        ("/programs/0/threads", json!(0), "programs[0].threads is 0"),
        ("/programs/0/usage/user_seconds", json!(-5.0), "programs[0].usage.user_seconds is -5 s"),
        ("/programs/0/waiting_seconds", json!(-1.0), "programs[0].waiting_seconds is -1 s"),
        ("/programs/0/timeline/0/1", json!(1.5), "programs[0].timeline[0] ends at 1.5 s, before"),
        ("/programs/0/timeline/1/0", json!(2.5), "programs[0].timeline[1] begins at 2.5 s, before"),
        ("/programs/0/completions/0/at_seconds", json!(-1.0), "programs[0].completions[0].at_sec"),
        ("/programs/0/exit", Value::Null, "programs[0].exit is missing, but `exit_status` is 0"),
        ("/programs/0/exit", json!({"signal": 0}), "programs[0].exit has signal 0, but must have"),
        ("/programs/0/exit_status", json!(1), "programs[0].exit_status is 1, but must be 0, as"),
        ("/programs/0/exit_status", Value::Null, "programs[0].exit_status is missing, but must"),
        ("/programs", json!([twin, twin]), "programs[1].name 'cg' is there twice"),
        ("/deviations/0/program/slot", json!(7), "deviations[0].program.slot is 7, but there are"),
        ("/decisions/0/reasons/1/program/slot", json!(1), "decisions[0].reasons[1].program.slot"),
        ("/decisions/0/reasons/0/gang", json!(2), "decisions[0].reasons[0].gang is 2 of 2"),
    ] {
        let refusal = refusal(place, value);
        let expected = format!("{}: {field}", file.display());
        assert!(refusal.starts_with(&expected), "{refusal}");
        assert!(refusal.contains("run the workload again"), "{refusal}");
    }
    let mut backwards = written(&outcome());
    let earlier = json!({"at_seconds": 1.0, "reasons": []});
    backwards["decisions"].as_array_mut().unwrap().push(earlier);
    fs::write(&file, backwards.to_string()).unwrap();
    let refusal = RunResult::load(&file).unwrap_err().to_string();
    assert!(refusal.contains("decisions[1].at_seconds is 1 s, before the one"), "{refusal}");
}

#[test]
fn every_field_is_described_in_the_documentation() {
    fn keys<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                found.push(key);
                keys(value, found);
            }),
            Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    let documentation = include_str!("../../../../docs/json.md");
    let mut file = written(&outcome());
    // The figures of a reason belong to its kind; they are not fields of the schema.
    file["decisions"][0]["reasons"] = json!([{"why": "in-gang", "program": null}]);
    file["simulation"] = json!({"machine": "core:2", "kernel": "cfs", "seed": 1});
    let mut found = Vec::new();
    keys(&file, &mut found);
    for key in found.into_iter().filter(|key| *key != "code") {
        assert!(documentation.contains(&format!("`{key}`")), "`{key}` is not in docs/json.md");
    }
}

#[test]
fn sums_include_runs_that_are_not_kept_one_by_one() {
    let mut outcome = outcome();
    let program = &mut outcome.programs[0];
    let usage = Usage { user_seconds: 5.0, max_rss_kib: 9999, ..Usage::default() };
    let mut runs = Latest::of(2);
    let earlier = completion(Nanos::from_secs(3), Exit::Code(4));
    for run in [Completion { usage, ..earlier }, program.completions[0], program.completions[0]] {
        runs.push(run);
    }
    program.completions = runs;
    program.earlier =
        Earlier { usage, counted: 1, failed: Some(earlier.exit), last: Some(earlier.exit) };
    let run = RunResult::new(&outcome, &context());
    let shown = &run.programs[0];
    assert_eq!((shown.completions.len(), shown.earlier_completions), (2, 1));
    assert_eq!((shown.exit, shown.usage.max_rss_kib), (Some(Exit::Code(4)), 9999));
    assert!(shown.usage.user_seconds >= 5.0 && shown.slowdown.is_none());
    assert_eq!(run.kept_from_seconds, Some(6.0));
}
