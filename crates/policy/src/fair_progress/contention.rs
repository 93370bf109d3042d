//! When co-runners hardly matter: the three low-contention criteria.
//!
//! A segment with little interference was about as fast as it would have been alone, so its speed
//! may stand for that. The criteria compare traffic on the memory bus, in cache lines per
//! microsecond (the paper's bus transaction rate, BTR), with the realistic peak of the machine.
//!
//! *Source.* The FPS paper, section 4.1, which also gives the thresholds. A program that runs alone
//! is the only one with much traffic, if it has much. Running alone therefore needs no criterion of
//! its own.

use super::params::Params;

/// The thresholds for a machine's peak, in lines per microsecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Thresholds {
    peak: f64,
    params: Params,
}

/// Why a segment had little interference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Criterion {
    /// Criterion 1: it has little traffic itself.
    OwnLow,
    /// Criterion 2: all programs together have little.
    SystemLow,
    /// Criterion 3: it is the only one with much.
    OnlyOne,
}

/// The programs that ran in a quantum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuantumLoad {
    /// Traffic of all programs together.
    pub(super) system: f64,
    /// How many segments have much traffic.
    pub(super) intensive: usize,
    /// A program arrived or ended within the quantum, so `system` and `intensive` did not hold for
    /// all of it.
    pub(super) disturbed: bool,
}

impl Thresholds {
    pub(super) fn of_peak(peak: f64, params: Params) -> Thresholds {
        Thresholds { peak, params }
    }

    /// The traffic that is assumed of a program of which nothing is known.
    pub(super) fn unknown(&self) -> f64 {
        self.peak
    }

    /// Below this, all programs together have little traffic.
    pub(super) fn system(&self) -> f64 {
        self.params.system_low * self.peak
    }

    /// Whether a program with this traffic is memory-intensive.
    pub(super) fn is_intensive(&self, traffic: f64) -> bool {
        traffic > self.params.own_low * self.peak
    }

    /// The first criterion that a segment with this traffic meets.
    pub(super) fn criterion(&self, own: f64, load: QuantumLoad) -> Option<Criterion> {
        match load {
            _ if !self.is_intensive(own) => Some(Criterion::OwnLow),
            QuantumLoad { disturbed: true, .. } => None,
            QuantumLoad { system, .. } if system < self.system() => Some(Criterion::SystemLow),
            QuantumLoad { intensive: 1, .. } => Some(Criterion::OnlyOne),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first criterion on the paper's memory bus: 120 lines per microsecond.
    fn criterion(own: f64, others: &[f64]) -> Option<Criterion> {
        let thresholds = Thresholds::of_peak(120.0, Params::DEFAULT);
        let all = || others.iter().copied().chain([own]);
        let intensive = all().filter(|traffic| thresholds.is_intensive(*traffic)).count();
        thresholds.criterion(own, QuantumLoad { system: all().sum(), intensive, disturbed: false })
    }

    /// Segments below 4 percent of the peak suffer little whatever runs with them.
    #[test]
    fn segments_below_4_percent_of_the_peak_suffer_little() {
        assert_eq!(criterion(4.7, &[50.0, 50.0, 50.0]), Some(Criterion::OwnLow));
        assert_eq!(criterion(4.9, &[50.0, 50.0, 50.0]), None);
    }

    #[test]
    fn below_a_third_of_the_peak_no_program_suffers_much() {
        assert_eq!(criterion(20.0, &[19.0]), Some(Criterion::SystemLow));
        assert_eq!(criterion(20.0, &[21.0]), None);
    }

    #[test]
    fn the_only_one_with_much_traffic_suffers_little() {
        assert_eq!(criterion(60.0, &[4.0, 4.0, 4.0]), Some(Criterion::OnlyOne));
        assert_eq!(criterion(60.0, &[4.0, 4.0, 5.0]), None);
        assert_eq!(criterion(60.0, &[]), Some(Criterion::OnlyOne));
    }

    #[test]
    fn when_a_program_came_or_went_only_own_traffic_counts() {
        let thresholds = Thresholds::of_peak(120.0, Params::DEFAULT);
        let load = QuantumLoad { system: 10.0, intensive: 1, disturbed: true };
        assert_eq!(thresholds.criterion(10.0, load), None);
        assert_eq!(thresholds.criterion(1.0, load), Some(Criterion::OwnLow));
    }
}
