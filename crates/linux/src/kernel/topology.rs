//! The CPUs, caches and packages of this machine, from `/sys/devices/system`.
//!
//! The kernel describes each CPU by itself: its package number, the list of its SMT siblings, and
//! per cache the list of CPUs that share it. This module turns that into [`Topology`]'s group
//! numbers: two CPUs belong to one group of a level if they belong to one group of every wider
//! level and show the same mark (a number, or the first CPU of the list that they share). With the
//! wider levels in the key, levels nest whatever a hypervisor reports.
//!
//! Much of it may be missing. Virtual machines often show no caches, ARM boards no SMT lists,
//! containers no NUMA nodes. Missing data are replaced by the nearest available thing:
//!
//! | missing | used instead |
//! |---|---|
//! | level-3 cache | the outermost shared level (not level 1), else the die, else the package |
//! | level-2 cache | the core |
//! | SMT siblings | each CPU is a core |
//! | package | one package |
//! | NUMA node | node 0 |
//! | `cpu_capacity`, where cores are of two types | `highest_perf` of ACPI, else the frequency |
//! | `cpu_capacity` elsewhere | 1024: all equally fast |
//!
//! Offline CPUs have none of these files and are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cosched_core::{Cpu, CpuListError, CpuSet, MAX_CPUS, Topology};

use crate::kernel::files::{self, FileError};

/// The capacity of the fastest CPUs.
const FASTEST: u16 = 1024;

/// The sysfs file system.
#[derive(Clone, Debug)]
pub struct Sys {
    root: PathBuf,
}

impl Default for Sys {
    fn default() -> Sys {
        Sys::new("/sys")
    }
}

/// Why the machine could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file does not hold a usable list of CPUs.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    List(PathBuf, #[source] CpuListError),
    /// No CPU was found.
    #[error("{} shows no CPU; `mount -t sysfs sysfs /sys` mounts sysfs", .0.display())]
    NoCpu(PathBuf),
}

impl Sys {
    /// A sysfs mounted, or made up, at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Sys {
        Sys { root: root.into() }
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The CPUs that are online.
    ///
    /// # Errors
    /// When sysfs cannot be read or a number is beyond what [`CpuSet`] holds.
    pub fn online(&self) -> Result<CpuSet, TopologyError> {
        let folder = self.cpus();
        if let Some(set) = list(&folder.join("online"))? {
            return Ok(set);
        }
        let numbers = files::unless_gone(files::numbered(&folder, "cpu"))?.unwrap_or_default();
        match numbers.last() {
            None => Err(TopologyError::NoCpu(folder)),
            Some(&last) if last >= MAX_CPUS => {
                Err(TopologyError::List(folder, CpuListError::TooLarge(last)))
            }
            Some(_) => Ok(numbers.into_iter().collect()),
        }
    }

    /// The online CPUs and what they share.
    ///
    /// # Errors
    /// When sysfs cannot be read, or has unexpected content.
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let online = self.online()?;
        let nodes = self.nodes()?;
        let capacities = self.capacities(&online)?;
        let mut groups: [Numbering; 4] = Default::default();
        let mut cpus = Vec::with_capacity(online.len());
        for id in online.iter() {
            let marks = self.marks(id)?;
            let mut numbers = [0; 4];
            for (level, number) in numbers.iter_mut().enumerate() {
                *number = groups[level].number(&marks[..=level]);
            }
            cpus.push(Cpu {
                id,
                groups: numbers,
                node: *nodes.get(&id).unwrap_or(&0),
                capacity: capacities.get(&id).copied().unwrap_or(FASTEST),
            });
        }
        match cpus.is_empty() {
            true => Err(TopologyError::NoCpu(self.cpus())),
            false => Ok(Topology::new(cpus)),
        }
    }

    /// The capacities of CPUs that tell them. Before Linux 6.12, and later on processors with SMT,
    /// x86 tells none. Then highest performance counts, as firmware ranks it; it includes how much
    /// is done in a cycle. It is of use for cores of two types only: others of one type may differ
    /// in it, and are equally fast when all of them run.
    fn capacities(&self, online: &CpuSet) -> Result<BTreeMap<usize, u16>, TopologyError> {
        let told: BTreeMap<usize, u16> = self.values(online, "cpu_capacity", "a capacity")?;
        let efficiency_cores = self.root.join("devices/cpu_atom/cpus");
        if !told.is_empty() || list(&efficiency_cores)?.is_none_or(|cores| cores.is_empty()) {
            return Ok(told);
        }
        let mut speeds: BTreeMap<usize, u64> =
            self.values(online, "acpi_cppc/highest_perf", "a performance")?;
        if speeds.len() < online.len() {
            speeds = self.values(online, "cpufreq/cpuinfo_max_freq", "a frequency")?;
        }
        let fastest = speeds.values().copied().max().unwrap_or(0).max(1);
        let capacity = |speed: u64| u16::try_from(speed * u64::from(FASTEST) / fastest);
        Ok(speeds.into_iter().map(|(id, speed)| (id, capacity(speed).unwrap_or(FASTEST))).collect())
    }

    /// What a file of each CPU says, where it is there.
    fn values<T: FromStr>(
        &self,
        online: &CpuSet,
        file: &str,
        what: &'static str,
    ) -> Result<BTreeMap<usize, T>, TopologyError> {
        let mut values = BTreeMap::new();
        for id in online.iter() {
            let path = self.cpus().join(format!("cpu{id}/{file}"));
            values.extend(files::value_if_there(&path, what)?.map(|value| (id, value)));
        }
        Ok(values)
    }

    /// The marks of one CPU's groups, widest level first.
    fn marks(&self, id: usize) -> Result<[usize; 4], TopologyError> {
        let folder = self.cpus().join(format!("cpu{id}"));
        let topology = folder.join("topology");
        // ARM firmware without the information shows package -1.
        let package = topology.join("physical_package_id");
        let package = files::value_if_there::<i32>(&package, "a package number")?.unwrap_or(0);
        let package = usize::try_from(package).unwrap_or(0);

        let core = match first(&topology.join("core_cpus_list"))? {
            Some(core) => core,
            None => first(&topology.join("thread_siblings_list"))?.unwrap_or(id),
        };

        let caches = caches(&folder)?;
        let llc = match caches.range(2..).next_back() {
            Some((_, llc)) => *llc,
            None => first(&topology.join("die_cpus_list"))?.unwrap_or(package),
        };
        let l2 = caches.get(&2).copied().unwrap_or(core);
        Ok([package, llc, l2, core])
    }

    fn nodes(&self) -> Result<BTreeMap<usize, u16>, TopologyError> {
        let folder = self.root.join("devices/system/node");
        let mut nodes = BTreeMap::new();
        for node in numbered_if_there(&folder, "node")? {
            let cpus = list(&folder.join(format!("node{node}/cpulist")))?.unwrap_or_default();
            let node = u16::try_from(node).unwrap_or(u16::MAX);
            nodes.extend(cpus.iter().map(|cpu| (cpu, node)));
        }
        Ok(nodes)
    }

    fn cpus(&self) -> PathBuf {
        self.root.join("devices/system/cpu")
    }
}

/// Gives each distinct key the next number, in order of first appearance.
#[derive(Default)]
struct Numbering(BTreeMap<Vec<usize>, u16>);

impl Numbering {
    fn number(&mut self, key: &[usize]) -> u16 {
        // There are at most MAX_CPUS = 1024 keys, so the count fits.
        let next = self.0.len() as u16;
        *self.0.entry(key.to_vec()).or_insert(next)
    }
}

/// For each cache level of a CPU (instruction caches apart) the first CPU that shares it.
fn caches(cpu: &Path) -> Result<BTreeMap<u32, usize>, TopologyError> {
    let folder = cpu.join("cache");
    let mut caches = BTreeMap::new();
    for index in numbered_if_there(&folder, "index")? {
        let index = folder.join(format!("index{index}"));
        let kind = files::read_if_there(&index.join("type"))?;
        if kind.is_some_and(|kind| kind.trim() == "Instruction") {
            continue;
        }
        let level = files::value_if_there::<u32>(&index.join("level"), "a cache level")?;
        let sharers = first(&index.join("shared_cpu_list"))?;
        caches.extend(level.zip(sharers));
    }
    Ok(caches)
}

fn numbered_if_there(folder: &Path, prefix: &str) -> Result<Vec<usize>, FileError> {
    Ok(files::unless_gone(files::numbered(folder, prefix))?.unwrap_or_default())
}

/// The first CPU of a list; `None` if the file is missing or the list empty.
fn first(path: &Path) -> Result<Option<usize>, TopologyError> {
    Ok(list(path)?.and_then(|set| set.iter().next()))
}

/// A CPU list; `None` if the file is missing.
pub(crate) fn list(path: &Path) -> Result<Option<CpuSet>, TopologyError> {
    let parse =
        |text: String| text.parse().map_err(|error| TopologyError::List(path.to_owned(), error));
    files::read_if_there(path)?.map(parse).transpose()
}

#[cfg(test)]
mod tests;
