//! Why a policy cannot run these programs, on this machine, or with these options.

use cosched_core::Nanos;
use cosched_core::format::count;
use cosched_workload::{Place, shown};

use super::Kind;
use crate::gangs::quantum::possible;
use crate::shuffling::sockets::SocketsError;

/// Where a key stands that is not of the model.
const BESIDE_MODEL: &str = "below its line [[program]], beside `command`: policies do not read \
                            models";

/// The policies that run programs with more threads than CPUs and need nothing else, the default
/// first.
fn for_all_sizes() -> String {
    let fits = |kind: &Kind| !kind.insists_on_gangs() && kind.descriptor().needs.is_empty();
    let others = Kind::ALL.into_iter().filter(|kind| *kind != Kind::default());
    let all = std::iter::once(Kind::default()).chain(others).filter(fits);
    all.map(Kind::name).collect::<Vec<_>>().join(", ")
}

/// Why a policy cannot run, and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// A program is larger than the machine.
    #[error(
        "{place}: '{}' requests {threads} threads, but there {} to use, and policy '{policy}' runs \
         all threads of a program at once. Set `threads` of the program to at most {cpus}, or \
         choose a policy that does not: {}",
        shown(program),
        format!("{} {}", if *cpus == 1 { "is" } else { "are" }, count(*cpus, "CPU", "CPUs")),
        for_all_sizes(),
    )]
    TooManyThreads {
        /// The place of its thread count.
        place: Box<Place>,
        /// The program.
        program: String,
        /// How many threads it requests.
        threads: u16,
        /// How many CPUs there are.
        cpus: usize,
        /// The policy.
        policy: Kind,
    },
    /// The policy decides by cache misses, and a program's are not known.
    #[error(
        "{place}: policy '{policy}' needs the cache misses of '{}', which are not known. Set \
         `misses_per_kilo_instruction` of the program {}",
        shown(program),
        match is_simulated {
            true => BESIDE_MODEL,
            false => "in a jobs file, or run `cosched profile` on a machine with hardware counters \
                      (a PMU)",
        }
    )]
    MissesUnknown {
        /// The place of the program.
        place: Box<Place>,
        /// The program.
        program: String,
        /// The policy.
        policy: Kind,
        /// Whether it is simulated.
        is_simulated: bool,
    },
    /// The policy decides by memory traffic, and a program's is not known.
    #[error(
        "{place}: policy '{policy}' needs the memory traffic of '{}', which is not known. Set \
         `memory_gigabytes_per_second` of the program {}",
        shown(program),
        if *is_simulated { BESIDE_MODEL } else { "in a jobs file" }
    )]
    TrafficUnknown {
        /// The place of the program.
        place: Box<Place>,
        /// The program.
        program: String,
        /// The policy.
        policy: Kind,
        /// Whether it is simulated.
        is_simulated: bool,
    },
    /// The policy predicts from a table, and there is none.
    #[error(
        "policy '{policy}' needs a table of the slowdowns on the machine; name its file with \
         --slowdowns (`cosched calibrate slowdowns` measures one on this machine, and `cosched sim \
         slowdowns MODELS.toml --machine M` makes one for a simulated machine M)"
    )]
    NoSlowdowns {
        /// The policy.
        policy: Kind,
    },
    /// `fill` was given to a policy that cannot backfill.
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
        /// What is missing, and the remedy.
        why: SocketsError,
    },
    /// The quantum is outside of the range.
    #[error(
        "a `quantum` of {asked} is not possible; choose {} (for longer turns use the policy \
         'fcfs')",
        possible()
    )]
    Quantum {
        /// The requested quantum.
        asked: Nanos,
    },
}
