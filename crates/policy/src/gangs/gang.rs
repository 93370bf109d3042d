//! `gang`: one program per quantum, in turn.
//!
//! *Problem.* The kernel treats the threads of a program as unrelated. A thread that holds a lock,
//! or that all others wait for at a barrier, loses its CPU to a thread of another program, and the
//! whole program stands still.
//!
//! *Idea.* All threads of a program run at the same time, and no other program does. No thread
//! waits for a thread that has no CPU, and no other program is in the caches or on the memory bus.
//!
//! *Algorithm.* Every unit is a gang of its own; the gangs have one quantum each, in turn
//! ([`rounds`](crate::gangs::rounds)). A program with fewer threads than there are CPUs leaves the
//! others idle. This is the price, and a round has as many quanta as there are programs.
//!
//! *Source.* Section 4.2.1, figure 4.1. Ours: programs of one group are one gang, heavier ones have
//! longer quanta ([`quantum`](crate::gangs::quantum)), and programs may arrive and end at any time.

use crate::common::reasons::SharedReason;
use crate::common::unit::Unit;
use crate::descriptor::Descriptor;
use crate::gangs::rounds::{Gang, Rounds};

/// Section 4.2.1.
pub(crate) const GANG: Descriptor = Descriptor {
    round: Some(|sizes, _| sizes.len() as f64),
    gang_count: Some(|sizes, _| sizes.len()),
    ..Descriptor::of_gangs("gang", "programs take turns, one at a time", |options| {
        Ok(Box::new(Rounds::new(options, cut, None)))
    })
};

/// One gang for every unit, in the order of the workload.
fn cut(units: &[Unit], _cpus: usize) -> Vec<Gang> {
    (0..units.len()).map(|unit| vec![(unit, SharedReason::InGang.into())]).collect()
}
