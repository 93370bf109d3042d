//! Taking turns by weight, on the simulated kernel of Linux 6.18.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{
    Aspect, CpuSet, Happening, Measure, Nanos, ProgramId, Refusal, Settings, Step, Turn,
};
use cosched_sim::model::{Mix, Op};
use cosched_sim::{Kernel, Model};
use stage::{Stage, ideal, micros, program};

const FIRST: ProgramId = ProgramId::first(0);
const SECOND: ProgramId = ProgramId::first(1);

fn part(turn: Turn) -> Settings {
    Settings { cpu_group: Some(true), turn: Some(turn), ..Settings::default() }
}

fn in_turn() -> Settings {
    part(Turn::InTurn)
}

fn filler() -> Settings {
    part(Turn::Filler)
}

fn long(threads: u16) -> Model {
    program(threads, vec![micros(60_000_000)])
}

/// Computes for a while and sleeps for a while, again and again.
fn bursts(computes: u64, sleeps: u64) -> Model {
    let sleep = Op::Sleep(Nanos::from_micros(sleeps));
    program(1, vec![micros(computes), sleep, Op::Repeat { from: 0, times: 10_000, counter: 0 }])
}

/// Threads that spin at barriers for a while and then sleep, with this many microseconds between
/// two barriers, for a minute.
fn barriers(threads: u16, apart: u64, spin: Nanos) -> Model {
    let rounds = (60_000_000 / apart) as u32;
    Model::barriers(threads, rounds, 1e3 * apart as f64, Mix::computing(1.0), spin)
}

fn stage(shape: &str, kernel: Kernel, programs: Vec<(Model, Settings)>) -> Stage {
    let programs = programs.into_iter().map(|(model, settings)| (0, model, settings));
    Stage::with(ideal(shape), kernel, programs, 1)
}

fn linux(shape: &str, programs: Vec<(Model, Settings)>) -> Stage {
    stage(shape, Kernel::EEVDF, programs)
}

/// A program of two threads in turn, and a filler of two threads, which a mask has put on one CPU.
fn piled_up() -> Stage {
    let one = Settings { cpus: Some(CpuSet::first(1)), ..filler() };
    let mut stage = linux("core:2", vec![(long(2), in_turn()), (long(2), one)]);
    stage.until(Nanos::from_millis(250));
    stage
}

#[test]
fn a_filler_gets_the_cpus_that_the_turn_leaves() {
    let mut stage = linux("core:2", vec![(long(1), in_turn()), (long(2), filler())]);
    let shares = stage.shares(2, 100, 2100);
    assert!(shares[0] > 0.998, "{shares:?}");
    assert!((shares[0] + shares[1] - 2.0).abs() < 1e-6, "{shares:?}");
}

#[test]
fn fillers_hardly_run_while_the_turn_uses_all_cpus() {
    let mut programs = vec![(long(2), in_turn())];
    programs.extend((0..7).map(|_| (long(2), filler())));
    let mut stage = linux("core:2", programs);
    let shares = stage.shares(8, 500, 10_500);
    assert!(shares[0] > 2.0 * 0.99, "{shares:?}");
}

#[test]
fn fillers_share_evenly_what_they_get() {
    let mut stage =
        linux("core:1", vec![(long(1), filler()), (long(1), filler()), (long(1), filler())]);
    let shares = stage.shares(3, 100, 6100);
    assert!(shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01), "{shares:?}");
}

#[test]
fn a_waking_thread_in_turn_preempts_a_filler_at_once() {
    let delay = |settings, beside| {
        let mut stage = linux("core:1", vec![(bursts(300, 2000), settings), (long(1), beside)]);
        stage.until(Nanos::from_secs(2));
        stage.read(1, &[Measure::CpuTime])[0].run_delay.unwrap()
    };
    let (by_weight, equals) = (delay(in_turn(), filler()), delay(filler(), filler()));
    // Some 870 bursts.
    assert!(by_weight < Nanos::from_millis(10), "{by_weight} beside {equals}");
    assert!(equals > Nanos::from_millis(100), "{equals}");
}

#[test]
fn a_waking_filler_preempts_no_thread_in_turn() {
    let mut stage = linux("core:1", vec![(long(1), in_turn()), (bursts(300, 2000), filler())]);
    let shares = stage.shares(2, 100, 5100);
    assert!(shares[1] < 0.015, "{shares:?}");
}

#[test]
fn a_waking_thread_takes_a_cpu_that_runs_only_fillers() {
    // The thread in turn has the first CPU to itself. No other thread wakes there.
    let only = |cpu: usize| Some([cpu].into_iter().collect());
    let first = Settings { cpus: only(0), ..in_turn() };
    let second = Settings { cpus: only(1), ..filler() };
    let mut stage =
        linux("core:2", vec![(long(1), first), (long(1), second), (bursts(500, 500), in_turn())]);
    let shares = stage.shares(3, 100, 2100);
    assert!(shares[0] > 0.99 && (shares[2] - 0.5).abs() < 0.01, "{shares:?}");
}

#[test]
fn a_turn_ends_and_the_next_begins_at_once() {
    let mut stage = linux("core:2", vec![(long(2), in_turn()), (long(2), filler())]);
    for quantum in 0..10 {
        let (from, to) = (250 * quantum, 250 * (quantum + 1));
        let shares = stage.shares(2, from + 1, to);
        let runs = (quantum % 2) as usize;
        assert!(shares[runs] > 2.0 * 0.98, "quantum {quantum}: {shares:?}");
        let (begins, ends) = if runs == 0 { (SECOND, FIRST) } else { (FIRST, SECOND) };
        stage.submit(&[Step::Apply(begins, in_turn(), 1), Step::Apply(ends, filler(), 1)]);
    }
}

#[test]
fn siblings_on_one_cpu_separate_when_their_turn_begins() {
    let begins = Step::Apply(SECOND, in_turn(), 1);
    let ends = Step::Apply(FIRST, filler(), 1);
    for steps in [[begins, ends], [ends, begins]] {
        let mut stage = piled_up();
        stage.submit(&steps);
        stage.until(Nanos::from_millis(300));
        // The second CPU switches at that moment.
        let row = stage.table(1);
        assert!(row.contains("-250000, B"), "{row}");
        // The first one does so some ticks later: its thread still has the lag behind the filler.
        let shares = stage.shares(2, 310, 450);
        assert!(shares[1] > 2.0 * 0.99, "{shares:?}");
    }
}

#[test]
fn threads_stay_together_where_no_other_cpu_is_free() {
    let mut stage = piled_up();
    // Both are in turn: the first program's threads keep a CPU each.
    stage.submit(&[Step::Apply(SECOND, Settings { cpus: Some(CpuSet::first(1)), ..in_turn() }, 1)]);
    stage.until(Nanos::from_millis(251));
    assert!(!stage.table(1).contains('B'), "{}", stage.table(1));
}

#[test]
fn siblings_in_turn_separate_within_some_ticks() {
    // The turn has begun already when the mask goes, so only the kernel moves them.
    let one = Settings { cpus: Some(CpuSet::first(1)), ..in_turn() };
    let mut stage = linux("core:2", vec![(long(2), one), (long(2), filler())]);
    stage.until(Nanos::from_millis(100));
    stage.submit(&[Step::Apply(FIRST, in_turn(), 1)]);
    let shares = stage.shares(2, 140, 240);
    assert!(shares[0] > 2.0 * 0.99, "{shares:?}");
}

/// The instructions of three programs that take turns of 250 ms for 3 s, over those of which the
/// machine is capable: one each nanosecond on every CPU.
fn done_in_turns(shape: &str, cpus: u32, program: impl Fn() -> Model) -> f64 {
    let plan = |quantum: u16| {
        let of = move |slot| if slot == quantum % 3 { in_turn() } else { filler() };
        (0..3).map(move |slot| (ProgramId::first(slot), of(slot)))
    };
    let programs = plan(0).map(|(_, settings)| (program(), settings)).collect();
    let mut stage = linux(shape, programs);
    stage.read(3, &[Measure::Counters]);
    for quantum in 0_u16..12 {
        let steps = plan(quantum).map(|(id, settings)| Step::Apply(id, settings, 1));
        stage.submit(&steps.collect::<Vec<_>>());
        stage.until(Nanos::from_millis(250 * u64::from(quantum + 1)));
    }
    let samples = stage.read(3, &[Measure::Counters]);
    let done: u64 = samples.iter().filter_map(|sample| sample.instructions).sum();
    done as f64 / (3e9 * f64::from(cpus))
}

#[test]
fn programs_with_barriers_lose_little_by_turns() {
    let done = done_in_turns("core:2", 2, || barriers(2, 100, Nanos::NEVER));
    assert!(done > 0.97, "{done}");
}

/// Threads that sleep at barriers wake up on each other's CPUs.
#[test]
fn threads_in_turn_are_moved_apart_again_on_many_cpus() {
    let done = done_in_turns("core:16", 16, || barriers(16, 100, Nanos::from_micros(300)));
    assert!(done > 0.95, "{done}");
}

#[test]
fn leaving_a_turn_restores_the_earlier_weight() {
    let mut stage = linux("core:1", vec![(long(1), in_turn()), (long(1), filler())]);
    stage.until(Nanos::from_millis(500));
    stage.submit(&[Step::Release(FIRST), Step::Release(SECOND)]);
    let shares = stage.shares(2, 600, 2600);
    assert!((shares[0] - 0.5).abs() < 0.01, "{shares:?}");
}

#[test]
fn a_run_by_weight_is_the_same_every_time() {
    let table = || {
        let mut programs =
            vec![(barriers(3, 70, Nanos::NEVER), in_turn()), (bursts(300, 700), filler())];
        programs.push((long(4), filler()));
        let mut stage = linux("core:2 pu:2", programs);
        for quantum in 0..8 {
            stage.until(Nanos::from_millis(50 * quantum));
            let (first, second) =
                if quantum % 2 == 0 { (in_turn(), filler()) } else { (filler(), in_turn()) };
            stage.submit(&[Step::Apply(FIRST, first, 1), Step::Apply(SECOND, second, 1)]);
        }
        stage.sim.switches().to_vec()
    };
    assert_eq!(table(), table());
}

#[test]
fn kernels_without_idle_groups_refuse_a_turn() {
    let kernels = [Kernel::CFS, Kernel::BALANCE, Kernel::ROUND_ROBIN, Kernel::SOLARIS_TS];
    for kernel in kernels.into_iter().chain([Kernel::SOLARIS_FX, Kernel::EEVDF]) {
        let settings = Settings { turn: Some(Turn::Filler), ..Settings::default() };
        let mut stage = stage("core:1", kernel, vec![(long(1), settings)]);
        stage.until(Nanos::from_millis(1));
        let refused = Happening::Refused(FIRST, Aspect::Turn, Refusal::NotSupported);
        let is_refused = stage.events.iter().any(|event| event.what == refused);
        assert_eq!(is_refused, kernel != Kernel::EEVDF, "{kernel:?}");
    }
}
