//! Malleable programs from the outside, simulated: their thread limits under each policy, and the
//! reports of them.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// What a command prints.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Four programs that are 1.57 times as fast with two threads; `key` may say that they are
/// malleable.
fn workload(key: &str, model_key: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = |i: usize| {
        format!(
            "[[program]]\nname = 'p{i}'\ncommand = 'p'\nthreads = \
             2\n{key}\n[program.model]\n{model_key}\n\
             [[program.model.phase]]\nrepeat = 50\ninstructions = 13.75e6\nserial = 0.274\n"
        )
    };
    std::fs::write(folder.path().join("jobs.toml"), (0..4).map(program).collect::<String>())
        .unwrap();
    folder
}

fn simulated(folder: &TempDir, policy: &str) -> Value {
    let machine = "core:2 gigahertz=1";
    let arguments = ["sim", "jobs.toml", "--machine", machine, "--policy", policy, "--json"];
    let out = ["--no-solo", "--out", policy];
    serde_json::from_str(&printed(folder.path(), &[&arguments[..], &out].concat())).unwrap()
}

#[test]
fn policies_for_malleable_programs_say_that_there_are_none() {
    let said = |key: &str, command: &str| {
        let folder = workload("", key);
        let mut cosched = Command::new(env!("CARGO_BIN_EXE_cosched"));
        let words = command.split(' ');
        let output = cosched.args(words).current_dir(folder.path()).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let note = "no program is malleable, so adaptive-greedy will schedule as greedy would";
    for command in [
        "sim jobs.toml --machine core:2 --policy adaptive-greedy",
        "compare jobs.toml --machine core:2 --policies linux,adaptive-greedy --runs 1",
        "run --policy adaptive-greedy -- true",
        "compare --policies linux,adaptive-greedy --runs 1 -- true ::: true",
    ] {
        assert!(said("", command).contains(note), "{command}: {}", said("", command));
    }
    let malleable = said("malleable = true", "sim jobs.toml --machine core:2 -p adaptive-greedy");
    assert!(!malleable.contains("no program is malleable"), "{malleable}");
}

/// The thread limits of programs, in order.
fn allowed(run: &Value) -> Vec<u64> {
    let decisions = run["decisions"].as_array().unwrap().iter();
    let reasons = decisions.flat_map(|decision| decision["reasons"].as_array().unwrap());
    let allowed = reasons.filter(|reason| reason["why"] == "limits-threads");
    allowed.map(|reason| reason["threads"].as_u64().unwrap()).collect()
}

#[test]
fn only_malleable_programs_have_their_threads_chosen() {
    let rigid = simulated(&workload("", ""), "greedy");
    for (key, model_key) in [("malleable = true", ""), ("", "malleable = true")] {
        let folder = workload(key, model_key);
        for policy in ["adaptive-greedy", "adaptive-minwait"] {
            let run = simulated(&folder, policy);
            assert_eq!(allowed(&run)[..4], [1; 4], "{policy}");
            let total = |run: &Value| run["total_seconds"].as_f64().unwrap();
            assert!(
                total(&run) < 0.8 * total(&rigid),
                "{policy}: {} {}",
                total(&run),
                total(&rigid)
            );
        }
    }
    for policy in ["adaptive-greedy", "adaptive-minwait"] {
        let run = simulated(&workload("", ""), policy);
        assert!(allowed(&run).is_empty());
        assert_eq!(run["total_seconds"], rigid["total_seconds"], "{policy}");
    }
}

#[test]
fn thread_limits_are_explained_and_shown() {
    let folder = workload("malleable = true", "");
    simulated(&folder, "adaptive-greedy");
    let explained = printed(folder.path(), &["explain", "adaptive-greedy", "--program", "p1"]);
    assert!(explained.contains(": 1 of 2 requested threads."), "{explained}");
    let story = printed(folder.path(), &["explain", "adaptive-greedy", "--json"]);
    let story: Value = serde_json::from_str(&story).unwrap();
    assert_eq!(story["programs"][0]["thread_limits"][0]["threads"], 1);
    printed(folder.path(), &["report", "adaptive-greedy", "--svg", "plots"]);
    assert!(folder.path().join("plots/adaptive-greedy-thread-limits.svg").exists());
}
