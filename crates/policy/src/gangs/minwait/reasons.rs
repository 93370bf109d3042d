//! The reasons of `minwait`, and their words.

use cosched_core::format::{count, span};
use cosched_core::{Nanos, Says, Wording, Words};
use serde::{Deserialize, Serialize};

/// A reason of `minwait`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum MinwaitReason {
    /// It has waited longest of those that fit.
    WaitedLongest {
        /// Its waiting time.
        waited: Nanos,
        /// What the waiting time is multiplied by, if weights count and it is not 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<f64>,
    },
    /// It has the highest slowdown of those that fit.
    SlowedMost {
        /// Its slowdown as far as is known: time over solo time. `None`: it has not worked yet.
        slowdown: Option<f64>,
    },
    /// It does not fit together with those that have waited longer.
    DoesNotFit {
        /// CPUs still free when its turn came.
        free: u16,
    },
    /// It does not fit, and its threads share the CPUs that the quantum would leave idle.
    #[serde(alias = "lent")]
    SharesBackfill {
        /// How many CPUs.
        cpus: u16,
    },
}

impl Words for MinwaitReason {
    fn words(&self) -> Wording {
        match *self {
            MinwaitReason::WaitedLongest { waited, weight: Some(weight) } => Wording::new(
                "of the programs that fit, its waiting time times its weight is largest",
                "waited longest for its turn",
            )
            .figures(format!("{} times {weight}", span(waited))),
            MinwaitReason::WaitedLongest { waited, weight: None } => Wording::new(
                "of the programs that fit, it has waited longest for its turn",
                "waited longest for its turn",
            )
            .figures(span(waited)),
            MinwaitReason::SlowedMost { slowdown } => {
                Wording::new("it has the largest slowdown of the programs that fit", "slowed most")
                    .figures(slowdown.map_or("it has done no work yet".to_owned(), |slowdown| {
                        format!("a slowdown of {slowdown:.2}")
                    }))
            }
            MinwaitReason::DoesNotFit { free } => {
                Wording::new("other programs come first, and it does not fit", "does not fit")
                    .figures(format!("{} left", count(free.into(), "CPU", "CPUs")))
                    .says(Says::Waits)
            }
            MinwaitReason::SharesBackfill { cpus } => Wording::new(
                "backfill: its threads share the CPUs that this quantum leaves idle, which are too \
                 few for it",
                "shared backfill",
            )
            .figures(count(cpus.into(), "CPU", "CPUs")),
        }
    }
}
