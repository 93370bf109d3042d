//! The reasons of `faithful`, and their words.

use cosched_core::format::{actuator as name, percent, span};
use cosched_core::{Actuator, Chosen, Nanos, SchedulingChange, Wording, Words};
use serde::{Deserialize, Serialize};

/// A reason of `faithful`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum FaithfulReason {
    /// A slice was chosen for its threads, by the time that they wait for locks or memory. How they
    /// are scheduled decides whether they get it.
    Slice {
        /// How long a thread may keep a CPU.
        slice: Nanos,
        /// Share of its threads' time that they waited for locks, 0 to 1.
        lock_contention: f64,
        /// Share of references to the last-level cache that missed, 0 to 1, where it is known.
        miss_ratio: Option<f64>,
        /// Whether the miss ratio is not measured now, but known from solo runs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        profiled: bool,
        /// Share of its threads' time asleep for anything but locks, 0 to 1, where that counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        io_wait: Option<f64>,
    },
    /// Its threads use this actuator from now on, without a trial: there is no other one to try, or
    /// others are to be tried against it.
    Given {
        /// The actuator.
        actuator: Actuator,
    },
    /// Earlier runs of the program, or repetitions in this one, have shown this actuator to be
    /// best. It is not tried again for now.
    Recalled {
        /// The actuator that is in force from now on.
        actuator: Actuator,
    },
    /// A trial has begun of whether the program is faster with this actuator. The program
    /// alternates between it and the one before.
    Tried {
        /// The actuator on trial.
        actuator: Actuator,
        /// The actuator that it is compared with.
        against: Actuator,
    },
    /// The threads of a pipeline have slices by its stages.
    Stages {
        /// The slice of the stage that waits least.
        shortest: Nanos,
        /// The slice of the stage that waits most.
        longest: Nanos,
    },
    /// A trial has ended, and its actuator stays in force.
    Kept {
        /// The actuator that was tried.
        actuator: Actuator,
        /// Progress with it against progress without: above 1 is faster.
        progress: f64,
    },
    /// A trial has ended, and the actuator of before is in force again.
    PutBack {
        /// The actuator that was tried.
        actuator: Actuator,
        /// Progress with it against progress without: below 1 is slower.
        progress: f64,
        /// How long nothing is tried again, unless the program changes.
        pause: Nanos,
    },
}

impl FaithfulReason {
    /// What it says of how the program's threads as a whole are scheduled, if anything.
    pub fn scheduling(self) -> Option<SchedulingChange> {
        Some(match self {
            FaithfulReason::Stages { .. } => return None,
            FaithfulReason::Slice { slice, lock_contention, miss_ratio, io_wait, .. } => {
                SchedulingChange::Slice(Chosen { slice, lock_contention, miss_ratio, io_wait })
            }
            FaithfulReason::Given { actuator }
            | FaithfulReason::Recalled { actuator }
            | FaithfulReason::Kept { actuator, .. } => SchedulingChange::InForce(actuator),
            FaithfulReason::Tried { actuator, against } => {
                SchedulingChange::Trial { actuator, against }
            }
            FaithfulReason::PutBack { .. } => SchedulingChange::TrialFailed,
        })
    }
}

impl Words for FaithfulReason {
    /// The length of a slice holds until the next slice is chosen.
    fn words(&self) -> Wording {
        match *self {
            FaithfulReason::Slice { slice, lock_contention, miss_ratio, profiled, io_wait } => {
                let waits = at_locks(lock_contention, miss_ratio, profiled, io_wait);
                Wording::new(
                    "this time slice suits its waits at locks and its cache misses",
                    format!("slice {}", span(slice)),
                )
                .figures(format!("{}; {waits}", span(slice)))
            }
            FaithfulReason::Given { actuator } => Wording::new(
                "its threads are scheduled this way without a trial",
                format!("uses {}", name(actuator)),
            )
            .figures(name(actuator).to_owned()),
            FaithfulReason::Recalled { actuator } => Wording::new(
                "learned setting: earlier trials showed how to schedule its threads",
                format!("learned {}", name(actuator)),
            )
            .figures(name(actuator).to_owned()),
            FaithfulReason::Tried { actuator, against } => Wording::new(
                "a trial measures another way to schedule its threads",
                format!("tries {}", name(actuator)),
            )
            .figures(format!("{} against {}", name(actuator), name(against))),
            FaithfulReason::Stages { shortest, longest } => Wording::new(
                "each stage of the pipeline has the time slice that suits its waits",
                format!("slices {} to {}", span(shortest), span(longest)),
            )
            .figures(format!("{} to {}", span(shortest), span(longest))),
            FaithfulReason::Kept { actuator, progress } => Wording::new(
                "a trial of another way to schedule its threads succeeded",
                format!("keeps {}", name(actuator)),
            )
            .figures(format!("{}, {progress:.2} times the progress", name(actuator))),
            FaithfulReason::PutBack { actuator, progress, pause } => Wording::new(
                "a trial of another way to schedule its threads failed, and the earlier way is \
                 restored",
                format!("rejects {}", name(actuator)),
            )
            .figures(format!(
                "{}, {progress:.2} times the progress; no trial for {}",
                name(actuator),
                span(pause)
            )),
        }
    }
}

/// What threads wait for; `profiled`: the misses are from the program's profile.
pub fn at_locks(
    lock_contention: f64,
    miss_ratio: Option<f64>,
    profiled: bool,
    io_wait: Option<f64>,
) -> String {
    let misses = match miss_ratio {
        Some(ratio) if profiled => {
            format!("{} cache misses in its profile, not measured in this run", percent(ratio))
        }
        Some(ratio) => format!("{} cache misses", percent(ratio)),
        None => "cache misses unknown".to_owned(),
    };
    let io_wait = io_wait.map(|share| format!("{} asleep for anything else, ", percent(share)));
    let io_wait = io_wait.unwrap_or_default();
    format!("{} of the time at locks, {io_wait}{misses}", percent(lock_contention))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timer is no input.
    #[test]
    fn other_sleep_is_not_called_input_and_output() {
        let words = at_locks(0.25, Some(0.5), false, Some(0.1));
        let expected =
            "25 % of the time at locks, 10 % asleep for anything else, 50 % cache misses";
        assert_eq!(words, expected);
        assert!(!at_locks(0.25, None, false, None).contains("asleep"));
    }
}
