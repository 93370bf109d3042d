//! `bandwidth`: programs that are predicted to slow each other down least share a quantum.
//!
//! *Problem.* `greedy` does not ask what programs do to each other, and `cgreedy` only sorts them: neither knows
//! whether two programs beside each other take as long as one after the other, or hardly notice.
//!
//! *Idea.* Chapter 6 of the thesis, where it is future work: measure what variants of STREAM do to each other
//! in pairs and triples, once per machine. From a program's own traffic with memory, and that of
//! its co-runners, the table tells how much it would be slowed ([`Slowdowns::of`]).
//!
//! *Algorithm (ours; the thesis gives none).* In a gang of programs with slowdowns s, every quantum is worth the
//! sum of 1 / s of them: as many programs as could run alone in that time. The programs by their
//! thread counts, most first (equal ones in the order of the workload), as in `greedy`. Each looks at the gangs with
//! room for it and joins the one in which that sum then grows most (or falls least);
//! it opens one of its own instead if the mean worth of a quantum would then be higher, although
//! everybody has to wait for one quantum more. A gang has at most three programs, as the table has. The gangs take turns
//! ([`rounds`](crate::rounds)).
//!
//! *What it does not see.* Threads, caches, and where on the machine the traffic is: the table is made
//! with one thread count and one placement. For a program that turns up later without a figure we assume the
//! worst: the highest traffic in the table.

mod table;

pub use table::{Slowdowns, SlowdownsError};

use cosched_core::Why;

use crate::rounds::{Gang, descending};
use crate::unit::Unit;

/// No gang has more programs: the table ends with triples.
const MOST: usize = 3;

/// Cuts units into gangs in which they are predicted to lose least.
pub(crate) fn cut(units: &[Unit], cpus: usize, table: &Slowdowns) -> Vec<Gang> {
    let mut gangs: Vec<Draft> = Vec::new();
    for unit in descending(units, |unit| unit.threads as f64) {
        let (threads, traffic) = (units[unit].threads, units[unit].traffic.unwrap_or(table.most()));
        let gains = gangs
            .iter()
            .enumerate()
            .filter(|(_, gang)| gang.traffic.len() < MOST && gang.threads + threads <= cpus)
            .map(|(position, gang)| (position, gang.joined_by(traffic, table) - gang.worth(table)));
        // Of equal ones the first.
        let best = gains.reduce(|best, other| if other.1 > best.1 { other } else { best });
        let (count, worth) =
            (gangs.len() as f64, gangs.iter().map(|gang| gang.worth(table)).sum::<f64>());
        let joins =
            best.filter(|(_, gain)| (worth + gain) / count >= (worth + 1.0) / (count + 1.0));
        let position = joins.map_or(gangs.len(), |(position, _)| position);
        if joins.is_none() {
            gangs.push(Draft::default());
        }
        let gang = &mut gangs[position];
        gang.units.push(unit);
        gang.traffic.push(traffic);
        gang.threads += threads;
    }
    gangs.into_iter().map(|gang| gang.finished(table)).collect()
}

/// A gang in the making.
#[derive(Default)]
struct Draft {
    units: Vec<usize>,
    /// Of each of its units, GB/s.
    traffic: Vec<f64>,
    threads: usize,
}

impl Draft {
    /// What a quantum of it is worth: the sum of the speeds of its programs, each relative to alone.
    fn worth(&self, table: &Slowdowns) -> f64 {
        worth(&self.traffic, table)
    }

    fn joined_by(&self, traffic: f64, table: &Slowdowns) -> f64 {
        worth(&[&self.traffic[..], &[traffic]].concat(), table)
    }

    fn finished(self, table: &Slowdowns) -> Gang {
        let slowdowns = (0..self.units.len()).map(|member| slowdown(&self.traffic, member, table));
        let reasons = slowdowns.map(|slowdown| Why::LeastLost { slowdown });
        self.units.iter().copied().zip(reasons).collect()
    }
}

fn worth(traffic: &[f64], table: &Slowdowns) -> f64 {
    (0..traffic.len()).map(|member| 1.0 / slowdown(traffic, member, table)).sum()
}

fn slowdown(traffic: &[f64], member: usize, table: &Slowdowns) -> f64 {
    let others = [&traffic[..member], &traffic[member + 1..]].concat();
    table.of(traffic[member], &others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{gang_slots, slowdowns, unit};

    /// Units of these thread counts and traffics.
    fn units(threads_and_traffic: &[(usize, f64)]) -> Vec<Unit> {
        let unit = |(slot, (threads, traffic)): (usize, &(usize, f64))| Unit {
            traffic: Some(*traffic),
            ..unit(slot as u16, *threads, None)
        };
        threads_and_traffic.iter().enumerate().map(unit).collect()
    }

    fn gangs(threads_and_traffic: &[(usize, f64)], cpus: usize) -> Vec<Vec<usize>> {
        gang_slots(&cut(&units(threads_and_traffic), cpus, &slowdowns()))
    }

    #[test]
    fn a_program_joins_the_gang_in_which_least_is_lost() {
        // 4 of the first two fit beside each; the third brings much traffic, so it goes to the quiet one.
        assert_eq!(gangs(&[(5, 10.0), (5, 0.0), (3, 10.0)], 8), [vec![0], vec![1, 2]]);
        assert_eq!(gangs(&[(5, 0.0), (5, 10.0), (3, 10.0)], 8), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn where_traffic_does_not_matter_it_packs_as_greedy_does() {
        let quiet = [(4, 0.0), (3, 0.0), (2, 0.0), (5, 0.0)];
        assert_eq!(gangs(&quiet, 6), [vec![3], vec![0, 2], vec![1]]);
    }

    #[test]
    fn who_would_be_slower_together_than_one_after_another_gets_a_gang_of_its_own() {
        // Two with all of the traffic: each is slowed threefold, so together they are worth two thirds.
        assert_eq!(gangs(&[(2, 10.0), (2, 10.0)], 8), [[0], [1]]);
        assert_eq!(gangs(&[(2, 10.0), (2, 2.0)], 8), [vec![0, 1]]);
    }

    #[test]
    fn a_gang_has_at_most_three_programs_and_never_more_threads_than_cpus() {
        assert_eq!(gangs(&[(1, 0.0); 7], 8), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
        assert_eq!(gangs(&[(3, 0.0); 3], 8), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_program_without_a_figure_counts_as_one_with_the_most_traffic() {
        let mut units = units(&[(5, 10.0), (5, 0.0), (3, 0.0)]);
        units[2].traffic = None;
        assert_eq!(gang_slots(&cut(&units, 8, &slowdowns())), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn everybody_is_told_by_how_much_it_is_predicted_to_be_slowed() {
        let gangs = cut(&units(&[(4, 0.0), (4, 10.0)]), 8, &slowdowns());
        let told: Vec<Why> = gangs[0].iter().map(|(_, why)| *why).collect();
        assert_eq!(told, [Why::LeastLost { slowdown: 1.0 }, Why::LeastLost { slowdown: 1.0 }]);
    }
}
