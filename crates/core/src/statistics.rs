//! What repeated measurements show, and what they do not.
//!
//! One run proves nothing on a machine that others share: times vary by tens of
//! percent. So everything is measured several times, the candidates in turn (A B C
//! A B C), and what happened close together is compared pair by pair: a slow minute
//! slows both sides of a pair, and their ratio keeps.
//!
//! How far a figure can be trusted is told by an interval that holds the true value in 95 of 100 cases. For a
//! median that is the bootstrap: the measurements are drawn again with replacement, many times, and the
//! spread of what comes out is taken for the spread of the median. For a ratio it is Student's, on the
//! logarithms. Studentised bootstraps were tried first, on 1500 comparisons of equal things with noise and hiccups for
//! each of 4 to 20 pairs: with two tails they call 4 to 8 of 100 different; symmetric ones 1 to 3, but with
//! 4 pairs their intervals reach from nothing to a million; Student's calls 3 to 4 different and stays small.
//! The generator behind the redrawing is seeded, so the same measurements give the same interval.

use serde::{Deserialize, Serialize};

/// How often measurements are drawn anew.
const REDRAWN: usize = 2000;
/// The share of redrawn figures that an interval leaves out.
const OUTSIDE: f64 = 0.05;
/// With fewer pairs an interval is wider than any difference that matters.
const FEWEST_PAIRS: usize = 4;
/// The 97.5 % quantiles of Student's distribution, from 3 degrees of freedom on; the last one serves for all after it.
const STUDENT: [f64; 27] = [
    3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
    2.045,
];
const SEED: u64 = 0x636f_7363_6865_6421;

/// A figure from several measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure, in the unit of the measurements.
    pub value: f64,
    /// The lower and the upper end of its 95 % interval; `None` if there are too few measurements to tell.
    pub interval: Option<(f64, f64)>,
}

/// What a ratio of times says of the first of its two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It takes less: the whole interval lies below 1.
    Better,
    /// It takes more.
    Worse,
    /// Nothing that so many measurements could show.
    NoDifference,
}

impl Estimate {
    /// What this ratio of times (or of anything else of which less is better) says.
    pub fn verdict(&self) -> Verdict {
        match self.interval {
            Some((_, high)) if high < 1.0 => Verdict::Better,
            Some((low, _)) if low > 1.0 => Verdict::Worse,
            _ => Verdict::NoDifference,
        }
    }
}

/// The value in the middle, or between the two in the middle; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

/// The median of samples, with a percentile bootstrap interval.
pub fn median_estimate(samples: &[f64]) -> Option<Estimate> {
    let value = median(samples)?;
    let mut redrawn = redraw(samples, |drawn| {
        drawn.sort_by(f64::total_cmp);
        middle(drawn)
    });
    let mut at = |share| quantile(&mut redrawn, share);
    let interval = (samples.len() > 1).then(|| (at(OUTSIDE / 2.0), at(1.0 - OUTSIDE / 2.0)));
    Some(Estimate { value, interval })
}

/// How much of `b` it takes for `a`: the geometric mean of the pairs' ratios `a[i] / b[i]`, with
/// Student's interval. `None` without pairs, or if a value is not positive.
pub fn ratio_estimate(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let positive = a.iter().chain(b).all(|value| *value > 0.0 && value.is_finite());
    if a.is_empty() || a.len() != b.len() || !positive {
        return None;
    }
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
    let (mean, error) = mean_and_error(&logs);
    let interval = (logs.len() >= FEWEST_PAIRS).then(|| {
        let row = (logs.len() - FEWEST_PAIRS).min(STUDENT.len() - 1);
        let reach = STUDENT[row] * error;
        ((mean - reach).exp(), (mean + reach).exp())
    });
    Some(Estimate { value: mean.exp(), interval })
}

/// The mean, and its standard error.
fn mean_and_error(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// A statistic of samples that are drawn anew, with replacement, again and again.
fn redraw(samples: &[f64], mut statistic: impl FnMut(&mut [f64]) -> Option<f64>) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = vec![0.0; samples.len()];
    let values = (0..REDRAWN).filter_map(|_| {
        drawn.iter_mut().for_each(|slot| *slot = samples[random.usize(..samples.len())]);
        statistic(&mut drawn)
    });
    values.collect()
}

/// The value that a share of all lies below.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(share * (values.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of something that takes 1 s on a machine that others share: noise of 5 %, and a hiccup of up to a half now and then.
    fn noisy(random: &mut fastrand::Rng, n: usize) -> Vec<f64> {
        let one = |random: &mut fastrand::Rng| {
            let noise: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let hiccup = if random.f64() < 0.1 { 1.0 + random.f64() / 2.0 } else { 1.0 };
            (0.05 * noise).exp() * hiccup
        };
        (0..n).map(|_| one(random)).collect()
    }

    #[test]
    fn two_equal_things_are_rarely_called_different() {
        for n in [4, 5, 7, 10, 20] {
            let mut random = fastrand::Rng::with_seed(n as u64);
            let claimed = (0..300).filter(|_| {
                let (a, b) = (noisy(&mut random, n), noisy(&mut random, n));
                ratio_estimate(&a, &b).unwrap().verdict() != Verdict::NoDifference
            });
            let claimed = claimed.count();
            assert!(claimed <= 15, "{claimed} of 300 with {n} pairs");
        }
    }

    #[test]
    fn a_difference_of_a_fifth_is_nearly_always_seen_with_ten_pairs() {
        let mut random = fastrand::Rng::with_seed(1);
        let seen = (0..200).filter(|_| {
            let (a, b) = (noisy(&mut random, 10), noisy(&mut random, 10));
            let faster: Vec<f64> = a.iter().map(|a| 0.8 * a).collect();
            ratio_estimate(&faster, &b).unwrap().verdict() == Verdict::Better
        });
        let seen = seen.count();
        assert!(seen >= 180, "{seen} of 200");
    }

    #[test]
    fn a_ratio_is_taken_pair_by_pair() {
        let b = [1.0, 10.0, 3.0, 7.0];
        let a = b.map(|b| 2.0 * b);
        let estimate = ratio_estimate(&a, &b).unwrap();
        assert!((estimate.value - 2.0).abs() < 1e-12);
        let (low, high) = estimate.interval.unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 2.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(estimate.verdict(), Verdict::Worse);
    }

    #[test]
    fn too_few_or_impossible_pairs_decide_nothing() {
        let three = ratio_estimate(&[1.0, 1.1, 1.2], &[2.0, 2.0, 2.0]).unwrap();
        assert_eq!((three.interval, three.verdict()), (None, Verdict::NoDifference));
        assert_eq!(ratio_estimate(&[], &[]), None);
        assert_eq!(ratio_estimate(&[1.0, 0.0], &[1.0, 1.0]), None);
    }

    #[test]
    fn the_median_lies_in_its_interval_and_the_interval_among_the_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        let estimate = median_estimate(&[5.0, 1.0, 2.0, 3.0, 4.0]).unwrap();
        let (low, high) = estimate.interval.unwrap();
        assert!(1.0 <= low && low <= estimate.value && estimate.value <= high && high <= 5.0);
        assert_eq!(median_estimate(&[7.0]).unwrap().interval, None);
    }
}
