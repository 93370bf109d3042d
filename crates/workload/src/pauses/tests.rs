use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::Workload;

/// What is found of a command in a folder, without variables.
fn found_in(folder: &Path, command: &[&str]) -> PauseRisks {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let workload = Workload::from_commands(vec![command], folder).unwrap();
    workload.programs[0].pause_risks(&[], true)
}

fn found(command: &[&str]) -> PauseRisks {
    found_in("/".as_ref(), command)
}

fn place(files: &[(&str, &str)]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    place
}

#[test]
fn the_shortest_timeout_of_a_command_is_its_limit() {
    for (command, seconds) in [
        (&["timeout", "8", "./a"][..], 8.0),
        (&["/usr/bin/timeout", "-k", "5", "-s", "KILL", "0.5s", "a"], 0.5),
        (&["timeout", "--foreground", "--signal=9", "10m", "a"], 600.0),
        (&["nice", "-n", "5", "env", "A=1", "timeout", "2h", "a"], 7200.0),
        (&["timeout", "1d", "timeout", "3", "a"], 3.0),
        (&["sh", "-c", "cd x && timeout 4 ./a | tee log"], 4.0),
        (&["bash", "-ec", "if ! (timeout 7 ./a); then exit 1; fi"], 7.0),
    ] {
        let limit = found(command).time_limit.map(Nanos::as_secs_f64);
        assert_eq!(limit, Some(seconds), "{command:?}");
    }
    for command in [
        &["timeout", "0", "a"][..],
        &["timeout"],
        &["timeout", "soon", "a"],
        &["./solver", "timeout", "8"],
        &["sh", "-c", "echo timeout 8"],
        &["sh", "-c", "# timeout 8 a"],
    ] {
        assert_eq!(found(command).time_limit, None, "{command:?}");
    }
}

#[test]
fn test_runners_are_known_by_their_command_lines() {
    for (command, runner) in [
        (&["pytest", "-q"][..], "pytest"),
        (&["/usr/bin/pytest-3"], "pytest"),
        (&["python3.12", "-X", "dev", "-m", "pytest", "-n", "2"], "pytest"),
        (&["python", "-m", "unittest"], "unittest"),
        (&["ctest", "-j4"], "ctest"),
        (&["cargo", "+nightly", "test", "--all"], "cargo test"),
        (&["cargo", "nextest", "run"], "cargo nextest"),
        (&["go", "test", "./..."], "go test"),
        (&["npx", "--yes", "jest"], "jest"),
        (&["npm", "test"], "npm test"),
        (&["uv", "run", "pytest"], "pytest"),
        (&["./queue_test"], "queue_test"),
        (&["build/all", "--gtest_filter=Queue.*"], "all"),
        (&["bash", "-lc", "cd x; exec python3 -m pytest"], "pytest"),
        (&["timeout", "60", "nice", "ctest"], "ctest"),
    ] {
        assert_eq!(found(command).test_runner.as_deref(), Some(runner), "{command:?}");
    }
    for command in [
        &["cargo", "build"][..],
        &["cargo", "run", "test"],
        &["go", "run", "test.go"],
        &["python3", "-c", "import pytest"],
        &["./solver", "pytest"],
        &["sh", "-c", "echo pytest"],
        &["./latest"],
        &["npm", "run", "build"],
    ] {
        assert_eq!(found(command).test_runner, None, "{command:?}");
    }
}

/// As in the public case of Hypothesis' deadlines.
#[test]
fn a_script_is_searched_and_the_scripts_beside_it() {
    let place = place(&[
        ("run.sh", "#!/bin/bash\ncd \"$d\" || exit 2\n\"${PY:-python3}\" -m pytest -q t.py\n"),
        ("limit.sh", "#!/bin/sh\ntimeout \"${BUDGET:-8}\" \"$d/pool\" 2 || exit 1\n"),
        ("boss.sh", "#!/bin/bash\nexec \"${PY:-python3}\" \"$(dirname \"$0\")/boss.py\"\n"),
        ("boss.py", "import os\n_, how = os.waitpid(1, os.WUNTRACED)\n"),
        ("loop.sh", "#!/bin/sh\n./loop.sh\n./other.sh\n"),
        ("other.sh", "#!/bin/sh\n./loop.sh\n"),
        ("data", "timeout 8 pytest"),
        ("other", "#!/usr/share/bin/lua\ntimeout 8 pytest\n"),
    ]);
    let found = |command: &[&str]| found_in(place.path(), command);
    assert_eq!(found(&["./run.sh"]).test_runner.as_deref(), Some("pytest"));
    assert_eq!(found(&["sh", "run.sh"]).test_runner.as_deref(), Some("pytest"));
    assert_eq!(found(&["./limit.sh"]).time_limit, Some(Nanos::from_secs(8)));
    let script = Some(SeesStops::Script("boss.py".to_owned()));
    assert_eq!(found(&["./boss.sh"]).sees_stops, script);
    assert_eq!(found(&["python3", "-u", "boss.py"]).sees_stops, script);
    for command in [&["./loop.sh"][..], &["./data"], &["./other"], &["./absent.sh"], &["sh", "."]] {
        assert_eq!(found(command), PauseRisks::default(), "{command:?}");
    }
}

/// A simulation must not depend on the files of the machine that it is made on.
#[test]
fn scripts_are_read_only_where_they_may_be() {
    let place = place(&[("run.sh", "#!/bin/sh\npytest\n")]);
    let command = vec![vec!["./run.sh".to_owned()], vec!["pytest".to_owned()]];
    let workload = Workload::from_commands(command, place.path()).unwrap();
    let runner = |slot: usize| workload.programs[slot].pause_risks(&[], false).test_runner;
    assert_eq!((runner(0), runner(1)), (None, Some("pytest".to_owned())));
}

#[test]
fn shells_with_job_control_see_stopped_children() {
    for command in [
        &["bash", "-m", "job.sh"][..],
        &["bash", "-o", "monitor", "-c", "a"],
        &["sh", "-c", "set -m; a & wait"],
        &["bash", "-c", "set -eum\na"],
        &["bash", "-c", "set -o monitor\na"],
        &["bash", "--rcfile", "x", "-c", "set -m"],
    ] {
        assert_eq!(found(command).sees_stops, Some(SeesStops::JobControl), "{command:?}");
    }
    for command in
        [&["bash", "-c", "a | b"][..], &["sh", "-ec", "a"], &["sh", "-c", "set +o monitor"]]
    {
        assert_eq!(found(command).sees_stops, None, "{command:?}");
    }
}

#[test]
fn watchdogs_and_interactive_shells_forbid_pauses() {
    assert!(found(&["bash", "-i"]).forbid_pauses());
    assert!(found(&["zsh", "-li"]).forbid_pauses());
    assert!(!found(&["bash", "--init-file", "x", "-c", "a"]).forbid_pauses());
    let text = "[[program]]\ncommand = 'a'\n[[program]]\ncommand = 'b'\n\
        env = { WATCHDOG_USEC = '' }\n";
    let workload = Workload::parse(text, "/tmp/jobs.toml".as_ref()).unwrap();
    let inherited = [("WATCHDOG_USEC".into(), "30000000".into())];
    let forbids = |slot: usize, inherited: &[_]| {
        workload.programs[slot].pause_risks(inherited, true).forbid_pauses()
    };
    assert_eq!([forbids(0, &[]), forbids(0, &inherited)], [false, true]);
    assert!(!forbids(1, &inherited), "its own env says that there is none");
    let [watched] = inherited;
    let of_cosched = [watched, ("WATCHDOG_PID".into(), "7".into())];
    assert!(!forbids(0, &of_cosched), "systemd waits for cosched itself");
}

#[test]
fn a_command_that_sets_the_watchdog_forbids_pauses() {
    for command in [
        &["env", "WATCHDOG_USEC=30000000", "a"][..],
        &["nice", "-n", "5", "env", "-i", "WATCHDOG_USEC=3", "a"],
        &["env", "-u", "HOME", "WATCHDOG_USEC=3", "a"],
        &["sh", "-c", "WATCHDOG_USEC=3 ./a"],
        &["sh", "-c", "export WATCHDOG_USEC=3; ./a"],
    ] {
        assert!(found(command).forbid_pauses(), "{command:?}");
    }
    for command in [
        &["grep", "WATCHDOG_USEC=3", "units"][..],
        &["env", "WATCHDOG_USEC=", "a"],
        &["sh", "-c", "echo WATCHDOG_USEC=3"],
    ] {
        assert!(!found(command).forbid_pauses(), "{command:?}");
    }
}
