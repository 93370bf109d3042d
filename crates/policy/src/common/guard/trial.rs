//! Trials of whether a program is faster with one setting than with another: the two alternate.
//!
//! *Problem.* An actuator that keeps siblings from taking CPUs from each other makes some programs
//! faster and some slower, and so does binding threads that wait alike to one socket. The result
//! depends on how long locks are held, on the load, and on the program's phase. The papers have no
//! answer to that: they apply what they found, and do not check the result.
//!
//! *Idea.* Only equal conditions are compared. A trial gives a program the new setting for a
//! moment, takes it back for a moment, and so on. Each moment is compared with its neighbour only,
//! so that drifts of the program and of the machine cancel. The order of two neighbours is
//! pseudo-random, or a program with phases in step with the moments would decide by its phases.
//! A sequential test of the pairs (Student's t) shows whether the difference is more than noise.
//! The trial ends as soon as the answer is clear, and after [some
//! pairs](params::GuardParams::most_pairs) at the latest. What was not shown to be faster is not
//! kept.
//!
//! *Progress* of a moment is in instructions where they are counted, else in CPU time outside the
//! kernel. Threads that contend for locks lose time asleep or in the kernel.
//! docs/research/measurements.md compares this measure with the true speed. The measure is wrong
//! where all threads wait for the lock's own cache line. Where several programs run, the geometric
//! mean over all of them counts, so that no program gains at another's expense.
//!
//! Ours: the papers have no guard.

use cosched_core::{Nanos, ProgramId, Sample};

use super::params;
use super::progress::MomentProgress;

/// The lengths of the parts of a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lengths {
    /// The time at the beginning without measurement: threads are still in their old places, and
    /// have old deadlines.
    pub(crate) settle: Nanos,
    /// The measured time where user time is exact, or instructions are counted.
    pub(crate) moment: Nanos,
}

/// One setting against another, on one program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial<W> {
    pub(super) program: ProgramId,
    pub(super) candidate: W,
    pub(super) incumbent: W,
    /// Decides on the order, so that two trials differ in it.
    number: u64,
    /// How long a moment is measured, after it has settled.
    pub(super) moment: Nanos,
    params: params::GuardParams,
    /// How many moments are over.
    moments: usize,
    /// Progress in the present moment so far: it may have several samples.
    present: MomentProgress,
    /// Progress in the first moment of the present pair.
    first: Option<MomentProgress>,
    /// Logarithms of progress with the candidate over progress with the incumbent.
    pairs: Vec<f64>,
}

/// The result of a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// No result yet: the trial goes on.
    Open,
    /// The candidate is faster: progress with it over progress without.
    Faster(f64),
    /// The candidate is not faster, or not by a significant difference: progress with it over
    /// progress without.
    NotFaster(f64),
}

impl<W> Trial<W> {
    pub(super) fn new(
        program: ProgramId,
        number: u64,
        threads: usize,
        lengths: Lengths,
        params: params::GuardParams,
        candidate: W,
        incumbent: W,
    ) -> Trial<W> {
        Trial {
            program,
            candidate,
            incumbent,
            number,
            moment: lengths.moment + Nanos(params.for_each_thread.0 * threads as u64),
            params,
            moments: 0,
            present: MomentProgress::default(),
            first: None,
            pairs: Vec::new(),
        }
    }

    /// The program's setting in the present moment: with, without, without, with, or the reverse,
    /// so that a drift cancels in each four of them.
    pub(super) fn candidate(&self) -> &W {
        if self.is_candidates_turn() { &self.candidate } else { &self.incumbent }
    }

    pub(super) fn is_candidates_turn(&self) -> bool {
        let four = (self.moments / 4) as u64;
        let outside = matches!(self.moments % 4, 0 | 3);
        outside == is_heads(self.number, four)
    }

    /// The present moment has settled: its measurement begins now.
    pub(super) fn begin_moment(&mut self) {
        self.present = MomentProgress::default();
    }

    /// Adds samples of a part of the present moment.
    pub(super) fn heard<'a>(&mut self, samples: impl Iterator<Item = &'a Sample>) {
        samples.for_each(|sample| self.present.add(sample));
    }

    /// The present moment is over. Adds these samples of its end.
    pub(super) fn measured(&mut self, samples: &[Sample]) -> Finding {
        self.heard(samples.iter());
        let progress = std::mem::take(&mut self.present);
        if progress.is_coarse() && self.moment < self.params.long_moment {
            // Too coarse for short moments: results so far are noise.
            (self.moment, self.moments, self.first) = (self.params.long_moment, 0, None);
            self.pairs.clear();
            return Finding::Open;
        }
        let with_candidate = self.is_candidates_turn();
        self.moments += 1;
        match self.first.take() {
            None => self.first = Some(progress),
            Some(before) => {
                let (with, without) =
                    if with_candidate { (progress, before) } else { (before, progress) };
                self.pairs.extend(with.log_ratio(&without, self.params.floor));
            }
        }
        self.finding()
    }

    fn finding(&self) -> Finding {
        let params::GuardParams { fewest_pairs, most_pairs, clear, hope, .. } = self.params;
        let count = self.pairs.len();
        let is_over = self.moments >= 2 * most_pairs;
        if self.first.is_some() || (count < fewest_pairs && !is_over) {
            return Finding::Open;
        }
        let mean = self.pairs.iter().sum::<f64>() / count.max(1) as f64;
        let squares = self.pairs.iter().map(|pair| (pair - mean).powi(2)).sum::<f64>();
        let error = (squares / (count.max(2) - 1) as f64 / count.max(1) as f64).sqrt();
        let worthwhile = self.params.worthwhile.ln_1p();
        if count >= fewest_pairs && mean - clear * error > 0.0 && mean > worthwhile {
            Finding::Faster(mean.exp())
        } else if is_over || mean + hope * error < worthwhile {
            Finding::NotFaster(mean.exp())
        } else {
            Finding::Open
        }
    }
}

/// As random as the toss of a coin, and equal in every run.
fn is_heads(trial: u64, toss: u64) -> bool {
    let mixed = ((trial << 8) | toss).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63 == 0
}

#[cfg(test)]
mod tests {
    use cosched_core::{Actuator, Quality};

    use super::*;

    const A: ProgramId = ProgramId::first(0);
    const B: ProgramId = ProgramId::first(1);
    const MOMENT: Nanos = Nanos::from_millis(60);
    const PARAMS: params::GuardParams = params::GuardParams::DEFAULT;
    const FEWEST_PAIRS: usize = PARAMS.fewest_pairs;
    const MOST_PAIRS: usize = PARAMS.most_pairs;

    fn trial(number: u64) -> Trial<Actuator> {
        let lengths = Lengths { settle: Nanos::from_millis(15), moment: MOMENT };
        Trial::new(A, number, 0, lengths, PARAMS, Actuator::Batch, Actuator::None)
    }

    fn moment(rates: &[(ProgramId, f64)], quality: Quality) -> Vec<Sample> {
        let sample = |(id, rate): &(ProgramId, f64)| Sample {
            user_time: Some(Nanos((rate * MOMENT.0 as f64) as u64)),
            quality,
            ..Sample::empty(*id, Nanos::ZERO, MOMENT)
        };
        rates.iter().map(sample).collect()
    }

    fn moment_of(rate: f64) -> Vec<Sample> {
        moment(&[(A, rate)], Quality::Exact)
    }

    /// The result of a trial in which the candidate's progress is `with`, and the incumbent's is 1,
    /// with noise of this size; and the number of pairs.
    fn tried(with: f64, noise: f64) -> (Finding, usize) {
        let mut trial = trial(0);
        for number in 0.. {
            let rate = if *trial.candidate() == Actuator::Batch { with } else { 1.0 };
            // A fixed sequence without a period of four.
            let noise = noise * (f64::from(number * 7 % 11) / 5.0 - 1.0);
            match trial.measured(&moment(&[(A, rate * (1.0 + noise))], Quality::Exact)) {
                Finding::Open => {}
                found => return (found, trial.pairs.len()),
            }
        }
        unreachable!()
    }

    /// Trials without a clear answer are given up.
    #[test]
    fn clear_trials_take_the_fewest_pairs() {
        assert!(matches!(
            tried(1.15, 0.02),
            (Finding::Faster(ratio), FEWEST_PAIRS) if (ratio - 1.15).abs() < 0.02
        ));
        assert!(matches!(
            tried(0.80, 0.02),
            (Finding::NotFaster(ratio), FEWEST_PAIRS) if (ratio - 0.80).abs() < 0.02
        ));
        assert!(matches!(tried(1.04, 0.20), (Finding::NotFaster(_), MOST_PAIRS)));
        assert!(matches!(tried(1.0, 0.0), (Finding::NotFaster(_), FEWEST_PAIRS)));
        assert!(matches!(tried(1.01, 0.0), (Finding::NotFaster(_), _)), "not worth a change");
    }

    #[test]
    fn a_drift_is_no_difference() {
        let mut trial = trial(0);
        let mut speed = 1.0;
        let found = loop {
            speed *= 1.03;
            match trial.measured(&moment(&[(A, speed)], Quality::Exact)) {
                Finding::Open => {}
                found => break found,
            }
        };
        assert!(matches!(found, Finding::NotFaster(_)), "{found:?}");
    }

    #[test]
    fn a_gain_at_anothers_expense_is_no_progress() {
        let mut trial = trial(0);
        let found = loop {
            let with = *trial.candidate() == Actuator::Batch;
            let rates = if with { [(A, 1.2), (B, 0.8)] } else { [(A, 1.0), (B, 1.0)] };
            match trial.measured(&moment(&rates, Quality::Exact)) {
                Finding::Open => {}
                found => break found,
            }
        };
        assert!(matches!(found, Finding::NotFaster(ratio) if ratio < 1.0), "{found:?}");
    }

    #[test]
    fn coarse_times_need_long_moments() {
        let mut trial = trial(0);
        assert_eq!(trial.moment, MOMENT);
        assert_eq!(trial.measured(&moment(&[(A, 1.0)], Quality::Scaled)), Finding::Open);
        assert_eq!((trial.moment, trial.moments), (PARAMS.long_moment, 0));
    }

    #[test]
    fn an_arrival_or_end_within_a_pair_makes_it_void() {
        let mut trial = trial(0);
        trial.measured(&moment(&[(A, 1.0)], Quality::Exact));
        trial.measured(&moment(&[(A, 5.0), (B, 1.0)], Quality::Exact));
        assert!(trial.pairs.is_empty());
    }

    #[test]
    fn where_nothing_can_be_measured_nothing_is_kept() {
        let mut trial = trial(0);
        let found =
            (0..2 * MOST_PAIRS).map(|_| trial.measured(&[])).find(|found| *found != Finding::Open);
        assert!(matches!(found, Some(Finding::NotFaster(_))), "{found:?}");
    }

    #[test]
    fn phases_in_step_with_the_moments_decide_hardly_anything() {
        let is_kept = |number: &u64| {
            let mut trial = trial(*number);
            let decides = |moment: u32| {
                // A phase is as long as two moments; the actuator makes no difference.
                let rate = if matches!(moment % 4, 0 | 3) { 1.5 } else { 1.0 };
                match trial.measured(&moment_of(rate)) {
                    Finding::Open => None,
                    found => Some(matches!(found, Finding::Faster(_))),
                }
            };
            (0..).find_map(decides).unwrap()
        };
        let kept = (0..64).filter(is_kept).count();
        assert!(kept <= 16, "{kept} of 64; with a fixed order it would be all or none of them");
    }

    /// Chance is rarely taken for a difference, and a real difference is rarely overlooked.
    #[test]
    fn trials_rarely_err_in_either_direction() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut kept = |with: f64| {
            let decides_for = |number: u64| {
                let mut trial = trial(number);
                loop {
                    let rate = if *trial.candidate() == Actuator::Batch { with } else { 1.0 };
                    // The sum of some uniform numbers, as good as normal: 5 %.
                    let noise = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                    match trial.measured(&moment_of(rate * (1.0 + 0.05 * noise))) {
                        Finding::Open => {}
                        found => break matches!(found, Finding::Faster(_)),
                    }
                }
            };
            (0..1000).map(decides_for).filter(|kept| *kept).count()
        };
        let (none, harmful, helpful) = (kept(1.0), kept(0.9), kept(1.15));
        assert!(none <= 100 && harmful == 0, "{none} and {harmful} of 1000");
        assert!(helpful >= 900, "{helpful} of 1000");
    }
}
