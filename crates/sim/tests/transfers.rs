//! The cost of moving a lock, and the data that it guards, from one CPU to another.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Happening, Nanos};
use cosched_sim::hardware::Hardware;
use cosched_sim::model::Op;
use cosched_sim::{Kernel, Model};
use stage::{Stage, micros, program};

const TURNS: u32 = 10;

/// Two threads that alternate at a lock, which each holds for 100 us, with ten lines of data.
/// Returns when they are done (microseconds), how many lines missed the last-level cache, and how
/// often the lock was transferred inside a package and across.
fn turns(shape: &str) -> (u64, u64, [u64; 2]) {
    let plain = "gigahertz=1 smt_share=1 switch_nanos=0 wake_nanos=0 signal_nanos=0,0,1000";
    let script = vec![
        Op::Acquire(0),
        Op::Fetch { lock: 0, lines: 10 },
        micros(100),
        Op::Release(0),
        Op::Repeat { from: 0, times: TURNS, counter: 0 },
    ];
    let model = Model { locks: 1, spin: Nanos::NEVER, ..program(2, script) };
    let hardware = Hardware::words(&format!("{shape} {plain}")).unwrap();
    let mut stage = Stage::new(hardware, Kernel::EEVDF, vec![(0, model)]);
    stage.sim.watch(Nanos::from_secs(1));
    stage.until(Nanos::from_secs(1));
    let misses = stage.events.iter().find_map(|event| match event.what {
        Happening::Exited(_, _, usage) => usage.counts.llc_misses,
        _ => None,
    });
    let tallies = stage.sim.intervals().iter().map(|row| row.tally);
    let sums = tallies.fold([0, 0], |sums, tally| {
        [sums[0] + tally.transfers_inside, sums[1] + tally.transfers_across]
    });
    (stage.ends()[0].1, misses.unwrap(), sums)
}

/// A lock from another package is seen late, and its data misses the cache.
#[test]
fn a_lock_from_another_package_is_seen_late() {
    // Of twenty turns the first finds everything there; each other one waits for the lock's line,
    // and for those of its data.
    assert_eq!(turns("package:2 core:1"), (20 * 100 + 19 * (1 + 10), 190, [0, 19]));
}

/// Inside a package a lock costs the distance, and nothing misses the cache.
#[test]
fn inside_a_package_a_lock_costs_its_distance() {
    assert_eq!(turns("package:1 core:2"), (20 * 100, 0, [19, 0]));
    // Two caches of one package: as near, but a miss.
    assert_eq!(turns("package:1 l3:2 core:1"), (20 * 100, 190, [19, 0]));
}

#[test]
fn on_one_cpu_no_data_is_transferred() {
    let (_, misses, sums) = turns("package:1 core:1");
    assert_eq!((misses, sums[1]), (0, 0));
}
