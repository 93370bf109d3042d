//! Which CPUs of a machine share a core, a cache, a package, a memory node.
//!
//! Sharing is given per level by group numbers: two CPUs with the same number at a [`Level`] share
//! a cache or package of this level. Levels nest in the order of [`Level::ALL`]. Where a machine
//! lacks one (no L2 shared between cores, for example), each group of it equals the group below. A
//! NUMA node may hold a whole package or a part of one. It is kept outside the nest, since either
//! order exists.

use crate::cpuset::CpuSet;

/// A level of sharing, from the widest to the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A socket.
    Package,
    /// CPUs behind one last-level cache; several per package on some machines.
    Llc,
    /// CPUs behind one second-level cache; often a single core.
    L2,
    /// SMT siblings.
    Core,
}

impl Level {
    /// Every level, widest first.
    pub const ALL: [Level; 4] = [Level::Package, Level::Llc, Level::L2, Level::Core];
}

/// One CPU as the kernel schedules it (an SMT sibling where the machine has them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The kernel's number.
    pub id: usize,
    /// Machine-wide group number per level, in the order of [`Level::ALL`].
    pub groups: [u16; 4],
    /// NUMA node number.
    pub node: u16,
    /// Relative speed, 1024 for the fastest CPUs (Linux' `cpu_capacity`).
    pub capacity: u16,
}

impl Cpu {
    /// The number of the group that the CPU belongs to at a level.
    pub fn group(&self, level: Level) -> u16 {
        self.groups[level as usize]
    }
}

/// A machine's CPUs in ascending order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Topology {
    cpus: Vec<Cpu>,
}

impl Topology {
    /// A topology of the given CPUs, in any order.
    pub fn new(mut cpus: Vec<Cpu>) -> Topology {
        cpus.sort_by_key(|cpu| cpu.id);
        Topology { cpus }
    }

    /// A regular machine, CPUs numbered package by package as hwloc's logical indexes:
    /// `packages` x `llcs` per package x `l2s` per LLC x `cores` per L2 x `smt` threads per core,
    /// one NUMA node per package, all CPUs equally fast.
    pub fn regular(packages: u16, llcs: u16, l2s: u16, cores: u16, smt: u16) -> Topology {
        let total = packages * llcs * l2s * cores * smt;
        let cpu = |id: u16| {
            let core = id / smt;
            let l2 = core / cores;
            let llc = l2 / l2s;
            let package = llc / llcs;
            Cpu {
                id: usize::from(id),
                groups: [package, llc, l2, core],
                node: package,
                capacity: 1024,
            }
        };
        Topology { cpus: (0..total).map(cpu).collect() }
    }

    /// The CPUs in ascending order of their numbers.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The CPU with the given number.
    pub fn cpu(&self, id: usize) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok().map(|i| &self.cpus[i])
    }

    /// All CPU numbers.
    pub fn all(&self) -> CpuSet {
        self.cpus.iter().map(|cpu| cpu.id).collect()
    }

    /// How many groups the given CPUs span at a level.
    pub fn spanned(&self, cpus: &CpuSet, level: Level) -> usize {
        let mut groups: Vec<u16> =
            cpus.iter().filter_map(|id| self.cpu(id)).map(|cpu| cpu.group(level)).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.len()
    }

    /// The NUMA nodes of the given CPUs, ascending.
    pub fn nodes(&self, cpus: &CpuSet) -> Vec<u16> {
        let mut nodes: Vec<u16> =
            cpus.iter().filter_map(|id| self.cpu(id)).map(|cpu| cpu.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dunnington_has_four_packages_of_six_cores_with_an_l2_per_two() {
        let machine = Topology::regular(4, 1, 3, 2, 1);
        assert_eq!(machine.cpus().len(), 24);
        assert_eq!(machine.spanned(&machine.all(), Level::Package), 4);
        assert_eq!(machine.spanned(&CpuSet::first(6), Level::L2), 3);
        assert_eq!(machine.spanned(&CpuSet::first(7), Level::Package), 2);
    }

    #[test]
    fn smt_siblings_share_a_core() {
        let machine = Topology::regular(1, 1, 4, 1, 2);
        assert_eq!(machine.spanned(&CpuSet::first(2), Level::Core), 1);
        assert_eq!(machine.spanned(&CpuSet::first(3), Level::Core), 2);
    }
}
