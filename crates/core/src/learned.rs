//! Learned settings: what trials have shown of a program, in this run and in earlier ones.
//!
//! *Problem.* A trial is expensive: for half of it the program runs with the worse setting, and
//! close sampling slows it as well. A program that runs for some seconds, a hundred times a day,
//! would pay for the trial each time, and would use its result only for a short time.
//!
//! *Idea.* The result is kept, and the next run of the program begins with it. Policies report the
//! [result of each trial](TrialResult), and the engine adds them up ([`Learning`]).
//!
//! Different policies learn two things: which [`Actuator`] is best, and whether it helps to divide
//! threads among sockets. The groups themselves are not kept: another run has other threads.

use crate::actuator::Actuator;
use crate::output::Output;

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

    /// This knowledge after one more trial.
    pub fn after(self, result: TrialResult) -> Learned {
        match result {
            TrialResult::Actuator { tried, in_force } => self.with(tried, in_force),
            TrialResult::Groups { helped } => self.with_groups(helped),
        }
    }

    /// This knowledge, and what the trials of a later run have shown.
    pub fn and(self, later: Learned) -> Learned {
        let in_force = if later.tried == 0 { self.in_force } else { later.in_force };
        let groups = later.groups.or(self.groups);
        Learned { in_force, tried: self.tried | later.tried, groups }
    }
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialResult {
    /// An actuator was tried.
    Actuator {
        /// The actuator that was tried.
        tried: Actuator,
        /// The actuator that is in force now.
        in_force: Actuator,
    },
    /// Groups of threads were tried.
    Groups {
        /// Whether the groups in force have helped; `false`: none are in force.
        helped: bool,
    },
}

/// What a run has shown of a program so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learning {
    /// What trials of this run have shown.
    pub shown: Learned,
    /// Whether the policy used what was known before.
    pub recalled: bool,
}

impl Learning {
    /// Takes in what the policy has done with the program.
    pub fn take_in(&mut self, output: &Output) {
        match output {
            Output::TrialEnded(result) => self.shown = self.shown.after(*result),
            Output::Recalled => self.recalled = true,
            _ => {}
        }
    }
}

fn bit(actuator: Actuator) -> u8 {
    1 << actuator as u8
}

#[cfg(test)]
mod tests {
    use Actuator::{Batch, BatchSlice, None, Slice};

    use super::*;

    fn trial(tried: Actuator, in_force: Actuator) -> TrialResult {
        TrialResult::Actuator { tried, in_force }
    }

    fn after(before: Learned, results: &[TrialResult]) -> Learned {
        results.iter().fold(before, |known, result| known.after(*result))
    }

    /// What was kept last counts as best. What was put back counts as tried.
    #[test]
    fn what_was_kept_is_best_and_what_was_undone_is_tried() {
        let trials = [trial(Slice, None), trial(Batch, Batch), trial(BatchSlice, Batch)];
        let known = after(Learned::default(), &trials);
        assert_eq!(known, Learned::new(Batch, &[Slice, Batch, BatchSlice]));
        assert_eq!(known.tried().collect::<Vec<_>>(), [Slice, Batch, BatchSlice]);
    }

    #[test]
    fn an_actuator_that_was_put_back_is_no_longer_the_best() {
        let before = Learned::new(Batch, &[Batch, Slice]);
        assert_eq!(before.after(trial(Batch, None)), Learned::new(None, &[Batch, Slice]));
    }

    #[test]
    fn groups_are_known_to_help_while_any_are_in_force() {
        let groups = |helped| TrialResult::Groups { helped };
        let before = Learned::new(Batch, &[Batch]);
        let after = |results: &[TrialResult]| after(before, results);
        assert_eq!(after(&[groups(true), groups(true)]), before.with_groups(true));
        assert_eq!(after(&[groups(true), groups(false)]), before.with_groups(false));
        assert_eq!(after(&[groups(true)]).of_groups(), Learned::default().with_groups(true));
        assert_eq!(after(&[groups(true)]).of_actuators(), before);
        assert_eq!(after(&[]).groups(), Option::None);
    }

    #[test]
    fn a_run_adds_to_what_was_known_before() {
        let before = Learned::new(Batch, &[Batch]).with_groups(true);
        let results = [trial(Slice, None), TrialResult::Groups { helped: false }];
        let mut run = Learning::default();
        assert_eq!(before.and(run.shown), before);
        results.iter().for_each(|result| run.take_in(&Output::TrialEnded(*result)));
        assert_eq!(before.and(run.shown), after(before, &results));
        run.take_in(&Output::Backfilled);
        assert!(!run.recalled);
        run.take_in(&Output::Recalled);
        assert!(run.recalled);
    }
}
