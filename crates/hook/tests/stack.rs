//! When a thread leaves a CPU on which it and a sibling wait behind each other, and when it comes
//! back.

#![allow(dead_code)]

#[path = "../src/barrier/stack.rs"]
mod stack;

use std::sync::atomic;

use stack::{BarrierPlacement, FEW, TRY};

/// Two threads: whether they share a CPU, the round, the time, and how often they separated and
/// came back.
struct Pair {
    stack: BarrierPlacement,
    together: bool,
    round: u64,
    now: u64,
    went: u64,
    came_back: u64,
}

impl Pair {
    fn new() -> Pair {
        Pair {
            stack: BarrierPlacement::new(),
            together: true,
            round: 0,
            now: 1,
            went: 0,
            came_back: 0,
        }
    }

    /// Passes so many rounds, with their duration where the threads share a CPU and where they are
    /// apart.
    fn pass(&mut self, rounds: u64, behind: u64, apart: u64) {
        for _ in 0..rounds {
            self.round += 1;
            self.now += if self.together { behind } else { apart };
            if self.together && self.stack.behind(self.round, self.now, || true) {
                (self.together, self.went) = (false, self.went + 1);
            } else if !self.together && self.stack.is_worse(self.round, self.now) {
                (self.together, self.came_back) = (true, self.came_back + 1);
            }
        }
    }
}

/// After the kernel has put them on one CPU, they soon move apart again.
#[test]
fn threads_stay_apart_where_that_is_faster() {
    let mut pair = Pair::new();
    for times in 1..10 {
        pair.pass(100_000, 40_000, 30_000);
        assert_eq!((pair.went, pair.came_back, pair.together), (times, 0, false));
        // The kernel puts them on one CPU.
        pair.together = true;
        let before = pair.round;
        while pair.together {
            pair.pass(1, 40_000, 30_000);
        }
        assert_eq!(pair.round - before, FEW);
        pair.together = true;
        pair.went -= 1;
    }
}

/// Trying costs less than 2% of the time.
#[test]
fn threads_come_back_where_being_apart_is_slower() {
    for apart in [45_000, 100_000, 4_000_000] {
        let mut pair = Pair::new();
        pair.pass(2_000_000, 40_000, apart);
        assert!(pair.went >= 10 && pair.went <= 30, "{apart}: {}", pair.went);
        assert!(pair.went - pair.came_back <= 1);
        let lost = pair.now as f64 / (2_000_000.0 * 40_000.0) - 1.0;
        assert!(lost < 0.02, "{apart}: {lost}");
    }
}

#[test]
fn no_thread_comes_back_before_a_try_is_over() {
    let mut pair = Pair::new();
    pair.pass(FEW, 40_000, 0);
    let began = pair.now;
    while !pair.together {
        pair.pass(1, 40_000, 50_000);
    }
    assert!(pair.now - began >= TRY * 40_000);
}

#[test]
fn requests_get_rarer_where_there_is_no_other_cpu() {
    let stack = BarrierPlacement::new();
    let mut asked = 0;
    for round in 0..100_000 {
        let gone = stack.behind(round, 40_000 * round, || {
            asked += 1;
            false
        });
        assert!(!gone);
    }
    assert!((8..20).contains(&asked), "{asked}");
}
