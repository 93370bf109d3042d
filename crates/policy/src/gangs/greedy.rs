//! `greedy`: as many threads per quantum as fit, in few gangs.
//!
//! *Problem.* With one program per quantum most CPUs are idle when most
//! programs have few threads, and a round takes as many quanta as there are programs.
//!
//! *Idea.* Programs that fit together share a quantum. Fewer gangs mean shorter rounds; more busy
//! CPUs mean more work done. Interference in the caches is ignored.
//!
//! *Algorithm.* Bin packing by first-fit decreasing: the programs are sorted by their thread
//! counts, largest first (equal ones in the order of the workload); each goes into the first gang
//! in which it fits, or else opens the next one. Therefore no program of a later gang fits into an
//! earlier one. The gangs take turns ([`rounds`](crate::gangs::rounds)).
//!
//! *Source.* Section 4.2.2, listing 4.1, figure 4.2. The text builds one gang
//! after another and the listing one program after another; both give the
//! same gangs. On the workload of table 5.2 and 24 CPUs they are the six that
//! section 5.3 lists (which names the two gangs of twice twelve threads in the other order).
//!
//! *With `--fill` (ours).* CPUs that a gang leaves idle are backfilled, for this quantum, with
//! programs of other gangs as far as they fit. The programs that would wait longest until their
//! next turn come first. They lose nothing by it: their own turn comes as before. Programs that fit
//! into many gaps get more than their share, so it is an option and not the default.
//!
//! # `adaptive-greedy`
//!
//! Like `greedy`, with thread counts of malleable programs that are chosen at the beginning of each
//! round: those with which a round is worth most ([`thread_limits`](crate::gangs::thread_limits)).
//! The thesis' adaptive schedulers decide once per round (section 4.2), when every program has had
//! a turn with the counts of before. Where all programs fit into one gang, a round is one quantum.
//!
//! # `request-greedy`
//!
//! The thesis' adaptive scheduler: at each round the gangs are cut again, from the thread counts
//! that programs requested last. Each is granted its request.

use crate::common::reasons::{ReasonSet, SharedReason};
use crate::common::unit::Unit;
use crate::descriptor::{Descriptor, OF_GANGS, OptionGroup};
use crate::gangs::rounds::{Fill, Gang, Rounds, descending, first_fit};
use crate::gangs::thread_limits::{LimitReason, LimitRule, ThreadLimits};

/// Section 4.2.2.
pub(crate) const GREEDY: Descriptor = Descriptor {
    round: Some(turns),
    gang_count: Some(|sizes, cpus| turns(sizes, cpus) as usize),
    options: &[OF_GANGS, &[OptionGroup::Fill]],
    ..Descriptor::of_gangs(
        "greedy",
        "taking turns; programs that fill the CPUs together share a turn",
        |options| {
            let backfill: Option<Fill> = if options.fill { Some(fill) } else { None };
            Ok(Box::new(Rounds::new(options, cut, backfill)))
        },
    )
};

/// Sections 4.2 and 4.3; the algorithm is ours.
pub(crate) const ADAPTIVE_GREEDY: Descriptor = Descriptor {
    limits_threads: true,
    reasons: &[ReasonSet::of::<LimitReason>()],
    params: &["gangs", "thread-limits"],
    ..Descriptor::of_gangs(
        "adaptive-greedy",
        "greedy, and chooses the thread counts of malleable programs in every round",
        |options| {
            let thread_limits = ThreadLimits::new(LimitRule::Product, turns, options);
            Ok(Box::new(Rounds::new(options, cut, None).with_thread_limits(thread_limits)))
        },
    )
};

/// Section 4.2: an adaptive scheduler.
pub(crate) const REQUEST_GREEDY: Descriptor = Descriptor {
    limits_threads: true,
    reasons: &[ReasonSet::of::<LimitReason>()],
    params: &["gangs", "thread-limits"],
    ..Descriptor::of_gangs(
        "request-greedy",
        "greedy, with the thread counts that malleable programs request in every round",
        |options| {
            let thread_limits = ThreadLimits::new(LimitRule::Request, turns, options);
            Ok(Box::new(Rounds::new(options, cut, None).with_thread_limits(thread_limits)))
        },
    )
};

/// First-fit decreasing.
pub(crate) fn cut(units: &[Unit], cpus: usize) -> Vec<Gang> {
    let order = descending(units, |unit| unit.threads as f64);
    let sizes = order.iter().map(|&unit| units[unit].threads);
    let mut gangs: Vec<Gang> = Vec::new();
    for (unit, gang) in order.iter().zip(first_fits(sizes, cpus)) {
        if gang == gangs.len() {
            gangs.push(Vec::new());
        }
        gangs[gang].push((*unit, SharedReason::InGang.into()));
    }
    gangs
}

/// How many gangs there are with units of these sizes.
pub(crate) fn turns(sizes: &[usize], cpus: usize) -> f64 {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
    first_fits(sizes, cpus).into_iter().max().map_or(0.0, |last| (last + 1) as f64)
}

/// The first gang with room for each of these sizes, one after the other; a new gang where there is
/// none.
fn first_fits(sizes: impl IntoIterator<Item = usize>, cpus: usize) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    let fit = |size: usize| {
        let gang = taken.iter().position(|taken| taken + size <= cpus).unwrap_or(taken.len());
        match taken.get_mut(gang) {
            Some(taken) => *taken += size,
            None => taken.push(size),
        }
        gang
    };
    sizes.into_iter().map(fit).collect()
}

/// The units of the others, in their order, that fit into the free CPUs.
fn fill(others: &[(usize, &Unit)], free: usize) -> Gang {
    let fits = first_fit(others.iter().copied(), free).into_iter();
    fits.map(|unit| (unit, SharedReason::Backfills.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::{TABLE_5_2, gang_names, table_5_2};

    #[test]
    fn gangs_can_be_counted_without_making_them() {
        assert_eq!(turns(&[3, 2, 2, 1], 4), 2.0);
        assert_eq!(turns(&[], 4), 0.0);
        let sizes: Vec<usize> = table_5_2().iter().map(|unit| unit.threads).collect();
        assert_eq!(turns(&sizes, 24), 6.0);
    }

    #[test]
    fn table_5_2_gives_the_six_gangs_of_section_5_3() {
        let gangs = gang_names(&cut(&table_5_2(), 24));
        assert_eq!(
            gangs,
            [
                vec!["syr2k", "IS"],
                vec!["cholesky", "BT"],
                vec!["LU", "mvt"],
                vec!["fdtd-apml", "jacobi-2d-imper"],
                vec!["CG", "atax", "gemver"],
                vec!["FT"],
            ]
        );
        let busy: f64 = TABLE_5_2.iter().map(|row| f64::from(row.1)).sum();
        assert_eq!(busy / (6.0 * 24.0), 0.875, "the CPU use that the six gangs give");
    }
}
