//! What a policy has done, as data for the other parts of cosched: the *outputs* of a plan.
//!
//! Reasons are for people: they are recorded, and put into words. No part of cosched decides by
//! them. What a wrapper of the policy, the engine or a live snapshot has to know is an output. The
//! policy gives it beside its reason.

use serde::{Deserialize, Serialize};

use crate::estimates::Estimates;
use crate::learned::TrialResult;
use crate::reason::Why;
use crate::time::Nanos;
use crate::treatment::SchedulingChange;

/// What a policy has done with one program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// Its threads share the CPUs that the quantum would leave idle.
    Backfilled,
    /// How its threads are scheduled, or what is tried for that, has changed.
    Scheduled(SchedulingChange),
    /// What earlier runs of the program have shown is in use, and is not tried again for now.
    Recalled,
    /// A trial has ended.
    TrialEnded(TrialResult),
    /// How its threads are divided into groups has changed.
    Grouped(Grouping),
    /// How far it has come.
    Advanced(Advance),
    /// What is estimated of its speed alone, over all its quanta so far.
    Estimated(Estimates),
    /// It runs with little interference in this quantum, so that its solo speed can be measured.
    Trained {
        /// How many CPUs are left idle for it.
        idle: u16,
    },
}

/// A change of the groups of a program's threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grouping {
    /// Threads were sorted into groups.
    Sorted {
        /// How many threads were sorted.
        threads: u16,
        /// How many of these threads change their group.
        moved: u16,
        /// The number of groups.
        groups: u16,
        /// The mean share of their time at locks, 0 to 1.
        lock_time: f64,
    },
    /// Threads are not bound any more.
    Unbound {
        /// The mean share of their time at locks, 0 to 1, if that is why.
        lock_time: Option<f64>,
    },
}

/// How far a program has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advance {
    /// Its progress in solo time, by its weight, since the set of programs last changed.
    pub progress: Nanos,
    /// The share of its quanta, 0 to 1, for which its solo speed is known; `None`: as before.
    pub coverage: Option<f64>,
    /// Its slowdown since it arrived: time over solo time, as far as that is known.
    pub slowdown: Option<f64>,
}

/// A quantum that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantum {
    /// The number of the round; policies without rounds count quanta.
    pub round: u64,
    /// The gang of the round, from 0.
    pub gang: u16,
    /// How many gangs the round has.
    pub gangs: u16,
    /// How long it lasts; [`Nanos::NEVER`]: without a planned end.
    pub length: Nanos,
}

impl Quantum {
    const CODE: &'static str = "quantum";
    /// A quantum that has lasted for this many times its length, and in which no program waits any
    /// more, is over: policies report no quantum when all programs fit at once.
    pub const OVER_AFTER: u64 = 2;

    /// The quantum that a recorded reason tells of.
    pub fn of(why: &Why) -> Option<Quantum> {
        (why.code() == Quantum::CODE).then(|| why.read()).flatten()
    }
}

/// The reason that is recorded.
impl From<Quantum> for Why {
    fn from(quantum: Quantum) -> Why {
        let Quantum { round, gang, gangs, length } = quantum;
        let why = Why::new(Quantum::CODE).with("round", round).with("gang", gang);
        why.with("gangs", gangs).with("length", length.0)
    }
}
