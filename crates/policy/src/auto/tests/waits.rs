//! Whether threads wait in their runtimes, where that is seen.

use super::*;

/// Goes on to the next look, at which each program has used so many CPUs while it might run, that part of the time, and this
/// part of its CPU time was in a runtime.
fn look_inside(lab: &mut Lab<Auto>, cpus: f64, running: f64, waiting: f64) {
    look_by(lab, |_, empty| {
        let in_runtime = Some(part(&empty, cpus * running * waiting));
        Some(Sample { in_runtime, ..used(empty, cpus, running) })
    });
}

/// Whether it was asked for now that this is seen, or no longer.
fn switched(lab: &Lab<Auto>) -> Option<bool> {
    let mut asked = lab.plan.observe.iter();
    let asked = asked.find(|observe| observe.measure == Measure::RuntimeTime);
    asked.map(|observe| observe.period > Nanos::ZERO)
}

#[test]
fn programs_that_only_compute_stay_side_by_side() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    assert_eq!(switched(&lab), None, "their threads are not there yet");
    look_inside(&mut lab, 0.5, 1.0, 0.02);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::LittleWaiting)));
    assert_eq!(switched(&lab), Some(false), "to see it costs something");
    assert!(!is_trial(&lab), "that would cost more");
}

#[test]
fn for_fair_shares_they_take_turns_all_the_same() {
    let mut lab = lab(Goal::Fair, 2, wide(4));
    look_inside(&mut lab, 0.5, 1.0, 0.0);
    assert!(is_trial(&lab));
    look_inside(&mut lab, 1.99, 0.25, 0.0);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::GangsFill)));
}

#[test]
fn those_that_begin_to_wait_later_take_turns_then() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_inside(&mut lab, 0.5, 1.0, 0.0);
    look_alike(&mut lab, 0.5, 1.0);
    assert_eq!(switched(&lab), Some(true));
    look_inside(&mut lab, 0.5, 1.0, 0.5);
    assert!(is_trial(&lab));
    look_inside(&mut lab, 1.99, 0.25, 0.1);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
}

#[test]
fn the_longer_threads_hardly_wait_the_later_it_is_seen_again() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    let pause = |lab: &mut Lab<Auto>| {
        look_inside(lab, 0.5, 1.0, 0.0);
        let from = lab.scene.now;
        look_alike(lab, 0.5, 1.0);
        assert_eq!(switched(lab), Some(true));
        (lab.scene.now - from).as_secs_f64()
    };
    assert_eq!([(); 4].map(|()| pause(&mut lab)), [0.5, 1.0, 2.0, 2.0]);
    look_inside(&mut lab, 0.5, 1.0, 0.5);
    assert!(is_trial(&lab), "they wait now");
}

#[test]
fn programs_whose_threads_wait_beside_others_take_turns() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_inside(&mut lab, 0.5, 1.0, 0.6);
    look_inside(&mut lab, 1.98, 0.25, 0.3);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
    look_inside(&mut lab, 1.98, 0.25, 0.3);
    assert_eq!(switched(&lab), Some(false));
    // From here on it is taken to be as it was alone: 0.7 of each CPU, where side by side it was 0.4.
    look_alike(&mut lab, 1.2, 0.25);
    assert_eq!((chosen(&lab), lab.running().len()), (None, 4), "it looks back");
    assert_eq!(switched(&lab), Some(true));
    look_inside(&mut lab, 0.5, 1.0, 0.6);
    assert_eq!((chosen(&lab), lab.running().len()), (None, 1));
    look_by(&mut lab, |_, empty| {
        let sample = used(empty, 1.98, 0.25);
        Some(Sample { user_time: Some(sample.on_cpu / 2), ..sample })
    });
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
}

/// Glances at the programs: each has used half a CPU since then, this part of it in a runtime.
fn glance_since(lab: &mut Lab<Auto>, from: Nanos, waiting: f64) {
    let at = lab.wake_of(GLANCES).unwrap();
    let programs = lab.scene.programs.iter();
    let samples = programs.map(|p| {
        let empty = Sample { quality: Quality::Exact, ..Sample::empty(p.id, from, at) };
        Sample { in_runtime: Some(part(&empty, 0.5 * waiting)), ..used(empty, 0.5, 1.0) }
    });
    lab.scene.samples = samples.collect();
    lab.wake_reading();
}

/// The same, soon after the programs have settled.
fn glance(lab: &mut Lab<Auto>, waiting: f64) {
    let from = settled(lab).unwrap();
    glance_since(lab, from, waiting);
}

/// More looks at gangs than it takes until there is one back.
const MOST_CHECKS: u32 = 100;

#[test]
fn looking_back_ends_as_soon_as_it_shows_hardly_more_than_waiting() {
    let in_gangs = || {
        let mut lab = lab(Goal::Balanced, 2, wide(2));
        look_inside(&mut lab, 1.0, 1.0, 0.6);
        for _ in 0..MOST_CHECKS {
            if lab.running().len() == 1 {
                look_inside(&mut lab, 1.98, 0.5, 0.1);
            }
        }
        let from = lab.scene.now;
        (lab, from)
    };
    let (mut waits, from) = in_gangs();
    glance_since(&mut waits, from, 0.6);
    assert_eq!(waits.running().len(), 1, "in turns again");
    let (mut works, from) = in_gangs();
    glance_since(&mut works, from, 0.4);
    assert_eq!((works.running().len(), works.wake_of(LOOKS)), (2, Some(from + MOMENT.1)));
}

#[test]
fn where_a_glance_shows_hardly_more_than_waiting_it_is_not_looked_on() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    glance(&mut lab, 0.6);
    assert!(is_trial(&lab));
    look_inside(&mut lab, 1.98, 0.25, 0.1);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
}

#[test]
fn glances_follow_one_another_ever_later_and_begin_when_everybody_can_have_been_seen() {
    let glances = |programs: u16| {
        let mut lab = lab(Goal::Balanced, 2, wide(programs));
        let from = settled(&mut lab).unwrap();
        let mut glances = Vec::new();
        while let Some(at) = lab.wake_of(GLANCES).filter(|at| *at > lab.scene.now) {
            glances.push((at.since(from)).as_secs_f64() * 1000.0);
            lab.scene.samples.clear();
            lab.wake_reading();
        }
        assert_eq!(lab.wake_of(LOOKS), Some(from + LOOK));
        glances
    };
    assert_eq!(glances(2), [12.0, 24.0, 48.0], "no more where it is almost over");
    assert_eq!(glances(3), [15.0, 30.0]);
    assert_eq!(glances(6), [30.0]);
    assert_eq!(glances(8), [0.0; 0]);
}

#[test]
fn what_a_glance_shows_otherwise_is_a_part_of_what_the_look_shows() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    let at = lab.wake_of(LOOKS).unwrap() + LOOK;
    glance(&mut lab, 0.4);
    assert!(!is_trial(&lab));
    assert_eq!(lab.wake_of(LOOKS), Some(at));
    // In the other 50 ms they wait for nothing.
    look_inside(&mut lab, 0.5, 1.0, 0.0);
    assert!(is_trial(&lab), "13 % of the CPUs went into waiting");
}

#[test]
fn programs_that_no_longer_wait_beside_others_take_no_more_turns() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_inside(&mut lab, 0.5, 1.0, 0.6);
    look_inside(&mut lab, 1.98, 0.25, 0.1);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
    while lab.running().len() == 1 {
        look_inside(&mut lab, 1.98, 0.25, 0.1);
    }
    assert!(looked_at(&lab) >= MOMENT.1 * 2 * BUDGET, "what it costs at most is bounded");
    look_inside(&mut lab, 0.5, 1.0, 0.01);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
}

#[test]
fn whoever_hardly_runs_in_its_turns_takes_none() {
    let mut lab = in_gangs(wide(3));
    look_alike(&mut lab, 1.98, 0.33);
    let waits = |slot: u16| if slot == 0 { (slot, 0.1, 0.33) } else { (slot, 1.98, 0.33) };
    look(&mut lab, &[0, 1, 2].map(waits));
    let others: Vec<Vec<u16>> = lab.quanta(2);
    assert!(others.iter().all(|gang| gang.contains(&0) && gang.len() == 2), "{others:?}");
}

#[test]
fn what_a_trial_is_compared_with_is_seen_as_well() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_inside(&mut lab, 0.5, 1.0, 0.2);
    look_inside(&mut lab, 1.99, 0.25, 0.2);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::LittleWaiting)), "alone as well");
    while !is_trial(&lab) {
        let seen = switched(&lab) == Some(true);
        match seen {
            true => look_inside(&mut lab, 0.5, 1.0, 0.2),
            false => look_alike(&mut lab, 0.5, 1.0),
        }
        assert!(seen || !is_trial(&lab), "the interval before it");
    }
    assert!(looked_at(&lab) > Nanos::from_secs(2));
}

#[test]
fn side_by_side_that_becomes_worse_than_turns_were_found_to_be_is_tried_anew_at_once() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_inside(&mut lab, 0.5, 1.0, 0.2);
    look_inside(&mut lab, 1.4, 0.25, 0.0);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
    while switched(&lab) != Some(true) {
        look_alike(&mut lab, 0.5, 1.0);
    }
    // As before: it is looked again, and the pause goes on.
    look_inside(&mut lab, 0.5, 1.0, 0.2);
    assert!(!is_trial(&lab));
    while switched(&lab) != Some(true) {
        look_alike(&mut lab, 0.5, 1.0);
    }
    look_inside(&mut lab, 0.5, 1.0, 0.6);
    assert!(is_trial(&lab), "0.8 CPUs at work now, and alone 1.4");
    assert!(looked_at(&lab) < Nanos::from_secs(2));
    look_inside(&mut lab, 1.98, 0.25, 0.1);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
}

#[test]
fn where_turns_have_disappointed_there_is_no_trial_before_the_pause_has_ended() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_inside(&mut lab, 0.5, 1.0, 0.6);
    look_inside(&mut lab, 1.98, 0.25, 0.1);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
    look_inside(&mut lab, 1.3, 0.25, 0.4);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
    let from = looked_at(&lab);
    while !is_trial(&lab) {
        look_inside(&mut lab, 0.5, 1.0, 0.8);
    }
    assert!(looked_at(&lab) - from >= Nanos::from_secs(2));
}

#[test]
fn one_that_may_spin_in_its_own_code_is_enough_to_take_turns() {
    let mut lab = lab(Goal::Balanced, 2, wide(2));
    let seen = |p: &Program, sample| match p.id.slot {
        0 => Sample { in_runtime: Some(Nanos::ZERO), ..sample },
        _ => sample,
    };
    look_by(&mut lab, |p, empty| Some(seen(p, used(empty, 1.0, 1.0))));
    look_by(&mut lab, |p, empty| Some(seen(p, used(empty, 1.98, 0.5))));
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::GangsFill)));
}

#[test]
fn it_is_no_longer_seen_when_there_is_nothing_to_decide() {
    let mut lab = lab(Goal::Balanced, 2, wide(2));
    look_inside(&mut lab, 1.0, 1.0, 0.6);
    look_inside(&mut lab, 1.98, 0.5, 0.1);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
    lab.exit(0);
    assert_eq!(switched(&lab), Some(false), "the other one may run for hours");
}

#[test]
fn whoever_tells_how_far_it_comes_has_a_trial_all_the_same() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_by(&mut lab, |_, empty| {
        let in_runtime = Some(Nanos::ZERO);
        Some(Sample { in_runtime, progress: Some(40), ..used(empty, 0.5, 1.0) })
    });
    assert!(is_trial(&lab), "memory, for one, shows only in that");
}

#[test]
fn others_who_come_into_gangs_are_not_measured_by_what_waited_before() {
    let mut lab = lab(Goal::Balanced, 2, wide(3));
    look_inside(&mut lab, 0.66, 1.0, 0.8);
    look_inside(&mut lab, 1.98, 0.33, 0.1);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::MuchWaiting)));
    lab.arrive(program(3, 2));
    look_alike(&mut lab, 1.2, 0.25);
    look_alike(&mut lab, 1.3, 0.25);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)), "two were busy");
}

#[test]
fn waiting_with_fewer_threads_is_not_that_with_all() {
    let malleable = |slot| Program { malleable: true, ..program(slot, 2) };
    let mut lab = lab(Goal::Balanced, 2, (0..4).map(malleable).collect());
    look_inside(&mut lab, 0.5, 1.0, 0.4);
    look_inside(&mut lab, 1.6, 0.25, 0.4);
    assert_eq!(chosen(&lab), Some((Manner::FewerThreads, Ground::GangsIdle)));
    look_inside(&mut lab, 1.6, 0.25, 0.05);
    look_alike(&mut lab, 1.3, 0.25);
    assert_eq!(chosen(&lab), None, "1.2 as side by side, and not 0.8");
}

#[test]
fn whoever_had_hardly_a_cpu_in_the_interval_hides_nothing() {
    let mut lab = lab(Goal::Balanced, 2, wide(3));
    look_inside(&mut lab, 0.66, 1.0, 0.0);
    look_alike(&mut lab, 0.66, 1.0);
    look_by(&mut lab, |p, empty| {
        let in_runtime = (p.id.slot > 0).then_some(Nanos::ZERO);
        let cpus = if p.id.slot > 0 { 0.95 } else { 0.1 };
        Some(Sample { in_runtime, ..used(empty, cpus, 1.0) })
    });
    assert!(!is_trial(&lab), "it had been seen before");
}

#[test]
fn that_threads_wait_alone_as_well_tells_nothing_where_somebody_else_has_their_cpus() {
    // Of two CPUs, others have one: each thread of theirs is ready to run for longer than it runs.
    let look = |lab: &mut Lab<Auto>, ready: f64, cpus: f64, running: f64, waiting: f64| {
        look_by(lab, |_, empty| {
            let in_runtime = Some(part(&empty, cpus * running * waiting));
            let run_delay = Some(part(&empty, (ready - cpus) * running));
            Some(Sample { in_runtime, run_delay, ..used(empty, cpus, running) })
        });
    };
    let mut among_others = lab(Goal::Balanced, 2, wide(2));
    look(&mut among_others, 1.9, 0.4, 1.0, 0.9);
    assert!(is_trial(&among_others));
    look(&mut among_others, 1.9, 1.1, 0.5, 0.95);
    assert_eq!(chosen(&among_others), Some((Manner::InGangs, Ground::MuchWaiting)));
    for _ in 0..9 {
        match among_others.running().len() {
            1 => look(&mut among_others, 1.9, 1.1, 0.5, 0.95),
            _ => look(&mut among_others, 1.9, 0.4, 1.0, 0.9),
        }
        assert_eq!(chosen(&among_others), None, "it stays so, whenever it looks back");
    }
    look(&mut among_others, 1.3, 1.0, 0.5, 0.95);
    let sleeping = Some((Manner::SideBySide, Ground::GangsIdle));
    assert_eq!(chosen(&among_others), sleeping, "they leave idle what is not taken from them");

    let mut among_themselves = lab(Goal::Balanced, 2, wide(2));
    look(&mut among_themselves, 1.9, 1.0, 1.0, 0.9);
    look(&mut among_themselves, 1.99, 1.99, 0.5, 0.9);
    let alike = Some((Manner::SideBySide, Ground::LittleWaiting));
    assert_eq!(chosen(&among_themselves), alike);
}
