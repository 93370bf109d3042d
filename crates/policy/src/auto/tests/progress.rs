//! What programs tell of their progress, as evidence.

use super::*;

fn looks_back(lab: &Lab<Auto>) -> bool {
    lab.plan.reasons.iter().any(|reason| matches!(reason.why, Why::LooksBack { .. }))
}

/// Four programs on two CPUs that fill them alone and come 10,000 ticks far in a second then, from when they all run side by
/// side for a moment again, out of gangs.
fn looking_back() -> Lab<Auto> {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_telling(&mut lab, 0.5, 1.0, 500.0);
    look_telling(&mut lab, 2.0, 0.25, 2500.0);
    assert_eq!(
        chosen(&lab),
        Some((Manner::InGangs, Ground::GangsFill)),
        "they may have loaded first"
    );
    look_telling(&mut lab, 2.0, 0.25, 2500.0);
    assert!(!looks_back(&lab), "that would be more than a fortieth of the run");
    look_telling(&mut lab, 2.0, 0.25, 2500.0);
    assert!(looks_back(&lab), "{:?}", lab.plan.reasons);
    assert_eq!(lab.running(), [0, 1, 2, 3]);
    lab
}

#[test]
fn who_spins_side_by_side_is_seen_to_come_further_in_turns() {
    let mut lab = looking_back();
    look_telling(&mut lab, 0.5, 1.0, 300.0);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::FurtherInTurns)));
    assert_eq!(lab.running().len(), 1);
    let told = lab.plan.reasons.iter().find_map(|reason| match reason.why {
        Why::Chosen { speedups, explored, .. } => Some((speedups?, explored)),
        _ => None,
    });
    let (speedups, explored) = told.unwrap();
    assert!(speedups.side_by_side < 0.2 && speedups.in_turns > 0.9, "{speedups:?}");
    assert!((Nanos::from_millis(20)..Nanos::from_millis(35)).contains(&explored), "{explored}");
}

#[test]
fn who_comes_as_far_side_by_side_runs_so_and_what_is_not_certain_changes_nothing() {
    for (a_second, ground) in [(2500.0, Some(Ground::FurtherTogether)), (2434.0, None)] {
        let mut lab = looking_back();
        look_telling(&mut lab, 0.5, 1.0, a_second);
        let manner = ground.map(|ground| (Manner::SideBySide, ground));
        assert_eq!(chosen(&lab), manner, "{a_second}");
        assert_eq!(lab.running().len(), if ground.is_some() { 4 } else { 1 });
    }
}

#[test]
fn progress_goes_before_cpu_time_and_what_it_decided_cpu_time_does_not_end() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_telling(&mut lab, 0.5, 1.0, 500.0);
    look_telling(&mut lab, 1.4, 0.25, 2500.0);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
    look_telling(&mut lab, 0.5, 1.0, 500.0);
    let explored = Nanos::from_millis(40);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::FurtherInTurns)));
    assert!(lab.policy.budget.explored() <= explored, "no other trial was needed");
    for _ in 0..60 {
        match looks_back(&lab) {
            true => look_telling(&mut lab, 0.5, 1.0, 500.0),
            false => look_telling(&mut lab, 1.4, 0.25, 2500.0),
        }
        assert!(looks_back(&lab) || lab.running().len() == 1);
        assert_eq!(chosen(&lab), None);
    }
    // When they tell nothing any more, CPU time has to do again.
    for _ in 0..10 {
        match lab.running().len() {
            1 => look_alike(&mut lab, 1.4, 0.25),
            _ => look_alike(&mut lab, 0.5, 1.0),
        }
        if chosen(&lab).is_some() {
            break;
        }
    }
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
}

#[test]
fn few_ticks_decide_nothing_and_nobody_looks_back_for_them() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_telling(&mut lab, 0.5, 1.0, 20.0);
    look_telling(&mut lab, 2.0, 0.25, 20.0);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::GangsFill)));
    for _ in 0..20 {
        look_telling(&mut lab, 2.0, 0.25, 20.0);
        assert!(!looks_back(&lab) && lab.running().len() == 1);
    }
}

#[test]
fn looking_back_costs_at_most_a_fortieth_of_the_run() {
    let mut lab = looking_back();
    let mut side_by_side = Nanos::ZERO;
    for _ in 0..200 {
        let before = lab.scene.now;
        let back = lab.running().len() == 4;
        look_telling(
            &mut lab,
            if back { 0.5 } else { 2.0 },
            if back { 1.0 } else { 0.25 },
            if back { 300.0 } else { 2500.0 },
        );
        if back {
            side_by_side += lab.scene.now - before;
        }
        assert!(side_by_side * 40 <= lab.scene.now, "{side_by_side} of {}", lab.scene.now);
    }
    assert!(side_by_side > Nanos::from_millis(100), "{side_by_side}");
}
