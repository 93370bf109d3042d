use super::*;
use crate::common::testkit::{Lab, TABLE_5_2, program};
use crate::kind::Kind;
use cosched_core::{Aspect, Directive, Exit, GroupId, Program, ProgramState, Refusal, Settings};

const QUANTUM: Nanos = Nanos::from_millis(100);

fn lab(kind: Kind, cpus: u16, programs: Vec<Program>) -> Lab<Box<dyn Policy + Send>> {
    Lab::new(kind.build(&Options::default()).unwrap(), cpus, programs)
}

fn filling(kind: Kind, cpus: u16, programs: Vec<Program>) -> Lab<Box<dyn Policy + Send>> {
    let options = Options { fill: true, ..Options::default() };
    Lab::new(kind.build(&options).unwrap(), cpus, programs)
}

/// Programs 0, 1, 2, ... with these thread counts.
fn programs(threads: &[u16]) -> Vec<Program> {
    threads.iter().enumerate().map(|(slot, n)| program(slot as u16, *n)).collect()
}

/// Like figures 4.1 and 4.2: four programs on six CPUs.
const FOUR_ON_SIX: [u16; 4] = [4, 3, 2, 5];

/// The policy is `gang`.
#[test]
fn four_programs_on_six_cpus_make_rounds_of_four_quanta() {
    let mut lab = lab(Kind::Gang, 6, programs(&FOUR_ON_SIX));
    assert_eq!(lab.quantum(), Some((1, 0, 4, QUANTUM)));
    assert_eq!(lab.quanta(8), [[0], [1], [2], [3], [0], [1], [2], [3]]);
    assert_eq!(lab.quantum(), Some((3, 0, 4, QUANTUM)));
}

#[test]
fn greedy_needs_three_quanta_for_the_four_programs() {
    let mut lab = lab(Kind::Greedy, 6, programs(&FOUR_ON_SIX));
    assert_eq!(lab.quantum(), Some((1, 0, 3, QUANTUM)));
    assert_eq!(lab.quanta(6), [vec![3], vec![0, 2], vec![1], vec![3], vec![0, 2], vec![1]]);
    assert_eq!(lab.quantum(), Some((3, 0, 3, QUANTUM)));
}

/// The six gangs of table 5.2 run round after round.
#[test]
fn table_5_2_gives_the_six_gangs_of_section_5_3() {
    let mut lab = lab(Kind::Greedy, 24, programs(&TABLE_5_2.map(|row| row.1)));
    let gangs = [vec![4, 8], vec![0, 11], vec![1, 6], vec![9, 10], vec![2, 5, 7], vec![3]];
    assert_eq!(lab.quanta(12), [gangs.clone(), gangs].concat());
}

/// A program that fills the whole machine is not bound.
#[test]
fn a_gangs_programs_have_cpus_of_their_own() {
    let mut lab = lab(Kind::Greedy, 4, programs(&[4, 1, 2]));
    assert_eq!(lab.plan.directive(ProgramId::first(0)), Some(&Directive::Run(Settings::default())));
    lab.wake();
    assert_eq!(lab.running(), [1, 2]);
    assert_eq!(lab.cpus_in_use(), [0, 1, 2], "the larger first");
    assert_eq!(lab.scene.programs[2].cpus, Some(CpuSet::first(2)));
}

/// A gang that is alone shares the time when another gang arrives.
#[test]
fn one_gang_alone_runs_without_wake_ups() {
    let mut lab = lab(Kind::Greedy, 4, programs(&[2, 2]));
    assert_eq!(lab.running(), [0, 1]);
    assert_eq!(lab.next_wake(), None);
    lab.pass(QUANTUM * 3);
    lab.arrive(program(2, 1));
    assert_eq!(lab.quanta(4), [vec![2], vec![0, 1], vec![2], vec![0, 1]]);
    lab.exit(2);
    assert_eq!((lab.running(), lab.next_wake()), (vec![0, 1], None));
}

#[test]
fn reports_that_change_nothing_leave_everything_alone() {
    for threads in [vec![2, 2], vec![4, 4]] {
        let mut lab = lab(Kind::Greedy, 4, programs(&threads));
        lab.tell(&[Cause::Settled { program: ProgramId::first(0), epoch: 1 }]);
        assert_eq!(lab.plan, Plan::default());
    }
}

/// A newcomer does not overtake others.
#[test]
fn a_newcomer_waits_for_the_quantums_end() {
    let mut lab = lab(Kind::Gang, 2, programs(&[1, 1]));
    lab.pass(QUANTUM / 2);
    lab.arrive(program(9, 1));
    assert_eq!(lab.running(), [0]);
    let reason = lab.plan.reasons.iter().find(|r| r.program == Some(ProgramId::first(9)));
    let why = reason.and_then(|r| r.why.read());
    assert_eq!(why, Some(SharedReason::Queued { ahead: 1 }));
    assert_eq!(lab.quanta(5), [[0], [1], [9], [0], [1]]);
}

/// The next gang starts at once and has a whole quantum.
#[test]
fn the_next_gang_starts_when_the_running_one_is_empty() {
    let mut lab = lab(Kind::Greedy, 2, programs(&[2, 1, 1]));
    lab.pass(QUANTUM / 4);
    lab.arrive(program(3, 2));
    lab.exit(0);
    assert_eq!(lab.running(), [1, 2]);
    assert_eq!(lab.next_wake(), Some(QUANTUM / 4 + QUANTUM));
    lab.exit(1);
    assert_eq!(lab.running(), [2], "the gang is not empty yet");
    lab.exit(2);
    assert_eq!(lab.running(), [3]);
    lab.exit(3);
    assert_eq!((lab.running(), lab.next_wake()), (vec![], None));
    lab.arrive(program(4, 1));
    assert_eq!(lab.running(), [4], "no program ran, so it starts at once");
}

/// A wait is at most as long as the rounds before and after the change.
#[test]
fn one_change_makes_no_wait_longer_than_two_rounds() {
    let mut lab = lab(Kind::Greedy, 6, programs(&[6, 4, 2, 3, 3]));
    assert_eq!(lab.quanta(2), [vec![0], vec![1, 2]]);
    lab.pass(QUANTUM / 2);
    // The newcomer takes 2's place in the gang of 1, and 2 has to go into another one.
    lab.arrive(program(5, 2));
    lab.change(2, |p| p.thread_count = 1);
    assert_eq!(lab.quanta(5), [vec![3, 4], vec![0], vec![1, 5], vec![2], vec![3, 4]]);
}

#[test]
fn changed_thread_counts_regroup_at_the_next_quantum() {
    let mut lab = lab(Kind::Greedy, 4, programs(&[2, 2, 2]));
    assert_eq!(lab.running(), [0, 1]);
    lab.change(0, |p| p.thread_count = 4);
    assert_eq!(lab.running(), [0, 1]);
    lab.wake();
    assert_eq!(lab.quanta(4), [vec![1, 2], vec![0], vec![1, 2], vec![0]]);
}

#[test]
fn a_change_of_cpus_ends_the_turn_at_once() {
    let mut lab = lab(Kind::Greedy, 4, programs(&[2, 2]));
    lab.scene.cpus = CpuSet::first(2);
    lab.tell(&[Cause::MachineChanged]);
    assert_eq!(lab.quanta(3), [[0], [1], [0]]);
}

/// Programs that were stopped from outside leave the queue, and come back at its end.
#[test]
fn stopped_programs_leave_the_queue_and_return_last() {
    let mut lab = lab(Kind::Gang, 2, programs(&[1, 1, 1]));
    lab.set_state(0, ProgramState::StoppedByOther);
    assert_eq!(lab.quanta(3), [[1], [2], [1]]);
    lab.pass(QUANTUM / 2);
    lab.set_state(0, ProgramState::Running);
    assert_eq!(lab.plan.directive(ProgramId::first(0)), Some(&Directive::Freeze));
    assert_eq!(lab.quanta(4), [[2], [1], [0], [2]]);
}

/// Programs that may not be frozen run at once, and the reason is given once.
#[test]
fn unfreezable_programs_always_run() {
    let stubborn = Program { freezable: false, ..program(2, 2) };
    let mut lab = lab(Kind::Gang, 2, programs(&[2, 2]));
    lab.arrive(stubborn);
    assert_eq!(lab.running(), [0, 2]);
    lab.wake();
    assert_eq!(lab.running(), [1, 2]);
    assert_eq!(lab.plan.directive(ProgramId::first(2)), None);
}

#[test]
fn programs_of_a_group_share_their_turns() {
    let mut all = programs(&[1, 1, 1]);
    all[0].group = Some(GroupId(1));
    all[2].group = Some(GroupId(1));
    let mut lab = lab(Kind::Gang, 4, all);
    assert_eq!(lab.quanta(3), [vec![0, 2], vec![1], vec![0, 2]]);
}

/// Heavier programs have longer quanta, and with many gangs quanta are shorter.
#[test]
fn heavier_programs_have_longer_quanta() {
    let mut all = programs(&[2, 2]);
    all[1].weight = 3.0;
    let mut two = lab(Kind::Gang, 2, all);
    assert_eq!(two.quantum(), Some((1, 0, 2, QUANTUM)));
    two.wake();
    assert_eq!(two.quantum(), Some((1, 1, 2, QUANTUM * 3)));

    let many = lab(Kind::Gang, 2, programs(&[2; 19]));
    let (_, _, gangs, length) = many.quantum().unwrap();
    assert_eq!((gangs, length), (19, Nanos::from_micros(49_500)));
    let (requested, max_frozen) = (QUANTUM, Some(Nanos::from_secs(1)));
    let shortened = Some(SharedReason::QuantumShortened { requested, given: length, max_frozen });
    assert!(many.plan.reasons.iter().any(|reason| reason.why.read() == shortened));
}

#[test]
fn a_plan_names_only_programs_with_changed_turns() {
    let mut lab = lab(Kind::Gang, 2, programs(&[1; 50]));
    lab.quanta(60);
    let named: Vec<_> = lab.plan.programs.iter().map(|(id, _)| id.slot).collect();
    assert_eq!(named, [10, 9]);
    // A program that runs although it should wait is told again, once.
    let (program, what) = (ProgramId::first(30), Aspect::Frozen);
    lab.tell(&[Cause::Deviated { program, what, why: Refusal::FrozenTooLong }]);
    let mut named = || {
        lab.wake();
        lab.plan.programs.iter().map(|(id, _)| id.slot).collect::<Vec<_>>()
    };
    assert_eq!(named(), [11, 30, 10]);
    assert_eq!(named(), [12, 11]);
}

/// A program that backfills keeps its turns.
#[test]
fn greedy_fill_backfills_the_longest_waiting_program() {
    // Gangs of first-fit: 0 (five of six CPUs), 1 (four), 2 (four).
    let mut all = programs(&[5, 4, 4, 1, 2]);
    all[4].arrived = Nanos::ZERO;
    let mut plain = lab(Kind::Greedy, 6, all.clone());
    assert_eq!(plain.quanta(3), [vec![0, 3], vec![1, 4], vec![2]]);
    let mut filled = filling(Kind::Greedy, 6, all);
    // Behind 2 the two free CPUs go to 4, which would wait longer than 3, the next in turn.
    assert_eq!(filled.quanta(4), [vec![0, 3], vec![1, 4], vec![2, 4], vec![0, 3]]);
}

#[test]
fn cgreedy_pairs_programs_and_fill_adds_one() {
    let mut all = programs(&[2, 2, 1, 1]);
    for (p, misses) in all.iter_mut().zip([9.0, 1.0, 2.0, 3.0]) {
        p.profile.misses_per_kilo_instruction = Some(misses);
    }
    let mut pairs = lab(Kind::Cgreedy, 5, all.clone());
    assert_eq!(pairs.quanta(3), [[0, 1], [2, 3], [0, 1]]);
    let mut threes = filling(Kind::Cgreedy, 5, all);
    assert_eq!(threes.quanta(3), [vec![0, 1, 2], vec![3], vec![0, 1, 2]]);
}

#[test]
fn every_program_has_a_reason() {
    let mut lab = lab(Kind::Greedy, 6, programs(&FOUR_ON_SIX));
    let mut named: Vec<_> = lab.plan.reasons.iter().filter_map(|r| r.program).collect();
    named.sort_unstable();
    assert_eq!(named, (0..4).map(ProgramId::first).collect::<Vec<_>>());
    lab.tell(&[Cause::Exited(ProgramId::first(9), Exit::Code(0))]);
    assert!(lab.plan.reasons.is_empty());
}

#[test]
fn a_program_stopped_in_its_turn_loses_the_turn() {
    let mut lab = lab(Kind::Greedy, 2, programs(&[1, 1, 2]));
    lab.wake();
    assert_eq!(lab.running(), [0, 1]);
    lab.set_state(0, ProgramState::StoppedByOther);
    lab.set_state(0, ProgramState::Running);
    assert_eq!(lab.running(), [1]);
    lab.exit(1);
    assert_eq!(lab.running(), [2], "the gang was empty");
}
