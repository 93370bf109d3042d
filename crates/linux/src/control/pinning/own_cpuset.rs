//! A program's own cpuset: its CPUs and memory nodes.
//!
//! The thesis binds a program to the memory nodes of its cores, too (section 4.3.3). Version 1
//! leaves pages where they are when nodes change. Version 2 moves them, which would cost more than
//! a quantum where gangs change places. In version 2 a program may therefore use the memory of all
//! nodes on which it has had CPUs: new pages lie near, and none is ever moved. A program that is
//! released inherits the nodes of its parent again. The cpuset is one of ours: a process that
//! leaves it, when the run ends or is undone, has its own nodes back.

use std::collections::BTreeSet;

use cosched_core::{CpuSet, Refusal};

use crate::cgroup::{self, Dir, Version};

#[derive(Debug)]
pub(crate) struct OwnCpuset {
    dir: Dir,
    /// The memory nodes on which the program may have pages.
    had: BTreeSet<u16>,
}

impl OwnCpuset {
    pub(super) fn new(dir: Dir) -> OwnCpuset {
        OwnCpuset { dir, had: BTreeSet::new() }
    }

    /// Binds the program to these CPUs, which have these memory nodes; without CPUs it may run
    /// everywhere.
    pub(super) fn bind(
        &mut self,
        cpus: Option<CpuSet>,
        everywhere: &CpuSet,
        nodes: Option<&[u16]>,
    ) -> Result<(), Refusal> {
        self.had.extend(nodes.into_iter().flatten());
        let nodes = match (self.dir.version(), cpus) {
            (Version::V1, _) => nodes.map(<[u16]>::to_vec),
            (Version::V2, None) => nodes.map(|_| Vec::new()),
            (Version::V2, Some(_)) => nodes.map(|_| self.had.iter().copied().collect()),
        };
        let cpus = cpus.as_ref().unwrap_or(everywhere);
        cgroup::bind_to(&self.dir, cpus, nodes.as_deref()).map_err(|error| {
            match error.is_denied() {
                true => Refusal::NotPermitted,
                false => Refusal::NoCpuLeft,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The memory nodes after each step: CPUs, or everything; and the nodes of these.
    fn mems(version: Version, steps: &[(Option<usize>, &[u16])]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::new(root.path(), version).create_child("job").unwrap();
        for file in ["cpuset.cpus", "cpuset.mems"] {
            fs::write(dir.path().join(file), "").unwrap();
            fs::write(root.path().join(file), "0-1\n").unwrap();
        }
        let mut cpuset = OwnCpuset::new(dir.clone());
        let step = |(cpus, nodes): &(Option<usize>, &[u16])| {
            // Files of the kernel are not written in part.
            fs::write(dir.path().join("cpuset.mems"), "").unwrap();
            let everywhere = CpuSet::first(8);
            cpuset.bind(cpus.map(CpuSet::first), &everywhere, Some(nodes)).unwrap();
            dir.read("cpuset.mems").unwrap().trim().to_owned()
        };
        steps.iter().map(step).collect()
    }

    /// No node is taken away on which pages may lie, so version 2 moves none.
    #[test]
    fn version_2_keeps_the_nodes_that_a_program_has_had() {
        let steps: [(Option<usize>, &[u16]); 4] =
            [(Some(2), &[1]), (Some(4), &[0]), (None, &[0, 1]), (Some(2), &[1])];
        assert_eq!(mems(Version::V2, &steps), ["1", "0,1", "", "0,1"]);
        assert_eq!(mems(Version::V1, &steps), ["1", "0", "0,1", "1"]);
    }

    #[test]
    fn a_machine_with_one_node_binds_no_memory() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::new(root.path(), Version::V2).create_child("job").unwrap();
        fs::write(dir.path().join("cpuset.cpus"), "").unwrap();
        let mut cpuset = OwnCpuset::new(dir.clone());
        cpuset.bind(Some(CpuSet::first(1)), &CpuSet::first(2), None).unwrap();
        assert!(!dir.path().join("cpuset.mems").exists());
    }
}
