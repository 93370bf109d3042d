//! The reasons of `minwait`, and their words.

use std::borrow::Cow;

use cosched_core::format::{count, span};
use cosched_core::{Nanos, Says, Words};
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
    fn in_general(&self) -> Cow<'static, str> {
        let words = match self {
            MinwaitReason::WaitedLongest { weight: Some(_), .. } => {
                "of the programs that fit, its waiting time times its weight is largest"
            }
            MinwaitReason::WaitedLongest { .. } => {
                "of the programs that fit, it has waited longest for its turn"
            }
            MinwaitReason::SlowedMost { .. } => {
                "it has the largest slowdown of the programs that fit"
            }
            MinwaitReason::DoesNotFit { .. } => "other programs come first, and it does not fit",
            MinwaitReason::SharesBackfill { .. } => {
                "backfill: its threads share the CPUs that this quantum leaves idle, which are too \
                 few for it"
            }
        };
        words.into()
    }

    fn figures(&self) -> Option<String> {
        Some(match *self {
            MinwaitReason::WaitedLongest { waited, weight: Some(weight) } => {
                format!("{} times {weight}", span(waited))
            }
            MinwaitReason::WaitedLongest { waited, weight: None } => span(waited),
            MinwaitReason::SlowedMost { slowdown } => slowdown
                .map_or("it has done no work yet".to_owned(), |slowdown| {
                    format!("a slowdown of {slowdown:.2}")
                }),
            MinwaitReason::DoesNotFit { free } => {
                format!("{} left", count(free.into(), "CPU", "CPUs"))
            }
            MinwaitReason::SharesBackfill { cpus } => count(cpus.into(), "CPU", "CPUs"),
        })
    }

    fn brief(&self) -> Cow<'static, str> {
        let words = match self {
            MinwaitReason::WaitedLongest { .. } => "waited longest for its turn",
            MinwaitReason::SlowedMost { .. } => "slowed most",
            MinwaitReason::DoesNotFit { .. } => "does not fit",
            MinwaitReason::SharesBackfill { .. } => "shared backfill",
        };
        words.into()
    }

    fn says(&self) -> Says {
        match self {
            MinwaitReason::DoesNotFit { .. } => Says::Waits,
            _ => Says::Runs,
        }
    }
}
