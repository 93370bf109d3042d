//! Predicts which programs run in the quanta to come.

use std::cmp::Reverse;

/// How many quanta are predicted, at least two for each program. Cycles of up to six quanta fit a
/// whole number of times.
const QUANTA: usize = 120;

/// A program's share of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share {
    /// The part of the time in which it has CPUs of its own, 0 to 1.
    pub(crate) assigned: f64,
    /// The CPUs that it backfills, on average.
    pub(crate) backfilled: f64,
}

/// The shares of programs that request this many CPUs, each from 1 to all, where free ones are
/// backfilled. Cores have this many `siblings`.
pub(crate) fn shares(sizes: &[usize], cpus: usize, siblings: usize) -> Vec<Share> {
    let quanta = QUANTA.max(2 * sizes.len());
    let part = 1.0 / quanta as f64;
    let mut shares = vec![Share::default(); sizes.len()];
    let mut waited = vec![0usize; sizes.len()];
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    for _ in 0..quanta {
        order.sort_by_key(|&one| (Reverse(waited[one]), one));
        let (mut free, mut borrower) = (cpus, None);
        for &one in &order {
            if sizes[one] <= free {
                free -= sizes[one];
                shares[one].assigned += part;
                waited[one] = 0;
            } else {
                waited[one] += 1;
                borrower = borrower.or(Some(one));
            }
        }
        // Only cores that no program uses.
        let backfilled = cpus.saturating_sub((cpus - free) * siblings);
        if let Some(one) = borrower {
            shares[one].backfilled += backfilled as f64 * part;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentages(sizes: &[usize], cpus: usize, siblings: usize) -> Vec<(u32, u32)> {
        let hundredths = |part: f64| (part * 100.0).round() as u32;
        let shares = shares(sizes, cpus, siblings).into_iter();
        shares.map(|share| (hundredths(share.assigned), hundredths(share.backfilled))).collect()
    }

    #[test]
    fn small_programs_run_nearly_always_and_nothing_is_left() {
        assert_eq!(percentages(&[3, 3, 1], 4, 1), [(50, 0), (50, 0), (100, 0)]);
        assert_eq!(percentages(&[24, 12, 12], 24, 1), [(50, 0); 3]);
    }

    #[test]
    fn only_whole_cores_are_backfilled() {
        assert_eq!(percentages(&[18, 18, 18], 24, 1), [(33, 200); 3]);
        assert_eq!(percentages(&[18, 18, 18], 24, 2), [(33, 0); 3]);
        assert_eq!(percentages(&[24, 4], 24, 2), [(50, 800), (50, 0)]);
    }
}
