//! Learned settings: what trials have shown of a program, in this run and in earlier ones.
//!
//! *Problem.* A trial is expensive: for half of it the program runs with the worse setting, and
//! close sampling slows it as well. A program that runs for some seconds, a hundred times a day,
//! would pay for the trial each time, and would use its result only for a short time.
//!
//! *Idea.* The result is kept, and the next run of the program begins with it. What is known after
//! a run follows from the reasons that its policy gave ([`Learned::after`]). Policies therefore
//! need no other report of it.
//!
//! Different policies learn two things: which [`Actuator`] is best, and whether it helps to divide
//! threads among sockets. The groups themselves are not kept: another run has other threads.

use crate::actuator::Actuator;
use crate::plan::Why;

/// What is known about scheduling a program's threads. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    in_force: Actuator,
    /// One bit for each of [`Actuator::ALL`].
    tried: u8,
    /// Whether groups helped, where they were tried.
    groups: Option<bool>,
}

impl Learned {
    /// All of these were tried, and the first argument was best.
    pub fn new(in_force: Actuator, tried: &[Actuator]) -> Learned {
        tried.iter().fold(Learned::default(), |known, actuator| known.with(*actuator, in_force))
    }

    /// The best of the actuators that were tried; [`Actuator::None`] if none was.
    pub fn in_force(self) -> Actuator {
        self.in_force
    }

    /// The actuators that were tried so far.
    pub fn tried(self) -> impl Iterator<Item = Actuator> {
        Actuator::ALL.into_iter().filter(move |actuator| self.has_tried(*actuator))
    }

    /// Whether the actuator was tried.
    pub fn has_tried(self, actuator: Actuator) -> bool {
        self.tried & bit(actuator) != 0
    }

    /// Whether it helps to divide its threads among sockets; `None` if that was not tried.
    pub fn groups(self) -> Option<bool> {
        self.groups
    }

    /// Whether nothing was tried.
    pub fn is_empty(self) -> bool {
        self == Learned::default()
    }

    /// This knowledge after one more trial, and the actuator that it left in force.
    pub fn with(self, tried: Actuator, in_force: Actuator) -> Learned {
        Learned { in_force, tried: self.tried | bit(tried), ..self }
    }

    /// This knowledge after a trial of groups.
    pub fn with_groups(self, helped: bool) -> Learned {
        Learned { groups: Some(helped), ..self }
    }

    /// The part about actuators.
    pub fn of_actuators(self) -> Learned {
        Learned { groups: None, ..self }
    }

    /// The part about groups.
    pub fn of_groups(self) -> Learned {
        Learned { groups: self.groups, ..Learned::default() }
    }

    /// What is known after a run with these reasons about the program, one after the other.
    pub fn after(self, reasons: impl IntoIterator<Item = Why>) -> Learned {
        let (mut known, mut trial) = (self, None);
        for why in reasons {
            match (why, trial) {
                (Why::Tried { actuator, against }, _) => trial = Some((actuator, against)),
                (Why::Kept { .. }, Some((tried, _))) => known = known.with(tried, tried),
                (Why::PutBack { .. }, Some((tried, against))) => known = known.with(tried, against),
                (Why::GroupsKept { .. }, _) => known = known.with_groups(true),
                // The groups that are in force have helped. If there are none, groups have not
                // helped.
                (Why::GroupsPutBack { groups, .. }, _) => known = known.with_groups(groups > 0),
                _ => {}
            }
        }
        known
    }
}

fn bit(actuator: Actuator) -> u8 {
    1 << actuator as u8
}

#[cfg(test)]
mod tests {
    use Actuator::{Batch, BatchSlice, None, Slice};

    use super::*;
    use crate::Nanos;

    fn trial(actuator: Actuator, against: Actuator, progress: f64) -> [Why; 2] {
        let came = match progress > 1.0 {
            true => Why::Kept { actuator, progress },
            false => Why::PutBack { actuator, progress, pause: Nanos::ZERO },
        };
        [Why::Tried { actuator, against }, came]
    }

    /// What was kept last counts as best. What was put back counts as tried.
    #[test]
    fn what_was_kept_is_best_and_what_was_undone_is_tried() {
        let trials =
            [trial(Slice, None, 0.9), trial(Batch, None, 1.2), trial(BatchSlice, Batch, 0.8)];
        let known = Learned::default().after(trials.concat());
        assert_eq!(known, Learned::new(Batch, &[Slice, Batch, BatchSlice]));
        assert_eq!(known.tried().collect::<Vec<_>>(), [Slice, Batch, BatchSlice]);
    }

    #[test]
    fn an_actuator_that_was_put_back_is_no_longer_the_best() {
        let before = Learned::new(Batch, &[Batch, Slice]);
        assert_eq!(before.after(trial(Batch, None, 0.7)), Learned::new(None, &[Batch, Slice]));
    }

    #[test]
    fn groups_are_known_to_help_while_any_are_in_force() {
        let (progress, pause) = (1.1, Nanos::ZERO);
        let kept = Why::GroupsKept { progress };
        let put_back = |groups| Why::GroupsPutBack { groups, progress, pause };
        let before = Learned::new(Batch, &[Batch]);
        let after = |reasons: &[Why]| before.after(reasons.iter().copied());
        assert_eq!(after(&[kept, put_back(2)]), before.with_groups(true));
        assert_eq!(after(&[kept, put_back(0)]), before.with_groups(false));
        assert_eq!(after(&[kept]).of_groups(), Learned::default().with_groups(true));
        assert_eq!(after(&[kept]).of_actuators(), before);
        assert_eq!(after(&[]).groups(), Option::None);
    }

    #[test]
    fn a_trial_without_an_end_teaches_nothing() {
        let before = Learned::new(Batch, &[Batch]);
        assert_eq!(before.after([Why::Tried { actuator: Slice, against: Batch }]), before);
        assert!(Learned::default().after([Why::LeftToKernel]).is_empty());
    }
}
