//! The reasons that several policies give.

use cosched_core::format::{
    count, misses_per_kilo_instruction, of_requested, place, planned, span,
};
use cosched_core::{Nanos, Says, Why, Wording, Words};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReasonSet {
    /// The words of a recorded reason; `None` if it is not one of these.
    pub(crate) words: fn(&Why) -> Option<Wording>,
    /// The name of the enum, and the codes of its reasons with their earlier names.
    #[cfg(test)]
    pub(crate) codes: fn() -> (&'static str, Vec<String>),
}

impl ReasonSet {
    pub(crate) const fn of<T: Words + DeserializeOwned + 'static>() -> ReasonSet {
        ReasonSet {
            words: |why| why.read::<T>().map(|own| own.words()),
            #[cfg(test)]
            codes: codes::<T>,
        }
    }
}

/// What the error for an unknown code names, each in backquotes after the code itself.
#[cfg(test)]
fn codes<T: DeserializeOwned>() -> (&'static str, Vec<String>) {
    let Err(error) = serde_json::from_str::<T>(r#"{"why":""}"#) else { panic!("a code is empty") };
    let error = error.to_string();
    let known = error.split('`').skip(1).step_by(2).skip(1);
    (std::any::type_name::<T>(), known.map(str::to_owned).collect())
}

/// A reason that several policies give.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum SharedReason {
    /// The policy leaves everything to the kernel.
    LeftToKernel,
    /// It is this program's turn: no other program runs until it ends.
    Turn,
    /// It waits for its turn behind `ahead` programs.
    Queued {
        /// How many programs come before it.
        ahead: u16,
    },
    /// A quantum begins: [`Quantum`](cosched_core::Quantum).
    Quantum {
        /// The number of the round; policies without rounds count quanta.
        round: u64,
        /// The gang of the round.
        gang: u16,
        /// How many gangs the round has.
        gangs: u16,
        /// How long it lasts.
        length: Nanos,
    },
    /// The program is in the gang that has the quantum.
    InGang,
    /// The program's gang has another quantum.
    OtherGang {
        /// The gang that has it.
        gang: u16,
    },
    /// It backfills CPUs that the quantum would leave idle.
    #[serde(alias = "fills")]
    Backfills,
    /// Programs take turns by weight, and it has no turn: it gets what the programs in turn leave.
    Filler,
    /// It may not be frozen, so it always runs.
    NeverFrozen,
    /// The quantum is shorter than requested, so that no program is frozen longer than allowed.
    QuantumShortened {
        /// The requested length.
        #[serde(alias = "asked")]
        requested: Nanos,
        /// The length in effect.
        given: Nanos,
        /// How long a program may be frozen at a stretch; older runs do not tell.
        #[serde(default)]
        max_frozen: Option<Nanos>,
    },
    /// It was started with fewer threads than it requests. By solo runs, the last program ends
    /// sooner this way.
    Molded {
        /// How many threads it has.
        threads: u16,
        /// How many threads it requests.
        #[serde(alias = "asked")]
        requested: u16,
    },
    /// Its CPUs are spread over caches from now on, because it is memory-bound.
    Spread {
        /// Its last-level cache misses per 1000 instructions.
        misses: f64,
    },
}

impl Words for SharedReason {
    fn words(&self) -> Wording {
        match *self {
            SharedReason::LeftToKernel => {
                Wording::new("the policy leaves scheduling to the kernel", "left to the kernel")
            }
            SharedReason::Turn => {
                Wording::new("it has its turn, which lasts until it ends", "its turn")
            }
            SharedReason::Queued { ahead } => Wording::new("it is queued for its turn", "queued")
                .figures(match ahead {
                    0 => "it is first in the queue".to_owned(),
                    _ => {
                        let programs = count(ahead.into(), "program", "programs");
                        format!("{programs} ahead of it in the queue")
                    }
                })
                .says(Says::Waits),
            SharedReason::Quantum { round, gang, gangs, length } => {
                Wording::new("a quantum begins", "quantum")
                    .figures(format!("{}, {}", place(round, gang, gangs), planned(length)))
                    .says(Says::Nothing)
            }
            SharedReason::InGang => Wording::new("it has its turn", "in gang"),
            SharedReason::OtherGang { gang } => {
                Wording::new("it is another program's turn", "other gang")
                    .figures(format!("it is in gang {}", u32::from(gang) + 1))
                    .says(Says::Waits)
            }
            SharedReason::Backfills => Wording::new(
                "backfill: it fits into CPUs that this quantum leaves idle",
                "backfill",
            ),
            SharedReason::Filler => Wording::new(
                "it gets the CPU time that the programs in turn leave idle",
                "fills idle CPU time",
            ),
            SharedReason::NeverFrozen => Wording::new("it must never be paused", "never paused"),
            SharedReason::QuantumShortened { requested, given, .. } => Wording::new(
                "quanta are shortened, so that no program is paused for longer than allowed",
                "quantum shortened",
            )
            .figures(format!("{} instead of {}", span(given), span(requested)))
            .says(Says::Nothing),
            SharedReason::Molded { threads, requested } => Wording::new(
                "it was started with fewer threads, because solo times show that the last program \
                 then ends sooner",
                format!(
                    "started with {threads} of {}",
                    count(requested.into(), "thread", "threads")
                ),
            )
            .figures(of_requested(threads, requested))
            .says(Says::Nothing),
            SharedReason::Spread { misses } => {
                Wording::new("memory-bound: its threads are spread over caches", "spread")
                    .figures(misses_per_kilo_instruction(misses))
                    .says(Says::Nothing)
            }
        }
    }
}
