//! The machine in a few numbers: which CPUs programs may use, what keeps them from the others, how
//! the CPUs are built.

use cosched_core::format::count;
use cosched_core::{CpuSet, Level};
use cosched_linux::rights::usable::Limit;
use serde::Serialize;

use crate::session::Session;
use crate::store::{Peak, Store};

/// This machine, as programs may use it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct MachineReport {
    /// The processor's name, where the kernel tells it.
    model: Option<String>,
    /// How many CPUs are online.
    online: usize,
    /// How many of them programs may use.
    usable: usize,
    /// Which.
    cpus: CpuSet,
    /// Over how many packages the usable CPUs spread.
    packages: usize,
    /// Over how many last-level caches.
    last_level_caches: usize,
    /// Over how many cores; SMT siblings share one.
    cores: usize,
    /// Over how many memory nodes.
    numa_nodes: usize,
    /// What takes the other CPUs away.
    limited_by: Vec<String>,
    /// The memory bandwidth, if it was measured.
    memory_peak: Option<Peak>,
}

impl MachineReport {
    pub(super) fn new(session: &Session) -> MachineReport {
        let (topology, cpus) = (&session.topology, session.usable.cpus);
        MachineReport {
            model: session.description.model.clone(),
            online: topology.cpus().len(),
            usable: cpus.len(),
            cpus,
            packages: topology.spanned(&cpus, Level::Package),
            last_level_caches: topology.spanned(&cpus, Level::Llc),
            cores: topology.spanned(&cpus, Level::Core),
            numa_nodes: topology.nodes(&cpus).len(),
            limited_by: session.usable.limited_by.iter().map(Limit::to_string).collect(),
            memory_peak: Store::open_if_there().and_then(|store| store.peak(&session.description)),
        }
    }

    /// One line, and one more per limit.
    pub(super) fn text(&self) -> String {
        let model = self.model.as_deref().unwrap_or("unknown processor");
        let mut text = format!(
            "{model}; {} of {} usable ({}): {}, {}, {}, {}",
            self.usable,
            count(self.online, "CPU", "CPUs"),
            self.cpus,
            count(self.packages, "package", "packages"),
            count(self.last_level_caches, "last-level cache", "last-level caches"),
            count(self.cores, "core", "cores"),
            count(self.numa_nodes, "NUMA node", "NUMA nodes"),
        );
        for limit in &self.limited_by {
            text.push_str(&format!("\n  limited by {limit}"));
        }
        text + &match &self.memory_peak {
            Some(peak) => format!(
                "\n  memory bandwidth: {:.1} GB/s at most, {:.0} cache lines per microsecond ({})",
                peak.gigabytes_per_second,
                peak.lines_per_microsecond(),
                peak.measured_at
            ),
            None => "\n  the memory bandwidth is not known; `cosched profile --machine` measures \
                     it, for fair-progress"
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_usable_cpus_and_their_limits() {
        let report = MachineReport {
            model: Some("Fast".into()),
            online: 8,
            usable: 2,
            cpus: CpuSet::first(2),
            packages: 1,
            last_level_caches: 1,
            cores: 2,
            numa_nodes: 1,
            limited_by: vec![Limit::Quota { cgroup: "/cg/box".into(), cpus: 2.5 }.to_string()],
            memory_peak: None,
        };
        let cpus = "Fast; 2 of 8 CPUs usable (0-1): 1 package, 1 last-level cache, 2 cores, 1 NUMA \
                    node\n  limited by the CPU quota of /cg/box (2.5 CPUs)";
        let text = report.text();
        assert!(text.starts_with(cpus) && text.contains("`cosched profile --machine`"), "{text}");
        let peak = Peak {
            gigabytes_per_second: 12.8,
            threads: 2,
            measured_at: "2026-01-01T00:00:00Z".into(),
        };
        let text = MachineReport { memory_peak: Some(peak), ..report }.text();
        let memory = "\n  memory bandwidth: 12.8 GB/s at most, 200 cache lines per microsecond \
                      (2026-01-01T00:00:00Z)";
        assert!(text.ends_with(memory), "{text}");
    }
}
