//! Programs that start after others, on simulated machines.

use std::process::Command;

use cosched_results::result::{ProgramResult, RunResult};

use super::{result, sim};

const MODEL: &str = "threads = 4\nmisses_per_kilo_instruction = 1\n[program.model]\n\
    [[program.model.phase]]\ninstructions = 1e9\nbarriers = 10\n";

fn jobs() -> String {
    let table =
        |name: &str, keys: &str| format!("[[program]]\ncommand = '{name}'\n{keys}\n{MODEL}");
    let after_both =
        "after = ['a', { program = 'b', exit = 'any' }]\nstdin = 'not-there'\nstdout = 'x'";
    [table("c", after_both), table("a", "repeat = 2"), table("b", ""), table("d", "after = ['c']")]
        .concat()
}

fn ended_at(program: &ProgramResult) -> f64 {
    program.arrived_seconds + program.turnaround_seconds.unwrap()
}

fn check(run: &RunResult) {
    let [c, a, b, d] = &run.programs[..] else { panic!("four programs") };
    let both = ended_at(a).max(ended_at(b));
    assert!((c.arrived_seconds - both).abs() < 5e-6, "{}: {c:?}", run.policy);
    assert!((d.arrived_seconds - ended_at(c)).abs() < 5e-6, "{}: {d:?}", run.policy);
    assert!([c, d].iter().all(|program| program.slowdown.unwrap() < 1.1), "{}", run.policy);
}

#[test]
fn programs_wait_for_others_under_every_policy() {
    let policies = [
        "linux",
        "linux-groups",
        "fcfs",
        "turns",
        "auto",
        "gang",
        "greedy",
        "cgreedy",
        "minwait",
        "adaptive-greedy",
        "adaptive-minwait",
        "request-greedy",
        "request-minwait",
        "faithful",
        "shuffling",
        "balance",
        "fair-progress",
    ];
    for policy in policies {
        check(&result(&jobs(), &format!("--machine e5410-8 --policy {policy}")));
    }
}

#[test]
fn a_replay_has_programs_wait_for_the_same_others() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = sim(folder.path(), &jobs(), "--machine e5410-8 --policy fcfs --out recorded");
    assert_eq!(recorded.status.code(), Some(0));
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let words = "sim --from recorded --machine e5410-8 --policy linux --out answer";
    let output = command.current_dir(folder.path()).args(words.split(' ')).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer = RunResult::load(&folder.path().join("answer/run.json")).unwrap();
    let recorded = RunResult::load(&folder.path().join("recorded/run.json")).unwrap();
    assert_ne!(answer.programs[0].arrived_seconds, recorded.programs[0].arrived_seconds);
    check(&answer);
}
