//! What trials have shown of a program, in this run and in earlier ones.
//!
//! *Problem.* To find out how a program's threads are scheduled best costs: half of each trial the
//! program has what is worse for it, and being watched closely slows it as well. A program that
//! runs for some seconds, a hundred times a day, would pay that each time, and have little of the
//! answer.
//!
//! *Idea.* An answer is kept, and the next run of the same program begins with it. What is known
//! after a run follows from the reasons that its policy gave ([`Experience::after`]); so policies
//! need not tell it in another way.
//!
//! Two things are found out, by different policies: which [`Actuator`] is best, and whether it
//! helps to divide threads among sockets. *Into which* groups is not kept: threads of another run
//! are others.

use crate::actuator::Actuator;
use crate::plan::Why;

/// What is known of how a program's threads are scheduled best. The default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Experience {
    in_force: Actuator,
    /// One bit for each of [`Actuator::ALL`].
    tried: u8,
    /// Whether groups have helped, where they were tried.
    groups: Option<bool>,
}

impl Experience {
    /// That all of these were tried, and this one was best.
    pub fn new(in_force: Actuator, tried: &[Actuator]) -> Experience {
        tried.iter().fold(Experience::default(), |known, way| known.with(*way, in_force))
    }

    /// The best of what was tried; [`Actuator::None`] where nothing was.
    pub fn in_force(self) -> Actuator {
        self.in_force
    }

    /// What was tried so far.
    pub fn tried(self) -> impl Iterator<Item = Actuator> {
        Actuator::ALL.into_iter().filter(move |way| self.has_tried(*way))
    }

    /// Whether it is known how this one does.
    pub fn has_tried(self, way: Actuator) -> bool {
        self.tried & bit(way) != 0
    }

    /// Whether it helps to divide its threads among sockets; `None`: that was not tried.
    pub fn groups(self) -> Option<bool> {
        self.groups
    }

    /// Whether nothing was tried.
    pub fn is_empty(self) -> bool {
        self == Experience::default()
    }

    /// The same after this one was tried, too, and left that one in force.
    pub fn with(self, tried: Actuator, in_force: Actuator) -> Experience {
        Experience { in_force, tried: self.tried | bit(tried), ..self }
    }

    /// The same after groups were tried, too.
    pub fn with_groups(self, helped: bool) -> Experience {
        Experience { groups: Some(helped), ..self }
    }

    /// What of it is about actuators.
    pub fn of_actuators(self) -> Experience {
        Experience { groups: None, ..self }
    }

    /// What of it is about groups.
    pub fn of_groups(self) -> Experience {
        Experience { groups: self.groups, ..Experience::default() }
    }

    /// What is known after a run in which these reasons were given of the program, one after the
    /// other.
    pub fn after(self, reasons: impl IntoIterator<Item = Why>) -> Experience {
        let (mut known, mut trial) = (self, None);
        for why in reasons {
            match (why, trial) {
                (Why::Tried { actuator, against }, _) => trial = Some((actuator, against)),
                (Why::Kept { .. }, Some((tried, _))) => known = known.with(tried, tried),
                (Why::PutBack { .. }, Some((tried, against))) => known = known.with(tried, against),
                (Why::GroupsKept { .. }, _) => known = known.with_groups(true),
                // Others than those that are in force have not helped; these have.
                (Why::GroupsPutBack { groups, .. }, _) => known = known.with_groups(groups > 0),
                _ => {}
            }
        }
        known
    }
}

fn bit(way: Actuator) -> u8 {
    1 << way as u8
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
        let told =
            [trial(Slice, None, 0.9), trial(Batch, None, 1.2), trial(BatchSlice, Batch, 0.8)];
        let known = Experience::default().after(told.concat());
        assert_eq!(known, Experience::new(Batch, &[Slice, Batch, BatchSlice]));
        assert_eq!(known.tried().collect::<Vec<_>>(), [Slice, Batch, BatchSlice]);
    }

    #[test]
    fn what_was_best_before_is_no_longer_once_it_was_put_back() {
        let before = Experience::new(Batch, &[Batch, Slice]);
        assert_eq!(before.after(trial(Batch, None, 0.7)), Experience::new(None, &[Batch, Slice]));
    }

    #[test]
    fn groups_are_known_to_help_while_any_are_in_force() {
        let (progress, pause) = (1.1, Nanos::ZERO);
        let kept = Why::GroupsKept { progress };
        let put_back = |groups| Why::GroupsPutBack { groups, progress, pause };
        let before = Experience::new(Batch, &[Batch]);
        let after = |reasons: &[Why]| before.after(reasons.iter().copied());
        assert_eq!(after(&[kept, put_back(2)]), before.with_groups(true));
        assert_eq!(after(&[kept, put_back(0)]), before.with_groups(false));
        assert_eq!(after(&[kept]).of_groups(), Experience::default().with_groups(true));
        assert_eq!(after(&[kept]).of_actuators(), before);
        assert_eq!(after(&[]).groups(), Option::None);
    }

    #[test]
    fn a_trial_without_an_end_teaches_nothing() {
        let before = Experience::new(Batch, &[Batch]);
        assert_eq!(before.after([Why::Tried { actuator: Slice, against: Batch }]), before);
        assert!(Experience::default().after([Why::LeftToKernel]).is_empty());
    }
}
