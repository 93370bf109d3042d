//! What a pause could break is said before the start, and programs that no pause may reach get
//! none.

use super::support::{Backend, Place, STAMPS, program};
use super::turns::caller_has_groups;

fn everything() -> String {
    format!("threads = {}", cosched_linux::kernel::affinity::get(0).unwrap().len())
}

/// What is said in a run of this program with another one.
fn said(keys: &str, script: &str, options: &str) -> String {
    let place = Place::new();
    let all = everything();
    let tables =
        [program("guessed", &format!("{all}\n{keys}"), script), program("other", &all, STAMPS)];
    let ended = place.run(&tables, options).ended().with(0);
    place.nothing_is_left_of(&ended);
    ended.stderr
}

#[test]
fn a_timeout_that_turns_may_use_up_is_announced() {
    let said = |policy: &str| said("", "timeout 60 sleep 0.05", &format!("--policy {policy}"));
    let expected = "guessed may be ended too soon: its `timeout` is 60 s";
    for policy in ["gang", "minwait --turns freeze"] {
        let said = said(policy);
        assert!(said.contains(expected) && said.contains("up to 30 s alone"), "{policy}: {said}");
    }
    // It starts when it has the CPUs, or nothing of its time is due to turns.
    for policy in ["fcfs", "linux", "turns --goal throughput"] {
        let said = said(policy);
        assert!(!said.contains("guessed may"), "{policy}: {said}");
    }
}

/// The program in turn waits for a program that has no turn and is behind `timeout`.
#[test]
fn a_server_in_turn_gets_its_client_behind_timeout() {
    if !caller_has_groups() {
        return;
    }
    let place = Place::new();
    let server = "mkfifo asked answered; read line < asked; echo \"to $line\" > answered";
    let client = "timeout 60 sh -c 'echo client > asked; cat answered'";
    let wait = "until [ -p answered ]; do sleep 0.01; done";
    let all = everything();
    let tables =
        [program("server", &all, server), program("client", &all, &format!("{wait}; {client}"))];
    let ended = place.run(&tables, "--policy turns --goal throughput --verbose").ended().with(0);
    assert_eq!(place.read("out/client.stdout"), "to client\n");
    let ended = ended.saying(&["client starts with its turn", "its `timeout` of 60 s"]);
    place.nothing_is_left_of(&ended);
}

/// A program behind `timeout` starts when the one before it has ended.
#[test]
fn time_limits_begin_with_turns_that_last_to_the_end() {
    let place = Place::new();
    let keys = everything();
    let script = |name: &str, before: &str| {
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let each = format!("for one in $(seq $(nproc)); do ( {busy} ) & done; wait; touch {name}");
        format!("[ -e {before} ] || echo {name} early; timeout 60 sh -c '{each}'")
    };
    let tables = [
        program("a", &keys, &script("a", ".")),
        program("b", &keys, &script("b", "a")),
        program("c", &keys, &script("c", "b")),
    ];
    let ended = place.run(&tables, "--policy turns --goal throughput").ended().with(0);
    for name in ["a", "b", "c"] {
        assert_eq!(place.read(&format!("out/{name}.stdout")), "");
    }
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_shell_with_job_control_is_announced_with_signals() {
    for backend in Backend::here() {
        let options = format!("--policy gang --quantum 10ms --freezer {}", backend.0);
        let script = "set -m; sleep 0.05";
        let expected = "guessed can see that it is paused";
        assert_eq!(said("", script, &options).contains(expected), backend.0 == "signals");
        let told = said("freezable = false", script, &options);
        assert!(!told.contains(expected), "the user has decided: {told}");
    }
}

#[test]
fn a_program_that_a_watchdog_waits_for_is_not_paused() {
    for backend in Backend::here() {
        let place = Place::new();
        let all = everything();
        let keys = format!("{all}\nenv = {{ WATCHDOG_USEC = '30000000' }}");
        let tables = [program("watched", &keys, STAMPS), program("other", &all, STAMPS)];
        let options = format!("--policy gang --quantum 10ms --freezer {}", backend.0);
        let ended = place.run(&tables, &options).ended().with(0);
        let watched = &ended.result().programs[0];
        assert_eq!((watched.longest_frozen_seconds, watched.timeline.len()), (0.0, 1));
        assert!(ended.stderr.contains("watched is never paused: WATCHDOG_USEC"));
        place.nothing_is_left_of(&ended);
    }
}
