//! How often a program is measured: as fast as its phases change.
//!
//! The paper looks once a second, since its programs keep a phase for much longer (section III-D).
//! A program whose phases are shorter is always a second behind; one that never changes is sampled
//! for nothing. The interval therefore halves with every quantum decision, and doubles after some
//! intervals without one. Until the first decision it is shorter still: what a short program could
//! gain is lost while nothing is known of it, and a guard will look more closely anyway. Ours
//! (section E leaves it open).

use cosched_core::Nanos;

/// The paper's interval.
pub(super) const USUAL: Nanos = Nanos::from_secs(1);
/// The shortest interval, and the longest.
const RANGE: (Nanos, Nanos) = (Nanos::from_millis(250), Nanos::from_secs(4));
/// The interval until the first decision.
const FIRST: Nanos = Nanos::from_millis(100);
/// So many intervals in a row without a decision, and the next one is longer.
const PATIENCE: u32 = 4;

/// The interval of one program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    interval: Nanos,
    follows: bool,
    /// Intervals since the last decision, or since it was changed last.
    quiet: u32,
}

impl Pace {
    /// One that stays as it is.
    pub(super) fn fixed(interval: Nanos) -> Pace {
        Pace { interval, follows: false, quiet: 0 }
    }

    /// One that begins short and follows the program.
    pub(super) fn following() -> Pace {
        Pace { interval: FIRST, follows: true, quiet: 0 }
    }

    pub(super) fn interval(self) -> Nanos {
        self.interval
    }

    /// An interval is over, with a quantum decision at its end or without. Returns whether the next
    /// one is of another length.
    pub(super) fn passed(&mut self, decided: bool) -> bool {
        let before = self.interval;
        self.quiet = if decided { 0 } else { self.quiet + 1 };
        if self.follows && decided {
            self.interval = Nanos(self.interval.0 / 2).max(RANGE.0);
        } else if self.follows && self.quiet == PATIENCE {
            self.interval = Nanos(self.interval.0 * 2).min(RANGE.1);
            self.quiet = 0;
        }
        self.interval != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It doubles after some intervals without a decision.
    #[test]
    fn the_pace_halves_per_decision_and_doubles_without() {
        let mut pace = Pace { interval: USUAL, ..Pace::following() };
        assert!(pace.passed(true) && pace.passed(true));
        assert_eq!(pace.interval(), Nanos::from_millis(250));
        assert!(!pace.passed(true), "it is as short as can be");
        let changes: Vec<bool> = (0..5).map(|_| pace.passed(false)).collect();
        assert_eq!(changes, [false, false, false, true, false]);
        assert_eq!(pace.interval(), Nanos::from_millis(500));
        (0..100).for_each(|_| _ = pace.passed(false));
        assert_eq!(pace.interval(), Nanos::from_secs(4));
    }

    #[test]
    fn the_first_intervals_are_the_shortest() {
        let mut pace = Pace::following();
        assert!(!pace.passed(false));
        assert_eq!(pace.interval(), Nanos::from_millis(100));
        assert!(pace.passed(true));
        assert_eq!(pace.interval(), Nanos::from_millis(250), "from now on the usual range counts");
    }

    #[test]
    fn what_was_fixed_stays() {
        let mut pace = Pace::fixed(USUAL);
        assert!((0..20).all(|number| !pace.passed(number % 7 == 0)));
    }
}
