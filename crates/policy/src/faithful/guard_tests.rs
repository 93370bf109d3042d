//! The guard with a program that has a speed for each setting.

use cosched_core::{Class, Program, Quality, Reason};

use super::tests::{A, born, interval};
use super::*;
use crate::common::testkit::{Lab, program};

fn lab(programs: Vec<Program>) -> Lab<Faithful> {
    use Actuator::{Batch, BatchSlice, Slice};
    let actuators = vec![Slice, Batch, BatchSlice];
    let options = FaithfulOptions { actuators, ..FaithfulOptions::default() };
    let mut lab = Lab::new(Faithful::new(options, &AllParams::default()), 4, programs);
    born(&mut lab, 2);
    interval(&mut lab, &[0.5, 0.5], None);
    lab
}

/// Runs for the time of three trials, with the pauses between them, of [`tried_for`], starting with
/// the original settings.
fn tried(
    lab: &mut Lab<Faithful>,
    speed: impl Fn(Settings) -> f64,
) -> (Vec<FaithfulReason>, Settings) {
    tried_for(Nanos::from_secs(24), Settings::default(), lab, speed)
}

/// Runs trials for a while, with a program that has the speed `speed` of its settings. Returns the
/// result of each trial, and the program's settings at the end.
fn tried_for(
    span: Nanos,
    mut given: Settings,
    lab: &mut Lab<Faithful>,
    speed: impl Fn(Settings) -> f64,
) -> (Vec<FaithfulReason>, Settings) {
    let mut found = Vec::new();
    let mut look = |lab: &Lab<Faithful>, given: &mut Settings| {
        if let Some(Directive::Run(settings)) = lab.plan.directive(A) {
            *given = *settings;
        }
        found.extend(
            lab.plan
                .reasons
                .iter()
                .filter(|Reason { program, .. }| *program == Some(A))
                .filter_map(|r| r.why.read::<FaithfulReason>()),
        );
    };
    look(lab, &mut given);
    let begin = lab.scene.now;
    while let Some(at) = lab.next_wake().filter(|at| *at < begin + span) {
        let from = lab.scene.now;
        let length = at - from;
        lab.scene.samples = vec![Sample {
            user_time: Some(Nanos((length.as_secs_f64() * speed(given) * 1e9) as u64)),
            quality: Quality::Exact,
            ..Sample::empty(A, from, at)
        }];
        lab.wake();
        look(lab, &mut given);
    }
    (found, given)
}

fn is_batch(settings: Settings) -> bool {
    settings.class == Some(Class::Batch)
}

fn outcomes(found: &[FaithfulReason]) -> Vec<(Actuator, bool)> {
    let outcome = |why: &FaithfulReason| match *why {
        FaithfulReason::Kept { actuator, .. } => Some((actuator, true)),
        FaithfulReason::PutBack { actuator, .. } => Some((actuator, false)),
        _ => None,
    };
    found.iter().filter_map(outcome).collect()
}

#[test]
fn faster_actuators_are_kept_and_others_put_back() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    let (found, given) = tried(&mut lab, |given| match (is_batch(given), given.slice) {
        (true, None) => 1.2,
        (true, Some(_)) => 1.1,
        (false, Some(_)) => 0.9,
        (false, None) => 1.0,
    });
    use Actuator::{Batch, BatchSlice, Slice};
    assert_eq!(outcomes(&found), [(Slice, false), (Batch, true), (BatchSlice, false)], "{found:?}");
    assert!(is_batch(given) && given.slice.is_none(), "{given:?}");
}

#[test]
fn if_nothing_helps_original_settings_are_restored() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    let (found, given) =
        tried(&mut lab, |given| if given == Settings::default() { 1.0 } else { 0.7 });
    assert!(outcomes(&found).iter().all(|(_, kept)| !kept) && found.len() > 3, "{found:?}");
    assert_eq!(given, Settings::default());
}

/// A slice that turns slow is noticed and undone, and tried less and less often.
#[test]
fn a_slice_that_turns_slow_is_undone() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    let (_, given) = tried(&mut lab, |given| if is_batch(given) { 1.3 } else { 1.0 });
    assert!(is_batch(given));
    let slow = |given| if is_batch(given) { 0.8 } else { 1.0 };
    let (found, given) = tried_for(Nanos::from_secs(250), given, &mut lab, slow);
    // The trial that was under way ends first.
    assert_eq!(outcomes(&found)[1], (Actuator::Batch, false), "{found:?}");
    assert_eq!(given, Settings::default());
    let pauses: Vec<u64> = found
        .iter()
        .filter_map(|why| match *why {
            FaithfulReason::PutBack { actuator: Actuator::Batch, pause, .. } => {
                Some(pause.0 / 1_000_000_000)
            }
            _ => None,
        })
        .collect();
    assert_eq!(pauses, [20, 40, 80, 160]);
}

/// Trials take at most a tenth of a program's time, however often another slice is chosen.
#[test]
fn trials_take_at_most_a_tenth_of_a_programs_time() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    let (begin, mut trying, mut began) = (lab.scene.now, Nanos::ZERO, Some(lab.scene.now));
    for turn in 0..1000 {
        let soon = Nanos::from_millis(100);
        if lab.next_wake().is_some_and(|at| at < lab.scene.now + soon) {
            let (found, _) = tried_for(soon, Settings::default(), &mut lab, |_| 1.0);
            for why in found {
                match why {
                    FaithfulReason::Tried { .. } if began.is_none() => began = Some(lab.scene.now),
                    FaithfulReason::PutBack { .. } => {
                        trying += lab.scene.now - began.take().unwrap()
                    }
                    _ => {}
                }
            }
        } else {
            let waits = if turn % 2 == 0 { 0.3 } else { 0.7 };
            interval(&mut lab, &[waits, waits], None);
        }
    }
    let all = lab.scene.now - begin;
    assert!(trying.0 * 50 > all.0 && trying.0 * 9 < all.0, "{trying:?} of {all:?}");
}

#[test]
fn a_program_that_hardly_waits_is_left_alone() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.05, 0.05], None);
    let (found, given) = tried(&mut lab, |_| 1.0);
    let original = FaithfulReason::Given { actuator: Actuator::None };
    assert!(
        matches!(found[..], [why, FaithfulReason::Slice { .. }] if why == original),
        "{found:?}"
    );
    assert_eq!(given, Settings::default());
}

#[test]
fn samples_of_a_trial_decide_no_slice() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    assert!(matches!(
        reasons(&lab)[..],
        [_, FaithfulReason::Slice { .. }, FaithfulReason::Tried { .. }]
    ));
    interval(&mut lab, &[0.9, 0.9], None);
    assert!(lab.plan.reasons.is_empty(), "{:?}", lab.plan.reasons);
}

#[test]
fn a_program_that_ends_in_its_trial_makes_room_for_the_next() {
    let mut lab = lab(vec![program(0, 4), program(1, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    assert!(lab.next_wake().is_some_and(|at| at <= lab.scene.now + Nanos::from_millis(100)));
    lab.exit(0);
    assert_eq!(lab.next_wake(), None, "no other program is to be tried");
}

#[test]
fn a_better_actuator_replaces_the_one_in_force() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    let (_, given) = tried(&mut lab, |given| if is_batch(given) { 1.3 } else { 1.0 });
    assert!(is_batch(given) && given.slice.is_none());
    let another_phase = |given: Settings| match (is_batch(given), given.slice) {
        (true, Some(_)) => 1.4,
        (true, None) => 1.1,
        _ => 1.0,
    };
    let (_, given) = tried_for(Nanos::from_secs(60), given, &mut lab, another_phase);
    assert!(is_batch(given) && given.slice.is_some(), "{given:?}");
}

#[test]
fn a_sample_within_a_moment_counts_as_a_part_of_it() {
    let mut lab = lab(vec![program(0, 4)]);
    interval(&mut lab, &[0.5, 0.5], None);
    let (mut given, mut found) = (Settings::default(), Vec::new());
    let part = |from, to, seconds: f64| Sample {
        user_time: Some(Nanos((seconds * 1e9) as u64)),
        quality: Quality::Exact,
        ..Sample::empty(A, from, to)
    };
    for _ in 0..100 {
        if let Some(Directive::Run(settings)) = lab.plan.directive(A) {
            given = *settings;
        }
        found.extend(reasons(&lab));
        let (from, to) = (lab.scene.now, lab.next_wake().unwrap());
        let middle = from + Nanos((to - from).0 / 2);
        // The whole difference is in the first half.
        let speed = if is_batch(given) { 1.2 } else { 1.0 };
        lab.pass(middle - from);
        lab.scene.samples = vec![part(from, middle, speed * (middle - from).as_secs_f64())];
        lab.tell(&[Cause::Sampled(A)]);
        lab.scene.samples = vec![part(middle, to, 0.5 * (to - middle).as_secs_f64())];
        lab.wake();
    }
    assert_eq!(outcomes(&found)[..2], [(Actuator::Slice, false), (Actuator::Batch, true)]);
}

/// A program at its first choice of a slice, with learned settings: earlier runs have tried
/// `tried`, and found `in_force` to be best.
fn known(in_force: Actuator, tried: &[Actuator]) -> Lab<Faithful> {
    let mut program = program(0, 4);
    program.profile.learned = Learned::new(in_force, tried);
    let mut lab = lab(vec![program]);
    interval(&mut lab, &[0.5, 0.5], None);
    lab
}

fn reasons(lab: &Lab<Faithful>) -> Vec<FaithfulReason> {
    lab.plan.reasons.iter().filter_map(|reason| reason.why.read()).collect()
}

fn first_trial(found: &[FaithfulReason]) -> Option<FaithfulReason> {
    found.iter().copied().find(|why| matches!(why, FaithfulReason::Tried { .. }))
}

/// A learned setting is applied at once, and compared with the original settings only later.
#[test]
fn a_learned_setting_is_applied_at_once() {
    use Actuator::{Batch, BatchSlice, None, Slice};
    let mut lab = known(Batch, &[Slice, Batch, BatchSlice]);
    assert_eq!(reasons(&lab)[0], FaithfulReason::Recalled { actuator: Batch });
    assert!(matches!(lab.plan.directive(A), Some(Directive::Run(given)) if is_batch(*given)));
    let batch = Settings { class: Some(Class::Batch), ..Settings::default() };
    let speed = |given| if is_batch(given) { 0.8 } else { 1.0 };
    let (found, given) = tried_for(Nanos::from_secs(9), batch, &mut lab, speed);
    assert_eq!((first_trial(&found), is_batch(given)), (Option::None, true));
    let (found, given) = tried_for(Nanos::from_secs(15), batch, &mut lab, speed);
    assert_eq!(first_trial(&found), Some(FaithfulReason::Tried { actuator: Batch, against: None }));
    assert!(!is_batch(given), "it was true of another time");
}

/// An actuator that earlier runs have not tried is compared with the one that they learned.
#[test]
fn an_untried_slice_is_compared_with_the_learned_one() {
    use Actuator::{Batch, BatchSlice, Slice};
    let lab = known(Batch, &[Slice, Batch]);
    let reasons = reasons(&lab);
    assert_eq!(
        first_trial(&reasons),
        Some(FaithfulReason::Tried { actuator: BatchSlice, against: Batch })
    );
}

#[test]
fn relearn_ignores_earlier_runs() {
    let mut program = program(0, 4);
    program.profile.learned = Learned::new(Actuator::Batch, &[Actuator::Batch]);
    let options = FaithfulOptions { relearn: true, ..FaithfulOptions::default() };
    let mut lab = Lab::new(Faithful::new(options, &AllParams::default()), 4, vec![program]);
    born(&mut lab, 2);
    interval(&mut lab, &[0.5, 0.5], None);
    interval(&mut lab, &[0.5, 0.5], None);
    let reasons = reasons(&lab);
    let first = FaithfulReason::Tried { actuator: Actuator::Batch, against: Actuator::None };
    assert_eq!(first_trial(&reasons), Some(first), "{reasons:?}");
}

/// Earlier runs were allowed to use the actuator, and this one is not.
#[test]
fn a_learned_setting_that_is_not_allowed_now_is_not_used() {
    use Actuator::{None, RoundRobin, Slice};
    let lab = known(RoundRobin, &[RoundRobin]);
    let reasons = reasons(&lab);
    let first = FaithfulReason::Tried { actuator: Slice, against: None };
    assert_eq!(first_trial(&reasons), Some(first), "{reasons:?}");
    assert!(!reasons.iter().any(|why| matches!(why, FaithfulReason::Recalled { .. })));
}

/// One slice for the pipeline against one for each stage, with these speeds: what trials show, and
/// whether stages have slices at the end.
fn stages_tried(one: f64, each: f64) -> (Vec<(Actuator, bool)>, bool) {
    let actuators = vec![Actuator::BatchSlice, Actuator::BatchStages];
    let options = FaithfulOptions { actuators, ..FaithfulOptions::default() };
    let policy = Faithful::new(options, &AllParams::default());
    let mut lab = Lab::new(policy, 4, vec![program(0, 4)]);
    born(&mut lab, 2);
    (0..2).for_each(|_| interval(&mut lab, &[0.05, 0.85], None));
    let (mut found, mut given, mut has_stages) = (Vec::new(), Settings::default(), false);
    let begin = lab.scene.now;
    while let Some(at) = lab.next_wake().filter(|at| *at < begin + Nanos::from_secs(24)) {
        let (from, length) = (lab.scene.now, at - lab.scene.now);
        let speed = if has_stages {
            each
        } else if is_batch(given) {
            one
        } else {
            1.0
        };
        lab.scene.samples = vec![Sample {
            user_time: Some(Nanos((length.as_secs_f64() * speed * 1e9) as u64)),
            quality: Quality::Exact,
            ..Sample::empty(A, from, at)
        }];
        lab.wake();
        if let Some(Directive::Run(settings)) = lab.plan.directive(A) {
            given = *settings;
        }
        if let Some((_, rule)) = lab.plan.threads.last() {
            has_stages = rule.slice.is_some();
        }
        let reasons = lab.plan.reasons.iter();
        found.extend(reasons.filter_map(|reason| reason.why.read::<FaithfulReason>()));
    }
    (outcomes(&found), has_stages)
}

#[test]
fn the_guard_decides_between_one_slice_and_one_for_each_stage() {
    use Actuator::{BatchSlice, BatchStages};
    let (found, has_stages) = stages_tried(1.1, 1.4);
    assert_eq!((&found[..2], has_stages), (&[(BatchSlice, true), (BatchStages, true)][..], true));
    let (found, has_stages) = stages_tried(1.4, 1.1);
    assert_eq!((&found[..2], has_stages), (&[(BatchSlice, true), (BatchStages, false)][..], false));
}
