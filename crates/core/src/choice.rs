//! What a policy that chooses by itself has chosen, and on what ground.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How programs that are there together are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// All at once, and the kernel shares the CPUs.
    SideBySide,
    /// In turns.
    InGangs,
}

impl Manner {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Manner::SideBySide => "side-by-side",
            Manner::InGangs => "in-gangs",
        }
    }
}

impl fmt::Display for Manner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What decided for a [`Manner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// Nothing is known yet.
    Begins,
    /// All threads that want a CPU can have one.
    EnoughCpus,
    /// Side by side, the programs leave CPUs idle.
    CpusIdle,
    /// At most one program wants more than a little CPU time.
    OneCompetes,
    /// No program has several threads at work, so nobody waits for a sibling without a CPU.
    NobodyWide,
    /// Alone, the programs leave CPUs idle, or are in the kernel much: in turns they would do less.
    GangsIdle,
    /// Alone, the programs use all CPUs: in turns nothing is lost that can be measured, and nobody waits for a sibling.
    GangsFill,
    /// Runs alone with several thread counts have shown that the programs use all CPUs well.
    KnownToScale,
}
