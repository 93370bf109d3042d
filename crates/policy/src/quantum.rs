//! How long a quantum is: as asked, or shorter, so that nobody is frozen too long.
//!
//! While one gang runs the others are frozen. With `n` gangs a program waits
//! `n - 1` quanta between its turns, and no program may be frozen longer than
//! `max_frozen` at a stretch. So the quantum shrinks when there are many
//! gangs: all other gangs' quanta together take at most 90 % of `max_frozen`.
//! The tenth that is left over is for the switches between them.
//!
//! The thesis' quanta are equally long. Ours grow with the weight of a gang, which
//! is that of its heaviest program: the lightest gang gets one quantum's
//! length, a gang of twice its weight twice that.
//!
//! A quantum never gets shorter than a millisecond, where little but
//! switching would be done. Beyond that (some 900 gangs with the default
//! `max_frozen`), and when gangs are made anew so that somebody waits for parts
//! of two rounds, the engine ends what lasts too long.

use cosched_core::{Nanos, Plan, Why};

/// No quantum is made shorter than this.
pub(crate) const SHORTEST: Nanos = Nanos::from_millis(1);

/// How long others' quanta may take together if nobody is to be frozen longer than `max_frozen`.
pub(crate) fn longest_wait(max_frozen: Nanos) -> Nanos {
    max_frozen - max_frozen / 10
}

/// The rule for a policy's quanta; remembers what it has told about shortening.
#[derive(Debug)]
pub(crate) struct Quantum {
    asked: Nanos,
    given: Nanos,
}

impl Quantum {
    pub(crate) fn new(asked: Nanos) -> Quantum {
        Quantum { asked, given: asked }
    }

    /// The length of `turn`'s quantum among gangs of these weights; a gang alone has no end.
    pub(crate) fn length(
        &mut self,
        weights: &[f64],
        turn: usize,
        max_frozen: Nanos,
        plan: &mut Plan,
    ) -> Nanos {
        if weights.len() < 2 {
            return Nanos::NEVER;
        }
        let lightest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        // Whoever is lightest waits longest: for one round less a quantum.
        let waits = weights.iter().sum::<f64>() / lightest - 1.0;
        let bound = Nanos((longest_wait(max_frozen).0 as f64 / waits) as u64);
        let given = self.asked.min(bound.max(SHORTEST));
        if given != self.given && given < self.asked {
            plan.because(None, Why::QuantumShortened { asked: self.asked, given });
        }
        self.given = given;
        Nanos((given.0 as f64 * (weights[turn] / lightest)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn lengths(quantum: &mut Quantum, weights: &[f64]) -> (Vec<u64>, usize) {
        let mut plan = Plan::default();
        let lengths = (0..weights.len())
            .map(|turn| quantum.length(weights, turn, SECOND, &mut plan).0 / 1000)
            .collect();
        (lengths, plan.reasons.len())
    }

    #[test]
    fn equal_weights_give_the_quantum_that_was_asked() {
        let mut quantum = Quantum::new(Nanos::from_millis(100));
        assert_eq!(lengths(&mut quantum, &[3.0; 10]), (vec![100_000; 10], 0));
    }

    #[test]
    fn many_gangs_shorten_it_and_it_is_said_once() {
        let mut quantum = Quantum::new(Nanos::from_millis(100));
        // Nine others in 0.9 s is the limit; 18 others get 50 ms each.
        assert_eq!(lengths(&mut quantum, &[1.0; 19]), (vec![50_000; 19], 1));
        assert_eq!(lengths(&mut quantum, &[1.0; 19]), (vec![50_000; 19], 0));
        assert_eq!(lengths(&mut quantum, &[1.0; 10]), (vec![100_000; 10], 0));
        assert_eq!(lengths(&mut quantum, &[1.0; 19]).1, 1);
    }

    #[test]
    fn a_gangs_quantum_grows_with_its_weight_and_all_fit_the_limit_together() {
        let mut quantum = Quantum::new(Nanos::from_millis(100));
        assert_eq!(lengths(&mut quantum, &[1.0, 2.0, 0.5]).0, [200_000, 400_000, 100_000]);
        let (long, reasons) = lengths(&mut quantum, &[1.0, 17.0, 2.0]);
        assert_eq!(reasons, 1);
        assert!(long[1] + long[2] <= 900_000, "{long:?}");
        assert!(long[1] + long[2] > 890_000, "{long:?}");
    }

    #[test]
    fn one_gang_has_no_end_and_no_limit_makes_a_quantum_vanish() {
        let mut quantum = Quantum::new(Nanos::from_millis(100));
        let mut plan = Plan::default();
        assert_eq!(quantum.length(&[1.0], 0, SECOND, &mut plan), Nanos::NEVER);
        assert_eq!(quantum.length(&[1.0; 9], 0, Nanos::ZERO, &mut plan), SHORTEST);
    }
}
