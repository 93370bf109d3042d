use cosched_core::{Directive, Exit, Plan, Policy, ProgramState, Sample, Settings};
use proptest::prelude::*;

use super::*;
use crate::common::testkit::{Lab, cases, program};
use crate::kind::{Kind, Options};

const QUANTUM: Nanos = Nanos::from_millis(100);
const BOTH: [Kind; 2] = [Kind::AdaptiveGreedy, Kind::AdaptiveMinwait];

type AnyLab = Lab<Box<dyn Policy + Send>>;

/// Programs that request these numbers of threads.
fn malleable(threads: &[u16]) -> Vec<Program> {
    let program =
        |(slot, n): (usize, &u16)| Program { malleable: true, ..program(slot as u16, *n) };
    threads.iter().enumerate().map(program).collect()
}

fn lab(kind: Kind, cpus: u16, programs: Vec<Program>) -> AnyLab {
    Lab::new(kind.build(&Options::default()).unwrap(), cpus, programs)
}

/// A program requests two threads.
fn request_of(slot: u16) -> Cause {
    Cause::Requested { program: ProgramId::first(slot), threads: 2, blocked: true }
}

fn thread_limit(plan: &Plan, slot: u16) -> Option<u16> {
    match plan.directive(ProgramId::first(slot)) {
        Some(Directive::Run(settings)) => settings.thread_limit,
        _ => None,
    }
}

/// The threads of each program in the present quantum; 0: it does not run.
fn threads(lab: &AnyLab) -> Vec<u16> {
    let threads = |p: &Program| if p.state == ProgramState::Running { p.allowed } else { 0 };
    lab.scene.programs.iter().map(threads).collect()
}

/// Lets the present quantum pass, in which programs make this progress by their thread counts, and
/// delivers the readings.
fn pass(lab: &mut AnyLab, rate: fn(u16) -> f64) {
    let Some(at) = lab.next_wake() else { panic!("nothing is to come") };
    let (from, seconds) = (lab.scene.now, (at - lab.scene.now).as_secs_f64());
    lab.scene.samples.clear();
    for program in lab.scene.programs.iter_mut().filter(|p| p.state == ProgramState::Running) {
        program.ran += at - from;
        let done = 1e9 * rate(program.allowed) * seconds;
        let sample = Sample::empty(program.id, from, at);
        lab.scene.samples.push(Sample { instructions: Some(done as u64), ..sample });
    }
    lab.wake_reading();
}

/// Programs that would take turns with all their threads run together with few.
#[test]
fn programs_run_together_with_few_threads_each() {
    for kind in BOTH {
        let mut lab = lab(kind, 2, malleable(&[2; 4]));
        assert_eq!(threads(&lab), [1, 1, 0, 0], "{kind}");
        lab.wake();
        assert_eq!(threads(&lab), [0, 0, 1, 1], "{kind}");
    }
}

/// A program enters a phase for which it requests so many threads.
fn enter_phase(lab: &mut AnyLab, slot: u16, threads: u16) {
    let program = ProgramId::first(slot);
    lab.scene.programs[usize::from(slot)].requested = threads;
    lab.tell(&[Cause::Requested { program, threads, blocked: true }]);
}

/// The thread counts of the next quanta, by program.
fn quanta(lab: &mut AnyLab, count: usize) -> Vec<Vec<u16>> {
    let quantum = |_| {
        lab.wake();
        threads(lab)
    };
    (0..count).map(quantum).collect()
}

/// The four programs of figures 4.1 and 4.2 on six CPUs: A with 4 threads, B with 3, C with 2 and D
/// with 5. Greedy gives D; A with C; B: three quanta. In the second round D and A request 3 threads
/// for their next phase. From the third round on these gangs are A with B, and D with C: two
/// quanta.
#[test]
fn gangs_are_cut_again_at_each_round_from_what_is_requested() {
    let mut lab = lab(Kind::RequestGreedy, 6, malleable(&[4, 3, 2, 5]));
    assert_eq!(threads(&lab), [0, 0, 0, 5]);
    let round = [vec![4, 0, 2, 0], vec![0, 3, 0, 0]];
    assert_eq!(quanta(&mut lab, 2), round);
    assert_eq!(quanta(&mut lab, 1), [[0, 0, 0, 5]], "the second round");
    enter_phase(&mut lab, 3, 3);
    assert_eq!(quanta(&mut lab, 1), [[4, 0, 2, 0]]);
    enter_phase(&mut lab, 0, 3);
    assert_eq!(quanta(&mut lab, 1), [[0, 3, 0, 0]], "not before the round is over");
    assert_eq!(quanta(&mut lab, 3), [[0, 0, 2, 3], [3, 3, 0, 0], [0, 0, 2, 3]]);
    let limits = |slot: usize| lab.scene.programs[slot].allowed;
    assert_eq!([0, 1, 2, 3].map(limits), [3, 3, 2, 3], "each has what it requests");
}

/// In each quantum the programs that have waited longest run with what they request, as far as
/// that fits; a request above the number of CPUs gets all of them.
#[test]
fn request_minwait_grants_requests_at_each_quantum() {
    let mut lab = lab(Kind::RequestMinwait, 6, malleable(&[4, 3, 2, 5]));
    assert_eq!(threads(&lab), [4, 0, 2, 0]);
    assert_eq!(quanta(&mut lab, 1), [[0, 3, 2, 0]]);
    enter_phase(&mut lab, 2, 1);
    enter_phase(&mut lab, 1, 64);
    assert_eq!(quanta(&mut lab, 2), [[0, 0, 1, 5], [4, 0, 1, 0]]);
    assert_eq!(quanta(&mut lab, 1), [[0, 6, 0, 0]]);
}

/// The last request counts, and not the largest; nothing is measured for it.
#[test]
fn the_last_request_of_a_round_is_granted() {
    for kind in [Kind::RequestGreedy, Kind::RequestMinwait] {
        let mut lab = lab(kind, 4, malleable(&[2]));
        for threads in [4, 1, 3] {
            enter_phase(&mut lab, 0, threads);
        }
        lab.wake();
        assert_eq!(threads(&lab), [3], "{kind}");
        assert!(lab.plan.wake.iter().all(|wake| wake.first == AtExpiry::Nothing), "{kind}");
        assert!(lab.plan.observe.is_empty(), "{kind}");
    }
}

/// Programs that cannot change their threads get no limit, and keep the threads that they have.
#[test]
fn programs_of_fixed_threads_get_no_thread_limit() {
    for kind in BOTH {
        let mut programs = malleable(&[2, 2]);
        programs[0].malleable = false;
        let mut lab = lab(kind, 2, programs);
        assert_eq!(thread_limit(&lab.plan, 0), None, "{kind}");
        assert_eq!(threads(&lab)[0], 2);
        lab.wake();
        assert!(thread_limit(&lab.plan, 1).is_some(), "{kind}");
    }
}

/// Thread limits are decided again in each quantum.
#[test]
fn a_program_alone_has_all_threads_that_it_requests() {
    for kind in BOTH {
        let lab = lab(kind, 4, malleable(&[4]));
        assert_eq!(
            (thread_limit(&lab.plan, 0), lab.next_wake()),
            (Some(4), Some(QUANTUM)),
            "{kind}"
        );
        let whole = Settings { thread_limit: Some(4), ..Settings::default() };
        assert_eq!(lab.plan.directive(ProgramId::first(0)), Some(&Directive::Run(whole)));
    }
}

/// How many CPUs each program is bound to; `None`: it is not bound.
fn bound(lab: &AnyLab) -> Vec<Option<usize>> {
    lab.scene.programs.iter().map(|program| program.cpus.map(|cpus| cpus.len())).collect()
}

/// A program without a request is bound to fewer CPUs once it has run for a while.
#[test]
fn a_program_sees_all_cpus_until_its_first_request() {
    for kind in BOTH {
        let mut lab = lab(kind, 2, malleable(&[2, 2]));
        assert_eq!((threads(&lab), bound(&lab)), (vec![1, 1], vec![None, None]), "{kind}");
        let program = ProgramId::first(0);
        lab.tell(&[Cause::Requested { program, threads: 2, blocked: true }]);
        lab.wake();
        assert_eq!(bound(&lab), [Some(1), None], "{kind}");
        lab.scene.programs[1].ran = Nanos::from_secs(2);
        lab.wake();
        lab.wake();
        assert_eq!((threads(&lab), bound(&lab)), (vec![1, 1], vec![Some(1), Some(1)]), "{kind}");
    }
}

/// Programs without a request are packed as if they had one thread.
#[test]
fn programs_without_a_request_count_as_one_thread() {
    let mut lab = lab(Kind::AdaptiveGreedy, 2, malleable(&[2; 3]));
    let running = |lab: &AnyLab| threads(lab).iter().filter(|threads| **threads > 0).count();
    assert_eq!(running(&lab), 2, "two that load run together");
    lab.tell(&[request_of(0), request_of(1), request_of(2)]);
    lab.wake();
    lab.wake();
    assert_eq!(running(&lab), 1, "there is no even share for three, so they take turns");
}

/// Lets quanta pass in which programs use this many CPUs each, by slot.
fn pass_using(lab: &mut AnyLab, quanta: usize, used: [f64; 3]) {
    for _ in 0..quanta {
        let (Some(at), from) = (lab.next_wake(), lab.scene.now) else {
            panic!("nothing is to come")
        };
        lab.scene.samples.clear();
        for program in lab.scene.programs.iter_mut().filter(|p| p.state == ProgramState::Running) {
            program.ran += at - from;
            let used = used[usize::from(program.id.slot)].min(f64::from(program.allowed));
            let on_cpu = (at - from).as_secs_f64() * used;
            let on_cpu = Nanos((1e9 * on_cpu) as u64);
            let sample = Sample::empty(program.id, from, at);
            lab.scene.samples.push(Sample { on_cpu, user_time: Some(on_cpu), ..sample });
        }
        lab.wake_reading();
    }
}

/// Programs that use one CPU of two run together and unbound, until they use more.
#[test]
fn programs_that_use_half_their_cpus_run_unbound() {
    let mut lab = lab(Kind::AdaptiveGreedy, 2, malleable(&[2; 3]));
    lab.tell(&[request_of(0), request_of(1), request_of(2)]);
    let running = |lab: &AnyLab| threads(lab).iter().filter(|threads| **threads > 0).count();
    pass_using(&mut lab, 3, [2.0; 3]);
    assert_eq!(running(&lab), 1, "there is no even share for three, so they take turns");
    pass_using(&mut lab, 18, [0.9, 0.9, 1.9]);
    let seen: Vec<Vec<u16>> = (0..2)
        .map(|_| {
            pass_using(&mut lab, 1, [0.9, 0.9, 1.9]);
            threads(&lab)
        })
        .collect();
    assert!(seen.contains(&vec![2, 2, 0]) && seen.contains(&vec![0, 0, 2]), "{seen:?}");
    assert_eq!(bound(&lab)[..2], [None, None]);
    pass_using(&mut lab, 12, [1.0, 1.0, 2.0].map(|used: f64| used.max(1.5)));
    assert_eq!(running(&lab), 1);
}

/// Threads that a program no longer requests go to the others at the next decision.
#[test]
fn threads_no_longer_requested_go_to_the_others() {
    for kind in BOTH {
        let mut lab = lab(kind, 4, malleable(&[4, 4]));
        assert_eq!(threads(&lab), [2, 2], "{kind}");
        let program = ProgramId::first(0);
        lab.scene.programs[0].requested = 1;
        lab.tell(&[Cause::Requested { program, threads: 1, blocked: true }]);
        assert!(lab.plan.programs.is_empty(), "it is answered with the present limit");
        // It has also requested four in this quantum.
        lab.wake();
        lab.wake();
        assert_eq!(threads(&lab), [1, 3], "{kind}");
    }
}

#[test]
fn profiles_show_that_all_threads_in_turn_are_faster() {
    let alone = |both: u64| {
        let times = [(1, Nanos::from_millis(1000)), (2, Nanos::from_millis(both))];
        Speedup::new(&times)
    };
    for kind in BOTH {
        for (both, expected) in [(400, vec![2, 0]), (900, vec![1, 1])] {
            let mut programs = malleable(&[2, 2]);
            programs.iter_mut().for_each(|p| p.profile.speedup = alone(both));
            let mut lab = lab(kind, 2, programs);
            lab.tell(&[request_of(0), request_of(1)]);
            lab.wake();
            let mut found = threads(&lab);
            found.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(found, expected, "{kind} {both}");
        }
    }
}

/// Trials take a hundredth of the time.
#[test]
fn trials_find_that_fewer_threads_are_faster() {
    for kind in BOTH {
        let mut lab = lab(kind, 4, malleable(&[4]));
        let mut allowed = Vec::new();
        for _ in 0..1000 {
            allowed.push(threads(&lab)[0]);
            pass(&mut lab, |threads| [0.0, 1.0, 1.8, 1.6, 1.4][usize::from(threads)]);
        }
        assert!(allowed[..190].iter().all(|threads| *threads == 4), "{kind}: {allowed:?}");
        let found = allowed.iter().position(|threads| *threads == 2).unwrap();
        assert!((190..220).contains(&found), "{kind}: {found}");
        let later = &allowed[found..];
        let other = later.iter().filter(|threads| **threads != 2).count();
        assert!(other <= later.len() / 50, "{kind}: {other} of {}", later.len());
    }
}

#[test]
fn a_trial_that_shows_nothing_better_is_undone() {
    for kind in BOTH {
        let mut lab = lab(kind, 4, malleable(&[4]));
        let (mut allowed, mut reasons) = (Vec::new(), Vec::<LimitReason>::new());
        for _ in 0..1000 {
            allowed.push(threads(&lab)[0]);
            pass(&mut lab, f64::from);
            reasons.extend(
                lab.plan.reasons.iter().filter_map(|reason| reason.why.read::<LimitReason>()),
            );
        }
        let other = allowed.iter().filter(|threads| **threads != 4).count();
        assert!((1..=20).contains(&other), "{kind}: {other}");
        let tries = LimitReason::TriesThreads { threads: 2, requested: 4 };
        assert!(reasons.contains(&tries), "{reasons:?}");
        let back = LimitReason::LimitsThreads { threads: 4, requested: 4, speed: Some(1.0) };
        assert!(reasons.contains(&back), "{reasons:?}");
    }
}

/// Where nothing can be measured, nothing is tried, and soon nothing is sampled.
#[test]
fn without_measurements_nothing_is_tried() {
    for kind in BOTH {
        let mut lab = lab(kind, 4, malleable(&[4]));
        for _ in 0..500 {
            pass(&mut lab, |_| 0.0);
            assert_eq!(threads(&lab), [4]);
        }
        let wake = lab.plan.wake.first().map(|wake| wake.first);
        assert_eq!(wake, Some(AtExpiry::Nothing), "{kind}");
    }
}

#[test]
fn newcomers_share_the_cpus_from_the_next_decision_on() {
    for kind in BOTH {
        let mut lab = lab(kind, 4, malleable(&[4]));
        lab.pass(QUANTUM / 2);
        lab.arrive(Program { malleable: true, ..program(1, 4) });
        lab.wake();
        assert_eq!(threads(&lab), [2, 2], "{kind}");
        lab.exit(0);
        lab.wake();
        assert_eq!(threads(&lab), [4], "{kind}");
    }
}

proptest! {
    #![proptest_config(cases(200))]

    /// Thread limits fit the CPUs for any requests, arrivals and ends.
    #[test]
    fn thread_limits_fit_the_cpus_and_all_are_served(
        kind in prop_oneof![Just(BOTH[0]), Just(BOTH[1])],
        cpus in 1u16..9,
        threads in prop::collection::vec((1u16..12, any::<bool>()), 1..8),
        story in prop::collection::vec((0usize..5, 0usize..8, 1u16..12), 1..60),
    ) {
        let mut programs = malleable(&threads.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        for (program, (threads, malleable)) in programs.iter_mut().zip(&threads) {
            // A program that is not malleable fits the machine.
            program.malleable = *malleable;
            program.thread_count = if *malleable { *threads } else { (*threads).min(cpus) };
            program.requested = program.thread_count;
            // Before that, it is not bound.
            program.ran = params::ThreadLimitParams::DEFAULT.loaded;
        }
        let mut lab = lab(kind, cpus, programs);
        let mut served = vec![0u32; threads.len()];
        lab.running().into_iter().for_each(|slot| served[usize::from(slot)] += 1);
        for (what, which, asked) in story {
            let ids: Vec<ProgramId> = lab.scene.programs.iter().map(|p| p.id).collect();
            let Some(id) = (!ids.is_empty()).then(|| ids[which % ids.len()]) else { break };
            lab.plan.clear();
            match what {
                0 => {
                    let program = lab.scene.programs.iter_mut().find(|p| p.id == id).unwrap();
                    if program.malleable {
                        program.requested = asked;
                        lab.tell(&[Cause::Requested {
                            program: id,
                            threads: asked,
                            blocked: true,
                        }]);
                    }
                }
                1 if which % 3 == 0 => {
                    lab.scene.programs.retain(|p| p.id != id);
                    lab.tell(&[Cause::Exited(id, Exit::Code(0))]);
                }
                _ if lab.next_wake().is_some() => {
                    pass(&mut lab, |threads| f64::from(threads).sqrt());
                }
                _ => {}
            }
            let used = lab.cpus_in_use();
            prop_assert!(used.windows(2).all(|two| two[0] != two[1]), "{used:?}");
            for (id, directive) in &lab.plan.programs {
                let Directive::Run(settings) = directive else { continue };
                served[usize::from(id.slot)] += 1;
                let Some(thread_limit) = settings.thread_limit else { continue };
                prop_assert!((1..=cpus).contains(&thread_limit));
                let given = settings.cpus.unwrap_or(lab.scene.cpus).len();
                prop_assert_eq!(given, usize::from(thread_limit));
            }
            let waits = |p: &Program| !p.state.may_run();
            prop_assert!(!lab.scene.programs.iter().any(waits) || lab.next_wake().is_some());
        }
        for _ in 0..3 * threads.len() {
            if lab.next_wake().is_some() {
                pass(&mut lab, f64::from);
                served.iter_mut().enumerate().for_each(|(slot, served)| {
                    *served += u32::from(lab.running().contains(&(slot as u16)));
                });
            }
        }
        for program in &lab.scene.programs {
            prop_assert!(served[usize::from(program.id.slot)] > 0, "{} was not served", program.id);
        }
    }
}
