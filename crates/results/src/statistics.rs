//! What repeated measurements show, and what they do not.
//!
//! One run proves nothing on a machine that others share: times vary by tens of percent. Everything
//! is therefore measured several times, and the candidates alternate (A B C A B C). Measurements
//! that were made close together are compared pair by pair. A slow minute slows both sides of a
//! pair, and their ratio stays the same.
//!
//! An interval says how far a figure can be trusted: it holds the true value in at least 95 of 100
//! cases. For a median it reaches from one of the measurements to another, by the sign test: each
//! measurement lies on either side of the true median with equal chances, whatever the errors are
//! like. With fewer than six measurements there is no such interval. (The percentile bootstrap held
//! the true median in 53, 72 and 87 of 100 cases with two, three and four measurements, and in 92
//! to 95 with five to ten.)
//!
//! For a ratio the interval is Wilcoxon's, with the estimate of Hodges and Lehmann, on the
//! logarithms of the pairs' ratios. The estimate is the median of the averages of any two of them.
//! The interval has those averages that a signed-rank test would not reject. Its only condition is
//! that a ratio is as likely to be too large as too small by a given amount. Student's interval
//! needs normal errors: if the machine's host switches between fast and slow minutes, a single
//! pair across such a change made it several times wider. Bootstraps of a ratio with two tails
//! called 4 to 8 of 100 equal pairs different, and symmetric ones reached from nothing to a
//! million.

//!
//! A *comparison* is more careful than a figure: its interval holds the true ratio in 98 of 100
//! cases. With 95, five of a hundred comparisons of equal things claim a difference on average,
//! which means more than five in every third hundred. A user also compares many variants at once.
//! The price is a seventh round.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the interval of a figure may miss on each side, as a share of all cases.
const TAIL: f64 = 0.025;
/// What the interval of a comparison may miss on each side, as a share of all cases.
const TAIL_OF_A_COMPARISON: f64 = 0.01;

/// Below this a comparison has no interval, and no verdict: each of 6 pairs lies on the same side
/// in 3 of 100 cases.
pub const FEWEST_TO_COMPARE: usize = 7;

/// A figure from several measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure, in the unit of the measurements.
    pub value: f64,
    /// The lower and the upper end of its interval (95 %; of a [`comparison`] 98 %); `None` if
    /// there are too few measurements.
    pub interval: Option<(f64, f64)>,
}

/// What a ratio of times says of its first side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It takes less: the whole interval lies below 1.
    Better,
    /// It takes more.
    Worse,
    /// No clear difference: the interval includes 1.
    NoDifference,
    /// There is no interval, and so no verdict.
    TooFewRounds,
}

/// Writes three digits, and those of the interval.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interval {
            Some((low, high)) => write!(f, "{:.3} ({low:.3} to {high:.3})", self.value),
            None => write!(f, "{:.3} (too few for an interval)", self.value),
        }
    }
}

impl Estimate {
    /// The verdict on this ratio of times, or of anything else of which less is better.
    pub fn verdict(&self) -> Verdict {
        match self.interval {
            Some((_, high)) if high < 1.0 => Verdict::Better,
            Some((low, _)) if low > 1.0 => Verdict::Worse,
            Some(_) => Verdict::NoDifference,
            None => Verdict::TooFewRounds,
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

/// The median of samples, with the interval of the sign test; none with fewer than six samples.
pub fn median_estimate(samples: &[f64]) -> Option<Estimate> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let value = middle(&sorted)?;
    let n = sorted.len();
    // The distribution of how many samples lie below the true median: each does in half of the
    // cases.
    let mut share = vec![1.0];
    for _ in 0..n {
        let with = |i: usize| share.get(i).copied().unwrap_or(0.0) / 2.0;
        share = (0..=share.len()).map(|i| with(i) + i.checked_sub(1).map_or(0.0, with)).collect();
    }
    let interval = too_few(&share, TAIL).map(|few| (sorted[few - 1], sorted[n - few]));
    Some(Estimate { value, interval })
}

/// The standard error of the median of samples. It is that of normal errors as wide as the middle
/// half of the samples (from the median of the distances to their median), so that a few outliers
/// do not count. `None` with fewer than two samples, which show no spread.
pub fn median_error(samples: &[f64]) -> Option<f64> {
    let value = median(samples).filter(|_| samples.len() > 1)?;
    let distances: Vec<f64> = samples.iter().map(|sample| (sample - value).abs()).collect();
    // A normal error's quartile lies 1 / 1.4826 standard deviations out; a median's error is
    // sqrt(pi / 2) times a mean's.
    let deviation = 1.4826 * median(&distances)?;
    Some((std::f64::consts::PI / 2.0).sqrt() * deviation / (samples.len() as f64).sqrt())
}

/// The ratio of `a` to `b`, from the pairs' ratios `a[i] / b[i]`: the estimate of Hodges and
/// Lehmann with Wilcoxon's interval. `None` without pairs, or if a value is not positive. No
/// interval with fewer than six pairs, for which there is none of 95 %.
pub fn ratio_estimate(a: &[f64], b: &[f64]) -> Option<Estimate> {
    ratio(a, b, TAIL)
}

/// Like [`ratio_estimate`], but with an interval of 98 %, from which a [verdict](Estimate::verdict)
/// may be read. It has none with fewer than [`FEWEST_TO_COMPARE`] pairs.
pub fn comparison(a: &[f64], b: &[f64]) -> Option<Estimate> {
    ratio(a, b, TAIL_OF_A_COMPARISON)
}

/// Like [`comparison`], for a side that was chosen as the best of this many `candidates`: the more
/// there are, the better one of them looks by chance. The interval of 95 % is widened so that it
/// holds for all of them at once (Bonferroni). With 11 candidates, for example, there is none with
/// fewer than 9 pairs.
pub fn comparison_of_best(a: &[f64], b: &[f64], candidates: usize) -> Option<Estimate> {
    ratio(a, b, TAIL / candidates.max(1) as f64)
}

fn ratio(a: &[f64], b: &[f64], tail: f64) -> Option<Estimate> {
    let positive = a.iter().chain(b).all(|value| *value > 0.0 && value.is_finite());
    if a.is_empty() || a.len() != b.len() || !positive {
        return None;
    }
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
    let pairs = (0..logs.len()).flat_map(|i| logs[i..].iter().map(move |other| (i, other)));
    let mut averages: Vec<f64> = pairs.map(|(i, other)| (logs[i] + other) / 2.0).collect();
    averages.sort_by(f64::total_cmp);
    let value = middle(&averages)?.exp();
    let interval = rejected(logs.len(), tail)
        .map(|n| (averages[n - 1].exp(), averages[averages.len() - n].exp()));
    Some(Estimate { value, interval })
}

/// How many averages lie outside a signed-rank interval on each side, including the end itself.
/// This is the largest `n` such that the sum of the positive ranks of `pairs` differences around
/// zero is below `n` in at most a `tail` of all cases. `None` if even a sum of zero is more
/// frequent.
fn rejected(pairs: usize, tail: f64) -> Option<usize> {
    // The distribution of the sum: each rank is in it in half of the cases.
    let most = pairs * (pairs + 1) / 2;
    let mut share = vec![0.0; most + 1];
    share[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..=most).rev() {
            let with = if sum >= rank { share[sum - rank] } else { 0.0 };
            share[sum] = (share[sum] + with) / 2.0;
        }
    }
    too_few(&share, tail)
}

/// The largest number such that smaller ones occur in at most a `tail` of all cases; `None` if even
/// zero occurs more often. `share` has the share of all cases for 0, 1, 2, ...
fn too_few(share: &[f64], tail: f64) -> Option<usize> {
    let below = share.iter().scan(0.0, |sum, share| {
        *sum += share;
        Some(*sum)
    });
    Some(below.take_while(|below| *below <= tail).count()).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of something that takes 1 s on a machine that others share: noise of 5 %, and an
    /// outlier of up to a half now and then.
    fn noisy(random: &mut fastrand::Rng, n: usize) -> Vec<f64> {
        let one = |random: &mut fastrand::Rng| {
            let noise: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let hiccup = if random.f64() < 0.1 { 1.0 + random.f64() / 2.0 } else { 1.0 };
            (0.05 * noise).exp() * hiccup
        };
        (0..n).map(|_| one(random)).collect()
    }

    #[test]
    fn equal_things_are_rarely_called_different() {
        for n in [7, 8, 10, 20] {
            let mut random = fastrand::Rng::with_seed(n as u64);
            for hundred in 0..10 {
                let claimed = (0..100).filter(|_| {
                    let (a, b) = (noisy(&mut random, n), noisy(&mut random, n));
                    comparison(&a, &b).unwrap().verdict() != Verdict::NoDifference
                });
                let claimed = claimed.count();
                assert!(claimed <= 5, "{claimed} of 100 with {n} pairs (hundred {hundred})");
            }
        }
    }

    #[test]
    fn the_interval_of_a_median_covers_95_of_100_cases() {
        let mut random = fastrand::Rng::with_seed(3);
        let truth = median(&noisy(&mut random, 100_001)).unwrap();
        for n in [6, 7, 8, 10, 20] {
            let held = (0..1000).filter(|_| {
                let estimate = median_estimate(&noisy(&mut random, n)).unwrap();
                estimate.interval.is_some_and(|(low, high)| low <= truth && truth <= high)
            });
            let held = held.count();
            assert!(held >= 940, "{held} of 1000 with {n} measurements");
        }
    }

    /// The ends are those that tables of the sign test give.
    #[test]
    fn ends_of_the_medians_interval_match_the_sign_test() {
        // The critical values for two sides of 5 % in all: 0 for 6 to 8 measurements, 1 for 9 to
        // 11, 5 for 20.
        for (n, few) in [(6, 0), (8, 0), (9, 1), (11, 1), (20, 5)] {
            let samples: Vec<f64> = (0..n).map(f64::from).collect();
            let ends = (f64::from(few), f64::from(n - 1 - few));
            assert_eq!(median_estimate(&samples).unwrap().interval, Some(ends), "{n}");
        }
        assert_eq!(median_estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap().interval, None);
    }

    #[test]
    fn a_difference_of_a_fifth_is_nearly_always_seen_with_ten_pairs() {
        let mut random = fastrand::Rng::with_seed(1);
        let seen = (0..200).filter(|_| {
            let (a, b) = (noisy(&mut random, 10), noisy(&mut random, 10));
            let faster: Vec<f64> = a.iter().map(|a| 0.8 * a).collect();
            comparison(&faster, &b).unwrap().verdict() == Verdict::Better
        });
        let seen = seen.count();
        assert!(seen >= 180, "{seen} of 200");
    }

    #[test]
    fn a_ratio_is_taken_pair_by_pair() {
        let b = [1.0, 10.0, 3.0, 7.0, 2.0, 5.0, 4.0];
        let a = b.map(|b| 2.0 * b);
        let estimate = comparison(&a, &b).unwrap();
        assert!((estimate.value - 2.0).abs() < 1e-12);
        let (low, high) = estimate.interval.unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 2.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(estimate.verdict(), Verdict::Worse);
    }

    #[test]
    fn one_outlying_pair_hardly_changes_a_ratio() {
        let b = [1.0; 8];
        let a = [1.01, 1.0, 1.02, 0.99, 1.01, 1.0, 1.4, 1.01];
        let estimate = ratio_estimate(&a, &b).unwrap();
        assert!((1.0..1.02).contains(&estimate.value), "{estimate:?}");
    }

    /// As many averages are left out at each end as tables of the signed-rank test give.
    #[test]
    fn left_out_averages_match_the_signed_rank_test() {
        // The critical values for two sides of 5 % in all, such as 0 for 6 pairs and 8 for 10, and
        // the one after.
        let table =
            [(5, None), (6, Some(1)), (7, Some(3)), (8, Some(4)), (10, Some(9)), (20, Some(53))];
        for (pairs, expected) in table {
            assert_eq!(rejected(pairs, TAIL), expected, "{pairs} pairs");
        }
        // For two sides of 2 %: 0 for 7 pairs, 5 for 10, 43 for 20.
        for (pairs, expected) in
            [(6, None), (FEWEST_TO_COMPARE, Some(1)), (10, Some(6)), (20, Some(44))]
        {
            assert_eq!(rejected(pairs, TAIL_OF_A_COMPARISON), expected, "{pairs} pairs");
        }
    }

    #[test]
    fn the_best_of_many_has_a_wider_interval_and_needs_more_pairs() {
        let (a, b) = ([1.0, 1.1, 1.2, 1.1, 1.0, 1.0, 1.05, 0.9, 1.0, 1.1], [2.0; 10]);
        let width = |candidates| {
            let (low, high) = comparison_of_best(&a, &b, candidates).unwrap().interval.unwrap();
            high - low
        };
        assert_eq!(comparison_of_best(&a, &b, 1), ratio_estimate(&a, &b));
        assert!(width(11) > width(1));
        // 0.025 / 11 lies between 1/512 and 1/256.
        let interval = |n: usize| comparison_of_best(&a[..n], &b[..n], 11).unwrap().interval;
        assert!(interval(9).is_some() && interval(8).is_none());
    }

    #[test]
    fn too_few_or_impossible_pairs_decide_nothing() {
        let six = comparison(&[1.0, 1.1, 1.2, 1.1, 1.0, 1.0], &[2.0; 6]).unwrap();
        assert_eq!((six.interval, six.verdict()), (None, Verdict::TooFewRounds));
        assert_eq!(ratio_estimate(&[], &[]), None);
        assert_eq!(ratio_estimate(&[1.0, 0.0], &[1.0, 1.0]), None);
    }

    /// The error is that of a median of normally distributed samples, and one outlier hardly
    /// changes it.
    #[test]
    fn the_error_of_a_median_resists_an_outlier() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut normal = |n: usize| -> Vec<f64> {
            (0..n).map(|_| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0).collect()
        };
        let errors: Vec<f64> = (0..500).map(|_| median_error(&normal(25)).unwrap()).collect();
        let medians: Vec<f64> = (0..500).map(|_| median(&normal(25)).unwrap()).collect();
        let spread = (medians.iter().map(|m| m * m).sum::<f64>() / 500.0).sqrt();
        let error = median(&errors).unwrap();
        assert!((0.85..1.15).contains(&(error / spread)), "{error} {spread}");
        let (calm, hiccup) = ([1.0, 1.1, 0.9, 1.05, 0.95], [1.0, 1.1, 0.9, 1.05, 3.0]);
        assert!(median_error(&hiccup).unwrap() <= 2.0 * median_error(&calm).unwrap());
        assert_eq!((median_error(&[1.0]), median_error(&[])), (None, None));
    }

    #[test]
    fn a_median_lies_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median_estimate(&[]), None);
        assert_eq!(median_estimate(&[7.0]), Some(Estimate { value: 7.0, interval: None }));
    }
}
