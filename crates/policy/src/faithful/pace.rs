//! How often a program is measured, by the pace of its phases.
//!
//! The paper measures once a second, since its programs keep a phase for much longer (section
//! III-D). A program with shorter phases is always a second behind, and one that never changes
//! is sampled for nothing. The interval therefore halves with every quantum decision, and doubles
//! after some intervals without one. Until the first decision it is shorter still: until then a
//! short program gains nothing, and a guard will sample more often anyway. Ours (section E leaves
//! it open).

use cosched_core::Nanos;

use super::params::Params;

/// The interval of one program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    interval: Nanos,
    /// How it follows the program; `None`: it is fixed.
    follows: Option<Params>,
    /// Intervals since the last decision, or since the interval was changed last.
    quiet: u32,
}

impl Pace {
    /// A fixed interval.
    pub(super) fn fixed(interval: Nanos) -> Pace {
        Pace { interval, follows: None, quiet: 0 }
    }

    /// An interval that begins short and follows the program.
    pub(super) fn following(params: Params) -> Pace {
        Pace { interval: params.first, follows: Some(params), quiet: 0 }
    }

    pub(super) fn interval(self) -> Nanos {
        self.interval
    }

    /// An interval is over, with a quantum decision at its end or without. Returns whether the next
    /// one is of another length.
    pub(super) fn passed(&mut self, decided: bool) -> bool {
        let before = self.interval;
        self.quiet = if decided { 0 } else { self.quiet + 1 };
        match self.follows {
            Some(params) if decided => {
                self.interval = Nanos(self.interval.0 / 2).max(params.shortest);
            }
            Some(params) if self.quiet == params.patience => {
                self.interval = Nanos(self.interval.0 * 2).min(params.longest);
                self.quiet = 0;
            }
            _ => {}
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
        let mut pace = Pace { interval: Params::DEFAULT.usual, ..Pace::following(Params::DEFAULT) };
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
        let mut pace = Pace::following(Params::DEFAULT);
        assert!(!pace.passed(false));
        assert_eq!(pace.interval(), Nanos::from_millis(100));
        assert!(pace.passed(true));
        assert_eq!(pace.interval(), Nanos::from_millis(250), "from now on the usual range counts");
    }

    #[test]
    fn a_fixed_interval_stays() {
        let mut pace = Pace::fixed(Params::DEFAULT.usual);
        assert!((0..20).all(|number| !pace.passed(number % 7 == 0)));
    }
}
