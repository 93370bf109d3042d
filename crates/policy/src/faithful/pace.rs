//! How often a program is measured, by the pace of its phases.
//!
//! The paper measures once a second, since its programs keep a phase for much longer (section
//! III-D). A program with shorter phases is always a second behind, and one that never changes
//! is sampled for nothing. The interval therefore halves with every quantum decision, and doubles
//! after some intervals without one. Until the first decision it is shorter still: until then a
//! short program gains nothing, and a guard will sample more often anyway. Ours (section E leaves
//! it open).

use cosched_core::Nanos;

/// The paper's interval.
pub(super) const USUAL: Nanos = Nanos::from_secs(1);
/// The shortest interval, and the longest.
const RANGE: (Nanos, Nanos) = (Nanos::from_millis(250), Nanos::from_secs(4));
/// The interval until the first decision.
const FIRST: Nanos = Nanos::from_millis(100);
/// After this many intervals in a row without a decision, the next one is longer.
const PATIENCE: u32 = 4;

/// The interval of one program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    interval: Nanos,
    follows: bool,
    /// Intervals since the last decision, or since the interval was changed last.
    quiet: u32,
}

impl Pace {
    /// A fixed interval.
    pub(super) fn fixed(interval: Nanos) -> Pace {
        Pace { interval, follows: false, quiet: 0 }
    }

    /// An interval that begins short and follows the program.
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

    /// The interval doubles after some intervals without a decision.
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
    fn a_fixed_interval_stays() {
        let mut pace = Pace::fixed(USUAL);
        assert!((0..20).all(|number| !pace.passed(number % 7 == 0)));
    }
}
