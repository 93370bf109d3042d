//! What counts as a socket: CPUs between which a lock travels fast.
//!
//! The slides mean packages. On today's machines another distance may matter: between the chiplets
//! of one package, each with a last-level cache of its own, or between memory nodes. A user with
//! better knowledge of the machine names groups of CPUs.

use std::collections::BTreeMap;

use cosched_core::format::cpus;
use cosched_core::{Cpu, CpuSet, Level, Topology};

use crate::common::unknown::by_name;

/// How CPUs form sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sockets {
    /// By the widest of packages, memory nodes and last-level caches of which there are several.
    #[default]
    Widest,
    /// By what CPUs share.
    By(GroupBy),
    /// The groups that the user named.
    Named(Vec<CpuSet>),
}

/// What CPUs of a socket share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// A package.
    Package,
    /// A last-level cache.
    Llc,
    /// Memory.
    Numa,
}

impl GroupBy {
    fn group(self, cpu: &Cpu) -> u16 {
        match self {
            GroupBy::Package => cpu.group(Level::Package),
            GroupBy::Llc => cpu.group(Level::Llc),
            GroupBy::Numa => cpu.node,
        }
    }

    /// The usable CPUs, grouped by what they share.
    fn groups(self, topology: &Topology, usable: &CpuSet) -> Vec<CpuSet> {
        let mut groups: BTreeMap<u16, CpuSet> = BTreeMap::new();
        for cpu in topology.cpus().iter().filter(|cpu| usable.contains(cpu.id)) {
            groups.entry(self.group(cpu)).or_default().insert(cpu.id);
        }
        groups.into_values().collect()
    }
}

by_name!(GroupBy, "group", [Package: "package", Llc: "llc", Numa: "numa"]);

/// Why there are no sockets to shuffle between.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketsError {
    /// A part of a list of groups is no CPU and no range.
    #[error(
        "'{0}' is not a group of CPUs; write groups separated by commas, each a CPU, a range, or \
         several joined by '+', such as 0-3,4-7 or 0-3+8-11,4-7+12-15"
    )]
    Malformed(String),
    /// There is one group alone.
    #[error("there has to be more than one group: name two at least, such as 0-3,4-7")]
    OneNamed,
    /// A CPU is in two groups.
    #[error("CPU {0} is in two groups: leave it out of one")]
    Twice(usize),
    /// A group has CPUs that programs may not use here.
    #[error("--groups: {} may not be used here; choose from {usable}", cpus(foreign))]
    Foreign {
        /// These CPUs.
        foreign: Box<CpuSet>,
        /// The CPUs that may be used.
        usable: Box<CpuSet>,
    },
    /// There is only one of the requested kind.
    #[error(
        "--group-by {by}: programs may use {} here, all of one {by}: that makes one group, and it \
         takes two. Name groups of CPUs by --groups, such as 0-3,4-7",
        cpus(usable)
    )]
    OneOnly {
        /// The requested kind.
        by: GroupBy,
        /// The CPUs that may be used.
        usable: Box<CpuSet>,
    },
    /// There is only one of any kind.
    #[error(
        "programs may use {} here, all of one package, with one last-level cache and one memory: \
         there is nothing to shuffle between. Name groups of CPUs by --groups, such as 0-3,4-7, \
         or choose another policy",
        cpus(.0)
    )]
    NoneHere(Box<CpuSet>),
}

impl Sockets {
    /// Reads groups as users write them: `0-3,4-7`; `+` joins separate ranges.
    ///
    /// # Errors
    /// When the text is no such list, names a CPU twice, or has one group only.
    pub fn named(text: &str) -> Result<Sockets, SocketsError> {
        let mut groups = Vec::new();
        let mut taken = CpuSet::EMPTY;
        for part in text.split(',') {
            let group: Option<CpuSet> = part.replace('+', ",").parse().ok();
            let group = group.filter(|group| !group.is_empty());
            let group = group.ok_or_else(|| SocketsError::Malformed(part.to_owned()))?;
            if let Some(cpu) = group.intersection(&taken).iter().next() {
                return Err(SocketsError::Twice(cpu));
            }
            taken = taken.union(&group);
            groups.push(group);
        }
        match groups.len() {
            1 => Err(SocketsError::OneNamed),
            _ => Ok(Sockets::Named(groups)),
        }
    }

    /// Whether there is something to shuffle between on these CPUs.
    ///
    /// # Errors
    /// The reason why not, and the remedy.
    pub fn check(&self, topology: &Topology, usable: &CpuSet) -> Result<(), SocketsError> {
        if let Sockets::Named(groups) = self {
            let all = groups.iter().fold(CpuSet::EMPTY, |all, group| all.union(group));
            let foreign = all.difference(usable);
            if !foreign.is_empty() {
                let (foreign, usable) = (Box::new(foreign), Box::new(*usable));
                return Err(SocketsError::Foreign { foreign, usable });
            }
        }
        match (self.usable(topology, usable).len() > 1, self) {
            (true, _) => Ok(()),
            (false, Sockets::By(by)) => {
                Err(SocketsError::OneOnly { by: *by, usable: Box::new(*usable) })
            }
            (false, _) => Err(SocketsError::NoneHere(Box::new(*usable))),
        }
    }

    /// The CPUs of each socket that programs may use; sockets without any are left out.
    pub fn usable(&self, topology: &Topology, usable: &CpuSet) -> Vec<CpuSet> {
        match self {
            Sockets::Widest => {
                let widest = [GroupBy::Package, GroupBy::Numa, GroupBy::Llc].into_iter();
                let found = widest.map(|by| by.groups(topology, usable));
                found.into_iter().find(|groups| groups.len() > 1).unwrap_or_default()
            }
            Sockets::By(by) => by.groups(topology, usable),
            Sockets::Named(groups) => {
                let groups = groups.iter().map(|group| group.intersection(usable));
                groups.filter(|group| !group.is_empty()).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// Groups are read as written, and bad ones are refused with a remedy.
    #[test]
    fn groups_are_read_as_written() {
        assert_eq!(Sockets::named("0-3,4-7"), Ok(Sockets::Named(vec![cpus("0-3"), cpus("4-7")])));
        assert_eq!(Sockets::named("0+2,1+3"), Ok(Sockets::Named(vec![cpus("0,2"), cpus("1,3")])));
        assert_eq!(Sockets::named("0-3,3-5"), Err(SocketsError::Twice(3)));
        assert_eq!(Sockets::named("0-3"), Err(SocketsError::OneNamed));
        for text in ["", "0-3,", "a,b", "3-1,4", "0,99999"] {
            let error = Sockets::named(text).unwrap_err();
            assert!(matches!(error, SocketsError::Malformed(_)), "{text}: {error}");
        }
    }

    #[test]
    fn a_socket_is_a_package_memory_cache_or_named() {
        // Two packages of two caches of two CPUs.
        let machine = Topology::regular(2, 2, 1, 2, 1);
        let all = machine.all();
        let groups = |sockets: Sockets| sockets.usable(&machine, &all);
        assert_eq!(groups(Sockets::Widest), [cpus("0-3"), cpus("4-7")]);
        assert_eq!(groups(Sockets::By(GroupBy::Numa)), [cpus("0-3"), cpus("4-7")]);
        let caches = ["0-1", "2-3", "4-5", "6-7"].map(cpus);
        assert_eq!(groups(Sockets::By(GroupBy::Llc)), caches);
        let named = Sockets::named("1-2,7").unwrap();
        assert_eq!(groups(named.clone()), [cpus("1-2"), cpus("7")]);
        assert_eq!(named.usable(&machine, &cpus("0-1")), [cpus("1")], "what may be used of them");
    }

    #[test]
    fn the_caches_of_one_package_count_if_there_are_several() {
        let machine = Topology::regular(1, 2, 1, 2, 1);
        assert_eq!(Sockets::Widest.usable(&machine, &machine.all()), ["0-1", "2-3"].map(cpus));
        assert_eq!(Sockets::Widest.check(&machine, &machine.all()), Ok(()));
        let error = Sockets::By(GroupBy::Package).check(&machine, &machine.all()).unwrap_err();
        assert!(error.to_string().contains("--groups"), "{error}");
        assert!(!error.to_string().contains("shuffle"), "`stat` says it, too: {error}");
    }

    #[test]
    fn an_impossible_socket_is_refused_with_the_possible() {
        let machine = Topology::regular(1, 1, 1, 2, 1);
        let check = |sockets: Sockets| sockets.check(&machine, &machine.all());
        assert_eq!(check(Sockets::named("0,1").unwrap()), Ok(()));
        let error = check(Sockets::named("0,1-3").unwrap()).unwrap_err().to_string();
        assert!(error.contains("CPUs 2-3 may not be used") && error.contains("0-1"), "{error}");
        let error = check(Sockets::Widest).unwrap_err().to_string();
        assert!(error.contains("one package") && error.contains("--groups"), "{error}");
    }
}
