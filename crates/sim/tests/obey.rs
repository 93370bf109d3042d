//! A plan's settings for programs and threads take effect, or are reported as refused.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{
    Aspect, Class, CpuSet, Happening, Machine, Measure, Nanos, ProgramId, Refusal, Settings, Step,
    ThreadId, ThreadRule,
};
use cosched_sim::model::{Mix, Op};
use cosched_sim::{Kernel, Model};
use stage::{Stage, computes, ideal, micros, program};

const FIRST: ProgramId = ProgramId::first(0);
const SECOND: ProgramId = ProgramId::first(1);

fn long(threads: u16) -> Model {
    program(threads, vec![micros(60_000_000)])
}

fn stage(shape: &str, kernel: Kernel, programs: &[(Model, Settings)]) -> Stage {
    let programs = programs.iter().map(|(model, settings)| (0, model.clone(), *settings));
    Stage::with(ideal(shape), kernel, programs, 1)
}

/// What was refused for this reason, by program.
fn refused_as(stage: &Stage, why: Refusal) -> Vec<(u16, Aspect)> {
    let refused = |event: &cosched_core::Event| match event.what {
        Happening::Refused(id, aspect, given) if given == why => Some((id.slot, aspect)),
        _ => None,
    };
    stage.events.iter().filter_map(refused).collect()
}

fn refused(stage: &Stage) -> Vec<(u16, Aspect)> {
    refused_as(stage, Refusal::NotSupported)
}

/// The shares of two threads on one CPU; the first has these settings.
fn beside_a_plain_one(kernel: Kernel, settings: Settings) -> (Vec<f64>, Vec<(u16, Aspect)>) {
    let mut stage = stage("core:1", kernel, &[(long(1), settings), (long(1), Settings::default())]);
    let shares = stage.shares(2, 1000, 11_000);
    (shares, refused(&stage))
}

#[test]
fn nice_values_share_a_cpu_as_their_weights_do() {
    for kernel in [Kernel::EEVDF, Kernel::CFS] {
        for (nice, weight) in [(5, 335.0), (-5, 3121.0), (10, 110.0)] {
            let settings = Settings { nice: Some(nice), ..Settings::default() };
            let (shares, refused) = beside_a_plain_one(kernel, settings);
            let expected = weight / (weight + 1024.0);
            assert!((shares[0] - expected).abs() < 0.01, "{nice} {shares:?} {expected}");
            assert_eq!(refused, []);
        }
    }
    let settings = Settings { nice: Some(5), ..Settings::default() };
    assert_eq!(beside_a_plain_one(Kernel::ROUND_ROBIN, settings).1, [(0, Aspect::Nice)]);
}

/// A slice sets the length of turns, and what the kernel clamps is reported.
#[test]
fn a_slice_sets_the_length_of_turns() {
    let switches = |slice: u64| {
        let settings = Settings { slice: Some(Nanos::from_millis(slice)), ..Settings::default() };
        let mut stage = stage("core:1", Kernel::EEVDF, &[(long(1), settings), (long(1), settings)]);
        stage.until(Nanos::from_secs(10));
        (stage.sim.switches().len(), refused_as(&stage, Refusal::OutOfRange))
    };
    // Turns end at ticks of 4 ms: a slice of 20 ms is one, 250 ms become 100.
    let (of_20, of_100, of_250) = (switches(20), switches(100), switches(250));
    assert!((450..=550).contains(&of_20.0), "{}", of_20.0);
    assert!((90..=110).contains(&of_100.0), "{}", of_100.0);
    assert_eq!((of_100.0, of_100.1), (of_250.0, vec![]));
    assert_eq!(of_250.1, [(0, Aspect::Slice), (1, Aspect::Slice)]);
    let settings = Settings { slice: Some(Nanos::from_millis(20)), ..Settings::default() };
    assert_eq!(beside_a_plain_one(Kernel::CFS, settings).1, [(0, Aspect::Slice)]);
    assert_eq!(beside_a_plain_one(Kernel::ROUND_ROBIN, settings).1, []);
}

#[test]
fn batch_threads_preempt_no_thread() {
    // A short burst now and then, with a program that computes.
    let bursts = program(
        1,
        vec![
            micros(300),
            Op::Sleep(Nanos::from_millis(20)),
            Op::Repeat { from: 0, times: 200, counter: 0 },
        ],
    );
    for kernel in [Kernel::EEVDF, Kernel::CFS] {
        let delay = |class| {
            let settings = Settings { class: Some(class), ..Settings::default() };
            let mut stage = stage(
                "core:1",
                kernel,
                &[(bursts.clone(), settings), (long(1), Settings::default())],
            );
            stage.until(Nanos::from_secs(3));
            stage.read(1, &[Measure::CpuTime])[0].run_delay.unwrap()
        };
        let (fair, batch) = (delay(Class::Fair), delay(Class::Batch));
        assert!(batch.0 > 2 * fair.0, "{kernel:?} fair {fair}, batch {batch}");
    }
}

#[test]
fn real_time_threads_come_first_and_take_turns() {
    let real_time =
        |priority| Settings { class: Some(Class::RoundRobin(priority)), ..Settings::default() };
    let (shares, refused) = beside_a_plain_one(Kernel::EEVDF, real_time(1));
    assert_eq!((shares[0], shares[1], refused), (1.0, 0.0, vec![]));
    let mut stage = stage(
        "core:1",
        Kernel::EEVDF,
        &[(long(1), real_time(1)), (computes(500), real_time(2)), (long(1), real_time(1))],
    );
    stage.until(Nanos::from_millis(100));
    assert!(stage.table(0).ends_with("") && stage.ends().is_empty());
    stage.until(Nanos::from_millis(3000));
    // The highest priority first, alone; then turns of 100 ms.
    assert_eq!(stage.ends(), [(1, 500_000)]);
    let rows = stage.table(0);
    let turns: Vec<f64> = rows
        .split(", ")
        .skip(3)
        .map(|row| {
            let (from, to) = row.split(' ').nth(1).unwrap().split_once('-').unwrap();
            to.parse::<f64>().unwrap() - from.parse::<f64>().unwrap()
        })
        .collect();
    assert!(turns.len() > 20, "{rows}");
    assert!(turns.iter().all(|turn| (99_999.0..=104_000.0).contains(turn)), "{turns:?}");
    // Linux does not have the class of Solaris.
    let fixed = Settings { class: Some(Class::FixedPriority(3)), ..Settings::default() };
    assert_eq!(beside_a_plain_one(Kernel::EEVDF, fixed).1, [(0, Aspect::Class)]);
    let (shares, refused) = beside_a_plain_one(Kernel::ROUND_ROBIN, fixed);
    assert_eq!((shares[0], refused), (1.0, vec![]));
}

#[test]
fn a_real_time_thread_takes_the_least_important_cpu() {
    let real_time = Settings { class: Some(Class::RoundRobin(1)), ..Settings::default() };
    let mut stage =
        stage("core:2", Kernel::EEVDF, &[(long(2), Settings::default()), (long(2), real_time)]);
    let shares = stage.shares(2, 100, 1100);
    assert_eq!(shares, [0.0, 2.0]);
}

#[test]
fn programs_with_a_cpu_group_share_by_program() {
    let grouped = Settings { cpu_group: Some(true), ..Settings::default() };
    let mut stage = stage("core:2", Kernel::EEVDF, &[(long(2), grouped), (long(6), grouped)]);
    let shares = stage.shares(2, 2000, 12_000);
    assert!((shares[0] - 1.0).abs() < 0.06, "{shares:?}");
    let mut stage = self::stage(
        "core:2",
        Kernel::EEVDF,
        &[(long(2), Settings::default()), (long(6), Settings::default())],
    );
    let shares = stage.shares(2, 2000, 12_000);
    assert!((shares[0] - 0.5).abs() < 0.06, "{shares:?}");
}

#[test]
fn changed_settings_take_effect_at_once() {
    let mut stage = stage(
        "core:4",
        Kernel::EEVDF,
        &[(long(4), Settings::default()), (long(4), Settings::default())],
    );
    stage.until(Nanos::from_millis(100));
    stage.submit(&[Step::Apply(FIRST, Settings::on(CpuSet::first(1)), 7)]);
    // A busy CPU checks every 128 ms on four CPUs, so it takes some of those until the queues are
    // even again.
    let shares = stage.shares(2, 600, 1200);
    assert!(stage.events.iter().any(|event| event.what == Happening::Applied(FIRST, 7)));
    // Its four threads share the one CPU; the others leave it.
    assert_eq!(shares, [1.0, 3.0]);
    let one = Settings::on(CpuSet::first(1));
    let nice = Settings { nice: Some(19), ..one };
    stage.submit(&[Step::Apply(FIRST, nice, 8), Step::Apply(SECOND, one, 9)]);
    let shares = stage.shares(2, 1300, 3300);
    assert!(shares[0] < 0.05 && (shares[0] + shares[1] - 1.0).abs() < 0.001, "{shares:?}");
    stage.submit(&[Step::Release(SECOND)]);
    stage.submit(&[Step::Release(FIRST)]);
    let shares = stage.shares(2, 3400, 5400);
    assert!((shares[0] - 2.0).abs() < 0.2, "{shares:?}");
}

#[test]
fn a_threads_rule_stays_within_its_programs_cpus() {
    let on = Settings::on(CpuSet::first(2));
    let mut stage = stage("core:4", Kernel::EEVDF, &[(long(2), on)]);
    stage.until(Nanos::from_millis(10));
    let thread = |slot| ThreadId { slot, generation: 0 };
    let only = |cpu: usize| ThreadRule { cpus: Some([cpu].into_iter().collect()), slice: None };
    stage.submit(&[Step::ApplyThread(thread(0), only(1)), Step::ApplyThread(thread(1), only(1))]);
    assert_eq!(stage.shares(1, 20, 1020), [1.0]);
    // CPU 3 is not the program's: the rule is refused, and the thread goes where its program may.
    stage.submit(&[Step::ApplyThread(thread(1), only(3))]);
    // A busy CPU checks every 120 ms on four CPUs, and finds a thread that may move if it is not
    // the other one that waits.
    assert_eq!(stage.shares(1, 1800, 2100), [2.0]);
    let refused = |event: &cosched_core::Event| {
        event.what == Happening::Refused(FIRST, Aspect::Cpus, Refusal::NoCpuLeft)
    };
    assert!(stage.events.iter().any(refused));
    // A rule of another run of the program does nothing.
    stage.submit(&[Step::ApplyThread(ThreadId { slot: 1, generation: 5 }, only(1))]);
    assert_eq!(stage.shares(1, 2200, 3200), [2.0]);
    // An empty rule revokes the earlier one.
    stage.submit(&[Step::ApplyThread(thread(0), ThreadRule::default())]);
    assert_eq!(stage.shares(1, 3300, 4300), [2.0]);
    assert!(stage.table(2).is_empty() && stage.table(3).is_empty());
}

#[test]
fn a_frozen_program_does_nothing_and_waits_for_nothing() {
    let mut stage = stage(
        "core:2",
        Kernel::EEVDF,
        &[(long(2), Settings::default()), (long(2), Settings::default())],
    );
    stage.until(Nanos::from_millis(50));
    stage.submit(&[Step::Freeze(FIRST)]);
    let shares = stage.shares(2, 60, 1060);
    assert_eq!(shares, [0.0, 2.0]);
    stage.submit(&[Step::Thaw(FIRST), Step::Freeze(SECOND)]);
    let samples = {
        stage.until(Nanos::from_millis(1560));
        stage.read(2, &[Measure::CpuTime])
    };
    assert_eq!(samples[0].on_cpu, Nanos::from_millis(1000));
    assert_eq!((samples[1].on_cpu, samples[1].frozen), (Nanos::ZERO, Nanos::from_millis(500)));
}

#[test]
fn samples_tell_what_threads_did_in_the_interval() {
    // 10 ms at 1 GHz, a cycle and a half per instruction with 0.02 misses each; 4 bytes of 64 per
    // nanosecond and thread.
    let streaming =
        Mix { misses: 0.02, misses_without_cache: 0.04, parallelism: 4.0, ..Mix::computing(1.0) };
    let model = Model {
        script: vec![Op::Compute { instructions: 1e9, mix: 0 }],
        ..Model::parallel(1, 0.0, streaming)
    };
    let lock = Model::lock(2, 100_000, 1e5, 1e5, Mix::computing(1.0), Nanos::ZERO);
    let mut stage = stage(
        "core:4",
        Kernel::EEVDF,
        &[(model, Settings::default()), (lock, Settings::default())],
    );
    let measures = [
        Measure::CpuTime,
        Measure::Counters,
        Measure::LockWait,
        Measure::LockShares,
        Measure::Threads,
    ];
    stage.until(Nanos::from_millis(100));
    stage.read(2, &measures);
    stage.until(Nanos::from_millis(300));
    let samples = stage.read(2, &measures);
    let of = |id: ProgramId, thread: bool| {
        samples
            .iter()
            .filter(move |sample| sample.program == id && sample.thread.is_some() == thread)
    };
    let all = of(FIRST, false).next().unwrap();
    assert_eq!((all.from, all.to), (Nanos::from_millis(100), Nanos::from_millis(300)));
    assert_eq!((all.on_cpu, all.co_runners), (Nanos::from_millis(200), 1));
    assert_eq!(all.cycles, Some(200_000_000));
    let (instructions, misses) = (all.instructions.unwrap() as f64, all.llc_misses.unwrap() as f64);
    assert!((misses / instructions - 0.02).abs() < 1e-6);
    assert_eq!(all.llc_references.unwrap(), 2 * all.llc_misses.unwrap());
    // Two threads; one of them is always in the lock, each for half of the time. Each waits for a
    // part of the time, asleep.
    let lock = of(SECOND, false).next().unwrap();
    assert_eq!(of(SECOND, true).count(), 2);
    let waits: u64 = of(SECOND, true).map(|sample| sample.lock_wait.unwrap().0).sum();
    assert_eq!(Some(Nanos(waits)), lock.lock_wait);
    let covered = lock.on_cpu.0 + waits + lock.run_delay.unwrap().0;
    assert!((covered as f64 / 4e8 - 1.0).abs() < 0.01, "{covered}");
}

#[test]
fn a_killed_run_leaves_nothing_behind() {
    let sleeper = program(2, vec![micros(10), Op::Sleep(Nanos::from_secs(9)), micros(10)]);
    let mut stage = stage(
        "core:1",
        Kernel::EEVDF,
        &[(sleeper, Settings::default()), (long(3), Settings::default())],
    );
    stage.until(Nanos::from_millis(50));
    stage.submit(&[
        Step::Signal(FIRST, cosched_core::Signal::Kill),
        Step::Signal(SECOND, cosched_core::Signal::Kill),
    ]);
    stage.until(Nanos::from_secs(20));
    assert_eq!(stage.ends().len(), 2);
    let mut events = Vec::new();
    assert!(stage.sim.wait(Nanos::NEVER, &mut events).is_err(), "nothing is due any more");
}
