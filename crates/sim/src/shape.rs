//! The groups of CPUs that share something: lists for placing and pricing, made once.

use cosched_core::{Level, Topology};

/// The groups of a machine. CPUs are named by their positions in the topology.
#[derive(Debug)]
pub(crate) struct Shape {
    /// For each CPU, its group at each level.
    groups: Vec<[u16; 4]>,
    /// For each level and group, its CPUs.
    cpus: [Vec<Vec<u16>>; 4],
    /// For each level except the narrowest, and each group, its groups at the next level.
    inner: [Vec<Vec<u16>>; 3],
    all: Vec<u16>,
    /// The groups of the widest level.
    packages: Vec<u16>,
}

impl Shape {
    pub(crate) fn new(topology: &Topology) -> Shape {
        let groups: Vec<[u16; 4]> = topology.cpus().iter().map(|cpu| cpu.groups).collect();
        let count = |level: Level| {
            groups.iter().map(|of| usize::from(of[level as usize]) + 1).max().unwrap_or(0)
        };
        let mut cpus = Level::ALL.map(|level| vec![Vec::new(); count(level)]);
        let mut inner = [0, 1, 2].map(|level: usize| vec![Vec::new(); count(Level::ALL[level])]);
        for (cpu, of) in groups.iter().enumerate() {
            for level in Level::ALL {
                cpus[level as usize][usize::from(of[level as usize])].push(cpu as u16);
            }
            for (level, inner) in inner.iter_mut().enumerate() {
                let list: &mut Vec<u16> = &mut inner[usize::from(of[level])];
                if !list.contains(&of[level + 1]) {
                    list.push(of[level + 1]);
                }
            }
        }
        let all = (0..groups.len() as u16).collect();
        let packages = (0..count(Level::Package) as u16).collect();
        Shape { groups, cpus, inner, all, packages }
    }

    pub(crate) fn group(&self, cpu: usize, level: Level) -> usize {
        usize::from(self.groups[cpu][level as usize])
    }

    pub(crate) fn cpus(&self, level: Level, group: usize) -> &[u16] {
        &self.cpus[level as usize][group]
    }

    /// The CPUs that share a group with a CPU, and itself; `None`: the machine.
    pub(crate) fn around(&self, cpu: usize, level: Option<Level>) -> &[u16] {
        match level {
            Some(level) => self.cpus(level, self.group(cpu, level)),
            None => &self.all,
        }
    }

    /// The groups directly inside a group, or the packages of the machine; with their level.
    pub(crate) fn inside(&self, of: Option<(Level, usize)>) -> Option<(Level, &[u16])> {
        match of {
            None => Some((Level::Package, &self.packages)),
            Some((Level::Core, _)) => None,
            Some((level, group)) => {
                let level = level as usize;
                Some((Level::ALL[level + 1], &self.inner[level][group]))
            }
        }
    }
}
