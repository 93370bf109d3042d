//! How the threads of a program are scheduled as equals, added up from what a policy changes.
//!
//! A policy says what *changes*: a slice was chosen, or an actuator is being tried, kept, or put
//! back. A reader of a run, live or afterwards, needs to know what is in force.

use crate::actuator::Actuator;
use crate::time::Nanos;

/// What is in force, as far as reasons have said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Treatment {
    /// The latest slice that was chosen, and its figures.
    pub chosen: Option<Chosen>,
    /// How the threads are scheduled; `None`: unknown, so the chosen slice is in force where there
    /// is one.
    pub in_force: Option<Actuator>,
    /// The actuator on trial: the program alternates between it and the one in force.
    pub tried: Option<Actuator>,
}

/// A change of how the threads of a program are scheduled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SchedulingChange {
    /// The program starts, with its original settings.
    Original,
    /// A slice was chosen. How threads are scheduled decides whether they get it.
    Slice(Chosen),
    /// This actuator is in force from now on.
    InForce(Actuator),
    /// A trial has begun.
    Trial {
        /// The actuator on trial.
        actuator: Actuator,
        /// The actuator that it is compared with, which stays in force.
        against: Actuator,
    },
    /// A trial has ended, and its actuator is not in force.
    TrialFailed,
}

/// A slice, and the figures that it was chosen for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// How long a thread may keep a CPU.
    pub slice: Nanos,
    /// Share of its threads' time that they waited for locks, 0 to 1.
    pub lock_contention: f64,
    /// Share of references to the last-level cache that missed, 0 to 1, where it is known.
    pub miss_ratio: Option<f64>,
    /// Share of its threads' time asleep for anything but locks, 0 to 1, where that counts.
    pub io_wait: Option<f64>,
}

impl Chosen {
    /// The [`scaling_factor`] that the slice was chosen for.
    pub fn scaling_factor(&self) -> f64 {
        scaling_factor(self.lock_contention, self.miss_ratio, self.io_wait)
    }
}

/// 1 - max(miss ratio, lock contention): eq. 1 of the paper on faithful scheduling, with its
/// extension to programs that wait for input and output (section V-E2) where `io_wait` is given. It
/// has [nine digits](to_nine_digits): with `1.0 - 0.7`, which is above 0.3, a program would get the
/// row of table I after its own.
pub fn scaling_factor(lock_contention: f64, miss_ratio: Option<f64>, io_wait: Option<f64>) -> f64 {
    let waits = lock_contention.max(miss_ratio.unwrap_or(0.0)).max(io_wait.unwrap_or(0.0));
    to_nine_digits(1.0 - waits)
}

/// A figure without the errors of floating-point arithmetic, so that it may be compared with the
/// edge of a range. Shares of times that are whole nanoseconds do not have more digits.
pub fn to_nine_digits(figure: f64) -> f64 {
    (figure * 1e9).round() / 1e9
}

impl Treatment {
    /// Takes in another change.
    pub fn take_in(&mut self, change: SchedulingChange) {
        match change {
            SchedulingChange::Original => *self = Treatment::default(),
            SchedulingChange::Slice(chosen) => {
                self.chosen = Some(chosen);
                // A new slice ends a trial that was under way.
                self.tried = None;
            }
            SchedulingChange::InForce(actuator) => {
                (self.in_force, self.tried) = (Some(actuator), None);
            }
            SchedulingChange::Trial { actuator, against } => {
                (self.in_force, self.tried) = (Some(against), Some(actuator));
            }
            SchedulingChange::TrialFailed => self.tried = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: SchedulingChange = SchedulingChange::Slice(Chosen {
        slice: Nanos::from_millis(200),
        lock_contention: 0.84,
        miss_ratio: None,
        io_wait: None,
    });

    fn after(changes: &[SchedulingChange]) -> Treatment {
        let mut treatment = Treatment::default();
        changes.iter().for_each(|change| treatment.take_in(*change));
        treatment
    }

    #[test]
    fn a_slice_stays_until_the_next_slice_or_run() {
        let treatment = after(&[SchedulingChange::Original, SLICE]);
        assert_eq!((treatment.in_force, treatment.tried), (None, None));
        assert_eq!(treatment.chosen.map(|chosen| chosen.slice), Some(Nanos::from_millis(200)));
        assert_eq!(after(&[SLICE, SchedulingChange::Original]), Treatment::default());
    }

    /// Until a trial is kept, the earlier treatment counts.
    #[test]
    fn a_trial_takes_effect_only_once_it_is_kept() {
        use Actuator::{Batch, None as AsFound, Slice};
        let given = SchedulingChange::InForce(AsFound);
        let tried = SchedulingChange::Trial { actuator: Slice, against: AsFound };
        let kept = SchedulingChange::InForce(Slice);
        let next = SchedulingChange::Trial { actuator: Batch, against: Slice };
        let back = SchedulingChange::TrialFailed;
        let state = |changes: &[SchedulingChange]| (after(changes).in_force, after(changes).tried);
        assert_eq!(state(&[given, SLICE]), (Some(AsFound), None));
        assert_eq!(state(&[given, SLICE, tried]), (Some(AsFound), Some(Slice)));
        assert_eq!(state(&[given, SLICE, tried, kept]), (Some(Slice), None));
        assert_eq!(state(&[given, SLICE, tried, kept, next, back]), (Some(Slice), None));
        assert_eq!(state(&[given, SLICE, tried, kept, given, SLICE]), (Some(AsFound), None));
        assert_eq!(
            state(&[given, SLICE, tried, given, SLICE]),
            (Some(AsFound), None),
            "a new phase"
        );
    }

    #[test]
    fn the_scaling_factor_depends_on_the_worse_of_both() {
        let chosen = |lock_contention, miss_ratio| {
            let (slice, io_wait) = (Nanos::ZERO, None);
            Chosen { slice, lock_contention, miss_ratio, io_wait }.scaling_factor()
        };
        assert_eq!(scaling_factor(0.12, Some(0.05), Some(0.6)), 0.4);
        assert_eq!(chosen(0.84, Some(0.05)), 0.16);
        assert_eq!(chosen(0.12, Some(0.5)), 0.5);
        assert_eq!(chosen(0.12, None), 0.88);
    }

    /// `1.0 - 0.7` is 0.30000000000000004, and the mean of three times 0.1 is above 0.1, too.
    #[test]
    fn each_hundredth_is_exactly_itself() {
        for hundredth in 0..=100 {
            let [waits, factor] = [100 - hundredth, hundredth].map(|n| f64::from(n) / 100.0);
            assert_eq!(scaling_factor(waits, None, None), factor);
            assert_eq!(scaling_factor(0.0, Some(waits), None), factor);
            assert_eq!(to_nine_digits([factor; 3].iter().sum::<f64>() / 3.0), factor);
        }
    }
}
