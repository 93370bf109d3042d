//! Programs that keep to the same CPUs by themselves, while others stay idle.
//!
//! `mpirun` and OpenMP bind their threads without regard to other programs: of two jobs with one
//! process each, both have the first CPU. cosched leaves such masks alone, so it says what they do.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{CpuSet, ProgramId};

use super::program::Live;
use crate::kernel::affinity;
use crate::kernel::procfs::{Proc, Stat};

/// A process with less CPU time than this, in ticks, does not compute.
const LITTLE: u64 = 10;
/// The masks of more threads are not read.
const MOST_THREADS: usize = 64;

/// Which programs keep to which CPUs.
#[derive(Debug, Default)]
pub(super) struct Confined {
    /// As they were seen last, and whether they were seen so twice: once may have been in a moment
    /// in which cosched moved a thread.
    seen: BTreeMap<ProgramId, (CpuSet, bool)>,
    told: BTreeSet<ProgramId>,
}

impl Confined {
    pub(super) fn saw(&mut self, id: ProgramId, cpus: Option<CpuSet>) {
        match cpus {
            Some(cpus) => {
                let is_sure = self.seen.get(&id).is_some_and(|(before, _)| *before == cpus);
                self.seen.insert(id, (cpus, is_sure));
            }
            None => drop(self.seen.remove(&id)),
        }
    }

    /// The programs that are to be told of now, with their CPUs: others keep to the same, while
    /// some of `all` are free.
    pub(super) fn news(&mut self, all: &CpuSet) -> Vec<(ProgramId, CpuSet)> {
        let sure = self.seen.iter().filter(|(_, (_, is_sure))| *is_sure);
        let sure: Vec<(ProgramId, CpuSet)> = sure.map(|(id, (cpus, _))| (*id, *cpus)).collect();
        let is_crowded = |(id, cpus): &&(ProgramId, CpuSet)| {
            let mut others = sure.iter().filter(|(other, _)| other != id);
            others.any(|(_, theirs)| are_crowded(cpus, theirs, all))
        };
        let crowded = sure.iter().filter(is_crowded).copied();
        crowded.filter(|(id, _)| self.told.insert(*id)).collect()
    }
}

/// Whether two programs together keep to fewer CPUs than they could have.
fn are_crowded(one: &CpuSet, other: &CpuSet, all: &CpuSet) -> bool {
    one.intersects(other) && one.union(other).len() < all.len().min(one.len() + other.len())
}

/// Those of a program's processes that compute.
pub(super) fn computing(processes: &[Stat]) -> Vec<i32> {
    let used = processes.iter().map(|stat| (stat.pid, stat.utime + stat.stime));
    let used: Vec<(i32, u64)> = used.collect();
    let most = used.iter().map(|(_, ticks)| *ticks).max().unwrap_or_default();
    let computes = |ticks: u64| ticks >= LITTLE && ticks >= most / 10;
    used.into_iter().filter(|(_, ticks)| computes(*ticks)).map(|(pid, _)| pid).collect()
}

/// The CPUs to which these processes of a program have bound themselves; `None`: they may run on
/// `all`, or cosched has bound them.
pub(super) fn confined_to(live: &Live, pids: &[i32], proc: &Proc, all: &CpuSet) -> Option<CpuSet> {
    if live.pinning.is_in_force() {
        return None;
    }
    let (mut cpus, mut threads) = (CpuSet::default(), 0);
    for pid in pids {
        for tid in proc.threads(*pid).ok()? {
            threads += 1;
            if threads > MOST_THREADS {
                return None;
            }
            cpus = cpus.union(&affinity::get(tid).ok()?);
        }
    }
    (!cpus.is_empty() && !all.is_subset(&cpus)).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_on_the_same_cpus_are_told_of_once() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let told = |one: &str, other: &str| {
            let (mut confined, all) = (Confined::default(), set("0-3"));
            let mut counts = Vec::new();
            for _ in 0..3 {
                for (slot, cpus) in [(0, one), (1, other)] {
                    confined.saw(ProgramId { slot, generation: 0 }, Some(set(cpus)));
                }
                counts.push(confined.news(&all).len());
            }
            counts
        };
        for (one, other) in [("0", "0"), ("0-1", "0-1"), ("0-1", "1-2")] {
            assert_eq!(told(one, other), [0, 2, 0], "{one} {other}: seen twice");
        }
        // Each has CPUs of its own, or they have all.
        for (one, other) in [("0", "1"), ("0-1", "2-3"), ("0-2", "1-3")] {
            assert_eq!(told(one, other), [0, 0, 0], "{one} {other}");
        }
    }
}
