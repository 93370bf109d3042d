//! How programs were run, where the policy chose that by itself: from when on, how, and why.

use cosched_core::result::RunResult;
use cosched_core::{Ground, Manner, Nanos, Why};
use serde::Serialize;

use super::slices::told;
use crate::history::nanos;
use crate::words;

/// A choice of the policy `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// From here on, until the next one.
    pub from_seconds: f64,
    /// How the programs were run.
    pub manner: Manner,
    /// Why.
    pub ground: Ground,
    /// CPUs that they kept busy outside the kernel together, where that had been measured.
    pub side_by_side_cpus: Option<f64>,
    /// The same in turns, or as expected of them.
    pub in_gangs_cpus: Option<f64>,
    /// What finding out had cost by then: time of the whole machine.
    pub explored_seconds: f64,
}

impl Choice {
    fn why(&self) -> Why {
        Why::Chosen {
            manner: self.manner,
            ground: self.ground,
            side_by_side: self.side_by_side_cpus,
            in_gangs: self.in_gangs_cpus,
            explored: nanos(self.explored_seconds),
        }
    }
}

/// All that were made in a run, in order of time.
pub(super) fn choices(result: &RunResult) -> Vec<Choice> {
    let reasons = result.decisions.iter().flat_map(|decision| {
        decision.reasons.iter().map(|reason| (decision.at_seconds, reason.why))
    });
    let choice = |(from_seconds, why)| match why {
        Why::Chosen { manner, ground, side_by_side, in_gangs, explored } => Some(Choice {
            from_seconds,
            manner,
            ground,
            side_by_side_cpus: side_by_side,
            in_gangs_cpus: in_gangs,
            explored_seconds: explored.as_secs_f64(),
        }),
        _ => None,
    };
    reasons.filter_map(choice).collect()
}

/// The same in words; what all of it has cost, against the whole run.
pub(super) fn in_words(choices: &[Choice], total: Nanos) -> Vec<String> {
    let Some(last) = choices.last() else { return Vec::new() };
    let line = |choice: &Choice| {
        let from = words::instant(nanos(choice.from_seconds));
        format!("  from {from} on {}.", words::reason(&choice.why()))
    };
    let share = 100.0 * last.explored_seconds / total.as_secs_f64().max(1e-9);
    let cost = (last.explored_seconds > 0.0)
        .then(|| format!("  Finding that out has cost {share:.1} % of the run's time."));
    let head = "How the programs ran was chosen by what was measured of them:".to_owned();
    [head].into_iter().chain(told(choices, line)).chain(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_told_with_their_grounds_and_what_they_have_cost() {
        let begins = Choice {
            from_seconds: 0.0,
            manner: Manner::SideBySide,
            ground: Ground::Begins,
            side_by_side_cpus: None,
            in_gangs_cpus: None,
            explored_seconds: 0.0,
        };
        let gangs = Choice {
            from_seconds: 0.22,
            manner: Manner::InGangs,
            ground: Ground::GangsFill,
            side_by_side_cpus: Some(2.0),
            in_gangs_cpus: Some(1.96),
            explored_seconds: 0.02,
        };
        let told = in_words(&[begins, gangs], Nanos::from_secs(4));
        assert_eq!(
            told,
            [
                "How the programs ran was chosen by what was measured of them:",
                "  from 0.000 s on all run together, since nothing has been measured yet.",
                "  from 0.220 s on they take turns, since alone each uses its CPUs fully, and in its turn no \
                 thread waits for a sibling without a CPU (2.00 CPUs busy together, 1.96 in turns; \
                 finding out has cost 20 ms so far).",
                "  Finding that out has cost 0.5 % of the run's time.",
            ]
        );
        assert!(in_words(&[], Nanos::from_secs(4)).is_empty());
    }
}
