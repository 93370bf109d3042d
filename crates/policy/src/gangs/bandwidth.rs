//! `bandwidth`: programs share a quantum that are predicted to slow each other down least.
//!
//! *Problem.* `greedy` ignores interference, and `cgreedy` only sorts programs by misses. Neither
//! knows whether two programs together take as long as one after the other, or hardly disturb each
//! other.
//!
//! *Idea.* Chapter 6 of the thesis names this as future work: measure the slowdowns of variants of
//! STREAM in pairs and triples, once per machine. From a program's own traffic with memory, and
//! that of its co-runners, the table predicts its slowdown ([`Slowdowns::of`]).
//!
//! *Algorithm (ours; the thesis gives none).* In a gang of programs with slowdowns s, every quantum
//! is worth the sum of 1 / s of them: as many programs as could run alone in that time. Gangs are
//! cut so that quanta are worth much on average:
//!
//! 1. The programs are taken by their thread counts, most first (equal ones in the order of the
//!    workload), as in `greedy`. Each joins the gang with room that gains most by it (or
//!    falls least). It opens a gang of its own instead if the average would then be higher,
//!    although all programs then wait for one quantum more.
//! 2. As long as it raises the average, one program moves to another gang, or two change places.
//!
//! The gangs take turns ([`rounds`](crate::gangs::rounds)). To keep decisions short, the first step
//! examines 64 gangs with room at most, and the second is for 48 programs or fewer.
//!
//! *Limits.* The table leaves out threads, caches, and where on the machine the traffic is: it is
//! made with one thread count and one placement. A program that arrives later without a figure
//! counts as the worst case: the highest traffic in the table.

pub(crate) mod table;

pub use table::{Slowdowns, SlowdownsError};

use cosched_core::{Wording, Words};
use serde::{Deserialize, Serialize};

use crate::common::reasons::ReasonSet;
use crate::common::unit::Unit;
use crate::descriptor::{Descriptor, Need, OF_GANGS, OptionGroup};
use crate::gangs::params::BandwidthParams as Limits;
use crate::gangs::rounds::{Gang, Rounds, descending};
use crate::kind::{Kind, Unfit};

/// A reason of `bandwidth`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum BandwidthReason {
    /// It loses the least in this gang, of the gangs with room. It is alone where a gang of its own
    /// is better.
    LeastLost {
        /// Its predicted slowdown there.
        slowdown: f64,
    },
}

impl Words for BandwidthReason {
    fn words(&self) -> Wording {
        let BandwidthReason::LeastLost { slowdown } = self;
        Wording::new("this gang loses the least speed by taking it in", "costs least")
            .figures(format!("predicted slowdown {slowdown:.2}"))
    }
}

/// A smaller gain is no gain: sums of many numbers depend on their order.
const LEAST: f64 = 1e-9;

/// Chapter 6.
pub(crate) const BANDWIDTH: Descriptor = Descriptor {
    options: &[OF_GANGS, &[OptionGroup::Slowdowns]],
    needs: &[Need::Traffic, Need::Slowdowns],
    reasons: &[ReasonSet::of::<BandwidthReason>()],
    params: &["gangs", "bandwidth"],
    ..Descriptor::of_gangs(
        "bandwidth",
        "taking turns; programs with the smallest predicted interference share a turn",
        |options| {
            let table = options.slowdowns.clone();
            let table = table.ok_or(Unfit::NoSlowdowns { policy: Kind::Bandwidth })?;
            let limits = options.params.bandwidth;
            let cut = move |units: &[_], cpus| cut(units, cpus, &table, limits);
            Ok(Box::new(Rounds::new(options, cut, None)))
        },
    )
};

/// Cuts units into gangs in which they are predicted to lose least.
fn cut(units: &[Unit], cpus: usize, table: &Slowdowns, limits: Limits) -> Vec<Gang> {
    let mut board = GangBuilder { units, cpus, table, limits, gangs: Vec::new() };
    for unit in descending(units, |unit| unit.threads as f64) {
        board.assign(unit);
    }
    while units.len() <= limits.units && board.improve() {}
    let board = &board;
    board.gangs.iter().map(|gang| board.reasoned(&gang.members)).collect()
}

struct GangBuilder<'a> {
    units: &'a [Unit],
    cpus: usize,
    table: &'a Slowdowns,
    limits: Limits,
    gangs: Vec<GangDraft>,
}

struct GangDraft {
    members: Vec<usize>,
    /// See [`GangBuilder::worth`].
    worth: f64,
}

impl GangBuilder<'_> {
    /// Puts a unit into the gang where the least is lost.
    fn assign(&mut self, unit: usize) {
        let with = |gang: &GangDraft| [&gang.members[..], &[unit]].concat();
        let room = self.gangs.iter().enumerate().filter(|(_, gang)| self.fits(&with(gang)));
        let gains = room
            .take(self.limits.gangs)
            .map(|(position, gang)| (position, self.worth(&with(gang)) - gang.worth));
        // Of equal gains, the first one counts.
        let best = gains.reduce(|best, other| if other.1 > best.1 { other } else { best });
        let (worth, count) = (self.total(), self.gangs.len() as f64);
        match best.filter(|(_, gain)| (worth + gain) / count >= (worth + 1.0) / (count + 1.0)) {
            Some((position, _)) => self.put(position, with(&self.gangs[position])),
            None => self.gangs.push(GangDraft { members: vec![unit], worth: 1.0 }),
        }
    }

    /// Moves one unit or swaps two, if that raises the average; returns whether it did.
    fn improve(&mut self) -> bool {
        for from in 0..self.gangs.len() {
            for to in 0..self.gangs.len() {
                if from != to && self.improve_two(from, to) {
                    return true;
                }
            }
        }
        false
    }

    fn improve_two(&mut self, from: usize, to: usize) -> bool {
        let (ours, theirs) = (self.gangs[from].members.clone(), self.gangs[to].members.clone());
        let (worth, count) = (self.total(), self.gangs.len());
        let rest = worth - self.gangs[from].worth - self.gangs[to].worth;
        for (leaves, back) in ours.iter().flat_map(|unit| {
            theirs.iter().map(Some).chain([None]).map(move |back| (*unit, back.copied()))
        }) {
            let exchanged = |gang: &[usize], out: Option<usize>, comes: Option<usize>| {
                let stay = gang.iter().copied().filter(|unit| Some(*unit) != out);
                stay.chain(comes).collect::<Vec<usize>>()
            };
            let (left, joined) =
                (exchanged(&ours, Some(leaves), back), exchanged(&theirs, back, Some(leaves)));
            if !self.fits(&left) || !self.fits(&joined) {
                continue;
            }
            let after = rest + self.worth(&left) + self.worth(&joined);
            let count_after = count - usize::from(left.is_empty());
            if after / count_after as f64 > worth / count as f64 + LEAST {
                self.put(to, joined);
                self.put(from, left);
                self.gangs.retain(|gang| !gang.members.is_empty());
                return true;
            }
        }
        false
    }

    fn put(&mut self, position: usize, members: Vec<usize>) {
        let worth = self.worth(&members);
        self.gangs[position] = GangDraft { members, worth };
    }

    fn fits(&self, members: &[usize]) -> bool {
        members.iter().map(|unit| self.units[*unit].threads).sum::<usize>() <= self.cpus
    }

    fn total(&self) -> f64 {
        self.gangs.iter().map(|gang| gang.worth).sum()
    }

    /// The worth of a quantum: the sum of its programs' speeds, each relative to alone.
    fn worth(&self, members: &[usize]) -> f64 {
        (0..members.len()).map(|position| 1.0 / self.slowdown(members, position)).sum()
    }

    fn slowdown(&self, members: &[usize], position: usize) -> f64 {
        let traffic = |unit: &usize| self.units[*unit].traffic.unwrap_or(self.table.most());
        let others: Vec<f64> =
            members[..position].iter().chain(&members[position + 1..]).map(traffic).collect();
        self.table.of(traffic(&members[position]), &others)
    }

    fn reasoned(&self, members: &[usize]) -> Gang {
        let reason = |position| {
            let slowdown = self.slowdown(members, position);
            BandwidthReason::LeastLost { slowdown }.into()
        };
        members.iter().enumerate().map(|(position, unit)| (*unit, reason(position))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::common::testkit::{cases, gang_slots, slowdowns, unit};

    /// Units of these thread counts and traffics.
    fn units(threads_and_traffic: &[(usize, f64)]) -> Vec<Unit> {
        let unit = |(slot, (threads, traffic)): (usize, &(usize, f64))| Unit {
            traffic: Some(*traffic),
            ..unit(slot as u16, *threads, None)
        };
        threads_and_traffic.iter().enumerate().map(unit).collect()
    }

    fn gangs(threads_and_traffic: &[(usize, f64)], cpus: usize) -> Vec<Vec<usize>> {
        gang_slots(&cut(&units(threads_and_traffic), cpus, &slowdowns(), Limits::DEFAULT))
    }

    #[test]
    fn a_program_joins_the_gang_in_which_least_is_lost() {
        // Each of the first two has room for 3 more threads; the third has much traffic, so it goes
        // to the quiet one.
        assert_eq!(gangs(&[(5, 10.0), (5, 0.0), (3, 10.0)], 8), [vec![0], vec![1, 2]]);
        assert_eq!(gangs(&[(5, 0.0), (5, 10.0), (3, 10.0)], 8), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn without_traffic_it_packs_like_greedy() {
        let quiet = [(4, 0.0), (3, 0.0), (2, 0.0), (5, 0.0)];
        assert_eq!(gangs(&quiet, 6), [vec![3], vec![0, 2], vec![1]]);
    }

    /// A program that would be slower together with the others than after them gets a gang of its
    /// own.
    #[test]
    fn programs_slower_together_get_gangs_of_their_own() {
        // Two with all of the traffic: each is slowed threefold, so together they are worth two
        // thirds.
        assert_eq!(gangs(&[(2, 10.0), (2, 10.0)], 8), [[0], [1]]);
        assert_eq!(gangs(&[(2, 10.0), (2, 2.0)], 8), [vec![0, 1]]);
    }

    /// Two programs with much traffic change places with quiet ones that came later.
    #[test]
    fn a_high_traffic_program_swaps_places_with_a_quiet_one() {
        // By threads, the two programs of 4 with much traffic share a gang before the quiet ones of
        // 3 come, as atax and gemver do in table 5.2.
        let gangs = gangs(&[(4, 8.0), (4, 8.0), (4, 0.0), (4, 0.0)], 8);
        assert_eq!(gangs.len(), 2);
        assert!(gangs.iter().all(|gang| gang.contains(&0) != gang.contains(&1)), "{gangs:?}");
    }

    #[test]
    fn no_gang_has_more_threads_than_there_are_cpus() {
        assert_eq!(gangs(&[(1, 0.0); 7], 4), [vec![0, 1, 2, 3], vec![4, 5, 6]]);
        assert_eq!(gangs(&[(3, 0.0); 3], 8), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_program_of_unknown_traffic_counts_as_the_highest() {
        let mut units = units(&[(5, 10.0), (5, 0.0), (3, 0.0)]);
        units[2].traffic = None;
        assert_eq!(
            gang_slots(&cut(&units, 8, &slowdowns(), Limits::DEFAULT)),
            [vec![0], vec![1, 2]]
        );
    }

    #[test]
    fn the_predicted_slowdown_is_reported_for_each_program() {
        let gangs = cut(&units(&[(4, 0.0), (4, 10.0)]), 8, &slowdowns(), Limits::DEFAULT);
        let reasons = gangs[0].iter().map(|(_, why)| why.read::<BandwidthReason>());
        let none = Some(BandwidthReason::LeastLost { slowdown: 1.0 });
        assert_eq!(reasons.collect::<Vec<_>>(), [none, none]);
    }

    proptest! {
        #![proptest_config(cases(300))]

        /// Each program is in exactly one gang. A quantum of a gang is worth no less than one of a
        /// single program.
        #[test]
        fn every_program_is_in_a_gang_that_is_worth_its_quantum(
            programs in prop::collection::vec((1usize..=8, 0.0..12.0), 1..20),
        ) {
            let units = units(&programs);
            let gangs = gang_slots(&cut(&units, 8, &slowdowns(), Limits::DEFAULT));
            let mut assigned = gangs.concat();
            assigned.sort_unstable();
            prop_assert_eq!(assigned, (0..units.len()).collect::<Vec<_>>());
            let table = slowdowns();
            let (limits, gangs_so_far) = (Limits::DEFAULT, Vec::new());
            let board =
                GangBuilder { units: &units, cpus: 8, table: &table, limits, gangs: gangs_so_far };
            prop_assert!(gangs.iter().all(|gang| board.fits(gang)));
            let worth: f64 = gangs.iter().map(|gang| board.worth(gang)).sum();
            prop_assert!(worth >= gangs.len() as f64 * (1.0 - LEAST), "{worth} in {gangs:?}");
        }
    }
}
