//! What a policy decided about the threads of a program over a run: the groups of
//! `shuffling`, the CPUs of `balance`, the nice values of `linux-weights`, and the stages of a
//! pipeline, which have slices of their own.

use cosched_core::Why;
use cosched_policy::reasons::{BalanceReason, FaithfulReason, ShufflingReason, WeightReason};
use cosched_results::result::RunResult;
use serde::Serialize;

use crate::history::{nanos, reasons_about};
use crate::words::{self, abridged};

/// A decision about a program's threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadDecision {
    /// From here on, until the next one.
    pub from_seconds: f64,
    /// What holds for them, in words.
    pub reason: String,
}

pub(super) fn of(result: &RunResult, slot: usize) -> Vec<ThreadDecision> {
    let decision = |(from_seconds, why): (f64, &Why)| {
        is_of_threads(why).then(|| ThreadDecision { from_seconds, reason: words::reason(why) })
    };
    reasons_about(result, slot).filter_map(decision).collect()
}

fn is_of_threads(why: &Why) -> bool {
    let is_stages = || matches!(why.read(), Some(FaithfulReason::Stages { .. }));
    let is_bound =
        || why.read::<ShufflingReason>().is_some() || why.read::<BalanceReason>().is_some();
    is_bound() || why.read::<WeightReason>().is_some() || is_stages()
}

pub(super) fn in_words(decisions: &[ThreadDecision]) -> Vec<String> {
    if decisions.is_empty() {
        return Vec::new();
    }
    let line = |decision: &ThreadDecision| {
        format!("  from {}: {}.", words::instant(nanos(decision.from_seconds)), decision.reason)
    };
    let head = "What was decided about its threads:".to_owned();
    [head].into_iter().chain(abridged(decisions, line)).collect()
}

#[cfg(test)]
mod tests {
    use cosched_core::{Nanos, ProgramId, Reason};

    use super::*;
    use crate::testkit;

    /// Threads are shuffled, and released later.
    #[test]
    fn groups_of_threads_are_listed_in_order_of_time() {
        let lines = in_words(&of(&testkit::shuffling(), 0));
        assert_eq!((lines.len(), &*lines[0]), (3, "What was decided about its threads:"));
        let shuffled = "  from 0.100 s: threads that are alike share a group of CPUs (";
        assert!(lines[1].starts_with(shuffled), "{lines:?}");
        assert!(lines[2].starts_with("  from 0.300 s: "), "{lines:?}");
    }

    #[test]
    fn what_is_decided_about_a_whole_program_is_not_listed() {
        let mut run = testkit::adaptive();
        assert_eq!(in_words(&of(&run, 0)), Vec::<String>::new());
        let about = |why| Reason { program: Some(ProgramId::first(0)), why };
        let [shortest, longest] = [10, 120].map(Nanos::from_millis);
        run.decisions[0].reasons.extend([
            about(BalanceReason::KeptApart { threads: 5, most: 3 }.into()),
            about(FaithfulReason::Stages { shortest, longest }.into()),
            about(FaithfulReason::Given { actuator: cosched_core::Actuator::Batch }.into()),
        ]);
        let found = of(&run, 0);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].reason.ends_with("(5 threads, at most 3 on a CPU)"), "{found:?}");
    }
}
