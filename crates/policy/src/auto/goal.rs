//! What a mix is to be run for.

use std::fmt;
use std::str::FromStr;

use cosched_core::Nanos;

use super::judgement::Spinning;
use crate::kind::UnknownName;

/// Where programs [may spin](super::judgement::spinning), gangs may lose something that can be measured, since what spinning
/// threads waste side by side cannot be. In experiments/auto these take 1.3 to 10 times as long side by side, and this is 1.33 times.
const MOST_LOST_AGAINST_SPINNING: f64 = 0.25;
/// Where they do not, nothing can be won, and so nothing may be lost.
const MOST_LOST_FOR_NOTHING: f64 = 0.0;
/// What is done varies so much by itself.
pub(super) const NOISE: f64 = 0.02;
/// What fewer threads may lose.
const MOST_LOST_BY_FEWER_THREADS: f64 = 0.07;
/// The same where equal turns are worth a price.
const MOST_LOST_FOR_FAIRNESS: f64 = 0.4;
/// How much more programs have to do in turns than side by side, where that is seen: less is noise, or lost to switching.
const WORTH: f64 = 1.03;
/// The same where equal turns are worth a price.
const WORTH_FOR_FAIRNESS: f64 = 1.0 - MOST_LOST_FOR_FAIRNESS;
/// With a cgroup freezer, switching costs about one per cent of this (docs/benchmarks.md).
const SHORT_QUANTUM: Nanos = Nanos::from_millis(25);

/// What `auto` is to achieve before anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// A short time until the last program ends, while everybody gets on.
    #[default]
    Balanced,
    /// A short time until the last program ends, and results one by one: nobody has to get on meanwhile.
    Throughput,
    /// Slowdowns that are alike.
    Fair,
    /// Short waits.
    Responsive,
}

impl Goal {
    /// All, the default first.
    pub const ALL: [Goal; 4] = [Goal::Balanced, Goal::Throughput, Goal::Fair, Goal::Responsive];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Goal::Balanced => "balanced",
            Goal::Throughput => "throughput",
            Goal::Fair => "fair",
            Goal::Responsive => "responsive",
        }
    }

    /// Which part of the work that is done side by side may be lost in gangs, by what is known of whether programs spin; below
    /// 0, so much has to be won.
    pub(super) fn most_lost(self, spinning: Spinning) -> f64 {
        match spinning {
            _ if self == Goal::Fair => MOST_LOST_FOR_FAIRNESS,
            Spinning::Seen => 1.0 - WORTH,
            Spinning::Possible | Spinning::AmongOthers => MOST_LOST_AGAINST_SPINNING,
            Spinning::Excluded => MOST_LOST_FOR_NOTHING,
        }
    }

    /// The same with fewer threads instead.
    pub(super) fn most_lost_by_fewer_threads(self) -> f64 {
        if self == Goal::Fair { MOST_LOST_FOR_FAIRNESS } else { MOST_LOST_BY_FEWER_THREADS }
    }

    /// How far programs have to come in turns, relative to side by side, where they tell that.
    pub(super) fn worth(self) -> f64 {
        if self == Goal::Fair { WORTH_FOR_FAIRNESS } else { WORTH }
    }

    /// How long a gang runs at a time, if so much is asked for.
    pub(crate) fn quantum(self, asked: Nanos) -> Nanos {
        if self == Goal::Responsive { asked.min(SHORT_QUANTUM) } else { asked }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Goal {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Goal, UnknownName> {
        let found = Goal::ALL.into_iter().find(|goal| goal.name() == name);
        found.ok_or_else(|| UnknownName::new("goal", name, Goal::ALL.map(Goal::name)))
    }
}
