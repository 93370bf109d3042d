//! The names of programs and threads.
//!
//! A name is a slot with a generation, never a process id. A repeated program uses its slot again,
//! with the next generation, so a stale name is recognised.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names one run of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramId {
    /// Position in the workload; stays when a program is repeated.
    pub slot: u16,
    /// Counts the repetitions.
    pub generation: u32,
}

impl ProgramId {
    /// The first run of the program at a position of the workload.
    pub const fn first(slot: u16) -> ProgramId {
        ProgramId { slot, generation: 0 }
    }

    /// The run after this one.
    pub const fn next(self) -> ProgramId {
        ProgramId { slot: self.slot, generation: self.generation + 1 }
    }
}

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}.{}", self.slot, self.generation)
    }
}

/// Names one thread of one program: a slot in the machine's thread table with a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// Position in the machine's thread table.
    pub slot: u32,
    /// Counts the uses of that position.
    pub generation: u32,
}
