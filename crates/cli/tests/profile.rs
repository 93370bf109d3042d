//! `cosched profile` from the outside: what it prints, what it stores, and how it ends.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cosched_linux::observe::counters::{self, Events};
use serde_json::Value;
use tempfile::TempDir;

/// A user's folder of their own: nothing is known in it yet.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("tmp")).unwrap();
    home
}

fn cosched(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(arguments).env("XDG_DATA_HOME", home).env("TMPDIR", home.join("tmp"));
    command.env("XDG_CACHE_HOME", home).env_remove("OMP_NUM_THREADS");
    command
}

fn run(home: &TempDir, arguments: &[&str]) -> Output {
    cosched(home.path(), arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The solo time of such a command that a later run knows. It is of milliseconds, so a run may well
/// be faster: then the time cannot be true.
fn known(home: &TempDir, command: &[&str]) -> Value {
    let words = [&["run", "--policy", "fcfs", "--json", "--"][..], command].concat();
    let ran = json(&run(home, &words));
    let program = &ran["programs"][0];
    match program["solo_seconds"].is_null() {
        true => program["rejected_solo_seconds"].clone(),
        false => program["solo_seconds"].clone(),
    }
}

#[test]
fn a_later_run_uses_the_measured_solo_times() {
    let home = home();
    assert!(known(&home, &["true"]).is_null());
    // Runs that other processes disturb are not kept, and these are almost too short for that.
    let attempt = |_| {
        let profiled = json(&run(&home, &["profile", "--runs", "3", "--json", "--", "true"]));
        assert_eq!(profiled["schema"], "cosched-profile/1");
        let point = profiled["programs"][0]["threads"][0].clone();
        (point["runs"] == 3 && point["disturbed"].is_null()).then_some(point)
    };
    let point = (0..20).find_map(attempt).expect("a moment without other processes");
    assert_eq!(known(&home, &["true"]), point["solo_seconds"]);
    // Another placement gives other times, so it was not measured.
    let spread = ["run", "--policy", "gang", "--placement", "spread", "--json", "--", "true"];
    assert!(json(&run(&home, &spread))["programs"][0]["solo_seconds"].is_null());
}

#[test]
fn memory_bandwidth_is_measured_once_and_shown_by_doctor() {
    let home = home();
    let known = || json(&run(&home, &["doctor", "--json"]))["machine"]["memory_peak"].clone();
    assert_eq!(known(), Value::Null);
    // Nothing is kept where other processes disturb it.
    let attempt = |_| {
        let measured = run(&home, &["profile", "--machine", "--json"]);
        (!text(&measured.stderr).contains("not kept")).then(|| json(&measured))
    };
    let report = (0..20).find_map(attempt).expect("a moment without other processes");
    assert_eq!(report["schema"], "cosched-profile-machine/1");
    let figure = |name: &str| report[name].as_f64().unwrap();
    let (peak, lines) = (figure("peak_gigabytes_per_second"), figure("peak_lines_per_microsecond"));
    assert!(peak > 0.0 && (lines * 0.064 - peak).abs() < 1e-6 * peak, "{report}");
    assert_eq!(known()["gigabytes_per_second"], report["peak_gigabytes_per_second"]);
    assert_eq!(run(&home, &["profile", "--machine", "--", "true"]).status.code(), Some(2));
}

#[test]
fn without_counters_the_reason_is_reported_and_no_figure() {
    if counters::check(Events::HARDWARE).is_ok() {
        eprintln!("skipped: this machine has hardware counters");
        return;
    }
    let home = home();
    let printed = text(&run(&home, &["profile", "--", "true"]).stdout);
    assert!(
        printed.contains("ache misses could not be measured")
            || printed.contains("cache misses were measured"),
        "{printed}"
    );
    assert!(printed.contains("`misses_per_kilo_instruction` in the jobs file"), "{printed}");
    let point =
        &json(&run(&home, &["profile", "--json", "--", "true"]))["programs"][0]["threads"][0];
    assert_eq!(point.get("misses_per_kilo_instruction"), Some(&Value::Null));
    let refused = run(&home, &["run", "--policy", "cgreedy", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn with_hardware_counters_cgreedy_needs_no_figures_by_hand() {
    if let Err(lack) = counters::check(Events::HARDWARE) {
        eprintln!("skipped: {lack}");
        return;
    }
    let home = home();
    let profiled = run(&home, &["profile", "--", "true"]);
    assert!(!text(&profiled.stdout).contains("cache misses"), "{}", text(&profiled.stdout));
    let ran = run(&home, &["run", "--policy", "cgreedy", "--", "true"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
}

#[test]
fn each_thread_count_is_passed_on_and_listed() {
    let home = home();
    let file = home.path().join("seen");
    let script = format!("echo $OMP_NUM_THREADS >> {}", file.display());
    let profiled =
        json(&run(&home, &["profile", "--threads", "2,1,5", "--json", "--", "sh", "-c", &script]));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "1\n2\n5\n");
    let points = profiled["programs"][0]["threads"].as_array().unwrap();
    let counts: Vec<_> = points.iter().map(|point| point["threads"].as_u64().unwrap()).collect();
    assert_eq!(counts, [1, 2, 5]);
    assert!(counts.contains(&profiled["programs"][0]["ideal_threads"].as_u64().unwrap()));
}

#[test]
fn identical_programs_are_measured_once_and_listed_each() {
    let home = home();
    let file = home.path().join("runs");
    let script = format!("echo run >> {}", file.display());
    let commands = ["profile", "--json", "--", "sh", "-c", &script, ":::", "sh", "-c", &script];
    let profiled = json(&run(&home, &commands));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "run\n");
    assert_eq!(profiled["programs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_failed_program_is_not_stored_and_its_errors_are_shown() {
    let home = home();
    let failed = run(&home, &["profile", "--", "sh", "-c", "echo no input file >&2; exit 3"]);
    assert_eq!(failed.status.code(), Some(1));
    let messages = text(&failed.stderr);
    assert!(messages.contains("program sh") && messages.contains("status 3"), "{messages}");
    assert!(messages.contains("no input file"), "{messages}");
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let home = home();
    let file = home.path().join("ran");
    let touch = file.to_str().unwrap();
    for (arguments, expected) in [
        (vec!["profile", "--threads", "0", "--", "touch", touch], "choose from 1 to"),
        (vec!["profile", "--threads", "4..2", "--", "touch", touch], "smaller number first"),
        (vec!["profile", "--threads", "few", "--", "touch", touch], "'few' is not a thread count"),
        (vec!["profile", "--", "touch", touch, ":::", "no-such-command"], "no-such-command"),
    ] {
        let refused = run(&home, &arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(expected), "{}", text(&refused.stderr));
    }
    assert!(!file.exists());
}

#[test]
fn without_a_place_to_keep_profiles_the_remedy_is_shown() {
    let home = home();
    let mut command = cosched(home.path(), &["profile", "--", "true"]);
    let refused = command.env_remove("XDG_DATA_HOME").env_remove("HOME").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("set one of them"), "{}", text(&refused.stderr));
    let mut command = cosched(home.path(), &["profile", "--", "true"]);
    let refused = command.env("XDG_DATA_HOME", "/dev/null/data").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("set XDG_DATA_HOME"), "{}", text(&refused.stderr));
}

#[test]
fn programs_run_without_a_damaged_store() {
    let home = home();
    json(&run(&home, &["profile", "--json", "--", "true"]));
    let file = home.path().join("cosched/profiles.redb");
    std::fs::write(&file, "no database at all").unwrap();
    let compare = ["compare", "--policies", "fcfs", "--runs", "1", "--json", "--", "true"];
    for arguments in [&["run", "--policy", "fcfs", "--json", "--", "true"] as &[_], &compare] {
        let output = run(&home, arguments);
        let messages = text(&output.stderr);
        assert!(
            messages.contains("solo times are not known") && messages.contains("remove the file")
        );
        json(&output);
    }
    assert_eq!(run(&home, &["profile", "--", "true"]).status.code(), Some(2));
    assert_eq!(std::fs::read(&file).unwrap(), b"no database at all");
}

#[test]
fn an_interrupt_ends_the_program_and_keeps_measurements() {
    let home = home();
    let pid_file = home.path().join("pid");
    let endless =
        format!("echo $$ > {0}.part; mv {0}.part {0}; exec sleep 1000", pid_file.display());
    // Several: a run that other processes disturb is not kept, and these are almost too short for
    // that.
    let arguments = ["1", "2", "3", "4", "5", "6"];
    let quick = arguments.map(|argument| ["true", argument, ":::"]).concat();
    let words = [&["profile", "--"][..], &quick, &["sh", "-c", &endless]].concat();
    let mut command = cosched(home.path(), &words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !pid_file.exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended before the last program ran");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let target = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(target, rustix::process::Signal::INT).unwrap();
    let lines: Vec<_> =
        BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        lines.iter().any(|line| line.contains("interrupted; ") && line.contains(" kept")),
        "{lines:?}"
    );
    assert!(!Path::new("/proc").join(pid.trim()).exists());
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
    assert!(arguments.iter().any(|argument| !known(&home, &["true", argument]).is_null()));
}

/// A process that uses a CPU for as long as this value lives.
struct Burner(std::process::Child);

impl Burner {
    fn new() -> Burner {
        Burner(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// On a machine with many CPUs one process does not disturb, so there are several.
fn burners() -> Vec<Burner> {
    let cpus = std::thread::available_parallelism().unwrap().get();
    (0..cpus.div_ceil(4)).map(|_| Burner::new()).collect()
}

#[test]
fn a_time_that_others_disturbed_is_shown_but_not_kept() {
    let home = home();
    let _busy = burners();
    let profiled = run(&home, &["profile", "--", "sleep", "0.6"]);
    assert!(text(&profiled.stderr).contains("the machine is busy"), "{}", text(&profiled.stderr));
    let printed = text(&profiled.stdout);
    assert!(printed.contains("threads: ") && printed.contains("not kept: other"), "{printed}");
    let point = &json(&run(&home, &["profile", "--json", "--", "sleep", "0.6"]))["programs"][0];
    let disturbed = point["threads"][0]["disturbed"].as_str().unwrap();
    assert!(disturbed.starts_with("other processes used"), "{disturbed}");
    let ran = json(&run(&home, &["run", "--policy", "fcfs", "--json", "--", "sleep", "0.6"]));
    let program = &ran["programs"][0];
    assert!(program["solo_seconds"].is_null() && program.get("rejected_solo_seconds").is_none());
    let advised = run(&home, &["advise", "--runs", "1", "--threads", "1", "--", "sleep", "0.6"]);
    assert!(text(&advised.stderr).contains("the machine is busy"), "{}", text(&advised.stderr));
    let printed = text(&advised.stdout);
    assert!(printed.contains("not kept: other processes used"), "{printed}");
    assert!(printed.contains("The prediction rests on disturbed times."), "{printed}");
    assert!(printed.contains("Below 1, fewer threads are faster."), "{printed}");
}

#[test]
fn a_comparison_keeps_no_disturbed_time() {
    let home = home();
    let known = || {
        let ran = json(&run(&home, &["run", "--policy", "fcfs", "--json", "--", "sleep", "0.6"]));
        !ran["programs"][0]["solo_seconds"].is_null()
    };
    let compare = ["compare", "--policies", "fcfs", "--solo", "--runs", "1", "--", "sleep", "0.6"];
    let busy = burners();
    let compared = run(&home, &compare);
    let messages = text(&compared.stderr);
    assert!(messages.contains("not kept: other processes used"), "{messages}");
    assert!(text(&compared.stdout).contains("/ sum of solo"), "{}", text(&compared.stdout));
    assert!(!known());
    drop(busy);
}

#[test]
fn a_disturbed_memory_bandwidth_is_not_kept() {
    let home = home();
    let _busy = burners();
    let measured = run(&home, &["profile", "--machine"]);
    let printed = text(&measured.stdout);
    assert!(printed.contains("; not kept: other processes used "), "{printed}");
    assert!(printed.contains("run it again when the machine is idle"), "{printed}");
    assert!(json(&run(&home, &["doctor", "--json"]))["machine"]["memory_peak"].is_null());
}

/// Files and tables that others would trust later.
#[test]
fn every_measurement_says_that_it_is_disturbed() {
    let home = home();
    let _busy = burners();
    std::fs::write(home.path().join("jobs.toml"), "[[program]]\ncommand = 'true'\n").unwrap();
    for command in [
        "sim measure --quick --out machine.toml",
        "doctor --measure",
        "profile --machine",
        "calibrate quanta jobs.toml --slices 1ms --runs 1",
    ] {
        let mut command = cosched(home.path(), &command.split(' ').collect::<Vec<_>>());
        let said = text(&command.current_dir(home.path()).output().unwrap().stderr);
        // Older kernels have no slices of single threads.
        assert!(said.contains("the machine is busy") || said.contains("need Linux"), "{said}");
    }
    let kept = std::fs::read_to_string(home.path().join("machine.toml")).unwrap();
    assert!(kept.contains("# The machine was busy: other processes used"), "{kept}");
}
