use super::*;
use crate::common::testkit::{Lab, program};
use cosched_core::{Cause, GroupId, Program, ProgramState};

const QUANTUM: Nanos = Nanos::from_millis(100);

fn lab(cpus: u16, programs: Vec<Program>) -> Lab<Minwait> {
    Lab::new(Minwait::new(&Options::default()), cpus, programs)
}

/// Programs 0, 1, 2, ... with these thread counts.
fn programs(threads: &[u16]) -> Vec<Program> {
    threads.iter().enumerate().map(|(slot, n)| program(slot as u16, *n)).collect()
}

#[test]
fn the_longest_waiting_run_and_those_too_big_are_skipped() {
    let mut lab = lab(6, programs(&[4, 3, 2, 5]));
    // At first all have waited equally long: 0, and 2 together with it. Then 1 and 3 have waited; 3
    // does not fit together with 1, but 2, which ran, does.
    assert_eq!(lab.quanta(4), [vec![0, 2], vec![1, 2], vec![3], vec![0, 2]]);
}

#[test]
fn small_programs_run_nearly_always() {
    let mut lab = lab(4, programs(&[3, 3, 1]));
    assert_eq!(lab.quanta(4), [[0, 2], [1, 2], [0, 2], [1, 2]]);
}

#[test]
fn equal_waits_stay_in_the_order_of_the_workload() {
    let mut lab = lab(2, programs(&[1, 1, 1, 1]));
    assert_eq!(lab.quanta(4), [[0, 1], [2, 3], [0, 1], [2, 3]]);
}

#[test]
fn there_are_no_quanta_while_no_program_waits() {
    let mut lab = lab(4, programs(&[2, 1]));
    assert_eq!((lab.running(), lab.next_wake()), (vec![0, 1], None));
    lab.pass(QUANTUM * 5);
    lab.arrive(program(2, 2));
    assert_eq!(lab.running(), [0, 1], "programs that run are not disturbed");
    assert_eq!(lab.next_wake(), Some(QUANTUM * 6));
    lab.wake();
    assert_eq!(lab.running(), [0, 2]);
}

#[test]
fn the_last_program_left_has_a_quantum_without_end() {
    let mut lab = lab(2, programs(&[2, 2]));
    lab.exit(0);
    assert_eq!((lab.running(), lab.next_wake()), (vec![1], None));
    assert_eq!(lab.quantum().map(|(_, _, _, length)| length), Some(Nanos::NEVER));
}

/// Freed CPUs go to waiting programs at once, and the quantum ends as planned.
#[test]
fn freed_cpus_go_to_waiting_programs_at_once() {
    let mut lab = lab(4, programs(&[3, 1, 2, 1]));
    assert_eq!(lab.running(), [0, 1]);
    lab.pass(QUANTUM / 2);
    lab.exit(1);
    assert_eq!(lab.running(), [0, 3], "2 has waited as long and does not fit");
    assert!(lab.plan.directive(ProgramId::first(0)).is_none());
    assert_eq!(lab.next_wake(), Some(QUANTUM));
    lab.exit(0);
    assert_eq!((lab.running(), lab.next_wake()), (vec![2, 3], None));
}

#[test]
fn a_newcomer_that_fits_starts_at_once() {
    let mut lab = lab(4, programs(&[3, 3]));
    lab.pass(QUANTUM / 2);
    lab.arrive(program(5, 1));
    assert_eq!(lab.running(), [0, 5]);
    assert_eq!(lab.cpus_in_use(), [0, 1, 2, 3]);
    assert_eq!(lab.next_wake(), Some(QUANTUM));
}

#[test]
fn a_new_quantum_begins_when_no_program_is_left_running() {
    let mut lab = lab(2, programs(&[2, 2, 2]));
    lab.pass(QUANTUM / 4);
    lab.exit(0);
    assert_eq!(lab.running(), [1]);
    assert_eq!(lab.next_wake(), Some(QUANTUM / 4 + QUANTUM));
    lab.exit(1);
    lab.exit(2);
    assert_eq!((lab.running(), lab.next_wake()), (vec![], None));
}

#[test]
fn a_weight_multiplies_the_waiting_time() {
    let mut all = programs(&[2, 2, 2]);
    all[2].weight = 4.0;
    let mut lab = lab(2, all);
    assert_eq!(lab.quanta(8), [[0], [2], [1], [2], [0], [2], [1], [2]]);
}

/// As `turns` and `auto` have it.
#[test]
fn programs_share_time_by_weight() {
    for policy in [Minwait::sharing, Minwait::lending] {
        let mut all = programs(&[2, 2, 2]);
        all[1].weight = 3.0;
        let mut lab = Lab::new(policy(&Options::default()), 2, all);
        let mut ends = Vec::new();
        for _ in 0..4 {
            ends.push((lab.running(), lab.next_wake().unwrap()));
            lab.wake_reading();
        }
        let spans = [(0, 1), (1, 4), (2, 5), (0, 6)];
        assert_eq!(ends, spans.map(|(slot, end)| (vec![slot], QUANTUM * end)));
    }
}

#[test]
fn no_weight_freezes_others_for_too_long() {
    let mut all = programs(&[1, 1, 1]);
    all[0].weight = 1000.0;
    all[1].weight = 1000.0;
    let mut lab = lab(1, all);
    let turns = lab.quanta(30);
    let of_2: Vec<usize> = (0..30).filter(|&quantum| turns[quantum] == [2]).collect();
    assert!(of_2.len() >= 2, "{turns:?}");
    assert!(
        of_2.windows(2)
            .all(|pair| QUANTUM * ((pair[1] - pair[0] - 1) as u64) <= lab.scene.max_frozen)
    );
}

#[test]
fn a_change_of_cpus_makes_a_new_gang() {
    let mut lab = lab(4, programs(&[2, 2]));
    lab.scene.cpus = CpuSet::first(2);
    lab.tell(&[Cause::MachineChanged]);
    assert_eq!(lab.quanta(3), [[0], [1], [0]]);
}

#[test]
fn a_program_that_joins_a_running_group_runs_with_it() {
    let grouped = |slot| Program { group: Some(GroupId(1)), ..program(slot, 1) };
    let mut lab = lab(2, vec![grouped(0)]);
    lab.arrive(grouped(1));
    assert_eq!((lab.running(), lab.next_wake()), (vec![0, 1], None));
}

#[test]
fn reports_that_change_nothing_leave_everything_alone() {
    let mut lab = lab(2, programs(&[2, 2]));
    lab.tell(&[Cause::Settled { program: ProgramId::first(0), epoch: 1 }]);
    assert_eq!(lab.plan, Plan::default());
}

#[test]
fn a_stopped_program_gives_its_cpus_away() {
    let mut lab = lab(2, programs(&[2, 2]));
    lab.set_state(0, ProgramState::StoppedByOther);
    assert_eq!((lab.running(), lab.next_wake()), (vec![1], None));
}

fn lending(cpus: u16, programs: Vec<Program>) -> Lab<Minwait> {
    Lab::new(Minwait::lending(&Options::default()), cpus, programs)
}

/// How many CPUs each program may use now.
fn cpus(lab: &Lab<Minwait>) -> Vec<usize> {
    let cpus = |p: &Program| {
        if p.state.may_run() { p.cpus.map_or(lab.scene.cpus.len(), |cpus| cpus.len()) } else { 0 }
    };
    lab.scene.programs.iter().map(cpus).collect()
}

/// A gang's free CPUs are backfilled, and the program that gets them keeps its place.
#[test]
fn backfilled_cpus_are_no_turn() {
    let mut lab = lending(24, programs(&[18, 18, 18]));
    let mut seen = vec![cpus(&lab)];
    for _ in 0..3 {
        lab.wake();
        seen.push(cpus(&lab));
    }
    assert_eq!(seen, [[18, 6, 0], [0, 18, 6], [6, 0, 18], [18, 6, 0]]);
    let backfilled = Some(MinwaitReason::SharesBackfill { cpus: 6 });
    assert!(
        lab.plan.reasons.iter().any(|reason| reason.why.read() == backfilled),
        "{:?}",
        lab.plan.reasons
    );
}

#[test]
fn two_programs_alternate_and_the_last_has_all_cpus() {
    let mut lab = lending(4, programs(&[3, 3]));
    assert_eq!(cpus(&lab), [3, 1]);
    lab.wake();
    assert_eq!(cpus(&lab), [1, 3]);
    lab.wake();
    assert_eq!(cpus(&lab), [3, 1]);
    lab.pass(QUANTUM / 2);
    lab.exit(0);
    assert_eq!((cpus(&lab), lab.next_wake()), (vec![3], None));
}

/// CPUs that are freed within a quantum go to the program that backfills already.
#[test]
fn cpus_freed_in_a_quantum_are_backfilled_too() {
    let mut lab = lending(6, programs(&[3, 2, 4, 6]));
    assert_eq!(cpus(&lab), [3, 2, 1, 0]);
    lab.pass(QUANTUM / 2);
    lab.exit(1);
    assert_eq!(cpus(&lab), [3, 3, 0], "the program of 4 threads backfills already");
    lab.exit(0);
    assert_eq!(cpus(&lab), [4, 2]);
}

#[test]
fn predicted_shares_match_the_quanta_that_follow() {
    for sizes in [vec![24, 18, 12, 12, 6, 6], vec![5, 24, 5, 24], vec![1, 24, 1, 1, 17]] {
        let threads: Vec<u16> = sizes.iter().map(|size| *size as u16).collect();
        let mut lab = lending(24, programs(&threads));
        let mut found = vec![Share::default(); sizes.len()];
        for _ in 0..120 {
            for ((share, cpus), size) in found.iter_mut().zip(cpus(&lab)).zip(&sizes) {
                match cpus == *size {
                    true => share.assigned += 1.0 / 120.0,
                    false => share.backfilled += cpus as f64 / 120.0,
                }
            }
            lab.wake();
        }
        for (found, expected) in found.iter().zip(shares(&sizes, 24, 1)) {
            let apart = (found.assigned - expected.assigned).abs()
                + (found.backfilled - expected.backfilled).abs();
            assert!(apart < 1e-9, "{sizes:?}: {found:?}, {expected:?}");
        }
    }
}
