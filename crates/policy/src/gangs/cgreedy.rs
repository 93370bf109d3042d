//! `cgreedy`: a program that misses the cache often runs together with one that does not.
//!
//! *Problem.* Two memory-bound programs slow each other down when they share a quantum. Filling
//! CPUs without regard to that can cost more than it gains.
//!
//! *Idea.* A program's misses in the last-level cache per 1000 instructions show how much it loads
//! everything behind that cache. The program with most misses runs together with one that has few,
//! and never more than two run together.
//!
//! *Algorithm.* The programs are sorted by their misses, most first (equal ones in the order of the
//! workload). The first opens a gang; from the other end of the list, the first that fits joins it.
//! Both leave the list, and so on until it is empty. The gangs take turns
//! ([`rounds`](crate::gangs::rounds)).
//!
//! *Source.* Section 4.2.3, listing 4.2. The misses come from earlier solo runs;
//! [`Kind::check`](crate::Kind::check) refuses a workload without them. A program that arrives
//! later without a figure counts as the worst case: as the one with most misses. It gets the
//! co-runner with the fewest.
//!
//! *With `--fill` (ours).* A gang of two takes a third program, and only a third, from those that
//! have no gang yet: the one with the fewest misses that fits with both. There may therefore be
//! fewer gangs, and rounds get shorter.

use cosched_core::{Wording, Words};
use serde::{Deserialize, Serialize};

use crate::common::reasons::{ReasonSet, SharedReason};
use crate::common::unit::Unit;
use crate::descriptor::{Descriptor, Need, OF_GANGS, OptionGroup};
use crate::gangs::rounds::{Gang, Rounds, descending};

/// A reason of `cgreedy`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum CgreedyReason {
    /// It has the highest cache miss rate of those not yet in a gang.
    MostMisses,
    /// It has the lowest cache miss rate of those that fit together with the gang's first.
    FewestMissesThatFit,
}

impl Words for CgreedyReason {
    fn words(&self) -> Wording {
        match self {
            CgreedyReason::MostMisses => Wording::new(
                "it has the most cache misses of the programs that are not in a gang yet",
                "most misses",
            ),
            CgreedyReason::FewestMissesThatFit => Wording::new(
                "it has the fewest cache misses of the programs that fit with the first of its \
                 gang",
                "fewest misses that fit",
            ),
        }
    }
}

/// Section 4.2.3.
pub(crate) const CGREEDY: Descriptor = Descriptor {
    options: &[OF_GANGS, &[OptionGroup::Fill]],
    needs: &[Need::Misses],
    reasons: &[ReasonSet::of::<CgreedyReason>()],
    ..Descriptor::of_gangs(
        "cgreedy",
        "taking turns in pairs: a program with many cache misses and one with few",
        |options| {
            let cut = if options.fill { cut_in_threes } else { cut_in_pairs };
            Ok(Box::new(Rounds::new(options, cut, None)))
        },
    )
};

/// Gangs of at most two.
pub(crate) fn cut_in_pairs(units: &[Unit], cpus: usize) -> Vec<Gang> {
    cut(units, cpus, 1)
}

/// Gangs of at most three.
pub(crate) fn cut_in_threes(units: &[Unit], cpus: usize) -> Vec<Gang> {
    cut(units, cpus, 2)
}

fn cut(units: &[Unit], cpus: usize, partners: usize) -> Vec<Gang> {
    let mut left = descending(units, |unit| unit.misses.unwrap_or(f64::INFINITY));
    let mut gangs = Vec::new();
    while !left.is_empty() {
        let first = left.remove(0);
        let mut gang = vec![(first, CgreedyReason::MostMisses.into())];
        let mut taken = units[first].threads;
        for _ in 0..partners {
            let Some(fits) = left.iter().rposition(|&unit| taken + units[unit].threads <= cpus)
            else {
                break;
            };
            let partner = left.remove(fits);
            taken += units[partner].threads;
            let why = match gang.len() {
                1 => CgreedyReason::FewestMissesThatFit.into(),
                _ => SharedReason::Backfills.into(),
            };
            gang.push((partner, why));
        }
        gangs.push(gang);
    }
    gangs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::{gang_names, gang_slots, table_5_2, unit};

    fn units(threads_and_misses: &[(usize, f64)]) -> Vec<Unit> {
        threads_and_misses
            .iter()
            .enumerate()
            .map(|(slot, &(threads, misses))| unit(slot as u16, threads, Some(misses)))
            .collect()
    }

    #[test]
    fn table_5_2_gives_six_pairs_of_opposites() {
        let gangs = gang_names(&cut_in_pairs(&table_5_2(), 24));
        assert_eq!(
            gangs,
            [
                vec!["IS", "syr2k"],
                vec!["gemver", "fdtd-apml"],
                vec!["atax", "LU"],
                vec!["mvt", "jacobi-2d-imper"],
                vec!["CG", "FT"],
                vec!["BT", "cholesky"],
            ]
        );
    }

    #[test]
    fn of_equal_misses_the_first_opens_a_gang_the_last_joins() {
        let all_equal = units(&[(1, 5.0), (1, 5.0), (1, 5.0), (1, 5.0)]);
        assert_eq!(gang_slots(&cut_in_pairs(&all_equal, 2)), [[0, 3], [1, 2]]);
    }

    #[test]
    fn the_partner_has_the_fewest_misses_of_those_that_fit() {
        let mixed = units(&[(4, 9.0), (2, 6.0), (3, 1.0), (2, 3.0)]);
        assert_eq!(gang_slots(&cut_in_pairs(&mixed, 6)), [[0, 3], [1, 2]]);
        let crowded = units(&[(6, 9.0), (5, 8.0), (4, 1.0)]);
        assert_eq!(gang_slots(&cut_in_pairs(&crowded, 6)), [[0], [1], [2]]);
    }

    #[test]
    fn fill_adds_a_third_program_and_never_a_fourth() {
        let small = units(&[(1, 5.0), (1, 4.0), (1, 3.0), (1, 2.0), (1, 1.0)]);
        assert_eq!(gang_slots(&cut_in_threes(&small, 8)), [vec![0, 4, 3], vec![1, 2]]);
    }

    #[test]
    fn an_unknown_program_counts_as_the_worst() {
        let mut programs = units(&[(1, 9.0), (1, 1.0), (1, 0.0)]);
        programs[2].misses = None;
        assert_eq!(gang_slots(&cut_in_pairs(&programs, 2)), [vec![2, 1], vec![0]]);
    }
}
