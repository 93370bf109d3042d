//! The time donating barrier compared with traces by hand, and with equations 4 to 6 of its paper.
//!
//! CPUs of 1 GHz, on which switches cost nothing, with a clock that ticks at whole milliseconds.
//! Times are microseconds; v is a virtual runtime in milliseconds. A check takes 0.5 microseconds.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Happening, Nanos, Waits};
use cosched_sim::model::{AtBarrier, Op};
use cosched_sim::{Hardware, Kernel, Model, Order};
use stage::{Stage, computes, ideal, micros, program};

fn kernel(order: Order) -> Kernel {
    Kernel { order, tick: Nanos::from_millis(1), skew_tick: false, ..Kernel::EEVDF }
}

fn eevdf() -> Kernel {
    kernel(Order::Eevdf { slice: Nanos::from_millis(3) })
}

fn cfs() -> Kernel {
    kernel(Order::Cfs {
        latency: Nanos::from_millis(6),
        granularity: Nanos::from_micros(750),
        wakeup: Nanos::from_millis(1),
    })
}

fn balance() -> Kernel {
    Kernel { apart: true, ..cfs() }
}

/// Threads that wait at barriers in this mode, and spin for ever if they spin.
fn with_barrier(barrier: AtBarrier, threads: u16, script: Vec<Op>) -> Model {
    let spin = Nanos::NEVER;
    Model { barrier: Some(barrier), spin, barriers: 1, ..program(threads, script) }
}

/// Two threads that compute this long before a barrier, and as long after it.
fn pair(barrier: AtBarrier, time: u64) -> Model {
    with_barrier(barrier, 2, vec![micros(time), Op::Barrier(0), micros(time)])
}

/// A machine after everything on it has ended.
fn played(hardware: Hardware, kernel: Kernel, programs: Vec<(u64, Model)>, seed: u64) -> Stage {
    let count = programs.len();
    let programs = programs.into_iter().map(|(at, model)| (at, model, Default::default()));
    let mut stage = Stage::with(hardware, kernel, programs, seed);
    stage.until(Nanos::from_secs(2));
    assert_eq!(stage.ends().len(), count);
    stage
}

/// The trace of one CPU with programs that arrive at these times.
fn trace(kernel: Kernel, programs: Vec<(u64, Model)>) -> String {
    played(ideal("core:1"), kernel, programs, 1).table(0)
}

/// The first program's waits.
fn waits(stage: &Stage) -> Waits {
    let ended = stage.events.iter().find_map(|event| match event.what {
        Happening::Exited(id, _, usage) if id.slot == 0 => usage.waits,
        _ => None,
    });
    ended.unwrap()
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}

#[test]
fn a_waiting_thread_donates_its_turn_to_a_late_sibling() {
    //  0      A is at v 6, A1 a slice behind, at 9.
    //  1      A is at the barrier, at v 7, and checks.
    //  1.0005 They exchange: A 9, A1 7.0005. A1 runs.
    //  2.0005 A1 opens the barrier, and goes on. A waits for a CPU.
    //  3.0005 A1 ends. A finds the barrier open.
    let donating = vec![(0, pair(AtBarrier::Donate, 1000))];
    assert_eq!(trace(cfs(), donating.clone()), "A 0-1000.5, A1 1000.5-3000.5, A 3000.5-4000.5");
    // With deadlines: at 2 A1 (v 2) is past A's (1.5), and gets its own place back (v 0, deadline
    // 1.5), which comes first again.
    assert_eq!(trace(eevdf(), donating), "A 0-1000.5, A1 1000.5-3000.5, A 3000.5-4000.5");
    // A thread that spins keeps the CPU until its turn is over.
    let spinning = vec![(0, pair(AtBarrier::Spin, 1000))];
    assert_eq!(trace(cfs(), spinning), "A 0-4000, A1 4000-6000, A 6000-7000");
}

#[test]
fn donated_time_is_charged_to_the_donor() {
    let rounds = vec![micros(2000), Op::Barrier(0), Op::Repeat { from: 0, times: 2, counter: 0 }];
    let programs = vec![(0, with_barrier(AtBarrier::Donate, 2, rounds)), (1000, computes(10))];
    //  0      A is at v 6, A1 at 9.
    //  1      B comes a slice of three behind A (7): at 9.
    //  2      A is at the barrier, at v 8.
    //  2.0005 A 9, A1 8.0005. A1 runs; at 4.0005 it opens the barrier, and goes on.
    //  5      tick: A1 has had 2.9995 of 2 ms, and is at v 11. They exchange again: A 11, A1 9.
    //         B (9) came first.
    //  8      tick: B has had 3 of 2 ms, and is at v 12: A1 (9).
    //  9.0005 A1 is at the barrier, at v 10.0005. A is late.
    //  9.001  A1 11, A 10.001. A finds the first barrier open, and computes.
    // 11.001  A opens the second, and ends. A1 is charged: v 12.001. B (12) runs, for a turn of 3
    //         ms of two.
    // 15      tick: A1 runs, finds the barrier open and ends.
    assert_eq!(
        trace(cfs(), programs),
        "A 0-2000.5, A1 2000.5-5000, B 5000-8000, A1 8000-9001, A 9001-11001, B 11001-18001"
    );
}

/// The thread checks again when its turn comes.
#[test]
fn a_thread_that_can_help_no_sibling_yields() {
    let script = vec![
        Op::Only { threads: (0, 1), next: 1 },
        micros(1000),
        Op::Only { threads: (1, 2), next: 1 },
        Op::Sleep(Nanos::from_micros(5200)),
        Op::Barrier(0),
    ];
    let programs = vec![(0, with_barrier(AtBarrier::Donate, 2, script)), (500, computes(10))];
    //  0      A is at v 6, A1 at 9. 0.5: B comes at 6.5 + 2.
    //  1.0005 A has come to the barrier and gives its turn to A1, which sleeps, so A has it again:
    //         v 7.0005.
    //  1.001  No thread is late and waits for a CPU. B (8.5) is more than 1 ms ahead of A (7.001):
    //         A keeps the CPU until it is not.
    //  1.5    A is at v 7.5, and lets B run.
    //  4      tick: B is at v 11, 3.5 ahead of A, more than a turn of 3. A checks, and keeps the
    //         CPU; it would until v 10.
    //  6.2005 A1 wakes up, at v 9. A checks, and lets it run. A1 opens the barrier. Both end.
    assert_eq!(
        trace(cfs(), programs),
        "A 0-1000.5, A1 1000.5-1000.5, A 1000.5-1500, B 1500-4000, A 4000-6201, A1 6201-6201, \
         B 6201-13701"
    );
}

/// A thread that spins alone takes over when its sibling loses its CPU.
#[test]
fn a_lone_spinner_takes_over_a_preempted_sibling() {
    // A is done after 1 ms, A1 after 20. A thread that shared its CPU with B would have half of it.
    let script = vec![
        Op::Only { threads: (0, 1), next: 1 },
        micros(1000),
        Op::Only { threads: (1, 2), next: 1 },
        micros(20_000),
        Op::Barrier(0),
    ];
    for kernel in [cfs(), balance(), eevdf()] {
        let latencies = |barrier| -> Vec<f64> {
            let programs =
                vec![(0, with_barrier(barrier, 2, script.clone())), (500, computes(100))];
            let of = |seed| waits(&played(ideal("core:2"), kernel, programs.clone(), seed));
            (1..9).map(|seed| of(seed).latency_seconds).collect()
        };
        let (donating, spinning) = (latencies(AtBarrier::Donate), latencies(AtBarrier::Spin));
        assert!(
            donating.iter().all(|took| (0.018999..0.0191).contains(took)),
            "{kernel:?}: {donating:?}"
        );
        assert!(spinning.iter().any(|took| *took > 0.025), "{kernel:?}: {spinning:?}");
    }
}

/// Without virtual runtimes there is nothing to donate.
#[test]
fn without_virtual_runtimes_threads_spin() {
    let rr = kernel(Order::RoundRobin { quantum: Nanos::from_millis(3) });
    for kernel in [rr, Kernel::SOLARIS_TS, Kernel::SOLARIS_FX] {
        let of = |barrier| trace(kernel, vec![(0, pair(barrier, 1000)), (500, computes(10))]);
        assert_eq!(of(AtBarrier::Donate), of(AtBarrier::Spin), "{kernel:?}");
    }
}

#[test]
fn time_is_useful_or_spun_and_lag_is_the_missing_share() {
    let both = |barrier| played(ideal("core:1"), cfs(), vec![(0, pair(barrier, 1000))], 1);
    let (spinning, donating) = (waits(&both(AtBarrier::Spin)), waits(&both(AtBarrier::Donate)));
    for waits in [spinning, donating] {
        near(waits.useful_seconds, 0.004);
        assert_eq!(waits.barriers, 1);
    }
    // Spinning, A1 ends after 6 ms, and A after 7: half of the CPU for each until 6, all of it for
    // A then, is what they had.
    near(spinning.spun_seconds, 0.003);
    near(spinning.lag_seconds, 0.0);
    near(donating.spun_seconds, 0.5e-6);
    assert_eq!((spinning.donations, donating.donations), (0, 1));
}

/// A program's model says whether it requests its waiting times.
#[test]
fn a_program_that_does_not_ask_gets_no_waiting_times() {
    let silent = Model { barrier: None, ..pair(AtBarrier::Spin, 1000) };
    let stage = played(ideal("core:1"), cfs(), vec![(0, silent)], 1);
    let is_reported = stage
        .events
        .iter()
        .any(|event| matches!(event.what, Happening::Exited(_, _, usage) if usage.waits.is_some()));
    assert!(!is_reported);
}

/// T_cpt of a laggard, counted from the first arrival at the barrier: how long it waits to be
/// scheduled (0 where it runs), the switch, how long it computes until it arrives at the barrier,
/// and the barrier's own latency. Equations 4 and 6.
fn completion(scheduled: f64, switch: f64, reaches: f64, own: f64) -> f64 {
    scheduled + switch + reaches + own
}

/// Equations 4 to 6.
#[test]
fn a_barrier_takes_as_long_as_its_latest_thread() {
    // A arrives at the barrier after 1 ms; A1 has its millisecond of computing before it, and no
    // CPU. A switch takes 10 us.
    let hardware = || Hardware { switch_nanos: 10_000.0, ..ideal("core:1") };
    let latency = |barrier| {
        waits(&played(hardware(), cfs(), vec![(0, pair(barrier, 1000))], 1)).latency_seconds
    };
    // A's first millisecond begins after a switch, too: it arrives at 1.01, and its turn ends with
    // the tick at 4.
    let first = 1.01e-3;
    let spinning = completion(4e-3 - first, 10e-6, 1e-3, 0.0);
    near(latency(AtBarrier::Spin), spinning);
    let donating = completion(0.5e-6, 10e-6, 1e-3, 0.0);
    near(latency(AtBarrier::Donate), donating);
    assert!(donating < spinning);
    // The second of three computes after the first has donated to it, and the third after both.
    let three = Model { threads: 3, ..pair(AtBarrier::Donate, 1000) };
    let waits_of_three = waits(&played(hardware(), cfs(), vec![(0, three)], 1));
    near(waits_of_three.completion_seconds, donating + 2.0 * donating);
    near(waits_of_three.latency_seconds, 2.0 * donating);
    // Equation 4, second line: on a CPU of its own A1 is late by its longer computation, and
    // nothing is donated.
    let uneven = Model { imbalance: 0.5, ..pair(AtBarrier::Donate, 1000) };
    let alone = waits(&played(ideal("core:2"), cfs(), vec![(0, uneven)], 1));
    near(alone.latency_seconds, completion(0.0, 0.0, 1e-3, 0.0));
    assert_eq!(alone.donations, 0);
}

#[test]
fn more_waiting_threads_bring_late_ones_sooner() {
    // 2, 4 and 8 threads on four CPUs, with three that compute.
    let rounds = vec![micros(500), Op::Barrier(0), Op::Repeat { from: 0, times: 50, counter: 0 }];
    let latency = |barrier, threads| {
        let programs = vec![
            (0, with_barrier(barrier, threads, rounds.clone())),
            (0, program(3, vec![micros(200_000)])),
        ];
        let of = |seed| waits(&played(ideal("core:4"), cfs(), programs.clone(), seed));
        (1..6).map(|seed| of(seed).latency_seconds).sum::<f64>()
    };
    let shares: Vec<f64> = [2, 4, 8]
        .map(|threads| latency(AtBarrier::Donate, threads) / latency(AtBarrier::Spin, threads))
        .to_vec();
    assert!(shares.iter().all(|share| *share < 1.0), "{shares:?}");
    assert!(shares[2] < shares[0], "{shares:?}");
}
