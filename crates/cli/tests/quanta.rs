//! `cosched calibrate quanta` and `--quanta` from the outside: what is measured, used and refused.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cosched_linux::kernel::sched_attr::default_slice;
use serde_json::Value;
use tempfile::TempDir;

/// A training program of two processes that compute for a moment, whatever the machine.
const BUSY: &str = "[[program]]\nname = 'busy'\nthreads = 2\ncommand = ['sh', '-c', \
    \"timeout 3 sh -c 'while :; do :; done & while :; do :; done'; true\"]\n";
const TABLE: &str = "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 1.0\nslice_milliseconds = 7\n";

/// A folder with a training file, and one for temporary files.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("tmp")).unwrap();
    fs::write(place.path().join("training.toml"), BUSY).unwrap();
    place
}

fn cosched(place: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(arguments.split_whitespace()).current_dir(place);
    command.env("XDG_DATA_HOME", place).env("TMPDIR", place.join("tmp"));
    command
}

fn run(place: &TempDir, arguments: &str) -> Output {
    cosched(place.path(), arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The error for bad input.
fn refusal(place: &TempDir, arguments: &str) -> String {
    let refused = run(place, arguments);
    let messages = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{arguments}: {messages}");
    messages
}

/// Whether this kernel has slices; prints a message if not.
fn has_slices() -> bool {
    let here = default_slice().unwrap().is_some();
    if !here {
        eprintln!("skipped: this kernel has no slices per thread (Linux 6.12 has)");
    }
    here
}

#[test]
fn a_table_is_measured_and_used() {
    if !has_slices() {
        return;
    }
    let place = place();
    let short = "[[program]]\nname = 'short'\nthreads = 1\ncommand = ['true']\n";
    fs::write(place.path().join("training.toml"), format!("{BUSY}{short}")).unwrap();
    let calibrate = "calibrate quanta training.toml --slices 1ms,100ms --runs 1";
    let made = run(&place, calibrate);
    let messages = text(&made.stderr);
    assert_eq!(made.status.code(), Some(0), "{messages}");
    assert!(messages.contains("short-1t is left out: it was too short"), "{messages}");
    let table = text(&made.stdout);
    assert_eq!(table.matches("[[row]]").count(), 10, "{table}");
    // The program never waits for another, and one round tells nothing.
    let undecided = table.matches("basis = \"undecided\"").count();
    assert!(undecided == 1 && table.contains("; busy-2t"), "{table}");
    fs::write(place.path().join("table.toml"), table).unwrap();
    let ran = run(&place, "run --policy faithful --quanta table.toml -- true");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert_eq!(fs::read_dir(place.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn ctrl_c_ends_the_program() {
    if !has_slices() {
        return;
    }
    let place = place();
    let endless =
        "[[program]]\ncommand = ['sh', '-c', 'echo $$ > part; mv part pid; exec sleep 1000']";
    fs::write(place.path().join("training.toml"), endless).unwrap();
    let mut command = cosched(place.path(), "calibrate quanta training.toml");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = place.path().join("pid");
    while !pid.exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended before the program ran");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let target = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(target, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!Path::new("/proc").join(fs::read_to_string(pid).unwrap().trim()).exists());
    assert_eq!(fs::read_dir(place.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_failed_training_program_is_reported_with_its_errors() {
    if !has_slices() {
        return;
    }
    let place = place();
    let fails = "[[program]]\nname = 'bad'\ncommand = ['sh', '-c', 'echo no input >&2; exit 3']";
    fs::write(place.path().join("training.toml"), fails).unwrap();
    let failed = run(&place, "calibrate quanta training.toml");
    let messages = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{messages}");
    assert!(messages.contains("status 3") && messages.contains("no input"), "{messages}");
}

#[test]
fn impossible_calibrations_are_refused_before_anything_runs() {
    if !has_slices() {
        return;
    }
    let place = place();
    for (arguments, expected) in [
        ("", "not part of an installed package"),
        ("gone.toml", "`make kernels` builds"),
        ("training.toml --slices 200ms", "the kernel grants 100us to 100ms"),
        ("training.toml --slices 1ms,1ms", "is there twice"),
        ("training.toml --runs 0", "from 1 to 1000"),
    ] {
        let refused = refusal(&place, &format!("calibrate quanta {arguments}"));
        assert!(refused.contains(expected), "{arguments}: {refused}");
    }
}

#[test]
fn an_unusable_table_is_refused_with_file_key_and_remedy() {
    let place = place();
    fs::write(place.path().join("table.toml"), TABLE).unwrap();
    let with = |from: &str, to: &str| {
        fs::write(place.path().join("bad.toml"), TABLE.replace(from, to)).unwrap();
        refusal(&place, "run --policy faithful --quanta bad.toml -- true")
    };
    for (from, to, expected) in [
        ("= 7", "= 0", "row 1: slice_milliseconds is 0"),
        ("up_to = 1.0", "up_to = 0.5", "up_to: the ends of the rows have to rise"),
        ("quanta/1", "quanta/9", "not \"cosched-quanta/1\"; `cosched calibrate quanta` makes such"),
        ("slice_milliseconds", "slice", "slice"),
    ] {
        let refused = with(from, to);
        assert!(
            refused.contains(expected) && refused.contains("bad.toml"),
            "{expected}: {refused}"
        );
        assert!(refused.contains("`cosched calibrate quanta`"), "{refused}");
    }
    let gone = refusal(&place, "exec --quanta gone.toml -- true");
    assert!(gone.contains("gone.toml") && gone.contains("cannot be read"), "{gone}");
    let useless = refusal(&place, "run --policy gang --quanta table.toml -- true");
    assert!(useless.contains("--quanta") && useless.contains("faithful"), "{useless}");
}

#[test]
fn in_a_simulation_the_slices_are_those_of_the_table() {
    let place = place();
    fs::write(place.path().join("table.toml"), TABLE).unwrap();
    let jobs = "[[program]]\ncommand = 'solver'\nthreads = 4\n[program.model]\nimbalance = 0.2\n\
        [[program.model.phase]]\nrepeat = 4000\ninstructions = 1e7\nbarriers = 1\n";
    fs::write(place.path().join("jobs.toml"), jobs).unwrap();
    let slices = |more: &str| -> Vec<u64> {
        let ran = run(
            &place,
            &format!(
                "sim jobs.toml --machine opteron-64 --policy faithful --no-solo --json {more}"
            ),
        );
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
        let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let reasons = document["decisions"].as_array().unwrap().iter().flat_map(|decision| {
            decision["reasons"].as_array().unwrap().iter().filter_map(|why| why["slice"].as_u64())
        });
        reasons.collect()
    };
    let (paper, own) = (slices(""), slices("--quanta table.toml"));
    assert!(!paper.is_empty() && !paper.contains(&7_000_000), "{paper:?}");
    assert!(!own.is_empty() && own.iter().all(|slice| *slice == 7_000_000), "{own:?}");
    let sweep = "sim jobs.toml --machine opteron-64 --sweep policy=gang,linux --quanta table.toml";
    let useless = refusal(&place, sweep);
    assert!(useless.contains("--quanta") && useless.contains("measure programs"), "{useless}");
}
