//! A Markov predictor of the next phase.
//!
//! The predictor counts how often each phase followed each other one. Of the phases that have
//! followed the present one, the likeliest few are predicted: one guess would be wrong too often.
//!
//! *Source.* The FPS paper, section 4.3 ("based on its full histories", "several phases that are
//! most likely"). It does not say how many; [the number](Params::several) is ours.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::params::Params;

/// Counts of phases and their successors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Predictor {
    /// How often one phase was followed by another.
    followed: BTreeMap<(usize, usize), u32>,
    present: Option<usize>,
    params: Params,
}

impl Predictor {
    pub(super) fn new(params: Params) -> Predictor {
        Predictor { params, ..Predictor::default() }
    }

    /// Adds a segment of this phase; `None`: of no known phase.
    pub(super) fn passed(&mut self, phase: Option<usize>) {
        if let (Some(before), Some(now)) = (self.present, phase) {
            *self.followed.entry((before, now)).or_default() += 1;
        }
        self.present = phase;
    }

    /// The most likely phases of the next segment, the likeliest first.
    pub(super) fn predicted(&self) -> Vec<usize> {
        let Some(present) = self.present else { return Vec::new() };
        let from = self.followed.range((present, 0)..=(present, usize::MAX));
        let mut next: Vec<(u32, usize)> = from.map(|((_, to), count)| (*count, *to)).collect();
        next.sort_by_key(|(count, phase)| (Reverse(*count), *phase));
        next.into_iter().take(self.params.several).map(|(_, phase)| phase).collect()
    }

    /// The likeliest phase; the present one if nothing has followed it yet.
    pub(super) fn likeliest(&self) -> Option<usize> {
        self.predicted().first().copied().or(self.present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(phases: &[usize]) -> Predictor {
        let mut predictor = Predictor::default();
        phases.iter().for_each(|phase| predictor.passed(Some(*phase)));
        predictor
    }

    /// Of a phase's successors, only a few are predicted.
    #[test]
    fn the_most_frequent_successor_is_predicted_first() {
        let mut history = Vec::new();
        for (phase, times) in [(1, 1), (2, 4), (3, 2), (4, 3)] {
            history.extend([0, phase].repeat(times));
        }
        history.push(0);
        assert_eq!(after(&history).predicted(), [2, 4, 3]);
    }

    #[test]
    fn all_of_the_history_counts_and_not_only_the_latest() {
        let early = after(&[0, 1, 0, 1, 0, 1, 0, 2, 0]);
        assert_eq!(early.likeliest(), Some(1));
    }

    #[test]
    fn nothing_is_predicted_for_a_new_phase() {
        assert_eq!(after(&[]).predicted(), [0usize; 0]);
        assert_eq!(after(&[5]).predicted(), [0usize; 0]);
        assert_eq!(after(&[5]).likeliest(), Some(5));
    }

    #[test]
    fn a_segment_of_no_phase_breaks_the_chain() {
        let mut predictor = after(&[0]);
        predictor.passed(None);
        predictor.passed(Some(1));
        predictor.passed(Some(0));
        assert_eq!(predictor.predicted(), [0usize; 0], "nothing has followed 0");
    }
}
