//! The user's goal for a run.

use cosched_core::Nanos;

use crate::common::params::Params;
use crate::common::unknown::by_name;

/// The first aim of a policy that takes turns by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// A short time until the last program ends, while every program makes progress.
    #[default]
    Balanced,
    /// A short time until the last program ends. Programs have their turns in the order of their
    /// arrival, each until it ends.
    Throughput,
    /// Equal slowdowns.
    Fair,
    /// Short waits.
    Responsive,
}

impl Goal {
    /// Whether a program of a larger weight gets more, or sooner.
    pub fn uses_weights(self) -> bool {
        matches!(self, Goal::Balanced | Goal::Responsive)
    }

    /// Whether a program keeps its turn until it ends.
    pub fn lets_end(self) -> bool {
        self == Goal::Throughput
    }

    /// Why a request for this quantum has no effect; `None`: it has one.
    pub fn ignores(self, quantum: Nanos) -> Option<&'static str> {
        match self {
            Goal::Balanced | Goal::Fair => None,
            Goal::Throughput => Some("gives each program the turn until it ends"),
            Goal::Responsive => {
                (quantum > Params::default().short_quantum).then_some("has shorter turns")
            }
        }
    }
}

by_name!(
    Goal,
    "goal",
    [Balanced: "balanced", Throughput: "throughput", Fair: "fair", Responsive: "responsive"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_found_by_their_names() {
        for goal in Goal::ALL {
            assert_eq!(goal.to_string().parse(), Ok(goal));
        }
        let unknown = "fast".parse::<Goal>().unwrap_err().to_string();
        assert!(unknown.contains("balanced, throughput"));
    }
}
