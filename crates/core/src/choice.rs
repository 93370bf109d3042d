//! What a policy that chooses by itself has chosen, and on what ground.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How programs that are there together are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// All at once, and the kernel shares the CPUs.
    SideBySide,
    /// Who comes next starts when those that run leave CPUs idle, or have ended.
    OneAfterAnother,
    /// In turns.
    InGangs,
    /// In turns where that is needed, and malleable programs have as many threads as bring most.
    FewerThreads,
}

impl Manner {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Manner::SideBySide => "side-by-side",
            Manner::OneAfterAnother => "one-after-another",
            Manner::InGangs => "in-gangs",
            Manner::FewerThreads => "fewer-threads",
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
    /// Side by side, hardly any thread waits for a CPU.
    CpusIdle,
    /// There is one program.
    Alone,
    /// At most one program wants more than a little CPU time.
    OneCompetes,
    /// No program has several threads at work, so nobody waits for a sibling without a CPU.
    NobodyWide,
    /// Of those that compete, so few may be frozen that turns would bring nothing.
    FewFreezable,
    /// The goal is throughput, and some wait for their start.
    ForThroughput,
    /// Alone, the programs leave CPUs idle, or are in the kernel much: in turns they would do less.
    GangsIdle,
    /// Alone, the programs use all CPUs: in turns nothing is lost that can be measured, and nobody waits for a sibling.
    GangsFill,
    /// In turns, threads would wait hardly less for siblings in their runtimes than side by side.
    LittleWaiting,
    /// Side by side, threads wait for siblings in their runtimes: in turns the programs do more.
    MuchWaiting,
    /// In turns, their threads were not stopped in time, so that others had begun before.
    StoppedLate,
    /// By what they tell of their progress, the programs come further side by side than in turns.
    FurtherTogether,
    /// By what they tell of their progress, they come further in turns.
    FurtherInTurns,
    /// With fewer threads, they did less than side by side with all of them.
    FewerDidLess,
    /// Runs alone with several thread counts have shown that the programs use all CPUs well.
    KnownToScale,
    /// Runs alone with several thread counts have shown that the last threads bring a program little.
    KnownToScaleBadly,
}

/// How far programs come in two ways, by what they tell: the sum over the programs of how fast each is, of its speed alone
/// (the weighted speedup). As much as is certain: what they come side by side at most, where that decided for turns, else at
/// least.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speedups {
    /// Side by side.
    pub side_by_side: f64,
    /// In turns.
    pub in_turns: f64,
}
