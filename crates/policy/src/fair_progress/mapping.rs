//! Assigns CPUs: traffic is spread evenly over the caches.
//!
//! Contention for a shared cache cannot be read from simple counters, so it is kept small: programs
//! of much traffic go to different caches (DIO, distributed intensity online). In training, the
//! CPUs that share a last-level cache with the trained program stay idle, as far as there are
//! enough others.
//!
//! *Source.* The FPS paper, section 4.6. Ours: of equally loaded caches, the one in the less loaded
//! package counts, and then the CPU that the program had last. Programs of several CPUs are placed
//! first, by their [placement](mod@crate::gangs::placement).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cosched_core::{CpuSet, Level, Topology};

use crate::gangs::placement::{Placement, place};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MappedProgram {
    /// How many CPUs it requests.
    pub(super) cpus: usize,
    /// Its traffic, of all its CPUs.
    pub(super) traffic: f64,
    /// The CPUs that it had last.
    pub(super) last: CpuSet,
}

/// The CPUs of each program, in the order of `members`, from those of the `run` that are `free`;
/// `None` where there are not enough. `trained` is the position of the one that is to have a cache
/// for itself.
pub(super) fn places(
    members: &[MappedProgram],
    run: &CpuSet,
    free: CpuSet,
    trained: Option<usize>,
    placement: Placement,
    topology: &Topology,
) -> Vec<Option<CpuSet>> {
    let mut board =
        PlacedPrograms { topology, free, llcs: BTreeMap::new(), packages: BTreeMap::new() };
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by(|&a, &b| {
        let rank = |i: usize| (Some(i) != trained, Reverse(members[i].cpus));
        rank(a).cmp(&rank(b)).then(members[b].traffic.total_cmp(&members[a].traffic))
    });
    let mut found = vec![None; members.len()];
    let mut avoided = CpuSet::EMPTY;
    for i in order {
        let member = &members[i];
        let kept_apart = board.free.difference(&avoided);
        let open = if kept_apart.len() >= member.cpus { kept_apart } else { board.free };
        let cpus = match member.cpus {
            1 => board.lightest(&open, &member.last).map(|cpu| CpuSet::from_iter([cpu])),
            count => place(topology, run, &open, count, placement, Some(&member.last)),
        };
        if let Some(cpus) = cpus {
            board.give(&cpus, member.traffic);
            if Some(i) == trained {
                avoided = neighbours(topology, &cpus);
            }
        }
        found[i] = cpus;
    }
    found
}

/// All CPUs behind the last-level caches of these.
fn neighbours(topology: &Topology, cpus: &CpuSet) -> CpuSet {
    let llcs: Vec<u16> =
        cpus.iter().filter_map(|id| topology.cpu(id)).map(|cpu| cpu.group(Level::Llc)).collect();
    let is_near = |cpu: &&cosched_core::Cpu| llcs.contains(&cpu.group(Level::Llc));
    topology.cpus().iter().filter(is_near).map(|cpu| cpu.id).collect()
}

struct PlacedPrograms<'a> {
    topology: &'a Topology,
    free: CpuSet,
    /// Traffic by the number of the cache or package.
    llcs: BTreeMap<u16, f64>,
    packages: BTreeMap<u16, f64>,
}

impl PlacedPrograms<'_> {
    fn lightest(&self, open: &CpuSet, last: &CpuSet) -> Option<usize> {
        let load = |of: &BTreeMap<u16, f64>, group| of.get(&group).copied().unwrap_or(0.0);
        let cpus = open.iter().filter_map(|id| self.topology.cpu(id));
        let ranked = cpus.map(|cpu| {
            let llc = load(&self.llcs, cpu.group(Level::Llc));
            let package = load(&self.packages, cpu.group(Level::Package));
            (llc, package, !last.contains(cpu.id), cpu.id)
        });
        let best = ranked.min_by(|a, b| {
            let by_load = a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
            by_load.then((a.2, a.3).cmp(&(b.2, b.3)))
        });
        best.map(|(_, _, _, cpu)| cpu)
    }

    fn give(&mut self, cpus: &CpuSet, traffic: f64) {
        self.free = self.free.difference(cpus);
        let each = traffic / cpus.len() as f64;
        for cpu in cpus.iter().filter_map(|id| self.topology.cpu(id)) {
            *self.llcs.entry(cpu.group(Level::Llc)).or_default() += each;
            *self.packages.entry(cpu.group(Level::Package)).or_default() += each;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(traffic: f64) -> MappedProgram {
        MappedProgram { cpus: 1, traffic, last: CpuSet::EMPTY }
    }

    /// On two packages of two caches for two CPUs each: 0 and 1 share a cache.
    fn placed(members: &[MappedProgram], trained: Option<usize>) -> Vec<Vec<usize>> {
        let topology = Topology::regular(2, 2, 1, 2, 1);
        let all = topology.all();
        places(members, &all, all, trained, Placement::Packed, &topology)
            .into_iter()
            .map(|cpus| cpus.map_or(Vec::new(), |cpus| cpus.iter().collect()))
            .collect()
    }

    #[test]
    fn programs_of_much_traffic_go_to_different_caches() {
        let members = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0].map(member);
        let caches: Vec<usize> = placed(&members, None).iter().map(|cpus| cpus[0] / 2).collect();
        // The four programs with most traffic are apart, and the one with least shares a cache with
        // the one with most.
        let mut loud: Vec<usize> = [0, 2, 4, 6].map(|i| caches[i]).into();
        loud.sort_unstable();
        assert_eq!(loud, [0, 1, 2, 3]);
        assert_eq!(caches[0], caches[1]);
    }

    #[test]
    fn two_programs_go_to_different_packages() {
        let placed = placed(&[member(5.0), member(4.0)], None);
        assert_eq!((placed[0][0] / 4, placed[1][0] / 4), (0, 1));
    }

    /// The other CPU of a trained program's cache stays idle while there are other CPUs.
    #[test]
    fn the_cpu_next_to_a_trained_program_stays_idle() {
        let members = [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0].map(member);
        let of_trained = |n: usize| {
            let placed = placed(&members[..n], Some(0));
            let cache = placed[0][0] / 2;
            placed[1..].iter().filter(|cpus| cpus[0] / 2 == cache).count()
        };
        assert_eq!(of_trained(7), 0);
        let eight: Vec<MappedProgram> = members.into_iter().chain([member(0.0)]).collect();
        let placed = placed(&eight, Some(0));
        assert!(placed.iter().all(|cpus| cpus.len() == 1), "{placed:?}");
    }

    #[test]
    fn of_equal_cpus_the_last_one_is_kept() {
        let last = MappedProgram { last: CpuSet::from_iter([5]), ..member(1.0) };
        assert_eq!(placed(&[last], None), [[5]]);
    }

    /// Programs of several CPUs get CPUs next to each other, and the other programs are placed
    /// around them.
    #[test]
    fn programs_of_several_cpus_are_placed_first() {
        let wide = MappedProgram { cpus: 4, ..member(4.0) };
        let placed = placed(&[member(3.0), wide], None);
        assert_eq!(placed[1].len(), 4);
        assert!(!placed[1].contains(&placed[0][0]));
        assert_ne!(placed[0][0] / 4, placed[1][0] / 4, "the other package");
    }

    #[test]
    fn a_program_that_does_not_fit_gets_no_cpus() {
        let wide = MappedProgram { cpus: 9, ..member(4.0) };
        assert_eq!(placed(&[wide], None), [Vec::<usize>::new()]);
    }
}
