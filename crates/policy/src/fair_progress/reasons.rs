//! The reasons of `fair-progress`, and their words.

use cosched_core::format::{count, percent, span};
use cosched_core::{Advance, Nanos, Output, Says, Wording, Words};
use serde::{Deserialize, Serialize};

/// A reason of `fair-progress`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum FairReason {
    /// It has the least progress, in solo time, of those that fit.
    LeastProgress {
        /// Its progress in solo time, by its weight, since the set of programs last changed.
        progress: Nanos,
        /// The share of its quanta for which its solo speed is known from a quantum with little
        /// interference.
        coverage: f64,
        /// Its slowdown since it arrived: time over solo time, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slowdown: Option<f64>,
    },
    /// It has more progress than the programs that run.
    MoreProgress {
        /// Its progress in solo time, by its weight, since the set of programs last changed.
        progress: Nanos,
        /// Its slowdown since it arrived: time over solo time, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slowdown: Option<f64>,
    },
    /// It runs with little interference for a short time, so that its solo speed can be measured.
    Trained {
        /// Whether this lasts for several quanta, because its phases cannot be predicted.
        sequential: bool,
        /// How many CPUs are left idle for it.
        idle: u16,
    },
    /// It fits together with a program that is to have little interference.
    #[serde(alias = "beside-trained")]
    WithTrained,
    /// Another program is to have little interference, and this one does not fit together with it.
    AwaitsTraining,
}

impl FairReason {
    /// What it says of the program, for other parts of cosched.
    pub(super) fn output(self) -> Option<Output> {
        match self {
            FairReason::LeastProgress { progress, coverage, slowdown } => {
                Some(Output::Advanced(Advance { progress, coverage: Some(coverage), slowdown }))
            }
            FairReason::MoreProgress { progress, slowdown } => {
                Some(Output::Advanced(Advance { progress, coverage: None, slowdown }))
            }
            FairReason::Trained { idle, .. } => Some(Output::Trained { idle }),
            FairReason::WithTrained | FairReason::AwaitsTraining => None,
        }
    }
}

impl Words for FairReason {
    fn words(&self) -> Wording {
        match *self {
            FairReason::LeastProgress { progress, coverage, slowdown } => {
                let known = format!("solo speed known for {} of its quanta", percent(coverage));
                Wording::new("it is furthest behind of the programs that fit", "furthest behind")
                    .figures(format!("{}, {known}", done(progress, slowdown)))
            }
            FairReason::MoreProgress { progress, slowdown } => {
                Wording::new("it is further ahead than the programs that run", "further ahead")
                    .figures(done(progress, slowdown))
                    .says(Says::Waits)
            }
            FairReason::Trained { sequential, idle } => {
                let how = if sequential { "several quanta" } else { "one expected phase" };
                Wording::new(
                    "its solo speed is being measured, with little interference",
                    "in training",
                )
                .figures(format!("for {how}; {} left idle", count(idle.into(), "CPU", "CPUs")))
            }
            FairReason::WithTrained => Wording::new(
                "the solo speed of another program is being measured, and this one fits with it",
                "fits training",
            ),
            FairReason::AwaitsTraining => Wording::new(
                "the solo speed of another program is being measured, and this one does not fit",
                "awaits training",
            )
            .says(Says::Waits),
        }
    }
}

/// The work of a program, as the time that it takes without co-runners, and by how much it was
/// slowed down.
fn done(solo: Nanos, slowdown: Option<f64>) -> String {
    let slowed = slowdown.map(|slowdown| format!(", slowdown {slowdown:.2} since it arrived"));
    format!("{} of solo time done{}", span(solo), slowed.unwrap_or_default())
}
