//! Threads of one program stay on cores of one kind where that does not make them slower.
//!
//! *Problem.* Some processors have cores of several kinds. The fastest free CPUs are often of two
//! kinds. A program with barriers waits for its slowest thread, so its fast CPUs wait as well, and
//! other programs could have used them.
//!
//! *Idea.* Compare the CPUs that a program would get of each kind alone, by the speed of its
//! slowest thread.
//!
//! *Algorithm.* CPUs are of one kind if the slowest has at least [`Params::kind`] of the speed of
//! the fastest: single cores of a kind may be a little faster than others. A CPU's speed is its
//! capacity. If the program uses a sibling of its core too, it is [`Params::smt_share`] of that. If
//! another program uses one, that share counts twice, because the other program is slowed as well.
//! The kind with the fastest slowest thread is chosen. Between equal ones it is the kind of the
//! faster CPUs. CPUs of several kinds are used only if no kind has enough CPUs, or if their slowest
//! thread is faster by [`Params::mixed`]. That is so where siblings would have to share cores. A
//! program of one thread gets the fastest CPU.
//!
//! *Costs.* A program that divides its work by the speed of its threads would use CPUs of all kinds
//! better. It is not known which programs do so.
//!
//! *Source.* Ours.

use std::cmp::Reverse;

use cosched_core::{CpuSet, Level, Topology};

use super::{Placement, place};
use crate::gangs::params::Params;

/// Like [`place`], on CPUs of one kind where the program fits there.
pub(crate) fn place_on_one_kind(
    topology: &Topology,
    cpus: &CpuSet,
    free: &CpuSet,
    threads: usize,
    placement: Placement,
    prefer: Option<&CpuSet>,
    params: &Params,
) -> Option<CpuSet> {
    let mixed = place(topology, cpus, free, threads, placement, prefer)?;
    let kinds = kinds(topology, free, params);
    if threads < 2 || kinds.len() < 2 {
        return Some(mixed);
    }
    let others = cpus.difference(free);
    let speed = |chosen: &CpuSet| slowest(topology, chosen, &others, params);
    let fitting = |kind| place(topology, cpus, kind, threads, placement, prefer);
    let of_kind = kinds.iter().filter_map(fitting);
    let faster = |best: CpuSet, other| if speed(&other) > speed(&best) { other } else { best };
    let best = of_kind.reduce(faster);
    Some(best.filter(|best| speed(&mixed) <= params.mixed * speed(best)).unwrap_or(mixed))
}

/// The free CPUs by kind, the fastest first.
fn kinds(topology: &Topology, free: &CpuSet, params: &Params) -> Vec<CpuSet> {
    let mut cpus: Vec<_> = topology.cpus().iter().filter(|cpu| free.contains(cpu.id)).collect();
    cpus.sort_by_key(|cpu| Reverse(cpu.capacity));
    let mut kinds: Vec<(f64, CpuSet)> = Vec::new();
    for cpu in cpus {
        let capacity = f64::from(cpu.capacity);
        match kinds.last_mut() {
            Some((fastest, kind)) if capacity >= params.kind * *fastest => {
                kind.insert(cpu.id);
            }
            _ => kinds.push((capacity, CpuSet::from_iter([cpu.id]))),
        }
    }
    kinds.into_iter().map(|(_, kind)| kind).collect()
}

/// The speed of the slowest thread on these CPUs. Those of `others` have threads of other programs.
fn slowest(topology: &Topology, chosen: &CpuSet, others: &CpuSet, params: &Params) -> f64 {
    let cpus = || topology.cpus().iter();
    let speeds = cpus().filter(|cpu| chosen.contains(cpu.id)).map(|cpu| {
        let core = cpu.group(Level::Core);
        let siblings = || cpus().filter(|one| one.id != cpu.id && one.group(Level::Core) == core);
        let share = match () {
            () if siblings().any(|one| others.contains(one.id)) => params.smt_share.powi(2),
            () if siblings().any(|one| chosen.contains(one.id)) => params.smt_share,
            () => 1.0,
        };
        f64::from(cpu.capacity) * share
    });
    speeds.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use cosched_core::Cpu;

    use super::super::tests::{cpus, hybrid};
    use super::*;

    const PARAMS: Params = Params::DEFAULT;

    fn on(machine: &Topology, threads: usize) -> String {
        from(machine, threads, &machine.all())
    }

    fn from(machine: &Topology, threads: usize, free: &CpuSet) -> String {
        of(machine, threads, &machine.all(), free)
    }

    fn of(machine: &Topology, threads: usize, cpus: &CpuSet, free: &CpuSet) -> String {
        let packed = Placement::Packed;
        place_on_one_kind(machine, cpus, free, threads, packed, None, &PARAMS).unwrap().to_string()
    }

    /// Four fast cores with siblings are CPUs 0 to 7, and eight slow cores are CPUs 8 to 15.
    #[test]
    fn a_gang_stays_on_one_kind_where_it_fits() {
        let slow = hybrid(600);
        for (threads, expected) in [(1, "0"), (4, "0,2,4,6"), (6, "0-4,6"), (8, "0-7")] {
            assert_eq!(on(&slow, threads), expected, "half a fast core is faster than a slow one");
        }
        let less_slow = hybrid(700);
        for (threads, expected) in [(1, "0"), (4, "0,2,4,6"), (6, "8-13"), (8, "8-15")] {
            assert_eq!(on(&less_slow, threads), expected, "a slow core is faster than half a core");
        }
        for machine in [&slow, &less_slow] {
            assert_eq!(on(machine, 13), "0-2,4,6,8-15", "it fits on no kind");
        }
    }

    #[test]
    fn cpus_of_others_count_as_busy() {
        // Another program has a sibling of each fast core.
        assert_eq!(from(&hybrid(600), 4, &cpus("1,3,5,7,8-15")), "8-11");
        // Two fast cores are free.
        let free = cpus("4-15");
        assert_eq!(from(&hybrid(600), 2, &free), "4,6");
        assert_eq!(from(&hybrid(700), 4, &free), "8-11");
    }

    /// The run has one sibling of each fast core. No program of it can use the other one.
    #[test]
    fn siblings_outside_of_the_run_do_not_count_as_busy() {
        let run = cpus("1,3,5,7,8-15");
        assert_eq!(of(&hybrid(600), 4, &run, &run), "1,3,5,7");
        assert_eq!(of(&hybrid(600), 3, &run, &run.difference(&cpus("1"))), "3,5,7");
    }

    /// Both kinds have siblings, as on processors with dense cores of the same design.
    #[test]
    fn several_kinds_are_better_than_shared_cores() {
        let cpu = |id: u16| Cpu {
            id: usize::from(id),
            groups: [0, 0, id / 2, id / 2],
            node: 0,
            capacity: if id < 4 { 1024 } else { 700 },
        };
        let machine = Topology::new((0..12).map(cpu).collect());
        assert_eq!(on(&machine, 4), "4,6,8,10", "a dense core is faster than half a core");
        assert_eq!(on(&machine, 6), "0,2,4,6,8,10");
    }

    #[test]
    fn favoured_cores_are_no_kind_of_their_own() {
        let cpu = |id: usize| Cpu {
            id,
            groups: [0, 0, id as u16, id as u16],
            node: 0,
            capacity: [1024, 1000, 980, 960, 600, 590, 600, 600][id],
        };
        let machine = Topology::new((0..8).map(cpu).collect());
        assert_eq!((on(&machine, 4), on(&machine, 5)), ("0-3".into(), "0-4".into()));
        assert_eq!(from(&machine, 3, &cpus("2-7")), "4,6-7", "two fast CPUs are too few");
    }
}
