//! The reasons of `fair-progress`, and their words.

use std::borrow::Cow;

use cosched_core::format::{count, percent, span};
use cosched_core::{Advance, Nanos, Output, Says, Words};
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
    fn in_general(&self) -> Cow<'static, str> {
        let words = match self {
            FairReason::LeastProgress { .. } => "it is furthest behind of the programs that fit",
            FairReason::MoreProgress { .. } => "it is further ahead than the programs that run",
            FairReason::Trained { .. } => {
                "its solo speed is being measured, with little interference"
            }
            FairReason::WithTrained => {
                "the solo speed of another program is being measured, and this one fits with it"
            }
            FairReason::AwaitsTraining => {
                "the solo speed of another program is being measured, and this one does not fit"
            }
        };
        words.into()
    }

    fn figures(&self) -> Option<String> {
        match *self {
            FairReason::LeastProgress { progress, coverage, slowdown } => {
                let known = format!("solo speed known for {} of its quanta", percent(coverage));
                Some(format!("{}{}, {known}", work(progress), slowed(slowdown)))
            }
            FairReason::MoreProgress { progress, slowdown } => {
                Some(format!("{}{}", work(progress), slowed(slowdown)))
            }
            FairReason::Trained { sequential, idle } => {
                let how = if sequential { "several quanta" } else { "one expected phase" };
                Some(format!("for {how}; {} left idle", count(idle.into(), "CPU", "CPUs")))
            }
            FairReason::WithTrained | FairReason::AwaitsTraining => None,
        }
    }

    fn brief(&self) -> Cow<'static, str> {
        let words = match self {
            FairReason::LeastProgress { .. } => "furthest behind",
            FairReason::MoreProgress { .. } => "further ahead",
            FairReason::Trained { .. } => "in training",
            FairReason::WithTrained => "fits training",
            FairReason::AwaitsTraining => "awaits training",
        };
        words.into()
    }

    fn says(&self) -> Says {
        match self {
            FairReason::MoreProgress { .. } | FairReason::AwaitsTraining => Says::Waits,
            _ => Says::Runs,
        }
    }
}

/// The work of a program, as the time that it takes without co-runners.
fn work(solo: Nanos) -> String {
    format!("{} of solo time done", span(solo))
}

/// By how much a program was slowed down, as a clause that begins with a comma.
fn slowed(slowdown: Option<f64>) -> String {
    slowdown.map_or(String::new(), |slowdown| format!(", slowdown {slowdown:.2} since it arrived"))
}
