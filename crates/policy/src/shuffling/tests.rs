use cosched_core::{LockShare, MaskOwner, Measure, Quality, Sample, Thread};
use proptest::prelude::*;

use super::*;
use crate::common::testkit::{Lab, cases, program};

pub(super) const A: ProgramId = ProgramId::first(0);
pub(super) const INTERVAL: Nanos = Nanos::from_millis(500);

fn id(slot: u32) -> ThreadId {
    ThreadId { slot, generation: 0 }
}

pub(super) fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// A sample in which a thread waited for this share of the time.
pub(super) fn sample(slot: u32, wait: f64, from: Nanos, to: Nanos) -> Sample {
    let length = (to - from).0 as f64;
    Sample {
        thread: Some(id(slot)),
        on_cpu: Nanos((length * (1.0 - wait)) as u64),
        lock_wait: Some(Nanos((length * wait) as u64)),
        llc_misses: counted(slot),
        quality: Quality::Exact,
        ..Sample::empty(A, from, to)
    }
}

/// Thousands of misses, by the number of the thread.
fn counted(slot: u32) -> Option<u64> {
    Some(u64::from(slot) * 1000)
}

/// As in the slides: without the guard.
fn pure() -> ShufflingOptions {
    ShufflingOptions { guard: false, ..ShufflingOptions::default() }
}

/// Two sockets of two CPUs, and a program of four threads, one on each CPU.
pub(super) struct Stage {
    pub(super) lab: Lab<Shuffling>,
    threads: u32,
    /// The counted misses of each thread.
    misses: fn(u32) -> Option<u64>,
}

impl Stage {
    fn new(threads: u32) -> Stage {
        Stage::with(threads, pure())
    }

    pub(super) fn with(threads: u32, options: ShufflingOptions) -> Stage {
        let sockets = match options.sockets {
            Sockets::Widest => Sockets::named("0-1,2-3").unwrap(),
            named => named,
        };
        let policy = Shuffling::new(ShufflingOptions { sockets, ..options }, &AllParams::default());
        let (lab, misses) = (Lab::new(policy, 4, vec![program(0, 4)]), counted as _);
        let mut stage = Stage { lab, threads: 0, misses };
        stage.born(threads);
        stage
    }

    /// Adds threads up to this number.
    fn born(&mut self, threads: u32) {
        let thread = |slot: u32| Thread {
            id: id(slot),
            program: A,
            process: 0,
            cpu: (slot % 4) as u16,
            on_cpu: Nanos::ZERO,
            mask_owner: MaskOwner::Cosched,
        };
        self.threads = threads;
        self.lab.scene.threads = (0..threads).map(thread).collect();
        self.lab.scene.programs[0].threads = 0..threads;
    }

    /// The program has ended, and runs once more with equally many threads.
    pub(super) fn begins_again(&mut self) {
        self.lab.exit(0);
        self.lab.arrive(program(0, 4));
        self.born(self.threads);
    }

    /// An interval in which each thread, by its number, waited for this share of it.
    fn interval(&mut self, waits: &[f64]) {
        let samples = waits.iter().enumerate().map(|(slot, wait)| (slot as u32, *wait));
        self.interval_of(&samples.collect::<Vec<_>>(), INTERVAL);
    }

    fn interval_of(&mut self, waits: &[(u32, f64)], length: Nanos) {
        let from = self.lab.scene.now;
        self.lab.pass(length);
        let sample = |(slot, wait): &(u32, f64)| Sample {
            llc_misses: (self.misses)(*slot),
            ..sample(*slot, *wait, from, from + length)
        };
        let whole = Sample { llc_misses: Some(1 << 20), ..Sample::empty(A, from, from + length) };
        self.lab.scene.samples = [whole].into_iter().chain(waits.iter().map(sample)).collect();
        self.lab.tell(&[Cause::Sampled(A)]);
    }

    /// The CPUs of threads in the latest plan, by their numbers; an empty text: those of their
    /// program.
    pub(super) fn moves(&self) -> Vec<(u32, String)> {
        let mut moves: Vec<(u32, String)> = self
            .lab
            .plan
            .threads
            .iter()
            .map(|(id, rule)| (id.slot, rule.cpus.map_or(String::new(), |cpus| cpus.to_string())))
            .collect();
        moves.sort();
        moves
    }

    fn why(&self) -> Option<ShufflingReason> {
        self.lab.plan.reasons.last()?.why.read()
    }
}

fn expected(moves: &[(u32, &str)]) -> Vec<(u32, String)> {
    moves.iter().map(|(slot, cpus)| (*slot, (*cpus).to_owned())).collect()
}

/// A program starts unchanged, and its threads are sampled each half second.
#[test]
fn a_program_starts_unchanged_and_is_sampled() {
    let stage = Stage::new(0);
    assert_eq!(
        stage.lab.plan.directive(A),
        Some(&cosched_core::Directive::Run(Settings::default()))
    );
    let observed = &stage.lab.plan.observe;
    assert!(observed.iter().all(|observe| observe.period == INTERVAL));
    assert!(observed.iter().any(|observe| observe.measure == Measure::LockWait));
}

/// Threads that wait alike are bound to one socket, and the fewest threads move.
#[test]
fn threads_that_wait_alike_are_bound_to_one_socket() {
    let mut stage = Stage::new(4);
    // On CPUs 0 to 3; 0 and 3 wait long.
    stage.interval(&[0.80, 0.05, 0.10, 0.75]);
    assert_eq!(stage.moves(), expected(&[(0, "0-1"), (1, "2-3"), (2, "2-3"), (3, "0-1")]));
    let Some(ShufflingReason::Shuffled {
        threads: 4,
        moved: 2,
        groups: 2,
        lock_time,
        before,
        after,
    }) = stage.why()
    else {
        panic!("{:?}", stage.why())
    };
    assert!((lock_time - 0.425).abs() < 1e-6);
    assert!(before > 0.3 && after < 0.03, "{before} {after}");
    assert!(stage.lab.plan.programs.is_empty(), "the program as a whole stays as it is");
}

/// No thread moves while the groups are good enough.
#[test]
fn only_threads_that_move_are_set() {
    let mut stage = Stage::new(4);
    stage.interval(&[0.80, 0.70, 0.10, 0.05]);
    assert_eq!(stage.moves().len(), 4, "at first every thread is bound");
    stage.interval(&[0.80, 0.70, 0.05, 0.10]);
    assert_eq!(stage.moves(), []);
    stage.interval(&[0.80, 0.52, 0.50, 0.30]);
    assert_eq!((stage.moves(), stage.why()), (vec![], None));
    stage.interval(&[0.80, 0.10, 0.75, 0.05]);
    assert_eq!(stage.moves(), expected(&[(1, "2-3"), (2, "0-1")]));
}

/// The slides' loop: "sort threads according to lock times and divide them into S groups" at each
/// interval. Here the threads of a socket come nearer by 0.01 of their time: from 0.02 around the
/// mean of their socket to 0.01.
#[test]
fn without_the_guard_each_interval_makes_new_groups() {
    let waits = [[0.50, 0.48, 0.46, 0.44], [0.50, 0.46, 0.48, 0.44]];
    let swapped = [expected(&[(1, "0-1"), (2, "2-3")]), expected(&[(1, "2-3"), (2, "0-1")])];
    let mut stage = Stage::new(4);
    stage.interval(&waits[0]);
    assert_eq!(stage.moves().len(), 4, "at first every thread is bound");
    for interval in 1..5 {
        stage.interval(&waits[interval % 2]);
        assert_eq!(stage.moves(), swapped[interval % 2], "interval {interval}");
        assert!(matches!(stage.why(), Some(ShufflingReason::Shuffled { moved: 2, .. })));
    }
    stage.interval(&waits[0]);
    assert_eq!((stage.moves(), stage.why()), (vec![], None), "these are the present groups");
    let hysteresis = Some(params::HYSTERESIS);
    let mut stage = Stage::with(4, ShufflingOptions { hysteresis, ..pure() });
    waits.iter().for_each(|waits| stage.interval(waits));
    assert_eq!(stage.moves(), [], "a hysteresis that the user sets holds");
    assert_eq!(ShufflingOptions::default().hysteresis(), hysteresis, "the guard has it");
}

/// Without contention no thread moves, and after a while, no thread stays bound.
#[test]
fn without_contention_no_thread_moves() {
    let mut stage = Stage::new(4);
    stage.interval(&[0.10, 0.05, 0.05, 0.10]);
    assert_eq!(stage.moves(), [], "below the threshold");
    stage.interval(&[0.80, 0.05, 0.10, 0.75]);
    stage.interval(&[0.08, 0.08, 0.08, 0.08]);
    for _ in 1..Params::DEFAULT.patience {
        stage.interval(&[0.01, 0.0, 0.0, 0.0]);
        assert_eq!(stage.moves(), []);
    }
    stage.interval(&[0.01, 0.0, 0.0, 0.0]);
    assert_eq!(stage.moves(), expected(&[(0, ""), (1, ""), (2, ""), (3, "")]));
    assert!(matches!(stage.why(), Some(ShufflingReason::Unbound { .. })));
    stage.interval(&[0.01, 0.0, 0.0, 0.0]);
    assert_eq!(stage.moves(), []);
}

/// Threads that another process has bound count where they are.
#[test]
fn threads_bound_from_outside_are_left_alone() {
    let mut stage = Stage::new(5);
    // Two threads on the first socket, on CPUs 0 and 1.
    stage.lab.scene.threads[0].mask_owner = MaskOwner::User;
    stage.lab.scene.threads[1].mask_owner = MaskOwner::Hook;
    stage.interval(&[0.9, 0.9, 0.8, 0.2, 0.1]);
    assert_eq!(stage.moves(), expected(&[(2, "0-1"), (3, "2-3"), (4, "2-3")]));
}

#[test]
fn threads_that_did_not_run_or_came_late_are_not_sampled() {
    let mut stage = Stage::new(5);
    stage.interval_of(&[(0, 0.8), (1, 0.1), (2, 0.8), (3, 0.1), (4, 1.0)], INTERVAL);
    assert_eq!(stage.moves().len(), 4, "the last one slept all the time");
    let mut stage = Stage::new(4);
    stage.interval_of(&[(0, 0.8), (1, 0.1)], Nanos::from_millis(200));
    assert_eq!(stage.moves(), [], "a part of an interval");
    stage.interval_of(&[(0, 0.8), (1, 0.1), (2, 0.5)], Nanos::from_millis(300));
    assert_eq!(stage.moves().len(), 3);
    assert!(matches!(stage.why(), Some(ShufflingReason::Shuffled { threads: 3, .. })));
}

/// A thread that comes later goes where there is room, and a thread that ends is forgotten.
#[test]
fn a_later_thread_goes_where_there_is_room() {
    let hysteresis = Some(params::HYSTERESIS);
    let mut stage = Stage::with(4, ShufflingOptions { hysteresis, ..pure() });
    stage.interval(&[0.8, 0.7, 0.1, 0.1]);
    stage.born(5);
    stage.interval(&[0.8, 0.7, 0.1, 0.1, 0.4]);
    assert_eq!(stage.moves(), expected(&[(4, "0-1")]));
    stage.born(3);
    stage.interval(&[0.8, 0.7, 0.1]);
    assert_eq!(stage.moves(), []);
    stage.born(4);
    stage.interval(&[0.8, 0.7, 0.1, 0.1]);
    assert_eq!(stage.moves(), expected(&[(3, "2-3")]), "it is another one");
}

#[test]
fn one_thread_or_one_socket_needs_no_decision() {
    let mut stage = Stage::new(1);
    stage.interval(&[0.9]);
    assert_eq!(stage.moves(), []);
    let sockets = Sockets::By(GroupBy::Package);
    let mut stage = Stage::with(4, ShufflingOptions { sockets, ..pure() });
    stage.interval(&[0.8, 0.1, 0.8, 0.1]);
    assert_eq!(stage.moves(), []);
}

/// Threads are shared out evenly, also if there are more of them than CPUs, or fewer than sockets.
#[test]
fn any_number_of_threads_is_shared_out_evenly() {
    let mut stage = Stage::new(9);
    stage.interval(&[0.9, 0.9, 0.9, 0.9, 0.5, 0.1, 0.1, 0.1, 0.1]);
    let on = |cpus: &str| stage.moves().iter().filter(|(_, on)| on == cpus).count();
    assert_eq!([on("0-1"), on("2-3")], [5, 4]);
    let sockets = Sockets::named("0,1,2,3").unwrap();
    let mut stage = Stage::with(2, ShufflingOptions { sockets, ..pure() });
    stage.interval(&[0.9, 0.1]);
    assert_eq!(stage.moves(), expected(&[(0, "0"), (1, "1")]));
}

#[test]
fn programs_are_shuffled_separately() {
    let mut stage = Stage::new(4);
    stage.lab.arrive(program(1, 2));
    stage.interval(&[0.8, 0.1, 0.8, 0.1]);
    assert!(stage.moves().iter().all(|(slot, _)| *slot < 4));
    stage.lab.exit(1);
    stage.lab.tell(&[Cause::Commanded(UserCommand::Detach(A))]);
    stage.interval(&[0.1, 0.8, 0.1, 0.8]);
    assert_eq!(stage.moves(), []);
}

/// Sockets that keep their CPUs keep their threads.
#[test]
fn cpus_that_go_offline_take_their_socket_along() {
    let mut stage = Stage::new(4);
    stage.interval(&[0.8, 0.8, 0.1, 0.1]);
    stage.lab.scene.cpus = cpus("0,2-3");
    stage.lab.tell(&[Cause::MachineChanged]);
    assert_eq!(stage.moves(), expected(&[(0, "0"), (1, "0")]));
    stage.lab.scene.cpus = cpus("2-3");
    stage.lab.tell(&[Cause::MachineChanged]);
    assert_eq!(stage.moves(), expected(&[(0, ""), (1, "")]));
    stage.lab.scene.cpus = cpus("0-3");
    stage.lab.tell(&[Cause::MachineChanged]);
    assert_eq!(stage.moves(), expected(&[(2, ""), (3, "")]), "no socket stays empty");
    stage.interval(&[0.8, 0.8, 0.1, 0.1]);
    assert_eq!(stage.moves(), expected(&[(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")]));
}

/// Threads of different locks are not mixed, even where they wait equally long.
#[test]
fn threads_of_different_locks_are_not_mixed() {
    let waits = [0.8, 0.7, 0.8, 0.7];
    let locks = |stage: &mut Stage| {
        let share =
            |slot: u32| LockShare { thread: id(slot), lock: u64::from(slot / 2), wait: INTERVAL };
        stage.lab.scene.locks = (0..4).map(share).collect();
    };
    let mut stage = Stage::new(4);
    locks(&mut stage);
    stage.interval(&waits);
    assert_eq!(stage.moves(), expected(&[(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")]));
    let sort = SortBy::LockTime;
    let mut stage = Stage::with(4, ShufflingOptions { sort, ..pure() });
    locks(&mut stage);
    stage.interval(&waits);
    assert_eq!(stage.moves(), expected(&[(0, "0-1"), (1, "2-3"), (2, "0-1"), (3, "2-3")]));
}

#[test]
fn rivals_of_the_slides_need_no_locks() {
    let with = |sort| Stage::with(4, ShufflingOptions { sort, ..pure() });
    let mut pools = with(SortBy::Birth);
    pools.interval(&[0.0; 4]);
    assert_eq!(pools.moves(), expected(&[(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")]));
    pools.interval(&[0.9, 0.0, 0.9, 0.0]);
    assert_eq!(pools.moves(), [], "once and for all");
    let mut misses = with(SortBy::Misses);
    misses.interval(&[0.0; 4]);
    // Of 0 to 3 thousand misses, most and least share a socket.
    let together = |a: usize, b: usize| misses.moves()[a].1 == misses.moves()[b].1;
    assert!(together(0, 3) && together(1, 2) && !together(0, 1), "{:?}", misses.moves());
}

/// A program of which only the sum is known is not shuffled by it, however its threads share CPUs.
#[test]
fn threads_without_misses_of_their_own_stay_where_they_are() {
    let options = ShufflingOptions { sort: SortBy::Misses, ..pure() };
    assert!(options.measures().contains(&Measure::ThreadMisses));
    assert!(!options.measures().contains(&Measure::Counters));
    let mut stage = Stage::with(4, options);
    stage.misses = |_| None;
    stage.interval(&[0.0; 4]);
    assert_eq!(stage.moves(), []);
    // The counter of the last thread has just been opened: three are sorted.
    stage.misses = |slot| (slot < 3).then(|| u64::from(slot) * 1000);
    stage.interval(&[0.0; 4]);
    let moved: Vec<u32> = stage.moves().iter().map(|(slot, _)| *slot).collect();
    assert_eq!(moved, [0, 1, 2]);
}

proptest! {
    #![proptest_config(cases(300))]

    /// The lab checks the rules that hold for every plan.
    #[test]
    fn plans_make_sense_for_any_arrivals_and_ends(
        story in prop::collection::vec(
            (
                prop::collection::vec((0.0..1.0f64, prop::bool::weighted(0.1), 0u16..4), 0..12),
                1u8..16,
            ),
            1..20,
        ),
    ) {
        let mut stage = Stage::new(0);
        for (threads, usable) in story {
            let usable: CpuSet = (0..4).filter(|cpu| (usable >> cpu) & 1 == 1).collect();
            if usable != stage.lab.scene.cpus {
                stage.lab.scene.cpus = usable;
                stage.lab.tell(&[Cause::MachineChanged]);
            }
            stage.born(threads.len() as u32);
            for (thread, (_, bound, cpu)) in stage.lab.scene.threads.iter_mut().zip(&threads) {
                thread.cpu = *cpu;
                thread.mask_owner = if *bound { MaskOwner::User } else { MaskOwner::Cosched };
            }
            let waits: Vec<f64> = threads.iter().map(|(wait, ..)| *wait).collect();
            stage.interval(&waits);
            let why = stage.why();
            let Some(ShufflingReason::Shuffled { threads: shared, groups, moved, .. }) = why else {
                continue;
            };
            let bound = threads.iter().filter(|(_, bound, _)| *bound).count();
            prop_assert_eq!((usize::from(shared), groups), (threads.len() - bound, 2));
            prop_assert!(moved <= shared);
        }
    }
}
