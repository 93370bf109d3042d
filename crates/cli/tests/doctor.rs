//! `cosched doctor` from the outside.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

fn doctor(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.arg("doctor").args(arguments).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

#[test]
fn json_has_level_machine_all_abilities_and_all_policies() {
    let output = doctor(&["--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "cosched-doctor/2");
    assert!(report["level"].is_string() && report["kernel"].is_string());
    assert!(report["machine"]["usable"].as_u64().unwrap() >= 1);
    let there = |ability: &str| {
        let rights = report["rights"].as_array().unwrap();
        rights.iter().find(|right| right["name"] == ability).unwrap()["available"]
            .as_bool()
            .unwrap()
    };
    assert!(there("signals"));
    let policies = report["policies"].as_array().unwrap();
    let gang = policies.iter().find(|policy| policy["policy"] == "gang").unwrap();
    let by = match (there("freeze-v2"), there("freezer-v1")) {
        (true, _) => "cgroup-v2",
        (false, true) => "cgroup-v1",
        (false, false) => "signals",
    };
    assert!(gang["uses"].as_str().unwrap().contains(by), "{gang}");
    assert!(report["gaps"].is_null());
}

#[test]
fn each_missing_ability_has_a_remedy() {
    let report: Value =
        serde_json::from_slice(&doctor(&["--json"]).output().unwrap().stdout).unwrap();
    let text = String::from_utf8(doctor(&["--all"]).output().unwrap().stdout).unwrap();
    assert!(text.contains(&format!("level: {}", report["level"].as_str().unwrap())), "{text}");
    for right in report["rights"].as_array().unwrap() {
        assert!(text.contains(right["name"].as_str().unwrap()), "{text}");
        if let Some(remedy) = right["remedy"].as_str() {
            assert!(text.contains(remedy), "{text}");
        }
    }
}

#[test]
fn one_screen_says_first_whether_what_is_needed_is_there() {
    let json: Value =
        serde_json::from_slice(&doctor(&["--json"]).output().unwrap().stdout).unwrap();
    let text = String::from_utf8(doctor(&[]).output().unwrap().stdout).unwrap();
    let is_there = json["turns_by_weight"]["available"].as_bool().unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(first.starts_with("Everything that is needed is here"), is_there, "{text}");
    assert_eq!(
        first.starts_with("One thing that the default needs is missing"),
        !is_there,
        "{text}"
    );
    assert!(text.lines().count() <= 40, "{text}");
}

#[test]
fn without_a_known_width_tables_fit_a_page() {
    let text = String::from_utf8(doctor(&[]).output().unwrap().stdout).unwrap();
    let is_table = |line: &&str| line.starts_with([' ', '─', '═']) && !line.starts_with("  ");
    let widest = text.lines().filter(is_table).map(|line| line.chars().count()).max().unwrap();
    assert!((60..=100).contains(&widest), "{widest}:\n{text}");
}

#[test]
fn an_interrupted_measurement_leaves_no_program_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = doctor(&["--measure"]);
    command.env("TMPDIR", temporary.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // It may say before that the machine is busy.
    assert!(lines.any(|line| line.unwrap().contains("two programs of 2 spinning threads")));
    // The program has been frozen at least once when it has noted it.
    let noted = || {
        let folders = std::fs::read_dir(temporary.path()).unwrap();
        let files = folders.map(|folder| folder.unwrap().path().join("gaps-1"));
        files.filter_map(|file| file.metadata().ok()).any(|file| file.len() > 0)
    };
    while !noted() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let target = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(target, rustix::process::Signal::INT).unwrap();
    // The program holds the same standard error, so this ends when both have.
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}
