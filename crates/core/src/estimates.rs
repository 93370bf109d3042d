//! What `fair-progress` has estimated of a program's speed alone, and where that came from.
//!
//! *Source.* The FPS paper: accuracy, equations 7 to 9, and phases, equation 10, of section 7.2;
//! sources, section 7.3 and figure 9. Cycles are CPU seconds here, as at a constant clock.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Where the speed alone of a segment is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EstimateSource {
    /// By chance: the program itself had little traffic (criterion 1).
    OwnLow,
    /// By chance: all programs together had little (criterion 2).
    SystemLow,
    /// By chance: it was the only one with much (criterion 3).
    OnlyOne,
    /// It was trained because this phase was expected.
    Predicted,
    /// It was trained for several quanta in sequence.
    Sequential,
    /// The co-runners that disturb its phase least, as the phase was never undisturbed.
    CoRunners,
    /// Nothing but quanta that suffered.
    Unknown,
}

/// How many of a program's quanta, or what else of them, have their speed alone from which source.
/// A quantum that suffered has that of the first quantum of its phase that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimateSources<T = u32> {
    /// Criterion 1: it had little traffic itself.
    pub own_low: T,
    /// Criterion 2: all programs together had little.
    pub system_low: T,
    /// Criterion 3: it was the only one with much.
    pub only_one: T,
    /// Training of an expected phase.
    pub predicted: T,
    /// Training in sequence.
    pub sequential: T,
    /// The co-runners that disturb the phase least, where it was never undisturbed.
    pub co_runners: T,
    /// None: the mean of quanta that suffered, or the quantum's own speed.
    pub none: T,
}

impl EstimateSources {
    /// Whether there are quanta, and none of them had a source.
    pub fn are_unknown(&self) -> bool {
        self.none > 0 && *self == EstimateSources { none: self.none, ..EstimateSources::default() }
    }
}

impl<T: Add<Output = T> + AddAssign> EstimateSources<T> {
    /// Adds quanta with this source, or what there is of them.
    pub fn add(&mut self, source: EstimateSource, amount: T) {
        *match source {
            EstimateSource::OwnLow => &mut self.own_low,
            EstimateSource::SystemLow => &mut self.system_low,
            EstimateSource::OnlyOne => &mut self.only_one,
            EstimateSource::Predicted => &mut self.predicted,
            EstimateSource::Sequential => &mut self.sequential,
            EstimateSource::CoRunners => &mut self.co_runners,
            EstimateSource::Unknown => &mut self.none,
        } += amount;
    }

    /// The sum of both.
    pub fn and(self, other: EstimateSources<T>) -> EstimateSources<T> {
        EstimateSources {
            own_low: self.own_low + other.own_low,
            system_low: self.system_low + other.system_low,
            only_one: self.only_one + other.only_one,
            predicted: self.predicted + other.predicted,
            sequential: self.sequential + other.sequential,
            co_runners: self.co_runners + other.co_runners,
            none: self.none + other.none,
        }
    }
}

impl<T> EstimateSources<T> {
    /// Something else of each source.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> EstimateSources<U> {
        EstimateSources {
            own_low: change(self.own_low),
            system_low: change(self.system_low),
            only_one: change(self.only_one),
            predicted: change(self.predicted),
            sequential: change(self.sequential),
            co_runners: change(self.co_runners),
            none: change(self.none),
        }
    }
}

/// What is estimated of a program, over all its quanta so far in which its work was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimates {
    /// CPU seconds that it used in these quanta.
    pub cpu_seconds: f64,
    /// CPU seconds that this work would have taken alone: the sum of work / speed alone.
    pub solo_cpu_seconds: f64,
    /// Where the speeds alone are from.
    pub sources: EstimateSources,
    /// CPU seconds that quanta took longer than alone, by where their speed alone was from at that
    /// moment. Without a source, the time alone would seem longer by this (section 7.3).
    pub slowed: EstimateSources<f64>,
    /// How much quanta of one phase differ: see [`weighted_deviation`]. `None` where no phase has
    /// two quanta with a known speed alone.
    pub phase_deviation: Option<f64>,
    /// CPU seconds that were left idle for its training.
    pub training_idle_seconds: f64,
}

/// The speeds alone of the quanta of a phase: how many, their sum and the sum of their squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseSpeeds {
    count: u32,
    sum: f64,
    squares: f64,
}

impl PhaseSpeeds {
    /// Adds the speed of a quantum.
    pub fn add(&mut self, speed: f64) {
        self.count += 1;
        self.sum += speed;
        self.squares += speed * speed;
    }

    /// Standard deviation (of the population) / mean; zero where the mean is.
    fn relative_deviation(&self) -> f64 {
        let mean = self.sum / f64::from(self.count.max(1));
        let variance = self.squares / f64::from(self.count.max(1)) - mean * mean;
        if mean > 0.0 { variance.max(0.0).sqrt() / mean } else { 0.0 }
    }
}

/// How much the speeds alone of quanta of one phase differ, over all phases:
/// WRSD = sum of w(p) RSD(p), where w(p) is the phase's part of all quanta (the FPS paper, eq. 10).
/// Phases with a single quantum deviate by nothing. `None` where no phase has more.
pub fn weighted_deviation(phases: impl Iterator<Item = PhaseSpeeds> + Clone) -> Option<f64> {
    let all: u32 = phases.clone().map(|phase| phase.count).sum();
    let weighted = |phase: PhaseSpeeds| phase.relative_deviation() * f64::from(phase.count);
    let sum: f64 = phases.clone().map(weighted).sum();
    phases.clone().any(|phase| phase.count > 1).then(|| sum / f64::from(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(speeds: &[f64]) -> PhaseSpeeds {
        let mut phase = PhaseSpeeds::default();
        speeds.iter().for_each(|speed| phase.add(*speed));
        phase
    }

    /// A phase of two quanta with a mean of 2 and a deviation of 1 (50 %), and one of six quanta
    /// without any: (2 x 0.5 + 6 x 0) / 8.
    #[test]
    fn phases_weigh_by_their_quanta() {
        let phases = [phase(&[1.0, 3.0]), phase(&[4.0; 6])];
        assert_eq!(weighted_deviation(phases.into_iter()), Some(0.125));
    }

    #[test]
    fn quanta_that_are_all_of_their_own_phase_say_nothing() {
        let phases = [phase(&[1.0]), phase(&[3.0])];
        assert_eq!(weighted_deviation(phases.into_iter()), None);
        assert_eq!(weighted_deviation(std::iter::empty()), None);
        let phases = [phase(&[1.0]), phase(&[1.0, 3.0])];
        assert!((weighted_deviation(phases.into_iter()).unwrap() - 1.0 / 3.0).abs() < 1e-12);
    }
}
