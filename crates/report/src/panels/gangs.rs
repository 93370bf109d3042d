//! The panels of policies with gangs: how many gangs a round has, and how long the chosen programs
//! had waited.

use cosched_core::{Quantum, Why};
use cosched_policy::reasons::MinwaitReason;
use cosched_results::result::RunResult;

use super::over_time;
use super::panel::{Panel, Plot, Steps};

/// How many gangs a round has (`gang`, `greedy`, `cgreedy`, `bandwidth`): a program waits for this
/// many quanta until its next turn.
pub(super) fn round(run: &RunResult) -> Option<Panel> {
    let gangs = figures(run, |why| Some(f64::from(Quantum::of(why)?.gangs)));
    let rounds = gangs.iter().any(|(_, gangs)| *gangs > 1.0);
    rounds.then(|| Panel {
        id: "round",
        title: "Gangs in a round".to_owned(),
        says: "The number of gangs (programs that run together) that take turns: the more, the \
               longer each program waits."
            .to_owned(),
        plot: over(run, "gangs", &gangs),
    })
}

/// How long the program that had waited longest had waited when it was chosen (`minwait`).
pub(super) fn longest_wait(run: &RunResult) -> Option<Panel> {
    let waits = figures(run, |why| match why.read()? {
        MinwaitReason::WaitedLongest { waited, .. } => Some(waited.as_secs_f64()),
        _ => None,
    });
    (!waits.is_empty()).then(|| Panel {
        id: "longest-wait",
        title: "Longest time without a turn".to_owned(),
        says: "The longest time that a program had gone without a turn when it was chosen for one."
            .to_owned(),
        plot: over(run, "s", &waits),
    })
}

/// The largest figure of each decision that has one.
fn figures(run: &RunResult, figure: fn(&Why) -> Option<f64>) -> Vec<(f64, f64)> {
    let largest = run.decisions.iter().filter_map(|decision| {
        let figures = decision.reasons.iter().filter_map(|reason| figure(&reason.why));
        Some((decision.at_seconds, figures.reduce(f64::max)?))
    });
    largest.collect()
}

fn over(run: &RunResult, unit: &'static str, known: &[(f64, f64)]) -> Plot {
    let values = over_time::averages(known, run.total_seconds);
    Plot::Steps(Steps { unit, total: run.total_seconds, values, top: None })
}

#[cfg(test)]
mod tests {
    use cosched_core::{Nanos, Reason};

    use super::*;
    use crate::testkit;

    #[test]
    fn without_rounds_the_longest_wait_of_the_chosen_is_shown() {
        let mut run = testkit::gang();
        assert!(round(&run).is_some() && longest_wait(&run).is_none());
        for decision in &mut run.decisions {
            let waited = [1, 3].map(|seconds| MinwaitReason::WaitedLongest {
                waited: Nanos::from_secs(seconds),
                weight: None,
            });
            decision.reasons = waited.map(|why| Reason { program: None, why: why.into() }).to_vec();
        }
        assert!(round(&run).is_none());
        let Some(Panel { plot: Plot::Steps(steps), .. }) = longest_wait(&run) else { panic!() };
        assert!((steps.values[100] - 3.0).abs() < 1e-9, "the largest: {steps:?}");
    }
}
