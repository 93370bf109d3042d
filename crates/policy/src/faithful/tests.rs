use cosched_core::{Class, MaskOwner, Quality, Thread, ThreadId};

use super::*;
use crate::common::testkit::{Lab, program};
use cosched_core::Program;

const SECOND: Nanos = Nanos::from_secs(1);
pub(super) const A: ProgramId = ProgramId::first(0);

/// As in the paper: without the guard.
fn pure() -> Faithful {
    Faithful::new(FaithfulOptions::of_the_paper(), &AllParams::default())
}

fn lab() -> Lab<Faithful> {
    Lab::new(pure(), 4, vec![program(0, 4)])
}

/// Adds this many threads to program 0.
pub(super) fn born(lab: &mut Lab<Faithful>, threads: u32) {
    lab.scene.threads = (0..threads)
        .map(|slot| Thread {
            id: ThreadId { slot, generation: 0 },
            program: A,
            process: 0,
            cpu: 0,
            on_cpu: Nanos::ZERO,
            mask_owner: MaskOwner::Cosched,
        })
        .collect();
    lab.scene.programs[0].threads = 0..threads;
    lab.tell(&[Cause::ThreadsChanged(A)]);
}

/// An interval in which each thread waited for locks for this share of the time, and this share of
/// the program's references missed the cache.
pub(super) fn interval(lab: &mut Lab<Faithful>, waits: &[f64], misses: Option<f64>) {
    let from = lab.scene.now;
    lab.pass(SECOND);
    let sample = |thread: Option<u32>, wait: f64| Sample {
        program: A,
        thread: thread.map(|slot| ThreadId { slot, generation: 0 }),
        from,
        to: from + SECOND,
        on_cpu: Nanos((1e9 * (1.0 - wait)).round() as u64),
        user_time: None,
        frozen: Nanos::ZERO,
        run_delay: Some(Nanos::ZERO),
        lock_wait: Some(Nanos((1e9 * wait).round() as u64)),
        instructions: None,
        cycles: None,
        llc_references: misses.map(|_| 1_000_000),
        llc_misses: misses.map(|share| (share * 1e6) as u64),
        memory_bytes: None,
        progress: None,
        alone: None,
        voluntary_switches: None,
        involuntary_switches: None,
        co_runners: 0,
        quality: Quality::Exact,
    };
    lab.scene.samples = vec![sample(None, waits.iter().sum())];
    lab.scene
        .samples
        .extend(waits.iter().enumerate().map(|(i, wait)| sample(Some(i as u32), *wait)));
    lab.tell(&[Cause::Sampled(A)]);
}

/// The slice that the latest plan gives, in milliseconds.
fn slice(lab: &Lab<Faithful>) -> Option<u64> {
    let Some(Directive::Run(settings)) = lab.plan.directive(A) else { return None };
    settings.slice.map(|slice| slice.0 / 1_000_000)
}

/// A program that has its threads and has prepared itself.
fn prepared() -> Lab<Faithful> {
    let mut lab = lab();
    born(&mut lab, 2);
    interval(&mut lab, &[0.5, 0.5], None);
    lab
}

/// A program is measured once it has several threads.
#[test]
fn a_program_starts_unchanged_and_is_sampled_with_threads() {
    let mut lab = lab();
    assert_eq!(lab.plan.directive(A), Some(&Directive::Run(Settings::default())));
    assert!(lab.plan.observe.iter().all(|observe| observe.measure == Measure::Threads));
    born(&mut lab, 1);
    assert!(lab.plan.observe.is_empty(), "one thread is not enough");
    born(&mut lab, 3);
    let measures: Vec<Measure> = lab.plan.observe.iter().map(|observe| observe.measure).collect();
    let all = [Measure::LockWait, Measure::CpuTime, Measure::Counters, Measure::Threads];
    assert_eq!(measures, all);
    assert!(lab.plan.observe.iter().all(|observe| observe.period == SECOND));
    interval(&mut lab, &[0.9, 0.9, 0.9], None);
    assert_eq!(slice(&lab), None, "the program prepares itself");
    interval(&mut lab, &[0.9, 0.9, 0.9], None);
    assert_eq!(slice(&lab), Some(250));
}

/// A pool that appears after a second is noticed 20 ms later at most, and one that appears after
/// forty seconds 100 ms.
#[test]
fn workers_are_noticed_within_a_tenth_of_a_second() {
    let mut lab = lab();
    let look = |lab: &mut Lab<Faithful>, seconds: u64| {
        lab.scene.now = Nanos::from_secs(seconds);
        lab.tell(&[Cause::Sampled(A)]);
        lab.plan.observe.first().map(|observe| (observe.measure, observe.period.0 / 1_000_000))
    };
    assert_eq!(lab.plan.observe[0].period, Nanos::from_millis(10));
    for (age, period) in [(1, 20), (4, 80), (40, 100)] {
        assert_eq!(look(&mut lab, age), Some((Measure::Threads, period)), "{age} s old");
    }
    assert_eq!(look(&mut lab, 90), None, "as often as before");
    born(&mut lab, 4);
    assert!(lab.plan.observe.iter().all(|observe| observe.period == SECOND));
}

#[test]
fn the_two_phases_of_ammp_get_200_and_20_milliseconds() {
    let mut lab = prepared();
    interval(&mut lab, &[0.84, 0.84], Some(0.6));
    assert_eq!(slice(&lab), Some(200));
    interval(&mut lab, &[0.12, 0.12], Some(0.1));
    assert_eq!(slice(&lab), Some(20));
}

#[test]
fn the_larger_of_misses_and_locks_decides() {
    let mut lab = prepared();
    interval(&mut lab, &[0.1, 0.1], Some(0.45));
    assert_eq!(slice(&lab), Some(80));
    let why = lab.plan.reasons.last().unwrap().why.read();
    let Some(FaithfulReason::Slice { lock_contention, miss_ratio, .. }) = why else {
        panic!("{why:?}")
    };
    assert!((lock_contention - 0.1).abs() < 1e-6 && miss_ratio == Some(0.45));
}

#[test]
fn a_slow_drift_is_followed_once_it_has_left_the_range() {
    let mut lab = prepared();
    interval(&mut lab, &[0.50, 0.50], None);
    assert_eq!(slice(&lab), Some(100));
    for wait in [0.54, 0.58, 0.599] {
        interval(&mut lab, &[wait, wait], None);
        assert_eq!(slice(&lab), None, "0.50 is what is compared with, not the last interval");
    }
    interval(&mut lab, &[0.61, 0.61], None);
    assert_eq!(slice(&lab), Some(120));
    interval(&mut lab, &[0.52, 0.52], None);
    assert_eq!(slice(&lab), None, "0.61 is what is compared with now");
}

/// The paper's algorithm 1: "newScalingFactor > (oldScalingFactor + range)".
#[test]
fn a_move_by_exactly_the_range_is_no_new_phase() {
    for before in [0.2, 0.3, 0.5, 0.7, 0.8] {
        for moved in [before - RANGE, before + RANGE] {
            let mut lab = prepared();
            interval(&mut lab, &[before, before], None);
            assert!(slice(&lab).is_some());
            interval(&mut lab, &[moved, moved], None);
            assert_eq!(slice(&lab), None, "{before} to {moved}");
        }
    }
}

/// Waits of 0.7 make a factor of 0.30: the row of 0.21 to 0.30.
#[test]
fn the_end_of_a_row_gets_the_slice_of_the_row() {
    for (wait, expected) in [(0.9, 250), (0.8, 200), (0.7, 150), (0.4, 80), (0.3, 50), (0.1, 20)] {
        let mut lab = prepared();
        interval(&mut lab, &[wait, wait], None);
        assert_eq!(slice(&lab), Some(expected), "waits {wait} of the time");
    }
}

/// Threads that never run are idle, and do not count as contention.
#[test]
fn threads_that_never_run_are_no_contention() {
    let mut lab = prepared();
    interval(&mut lab, &[0.05, 0.05, 1.0, 1.0], None);
    assert_eq!(slice(&lab), Some(10));
}

#[test]
fn each_program_gets_its_own_slice() {
    let mut lab = Lab::new(pure(), 4, vec![program(0, 2), program(1, 2)]);
    assert_eq!(lab.running(), [0, 1]);
    born(&mut lab, 2);
    interval(&mut lab, &[0.9, 0.9], None);
    interval(&mut lab, &[0.9, 0.9], None);
    assert_eq!(slice(&lab), Some(250));
    assert_eq!(lab.plan.directive(ProgramId::first(1)), None, "nothing is known of the other");
    lab.exit(0);
    assert!(lab.plan.programs.is_empty());
}

/// A lab with a program with misses known from solo runs.
fn profiled() -> Lab<Faithful> {
    let mut known = program(0, 4);
    known.profile.miss_ratio = Some(0.45);
    let mut lab = Lab::new(pure(), 4, vec![known]);
    born(&mut lab, 2);
    interval(&mut lab, &[0.5, 0.5], None);
    lab
}

fn why(lab: &Lab<Faithful>) -> (Option<f64>, bool) {
    match lab.plan.reasons.last().and_then(|reason| reason.why.read()) {
        Some(FaithfulReason::Slice { miss_ratio, profiled, .. }) => (miss_ratio, profiled),
        other => panic!("{other:?}"),
    }
}

/// Where misses cannot be counted, the profile's misses count, and the reason says so.
#[test]
fn without_miss_counters_the_profiles_misses_count() {
    let mut lab = profiled();
    interval(&mut lab, &[0.1, 0.1], None);
    assert_eq!((slice(&lab), why(&lab)), (Some(80), (Some(0.45), true)));
    // Locks can still be the larger of the two.
    interval(&mut lab, &[0.95, 0.95], None);
    assert_eq!((slice(&lab), why(&lab)), (Some(250), (Some(0.45), true)));
}

#[test]
fn counted_misses_replace_those_of_the_profile() {
    let mut lab = profiled();
    interval(&mut lab, &[0.1, 0.1], Some(0.05));
    assert_eq!((slice(&lab), why(&lab)), (Some(20), (Some(0.05), false)));
}

/// Without counters and profile, only locks decide, and the reason says so.
#[test]
fn without_counters_and_profile_only_locks_decide() {
    let mut lab = prepared();
    interval(&mut lab, &[0.1, 0.1], None);
    assert_eq!((slice(&lab), why(&lab)), (Some(20), (None, false)));
}

/// Values within the range change nothing.
#[test]
fn only_a_decision_moves_the_reference_range() {
    let mut lab = prepared();
    interval(&mut lab, &[0.25, 0.25], None);
    assert_eq!(slice(&lab), Some(30));
    interval(&mut lab, &[0.3499, 0.3499], None);
    assert_eq!(slice(&lab), None);
    interval(&mut lab, &[0.1501, 0.1501], None);
    assert_eq!(slice(&lab), None, "0.2 from the last interval, and 0.1 from the last decision");
    interval(&mut lab, &[0.1499, 0.1499], None);
    assert_eq!(
        slice(&lab),
        Some(20),
        "0.0002 from the last interval, and over 0.1 from the last decision"
    );
}

#[test]
fn each_program_has_its_own_factor_and_hysteresis() {
    let mut lab = Lab::new(pure(), 4, vec![program(0, 2), program(1, 2)]);
    let b = ProgramId::first(1);
    let thread = |program: ProgramId, slot: u32| Thread {
        id: ThreadId { slot, generation: 0 },
        program,
        process: 0,
        cpu: 0,
        on_cpu: Nanos::ZERO,
        mask_owner: MaskOwner::Cosched,
    };
    lab.scene.threads = vec![thread(A, 0), thread(A, 1), thread(b, 2), thread(b, 3)];
    lab.scene.programs[0].threads = 0..2;
    lab.scene.programs[1].threads = 2..4;
    lab.tell(&[Cause::ThreadsChanged(A), Cause::ThreadsChanged(b)]);
    let mut both = |wait_a: f64, wait_b: f64| {
        let from = lab.scene.now;
        lab.pass(SECOND);
        let sample = |id: ProgramId, slot: u32, wait: f64| Sample {
            thread: Some(ThreadId { slot, generation: 0 }),
            on_cpu: Nanos((1e9 * (1.0 - wait)) as u64),
            lock_wait: Some(Nanos((1e9 * wait) as u64)),
            ..Sample::empty(id, from, from + SECOND)
        };
        lab.scene.samples = vec![
            sample(A, 0, wait_a),
            sample(A, 1, wait_a),
            sample(b, 2, wait_b),
            sample(b, 3, wait_b),
        ];
        lab.tell(&[Cause::Sampled(A), Cause::Sampled(b)]);
        let given = |id| match lab.plan.directive(id) {
            Some(Directive::Run(settings)) => settings.slice.map(|slice| slice.0 / 1_000_000),
            _ => None,
        };
        (given(A), given(b))
    };
    assert_eq!(both(0.84, 0.12), (None, None), "both prepare themselves");
    assert_eq!(both(0.84, 0.12), (Some(200), Some(20)));
    assert_eq!(both(0.12, 0.18), (Some(20), None), "only one has changed its phase");
    assert_eq!(both(0.12, 0.84), (None, Some(200)));
}

/// The paper has both: equal priorities without preemption among siblings, and the quantum.
#[test]
fn the_papers_policy_is_the_whole_of_it() {
    let mut lab = prepared();
    interval(&mut lab, &[0.84, 0.84], None);
    let slice = Some(Nanos::from_millis(200));
    let whole = Settings { class: Some(Class::Batch), slice, ..Settings::default() };
    assert_eq!(lab.plan.directive(A), Some(&Directive::Run(whole)));
    // Solaris has a class for it, as in the paper.
    let class = Some(Class::FixedPriority(0));
    let options = FaithfulOptions { class, ..FaithfulOptions::of_the_paper() };
    let mut lab = Lab::new(Faithful::new(options, &AllParams::default()), 4, vec![program(0, 4)]);
    born(&mut lab, 2);
    (0..2).for_each(|_| interval(&mut lab, &[0.84, 0.84], None));
    let fixed = Settings { class, ..whole };
    assert_eq!(lab.plan.directive(A), Some(&Directive::Run(fixed)));
}

#[test]
fn without_the_guard_the_first_actuator_is_always_used() {
    let options = FaithfulOptions {
        guard: false,
        actuators: vec![Actuator::Batch, Actuator::Slice],
        ..FaithfulOptions::default()
    };
    let mut lab = Lab::new(Faithful::new(options, &AllParams::default()), 4, vec![program(0, 2)]);
    born(&mut lab, 2);
    (0..2).for_each(|_| interval(&mut lab, &[0.9, 0.9], None));
    let batch = Settings { class: Some(Class::Batch), ..Settings::default() };
    assert_eq!(lab.plan.directive(A), Some(&Directive::Run(batch)));
    let given = FaithfulReason::Given { actuator: Actuator::Batch };
    assert_eq!(lab.plan.reasons[0].why.read(), Some(given));
}

/// One is looked at after 10 ms. With 49 others, each is looked at after 500 ms.
#[test]
fn many_young_programs_cost_no_more_than_one() {
    let mut lab = Lab::new(pure(), 4, vec![program(0, 1)]);
    let period = |lab: &Lab<Faithful>| lab.plan.observe.first().map(|observe| observe.period);
    assert_eq!(period(&lab), Some(Nanos::from_millis(10)));
    (1..50).for_each(|slot| lab.arrive(program(slot, 1)));
    assert_eq!(period(&lab), Some(Nanos::from_millis(500)));
    lab.tell(&[Cause::Sampled(A)]);
    assert_eq!(period(&lab), Some(Nanos::from_millis(500)));
}

#[test]
fn waiting_for_input_and_output_gives_no_long_slice() {
    let mut at_locks = prepared();
    interval(&mut at_locks, &[0.75, 0.75], None);
    assert_eq!(slice(&at_locks), Some(150));
    // The thread sleeps as long, but not for a lock.
    let mut at_a_disk = prepared();
    at_a_disk.scene.samples = at_locks.scene.samples.clone();
    for sample in &mut at_a_disk.scene.samples {
        sample.lock_wait = Some(Nanos::ZERO);
    }
    at_a_disk.tell(&[Cause::Sampled(A)]);
    assert_eq!(slice(&at_a_disk), Some(10));
}

/// Threads that wait 0.05 of their time get 10 ms, and those that wait 0.85 get 200 ms. The program
/// as a whole waits 0.45 of it, and has 80 ms.
#[test]
fn the_stages_of_a_pipeline_have_slices_of_their_own() {
    let options = FaithfulOptions {
        actuators: vec![Actuator::BatchStages],
        ..FaithfulOptions::of_the_paper()
    };
    let mut lab = Lab::new(Faithful::new(options, &AllParams::default()), 4, vec![program(0, 4)]);
    born(&mut lab, 4);
    let of_threads = |lab: &Lab<Faithful>| -> Vec<Option<u64>> {
        let rules = lab.plan.threads.iter();
        rules.map(|(_, rule)| rule.slice.map(|slice| slice.0 / 1_000_000)).collect()
    };
    (0..2).for_each(|_| interval(&mut lab, &[0.05, 0.05, 0.85, 0.85], None));
    assert_eq!(slice(&lab), Some(80));
    assert_eq!(of_threads(&lab), [Some(10), Some(10), Some(200), Some(200)]);
    let [shortest, longest] = [10, 200].map(Nanos::from_millis);
    let why = FaithfulReason::Stages { shortest, longest };
    assert!(lab.plan.reasons.iter().any(|reason| reason.why.read() == Some(why)));
    // All wait alike: one slice for all, as before.
    interval(&mut lab, &[0.85; 4], None);
    assert_eq!((slice(&lab), of_threads(&lab)), (Some(200), vec![None; 4]));
}

/// Each thread computes for a quarter of its time and sleeps for a disk for the rest: 1 - 0.75 has
/// 150 ms. Without the term it has 10 ms, as eq. 1 has it.
#[test]
fn waits_for_input_and_output_count_where_they_are_asked_for() {
    for (io_waits, expected) in [(true, 150), (false, 10)] {
        let options = FaithfulOptions { io_waits, ..FaithfulOptions::of_the_paper() };
        let policy = Faithful::new(options, &AllParams::default());
        let mut lab = Lab::new(policy, 4, vec![program(0, 4)]);
        born(&mut lab, 2);
        interval(&mut lab, &[0.75, 0.75], None);
        lab.scene.samples.iter_mut().for_each(|sample| sample.lock_wait = Some(Nanos::ZERO));
        lab.tell(&[Cause::Sampled(A)]);
        assert_eq!(slice(&lab), Some(expected), "counted: {io_waits}");
        let why = lab.plan.reasons.last().and_then(|reason| reason.why.read());
        let Some(FaithfulReason::Slice { io_wait, .. }) = why else { panic!("{why:?}") };
        assert_eq!(io_wait, io_waits.then_some(0.75));
    }
}

#[test]
fn weights_become_nice_values_and_stay_with_a_slice() {
    let light = Program { weight: 0.5, ..program(1, 4) };
    let mut lab = Lab::new(pure(), 4, vec![program(0, 4), light]);
    let light = ProgramId::first(1);
    let nicer = Settings { nice: Some(3), ..Settings::default() };
    assert_eq!(lab.plan.directive(light), Some(&Directive::Run(nicer)));
    born(&mut lab, 2);
    (0..2).for_each(|_| interval(&mut lab, &[0.9, 0.9], None));
    assert_eq!(slice(&lab), Some(250));
    let Some(Directive::Run(settings)) = lab.plan.directive(A) else { panic!("{:?}", lab.plan) };
    assert_eq!(settings.nice, Some(0));
    lab.exit(0);
    let original = Some(&Directive::Run(Settings::default()));
    assert_eq!(lab.plan.directive(light), original, "alone, it needs no nice value");
}
