//! The length of a quantum: as requested, or shorter, so that no program is frozen too long.
//!
//! While one gang runs the others are frozen. With `n` gangs a program waits `n - 1` quanta between
//! its turns, and no program may be frozen longer than `max_frozen` at a stretch. Quanta therefore
//! shrink when there are many gangs: all other gangs' quanta, and the switches between them, take
//! at most 90 % of `max_frozen` together. A switch is assumed to cost half a millisecond, and more
//! if wake-ups were later than that recently: on a busy machine two hundred late wake-ups add up to
//! a tenth of a second.
//!
//! The thesis' quanta are equally long. Ours grow with the weight of a gang, which
//! is that of its heaviest program: the lightest gang gets one quantum's
//! length, a gang of twice its weight twice that.
//!
//! A quantum never gets shorter than a millisecond: below that, most of the time would go to
//! switching. Very light gangs get a millisecond, and the others share the rest by weight. Even
//! such quanta can be too many (some 600 gangs with the default `max_frozen`). A program may also
//! wait for parts of two rounds when gangs are cut again. In both cases the engine ends freezes
//! that last too long.

use cosched_core::{Nanos, Plan};

use crate::common::reasons::SharedReason;
use crate::kind::Options;

use super::params::Params;
pub use super::params::{LONGEST, SHORTEST};

/// The quanta that can be requested, in words.
pub fn possible() -> String {
    let (least, most) = (SHORTEST.as_secs_f64() * 1e3, LONGEST.as_secs_f64());
    format!("from {least:.0} ms to {most:.0} s")
}

/// The quantum of so many gangs of equal weight, where the limit on frozen time makes it shorter
/// than requested.
pub fn shortened(gangs: usize, max_frozen: Nanos, options: &Options) -> Option<Nanos> {
    let mut rule = QuantumRule::new(options.quantum, options.params.gangs);
    let mut weights = Weights::new(vec![1.0; gangs]);
    let given = rule.length(&mut weights, 0, max_frozen, &mut Plan::default());
    (given < options.quantum).then_some(given)
}

#[derive(Debug)]
pub(crate) struct Weights {
    each: Vec<f64>,
    lightest: f64,
    /// A limit, and the nanoseconds per unit of weight for it. They mostly stay while the gangs do.
    worth: Option<(Nanos, f64)>,
}

impl Weights {
    pub(crate) fn new(each: Vec<f64>) -> Weights {
        let lightest = each.iter().copied().fold(f64::INFINITY, f64::min);
        Weights { each, lightest, worth: None }
    }

    /// Nanoseconds per unit of weight, from [`per_weight`].
    fn worth(&mut self, requested: Nanos, limit: Nanos, shortest: Nanos) -> f64 {
        if let Some((_, worth)) = self.worth.filter(|(known, _)| *known == limit) {
            return worth;
        }
        let rate = requested.0 as f64 / self.lightest;
        let worth = per_weight(&self.each, rate, limit, shortest);
        self.worth = Some((limit, worth));
        worth
    }
}

/// The rule for a policy's quanta. It remembers which shortening it has reported.
#[derive(Debug)]
pub(crate) struct QuantumRule {
    requested: Nanos,
    given: Nanos,
    lateness: Nanos,
    params: Params,
}

impl QuantumRule {
    pub(crate) fn new(requested: Nanos, params: Params) -> QuantumRule {
        QuantumRule { requested, given: requested, lateness: Nanos::ZERO, params }
    }

    /// Takes in how much later than planned a quantum ended.
    pub(crate) fn ended_late(&mut self, by: Nanos) {
        let Params { latest, remembered, .. } = self.params;
        self.lateness = (self.lateness * (remembered - 1) + by.min(latest)) / remembered;
    }

    /// Quanta are not shortened beyond this.
    pub(crate) fn shortest(&self) -> Nanos {
        self.params.shortest
    }

    /// How long `quanta` quanta of others may take together if no program is to be frozen longer
    /// than `max_frozen`.
    pub(crate) fn longest_wait(&self, quanta: usize, max_frozen: Nanos) -> Nanos {
        let Params { switch, reserve, .. } = self.params;
        let steps = self.lateness.0.div_ceil(switch.0).max(1);
        max_frozen - max_frozen / reserve - switch * steps * quanta as u64
    }

    /// The length of `turn`'s quantum among gangs of these weights; a gang alone has no end.
    pub(crate) fn length(
        &mut self,
        weights: &mut Weights,
        turn: usize,
        max_frozen: Nanos,
        plan: &mut Plan,
    ) -> Nanos {
        if weights.each.len() < 2 {
            return Nanos::NEVER;
        }
        let limit = self.longest_wait(weights.each.len() - 1, max_frozen);
        let shortest = self.params.shortest;
        let per_weight = weights.worth(self.requested, limit, shortest);
        let given = length_of(weights.lightest, per_weight, shortest);
        if given != self.given && given < self.requested {
            let (requested, max_frozen) = (self.requested, Some(max_frozen));
            plan.because(None, SharedReason::QuantumShortened { requested, given, max_frozen });
        }
        self.given = given;
        length_of(weights.each[turn], per_weight, shortest)
    }
}

fn length_of(weight: f64, per_weight: f64, shortest: Nanos) -> Nanos {
    Nanos((weight * per_weight) as u64).max(shortest)
}

/// Nanoseconds per unit of weight: at most `requested`. The lightest gang, which therefore waits
/// longest, waits for `limit` at most.
fn per_weight(weights: &[f64], requested: f64, limit: Nanos, shortest: Nanos) -> f64 {
    let lightest = weights.iter().copied().fold(f64::INFINITY, f64::min);
    let others = weights.iter().sum::<f64>() - lightest;
    let mut rate = requested.min(limit.0 as f64 / others);
    let mut raised = 0;
    // A gang that is raised to the shortest quantum takes time from the others, which may bring
    // more of them down to the shortest.
    loop {
        let low = weights.iter().filter(|weight| **weight * rate < shortest.0 as f64);
        let (count, weight) = low.fold((0, 0.0), |(n, sum), weight| (n + 1, sum + weight));
        if count == raised {
            return rate;
        }
        if count == weights.len() {
            return 0.0;
        }
        raised = count;
        // The lightest gang is one of those raised, and does not wait for itself.
        let left = limit - shortest * (count as u64 - 1);
        rate = left.0 as f64 / (others + lightest - weight);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::common::testkit::cases;

    const SECOND: Nanos = Nanos::from_secs(1);
    const ASKED: Nanos = Nanos::from_millis(100);

    fn lengths(quantum: &mut QuantumRule, weights: &[f64]) -> (Vec<u64>, usize) {
        let (mut plan, mut gangs) = (Plan::default(), Weights::new(weights.to_vec()));
        let lengths = (0..weights.len())
            .map(|turn| quantum.length(&mut gangs, turn, SECOND, &mut plan).0 / 1000)
            .collect();
        (lengths, plan.reasons.len())
    }

    #[test]
    fn equal_weights_give_the_requested_quantum() {
        let mut quantum = QuantumRule::new(ASKED, Params::DEFAULT);
        assert_eq!(lengths(&mut quantum, &[3.0; 9]), (vec![100_000; 9], 0));
    }

    #[test]
    fn many_gangs_shorten_the_quantum_with_one_report() {
        let mut quantum = QuantumRule::new(ASKED, Params::DEFAULT);
        // 18 others in 0.9 s; each switch takes half a millisecond.
        assert_eq!(lengths(&mut quantum, &[1.0; 19]), (vec![49_500; 19], 1));
        assert_eq!(lengths(&mut quantum, &[1.0; 19]), (vec![49_500; 19], 0));
        assert_eq!(lengths(&mut quantum, &[1.0; 9]), (vec![100_000; 9], 0));
        assert_eq!(lengths(&mut quantum, &[1.0; 19]).1, 1);
    }

    /// Eleven others in 0.9 s; each switch takes half a millisecond: 900 / 11 - 0.5 = 81.3 ms.
    #[test]
    fn the_length_of_many_quanta_is_known_before_the_start() {
        let options = Options { quantum: ASKED, ..Options::default() };
        assert_eq!(shortened(12, SECOND, &options), Some(Nanos(81_318_181)));
        let enough = Nanos::from_millis(1300);
        assert_eq!(shortened(12, enough, &options), None);
        assert_eq!([1, 9].map(|gangs| shortened(gangs, SECOND, &options)), [None; 2]);
    }

    /// Late wake-ups shorten the quantum. One that is absurdly late hardly does.
    #[test]
    fn late_wake_ups_shorten_the_quantum() {
        let mut quantum = QuantumRule::new(ASKED, Params::DEFAULT);
        for _ in 0..100 {
            quantum.ended_late(Nanos::from_millis(2));
        }
        assert_eq!(lengths(&mut quantum, &[1.0; 19]).0, [48_000; 19]);
        quantum.ended_late(Nanos::from_secs(100));
        let (after, _) = lengths(&mut quantum, &[1.0; 19]);
        assert!(after[0] > 46_000, "{after:?}");
    }

    /// Quanta grow with weights, and all of them fit the limit together.
    #[test]
    fn a_gangs_quantum_grows_with_its_weight() {
        let mut quantum = QuantumRule::new(ASKED, Params::DEFAULT);
        assert_eq!(lengths(&mut quantum, &[1.0, 2.0, 0.5]).0, [200_000, 400_000, 100_000]);
        let (long, reasons) = lengths(&mut quantum, &[1.0, 17.0, 2.0]);
        assert_eq!(reasons, 1);
        assert!(long[1] + long[2] <= 899_000, "{long:?}");
        assert!(long[1] + long[2] > 890_000, "{long:?}");
    }

    /// The programs of a gang that is too light for its share wait no longer for that.
    #[test]
    fn a_very_light_gang_gets_the_shortest_quantum() {
        let (lengths, _) =
            lengths(&mut QuantumRule::new(ASKED, Params::DEFAULT), &[0.01, 100.0, 50.0]);
        assert_eq!(lengths[0], 1000);
        assert!(lengths[1] + lengths[2] <= 899_000, "{lengths:?}");
        assert_eq!(lengths[1] / 2, lengths[2]);
    }

    #[test]
    fn one_gang_has_no_end_and_no_quantum_vanishes() {
        let mut quantum = QuantumRule::new(ASKED, Params::DEFAULT);
        let mut plan = Plan::default();
        assert_eq!(
            quantum.length(&mut Weights::new(vec![1.0]), 0, SECOND, &mut plan),
            Nanos::NEVER
        );
        let mut nine = Weights::new(vec![1.0; 9]);
        assert!(quantum.length(&mut nine, 0, SECOND, &mut plan) > SHORTEST);
        assert_eq!(quantum.length(&mut nine, 0, Nanos::ZERO, &mut plan), SHORTEST, "another limit");
    }

    proptest! {
        #![proptest_config(cases(300))]

        /// The wait for all other gangs is no longer than the limit.
        #[test]
        fn no_wait_is_longer_than_the_limit_whatever_the_weights(
            weights in prop::collection::vec(-2.0..2.0f64, 2..500),
        ) {
            let weights: Vec<f64> = weights.into_iter().map(|power| 10f64.powf(power)).collect();
            let mut quantum = QuantumRule::new(ASKED, Params::DEFAULT);
            let limit = quantum.longest_wait(weights.len() - 1, SECOND);
            let mut plan = Plan::default();
            let mut gangs = Weights::new(weights.clone());
            let lengths: Vec<Nanos> = (0..weights.len())
                .map(|turn| quantum.length(&mut gangs, turn, SECOND, &mut plan))
                .collect();
            let round: Nanos = lengths.iter().copied().sum();
            for length in &lengths {
                prop_assert!(*length >= SHORTEST);
                prop_assert!(round - *length <= limit, "{:?}", lengths);
            }
        }
    }
}
