//! `greedy`: as many threads per quantum as fit, in few gangs.
//!
//! *Problem.* With one program per quantum most CPUs are idle when most
//! programs have few threads, and a round takes as many quanta as there are programs.
//!
//! *Idea.* Programs that fit side by side share a quantum. Fewer gangs mean
//! shorter rounds; more busy CPUs mean more work done. How they disturb each
//! other in the caches is not asked.
//!
//! *Algorithm.* Bin packing by first-fit decreasing: the programs by their
//! thread counts, largest first (equal ones in the order of the workload);
//! each goes into the first gang in which it fits, or else opens the next
//! one. So no program of a later gang fits into an earlier one. The gangs take
//! turns ([`rounds`](crate::rounds)).
//!
//! *Source.* Section 4.2.2, listing 4.1, figure 4.2. The text builds one gang
//! after another and the listing one program after another; both give the
//! same gangs. On the workload of table 5.2 and 24 CPUs they are the six that
//! section 5.3 lists (which names the two gangs of twice twelve threads in the other order).
//!
//! *With `--fill` (ours).* CPUs that a gang leaves idle are lent, for this quantum, to
//! programs of other gangs as far as they fit, those first that would wait
//! longest until their next turn. They lose nothing by it: their own turn
//! comes as before. Programs that fit into many gaps get more than their
//! share, so it is a choice and not the default.

use cosched_core::Why;

use crate::rounds::{Gang, descending, first_fit};
use crate::unit::Unit;

/// First-fit decreasing.
pub(crate) fn cut(units: &[Unit], cpus: usize) -> Vec<Gang> {
    let mut gangs: Vec<(Gang, usize)> = Vec::new();
    for unit in descending(units, |unit| unit.threads as f64) {
        let threads = units[unit].threads;
        match gangs.iter_mut().find(|(_, taken)| taken + threads <= cpus) {
            Some((gang, taken)) => {
                gang.push((unit, Why::InGang));
                *taken += threads;
            }
            None => gangs.push((vec![(unit, Why::InGang)], threads)),
        }
    }
    gangs.into_iter().map(|(gang, _)| gang).collect()
}

/// Those of the others, in their order, that fit into the free CPUs.
pub(crate) fn fill(others: &[(usize, &Unit)], free: usize) -> Gang {
    first_fit(others.iter().copied(), free).into_iter().map(|unit| (unit, Why::Fills)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{TABLE_5_2, gang_names, table_5_2};

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
