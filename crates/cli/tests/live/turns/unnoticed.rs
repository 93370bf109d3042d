//! Programs that a pause would break run under the default as they would alone.

use std::process::Command;

use super::super::support::{Place, program, skip};
use super::{NAMES, caller_has_groups, cpus};

/// Three instances of a program of one file, with the default policy; each says `ok`.
fn three_say_ok(interpreter: &str, text: &str) {
    if Command::new(interpreter).arg("--version").output().is_err() {
        return skip(format!("there is no {interpreter}"));
    }
    let place = Place::new();
    place.write("program", text);
    let keys = format!("threads = {}", cpus().len().max(2));
    let start = match interpreter {
        "gcc" => {
            let mut compiler = Command::new("gcc");
            compiler.args(["-pthread", "-xc", "-o"]).arg(place.path("compiled"));
            assert!(compiler.arg(place.path("program")).status().unwrap().success());
            "exec ./compiled".to_owned()
        }
        _ => format!("exec {interpreter} program"),
    };
    let tables = NAMES.map(|name| program(name, &keys, &start));
    place.write("jobs.toml", tables.concat());
    let mut said = Vec::new();
    // A machine that is busy with other things can be late by itself.
    for attempt in 0..3 {
        let out = format!("out-{attempt}");
        let ended = place.cosched(&["run", "jobs.toml", "--out", &out]).ended();
        let read = |name: &str, stream: &str| place.read(&format!("{out}/{name}.{stream}"));
        if ended.code() == Some(0) {
            assert!(NAMES.iter().all(|name| read(name, "stdout") == "ok\n"));
            return place.nothing_is_left_of(&ended);
        }
        said.push(NAMES.map(|name| read(name, "stderr")));
    }
    panic!("{said:?}");
}

/// A loop around `epoll_wait` that takes every error for a fault, beside threads that compute.
const POLLS: &str = include_str!("polls.c");
/// A parent that gives its child up when that has been silent for too long, while both are busy.
const HEARTBEAT: &str = include_str!("heartbeat.py");
/// Steps of which each has a deadline.
const DEADLINES: &str = include_str!("deadlines.py");

#[test]
fn a_wait_for_events_is_never_interrupted() {
    if caller_has_groups() {
        three_say_ok("gcc", POLLS);
    }
}

#[test]
fn no_heartbeat_comes_too_late_for_a_watchdog() {
    if caller_has_groups() {
        three_say_ok("python3", HEARTBEAT);
    }
}

#[test]
fn short_steps_keep_their_deadlines() {
    if caller_has_groups() {
        three_say_ok("python3", DEADLINES);
    }
}
