//! The CPUs that the caller may use, which are the machine that policies see.
//!
//! Four things take CPUs away from a caller: they can be offline, outside its cpuset, outside its
//! affinity mask (`taskset`, a batch system), or beyond a cgroup's CPU quota, as containers have. A
//! quota does not say which CPUs, only how much CPU time per wall time. With a quota of 2.5 CPUs,
//! two CPUs are used: a gang of three would be throttled, all its threads, in every period. A quota
//! is rounded down, but to at least one.
//!
//! cosched chooses the CPUs for a quota: neighbours behind the same cache, and one per core before
//! any SMT sibling, since a second sibling costs as much quota and gives less.

use std::fmt;
use std::path::{Path, PathBuf};

use cosched_core::{Cpu, CpuSet, Level, Topology, format};

use crate::cgroup::{Dir, Hierarchies, Hierarchy, Version};
use crate::kernel::affinity::{self, AffinityError};
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;
use crate::kernel::topology::{self, TopologyError};

/// The CPUs that the caller may use, and what took the others away.
#[derive(Clone, Debug, PartialEq)]
pub struct Usable {
    /// The CPUs; at least one.
    pub cpus: CpuSet,
    /// What took CPUs away, in the order in which it did; empty if the whole machine may be used.
    pub limited_by: Vec<Limit>,
}

/// Something that took CPUs away.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A cpuset cgroup.
    Cpuset {
        /// Its folder.
        cgroup: PathBuf,
        /// The CPUs in it.
        cpus: CpuSet,
    },
    /// The caller's affinity mask.
    Affinity {
        /// The CPUs in it.
        cpus: CpuSet,
    },
    /// The CPU quota of the caller's cgroup or of one above.
    Quota {
        /// Its folder.
        cgroup: PathBuf,
        /// CPU time per wall time.
        cpus: f64,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Cpuset { cgroup, cpus } => {
                write!(f, "the cpuset {} ({})", cgroup.display(), format::cpus(cpus))
            }
            Limit::Affinity { cpus } => {
                write!(f, "the affinity mask of the caller ({})", format::cpus(cpus))
            }
            Limit::Quota { cgroup, cpus } => {
                let cpus = (cpus * 1e3).round() / 1e3;
                write!(
                    f,
                    "the CPU quota of {} ({cpus} CPU{})",
                    cgroup.display(),
                    if cpus == 1.0 { "" } else { "s" }
                )
            }
        }
    }
}

/// Why the usable CPUs could not be found.
#[derive(Debug, thiserror::Error)]
pub enum UsableError {
    /// A cgroup file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A list of CPUs could not be read.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The own mask could not be read.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// Nothing is left.
    #[error("no online CPU is both in the affinity mask and in the cpuset of this process")]
    None,
}

impl Usable {
    /// Finds the CPUs of `machine` that the calling process may use.
    ///
    /// # Errors
    /// When a limit cannot be read, or no CPU is left.
    pub fn find(machine: &Topology, proc: &Proc) -> Result<Usable, UsableError> {
        Usable::within(machine, &affinity::get(0)?, &Hierarchies::find(proc)?)
    }

    /// Finds the CPUs for a caller with this mask and these cgroups.
    fn within(
        machine: &Topology,
        mask: &CpuSet,
        cgroups: &Hierarchies,
    ) -> Result<Usable, UsableError> {
        let mut usable = Usable { cpus: machine.all(), limited_by: Vec::new() };
        if let Some((cgroup, cpus)) = cpuset(cgroups)? {
            usable.keep(&cpus, Limit::Cpuset { cgroup, cpus });
        }
        usable.keep(mask, Limit::Affinity { cpus: *mask });
        if let Some((cgroup, cpus)) = quota(cgroups)? {
            // A cast from float saturates, so any quota is safe.
            let few = packed(machine, &usable.cpus, (cpus.floor() as usize).max(1));
            usable.keep(&few, Limit::Quota { cgroup, cpus });
        }
        match usable.cpus.is_empty() {
            true => Err(UsableError::None),
            false => Ok(usable),
        }
    }

    fn keep(&mut self, cpus: &CpuSet, limit: Limit) {
        let kept = self.cpus.intersection(cpus);
        if kept != self.cpus {
            self.cpus = kept;
            self.limited_by.push(limit);
        }
    }
}

/// `count` of these CPUs: close together, and one per core before any second sibling.
fn packed(machine: &Topology, cpus: &CpuSet, count: usize) -> CpuSet {
    let cpus: Vec<&Cpu> = cpus.iter().filter_map(|id| machine.cpu(id)).collect();
    let rank = |cpu: &Cpu| {
        let [package, llc, l2, core] = cpu.groups;
        let same_core = |other: &&&Cpu| other.group(Level::Core) == core && other.id < cpu.id;
        let earlier_siblings = cpus.iter().filter(same_core).count();
        (package, llc, earlier_siblings, l2, core)
    };
    let mut ranked: Vec<_> = cpus.iter().map(|cpu| (rank(cpu), cpu.id)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(count).map(|(_, id)| id).collect()
}

fn cpuset(cgroups: &Hierarchies) -> Result<Option<(PathBuf, CpuSet)>, TopologyError> {
    let files: &[&str] = &["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
    for tree in cgroups.v1("cpuset").into_iter().chain(cgroups.v2()) {
        // A v2 cgroup without the controller uses the cpuset of its nearest ancestor with one.
        for dir in tree.own_and_above() {
            for file in files {
                match topology::list(&dir.path().join(file))? {
                    Some(cpus) if !cpus.is_empty() => {
                        return Ok(Some((dir.path().to_owned(), cpus)));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(None)
}

/// The smallest CPU quota over the caller, in CPUs, and the cgroup that has it.
fn quota(cgroups: &Hierarchies) -> Result<Option<(PathBuf, f64)>, FileError> {
    let trees = cgroups.v1("cpu").into_iter().chain(cgroups.v2());
    let mut smallest = None::<(PathBuf, f64)>;
    for dir in trees.flat_map(Hierarchy::own_and_above) {
        if let Some(quota) = quota_of(&dir)? {
            if smallest.as_ref().is_none_or(|(_, least)| quota < *least) {
                smallest = Some((dir.path().to_owned(), quota));
            }
        }
    }
    Ok(smallest)
}

/// The CPU quota of one cgroup, in CPUs; `None` for no limit.
fn quota_of(dir: &Dir) -> Result<Option<f64>, FileError> {
    let (text, path) = match dir.version() {
        Version::V2 => (dir.read_if_there("cpu.max")?, dir.path().join("cpu.max")),
        Version::V1 => {
            let quota = dir.read_if_there("cpu.cfs_quota_us")?;
            let period = dir.read_if_there("cpu.cfs_period_us")?;
            let both = quota.zip(period).map(|(quota, period)| quota + " " + &period);
            (both, dir.path().join("cpu.cfs_quota_us"))
        }
    };
    match text {
        None => Ok(None),
        Some(text) => parse_quota(&text, &path),
    }
}

/// Quota and period in microseconds; no limit is `max` in v2 and -1 in v1.
fn parse_quota(text: &str, path: &Path) -> Result<Option<f64>, FileError> {
    let mut words = text.split_whitespace();
    let malformed = || FileError::malformed(path, "a quota and a period", text);
    let (quota, period) = words.next().zip(words.next()).ok_or_else(malformed)?;
    if quota == "max" || quota == "-1" {
        return Ok(None);
    }
    match (quota.parse::<u64>(), period.parse::<u64>()) {
        (Ok(quota), Ok(period)) if period > 0 => Ok(Some(quota as f64 / period as f64)),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// Made-up cgroups: mounts by kind, the caller's place, control files.
    fn cgroups(
        mounts: &[(&str, &str)],
        places: &str,
        files: &[(&str, &str)],
    ) -> (TempDir, Hierarchies) {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("self");
        fs::create_dir(&own).unwrap();
        let base = root.path().display();
        let line = |(kind, at): &(&str, &str)| match *kind {
            "v2" => format!("1 1 0:1 / {base}/{at} rw - cgroup2 none rw\n"),
            v1 => format!("1 1 0:1 / {base}/{at} rw - cgroup none rw,{v1}\n"),
        };
        fs::write(own.join("mountinfo"), mounts.iter().map(line).collect::<String>()).unwrap();
        fs::write(own.join("cgroup"), places).unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = Hierarchies::find(&Proc::new(root.path())).unwrap();
        (root, found)
    }

    /// The outcome on a machine with eight CPUs.
    fn usable(mask: &str, cgroups: &Hierarchies) -> (String, Vec<Limit>) {
        let machine = Topology::regular(1, 1, 8, 1, 1);
        let usable = Usable::within(&machine, &mask.parse().unwrap(), cgroups).unwrap();
        (usable.cpus.to_string(), usable.limited_by)
    }

    #[test]
    fn without_limits_the_whole_machine_may_be_used() {
        assert_eq!(usable("0-7", &Hierarchies::default()), ("0-7".into(), vec![]));
    }

    #[test]
    fn the_mask_limits_and_says_so() {
        let (cpus, limits) = usable("1-2,9", &Hierarchies::default());
        assert_eq!(cpus, "1-2");
        assert_eq!(limits, [Limit::Affinity { cpus: "1-2,9".parse().unwrap() }]);
    }

    #[test]
    fn an_ancestors_cpuset_counts_if_the_group_has_none() {
        let files = [("c/a/cpuset.cpus.effective", "2-5\n"), ("c/a/b/cgroup.procs", "")];
        let (root, groups) = cgroups(&[("v2", "c")], "0::/a/b\n", &files);
        let (cpus, limits) = usable("0-7", &groups);
        assert_eq!(cpus, "2-5");
        let cgroup = root.path().join("c/a");
        assert_eq!(limits, [Limit::Cpuset { cgroup, cpus: "2-5".parse().unwrap() }]);
    }

    #[test]
    fn a_v1_cpuset_is_read_from_its_own_tree() {
        let files = [("s/j/cpuset.effective_cpus", "4\n"), ("s/j/cpuset.cpus", "4-5\n")];
        let (_root, groups) = cgroups(&[("cpuset", "s")], "3:cpuset:/j\n", &files);
        assert_eq!(usable("0-7", &groups).0, "4");
    }

    #[test]
    fn the_smallest_quota_of_all_ancestors_is_rounded_down() {
        let files = [("c/a/cpu.max", "250000 100000\n"), ("c/a/b/cpu.max", "max 100000\n")];
        let (root, groups) = cgroups(&[("v2", "c")], "0::/a/b\n", &files);
        let (cpus, limits) = usable("1-7", &groups);
        assert_eq!(cpus, "1-2");
        let quota = Limit::Quota { cgroup: root.path().join("c/a"), cpus: 2.5 };
        assert_eq!(limits, [Limit::Affinity { cpus: "1-7".parse().unwrap() }, quota]);
    }

    #[test]
    fn half_a_cpu_is_one_cpu_and_a_large_quota_is_no_limit() {
        for (quota, cpus) in [("50000", "0"), ("800000", "0-7"), ("-1", "0-7")] {
            let files = [("q/cpu.cfs_quota_us", quota), ("q/cpu.cfs_period_us", "100000\n")];
            let (_root, groups) = cgroups(&[("cpu,cpuacct", "q")], "1:cpu,cpuacct:/\n", &files);
            assert_eq!(usable("0-7", &groups).0, cpus, "{quota}");
        }
    }

    #[test]
    fn a_quota_takes_cores_before_siblings_within_one_cache() {
        // Two caches of two cores of two siblings; the mask starts in the middle of the first.
        let machine = Topology::regular(1, 2, 2, 1, 2);
        let all = machine.all();
        assert_eq!(packed(&machine, &all, 2).to_string(), "0,2");
        assert_eq!(packed(&machine, &all, 4).to_string(), "0-3");
        assert_eq!(packed(&machine, &"1-7".parse().unwrap(), 2).to_string(), "1-2");
        assert_eq!(packed(&machine, &all, 5).to_string(), "0-4");
    }

    #[test]
    fn a_malformed_quota_names_the_file() {
        let (_root, groups) = cgroups(&[("v2", "c")], "0::/\n", &[("c/cpu.max", "lots\n")]);
        let machine = Topology::regular(1, 1, 1, 1, 1);
        let error = Usable::within(&machine, &CpuSet::first(1), &groups).unwrap_err();
        assert!(error.to_string().contains("c/cpu.max"), "{error}");
    }

    #[test]
    fn a_mask_of_cpus_that_are_offline_leaves_nothing() {
        let machine = Topology::regular(1, 1, 2, 1, 1);
        let found = Usable::within(&machine, &"4".parse().unwrap(), &Hierarchies::default());
        assert!(matches!(found, Err(UsableError::None)));
    }

    #[test]
    fn this_process_may_use_no_more_than_its_mask() {
        let machine = topology::Sys::default().topology().unwrap();
        let usable = Usable::find(&machine, &Proc::default()).unwrap();
        assert!(!usable.cpus.is_empty() && usable.cpus.is_subset(&affinity::get(0).unwrap()));
    }
}
