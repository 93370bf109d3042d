//! The reasons of `shuffling`, and their words.

use cosched_core::format::{count, percent, span};
use cosched_core::{Nanos, Wording, Words};
use serde::{Deserialize, Serialize};

/// A reason of `shuffling`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum ShufflingReason {
    /// Its threads were sorted by how long they wait at locks. Threads that wait alike share a
    /// socket from now on.
    Shuffled {
        /// How many threads were sorted.
        threads: u16,
        /// How many of these threads change their socket.
        moved: u16,
        /// The number of sockets.
        groups: u16,
        /// The mean share of their time at locks, 0 to 1.
        lock_time: f64,
        /// The spread of the threads of a socket before, as a share of their time; in misses per
        /// second where they are sorted by these.
        before: f64,
        /// The spread with the new groups.
        after: f64,
    },
    /// A trial has begun of whether the program is faster with its threads sorted into groups. The
    /// program alternates between these groups and the placement before.
    GroupsTried {
        /// How many threads would be in a group.
        threads: u16,
        /// The number of sockets.
        groups: u16,
    },
    /// Earlier runs of the program, or repetitions in this one, have shown whether such groups help
    /// it. They are not tried again for now.
    GroupsRecalled {
        /// Whether they help; then they are in force from now on.
        helped: bool,
    },
    /// A trial of groups has ended, and they stay in force.
    GroupsKept {
        /// Progress with them against progress without: above 1 is faster.
        progress: f64,
    },
    /// A trial of groups has ended, and the placement of before is in force again.
    GroupsPutBack {
        /// To how many groups its threads are bound; 0: they are not bound.
        groups: u16,
        /// Progress with the groups against progress without: below 1 is slower.
        progress: f64,
        /// How long no groups are tried again, unless the program changes.
        pause: Nanos,
    },
    /// Its threads hardly wait at locks any more, and are not bound from now on.
    Unbound {
        /// The mean share of their time at locks, 0 to 1.
        lock_time: f64,
    },
}

impl Words for ShufflingReason {
    fn words(&self) -> Wording {
        let some = |threads: u16| count(threads.into(), "thread", "threads");
        let in_groups = |groups: u16| count(groups.into(), "group", "groups");
        match *self {
            ShufflingReason::Shuffled { threads, moved, groups, lock_time, .. } => Wording::new(
                "threads that are alike share a group of CPUs",
                format!("{moved} shuffled"),
            )
            .figures(format!(
                "{moved} of {} moved between {}; {} of the time at locks",
                some(threads),
                in_groups(groups),
                percent(lock_time)
            )),
            ShufflingReason::GroupsTried { threads, groups } => Wording::new(
                "a trial measures its speed with threads that are alike in one group of CPUs",
                format!("tries {}", in_groups(groups)),
            )
            .figures(format!("{} in {}", some(threads), in_groups(groups))),
            ShufflingReason::GroupsRecalled { helped: true } => Wording::new(
                "learned setting: threads that are alike share a group of CPUs",
                "learned groups",
            ),
            ShufflingReason::GroupsRecalled { helped: false } => Wording::new(
                "learned setting: its threads are not grouped, since that did not help in earlier \
                 trials",
                "learned no groups",
            ),
            ShufflingReason::GroupsKept { progress } => {
                Wording::new("a trial of other groups of its threads succeeded", "keeps groups")
                    .figures(format!("{progress:.2} times the progress"))
            }
            ShufflingReason::GroupsPutBack { progress, pause, .. } => Wording::new(
                "a trial of other groups of its threads failed, and the earlier groups are \
                 restored",
                "rejects groups",
            )
            .figures(format!("{progress:.2} times the progress; no trial for {}", span(pause))),
            ShufflingReason::Unbound { lock_time } => Wording::new(
                "its threads hardly wait at locks any more, so the kernel chooses their CPUs",
                "unbound",
            )
            .figures(format!("{} of the time at locks", percent(lock_time))),
        }
    }
}
