//! The protocol of the barrier under the schedules that a model checker tries, with a model of the
//! futex.
//!
//! shuttle runs the threads of a test as coroutines. At every step of an atomic word, lock or
//! condition it chooses the next thread: at random, at random with few preemptions, and for the
//! smallest case one schedule after the other. A state that no thread can leave is found as a
//! deadlock. shuttle knows only one order of all steps; `protocol` says why that leaves out nothing
//! here.

#![allow(dead_code, clippy::unwrap_used)]

#[path = "../src/barrier/protocol.rs"]
mod protocol;
#[path = "../src/barrier/stack.rs"]
mod stack;
#[path = "../src/barrier/wait.rs"]
mod wait;
#[path = "../src/barrier/wait_mode.rs"]
mod wait_mode;

use std::cell::Cell;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use cosched_page::Passage;
use protocol::{ArrivingThread, Barrier, Passed, Waiting};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::mpsc::channel;
use shuttle::sync::{Condvar, Mutex, atomic};
use shuttle::thread::{JoinHandle, ThreadId, current, spawn, yield_now};
use shuttle::{Config, Runner};
use wait::Wait;
use wait_mode::{Laggards, WaitMode};

const WAIT_MODES: [WaitMode; 8] = [
    WaitMode::Spin,
    WaitMode::Block,
    WaitMode::SpinThenBlock,
    WaitMode::Yield,
    WaitMode::Donate,
    WaitMode::Spread,
    WaitMode::Tidon,
    WaitMode::LoadControl,
];
const LAGGARDS: [Laggards; 8] = [
    Laggards::Run,
    Laggards::Unknown,
    Laggards::WokenElsewhere,
    Laggards::QueuedElsewhere,
    Laggards::Blocked,
    Laggards::QueuedHere,
    Laggards::NextHere,
    Laggards::CanHave,
];

/// Which threads the kernel takes for arrived, as `bpf/scheduler.bpf.c` has it.
#[derive(Default)]
struct Statuses {
    round: u32,
    over: u64,
    arrived: HashMap<ThreadId, u32>,
}

impl Statuses {
    fn told(&mut self, of_all: bool, time: u64) {
        if of_all {
            (self.round, self.over) = (self.round + 1, self.over.max(time));
        } else if time >= self.over {
            self.arrived.insert(current().id(), self.round + 1);
        }
    }

    fn has_arrived(&self) -> bool {
        self.arrived.get(&current().id()) == Some(&(self.round + 1))
    }
}

/// A kernel with one word to sleep on.
struct World {
    /// Locked for steps that nothing comes between.
    statuses: std::sync::Mutex<Statuses>,
    queue: Mutex<()>,
    woken: Condvar,
    clock: AtomicUsize,
    /// How often threads have passed, by how.
    passed: [AtomicUsize; 5],
    /// How many of them had come first, so that their wait is the latency of the round.
    firsts: AtomicUsize,
    /// Whether the word of a sleeper is compared, as the kernel does.
    compares: bool,
    /// Whether the clock jumps, signals come, and what is known of threads is random.
    is_wild: bool,
}

impl World {
    fn new(compares: bool, is_wild: bool) -> Arc<World> {
        let (queue, woken, clock) = (Mutex::new(()), Condvar::new(), AtomicUsize::new(0));
        let (statuses, passed, firsts) = Default::default();
        Arc::new(World { statuses, queue, woken, clock, passed, firsts, compares, is_wild })
    }

    fn any(&self, below: usize) -> usize {
        if self.is_wild { thread_rng().gen_range(0..below) } else { 0 }
    }
}

impl Waiting for World {
    const CHECKS: u32 = 2;

    fn pause(&self) {
        yield_now();
    }

    fn yield_cpu(&self) {
        yield_now();
    }

    fn donate(&self, _: u32) {
        yield_now();
    }

    fn tell_arrival(&self, of_all: bool, time: u64) {
        yield_now();
        self.statuses.lock().unwrap().told(of_all, time);
    }

    fn sleep(&self, word: &atomic::AtomicU64, seen: u32, at_most: Option<u64>) -> bool {
        // A signal, or the end of the time.
        if self.any(8) == 1 || at_most.is_some() && self.any(2) == 1 {
            return false;
        }
        let queue = self.queue.lock().unwrap();
        if self.compares && word.load(SeqCst) as u32 != seen {
            return false;
        }
        drop(self.woken.wait(queue).unwrap());
        true
    }

    fn in_slot<T>(&self, sleep: impl FnOnce() -> T) -> Option<T> {
        (self.any(2) == 0).then(sleep)
    }

    fn wake(&self, _: &atomic::AtomicU64) {
        let _queue = self.queue.lock().unwrap();
        self.woken.notify_all();
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1 + self.any(60_000), SeqCst) as u64
    }

    fn knowledge(&self) -> impl Fn(u32) -> Laggards {
        |_| LAGGARDS[self.any(LAGGARDS.len())]
    }

    fn join(&self, _: u32) {
        yield_now();
    }

    fn spread(&self, siblings: impl Iterator<Item = u32>) -> bool {
        siblings.count() > self.any(4)
    }

    fn is_counted(&self) -> bool {
        true
    }

    fn note(&self, how: Passage, wait: Wait) {
        self.passed[how as usize].fetch_add(1, SeqCst);
        self.firsts.fetch_add(wait.is_first.into(), SeqCst);
        let most = if wait.is_first { 0 } else { self.clock.load(SeqCst) as u64 };
        assert!(wait.after_first.is_none_or(|after| after <= most), "{wait:?}");
    }
}

fn count(threads: usize) -> NonZeroU64 {
    NonZeroU64::new(threads as u64).unwrap()
}

/// A barrier with its kernel.
#[derive(Clone)]
struct Case {
    barrier: Arc<Barrier>,
    world: Arc<World>,
    wait_mode: WaitMode,
}

impl Case {
    fn new(wait_mode: WaitMode, compares: bool, is_wild: bool) -> Case {
        Case { barrier: Arc::new(Barrier::new()), world: World::new(compares, is_wild), wait_mode }
    }

    fn pass(&self, threads: usize, tid: usize, slot: &Cell<usize>) -> Passed {
        let thread = ArrivingThread { tid: tid as u32, slot };
        self.barrier.pass(count(threads), thread, self.wait_mode, &*self.world)
    }

    /// Starts as many threads, which are numbered from 1.
    fn start<T: Send + 'static>(
        &self,
        threads: usize,
        work: impl Fn(&Case, usize) -> T + Clone + Send + 'static,
    ) -> Vec<JoinHandle<T>> {
        (1..=threads)
            .map(|tid| {
                let (case, work) = (self.clone(), work.clone());
                spawn(move || work(&case, tid))
            })
            .collect()
    }
}

fn results<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// All threads wait at a barrier so many times. Each time, all have arrived, and one is the last.
fn passes(case: &Case, threads: usize, rounds: usize) {
    let counts = || case.world.passed.each_ref().map(|count| count.load(SeqCst));
    let before = counts();
    let firsts_before = case.world.firsts.load(SeqCst);
    let arrived: Arc<Vec<AtomicUsize>> = Arc::new((0..rounds).map(|_| 0.into()).collect());
    let passed = results(case.start(threads, move |case, tid| {
        let slot = Cell::new(0);
        let pass = |round: &AtomicUsize| {
            round.fetch_add(1, SeqCst);
            let passed = case.pass(threads, tid, &slot);
            assert_eq!(round.load(SeqCst), threads);
            passed
        };
        arrived.iter().map(pass).collect::<Vec<_>>()
    }));
    for round in 0..rounds {
        let lasts = passed.iter().filter(|passed| passed[round] == Passed::Last).count();
        assert_eq!(lasts, 1);
        assert!(passed.iter().all(|passed| passed[round] != Passed::Shut));
    }
    let last = Passage::Last as usize;
    assert_eq!(counts()[last] - before[last], rounds, "each round is counted once");
    let all = counts().iter().sum::<usize>() - before.iter().sum::<usize>();
    assert_eq!(all, threads * rounds, "and each thread in it");
    let firsts = case.world.firsts.load(SeqCst) - firsts_before;
    assert_eq!(firsts, rounds, "each round has one latency");
}

/// Runs a test in the schedules that a scheduler chooses.
fn run(orders: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    // A barrier is large, and larger in the checker.
    config.stack_size = 1 << 18;
    Runner::new(orders, config).run(test);
}

/// Tries schedules for every wait mode.
fn check(test: impl Fn(WaitMode) + Clone + Send + Sync + 'static) {
    for wait_mode in WAIT_MODES {
        let (at_random, with_few) = (test.clone(), test.clone());
        run(RandomScheduler::new(400), move || at_random(wait_mode));
        run(PctScheduler::new(3, 400), move || with_few(wait_mode));
    }
}

#[test]
fn threads_pass_after_all_have_arrived_and_none_sleeps_for_ever() {
    check(|wait_mode| passes(&Case::new(wait_mode, true, true), 3, 3));
}

#[test]
fn two_sleeping_threads_pass_in_the_first_20000_schedules() {
    let orders = DfsScheduler::new(Some(20_000), false);
    run(orders, || passes(&Case::new(WaitMode::Block, true, false), 2, 1));
}

/// The checker finds the error that it exists for.
#[test]
#[should_panic(expected = "deadlock")]
fn a_futex_without_its_check_loses_a_wake_up() {
    run(RandomScheduler::new(10_000), || passes(&Case::new(WaitMode::Block, false, true), 2, 2));
}

/// BAPS of the paper on Tidon, section 4: all are laggards again when all have arrived. A thread
/// that tells the kernel of its arrival too late does not count as arrived in the next round.
#[test]
fn threads_that_have_passed_are_laggards_again() {
    let test = || {
        let case = Case::new(WaitMode::Tidon, true, true);
        results(case.start(3, |case, tid| {
            let slot = Cell::new(0);
            for _ in 0..3 {
                case.pass(3, tid, &slot);
                assert!(!case.world.statuses.lock().unwrap().has_arrived());
            }
        }));
    };
    run(RandomScheduler::new(1000), test);
    run(PctScheduler::new(3, 1000), test);
}

#[test]
fn surplus_threads_pass_in_groups_whichever_round_ends_first() {
    check(|wait_mode| {
        let case = Case::new(wait_mode, true, true);
        let passed = results(case.start(6, |case, tid| case.pass(2, tid, &Cell::new(0))));
        assert_eq!(passed.iter().filter(|passed| **passed == Passed::Last).count(), 3);
        assert!(passed.iter().all(|passed| *passed != Passed::Shut));
    });
}

#[test]
fn the_last_thread_may_reinitialise_while_others_leave() {
    check(|wait_mode| {
        let case = Case::new(wait_mode, true, true);
        let (sender, receiver) = channel();
        let first = case.start(2, move |case, tid| {
            let slot = Cell::new(0);
            let is_last = case.pass(2, tid, &slot) == Passed::Last;
            if is_last {
                case.barrier.renew();
                case.barrier.forget();
            }
            sender.send(()).unwrap();
            if is_last {
                case.pass(3, tid, &slot);
            }
        });
        // Both pass before any other thread comes to the new one.
        receiver.recv().unwrap();
        receiver.recv().unwrap();
        let second = case.start(2, |case, tid| case.pass(3, 10 + tid, &Cell::new(0)));
        results(first);
        assert!(results(second).iter().all(|passed| *passed != Passed::Shut));
    });
}

#[test]
fn all_threads_of_a_round_pass_or_none_when_it_is_closed() {
    const ROUNDS: usize = 3;
    check(|wait_mode| {
        let case = Case::new(wait_mode, true, true);
        let threads = case.start(3, |case, tid| {
            let slot = Cell::new(0);
            (0..ROUNDS).map(|_| case.pass(3, tid, &slot) == Passed::Shut).collect::<Vec<_>>()
        });
        case.barrier.close(&*case.world);
        let all = results(threads);
        for round in 0..ROUNDS {
            assert!(all.iter().all(|shut| shut[round] == all[0][round]));
        }
        assert!(all.iter().all(|shut| shut.is_sorted()), "once closed, it stays so");
        case.barrier.renew();
        passes(&case, 2, 1);
    });
}

/// A thread that makes a task shuts its round before it arrives. All threads of that round, and of
/// no other one, go on to the runtime's barrier, where all meet before the next round begins.
#[test]
fn a_task_sends_all_threads_of_its_round_to_the_runtimes_barrier() {
    const ROUNDS: usize = 4;
    const THREADS: usize = 3;
    check(|wait_mode| {
        let case = Case::new(wait_mode, true, true);
        let runtimes = Arc::new(shuttle::sync::Barrier::new(THREADS));
        let threads = case.start(THREADS, move |case, tid| {
            let slot = Cell::new(0);
            let round = |round: usize| {
                // The first thread makes a task in the second round, the others in the third.
                if (tid == 1 && round == 1) || (tid > 1 && round == 2) {
                    case.barrier.shut(&*case.world);
                }
                let is_shut = case.pass(THREADS, tid, &slot) == Passed::Shut;
                if is_shut {
                    runtimes.wait();
                }
                is_shut
            };
            (0..ROUNDS).map(round).collect::<Vec<_>>()
        });
        for shut in results(threads) {
            assert_eq!(shut, [false, true, true, false]);
        }
    });
}
