//! The input of the engine for a run.

use crate::cpuset::CpuSet;
use crate::program::{GroupId, Profile};
use crate::time::Nanos;
use crate::topology::Topology;

/// The machine's shape, the programs, and the limits.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which CPUs share a core, a cache, a package and a memory node.
    pub topology: Topology,
    /// The CPUs that programs may use.
    pub cpus: CpuSet,
    /// The programs; the position is the slot of their ids.
    pub programs: Vec<ProgramSetup>,
    /// The limits.
    pub limits: Limits,
}

/// One program of the workload, as far as scheduling is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSetup {
    /// When it arrives, at the earliest.
    pub arrives: Nanos,
    /// The programs that must end before it comes. No program may wait for itself, directly or by
    /// others.
    pub after: Vec<Predecessor>,
    /// How many threads it is to have on CPUs at once.
    pub thread_count: u16,
    /// Its weight relative to the others, as the user gave it.
    pub weight: f64,
    /// How often it runs.
    pub repeat: Repeat,
    /// Whether it may be frozen.
    pub freezable: bool,
    /// The longest time that it may be frozen at a stretch, where that is less than
    /// [`Limits::max_frozen`].
    pub max_frozen: Option<Nanos>,
    /// The time after which it is ended, counted from its start, as by `timeout`.
    pub time_limit: Option<Nanos>,
    /// Whether its thread count may be changed from outside.
    pub malleable: bool,
    /// Whether it runs already when it arrives (it is attached), instead of waiting for its start.
    pub runs_already: bool,
    /// The group of programs that it freezes and runs together with.
    pub group: Option<GroupId>,
    /// What is known of it from solo runs.
    pub profile: Profile,
}

impl ProgramSetup {
    /// A program of `thread_count` threads that arrives at the start and runs once.
    pub fn new(thread_count: u16) -> ProgramSetup {
        ProgramSetup {
            arrives: Nanos::ZERO,
            after: Vec::new(),
            thread_count,
            weight: 1.0,
            repeat: Repeat::Times(1),
            freezable: true,
            max_frozen: None,
            time_limit: None,
            malleable: false,
            runs_already: false,
            group: None,
            profile: Profile::default(),
        }
    }
}

/// How often a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// This often; its turnaround ends with the last run. Never zero.
    Times(u32),
    /// Again and again until every other program has ended once, so that the load stays the same;
    /// its turnaround ends with its first run.
    UntilAllFinish,
}

/// A program that must end before another one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its position.
    pub slot: u16,
    /// Whether it may end in any way; otherwise each of its runs must return 0.
    pub any_exit: bool,
}

/// What the engine guarantees whatever a policy plans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// No program is frozen longer than this at a stretch. Single programs may have less
    /// ([`ProgramSetup::max_frozen`]).
    pub max_frozen: Nanos,
    /// How long a freeze may stay unconfirmed before the program is released and runs with the
    /// others.
    pub freeze_patience: Nanos,
    /// At the end: how long programs that were requested to end may take before they are ended by
    /// force.
    pub grace: Nanos,
    /// How often an observer gets the state of the run; without a viewer, at least half as often.
    /// [`Nanos::NEVER`] for never.
    pub heartbeat: Nanos,
    /// How many decisions are kept. Half as many spans are kept, of all programs together.
    pub history: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_frozen: Nanos::from_secs(1),
            freeze_patience: Nanos::from_millis(50),
            grace: Nanos::from_secs(5),
            heartbeat: Nanos::NEVER,
            history: usize::MAX,
        }
    }
}
