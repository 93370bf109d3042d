//! `cosched trace` and `cosched explain`, from outside, on simulated runs of several policies.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use cosched_core::Nanos;
use cosched_report::history::{Activity, History, Phase, nanos};
use cosched_results::result::RunResult;
use serde_json::Value;

/// Programs that differ in everything that a schedule depends on.
const WORKLOAD: &str = "[[program]]\ncommand = 'wide'\nthreads = 8\n\
                        misses_per_kilo_instruction = 9\nrepeat = 2\n\
    [program.model]\n[[program.model.phase]]\ninstructions = 3e9\nbarriers = 50\n\
    [[program]]\ncommand = 'half'\nthreads = 4\nmisses_per_kilo_instruction = 1\nstart = '35ms'\n\
    [program.model]\n[[program.model.phase]]\ninstructions = 4e9\nbarriers = 5\n\
    [[program]]\ncommand = 'narrow'\nthreads = 2\nmisses_per_kilo_instruction = 0.1\n\
    [program.model]\n[[program.model.phase]]\ninstructions = 2e9\nbarriers = 3\n";

fn cosched(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder).args(arguments.split_whitespace()).output().unwrap()
}

/// The output of a successful command.
fn printed(folder: &Path, arguments: &str) -> String {
    let output = cosched(folder, arguments);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {messages}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str) -> String {
    let output = cosched(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

/// A folder with a simulated run in `out`.
fn simulated(policy: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), WORKLOAD).unwrap();
    let quantum = if ["linux", "fcfs"].contains(&policy) { "" } else { "--quantum 10ms" };
    let arguments =
        format!("sim jobs.toml --machine e5410-8 --policy {policy} {quantum} --out out");
    printed(folder.path(), &arguments);
    folder
}

const POLICIES: [&str; 10] = [
    "linux",
    "fcfs",
    "gang",
    "greedy",
    "cgreedy",
    "minwait",
    "adaptive-greedy",
    "adaptive-minwait",
    "turns",
    "auto",
];

#[test]
fn phases_add_up_to_the_accounts_and_waits_have_reasons() {
    for policy in POLICIES {
        let folder = simulated(policy);
        let result = RunResult::load(&folder.path().join("out/run.json")).unwrap();
        let history = History::of(&result);
        for (slot, program) in result.programs.iter().enumerate() {
            let sum = |of: fn(&Phase) -> bool| -> Nanos {
                history.phases(slot).iter().filter(|phase| of(phase)).map(Phase::length).sum()
            };
            // Each time in the file is rounded to a microsecond.
            let close = |found: Nanos, reported: f64| {
                let apart = found.since(nanos(reported)) + nanos(reported).since(found);
                let allowed = Nanos::from_micros(history.phases(slot).len() as u64);
                assert!(apart <= allowed, "{policy}, {}: {found} is not {reported}", program.name);
            };
            close(sum(|p| matches!(p.state, Activity::Running(_))), program.running_seconds);
            close(sum(|p| p.state.waits()), program.waiting_seconds);
            for phase in history.phases(slot).iter().filter(|phase| phase.state == Activity::Frozen)
            {
                let why = history.waits_because(slot, phase);
                assert!(why.is_some(), "{policy}, {}: {phase:?} has no reason", program.name);
            }
        }
    }
}

#[test]
fn a_trace_follows_perfettos_own_definitions() {
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_trace.py");
    for policy in POLICIES {
        let folder = simulated(policy);
        let written: Value =
            serde_json::from_str(&printed(folder.path(), "trace out --json")).unwrap();
        assert_eq!(written["file"], "out/run.pftrace");
        let file = folder.path().join("out/run.pftrace");
        assert_eq!(written["bytes"], std::fs::metadata(&file).unwrap().len());
        let Ok(read) = Command::new("python3").arg(reader).arg(&file).output() else {
            return eprintln!("skipped: there is no python3");
        };
        if read.status.code() == Some(77) {
            return eprintln!("skipped: Python's package perfetto is not installed");
        }
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let read: Value = serde_json::from_slice(&read.stdout).unwrap();
        assert_eq!((&read["tracks"], &read["events"]), (&written["tracks"], &written["events"]));
        assert!(read["slices"]["running"].as_u64().unwrap() >= 4, "{read}");
    }
}

#[test]
fn a_trace_replaces_only_a_trace_at_the_chosen_path() {
    let folder = simulated("gang");
    let before = std::fs::read(folder.path().join("out/run.json")).unwrap();
    let stderr = cosched(folder.path(), "trace out/run.json").stderr;
    assert!(String::from_utf8(stderr).unwrap().contains("out/run.pftrace"));
    printed(folder.path(), "trace out --out here.bin");
    printed(folder.path(), "trace out");
    std::os::unix::fs::symlink("jobs.toml", folder.path().join("link.pftrace")).unwrap();
    for place in ["out/run.json", "jobs.toml", "link.pftrace", "out"] {
        let message = refused(folder.path(), &format!("trace out --out {place}"));
        let what = match place {
            "link.pftrace" => "is a symbolic link, which cosched does not follow",
            _ => "exists and was not made by `cosched trace`",
        };
        let expected = format!("{place}: {what}; choose");
        assert!(message.contains(&expected), "{message}");
    }
    let workload = std::fs::read_to_string(folder.path().join("jobs.toml")).unwrap();
    assert_eq!(workload, WORKLOAD);
    let output = cosched(folder.path(), "trace out -o -").stdout;
    for file in ["out/run.pftrace", "here.bin"] {
        assert_eq!(std::fs::read(folder.path().join(file)).unwrap(), output, "{file}");
    }
    assert_eq!(std::fs::read(folder.path().join("out/run.json")).unwrap(), before);
}

#[test]
fn the_story_names_every_program_and_the_policy() {
    let folder = simulated("gang");
    let story = printed(folder.path(), "explain out");
    for part in [" on 8 CPUs under gang", "wide took", "half took", "narrow took"] {
        assert!(story.contains(part), "{part}: {story}");
    }
    let one = printed(folder.path(), "explain out --program half");
    assert!(one.starts_with("half took") && one.contains("it is another program's turn"), "{one}");
    assert_eq!(one, printed(folder.path(), "explain out half"));
    let json: Value = serde_json::from_str(&printed(folder.path(), "explain out --json")).unwrap();
    assert_eq!(json["schema"], "cosched-explain/4");
    assert_eq!(json["policy"], "gang");
    assert_eq!(json["programs"].as_array().unwrap().len(), 3);
}

#[test]
fn a_moment_explains_why_each_program_runs_or_waits() {
    let folder = simulated("gang");
    let words = printed(folder.path(), "explain out --at 50ms");
    assert_eq!(words, printed(folder.path(), "explain out --at 0.05"));
    assert!(words.starts_with("At 0.050 s, under gang, in quantum "), "{words}");
    assert_eq!(words.lines().count(), 4);
    let json = printed(folder.path(), "explain out --at 50ms --program half --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    let half = &json["programs"][0];
    assert_eq!(half["name"], "half");
    assert_eq!(json["programs"].as_array().unwrap().len(), 1);
    assert!(["in-gang", "other-gang", "queued"].iter().any(|why| half["reason"]["why"] == *why));
}

/// Nothing is known of a time before a long run is kept.
#[test]
fn a_time_before_the_kept_part_is_refused() {
    let folder = simulated("gang");
    let file = folder.path().join("out/run.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut run: Value = serde_json::from_str(&text).unwrap();
    run["kept_from_seconds"] = 0.05.into();
    std::fs::write(&file, run.to_string()).unwrap();
    for command in ["explain out --at 20ms", "explain out half --at 20ms --json"] {
        let message = refused(folder.path(), command);
        let why = "--at 0.02 s: what was decided before 0.05 s was not kept; name a later time";
        assert!(message.contains(why), "{message}");
    }
    assert!(printed(folder.path(), "explain out --at 50ms").starts_with("At 0.050 s"));
}

#[test]
fn program_names_cannot_control_the_terminal() {
    let folder = simulated("gang");
    let file = folder.path().join("out/run.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"half\"", "\"\\u001b[2Jha\\u0007lf\"")).unwrap();
    for arguments in ["explain out", "explain out --at 50ms"] {
        let words = printed(folder.path(), arguments);
        assert!(words.contains("\\u{1b}[2Jha\\u{7}lf"), "{words}");
        assert!(!words.chars().any(|c| c.is_control() && c != '\n'), "{words:?}");
    }
}

#[test]
fn errors_come_with_the_remedy() {
    let folder = simulated("linux");
    let message = refused(folder.path(), "trace nowhere");
    assert!(message.contains("nowhere") && message.contains("run.json"), "{message}");
    let message = refused(folder.path(), "explain out --program whole");
    assert!(
        message.contains("whole: this run has no such program; it has wide, half"),
        "{message}"
    );
    assert_eq!(message, refused(folder.path(), "explain out whole"));
    let message = refused(folder.path(), "explain out --at 3h");
    assert!(message.contains("the run took"), "{message}");
    let message = refused(folder.path(), "explain out --at soon");
    assert!(message.contains("350ms"), "{message}");
    let message = refused(folder.path(), "trace out --out no/such/folder/file");
    assert!(message.contains("--out"), "{message}");
}
