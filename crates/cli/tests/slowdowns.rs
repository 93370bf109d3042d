//! `cosched calibrate slowdowns` from the outside: what is measured, kept, used and refused.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cosched_linux::kernel::affinity;
use cosched_policy::Slowdowns;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn calibrate(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(["calibrate", "slowdowns"]).args(arguments.split_whitespace());
    command.current_dir(folder);
    command
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn refusal(folder: &Path, arguments: &str) -> String {
    let output = calibrate(folder, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", messages(&output));
    messages(&output)
}

/// Nothing can slow another program down on one CPU.
fn has_two_cpus() -> bool {
    let two = affinity::get(0).unwrap().len() > 1;
    if !two {
        eprintln!("skipped: it takes two CPUs");
    }
    two
}

#[test]
fn an_output_that_cannot_be_written_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let message = refusal(folder.path(), "--out no/where.toml");
    assert!(message.contains("no/where.toml") && message.contains("--out"), "{message}");
    fs::write(folder.path().join("mine.toml"), "of = 'the user'\n").unwrap();
    let message = refusal(folder.path(), "--out mine.toml");
    assert!(message.contains("was not made by `cosched calibrate slowdowns`"), "{message}");
    assert!(!message.contains("measuring"), "{message}");
    let message = refusal(folder.path(), "--out /dev/null");
    assert!(message.contains("--out /dev/null") && message.contains("name a file"), "{message}");
    assert!(!Path::new("/dev/null.measured").exists());
    let message = refusal(folder.path(), "--threads 4000");
    assert!(message.contains("do not fit into"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was begun");
}

/// Made-up figures: alone each variant moves 1 to 5 GB/s, and half of that with any other.
fn made_up(head: &str) -> (String, usize) {
    let places = serde_json::from_str::<Value>(head).unwrap()["places"].as_array().unwrap().len();
    let mut lines = vec![head.to_owned()];
    let add = |variants: &[usize], lines: &mut Vec<String>| {
        let part = if variants.len() == 1 { 1.0 } else { 0.5 };
        let rates: Vec<f64> = variants.iter().map(|one| part * (one + 1) as f64).collect();
        lines.push(format!("{rates:?}"));
    };
    (0..5).for_each(|one| (0..places).for_each(|_| add(&[one], &mut lines)));
    (0..5).for_each(|a| (a..5).for_each(|b| add(&[a, b], &mut lines)));
    if places > 2 {
        for (a, b) in (0..5).flat_map(|a| (a..5).map(move |b| (a, b))) {
            (b..5).for_each(|c| add(&[a, b, c], &mut lines));
        }
    }
    (lines.join("\n") + "\n", places)
}

#[test]
fn an_interrupted_calibration_goes_on_with_what_is_kept() {
    if !has_two_cpus() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (folder, kept) = (folder.path(), folder.path().join("t.toml.measured"));
    let arguments = "--out t.toml --window 1ms --runs";
    let mut long = calibrate(folder, &format!("{arguments} 1000"));
    let running = long.stderr(Stdio::piped()).spawn().unwrap();
    let lines = || fs::read_to_string(&kept).map_or(0, |text| text.lines().count());
    let began = Instant::now();
    while lines() < 3 && began.elapsed() < Duration::from_secs(120) {
        sleep(Duration::from_millis(20));
    }
    assert!(refusal(folder, &format!("{arguments} 1")).contains("another cosched is measuring"));
    kill_process(Pid::from_child(&running), Signal::INT).unwrap();
    let interrupted = running.wait_with_output().unwrap();
    let said = messages(&interrupted);
    assert_eq!(interrupted.status.code(), Some(130), "{said}");
    assert!(said.contains("kept in t.toml.measured; the same command"), "{said}");
    let text = fs::read_to_string(&kept).unwrap();
    assert!(text.lines().count() >= 3, "{text}");
    let (figures, places) = made_up(text.lines().next().unwrap());
    fs::write(&kept, &figures).unwrap();

    let ended = calibrate(folder, &format!("{arguments} 1 --json")).output().unwrap();
    let said = messages(&ended);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let known = figures.lines().count() - 1;
    assert!(said.contains(&format!("0 measurements ({known} are known already)")), "{said}");
    let table = Slowdowns::parse(&fs::read_to_string(folder.join("t.toml")).unwrap()).unwrap();
    assert_eq!([table.most(), table.of(5.0, &[1.0]), table.of(1.0, &[5.0])], [5.0, 2.0, 2.0]);
    let json: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(json["schema"], "cosched-calibrate-slowdowns/1");
    assert_eq!(json["triples"].is_array(), places > 2);
    assert!(!kept.exists());
}

/// What is measured depends on what else runs; that there is a table, or the reason why not, does
/// not.
#[test]
fn a_table_is_measured_and_used() {
    if !has_two_cpus() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ended = calibrate(folder, "--window 5ms --runs 1 --placement spread").output().unwrap();
    let said = messages(&ended);
    assert!(said.contains("The machine has to be idle"), "{said}");
    if !ended.status.success() {
        assert!(said.contains("the machine was not idle"), "{said}");
        return;
    }
    let jobs = "[[program]]\ncommand = ['true']\nthreads = 1\nmemory_gigabytes_per_second = 1\n";
    fs::write(folder.join("jobs.toml"), jobs.repeat(2)).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_cosched"));
    run.args(["run", "jobs.toml", "--policy", "bandwidth", "--slowdowns", "slowdowns.toml"]);
    let ran = run.current_dir(folder).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", messages(&ran));
    // A table of its own is replaced.
    let again = calibrate(folder, "--window 1ms --runs 1").output().unwrap();
    assert!(!messages(&again).contains("was not made by"), "{}", messages(&again));
}
