//! `auto` on simulated machines: never much worse than the better of side by side and one after another.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use cosched_core::result::RunResult;
use cosched_core::{Ground, Manner, Why};

/// What may be lost to looking: `docs/auto.md` tells how much it was in these mixes. experiments/policies has many more.
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

/// The same programs, which tell how often they have met.
fn telling(program: String) -> String {
    program.replace("[program.model]", "[program.model]\nprogress = true")
}

/// Threads that spin at barriers, and between many of these all sleep.
fn spinning_and_sleeping(threads: u16, billions: f64) -> String {
    let keys = "spin = 'forever'\nimbalance = 0.02";
    program(threads, billions / 200.0, keys, "repeat = 200\nbarriers = 100\nsleep = '3ms'")
}

/// Malleable, with a part that one thread does alone, for which the others wait in this way.
fn serial(threads: u16, billions: f64, spin: &str) -> String {
    let keys = format!("malleable = true\nspin = '{spin}'");
    program(threads, billions / 400.0, &keys, "repeat = 400\nserial = 0.1")
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
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    RunResult::load(&folder.path().join("out/run.json")).unwrap()
}

/// The run under `auto`, which lasts about as long as the better of the two that people would make.
fn as_good_as_the_better(programs: &[String], options: &str) -> RunResult {
    let [linux, fcfs] = ["linux", "fcfs"].map(|policy| run(programs, policy).total_seconds);
    let auto = run(programs, &format!("auto{options}"));
    let ratio = auto.total_seconds / linux.min(fcfs);
    println!("auto {:.3} s, linux {linux:.3} s, fcfs {fcfs:.3} s: {ratio:.3}", auto.total_seconds);
    assert!(ratio <= MOST, "{:.3} of linux {linux:.3} and fcfs {fcfs:.3}", auto.total_seconds);
    auto
}

fn choices(result: &RunResult) -> Vec<(Manner, Ground)> {
    let reasons = result.decisions.iter().flat_map(|decision| &decision.reasons);
    let chosen = reasons.filter_map(|reason| match reason.why {
        Why::Chosen { manner, ground, .. } => Some((manner, ground)),
        _ => None,
    });
    chosen.collect()
}

#[test]
fn programs_that_spin_for_their_siblings_take_turns() {
    let four: Vec<String> = (0..4).map(|_| spinning(24, 120.0)).collect();
    for options in ["", " --goal throughput"] {
        let auto = as_good_as_the_better(&four, options);
        let gangs = choices(&auto).contains(&(Manner::InGangs, Ground::GangsFill));
        assert_eq!(gangs, options.is_empty(), "{:?}", choices(&auto));
        let one_by_one =
            [(Manner::OneAfterAnother, Ground::ForThroughput), (Manner::SideBySide, Ground::Alone)];
        assert_eq!(choices(&auto) == one_by_one, !gangs, "{:?}", choices(&auto));
    }
}

#[test]
fn programs_that_sleep_beside_one_that_computes_are_left_alone() {
    let mix = [sleeping(), sleeping(), sleeping(), computing(24, 120.0)];
    let auto = as_good_as_the_better(&mix, "");
    assert!(choices(&auto).iter().all(|(manner, _)| *manner == Manner::SideBySide));
    assert!(auto.programs.iter().all(|program| program.longest_frozen_seconds == 0.0));
}

#[test]
fn a_program_alone_runs_as_without_cosched() {
    let auto = as_good_as_the_better(&[spinning(24, 60.0)], "");
    assert_eq!(choices(&auto), [(Manner::SideBySide, Ground::Alone)]);
}

#[test]
fn short_programs_beside_a_long_one_and_single_threads_lose_nothing() {
    let short = || computing(24, 6.0);
    as_good_as_the_better(&[computing(24, 240.0), short(), short()], "");
    let single: Vec<String> = (0..30).map(|_| computing(1, 6.0)).collect();
    let auto = as_good_as_the_better(&single, "");
    assert!(choices(&auto).iter().all(|(manner, _)| *manner == Manner::SideBySide));
}

#[test]
fn who_tells_that_it_comes_further_in_turns_takes_turns_and_few_ticks_decide_nothing() {
    let spins = || {
        let keys = "spin = 'forever'\nimbalance = 0.02";
        telling(program(24, 120.0, keys, "barriers = 4000"))
    };
    let fine: Vec<String> = (0..4).map(|_| spins()).collect();
    let auto = as_good_as_the_better(&fine, "");
    let told = choices(&auto);
    assert!(told.contains(&(Manner::InGangs, Ground::FurtherInTurns)), "{told:?}");
    assert!(!told.iter().any(|(_, ground)| *ground == Ground::FurtherTogether), "{told:?}");
    let coarse: Vec<String> = (0..4).map(|_| telling(spinning(24, 120.0))).collect();
    let untold: Vec<String> = (0..4).map(|_| spinning(24, 120.0)).collect();
    let [coarse, untold] = [coarse, untold].map(|mix| as_good_as_the_better(&mix, ""));
    assert_eq!(choices(&coarse), choices(&untold));
}

#[test]
fn who_loses_nothing_beside_others_is_left_side_by_side() {
    let computes = || telling(program(24, 120.0, "imbalance = 0.02", "barriers = 4000"));
    let mix: Vec<String> = (0..4).map(|_| computes()).collect();
    let auto = as_good_as_the_better(&mix, "");
    let told = choices(&auto);
    assert!(told.contains(&(Manner::SideBySide, Ground::FurtherTogether)), "{told:?}");
}

#[test]
fn programs_that_spin_and_sleep_by_turns_are_better_off_if_they_tell() {
    let mix: Vec<String> = (0..3).map(|_| telling(spinning_and_sleeping(24, 160.0))).collect();
    let told = choices(&as_good_as_the_better(&mix, ""));
    assert!(told.contains(&(Manner::SideBySide, Ground::GangsIdle)), "by CPU time: {told:?}");
    assert!(told.contains(&(Manner::InGangs, Ground::FurtherInTurns)), "{told:?}");
}

#[test]
fn who_is_known_to_live_from_memory_is_spread_and_has_more_of_it() {
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
        assert!(choices(&result).iter().any(|(manner, _)| *manner == Manner::InGangs));
        result.programs[0].turnaround_seconds.unwrap()
    };
    let (known, unknown) = (seconds(known), seconds(stream));
    println!("{known:.3} s, and {unknown:.3} s where that is not known");
    assert!(known < 0.9 * unknown, "{known:.3} and {unknown:.3}");
}

#[test]
fn malleable_programs_whose_other_threads_spin_take_turns_with_all_of_them() {
    let fewer = |told: &[(Manner, Ground)]| told.iter().any(|(m, _)| *m == Manner::FewerThreads);
    let mix = || (0..6).map(|_| serial(24, 30.0, "forever"));
    let told = choices(&as_good_as_the_better(&mix().map(telling).collect::<Vec<_>>(), ""));
    assert!(fewer(&told) && told.contains(&(Manner::InGangs, Ground::FewerDidLess)), "{told:?}");
    let untold = choices(&as_good_as_the_better(&mix().collect::<Vec<_>>(), ""));
    assert!(!fewer(&untold) && untold.contains(&(Manner::InGangs, Ground::GangsFill)));
}

#[test]
fn malleable_programs_that_lose_by_fewer_threads_have_all_of_them_again() {
    let mix: Vec<String> = (0..6).map(|_| serial(24, 60.0, "0s")).collect();
    let auto = as_good_as_the_better(&mix, "");
    let told = choices(&auto);
    let tried = told.iter().any(|(manner, _)| *manner == Manner::FewerThreads);
    assert!(tried && told.contains(&(Manner::SideBySide, Ground::FewerDidLess)), "{told:?}");
    let alone = as_good_as_the_better(&mix[..1], "");
    assert_eq!(choices(&alone), [(Manner::SideBySide, Ground::Alone)]);
}

#[test]
fn moldable_programs_are_started_with_as_many_threads_as_bring_most_and_end_sooner() {
    let rigid = vec![serial(24, 24.0, "forever").replace("malleable = true\n", ""); 6];
    let moldable: Vec<String> = rigid
        .iter()
        .map(|program| program.replace("[program.model]", "moldable = true\n[program.model]"))
        .collect();
    let [with_all, with_fewer] = [rigid, moldable].map(|programs| run(&programs, "auto"));
    assert!(with_all.programs.iter().all(|program| program.threads == 24));
    let reasons = || with_fewer.decisions.iter().flat_map(|decision| &decision.reasons);
    for (slot, program) in with_fewer.programs.iter().enumerate() {
        assert!(program.threads <= 8, "a tenth is done by one thread: {} threads", program.threads);
        let told = Why::Molded { threads: program.threads, asked: 24 };
        let own = |id: cosched_core::ProgramId| usize::from(id.slot) == slot;
        assert!(reasons().any(|reason| reason.why == told && reason.program.is_some_and(own)));
        let [all, fewer] = [program.solo_seconds, program.molded_solo_seconds].map(Option::unwrap);
        assert!(
            fewer > 1.1 * all,
            "alone it has more of more threads: {fewer} s, {all} s with all"
        );
        let company = program.turnaround_seconds.unwrap() - fewer - program.waiting_seconds;
        assert!((program.interference_seconds.unwrap() - company).abs() < 1e-5);
    }
    let ratio = with_fewer.total_seconds / with_all.total_seconds;
    assert!(ratio < 0.7, "{ratio}");
}
