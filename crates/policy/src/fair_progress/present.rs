//! The present quantum: since when, until when, who runs, and who is trained.

use cosched_core::{CpuSet, Nanos, ProgramId};

/// Programs that run together, and where.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) members: Vec<ProgramId>,
    pub(super) cpus: CpuSet,
    /// How many CPUs they wanted.
    pub(super) wanted: usize,
    /// When they got it.
    pub(super) since: Nanos,
}

/// The present quantum.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) began: Nanos,
    /// Never, while there is room for everybody.
    pub(super) ends: Nanos,
    pub(super) trained: Option<Trained>,
    /// A program came or went within it.
    pub(super) disturbed: bool,
    /// It is no quantum, but the pause before the first: what is measured is of other times.
    pub(super) opens: bool,
}

/// Who is trained.
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
