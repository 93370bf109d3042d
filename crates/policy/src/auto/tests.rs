use cosched_core::{Program, ProgramId, Quality, Sample, Speedup, Why};
use proptest::prelude::*;

use super::budget::BUDGET;
use super::phases::{LOOK, MOMENT, SETTLE};
use super::*;
use crate::testkit::{Lab, cases, program};

mod fewer;
mod progress;
mod waits;

fn lab(goal: Goal, cpus: u16, programs: Vec<Program>) -> Lab<Auto> {
    Lab::new(Auto::new(&Options { goal, ..Options::default() }), cpus, programs)
}

fn wide(n: u16) -> Vec<Program> {
    (0..n).map(|slot| program(slot, 2)).collect()
}

/// When something was measured last.
fn looked_at(lab: &Lab<Auto>) -> Nanos {
    lab.scene.samples.iter().map(|sample| sample.to).max().unwrap_or_default()
}

/// Goes on until whoever came has settled, if that is what is waited for; nothing of before counts.
fn settled(lab: &mut Lab<Auto>) -> Option<Nanos> {
    let at = lab.wake_of(LOOKS).filter(|at| *at == lab.scene.now + SETTLE)?;
    while lab.next_wake() < Some(at) {
        lab.wake();
    }
    lab.scene.samples.clear();
    lab.wake_reading();
    Some(at)
}

/// Goes on to the next look, at which this is measured, for a stretch that ends then.
fn look_by(lab: &mut Lab<Auto>, sample: impl Fn(&Program, Sample) -> Option<Sample>) {
    let from = settled(lab).unwrap_or_else(|| looked_at(lab));
    let at = lab.wake_of(LOOKS).unwrap();
    while lab.next_wake() < Some(at) {
        lab.wake();
    }
    let empty = |p: &Program| Sample { quality: Quality::Exact, ..Sample::empty(p.id, from, at) };
    lab.scene.samples = lab.scene.programs.iter().filter_map(|p| sample(p, empty(p))).collect();
    lab.wake_reading();
}

/// A part of a sample's time, or a multiple of it.
fn part(sample: &Sample, part: f64) -> Nanos {
    Nanos(((sample.to - sample.from).0 as f64 * part) as u64)
}

/// A program that has used so many CPUs while it might run, that part of the time.
fn used(empty: Sample, cpus: f64, running: f64) -> Sample {
    let on_cpu = part(&empty, cpus * running);
    Sample { on_cpu, user_time: Some(on_cpu), frozen: part(&empty, 1.0 - running), ..empty }
}

/// Goes on to the next look, at which each of these programs has used so many CPUs while it might run, that part of the time.
fn look(lab: &mut Lab<Auto>, did: &[(u16, f64, f64)]) {
    look_by(lab, |p, empty| {
        let (_, cpus, running) = did.iter().find(|(slot, ..)| *slot == p.id.slot)?;
        Some(used(empty, *cpus, *running))
    });
}

/// The same, where it is known how many of each program's threads waited for a CPU.
fn look_at_queues(lab: &mut Lab<Auto>, cpus: f64, waiting: f64) {
    look_by(lab, |_, empty| {
        let run_delay = Some(part(&empty, waiting));
        Some(Sample { run_delay, ..used(empty, cpus, 1.0) })
    });
}

/// The same for programs that are all alike, and come so far in a second.
fn look_telling(lab: &mut Lab<Auto>, cpus: f64, running: f64, a_second: f64) {
    look_by(lab, |_, empty| {
        let ticks = part(&empty, a_second).as_secs_f64() as u64;
        Some(Sample { progress: Some(ticks), ..used(empty, cpus, running) })
    });
}

/// The same for programs that are all alike, and tell nothing.
fn look_alike(lab: &mut Lab<Auto>, used: f64, running: f64) {
    let did: Vec<_> = lab.scene.programs.iter().map(|p| (p.id.slot, used, running)).collect();
    look(lab, &did);
}

fn chosen(lab: &Lab<Auto>) -> Option<(Manner, Ground)> {
    lab.plan.reasons.iter().find_map(|reason| match reason.why {
        Why::Chosen { manner, ground, .. } => Some((manner, ground)),
        _ => None,
    })
}

fn is_trial(lab: &Lab<Auto>) -> bool {
    lab.plan.reasons.iter().any(|reason| matches!(reason.why, Why::LooksAtEach { .. }))
}

/// Two CPUs, and programs that fill them alone.
fn in_gangs(programs: Vec<Program>) -> Lab<Auto> {
    let mut lab = lab(Goal::Balanced, 2, programs);
    let share = 1.0 / lab.scene.programs.len() as f64;
    look_alike(&mut lab, 2.0 * share, 1.0);
    look_alike(&mut lab, 1.98, share);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::GangsFill)));
    lab
}

#[test]
fn it_begins_as_linux_does_and_looks_only_where_something_could_be_won() {
    let lab_of = |programs| lab(Goal::Balanced, 2, programs);
    let mut four = lab_of(wide(4));
    assert_eq!(four.running(), [0, 1, 2, 3]);
    assert_eq!(chosen(&four), Some((Manner::SideBySide, Ground::Begins)));
    assert_eq!(four.next_wake(), Some(SETTLE));
    for (programs, ground) in [
        (wide(1), Ground::Alone),
        (vec![program(0, 1), program(1, 1)], Ground::EnoughCpus),
        ((0..5).map(|slot| program(slot, 1)).collect(), Ground::NobodyWide),
    ] {
        let lab = lab_of(programs);
        assert_eq!(chosen(&lab), Some((Manner::SideBySide, ground)));
        assert_eq!(lab.next_wake(), None, "{ground:?}");
    }
    look_alike(&mut four, 0.3, 1.0);
    assert_eq!(chosen(&four), Some((Manner::SideBySide, Ground::CpusIdle)));
}

#[test]
fn programs_that_wait_for_their_start_and_those_that_may_not_be_frozen_are_told_of() {
    let mut three = lab(Goal::Throughput, 2, wide(3));
    let one_after_another = Some((Manner::OneAfterAnother, Ground::ForThroughput));
    assert_eq!((chosen(&three), three.running().len()), (one_after_another, 1));
    three.exit(0);
    assert_eq!((chosen(&three), three.running()), (None, vec![1]), "that has been told");
    three.exit(1);
    assert_eq!(chosen(&three), Some((Manner::SideBySide, Ground::Alone)));
    let single = (0..5).map(|slot| program(slot, 1)).collect();
    let five = lab(Goal::Throughput, 2, single);
    assert_eq!((chosen(&five), five.running().len()), (one_after_another, 2));

    let unfreezable = |program| Program { freezable: false, ..program };
    let ground = |programs| match chosen(&lab(Goal::Balanced, 2, programs)) {
        Some((Manner::SideBySide, ground)) => ground,
        other => panic!("{other:?}"),
    };
    let one = || unfreezable(program(0, 2));
    assert_eq!(ground(vec![one(), program(1, 2)]), Ground::FewFreezable);
    assert_eq!(ground(vec![one(), program(1, 1), program(2, 1)]), Ground::FewFreezable);
    assert_eq!(ground(vec![one(), program(1, 2), program(2, 2)]), Ground::Begins);
    let narrow = [0, 1, 2].map(|slot| unfreezable(program(slot, 1)));
    assert_eq!(ground(narrow[..2].to_vec()), Ground::EnoughCpus);
    assert_eq!(ground(narrow.to_vec()), Ground::NobodyWide);
}

#[test]
fn where_programs_are_not_stopped_in_time_they_take_no_turns() {
    let (wanted, why) = (Aspect::Frozen, Refusal::TimedOut);
    let late = |slot| Cause::Deviated { program: ProgramId::first(slot), wanted, why };
    let mut lab = in_gangs(wide(4));
    look_alike(&mut lab, 1.98, 0.25);
    for slot in [0, 1, 2] {
        lab.tell(&[late(slot)]);
    }
    look_alike(&mut lab, 1.98, 0.25);
    assert_eq!(
        (chosen(&lab), lab.running().len()),
        (None, 1),
        "in a second, that may be by chance"
    );
    for slot in [0, 1, 2, 3] {
        lab.tell(&[late(slot)]);
    }
    look_alike(&mut lab, 1.98, 0.25);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::StoppedLate)));
    assert_eq!(lab.running(), [0, 1, 2, 3]);
}

#[test]
fn each_runs_alone_for_a_moment_and_if_all_fill_the_cpus_they_take_turns() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_alike(&mut lab, 0.5, 1.0);
    assert!(is_trial(&lab));
    let alone: Vec<Vec<u16>> = lab.quanta(3);
    assert_eq!(alone, [[0], [1], [2]]);
    look_alike(&mut lab, 1.96, 0.25);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::GangsFill)));
    assert_eq!(lab.running().len(), 1);
    assert_eq!(lab.quantum().map(|quantum| quantum.3), Some(Options::default().quantum));
}

#[test]
fn programs_that_use_one_cpu_each_run_side_by_side_whatever_they_ask_for() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_alike(&mut lab, 0.5, 1.0);
    look_alike(&mut lab, 1.0, 0.25);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::NobodyWide)));
    assert_eq!(lab.running(), [0, 1, 2, 3]);
}

#[test]
fn programs_of_one_thread_share_a_moment_with_a_cpu_each() {
    let mut lab = lab(Goal::Balanced, 2, (0..5).map(|slot| program(slot, 1 + slot % 2)).collect());
    look_alike(&mut lab, 0.4, 1.0);
    assert!(is_trial(&lab));
    let mut moments = lab.quanta(4);
    moments.sort();
    assert_eq!(moments, [vec![0, 2], vec![1], vec![3], vec![4]]);
    assert!(lab.scene.programs.iter().all(|p| p.cpus.is_none()), "bound for a moment");
}

#[test]
fn whoever_hardly_runs_is_never_frozen_and_gangs_are_made_by_the_cpus_that_are_used() {
    // 0 and 1 use one CPU of the two that they ask for, 2 and 3 both, 4 none.
    let mut lab = lab(Goal::Balanced, 2, wide(5));
    look(&mut lab, &[(0, 0.4, 1.0), (1, 0.4, 1.0), (2, 0.6, 1.0), (3, 0.6, 1.0), (4, 0.0, 1.0)]);
    assert!(is_trial(&lab) && lab.running().contains(&4));
    let told = |slot| (Some(ProgramId::first(slot)), Why::HardlyRuns);
    assert!(lab.plan.reasons.iter().any(|reason| (reason.program, reason.why) == told(4)));
    look(
        &mut lab,
        &[(0, 1.0, 0.25), (1, 1.0, 0.25), (2, 2.0, 0.25), (3, 2.0, 0.25), (4, 0.0, 1.0)],
    );
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::GangsFill)));
    let mut gangs = lab.quanta(3);
    gangs.sort();
    assert_eq!(gangs, [vec![0, 1, 4], vec![2, 4], vec![3, 4]]);
    assert!(lab.scene.programs.iter().all(|p| p.cpus.is_none()), "bound to fewer than it asks for");
}

#[test]
fn cpus_that_gangs_leave_free_are_lent_and_what_is_done_there_tells_nothing_of_its_width() {
    let mut lab = lab(Goal::Balanced, 4, vec![program(0, 3), program(1, 3)]);
    look_alike(&mut lab, 2.0, 1.0);
    look_alike(&mut lab, 3.0, 0.5);
    assert_eq!(chosen(&lab), Some((Manner::InGangs, Ground::GangsFill)));
    let cpus: Vec<_> = lab.scene.programs.iter().map(|p| p.cpus.unwrap().len()).collect();
    assert_eq!(cpus, [3, 1]);
    look_alike(&mut lab, 2.0, 1.0);
    let alone = |slot: u16| lab.policy.seen[&slot].alone.unwrap().0.round();
    assert_eq!([alone(0), alone(1)], [3.0, 3.0]);
}

#[test]
fn more_may_be_lost_where_two_programs_never_sleep_alone() {
    for (second, choice) in [
        (2.0, (Manner::InGangs, Ground::GangsFill)),
        (1.8, (Manner::SideBySide, Ground::GangsIdle)),
    ] {
        let mut lab = lab(Goal::Balanced, 2, wide(4));
        look_alike(&mut lab, 0.5, 1.0);
        look(&mut lab, &[(0, 2.0, 0.25), (1, second, 0.25), (2, 1.4, 0.25), (3, 1.4, 0.25)]);
        assert_eq!(chosen(&lab), Some(choice), "{second}");
    }
}

#[test]
fn a_program_that_keeps_few_of_its_threads_at_work_sleeps_however_many_cpus_it_counts_for() {
    let mut lab = lab(Goal::Balanced, 8, (0..5).map(|slot| program(slot, 8)).collect());
    look_alike(&mut lab, 1.6, 1.0);
    look_alike(&mut lab, 1.9, 0.2);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
}

#[test]
fn gangs_are_looked_at_when_everybody_has_had_a_turn() {
    let mut lab = in_gangs(wide(4));
    let began = lab.scene.now;
    look_alike(&mut lab, 1.2, 0.25);
    assert_eq!(lab.scene.now - began, Options::default().quantum * 4);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
}

#[test]
fn gangs_that_do_less_than_was_done_side_by_side_end_and_trials_keep_within_their_bound() {
    let mut lab = in_gangs(wide(4));
    look_alike(&mut lab, 1.98, 0.25);
    assert_eq!(lab.running().len(), 1, "as much as before");
    look_alike(&mut lab, 1.2, 0.25);
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::GangsIdle)));
    assert_eq!(lab.running(), [0, 1, 2, 3]);
    let told = lab.plan.reasons.iter().find_map(|reason| match reason.why {
        Why::Chosen { explored, .. } => Some(explored),
        _ => None,
    });
    // Of a second, two fifths.
    let cost = told.unwrap();
    assert!((Nanos::from_millis(390)..Nanos::from_millis(420)).contains(&cost), "{cost}");
    while !is_trial(&lab) {
        look_alike(&mut lab, 0.5, 1.0);
    }
    assert!(lab.scene.now >= cost * BUDGET, "{}", lab.scene.now);
}

#[test]
fn gangs_end_when_only_one_program_is_left_and_a_newcomer_waits_for_its_turn() {
    let mut lab = in_gangs(wide(3));
    lab.arrive(program(7, 2));
    assert!(!lab.running().contains(&7));
    assert!(lab.quanta(4).iter().any(|gang| gang.contains(&7)));
    for slot in [0, 1, 2] {
        lab.exit(slot);
    }
    assert_eq!(chosen(&lab), Some((Manner::SideBySide, Ground::Alone)));
    assert_eq!((lab.running(), lab.next_wake()), (vec![7], None));
}

#[test]
fn for_throughput_the_next_one_starts_when_cpus_are_idle_or_the_last_has_ended() {
    let mut lab = lab(Goal::Throughput, 2, wide(4));
    assert_eq!(lab.running(), [0]);
    look(&mut lab, &[(0, 2.0, 1.0)]);
    assert_eq!(lab.running(), [0], "it fills the CPUs");
    look(&mut lab, &[(0, 1.0, 1.0)]);
    assert_eq!(lab.running(), [0, 1]);
    lab.exit(0);
    lab.exit(1);
    assert_eq!(lab.running(), [2]);
}

#[test]
fn threads_that_wait_tell_that_cpus_are_short_whoever_else_uses_them() {
    let mut short = lab(Goal::Balanced, 2, wide(4));
    look_at_queues(&mut short, 0.2, 1.6);
    assert!(is_trial(&short));
    let mut enough = lab(Goal::Balanced, 2, wide(4));
    look_at_queues(&mut enough, 0.5, 0.04);
    assert_eq!(chosen(&enough), Some((Manner::SideBySide, Ground::CpusIdle)));
}

#[test]
fn programs_that_are_still_being_loaded_are_not_seen_alone() {
    let mut lab = lab(Goal::Balanced, 2, (0..50).map(|slot| program(slot, 2)).collect());
    for _ in 0..4 {
        look_at_queues(&mut lab, 0.02, 0.5);
        assert!(!is_trial(&lab), "they may be about to sleep");
    }
    look_at_queues(&mut lab, 0.06, 1.9);
    assert!(is_trial(&lab));
}

#[test]
fn a_choice_tells_what_others_keep_from_them_where_that_is_much() {
    let others = |cpus, waiting| {
        let mut lab = lab(Goal::Balanced, 2, wide(4));
        look_at_queues(&mut lab, cpus, waiting);
        look_alike(&mut lab, 1.98, 0.25);
        lab.plan.reasons.iter().find_map(|reason| match reason.why {
            Why::Chosen { others, .. } => Some(others),
            _ => None,
        })
    };
    assert_eq!(others(0.5, 1.5), Some(None));
    assert_eq!(others(0.46, 1.54), Some(None), "0.16 of two");
    let much = others(0.2, 1.6).flatten().unwrap();
    assert!((much - 1.2).abs() < 1e-6, "{much}");
}

#[test]
fn programs_whose_threads_sleep_side_by_side_are_seen_alone_before_they_count_as_narrow() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    look_at_queues(&mut lab, 0.2, 0.3);
    assert!(is_trial(&lab));
}

#[test]
fn programs_that_are_known_to_scale_take_turns_at_once() {
    let scaling = |one, two| {
        let times = [(1, Nanos::from_millis(one)), (2, Nanos::from_millis(two))];
        let mut programs = wide(3);
        programs.iter_mut().for_each(|p| p.profile.speedup = Speedup::new(&times));
        chosen(&lab(Goal::Balanced, 2, programs))
    };
    assert_eq!(scaling(1000, 520), Some((Manner::InGangs, Ground::KnownToScale)));
    assert_eq!(scaling(1000, 800), Some((Manner::SideBySide, Ground::Begins)));
}

#[test]
fn goals_are_found_by_their_names() {
    for goal in Goal::ALL {
        assert_eq!(goal.to_string().parse(), Ok(goal));
    }
    assert!("fast".parse::<Goal>().unwrap_err().to_string().contains("balanced, throughput"));
}

#[test]
fn where_nothing_can_be_measured_all_run_side_by_side() {
    let mut lab = lab(Goal::Balanced, 2, wide(4));
    for _ in 0..20 {
        look(&mut lab, &[]);
        assert_eq!(lab.running(), [0, 1, 2, 3]);
    }
}

#[derive(Clone, Debug)]
enum Happens {
    Wakes,
    Looks(f64, f64, Option<u64>),
    Arrives(u16, bool, bool),
    Exits(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => Just(Happens::Wakes),
        4 => (0.0..6.0f64, 0.01..1.0f64, prop::option::of(0u64..5000))
            .prop_map(|(used, running, ticks)| Happens::Looks(used, running, ticks)),
        2 => (1u16..9, any::<bool>(), any::<bool>())
            .prop_map(|(threads, free, malleable)| Happens::Arrives(threads, free, malleable)),
        1 => (0usize..20).prop_map(Happens::Exits),
    ]
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn whatever_comes_goes_and_is_seen_somebody_runs_and_whoever_waits_waits_for_something(
        goal in (0..Goal::ALL.len()).prop_map(|goal| Goal::ALL[goal]),
        story in prop::collection::vec(happens(), 1..80),
    ) {
        let mut lab = lab(goal, 6, vec![]);
        for (slot, what) in (0u16..).zip(story) {
            match what {
                Happens::Wakes => _ = lab.wake(),
                Happens::Looks(cpus, running, progress) => {
                    if lab.wake_of(LOOKS).is_some() {
                        look_by(&mut lab, |_, empty| {
                            Some(Sample { progress, ..used(empty, cpus, running) })
                        });
                    }
                }
                Happens::Arrives(threads, freezable, malleable) => {
                    lab.arrive(Program { freezable, malleable, ..program(slot, threads) });
                }
                Happens::Exits(which) if !lab.scene.programs.is_empty() => {
                    let slot = lab.scene.programs[which % lab.scene.programs.len()].id.slot;
                    lab.exit(slot);
                }
                Happens::Exits(_) => {}
            }
            let (run, wait): (Vec<_>, Vec<_>) =
                lab.scene.programs.iter().partition(|p| p.state.may_run());
            prop_assert!(wait.is_empty() || !run.is_empty(), "somebody waits for nobody");
            prop_assert!(wait.is_empty() || lab.next_wake().is_some(), "somebody waits for ever");
        }
    }
}

#[test]
fn somebody_who_comes_and_goes_all_the_time_does_not_keep_it_from_looking() {
    let mut lab = lab(Goal::Balanced, 2, wide(2));
    for slot in 2..2000 {
        if is_trial(&lab) {
            return;
        }
        lab.arrive(program(slot, 1));
        let until = lab.scene.now + Nanos::from_millis(10);
        while lab.next_wake().is_some_and(|at| at <= until) {
            let (from, at) = (looked_at(&lab), lab.next_wake().unwrap());
            let empty =
                |p: &Program| Sample { quality: Quality::Exact, ..Sample::empty(p.id, from, at) };
            lab.scene.samples =
                lab.scene.programs.iter().map(|p| used(empty(p), 0.7, 1.0)).collect();
            lab.wake_reading();
        }
        if is_trial(&lab) {
            assert!(lab.scene.now < Nanos::from_millis(500));
            return;
        }
        lab.scene.now = until;
        lab.exit(slot);
    }
    panic!("it never looked");
}
