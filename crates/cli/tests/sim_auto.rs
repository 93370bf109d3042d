//! `auto` on simulated machines: never much worse than the better of running together and one after
//! another.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use cosched_policy::reasons::{AutoReason, Mode, ReasonCode, SharedReason};
use cosched_results::result::RunResult;

/// The most that may be lost to solo probes. experiments/policies has many more mixes.
const MOST: f64 = 1.05;

/// A program of so many threads: billions of instructions, and how it divides and waits.
fn program(threads: u16, billions: f64, keys: &str, phase: &str) -> String {
    format!(
        "[[program]]\ncommand = 'program'\nthreads = {threads}\n[program.model]\n{keys}\n\
         [[program.model.phase]]\ninstructions = {:e}\n{phase}\n",
        billions * 1e9
    )
}

/// Threads that spin at a barrier until all are there.
fn spinning(threads: u16, billions: f64) -> String {
    program(threads, billions, "spin = 'forever'\nimbalance = 0.02", "barriers = 2000")
}

/// Threads that never wait for each other.
fn computing(threads: u16, billions: f64) -> String {
    program(threads, billions, "", "barriers = 1")
}

/// Threads that spin while one of them does a part of the work.
fn serial(threads: u16, billions: f64) -> String {
    program(threads, billions / 400.0, "spin = 'forever'", "repeat = 400\nserial = 0.1")
}

fn sleeping() -> String {
    program(1, 0.01, "", "repeat = 100\nsleep = '20ms'")
}

fn run(programs: &[String], policy: &str) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mix.toml"), programs.concat()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let solo: &[&str] = if programs.concat().contains("moldable") { &[] } else { &["--no-solo"] };
    command.current_dir(folder.path()).args(["sim", "mix.toml", "--out", "out"]).args(solo);
    command.args(["--machine", "dunnington-24", "--kernel", "eevdf"]);
    let output = command.args("--policy".split(' ')).args(policy.split(' ')).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{messages}");
    RunResult::load(&folder.path().join("out/run.json")).unwrap()
}

/// The run under `auto`, which lasts about as long as the better of the two that users would
/// choose.
fn as_good_as_the_better(programs: &[String]) -> RunResult {
    let [linux, fcfs] = ["linux", "fcfs"].map(|policy| run(programs, policy).total_seconds);
    let auto = run(programs, "auto");
    let ratio = auto.total_seconds / linux.min(fcfs);
    println!("auto {:.3} s, linux {linux:.3} s, fcfs {fcfs:.3} s: {ratio:.3}", auto.total_seconds);
    assert!(ratio <= MOST, "{:.3} of linux {linux:.3} and fcfs {fcfs:.3}", auto.total_seconds);
    auto
}

fn choices(result: &RunResult) -> Vec<(Mode, ReasonCode)> {
    let reasons = result.decisions.iter().flat_map(|decision| &decision.reasons);
    let chosen = reasons.filter_map(|reason| match reason.why.read()? {
        AutoReason::Chosen { mode, reason_code, .. } => Some((mode, reason_code)),
        _ => None,
    });
    chosen.collect()
}

#[test]
fn programs_that_spin_for_their_siblings_take_turns() {
    let four: Vec<String> = (0..4).map(|_| spinning(24, 120.0)).collect();
    let auto = as_good_as_the_better(&four);
    assert!(choices(&auto).contains(&(Mode::Gangs, ReasonCode::GangsFill)), "{auto:?}");
}

#[test]
fn sleeping_co_runners_of_a_computing_program_are_left_alone() {
    let mix = [sleeping(), sleeping(), sleeping(), computing(24, 120.0)];
    let auto = as_good_as_the_better(&mix);
    assert!(choices(&auto).iter().all(|(mode, _)| *mode == Mode::Corun));
    assert!(auto.programs.iter().all(|program| program.longest_frozen_seconds == 0.0));
}

#[test]
fn a_solo_program_runs_as_without_cosched() {
    let auto = as_good_as_the_better(&[spinning(24, 60.0)]);
    assert_eq!(choices(&auto), [(Mode::Corun, ReasonCode::Alone)]);
}

#[test]
fn short_programs_and_single_threads_lose_nothing() {
    let short = || computing(24, 6.0);
    as_good_as_the_better(&[computing(24, 240.0), short(), short()]);
    let single: Vec<String> = (0..30).map(|_| computing(1, 6.0)).collect();
    let auto = as_good_as_the_better(&single);
    assert!(choices(&auto).iter().all(|(mode, _)| *mode == Mode::Corun));
}

/// Its threads are spread over the caches, and it gets a larger part of the memory bandwidth.
#[test]
fn a_program_known_as_memory_bound_is_spread() {
    let stream = program(
        12,
        4.0,
        "",
        "barriers = 200\nmisses_per_kilo_instruction = 100.0\nmisses_in_flight = 10.0",
    );
    let known = stream.replacen("threads", "misses_per_kilo_instruction = 100.0\nthreads", 1);
    let seconds = |stream: String| {
        let mix = [stream, computing(18, 100.0), computing(18, 100.0)];
        let result = run(&mix, "auto");
        assert!(choices(&result).iter().any(|(mode, _)| *mode == Mode::Gangs));
        result.programs[0].turnaround_seconds.unwrap()
    };
    let (known, unknown) = (seconds(known), seconds(stream));
    println!("{known:.3} s, and {unknown:.3} s where that is not known");
    assert!(known < 0.9 * unknown, "{known:.3} and {unknown:.3}");
}

#[test]
fn moldable_programs_start_with_the_best_thread_count() {
    let rigid = vec![serial(24, 24.0); 6];
    let moldable: Vec<String> = rigid
        .iter()
        .map(|program| program.replace("[program.model]", "moldable = true\n[program.model]"))
        .collect();
    let [with_all, with_fewer] = [rigid, moldable].map(|programs| run(&programs, "auto"));
    assert!(with_all.programs.iter().all(|program| program.threads == 24));
    let reasons = || with_fewer.decisions.iter().flat_map(|decision| &decision.reasons);
    for (slot, program) in with_fewer.programs.iter().enumerate() {
        assert!(program.threads <= 8, "a tenth is done by one thread: {} threads", program.threads);
        let expected = Some(SharedReason::Molded { threads: program.threads, requested: 24 });
        let own = |id: cosched_core::ProgramId| usize::from(id.slot) == slot;
        let is_expected = |why: &cosched_core::Why| why.read() == expected;
        let mut own_reasons = reasons().filter(|reason| reason.program.is_some_and(own));
        assert!(own_reasons.any(|reason| is_expected(&reason.why)));
        let [all, fewer] = [program.solo_seconds, program.molded_solo_seconds].map(Option::unwrap);
        assert!(
            fewer > 1.1 * all,
            "alone it has more of more threads: {fewer} s, {all} s with all"
        );
        let interference = program.turnaround_seconds.unwrap() - fewer - program.waiting_seconds;
        assert!((program.interference_seconds.unwrap() - interference).abs() < 1e-5);
    }
    let ratio = with_fewer.total_seconds / with_all.total_seconds;
    assert!(ratio < 0.7, "{ratio}");
}
