//! `cosched advise` from the outside: what it measures and prints, and that its advice can be run.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn cosched(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(arguments).current_dir(home).env("XDG_DATA_HOME", home).env("TMPDIR", home);
    command.env("OMP_NUM_THREADS", "2").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Two programs that a second thread slows down, whatever else the machine does. They print how
/// many threads they got.
fn workload() -> TempDir {
    programs("echo $OMP_NUM_THREADS; [ $OMP_NUM_THREADS = 1 ] || sleep 2")
}

fn programs(script: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let program =
        |name| format!("[[program]]\nname = '{name}'\ncommand = ['sh', '-c', '{script}']\n");
    std::fs::write(home.path().join("jobs.toml"), program("a") + &program("b")).unwrap();
    home
}

fn has_two_cpus() -> bool {
    let two = std::thread::available_parallelism().unwrap().get() >= 2;
    if !two {
        eprintln!("skipped: this machine has one CPU");
    }
    two
}

#[test]
fn programs_slower_with_more_threads_are_advised_one_and_run_so() {
    if !has_two_cpus() {
        return;
    }
    let home = workload();
    let words = ["advise", "jobs.toml", "--threads", "1,2", "--runs", "2", "--json", "--apply"];
    let output = cosched(home.path(), &[&words[..], &["--out", "out"]].concat());
    let advice = json(&output);
    assert_eq!(advice["schema"], "cosched-advise/2");
    for (slot, name) in ["a", "b"].into_iter().enumerate() {
        let program = &advice["programs"][slot];
        assert_eq!((&program["requested_threads"], &program["threads"]), (&2.into(), &1.into()));
        let alone = program["alone"].as_array().unwrap();
        assert_eq!(alone.len(), 2);
        // A run that other processes disturbed does not count if there is another one.
        let mut runs = alone.iter().map(|count| count["run_seconds"].as_array().unwrap().len());
        assert!(runs.all(|runs| (1..=2).contains(&runs)), "{advice}");
        assert_eq!(advice["applied"]["programs"][slot]["threads"], 1);
        let printed =
            std::fs::read_to_string(home.path().join(format!("out/{name}.stdout"))).unwrap();
        assert_eq!(printed.trim(), "1");
    }
    let (requested, advised) = (&advice["requested"], &advice["advised"]);
    assert!(advised["total_seconds"].as_f64() <= requested["total_seconds"].as_f64(), "{advice}");
    let gain =
        requested["total_seconds"].as_f64().unwrap() / advised["total_seconds"].as_f64().unwrap();
    assert!((advice["gain"].as_f64().unwrap() - gain).abs() < 1e-9);
}

#[test]
fn runs_go_in_rounds_and_only_missing_ones_are_made() {
    if !has_two_cpus() {
        return;
    }
    let advised = |home: &TempDir, runs: &str, more: &[&str]| {
        let words = ["advise", "jobs.toml", "--threads", "1,2", "--runs", runs];
        cosched(home.path(), &[&words[..], more].concat())
    };
    // Runs that other processes disturb are not kept, and these are almost too short for that.
    let attempt = |_| {
        let home = programs("true");
        let first = advised(&home, "2", &[]);
        (!text(&first.stdout).contains("not kept")).then_some((home, first))
    };
    let (home, first) = (0..20).find_map(attempt).expect("a moment without other processes");
    // The thread counts of its runs, in order.
    let made = |output: &Output| -> Vec<String> {
        let messages = text(&output.stderr);
        let runs = messages.lines().filter_map(|line| line.split_once("alone, threads: "));
        runs.map(|(_, rest)| rest[..1].to_owned()).collect()
    };
    let second = advised(&home, "2", &["--json"]);
    assert_eq!(made(&first), ["1", "2", "2", "1"], "{}", text(&first.stderr));
    assert_eq!(made(&second), Vec::<String>::new());
    let shown = text(&first.stdout);
    assert!(shown.contains("medians of 2 runs") && shown.contains("--apply runs it"), "{shown}");
    let third = advised(&home, "3", &["--json"]);
    assert_eq!(made(&third), ["1", "2"]);
    let times = |advice: &Value| advice["programs"][0]["alone"][1]["run_seconds"].clone();
    let (before, after) = (times(&json(&second)), times(&json(&third)));
    assert_eq!(after.as_array().unwrap()[..2], before.as_array().unwrap()[..]);
    assert!((2..=3).contains(&after.as_array().unwrap().len()), "{after}");
}

#[test]
fn unpredictable_policies_and_senseless_counts_are_refused() {
    let home = workload();
    for (words, expected) in [
        (["--policy", "linux"], "choose from gang, greedy, minwait"),
        (["--threads", "0"], "0 threads are not possible"),
        (["--threads", "1024"], "choose smaller thread counts"),
        (["--out", "x"], "--apply"),
    ] {
        let refused = cosched(home.path(), &[&["advise", "jobs.toml"][..], &words].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(text(&refused.stderr).contains(expected), "{}", text(&refused.stderr));
    }
}

#[test]
fn a_command_on_the_programs_own_path_is_found() {
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/true", home.path().join("only-here")).unwrap();
    let table = format!(
        "[[program]]\ncommand = 'only-here'\nenv = {{ PATH = '{}' }}\n",
        home.path().display()
    );
    std::fs::write(home.path().join("jobs.toml"), table).unwrap();
    json(&cosched(home.path(), &["advise", "jobs.toml", "--threads", "1", "--json"]));
}

/// The thread count that a program requests is measured, too. A program that sets its own count
/// keeps it.
#[test]
fn requests_are_measured_and_a_programs_own_count_is_kept() {
    if !has_two_cpus() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let program =
        |name, keys| format!("[[program]]\nname = '{name}'\ncommand = 'sleep 0.1'\n{keys}\n");
    let tables = program("a", "") + &program("b", "env = { OMP_NUM_THREADS = '2' }");
    std::fs::write(home.path().join("jobs.toml"), tables).unwrap();
    let advice = json(&cosched(home.path(), &["advise", "jobs.toml", "--threads", "1", "--json"]));
    let measured = |slot: usize| -> Vec<u64> {
        let alone = advice["programs"][slot]["alone"].as_array().unwrap();
        alone.iter().map(|time| time["threads"].as_u64().unwrap()).collect()
    };
    assert_eq!((measured(0), measured(1)), (vec![1, 2], vec![2]));
    assert_eq!(advice["programs"][1]["threads"], 2);
}
