//! How programs were run, where the policy chose that by itself: from when on, how, and why.

use cosched_core::result::RunResult;
use cosched_core::{Ground, Manner, Nanos, Speedups, Why};
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
    /// CPUs that they kept at work outside the kernel side by side, where that had been looked at.
    pub side_by_side_cpus: Option<f64>,
    /// The same as expected in gangs.
    pub in_gangs_cpus: Option<f64>,
    /// How far they come in both ways, relative to one alone, where they tell that.
    pub speedups: Option<Speedups>,
    /// CPUs that other people's programs kept from them in the last look before, where these were many.
    pub others_cpus: Option<f64>,
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
            speedups: self.speedups,
            others: self.others_cpus,
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
        Why::Chosen { manner, ground, side_by_side, in_gangs, speedups, others, explored } => {
            Some(Choice {
                from_seconds,
                manner,
                ground,
                side_by_side_cpus: side_by_side,
                in_gangs_cpus: in_gangs,
                speedups,
                others_cpus: others,
                explored_seconds: explored.as_secs_f64(),
            })
        }
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
    let head = "How the programs were run was chosen by what was seen of them:".to_owned();
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
            speedups: None,
            others_cpus: None,
            explored_seconds: 0.0,
        };
        let gangs = Choice {
            from_seconds: 0.22,
            manner: Manner::InGangs,
            ground: Ground::GangsFill,
            side_by_side_cpus: Some(2.0),
            in_gangs_cpus: Some(1.96),
            speedups: None,
            others_cpus: None,
            explored_seconds: 0.02,
        };
        let told = in_words(&[begins, gangs], Nanos::from_secs(4));
        assert_eq!(
            told,
            [
                "How the programs were run was chosen by what was seen of them:",
                "  from 0.000 s on all run side by side, since nothing is known of them yet.",
                "  from 0.220 s on they take turns, since alone each uses its CPUs fully, and then nobody waits for a \
                 sibling without a CPU (2.00 CPUs at work side by side, 1.96 in turns; finding out has \
                 cost 20 ms so far).",
                "  Finding that out has cost 0.5 % of the run's time.",
            ]
        );
        let (side_by_side, in_turns) = (0.312, 1.0);
        let by_progress = Choice {
            ground: Ground::FurtherInTurns,
            speedups: Some(Speedups { side_by_side, in_turns }),
            ..gangs
        };
        let told = in_words(&[by_progress], Nanos::from_secs(4));
        assert_eq!(
            told[1],
            "  from 0.220 s on they take turns, since by what they tell of their progress they come further so than side \
             by side (together at most 0.31 times the progress of one alone side by side, 1.00 in turns; finding out has \
             cost 20 ms so far)."
        );
        let told = in_words(&[Choice { others_cpus: Some(0.75), ..gangs }], Nanos::from_secs(4));
        assert!(told[1].ends_with(
            "(2.00 CPUs at work side by side, 1.96 in turns; others kept 0.75 CPUs from them; \
             finding out has cost 20 ms so far)."
        ));
        assert!(in_words(&[], Nanos::from_secs(4)).is_empty());
    }
}
