use cosched_core::{Program, ProgramId, Quality, Sample, Token};
use proptest::prelude::*;

use super::sampling::SAMPLES;
use super::*;
use crate::common::testkit::{Lab, cases, program};

fn lab(cpus: u16, programs: Vec<Program>) -> Lab<Auto> {
    let options = Options { quantum: QUANTUM, ..Options::default() };
    Lab::new(Auto::new(&options), cpus, programs)
}

const QUANTUM: Nanos = Nanos::from_millis(250);

fn of_two_threads(n: u16) -> Vec<Program> {
    (0..n).map(|slot| program(slot, 2)).collect()
}

/// The time of the last measurement.
fn sampled_at(lab: &Lab<Auto>) -> Nanos {
    lab.scene.samples.iter().map(|sample| sample.to).max().unwrap_or_default()
}

/// Goes on until new programs have settled, if the policy waits for that.
fn settled(lab: &mut Lab<Auto>) -> Option<Nanos> {
    let at = lab.wake_of(SAMPLES).filter(|at| *at == lab.scene.now + Params::DEFAULT.settle)?;
    while lab.next_wake() < Some(at) {
        lab.wake();
    }
    lab.scene.samples.clear();
    lab.wake_reading();
    Some(at)
}

/// Goes on to the next sample, in which each program did what `did` returns.
fn sample_by(lab: &mut Lab<Auto>, did: impl Fn(&Program, Sample) -> Option<Sample>) {
    let from = settled(lab).unwrap_or_else(|| sampled_at(lab));
    let at = lab.wake_of(SAMPLES).unwrap();
    while lab.next_wake() < Some(at) {
        lab.wake();
    }
    let empty = |p: &Program| Sample { quality: Quality::Exact, ..Sample::empty(p.id, from, at) };
    lab.scene.samples = lab.scene.programs.iter().filter_map(|p| did(p, empty(p))).collect();
    lab.wake_reading();
}

fn part(sample: &Sample, part: f64) -> Nanos {
    Nanos(((sample.to - sample.from).0 as f64 * part) as u64)
}

/// A sample of a program that used this many CPUs while it might run, for this part of the time.
fn used(empty: Sample, cpus: f64, running: f64) -> Sample {
    let on_cpu = part(&empty, cpus * running);
    Sample { on_cpu, user_time: Some(on_cpu), frozen: part(&empty, 1.0 - running), ..empty }
}

/// Goes on to the next sample, in which these programs used this many CPUs, for this part of the
/// time.
fn sample(lab: &mut Lab<Auto>, did: &[(u16, f64, f64)]) {
    sample_by(lab, |p, empty| {
        let (_, cpus, running) = did.iter().find(|(slot, ..)| *slot == p.id.slot)?;
        Some(used(empty, *cpus, *running))
    });
}

/// Goes on to the next sample, in which all programs did this.
fn sample_alike(lab: &mut Lab<Auto>, cpus: f64, running: f64) {
    sample_by(lab, |_, empty| Some(used(empty, cpus, running)));
}

/// Goes on to the next sample, in which this many threads of each program waited for a CPU.
fn sample_with_queues(lab: &mut Lab<Auto>, cpus: f64, waiting: f64) {
    sample_by(lab, |_, empty| {
        let run_delay = Some(part(&empty, waiting));
        Some(Sample { run_delay, ..used(empty, cpus, 1.0) })
    });
}

fn chosen(lab: &Lab<Auto>) -> Option<(Mode, ReasonCode)> {
    lab.plan.reasons.iter().find_map(|reason| match reason.why.read()? {
        AutoReason::Chosen { mode, reason_code, .. } => Some((mode, reason_code)),
        _ => None,
    })
}

fn probes(lab: &Lab<Auto>) -> bool {
    lab.plan
        .reasons
        .iter()
        .any(|reason| matches!(reason.why.read(), Some(AutoReason::SoloProbes { .. })))
}

const TOGETHER: (Mode, ReasonCode) = (Mode::Corun, ReasonCode::GangsIdle);
const IN_TURNS: (Mode, ReasonCode) = (Mode::Gangs, ReasonCode::GangsFill);

/// Two CPUs, and programs that fill them alone.
fn in_turns(programs: Vec<Program>) -> Lab<Auto> {
    let mut lab = lab(2, programs);
    let share = 1.0 / lab.scene.programs.len() as f64;
    sample_alike(&mut lab, 2.0 * share, 1.0);
    sample_alike(&mut lab, 1.98, share);
    assert_eq!(chosen(&lab), Some(IN_TURNS));
    lab
}

/// Samples are taken only where taking turns could win something.
#[test]
fn auto_starts_like_linux_and_samples_where_it_can_help() {
    let mut four = lab(2, of_two_threads(4));
    assert_eq!(four.running(), [0, 1, 2, 3]);
    assert_eq!(chosen(&four), Some((Mode::Corun, ReasonCode::Begins)));
    assert_eq!(four.next_wake(), Some(Params::DEFAULT.settle));
    for (programs, reason_code) in [
        (of_two_threads(1), ReasonCode::Alone),
        (vec![program(0, 1), program(1, 1)], ReasonCode::EnoughCpus),
        ((0..5).map(|slot| program(slot, 1)).collect(), ReasonCode::AllSingleThreaded),
    ] {
        let lab = lab(2, programs);
        assert_eq!(chosen(&lab), Some((Mode::Corun, reason_code)));
        assert_eq!(lab.next_wake(), None, "{reason_code:?}");
    }
    sample_alike(&mut four, 0.3, 1.0);
    assert_eq!(chosen(&four), Some((Mode::Corun, ReasonCode::CpusIdle)));
}

#[test]
fn unfreezable_programs_count_and_take_no_turns() {
    let unfreezable = |slot, threads| Program { freezable: false, ..program(slot, threads) };
    let reason_code = |programs| chosen(&lab(2, programs)).unwrap().1;
    assert_eq!(reason_code(vec![unfreezable(0, 2), program(1, 2)]), ReasonCode::FewFreezable);
    let others = vec![unfreezable(0, 2), program(1, 1), program(2, 1)];
    assert_eq!(reason_code(others), ReasonCode::FewFreezable);
    let others = vec![unfreezable(0, 2), program(1, 2), program(2, 2)];
    assert_eq!(reason_code(others), ReasonCode::Begins);
    let single = [0, 1, 2].map(|slot| unfreezable(slot, 1));
    assert_eq!(reason_code(single[..2].to_vec()), ReasonCode::EnoughCpus);
    assert_eq!(reason_code(single.to_vec()), ReasonCode::AllSingleThreaded);
}

/// Each program has a solo probe; if all of them fill the CPUs, they take turns.
#[test]
fn programs_that_fill_all_cpus_alone_take_turns() {
    let mut lab = lab(2, of_two_threads(4));
    sample_alike(&mut lab, 0.5, 1.0);
    assert!(probes(&lab));
    assert_eq!(lab.quanta(3), [[0], [1], [2]]);
    sample_alike(&mut lab, 1.96, 0.25);
    assert_eq!(chosen(&lab), Some(IN_TURNS));
    assert_eq!(lab.running().len(), 1);
    assert_eq!(lab.quantum().map(|quantum| quantum.3), Some(QUANTUM));
}

/// Programs that use one CPU each run together, whatever number of threads they request.
#[test]
fn programs_that_use_one_cpu_each_run_together() {
    let mut lab = lab(2, of_two_threads(4));
    sample_alike(&mut lab, 0.5, 1.0);
    sample_alike(&mut lab, 1.0, 0.25);
    assert_eq!(chosen(&lab), Some(TOGETHER));
    assert_eq!(lab.running(), [0, 1, 2, 3]);
}

#[test]
fn single_threaded_programs_share_a_solo_probe() {
    let mut lab = lab(2, (0..5).map(|slot| program(slot, 1 + slot % 2)).collect());
    sample_alike(&mut lab, 0.4, 1.0);
    assert!(probes(&lab));
    let mut gangs = lab.quanta(4);
    gangs.sort();
    assert_eq!(gangs, [vec![0, 2], vec![1], vec![3], vec![4]]);
    assert!(lab.scene.programs.iter().all(|p| p.cpus.is_none()), "bound for a moment");
}

#[test]
fn a_program_that_hardly_runs_is_never_frozen() {
    let mut lab = lab(2, of_two_threads(3));
    sample(&mut lab, &[(0, 1.0, 1.0), (1, 1.0, 1.0), (2, 0.0, 1.0)]);
    assert!(probes(&lab) && lab.running().contains(&2));
    let expected = (Some(ProgramId::first(2)), Some(AutoReason::HardlyRuns));
    assert!(lab.plan.reasons.iter().any(|reason| (reason.program, reason.why.read()) == expected));
    sample(&mut lab, &[(0, 2.0, 0.5), (1, 2.0, 0.5), (2, 0.0, 1.0)]);
    assert_eq!(chosen(&lab), Some(IN_TURNS));
    let first = lab.running();
    lab.wake();
    let mut gangs = [first, lab.running()];
    gangs.sort();
    assert_eq!(gangs, [[0, 2], [1, 2]]);
    sample(&mut lab, &[(0, 2.0, 0.5), (1, 2.0, 0.5), (2, 0.25, 1.0)]);
    assert!(lab.running().contains(&2), "that is hardly more");
    sample(&mut lab, &[(0, 2.0, 0.5), (1, 2.0, 0.5), (2, 0.5, 1.0)]);
    assert!(lab.quanta(3).contains(&vec![2]), "now it takes turns");
}

#[test]
fn more_may_be_lost_where_two_programs_never_sleep_alone() {
    for (second, choice) in [(2.0, IN_TURNS), (1.8, TOGETHER)] {
        let mut lab = lab(2, of_two_threads(4));
        sample_alike(&mut lab, 0.5, 1.0);
        sample(&mut lab, &[(0, 2.0, 0.25), (1, second, 0.25), (2, 1.4, 0.25), (3, 1.4, 0.25)]);
        assert_eq!(chosen(&lab), Some(choice), "{second}");
    }
}

/// After turns have ended, the pause before the next solo probes doubles.
#[test]
fn turns_that_do_less_work_end() {
    let mut lab = in_turns(of_two_threads(4));
    let began = lab.scene.now;
    sample_alike(&mut lab, 1.98, 0.25);
    assert_eq!(lab.scene.now - began, QUANTUM * 4, "each has had a turn");
    assert_eq!(lab.running().len(), 1, "as much as before");
    sample_alike(&mut lab, 1.2, 0.25);
    assert_eq!((chosen(&lab), lab.running().len()), (Some(TOGETHER), 4));
    let explored = lab.plan.reasons.iter().find_map(|reason| match reason.why.read()? {
        AutoReason::Chosen { explored, .. } => Some(explored),
        _ => None,
    });
    // Two fifths of a second.
    let cost = explored.unwrap();
    assert!((Nanos::from_millis(390)..Nanos::from_millis(420)).contains(&cost), "{cost}");
    for pause in [500, 1000, 2000, 4000] {
        let paused = lab.scene.now;
        while !probes(&lab) {
            sample_alike(&mut lab, 0.5, 1.0);
        }
        assert_eq!(lab.scene.now - paused, Nanos::from_millis(pause));
        sample_alike(&mut lab, 1.2, 0.25);
        assert_eq!(lab.running().len(), 4);
    }
}

/// A program that arrives while others take turns waits for its turn.
#[test]
fn turns_end_when_one_program_is_left() {
    let mut lab = in_turns(of_two_threads(3));
    lab.arrive(program(7, 2));
    assert!(!lab.running().contains(&7));
    assert!(lab.quanta(4).iter().any(|gang| gang.contains(&7)));
    for slot in [0, 1, 2] {
        lab.exit(slot);
    }
    assert_eq!(chosen(&lab), Some((Mode::Corun, ReasonCode::Alone)));
    assert_eq!((lab.running(), lab.next_wake()), (vec![7], None));
}

/// CPUs count as short by waiting threads, whatever CPU time other users take.
#[test]
fn waiting_threads_show_that_cpus_are_short() {
    let mut short = lab(2, of_two_threads(4));
    sample_with_queues(&mut short, 0.2, 1.6);
    assert!(probes(&short));
    let mut enough = lab(2, of_two_threads(4));
    sample_with_queues(&mut enough, 0.5, 0.04);
    assert_eq!(chosen(&enough), Some((Mode::Corun, ReasonCode::CpusIdle)));
}

#[test]
fn programs_that_are_still_being_loaded_have_no_solo_probes() {
    let mut lab = lab(2, of_two_threads(50));
    for _ in 0..4 {
        sample_with_queues(&mut lab, 0.02, 0.5);
        assert!(!probes(&lab), "they may be about to sleep");
    }
    sample_with_queues(&mut lab, 0.06, 1.9);
    assert!(probes(&lab));
}

#[test]
fn solo_probes_that_measure_nothing_lead_to_no_turns() {
    let mut lab = lab(2, of_two_threads(4));
    sample_alike(&mut lab, 0.5, 1.0);
    assert!(probes(&lab));
    sample(&mut lab, &[]);
    assert_eq!((chosen(&lab), lab.running().len()), (Some(TOGETHER), 4));
}

/// Ends a program and starts it again, in half a second.
fn repeats(lab: &mut Lab<Auto>, slot: u16) {
    let until = lab.scene.now + Nanos::from_millis(500);
    while lab.next_wake().is_some_and(|at| at <= until) {
        lab.wake();
    }
    lab.scene.now = until;
    lab.exit(slot);
    lab.arrive(program(slot, 2));
}

#[test]
fn losing_turns_end_even_if_a_program_is_repeated() {
    let mut lab = in_turns(of_two_threads(4));
    for _ in 0..20 {
        repeats(&mut lab, 3);
        if lab.wake_of(SAMPLES).is_some_and(|at| at <= lab.scene.now + Nanos::from_millis(500)) {
            sample_alike(&mut lab, 1.2, 0.25);
        }
        if chosen(&lab) == Some(TOGETHER) {
            return;
        }
    }
    panic!("they are never compared");
}

#[test]
fn a_repeated_program_causes_no_more_solo_probes() {
    let mut lab = lab(2, of_two_threads(3));
    let mut count = 0;
    for _ in 0..120 {
        let before = lab.scene.now;
        for _ in 0..3 {
            if lab.wake_of(SAMPLES).is_none_or(|at| at > before + Nanos::from_millis(400)) {
                break;
            }
            sample_alike(&mut lab, 0.66, 1.0);
            count += usize::from(probes(&lab));
            if probes(&lab) {
                sample_alike(&mut lab, 1.0, 0.33);
            }
        }
        repeats(&mut lab, 2);
    }
    assert!((2..=9).contains(&count), "{count} in a minute: after 0.5, 1, 2, ... and 32 s");
}

#[test]
fn turns_end_when_all_but_one_hardly_run() {
    let mut lab = in_turns(of_two_threads(3));
    sample(&mut lab, &[(0, 2.0, 0.33), (1, 0.0, 0.33), (2, 0.0, 0.33)]);
    assert_eq!(chosen(&lab), Some((Mode::Corun, ReasonCode::OneCompetes)));
    assert_eq!(lab.running(), [0, 1, 2]);
}

#[derive(Clone, Debug)]
enum Happens {
    Wakes,
    Samples(f64, f64),
    Arrives(u16, bool),
    Exits(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => Just(Happens::Wakes),
        4 => (0.0..6.0f64, 0.01..1.0f64)
            .prop_map(|(used, running)| Happens::Samples(used, running)),
        2 => (1u16..9, any::<bool>()).prop_map(|(threads, free)| Happens::Arrives(threads, free)),
        1 => (0usize..20).prop_map(Happens::Exits),
    ]
}

proptest! {
    #![proptest_config(cases(300))]

    /// Programs come and go at random. At each moment one runs, and each that waits waits for
    /// something that will come.
    #[test]
    fn some_program_always_runs_and_every_wait_has_a_reason(
        story in prop::collection::vec(happens(), 1..80),
    ) {
        let mut lab = lab(6, vec![]);
        for (slot, what) in (0u16..).zip(story) {
            match what {
                Happens::Wakes => _ = lab.wake(),
                Happens::Samples(cpus, running) => {
                    if lab.wake_of(SAMPLES).is_some() {
                        sample_alike(&mut lab, cpus, running);
                    }
                }
                Happens::Arrives(threads, freezable) => {
                    lab.arrive(Program { freezable, ..program(slot, threads) });
                }
                Happens::Exits(which) if !lab.scene.programs.is_empty() => {
                    let slot = lab.scene.programs[which % lab.scene.programs.len()].id.slot;
                    lab.exit(slot);
                }
                Happens::Exits(_) => {}
            }
            let (run, wait): (Vec<_>, Vec<_>) =
                lab.scene.programs.iter().partition(|p| p.state.may_run());
            prop_assert!(wait.is_empty() || !run.is_empty(), "a program waits for none");
            let quantum_ends = lab.wake_of(Token(0)).is_some();
            prop_assert!(wait.is_empty() || quantum_ends, "it waits for ever");
        }
    }
}

#[test]
fn frequent_arrivals_and_ends_do_not_prevent_sampling() {
    let mut lab = lab(2, of_two_threads(2));
    for slot in 2..2000 {
        lab.arrive(program(slot, 1));
        let until = lab.scene.now + Nanos::from_millis(10);
        while lab.next_wake().is_some_and(|at| at <= until) {
            let (from, at) = (sampled_at(&lab), lab.next_wake().unwrap());
            let empty =
                |p: &Program| Sample { quality: Quality::Exact, ..Sample::empty(p.id, from, at) };
            lab.scene.samples =
                lab.scene.programs.iter().map(|p| used(empty(p), 0.7, 1.0)).collect();
            lab.wake_reading();
        }
        if probes(&lab) {
            assert!(lab.scene.now < Nanos::from_millis(500));
            return;
        }
        lab.scene.now = until;
        lab.exit(slot);
    }
    panic!("it never sampled");
}
