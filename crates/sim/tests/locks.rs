//! Which thread gets a lock that is released, which one is woken, and what that costs.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Happening, Nanos};
use cosched_sim::hardware::Hardware;
use cosched_sim::model::Op;
use cosched_sim::{Kernel, Model};
use stage::{Stage, ideal, micros, program};

/// For one thread only: it arrives so much later, microseconds.
fn late(thread: u16, time: u64) -> [Op; 2] {
    [Op::Only { threads: (thread, thread + 1), next: 1 }, micros(time)]
}

/// Each thread holds the lock for 100 us, once.
fn once() -> Vec<Op> {
    vec![Op::Acquire(0), micros(100), Op::Release(0)]
}

fn spinning(threads: u16, script: Vec<Op>) -> Model {
    Model { locks: 1, spin: Nanos::NEVER, ..program(threads, script) }
}

fn run(shape: &str, signals: &str, kernel: Kernel, model: Model) -> Stage {
    let costs =
        format!("gigahertz=1 smt_share=1 switch_nanos=0 wake_nanos=0 signal_nanos={signals}");
    let hardware = Hardware::words(&format!("{shape} {costs}")).unwrap();
    let mut stage = Stage::new(hardware, kernel, vec![(0, model)]);
    stage.sim.watch(Nanos::from_secs(1));
    stage.until(Nanos::from_secs(1));
    stage
}

/// Two threads in each of two packages: the lock stays inside one until both its threads are done.
#[test]
fn a_released_lock_goes_to_the_nearest_spinning_thread() {
    let turns = 10;
    let again = Op::Repeat { from: 0, times: turns, counter: 0 };
    let model = spinning(4, once().into_iter().chain([again]).collect());
    let stage = run("package:2 core:2", "10,10,1000", Kernel::EEVDF, model);
    let tallies = stage.sim.intervals().iter().map(|row| row.tally);
    let sums = tallies.fold([0, 0], |sums, tally| {
        [sums[0] + tally.transfers_inside, sums[1] + tally.transfers_across]
    });
    assert_eq!(sums, [2 * (2 * u64::from(turns) - 1), 1]);
}

/// Half of the reads of the other spinning threads come before the next holder's.
#[test]
fn a_lock_costs_more_when_more_threads_spin_for_it() {
    let took = |threads| {
        let shape = format!("package:1 core:{threads}");
        let stage = run(&shape, "10000,10000,10000", Kernel::EEVDF, spinning(threads, once()));
        stage.ends()[0].1
    };
    // The last holder is alone, the one before waits for one other's read, and so on.
    assert_eq!(took(2), 2 * 100 + 10);
    assert_eq!(took(3), 3 * 100 + 10 + (10 + 5));
    assert_eq!(took(4), 4 * 100 + 10 + (10 + 5) + (10 + 5 + 5));
}

/// Thread 1 spins for 20 us and sleeps; thread 2 comes 10 us before the lock is released.
fn sleeper_and_spinner() -> Model {
    let script = late(2, 90).into_iter().chain(once()).collect();
    Model { locks: 1, adaptive: Some(Nanos::from_micros(20)), ..program(3, script) }
}

/// CPU time of all threads, microseconds, and how often they went to sleep.
fn used(kernel: Kernel, model: Model) -> (u64, u64) {
    used_on(ideal("core:3"), kernel, model)
}

fn used_on(hardware: Hardware, kernel: Kernel, model: Model) -> (u64, u64) {
    let mut stage = Stage::new(hardware, kernel, vec![(0, model)]);
    stage.until(Nanos::from_secs(1));
    let usage = stage.events.iter().find_map(|event| match event.what {
        Happening::Exited(_, _, usage) => Some(usage),
        _ => None,
    });
    let usage = usage.unwrap();
    let micros = 1e6 * (usage.user_seconds + usage.system_seconds);
    (micros.round() as u64, usage.voluntary_switches)
}

/// The holder 100 us, the sleeper 20 us and 100 us, the spinner 90 us, 10 us and 100 us.
#[test]
fn solaris_wakes_no_sleeper_while_a_thread_spins() {
    assert_eq!(used(Kernel::SOLARIS_FX, sleeper_and_spinner()), (420, 1));
}

/// As before, and the sleeper spins for 20 us once more, in vain.
#[test]
fn linux_wakes_a_sleeper_although_a_thread_spins() {
    assert_eq!(used(Kernel::EEVDF, sleeper_and_spinner()), (440, 2));
}

/// Thread 0 holds the lock until 100 us; threads 1 and 2 come for it in this order. Thread 1 is
/// woken, which takes 50 us; meanwhile thread 3 comes and takes the lock. Thread 1 then computes
/// for another millisecond, so that the end tells when it had the lock.
fn overtaken() -> (Hardware, Model) {
    let script = late(1, 10).into_iter().chain(late(2, 20)).chain(late(3, 120)).chain(once());
    let model = Model { locks: 1, ..program(4, script.chain(late(1, 1000)).collect()) };
    let costs = "gigahertz=1 smt_share=1 switch_nanos=0 wake_nanos=50000 signal_nanos=0,0,0";
    (Hardware::words(&format!("core:4 {costs}")).unwrap(), model)
}

#[test]
fn a_woken_thread_that_comes_too_late_is_last_in_the_queue() {
    let (hardware, model) = overtaken();
    let mut stage = Stage::new(hardware, Kernel::EEVDF, vec![(0, model)]);
    stage.until(Nanos::from_secs(1));
    // Thread 3 until 220 us, thread 2 from 270 to 370, thread 1 from 420 to 520; wake-ups vary.
    let end = stage.ends()[0].1;
    assert!((1470..=1570).contains(&end), "{end}");
}

/// Each thread spins for 30 us when it comes. Thread 1 finds the lock taken once more.
#[test]
fn a_woken_thread_that_comes_too_late_spins_again_on_linux_alone() {
    let used = |kernel| {
        let (hardware, model) = overtaken();
        let spinning = Model { adaptive: Some(Nanos::from_micros(30)), ..model };
        used_on(hardware, kernel, spinning).0
    };
    assert_eq!(used(Kernel::EEVDF) - used(Kernel::SOLARIS_FX), 30);
    assert_eq!(used(Kernel::SOLARIS_TS), used(Kernel::SOLARIS_FX));
}
