//! `cosched advise` from the outside: what it measures, what it says, and that it runs what it says.

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

/// Two programs that a second thread slows down, whatever else the machine does, and which tell how many they were given.
fn workload() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let script = "echo $OMP_NUM_THREADS; [ $OMP_NUM_THREADS = 1 ] || sleep 2";
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
fn programs_that_are_slower_with_their_threads_are_advised_one_each_and_run_so() {
    if !has_two_cpus() {
        return;
    }
    let home = workload();
    let words = ["advise", "jobs.toml", "--threads", "1,2", "--json", "--apply", "--out", "out"];
    let output = cosched(home.path(), &words);
    let advice = json(&output);
    assert_eq!(advice["schema"], "cosched-advise/1");
    for (slot, name) in ["a", "b"].into_iter().enumerate() {
        let program = &advice["programs"][slot];
        assert_eq!((&program["asked_threads"], &program["threads"]), (&2.into(), &1.into()));
        assert_eq!(program["alone"].as_array().unwrap().len(), 2);
        assert_eq!(advice["applied"]["programs"][slot]["threads"], 1);
        let told = std::fs::read_to_string(home.path().join(format!("out/{name}.stdout"))).unwrap();
        assert_eq!(told.trim(), "1");
    }
    let (asked, advised) = (&advice["asked"], &advice["advised"]);
    assert!(advised["total_seconds"].as_f64() <= asked["total_seconds"].as_f64(), "{advice}");
    let gain =
        asked["total_seconds"].as_f64().unwrap() / advised["total_seconds"].as_f64().unwrap();
    assert!((advice["gain"].as_f64().unwrap() - gain).abs() < 1e-9);
}

#[test]
fn what_was_measured_is_measured_once_and_people_get_a_table() {
    if !has_two_cpus() {
        return;
    }
    let home = workload();
    let words = ["advise", "jobs.toml", "--threads", "1,2"];
    let (first, second) = (cosched(home.path(), &words), cosched(home.path(), &words));
    assert!(text(&first.stderr).contains("alone, threads: 2"), "{}", text(&first.stderr));
    assert!(!text(&second.stderr).contains("alone"), "{}", text(&second.stderr));
    let told = text(&second.stdout);
    assert!(told.contains("As advised:") && told.contains("docs/advise.md"), "{told}");
}

#[test]
fn policies_that_cannot_be_predicted_and_counts_that_make_no_sense_are_refused() {
    let home = workload();
    for (words, told) in [
        (["--policy", "linux"], "choose from gang, greedy, minwait"),
        (["--threads", "0"], "0 threads are not possible"),
        (["--threads", "1024"], "name smaller counts"),
        (["--out", "x"], "--apply"),
    ] {
        let refused = cosched(home.path(), &[&["advise", "jobs.toml"][..], &words].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(text(&refused.stderr).contains(told), "{}", text(&refused.stderr));
    }
}

#[test]
fn a_command_that_only_the_programs_own_path_leads_to_is_found() {
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/true", home.path().join("only-here")).unwrap();
    let table = format!(
        "[[program]]\ncommand = 'only-here'\nenv = {{ PATH = '{}' }}\n",
        home.path().display()
    );
    std::fs::write(home.path().join("jobs.toml"), table).unwrap();
    json(&cosched(home.path(), &["advise", "jobs.toml", "--threads", "1", "--json"]));
}

#[test]
fn what_a_program_asks_for_is_measured_too_and_a_program_that_sets_its_own_count_keeps_it() {
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
