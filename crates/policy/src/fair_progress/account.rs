//! A program's progress: the seconds alone that its work was worth.
//!
//! Instructions show a phase's speed alone from a single quantum with little interference. The
//! worth of a quantum is therefore accounted at its end, and stays. Work in lumps, such as ticks,
//! shows the speed only after many quanta. What was accounted until then would stay wrong, which is
//! most of a run of some seconds. Such work is therefore kept open, by phase. It is always worth
//! what is known *now* of its phase's speed alone.
//!
//! *Source.* The FPS paper: progress, eq. 3 of section 3.2; weights and concurrent regions, section
//! 5. Ours: work that is kept open.

use std::collections::BTreeMap;

/// Seconds alone, or work that is still to be converted to seconds alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    /// The sum since the program arrived.
    pub(super) whole: f64,
    /// The sum since the concurrent region began, divided by the program's weight at the time.
    pub(super) weighted: f64,
}

impl Amount {
    fn add(&mut self, more: f64, weight: f64) {
        self.whole += more;
        self.weighted += more / weight;
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProgressAccount {
    /// Seconds alone.
    counted: Amount,
    /// Work per CPU, by phase.
    open: BTreeMap<usize, Amount>,
}

impl ProgressAccount {
    /// Adds seconds alone of a program of this weight.
    pub(super) fn add(&mut self, seconds: f64, weight: f64) {
        self.counted.add(seconds, weight);
    }

    /// Adds work per CPU, done in a phase.
    pub(super) fn leave_open(&mut self, phase: usize, work: f64, weight: f64) {
        self.open.entry(phase).or_default().add(work, weight);
    }

    /// Seconds alone. `speed` returns the speed of each phase alone.
    pub(super) fn total(&self, speed: impl Fn(usize) -> f64) -> Amount {
        let known = self.open.iter().map(|(phase, work)| (work, speed(*phase)));
        known.filter(|(_, speed)| *speed > 0.0).fold(self.counted, |sum, (work, speed)| Amount {
            whole: sum.whole + work.whole / speed,
            weighted: sum.weighted + work.weighted / speed,
        })
    }

    /// The program runs once more. What it did before is no work of this run, but stays its
    /// progress in this region.
    pub(super) fn begin_run(&mut self) {
        self.counted.whole = 0.0;
        self.open.values_mut().for_each(|work| work.whole = 0.0);
    }

    /// Adds to its lead in this region, without work.
    pub(super) fn advance(&mut self, weighted: f64) {
        self.counted.weighted += weighted;
    }

    /// A concurrent region begins, in which this much of the weighted progress is left.
    pub(super) fn begin_region(&mut self, left: f64) {
        self.counted.weighted = left;
        self.open.values_mut().for_each(|work| work.weighted = 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_work_is_valued_now_and_counted_seconds_stay() {
        let mut account = ProgressAccount::default();
        account.add(3.0, 2.0);
        account.leave_open(0, 40.0, 2.0);
        account.leave_open(1, 5.0, 1.0);
        let at = |fast: f64| account.total(|phase| if phase == 0 { fast } else { 5.0 });
        assert_eq!(at(10.0), Amount { whole: 3.0 + 4.0 + 1.0, weighted: 1.5 + 2.0 + 1.0 });
        assert_eq!(at(20.0).whole, 3.0 + 2.0 + 1.0, "it was slowed to a half");
    }

    /// A lead that a program had before the region began is kept, and is not valued again.
    #[test]
    fn a_lead_at_the_start_of_a_region_is_kept_at_its_value() {
        let mut account = ProgressAccount::default();
        account.leave_open(0, 40.0, 1.0);
        account.begin_region(0.5);
        account.leave_open(0, 10.0, 1.0);
        assert_eq!(account.total(|_| 10.0), Amount { whole: 5.0, weighted: 0.5 + 1.0 });
    }

    #[test]
    fn a_programs_next_run_starts_with_its_last_progress() {
        let mut account = ProgressAccount::default();
        account.add(1.0, 2.0);
        account.leave_open(0, 40.0, 1.0);
        account.begin_run();
        assert_eq!(account.total(|_| 10.0), Amount { whole: 0.0, weighted: 0.5 + 4.0 });
        account.add(1.0, 1.0);
        assert_eq!(account.total(|_| 10.0), Amount { whole: 1.0, weighted: 5.5 });
    }

    #[test]
    fn work_of_a_phase_without_a_speed_is_worth_nothing_yet() {
        let mut account = ProgressAccount::default();
        account.leave_open(0, 40.0, 1.0);
        assert_eq!(account.total(|_| 0.0), Amount::default());
    }
}
