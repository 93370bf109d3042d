//! The dispatcher of Solaris compared with traces by hand, and the effects of its rules.
//!
//! One CPU of 1 GHz, on which switches cost nothing, with a clock that ticks every 10 ms. Times are
//! microseconds.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Class, Measure, Nanos, ProgramId, Settings};
use cosched_sim::model::{Mix, Op};
use cosched_sim::{Hardware, Kernel, Model, Tally};
use stage::{Stage, computes, ideal, micros, program};

fn fixed(priority: u8, slice: u64) -> Settings {
    let class = Some(Class::FixedPriority(priority));
    Settings { class, slice: Some(Nanos::from_millis(slice)), ..Settings::default() }
}

/// The trace of one CPU with programs that arrive at these times.
fn trace(kernel: Kernel, programs: Vec<(u64, Model, Settings)>) -> String {
    let count = programs.len();
    let mut stage = Stage::with(ideal("core:1"), kernel, programs, 1);
    stage.until(Nanos::from_secs(3));
    assert_eq!(stage.ends().len(), count);
    stage.table(0)
}

/// A thread is lowered by ten for each turn that it used up, and its turns get longer.
#[test]
fn time_sharing_lowers_a_thread_by_ten_per_used_turn() {
    // Both begin at level 59 with 20 ms.
    //   0  A.   20  A at 49, B (59) runs.   40  B at 49, behind A.
    //  40  A has 40 ms, 39.   80  B the same.
    // 120  A has 80 ms, 29.  200  B the same.
    // 280  A has 120 ms, of which it needs 60; then B.
    let two =
        vec![(0, computes(200), Settings::default()), (1000, computes(200), Settings::default())];
    assert_eq!(
        trace(Kernel::SOLARIS_TS, two),
        "A 0-20000, B 20000-40000, A 40000-80000, B 80000-120000, A 120000-200000, \
         B 200000-280000, A 280000-340000, B 340000-400000"
    );
}

/// The running thread keeps its CPU against a lower one, because it is raised each second.
#[test]
fn time_sharing_raises_a_running_thread_each_second() {
    //    0  A alone: 59 until 20, 49 until 60, 39 until 140, 29 until 260, 19 until 420, 9 until
    //       620, 0 from then on.
    // 1000  A is raised to 50, with 40 ms; this tick is charged.
    // 1001  B comes at 59 and runs for its 15 ms.
    let two = vec![
        (0, computes(1100), Settings::default()),
        (1_001_000, computes(15), Settings::default()),
    ];
    assert_eq!(trace(Kernel::SOLARIS_TS, two), "A 0-1001000, B 1001000-1016000, A 1016000-1115000");
}

/// Threads of equal fixed priority alternate, and the plan sets the slice.
#[test]
fn equal_fixed_priorities_take_turns_of_the_set_slice() {
    let two = vec![(0, computes(60), fixed(0, 30)), (0, computes(60), fixed(0, 30))];
    let table = trace(Kernel::SOLARIS_TS, two);
    let turns =
        ["A 0-30000, B 30000-60000, A 60000-90000", "B 0-30000, A 30000-60000, B 60000-90000"];
    assert!(turns.iter().any(|turns| table.starts_with(turns)), "{table}");
}

#[test]
fn a_slice_ends_at_the_next_tick() {
    let two = vec![(0, computes(40), fixed(0, 15)), (1000, computes(20), fixed(0, 15))];
    assert_eq!(trace(Kernel::SOLARIS_FX, two), "A 0-20000, B 20000-40000, A 40000-60000");
}

/// The thread that a higher priority displaces keeps its turn.
#[test]
fn a_higher_fixed_priority_runs_at_once_and_to_its_end() {
    // B takes A's CPU at 5, and leaves it at 35. C waits for a turn of A: 20 ms, of which 5 were
    // before.
    let three = vec![
        (0, computes(40), fixed(0, 20)),
        (1000, computes(10), fixed(0, 20)),
        (5000, computes(30), fixed(7, 20)),
    ];
    // Ticks at 10, 20 and 30 charge C (the letter of the third program); A is charged at 40 and 50.
    assert_eq!(
        trace(Kernel::SOLARIS_FX, three),
        "A 0-5000, C 5000-35000, A 35000-50000, B 50000-60000, A 60000-80000"
    );
}

/// Without a plan, the kernel of fixed priorities gives turns of 200 ms.
#[test]
fn fixed_priorities_have_turns_of_200_ms_by_default() {
    let two =
        vec![(0, computes(300), Settings::default()), (1000, computes(100), Settings::default())];
    assert_eq!(trace(Kernel::SOLARIS_FX, two), "A 0-200000, B 200000-300000, A 300000-400000");
}

/// Thread 0 computes for 1.3 s; thread 1 sleeps for 1.005 s from when it first has a CPU, and
/// computes for 10 ms.
fn sibling_that_wakes() -> Model {
    let only = |first: u16| Op::Only { threads: (first, first + 1), next: 1 };
    let sleep = Op::Sleep(Nanos::from_millis(1005));
    program(2, vec![only(1), sleep, only(0), micros(1_300_000), only(1), micros(10_000)])
}

fn tally(stage: &Stage) -> Tally {
    let add = |sum: Tally, tally: Tally| Tally {
        expired: sum.expired + tally.expired,
        by_sibling: sum.by_sibling + tally.by_sibling,
        by_other: sum.by_other + tally.by_other,
        ..sum
    };
    stage.sim.intervals().iter().map(|row| row.tally).fold(Tally::default(), add)
}

fn watched(kernel: Kernel, hardware: Hardware, model: Model, seed: u64) -> Stage {
    let mut stage = Stage::with(hardware, kernel, [(0, model, Settings::default())], seed);
    stage.sim.watch(Nanos::from_secs(1));
    stage
}

/// A waking thread preempts its sibling under time sharing, and waits under fixed priorities.
#[test]
fn a_waking_thread_preempts_a_sibling_if_time_sharing() {
    // TS: thread 1 has the CPU at 20 ms, sleeps, and wakes at 1025 at 59, its sibling is at 50.
    let mut stage = watched(Kernel::SOLARIS_TS, ideal("core:1"), sibling_that_wakes(), 1);
    stage.until(Nanos::from_secs(2));
    assert_eq!(
        stage.table(0),
        "A 0-20000, A1 20000-20000, A 20000-1025000, A1 1025000-1035000, A 1035000-1310000"
    );
    let found = tally(&stage);
    assert_eq!((found.by_sibling, found.by_other), (1, 0));
    // FX: it has the CPU at 200 ms, wakes at 1205, and its sibling ends before its turn does.
    let mut stage = watched(Kernel::SOLARIS_FX, ideal("core:1"), sibling_that_wakes(), 1);
    stage.until(Nanos::from_secs(2));
    assert_eq!(
        stage.table(0),
        "A 0-200000, A1 200000-200000, A 200000-1300000, A1 1300000-1310000"
    );
    assert_eq!(tally(&stage).by_sibling, 0);
}

/// Twelve threads on four CPUs that contend for a lock.
fn fighters() -> Model {
    Model {
        adaptive: Some(Nanos::from_micros(20)),
        ..Model::lock(12, 3000, 2e5, 4e4, Mix::computing(1.0), Nanos::ZERO)
    }
}

#[test]
fn siblings_preempt_each_other_under_time_sharing_only() {
    let found = |kernel, seed| {
        let hardware = Hardware::words("package:1 core:4").unwrap();
        let mut stage = watched(kernel, hardware, fighters(), seed);
        stage.until(Nanos::from_secs(20));
        assert_eq!(stage.ends().len(), 1);
        tally(&stage)
    };
    for seed in 1..4 {
        let (ts, fx) = (found(Kernel::SOLARIS_TS, seed), found(Kernel::SOLARIS_FX, seed));
        assert!(ts.by_sibling > 0, "{ts:?}");
        assert_eq!((fx.by_sibling, fx.by_other), (0, 0));
        assert_eq!(ts, found(Kernel::SOLARIS_TS, seed), "the same seed gives the same run");
    }
}

/// Thread 0 takes a lock, computes 1 ms, sleeps 5 ms with it, computes 1 ms; thread 1 requests it
/// after 0.5 ms.
fn holder_that_sleeps(adaptive: Option<Nanos>) -> Model {
    let script = vec![
        Op::Only { threads: (1, 2), next: 1 },
        micros(500),
        Op::Acquire(0),
        Op::Only { threads: (0, 1), next: 3 },
        micros(1000),
        Op::Sleep(Nanos::from_millis(5)),
        micros(1000),
        Op::Release(0),
    ];
    Model { locks: 1, adaptive, spin: Nanos::NEVER, ..program(2, script) }
}

/// CPU time of both threads together, microseconds, and switches because they waited.
fn used(model: Model) -> (u64, u64) {
    let mut stage = Stage::new(ideal("core:2"), Kernel::SOLARIS_FX, vec![(0, model)]);
    stage.until(Nanos::from_micros(8000));
    let sample = stage.read(1, &[Measure::CpuTime]);
    if let Some(sample) = sample.iter().find(|sample| sample.program == ProgramId::first(0)) {
        return (sample.on_cpu.0 / 1000, sample.voluntary_switches.unwrap());
    }
    let exit = stage.events.iter().find_map(|event| match event.what {
        cosched_core::Happening::Exited(_, _, usage) => Some(usage),
        _ => None,
    });
    let usage = exit.unwrap();
    ((usage.user_seconds * 1e6).round() as u64, usage.voluntary_switches)
}

/// An adaptive mutex sleeps while its holder is not on a CPU.
#[test]
fn an_adaptive_mutex_spins_only_while_its_holder_runs() {
    // Thread 0 computes 2 ms. Thread 1 computes 0.5 ms and spins: until 1 ms, when the holder goes
    // to sleep...
    assert_eq!(used(holder_that_sleeps(Some(Nanos::NEVER))), (2000 + 500 + 500, 2));
    // ... or until 7 ms, when it gets the lock, if it does not check the holder ...
    assert_eq!(used(holder_that_sleeps(None)), (2000 + 500 + 6500, 1));
    // ... or for as long as it may spin.
    let briefly = Some(Nanos::from_micros(100));
    assert_eq!(used(holder_that_sleeps(briefly)), (2000 + 500 + 100, 2));
}

#[test]
fn nested_locks_are_all_released() {
    let text = "adaptive = '10us'\n[[phase]]\nrepeat = 50\ninstructions = 8e6\n\
                critical = { sections = 20, instructions = 20000, nested = 5000 }";
    let model = Model::read(&text.parse().unwrap(), 8).unwrap();
    assert!(model.script.contains(&Op::Acquire(1)));
    let mut stage = Stage::new(ideal("core:4"), Kernel::SOLARIS_TS, vec![(0, model)]);
    stage.until(Nanos::from_secs(5));
    assert_eq!(stage.ends().len(), 1);
}

/// On two CPUs: A (priority 9) computes for 10 ms, sleeps, and computes for another 10. C keeps the
/// other CPU for 20 ms. B (priority 3) comes at 15 ms, has A's CPU, and computes for 100 ms. When
/// B ends (microseconds), and how often it was displaced.
fn visit(shape: &str, sleeps: u64) -> (u64, u64) {
    let sleep = Op::Sleep(Nanos::from_millis(sleeps));
    let programs = [
        (0, program(1, vec![micros(10_000), sleep, micros(10_000)]), fixed(9, 200)),
        (0, computes(20), fixed(9, 200)),
        (15_000, computes(100), fixed(3, 200)),
    ];
    let mut stage = Stage::with(ideal(shape), Kernel::SOLARIS_FX, programs, 1);
    stage.sim.watch(Nanos::from_secs(1));
    stage.until(Nanos::from_secs(1));
    let ends = stage.ends();
    assert!(ends.contains(&(0, 1000 * (20 + sleeps))), "A never waits: {ends:?}");
    let end = ends.iter().find(|(program, _)| *program == 2).unwrap().1;
    (end, tally(&stage).by_other)
}

/// After three ticks at most, a thread goes back to its CPU although another one is idle, and
/// displaces B. The idle CPU takes B at once in the same package, and after 100 us in another one.
#[test]
fn a_warm_thread_takes_its_cpu_although_another_one_is_idle() {
    assert_eq!(visit("package:1 core:2", 25), (115_000, 1));
    assert_eq!(visit("package:2 core:1", 25), (115_100, 1));
}

/// Later it goes to the idle CPU if that is at home; else it displaces a lower priority at home.
#[test]
fn a_cold_thread_prefers_a_lower_priority_at_home_to_an_idle_cpu() {
    assert_eq!(visit("package:1 core:2", 100), (115_000, 0));
    assert_eq!(visit("package:2 core:1", 100), (115_100, 1));
}

/// Each turn that is used up counts as an involuntary switch, even if no other thread waits.
#[test]
fn used_up_turns_count_as_switches_of_a_lone_thread() {
    let expired = |slice| {
        let lone = [(0, computes(100), fixed(0, slice))];
        let mut stage = Stage::with(ideal("core:1"), Kernel::SOLARIS_FX, lone, 1);
        stage.sim.watch(Nanos::from_secs(1));
        stage.until(Nanos::from_secs(1));
        tally(&stage).expired
    };
    // At 30, 60 and 90 ms.
    assert_eq!(expired(30), 3);
    assert_eq!(expired(200), 0);
}
