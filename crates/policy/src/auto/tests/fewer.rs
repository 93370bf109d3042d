//! Fewer threads for programs that may have fewer.

use super::*;

fn malleable(n: u16) -> Vec<Program> {
    wide(n).into_iter().map(|p| Program { malleable: true, ..p }).collect()
}

fn granted(lab: &Lab<Auto>) -> Vec<u16> {
    lab.scene.programs.iter().map(|p| p.granted).collect()
}

/// Programs on two CPUs, which alone use so many of them.
fn seen_alone(programs: Vec<Program>, cpus: f64) -> Lab<Auto> {
    let mut lab = lab(Goal::Balanced, 2, programs);
    let share = 1.0 / lab.scene.programs.len() as f64;
    look_alike(&mut lab, 2.0 * share, 1.0);
    assert!(is_trial(&lab));
    look_alike(&mut lab, cpus, share);
    lab
}

/// The same for four programs that fill them, and tell of their progress.
fn telling(programs: Vec<Program>) -> Lab<Auto> {
    let mut lab = lab(Goal::Balanced, 2, programs);
    look_telling(&mut lab, 0.5, 1.0, 1500.0);
    look_telling(&mut lab, 1.98, 0.25, 2500.0);
    lab
}

#[test]
fn programs_that_leave_cpus_idle_with_all_their_threads_have_fewer() {
    let mut lab = seen_alone(malleable(4), 1.4);
    assert_eq!(chosen(&lab), Some((Manner::FewerThreads, Ground::GangsIdle)));
    assert_eq!(lab.running().len(), 2, "two with a thread each");
    let began = lab.scene.now;
    look_alike(&mut lab, 1.0, 0.5);
    assert_eq!(lab.scene.now - began, Nanos::from_millis(300));
    assert_eq!(chosen(&lab), None);
    assert_eq!(granted(&lab), [1; 4], "all have had a turn");
    assert_eq!(lab.running().len(), 2);
}

#[test]
fn where_fewer_threads_do_less_it_is_as_if_nobody_could_have_fewer() {
    for (cpus, manner) in [(1.4, Manner::SideBySide), (1.98, Manner::InGangs)] {
        let mut lab = match manner {
            Manner::InGangs => telling(malleable(4)),
            _ => seen_alone(malleable(4), cpus),
        };
        assert_eq!(chosen(&lab).map(|(manner, _)| manner), Some(Manner::FewerThreads));
        look_alike(&mut lab, 0.8, 0.5);
        assert_eq!(chosen(&lab), Some((manner, Ground::FewerDidLess)));
        let running = if manner == Manner::SideBySide { 4 } else { 1 };
        assert_eq!(lab.running().len(), running);
        let all = lab.scene.programs.iter().filter(|p| p.state.may_run());
        assert!(
            all.clone().count() > 0
                && all.clone().all(|p| p.granted == 2 && p.cpus.is_none_or(|cpus| cpus.len() == 2))
        );
        for _ in 0..40 {
            look_alike(&mut lab, 1.4, 1.0 / running as f64);
            let now = chosen(&lab).map(|(manner, _)| manner);
            assert_ne!(now, Some(Manner::FewerThreads), "not again with the same programs");
        }
        lab.arrive(Program { malleable: true, ..program(7, 2) });
        assert!(!lab.policy.fewer_did_less);
    }
}

#[test]
fn in_turns_some_may_have_fewer_and_side_by_side_only_all() {
    let some = || malleable(2).into_iter().chain([program(2, 2), program(3, 2)]).collect();
    assert_eq!(chosen(&telling(some())), Some((Manner::FewerThreads, Ground::GangsFill)));
    let silent = seen_alone(some(), 1.98);
    assert_eq!(chosen(&silent), Some((Manner::InGangs, Ground::GangsFill)), "who could tell?");
    let idles = seen_alone(some(), 1.4);
    assert_eq!(chosen(&idles), Some((Manner::SideBySide, Ground::GangsIdle)));
    assert_eq!(granted(&idles), [2; 4]);
}

#[test]
fn a_program_alone_has_what_it_asks_for() {
    let mut lab = lab(Goal::Balanced, 2, malleable(1));
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::Alone)));
    assert_eq!((granted(&lab), lab.next_wake()), (vec![2], None));
    lab.arrive(Program { malleable: true, ..program(1, 2) });
    look_alike(&mut lab, 1.0, 1.0);
    while !is_trial(&lab) {
        look_alike(&mut lab, 1.0, 1.0);
    }
    look_alike(&mut lab, 1.4, 0.5);
    assert_eq!(chosen(&lab), Some((Manner::FewerThreads, Ground::GangsIdle)));
    assert_eq!(granted(&lab), [1; 2]);
    lab.exit(0);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::Alone)));
    assert_eq!((granted(&lab), lab.next_wake()), (vec![2], None));
}

#[test]
fn programs_that_are_known_to_scale_badly_have_fewer_at_once() {
    let mut programs = malleable(3);
    let times = [(1, Nanos::from_millis(1000)), (2, Nanos::from_millis(800))];
    programs.iter_mut().for_each(|p| p.profile.speedup = Speedup::new(&times));
    let known = lab(Goal::Balanced, 2, programs.clone());
    assert_eq!(chosen(&known), Some((Manner::FewerThreads, Ground::KnownToScaleBadly)));
    programs[0].malleable = false;
    let fixed = lab(Goal::Balanced, 2, programs);
    assert_eq!(chosen(&fixed), Some((Manner::SideBySide, Ground::Begins)));
}

#[test]
fn progress_tells_whether_fewer_threads_do_as_much() {
    // Alone each comes 10,000 ticks far in a second, side by side 1500.
    let begin = || {
        let mut lab = lab(Goal::Balanced, 2, malleable(4));
        lab.policy.fewer_did_less = true;
        look_telling(&mut lab, 0.5, 1.0, 1500.0);
        look_telling(&mut lab, 1.4, 0.25, 2500.0);
        assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
        lab.policy.fewer_did_less = false;
        look_telling(&mut lab, 0.5, 1.0, 1500.0);
        assert_eq!(chosen(&lab), Some((Manner::FewerThreads, Ground::FurtherInTurns)));
        lab
    };
    // By CPU time it is the other way round.
    let mut better = begin();
    look_telling(&mut better, 0.6, 0.5, 3000.0);
    assert_eq!((chosen(&better), better.running().len()), (None, 2));
    let mut worse = begin();
    look_telling(&mut worse, 1.0, 0.5, 1000.0);
    assert_eq!(chosen(&worse), Some((Manner::InGangs, Ground::FewerDidLess)));
}

#[test]
fn fewer_threads_that_come_less_far_than_turns_would_are_taken_back() {
    let begin = || {
        let lab = telling(malleable(4));
        assert_eq!(chosen(&lab), Some((Manner::FewerThreads, Ground::GangsFill)));
        lab
    };
    // By CPU time they do as much in both cases.
    let mut better = begin();
    look_telling(&mut better, 1.0, 0.5, 2700.0);
    assert_eq!((chosen(&better), better.running().len()), (None, 2));
    let mut worse = begin();
    look_telling(&mut worse, 1.0, 0.5, 2000.0);
    assert_eq!(chosen(&worse), Some((Manner::InGangs, Ground::FewerDidLess)));
}

#[test]
fn what_auto_measures_stays_measured_and_what_only_grants_need_ends_with_them() {
    let mut lab = seen_alone(malleable(4), 1.4);
    let mut measured = std::collections::BTreeSet::new();
    let mut take = |lab: &Lab<Auto>| {
        for observe in &lab.plan.observe {
            let one = (observe.program, observe.measure);
            // Whether threads wait is seen now and then.
            if observe.measure == Measure::RuntimeTime {
                continue;
            }
            assert!(observe.period != Nanos::ZERO || !MEASURES.contains(&observe.measure));
            match observe.period {
                Nanos::ZERO => assert!(measured.remove(&one), "{one:?} was not measured"),
                _ => _ = measured.insert(one),
            }
        }
        measured.len()
    };
    take(&lab);
    for slot in 0..4 {
        lab.change(slot, |p| p.ran = Nanos::from_secs(20));
        take(&lab);
    }
    let until = lab.wake_of(LOOKS).unwrap();
    let mut most = 0;
    while lab.next_wake() < Some(until) {
        lab.wake();
        most = most.max(take(&lab));
    }
    assert!(most > 0, "counters");
    look_alike(&mut lab, 0.8, 0.5);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::FewerDidLess)));
    assert_eq!(take(&lab), 0);
}
