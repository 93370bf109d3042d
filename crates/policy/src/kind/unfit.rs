//! Why a policy cannot be had for these programs, on this machine, or with these options.

use cosched_core::Nanos;
use cosched_core::workload::{Place, shown};

use super::Kind;
use crate::quantum::{LONGEST, SHORTEST};
use crate::shuffling::SocketsError;

/// Why a policy cannot do what is asked, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// A program is larger than the machine.
    #[error(
        "{place}: '{}' wants {threads} threads, and there {} to use: policy '{policy}' runs all \
         threads of a program at once. Set `threads` of the program to at most {cpus}, or choose the \
         policy 'fcfs' or 'linux'",
        shown(program),
        if *cpus == 1 { "is 1 CPU".to_owned() } else { format!("are {cpus} CPUs") },
    )]
    TooManyThreads {
        /// Where its thread count stands.
        place: Box<Place>,
        /// Which program.
        program: String,
        /// How many threads it wants.
        threads: u16,
        /// How many CPUs there are.
        cpus: usize,
        /// The policy.
        policy: Kind,
    },
    /// The policy decides by cache misses, and a program's are not known.
    #[error(
        "{place}: policy '{policy}' matches programs by their cache misses, and those of '{}' are \
         not known. Set `misses_per_kilo_instruction` of the program in a workload file, or run \
         `cosched profile` on a machine with hardware counters (a PMU)",
        shown(program)
    )]
    MissesUnknown {
        /// Where the program stands.
        place: Box<Place>,
        /// Which program.
        program: String,
        /// The policy.
        policy: Kind,
    },
    /// The policy decides by memory traffic, and a program's is not known.
    #[error(
        "{place}: policy '{policy}' predicts slowdowns from memory traffic, and that of '{}' is not known. \
         Set `memory_gigabytes_per_second` of the program in a workload file",
        shown(program)
    )]
    TrafficUnknown {
        /// Where the program stands.
        place: Box<Place>,
        /// Which program.
        program: String,
        /// The policy.
        policy: Kind,
    },
    /// The policy predicts from a table, and has none.
    #[error(
        "policy '{policy}' predicts slowdowns from a table of this machine: name its file with --slowdowns \
         (`cosched sim slowdowns` makes one for a simulated machine, docs/research/policies.md describes it)"
    )]
    NoSlowdowns {
        /// The policy.
        policy: Kind,
    },
    /// Filling is asked of a policy that has nothing to fill.
    #[error("`fill` is for the policies 'greedy' and 'cgreedy', not for '{policy}': leave it out")]
    NothingToFill {
        /// The policy.
        policy: Kind,
    },
    /// There are no sockets to shuffle between.
    #[error("policy '{policy}': {why}")]
    NoSockets {
        /// The policy.
        policy: Kind,
        /// What is missing, and what to do about it.
        why: SocketsError,
    },
    /// The quantum is outside what makes sense.
    #[error(
        "a `quantum` of {asked} is not possible: choose from {SHORTEST} to {LONGEST} (longer ones \
         are better served by the policy 'fcfs')"
    )]
    Quantum {
        /// What was asked.
        asked: Nanos,
    },
}
