//! How a program scales: its speedup per thread count, and the count that is worth its CPUs.
//!
//! Programs rarely use every further CPU well. Giving a program only as many as still pay leaves
//! the rest to others, and more gangs fit together. Section 5.2 takes as the *ideal thread count*
//! the one that reaches 80 % of the best speedup; of several we take the fewest.

use cosched_core::Nanos;

/// The share of the best speedup that is enough.
const ENOUGH: f64 = 0.8;

/// A number of threads, and the program's solo time with them.
type SoloPoint = (u16, Nanos);

/// How many times faster a point is than the first one of its curve; `None` where there is no
/// other.
pub(super) fn speedup(curve: &[SoloPoint], point: SoloPoint) -> Option<f64> {
    let (_, first) = curve.first().filter(|_| curve.len() > 1)?;
    let (_, solo) = point;
    (solo > Nanos::ZERO).then(|| first.as_secs_f64() / solo.as_secs_f64())
}

/// The fewest threads with 80 % of the best speedup; `None` where there is nothing to choose from.
pub(super) fn ideal_threads(curve: &[SoloPoint]) -> Option<u16> {
    if curve.len() < 2 {
        return None;
    }
    let best = curve.iter().map(|(_, solo)| *solo).min()?;
    // The speedup is 80 % of the best where the time is the best one / 80 %.
    let longest = best.as_secs_f64() / ENOUGH;
    let enough = curve.iter().filter(|(_, solo)| solo.as_secs_f64() <= longest);
    enough.map(|(threads, _)| *threads).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that takes 100 s with one thread and speeds up like this.
    fn curve(speedups: &[(u16, f64)]) -> Vec<SoloPoint> {
        let point = |(threads, speedup): &(u16, f64)| (*threads, Nanos((1e11 / speedup) as u64));
        speedups.iter().map(point).collect()
    }

    #[test]
    fn the_ideal_count_is_the_least_near_the_best_speedup() {
        // Best speedups such that 80 % are those of table 5.2: BT 3.26 at 4, IS 1.4 at 2, LU 7.0 at
        // 12.
        let bt = [(1, 1.0), (2, 1.9), (4, 3.26), (6, 3.3), (8, 3.9), (12, 4.07), (24, 3.6)];
        assert_eq!(ideal_threads(&curve(&bt)), Some(4));
        let is = [(1, 1.0), (2, 1.4), (4, 1.7), (8, 1.6), (24, 1.2)];
        assert_eq!(ideal_threads(&curve(&is)), Some(2));
        let lu = [(1, 1.0), (4, 3.5), (6, 4.8), (8, 5.9), (12, 7.0), (18, 8.2), (24, 8.7)];
        assert_eq!(ideal_threads(&curve(&lu)), Some(12));
    }

    #[test]
    fn a_program_that_only_slows_down_is_best_with_one_thread() {
        assert_eq!(ideal_threads(&curve(&[(1, 1.0), (2, 0.7), (4, 0.5)])), Some(1));
    }

    #[test]
    fn exactly_four_fifths_is_enough() {
        let curve = [(1, 10), (2, 5), (4, 4)].map(|(threads, s)| (threads, Nanos::from_secs(s)));
        assert_eq!(ideal_threads(&curve), Some(2));
    }

    #[test]
    fn one_point_has_no_ideal_count_and_no_speedup() {
        assert_eq!(ideal_threads(&curve(&[(4, 1.0)])), None);
        assert_eq!(ideal_threads(&[]), None);
        let alone = curve(&[(4, 1.0)]);
        assert_eq!(speedup(&alone, alone[0]), None);
    }

    #[test]
    fn the_speedup_counts_from_the_first_point() {
        let curve = curve(&[(2, 1.0), (4, 1.6)]);
        assert_eq!(speedup(&curve, curve[0]), Some(1.0));
        assert!((speedup(&curve, curve[1]).unwrap() - 1.6).abs() < 1e-6);
        assert_eq!(speedup(&curve, (4, Nanos::ZERO)), None);
    }
}
