//! How a program's threads were scheduled over a run, and when that changed. Pictures and traces
//! are made from these changes.

use cosched_core::{Actuator, Nanos, SchedulingChange, Treatment, Why};
use cosched_policy::reasons::{FaithfulReason, SharedReason};
use cosched_results::result::RunResult;

use crate::history::nanos;
use crate::words;
pub(crate) use cosched_core::format::actuator as name;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TreatmentChange {
    /// When it was decided, since the run began.
    pub(crate) at: Nanos,
    /// Its reasons, in the order in which they were given: a trial may end and the next one begin.
    pub(crate) whys: Vec<Why>,
    /// What holds from then on.
    pub(crate) now: Treatment,
}

impl TreatmentChange {
    pub(crate) fn because(&self) -> String {
        self.whys.iter().map(words::reason).collect::<Vec<_>>().join("; ")
    }
}

/// The changes in order of time; none before the first slice was chosen.
pub(crate) fn changes(run: &RunResult, slot: usize) -> Vec<TreatmentChange> {
    let mut now = Treatment::default();
    let mut changes = Vec::new();
    for decision in &run.decisions {
        let own = decision.reasons.iter().filter(|reason| {
            reason.program.is_some_and(|program| usize::from(program.slot) == slot)
        });
        let had = now.chosen.is_some();
        let mut whys = Vec::new();
        for reason in own {
            if let Some(change) = scheduling(&reason.why) {
                now.take_in(change);
                whys.push(reason.why.clone());
            }
        }
        if !whys.is_empty() && (had || now.chosen.is_some()) {
            changes.push(TreatmentChange { at: nanos(decision.at_seconds), whys, now });
        }
    }
    changes
}

/// Whether slices were chosen, and the program had its original settings all the same, always.
pub(crate) fn is_original(run: &RunResult, slot: usize) -> bool {
    let changes = changes(run, slot);
    let is_original = |now: Treatment| now.in_force == Some(Actuator::None) && now.tried.is_none();
    !changes.is_empty() && changes.iter().all(|change| is_original(change.now))
}

/// Whether slices were chosen, and whatever scheduled the program's threads has none.
pub(crate) fn has_no_slices(run: &RunResult, slot: usize) -> bool {
    let changes = changes(run, slot);
    let has_none = |actuator: Actuator| actuator.settings(Nanos::ZERO, None).slice.is_none();
    let is_without =
        |now: Treatment| now.in_force.is_some_and(has_none) && now.tried.is_none_or(has_none);
    !changes.is_empty() && changes.iter().all(|change| is_without(change.now))
}

/// The change of which a recorded reason tells.
fn scheduling(why: &Why) -> Option<SchedulingChange> {
    let starts = || why.read() == Some(SharedReason::LeftToKernel);
    let of_threads = why.read().and_then(FaithfulReason::scheduling);
    of_threads.or_else(|| starts().then_some(SchedulingChange::Original))
}

/// How a program's threads are scheduled, in few words; nothing before a slice was chosen.
pub(crate) fn in_words(treatment: &Treatment) -> Option<String> {
    let slice = treatment.chosen?.slice;
    Some(match treatment.tried {
        Some(tried) => format!("trial: {}", actuator(Some(tried), slice)),
        None => actuator(treatment.in_force, slice),
    })
}

/// An actuator, with its slice; `None`: only the slice.
fn actuator(actuator: Option<Actuator>, slice: Nanos) -> String {
    match actuator {
        None => words::span(slice),
        Some(actuator @ (Actuator::Slice | Actuator::BatchSlice | Actuator::BatchStages)) => {
            format!("{} {}", name(actuator), words::span(slice))
        }
        Some(actuator) => name(actuator).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn changes_begin_with_the_first_slice() {
        let described = |run: &RunResult, slot| -> Vec<(u64, String)> {
            let words = |change: &TreatmentChange| {
                (change.at.0 / 1_000_000, in_words(&change.now).unwrap())
            };
            changes(run, slot).iter().map(words).collect()
        };
        let run = testkit::faithful();
        let expected: Vec<(u64, &str)> = vec![
            (100, "original"),
            (110, "trial: slice 200 ms"),
            (200, "trial: batch-slice 200 ms"),
            (300, "slice 200 ms"),
        ];
        let expected: Vec<_> = expected.into_iter().map(|(at, what)| (at, what.into())).collect();
        assert_eq!(described(&run, 0), expected);
        assert_eq!(described(&run, 1), [(100, "original".to_owned())], "it had no trial");
        assert!(changes(&testkit::gang(), 0).is_empty());
        let mut shortened = run;
        shortened.decisions.truncate(2);
        shortened.decisions[1]
            .reasons
            .retain(|reason| matches!(reason.why.read(), Some(FaithfulReason::Slice { .. })));
        assert_eq!(described(&shortened, 0), [(100, "200 ms".to_owned())]);
    }
}
