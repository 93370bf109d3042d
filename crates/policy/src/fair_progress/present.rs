//! The present quantum: its start and end, the programs that run, and the one that is trained.

use cosched_core::{CpuSet, Nanos, ProgramId};

/// Programs that run together, and their CPUs.
#[derive(Debug)]
pub(super) struct RunningUnit {
    pub(super) members: Vec<ProgramId>,
    pub(super) cpus: CpuSet,
    /// How many CPUs they requested.
    pub(super) requested: usize,
    /// When they got them.
    pub(super) since: Nanos,
}

#[derive(Debug)]
pub(super) struct Present {
    pub(super) began: Nanos,
    /// Never, while there is room for every program.
    pub(super) ends: Nanos,
    pub(super) trained: Option<Trained>,
    /// A program arrived or ended within it.
    pub(super) disturbed: bool,
    /// It is the pause before the first quantum: its measurements are of earlier times.
    pub(super) opens: bool,
}

#[derive(Debug)]
pub(super) struct Trained {
    pub(super) members: Vec<ProgramId>,
    /// CPUs that are left idle for it.
    pub(super) idle: usize,
}

impl Present {
    pub(super) const NONE: Present = Present {
        began: Nanos::ZERO,
        ends: Nanos::NEVER,
        trained: None,
        disturbed: false,
        opens: false,
    };
}
