//! Kernels compared with traces by hand: which thread runs when, to the microsecond.
//!
//! One CPU of 1 GHz, on which switches cost nothing, with a clock that ticks at whole milliseconds.
//! Times are microseconds; v is a virtual runtime and d a virtual deadline in milliseconds, V the
//! average of a queue.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Nanos, Settings};
use cosched_sim::model::Op;
use cosched_sim::{Kernel, Order};
use stage::{Stage, computes, ideal, micros, program};

/// A clock of 1 ms, and every slice, latency and quantum short enough to be counted by hand.
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

/// The trace of one CPU, with a program from 0 on and another from 1 ms on.
fn trace(kernel: Kernel, first: cosched_sim::Model, second: cosched_sim::Model) -> String {
    let mut stage = Stage::new(ideal("core:1"), kernel, vec![(0, first), (1000, second)]);
    stage.until(Nanos::from_millis(60));
    assert_eq!(stage.ends().len(), 2);
    stage.table(0)
}

#[test]
fn eevdf_gives_turns_of_a_slice_in_order_of_deadlines() {
    // A newcomer's first slice is half as long (PLACE_DEADLINE_INITIAL).
    //  0  A comes: v 0, d 1.5.
    //  1  B comes at V: v 1, d 2.5. A is eligible (v = V) and has begun its slice, which it ends
    //     (RUN_TO_PARITY).
    //  2  tick: A at v 2 is past d: d 5. V 1.5: A is not eligible, B is.
    //  4  tick: B at v 3 is past 2.5: d 6. V 2.5: only A (2) is eligible.
    //  7  tick: A at v 5: d 8. V 4: B (3, d 6).
    // 10  tick: B at v 6: d 9. V 5.5: A (5, d 8).
    // 13  tick: A at v 8: d 11. V 7: B (6, d 9).
    // 16  tick: B at v 9: d 12. V 8.5: A (8, d 11), which has 2 ms left and ends at 18.
    // 18  B has 2 ms left.
    assert_eq!(
        trace(eevdf(), computes(10), computes(10)),
        "A 0-2000, B 2000-4000, A 4000-7000, B 7000-10000, A 10000-13000, B 13000-16000, A \
         16000-18000, \
         B 18000-20000"
    );
}

#[test]
fn eevdf_lets_a_sleeper_with_lag_preempt() {
    let sleeper = vec![micros(500), Op::Sleep(Nanos::from_micros(1900)), micros(500)];
    //  2    A at v 2: B (v 1, d 2.5) runs, as before.
    //  2.5  B sleeps at v 1.5; V 1.75: it is owed 0.25. A (d 5) goes on.
    //  4.4  B wakes up. A is at v 3.9. With B in it, V moves by half of what B is owed, so B gets
    //       twice of it (place_entity): v 3.9 - 0.5 = 3.4, d 6.4. V 3.65: A is not eligible,
    //       nothing protects it: B runs.
    //  4.9  B ends.
    assert_eq!(
        trace(eevdf(), computes(10), program(1, sleeper)),
        "A 0-2000, B 2000-2500, A 2500-4400, B 4400-4900, A 4900-11000"
    );
}

/// A sleeper that is ahead stays in its queue until it is no longer ahead.
#[test]
fn eevdf_keeps_a_sleeper_that_is_ahead_queued() {
    let sleeper = vec![micros(1800), Op::Sleep(Nanos::from_millis(1)), micros(1800)];
    //  2    B (v 1, d 2.5) runs. 3.8  B sleeps at v 2.8; A is at 2, V 2.4: B is ahead, and stays in
    //  the queue (DELAY_DEQUEUE).
    //       A (d 5) runs.
    //  4.8  B wakes up where it is. A is at v 3, V 2.9: B has been behind, and is put at the V of
    //  the
    //       others, 3 (DELAY_ZERO), d 6. A is eligible (V 3) and in its slice: it goes on.
    //  7    tick: A at v 5.2 is past 5: d 8.2. V 4.1: B (3, d 6).
    //  8.8  B ends at v 4.8. A has had 2 + 3.2 of its 10 ms.
    assert_eq!(
        trace(eevdf(), computes(10), program(1, sleeper)),
        "A 0-2000, B 2000-3800, A 3800-7000, B 7000-8800, A 8800-13600"
    );
}

/// The next thread is the one that has run least.
#[test]
fn cfs_divides_its_latency_and_picks_the_least_run() {
    // A newcomer begins a slice behind (START_DEBIT). Two threads: a period of 6 ms, 3 ms each; the
    // tick after that ends a turn.
    //  0  A comes: v 6.
    //  1  B comes: A is at 7, B at 7 + 3 = 10.
    //  4  tick: A has had 4 > 3 ms, and is at v 10, as B is: B, which was in the queue first, runs.
    //  8  tick: B has had 4 ms, v 14: A (10) runs.
    // 12  A is at 14, as B is: B.
    // 16  B is at 18: A (14), which has 2 ms left.
    assert_eq!(
        trace(cfs(), computes(10), computes(10)),
        "A 0-4000, B 4000-8000, A 8000-12000, B 12000-16000, A 16000-18000, B 18000-20000"
    );
}

/// A sleeper preempts a thread with a lead above the wake-up granularity.
#[test]
fn cfs_lets_sleepers_preempt_threads_that_are_ahead() {
    let sleeper = vec![micros(500), Op::Sleep(Nanos::from_millis(5)), micros(500)];
    //  4    B runs from v 10 to 10.5, and sleeps. A (10) goes on.
    //  9.5  A is at v 15. B wakes up half a latency behind the least (15): at 12; its own 10.5 is
    //       less. 15 - 12 > 1: B runs.
    // 10    B ends.
    assert_eq!(
        trace(cfs(), computes(10), program(1, sleeper)),
        "A 0-4000, B 4000-4500, A 4500-9500, B 9500-10000, A 10000-11000"
    );
    let short = vec![micros(500), Op::Sleep(Nanos::from_micros(1200)), micros(500)];
    //  4.5  B sleeps at v 10.5; A goes on from 10.
    //  5.7  A is at v 11.2. B wakes up at max(10.5, 11.2 - 3) = 10.5. 11.2 - 10.5 < 1: A goes on.
    //  7    tick: A has had 2.5 ms since 4.5, of 3; it is at v 12.5, 2 ahead: it goes on.
    //  8    3.5 > 3: B runs.
    assert_eq!(
        trace(cfs(), computes(10), program(1, short)),
        "A 0-4000, B 4000-4500, A 4500-8000, B 8000-8500, A 8500-11000"
    );
}

#[test]
fn round_robin_takes_turns_without_preemption() {
    let rr = kernel(Order::RoundRobin { quantum: Nanos::from_millis(3) });
    // The first tick at or after the end of a quantum ends it: the ticks of a CPU begin when a
    // thread waits.
    assert_eq!(
        trace(rr, computes(7), computes(5)),
        "A 0-3000, B 3000-6000, A 6000-9000, B 9000-11000, A 11000-12000"
    );
    // A thread that wakes up goes to the end: B sleeps from 4 to 5, while A has the CPU from 4 on.
    let sleeper = vec![micros(1000), Op::Sleep(Nanos::from_millis(1)), micros(1000)];
    assert_eq!(
        trace(rr, computes(7), program(1, sleeper)),
        "A 0-3000, B 3000-4000, A 4000-7000, B 7000-8000, A 8000-9000"
    );
}

/// Each CPU has one thread of each program, and these take turns as under CFS.
#[test]
fn balance_scheduling_gives_each_cpu_one_thread_of_each() {
    // Two CPUs double the times of CFS (1 + log2), so half of them make the turns of the trace for
    // one CPU.
    let order = Order::Cfs {
        latency: Nanos::from_millis(3),
        granularity: Nanos::from_micros(375),
        wakeup: Nanos::from_micros(500),
    };
    let kernel = Kernel { apart: true, ..kernel(order) };
    let pair = || program(2, vec![micros(10_000)]);
    let mut stage = Stage::new(ideal("core:2"), kernel, vec![(0, pair()), (1000, pair())]);
    stage.until(Nanos::from_millis(60));
    for cpu in 0..2 {
        let table = stage.table(cpu).replace("A1", "A").replace("B1", "B");
        assert_eq!(
            table,
            "A 0-4000, B 4000-8000, A 8000-12000, B 12000-16000, A 16000-18000, B 18000-20000"
        );
    }
}

/// The smaller program may go onto loaded CPUs, as in figure 3 of the TiDon paper.
#[test]
fn balance_scheduling_may_load_the_busier_cpus() {
    // Four threads and two on four CPUs: every CPU has one of the four, so each of the two shares
    // its CPU with one of them.
    let spinning = |threads| program(threads, vec![micros(10_000_000)]);
    for seed in 1..5 {
        let programs = [(0, spinning(4)), (1000, spinning(2))];
        let programs = programs.map(|(at, model)| (at, model, Settings::default()));
        let mut stage = Stage::with(ideal("core:4"), Kernel::BALANCE, programs, seed);
        let shares = stage.shares(2, 100, 1100);
        // Half of a CPU for each of the two; two of the four have one to themselves.
        assert!((shares[1] - 1.0).abs() < 0.03, "{shares:?}");
        assert!((shares[0] - 3.0).abs() < 0.03, "{shares:?}");
        for cpu in 0..4 {
            let table = stage.table(cpu);
            let of = |name: char| {
                let mut threads: Vec<&str> = table
                    .split(", ")
                    .filter(|row| row.starts_with(name))
                    .map(|row| row.split(' ').next().unwrap())
                    .collect();
                threads.sort_unstable();
                threads.dedup();
                threads.len()
            };
            // The four threads have no other place; the two may swap places, but not go to the same
            // one.
            assert!(of('A') <= 1, "CPU {cpu}: {table}");
        }
    }
}

/// The shares of programs (the number of threads and the nice value of each) on two CPUs, after
/// load balancing.
fn settled(kernel: Kernel, programs: &[(u16, i8)], seed: u64) -> Vec<f64> {
    let starting = programs.iter().map(|(threads, nice)| {
        let nice = Some(*nice).filter(|nice| *nice != 0);
        (0, program(*threads, vec![micros(100_000_000)]), Settings { nice, ..Settings::default() })
    });
    let mut stage = Stage::with(ideal("core:2"), kernel, starting, seed);
    stage.shares(programs.len() as u16, 2_000, 4_000)
}

#[test]
fn load_is_balanced_by_weight_and_not_by_threads() {
    // Nice -5 weighs 3121, nice 0 weighs 1024. Two and two: 4145 and 2048 differ by 2097, half of
    // which is more than 1024, so one goes. One and three: 3121 and 3072 differ by less than 17 %,
    // and stay. By heads, two and two would:
    // 0.75, 0.25, 0.5, 0.5.
    for kernel in [Kernel::EEVDF, Kernel::CFS] {
        for seed in 1..9 {
            let shares = settled(kernel, &[(1, -5), (1, 0), (1, 0), (1, 0)], seed);
            let expected = [1.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0];
            let near = shares.iter().zip(expected).all(|(share, of)| (share - of).abs() < 0.01);
            assert!(near, "{kernel:?}, seed {seed}: {shares:?}");
        }
    }
}

/// Programs with a share each weigh the same, however many threads they have.
#[test]
fn programs_with_a_share_each_weigh_the_same() {
    // Four threads have a quarter of their program's weight each: with one of them on the CPU of
    // the other program, 5/4 and 3/4 differ by 1/2. Half of that is what a quarter weighs, so the
    // thread moves. By the number of threads it would stay: 0.8 and 1.2. (With three threads, turns
    // can be in step with the checks of queues, which then always find the same thread.)
    for order in [Kernel::EEVDF, Kernel::CFS] {
        let kernel = Kernel { groups: true, ..order };
        for seed in 1..9 {
            let shares = settled(kernel, &[(1, 0), (4, 0)], seed);
            assert!((shares[0] - 1.0).abs() < 0.01, "{kernel:?}, seed {seed}: {shares:?}");
            assert!((shares[1] - 1.0).abs() < 0.01, "{kernel:?}, seed {seed}: {shares:?}");
        }
    }
}
