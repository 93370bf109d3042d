//! A program's part in taking turns by weight.
//!
//! The weight is that of the program's CPU group, and cosched sets it. It is not
//! [`Program::weight`](crate::Program::weight), which the user gives.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;

/// A program's part in taking turns by weight, where every program runs and the weights of CPU
/// groups decide which programs get the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// Its turn: its CPU group has a very large weight.
    InTurn,
    /// It gets what the programs in turn leave. Its CPU group is idle, and is preempted as soon as
    /// a thread in turn wakes.
    Filler,
}

impl Turn {
    /// How often the threads of programs in turn are moved apart while others fill, on a machine
    /// with this many CPUs; `None`: only when a turn begins. *Nested*: all this is part of a
    /// program of another cosched, which moves no threads in it.
    ///
    /// Two threads in turn may come to share a CPU while another CPU has only fillers, since to the
    /// kernel all CPUs look busy. The more threads a barrier has, the more often it waits for such
    /// a pair: on 16 CPUs fine barriers take half the time with it, on two it gains nothing unless
    /// it is nested (`docs/research/turns.md`).
    pub fn moved_apart_every(cpus: usize, is_nested: bool) -> Option<Nanos> {
        (cpus > 2 || cpus == 2 && is_nested).then_some(Nanos::from_millis(20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_moved_during_turns_where_that_helps() {
        let cpus = [1, 2, 3];
        let moved = |nested| cpus.map(|cpus| Turn::moved_apart_every(cpus, nested).is_some());
        assert_eq!(moved(false), [false, false, true]);
        assert_eq!(moved(true), [false, true, true]);
    }
}
