//! The basic-block vector of a segment: where in its code a program was.
//!
//! Each element stands for a basic block and counts how often the instruction pointer was seen
//! there. Two segments that spent their time in the same places behave alike, and belong to one
//! phase.
//!
//! *Source.* The FPS paper, section 4.2: normalised vectors, Manhattan distance (eq. 4), threshold
//! 0.7 (table 3).

use std::cmp::Ordering;

use cosched_core::IpBin;

/// Shares of samples by block, which add up to 1; empty where no sample was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BlockVector(Vec<(u64, f64)>);

impl BlockVector {
    /// The vector of one program's bins, in any order.
    pub(super) fn new<'a>(bins: impl IntoIterator<Item = &'a IpBin>) -> BlockVector {
        let mut counts: Vec<(u64, f64)> =
            bins.into_iter().map(|bin| (bin.block, f64::from(bin.count))).collect();
        counts.sort_by_key(|(block, _)| *block);
        let total: f64 = counts.iter().map(|(_, count)| count).sum();
        let shares = counts.into_iter().filter(|_| total > 0.0);
        BlockVector(shares.map(|(block, count)| (block, count / total)).collect())
    }

    /// Equation 4: 0 for equal vectors, 2 for vectors without a common block.
    pub(super) fn distance(&self, other: &BlockVector) -> f64 {
        let (mut ours, mut theirs) = (&self.0[..], &other.0[..]);
        let mut sum = 0.0;
        while let ([(a, x), rest_a @ ..], [(b, y), rest_b @ ..]) = (ours, theirs) {
            match a.cmp(b) {
                Ordering::Less => (sum, ours) = (sum + x, rest_a),
                Ordering::Greater => (sum, theirs) = (sum + y, rest_b),
                Ordering::Equal => (sum, ours, theirs) = (sum + (x - y).abs(), rest_a, rest_b),
            }
        }
        sum + ours.iter().chain(theirs).map(|(_, share)| share).sum::<f64>()
    }

    /// Whether both belong to one phase, by the distance below which two vectors do.
    pub(super) fn is_similar(&self, other: &BlockVector, similar: f64) -> bool {
        self.distance(other) < similar
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::ProgramId;

    use super::*;

    const SIMILAR: f64 = 0.7;

    fn vector(counts: &[(u64, u32)]) -> BlockVector {
        let bins: Vec<IpBin> = counts
            .iter()
            .map(|&(block, count)| IpBin { program: ProgramId::first(0), block, count })
            .collect();
        BlockVector::new(&bins)
    }

    #[test]
    fn distance_is_the_sum_of_normalised_differences() {
        let (one, other) = (vector(&[(1, 50), (2, 50)]), vector(&[(2, 25), (9, 75)]));
        assert_eq!(one.distance(&other), 0.5 + 0.25 + 0.75);
        assert_eq!(one.distance(&other), other.distance(&one));
    }

    #[test]
    fn the_number_of_samples_does_not_matter() {
        assert_eq!(vector(&[(1, 3), (2, 1)]).distance(&vector(&[(2, 100), (1, 300)])), 0.0);
    }

    /// Vectors without a common block belong to different phases.
    #[test]
    fn vectors_without_a_common_block_are_2_apart() {
        let (one, other) = (vector(&[(1, 7)]), vector(&[(2, 7)]));
        assert_eq!(one.distance(&other), 2.0);
        assert!(!one.is_similar(&other, SIMILAR) && one.is_similar(&one, SIMILAR));
    }

    #[test]
    fn segments_of_one_phase_have_a_distance_below_0_7() {
        let one = vector(&[(1, 100)]);
        assert!(one.is_similar(&vector(&[(1, 66), (2, 34)]), SIMILAR));
        assert!(!one.is_similar(&vector(&[(1, 64), (2, 36)]), SIMILAR));
    }

    #[test]
    fn segments_without_samples_are_all_alike() {
        assert!(vector(&[]).is_similar(&vector(&[(3, 0)]), SIMILAR));
    }
}
