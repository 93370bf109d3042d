//! What this kernel, machine and user allow: the capability levels.
//!
//! The main job needs no privileges: signals stop and continue one's own programs, affinity places
//! them. Each further ability makes something better, and none can be detected reliably by reading:
//! owners, permission bits, capabilities and versions may all be different in a container. Each is
//! therefore *tried*, on a thread, cgroup or counter made for it, and nothing is left behind. (Only
//! BPF is judged by its preconditions.)
//!
//! A report says for each ability whether it is there, what was found, what it gives, and how to
//! get it.

mod groups;
mod observing;
mod scheduling;
pub mod usable;

pub use scheduling::{real_time, slices};

use std::fmt;

use serde::Serialize;

use crate::cgroup::Hierarchies;
use crate::control::ext;
use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::Proc;
use crate::kernel::remedy::as_typed;
use crate::kernel::topology::Sys;

/// Something that this host may allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// Stopping and continuing own programs by signals.
    Signals,
    /// Binding own threads to CPUs.
    Affinity,
    /// A time slice per thread.
    Slices,
    /// Freezing a cgroup of version 2.
    FreezeV2,
    /// Binding a cgroup of version 2 to CPUs.
    CpusetV2,
    /// Weighing cgroups of version 2.
    CpuV2,
    /// Freezing a cgroup of version 1.
    FreezerV1,
    /// Binding a cgroup of version 1 to CPUs.
    CpusetV1,
    /// Weighing cgroups of version 1.
    CpuV1,
    /// CPU cgroups that can be idle, of either version.
    IdleGroups,
    /// Raising priority within the fair class.
    NegativeNice,
    /// The real-time round-robin class.
    RealTime,
    /// Programs in the kernel that observe scheduling.
    Bpf,
    /// Hardware performance counters.
    Pmu,
    /// Samples of where in their code threads are.
    CodeSamples,
    /// The kernel shares CPU by session.
    Autogroup,
    /// Schedulers written in BPF.
    SchedExt,
    /// Accounts of time lost to waiting for a CPU.
    Psi,
}

impl Ability {
    /// The benefit of it.
    pub fn gives(self) -> &'static str {
        match self {
            Ability::Signals => {
                "every policy: programs stop and continue by SIGSTOP and SIGCONT, which they may \
                 notice"
            }
            Ability::Affinity => "placement: packed or spread over packages, caches and cores",
            Ability::Slices => {
                "fewer preemptions among the threads of a program, without priorities"
            }
            Ability::FreezeV2 | Ability::FreezerV1 => {
                "every policy: programs freeze as a whole, unseen by shells and job control, in a \
                 tenth of a millisecond"
            }
            Ability::CpusetV2 | Ability::CpusetV1 => {
                "placement that no thread escapes, and memory from the near node"
            }
            Ability::CpuV2 | Ability::CpuV1 => {
                "CPU shared by program instead of by thread (policy linux-groups)"
            }
            Ability::IdleGroups => {
                "turns by weight (policy turns, the default): no program is stopped, and idle \
                 CPUs are used"
            }
            Ability::NegativeNice => "turns that begin on time under load",
            Ability::RealTime => "threads of a program that do not take CPUs from each other",
            Ability::Bpf => "exact lock wait times, and barriers that know which threads run",
            Ability::Pmu => {
                "cache misses, instructions and memory bandwidth: cgreedy and fair progress \
                 without figures given by hand"
            }
            Ability::CodeSamples => {
                "`cosched explain` names spin loops; fair progress distinguishes phases"
            }
            Ability::Autogroup => {
                "one share of CPU per session: programs of a gang get a session each, so that \
                 cosched's own share does not shrink"
            }
            Ability::SchedExt => {
                "`--scheduler ext`: waiting threads give their CPU to a named thread, and slices \
                 have any length"
            }
            Ability::Psi => "the machine's own account of CPU pressure, in reports",
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Right {
    /// The ability.
    pub name: Ability,
    /// Whether it is available.
    pub available: bool,
    /// What was found.
    pub detail: String,
    /// The benefit of it.
    pub gives: &'static str,
    /// How to get it, where it is missing and that is possible.
    pub remedy: Option<String>,
}

/// The highest capability level of this user on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilityLevel {
    /// Signals and affinity.
    Unprivileged,
    /// A cgroup to freeze.
    Cgroup,
    /// Priorities as well.
    Priorities,
    /// Programs in the kernel as well.
    Bpf,
    /// Hardware counters as well.
    Pmu,
}

impl CapabilityLevel {
    /// What the level means for the user.
    pub fn means(self) -> &'static str {
        match self {
            CapabilityLevel::Unprivileged => "signals and affinity masks, which need no right",
            CapabilityLevel::Cgroup => "programs freeze as cgroups; no right to raise priorities",
            CapabilityLevel::Priorities => {
                "programs freeze as cgroups, and cosched may raise its own priority; no BPF"
            }
            CapabilityLevel::Bpf => "cgroups, priorities and BPF; no hardware counters",
            CapabilityLevel::Pmu => "everything: cgroups, priorities, BPF and hardware counters",
        }
    }
}

/// The whole report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rights {
    /// The kernel's release.
    pub kernel: String,
    /// The highest level with none missing below.
    pub level: CapabilityLevel,
    /// Every ability, those with the fewest requirements first.
    pub rights: Vec<Right>,
}

impl Rights {
    /// Tries everything. Cgroups, threads and counters made for it are removed when this returns,
    /// and the caller is unchanged.
    ///
    /// # Errors
    /// When `/proc` itself cannot be read; any other failure is part of the report.
    pub fn probe(proc: &Proc, sys: &Sys) -> Result<Rights, FileError> {
        let cgroups = Hierarchies::find(proc)?;
        let release = files::read(&proc.root().join("sys/kernel/osrelease"))?;
        let release = release.trim();
        let mut rights = vec![
            available(Ability::Signals, "always, for own programs"),
            scheduling::affinity(),
            scheduling::slices(),
        ];
        rights.extend(groups::all(&cgroups));
        rights.extend([
            scheduling::negative_nice(),
            scheduling::real_time(),
            observing::bpf(proc, sys)?,
            observing::pmu(proc),
            observing::code_samples(proc),
            scheduling::autogroup(proc),
            scheduling::sched_ext(sys, release, ext::loader::check),
            observing::psi(proc),
        ]);
        Ok(Rights { kernel: release.to_owned(), level: level(&rights), rights })
    }

    /// Whether an ability is available.
    pub fn has(&self, ability: Ability) -> bool {
        has(&self.rights, ability)
    }
}

fn has(rights: &[Right], ability: Ability) -> bool {
    rights.iter().any(|right| right.name == ability && right.available)
}

fn level(rights: &[Right]) -> CapabilityLevel {
    let levels: [(CapabilityLevel, &[Ability]); 4] = [
        (CapabilityLevel::Cgroup, &[Ability::FreezeV2, Ability::FreezerV1]),
        (CapabilityLevel::Priorities, &[Ability::NegativeNice]),
        (CapabilityLevel::Bpf, &[Ability::Bpf]),
        (CapabilityLevel::Pmu, &[Ability::Pmu]),
    ];
    let reached = |any: &[Ability]| any.iter().any(|ability| has(rights, *ability));
    let reached = levels.into_iter().take_while(|(_, any)| reached(any));
    reached.last().map_or(CapabilityLevel::Unprivileged, |(level, _)| level)
}

fn available(name: Ability, detail: impl Into<String>) -> Right {
    Right { name, available: true, detail: detail.into(), gives: name.gives(), remedy: None }
}

fn missing(name: Ability, detail: impl Into<String>, remedy: Option<&str>) -> Right {
    Right { available: false, remedy: remedy.map(as_typed), ..available(name, detail) }
}

/// What was found, or why it failed.
fn tried(
    name: Ability,
    result: Result<impl Into<String>, impl fmt::Display>,
    remedy: Option<&str>,
) -> Right {
    match result {
        Ok(detail) => available(name, detail),
        Err(error) => missing(name, error.to_string(), remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{affinity, sched_attr};

    #[test]
    fn remedies_name_sudo_only_to_users_who_need_it() {
        let is_root = rustix::process::geteuid().is_root();
        let remedy = missing(Ability::Bpf, "", Some("sudo setcap x")).remedy.unwrap();
        assert_eq!(remedy, if is_root { "setcap x" } else { "sudo setcap x" });
    }

    fn rights(there: &[Ability]) -> Vec<Right> {
        there.iter().map(|ability| available(*ability, "")).collect()
    }

    #[test]
    fn a_level_counts_only_if_no_lower_one_is_missing() {
        assert_eq!(level(&rights(&[Ability::Signals])), CapabilityLevel::Unprivileged);
        assert_eq!(
            level(&rights(&[Ability::FreezerV1, Ability::NegativeNice])),
            CapabilityLevel::Priorities
        );
        assert_eq!(level(&rights(&[Ability::FreezeV2, Ability::Pmu])), CapabilityLevel::Cgroup);
        assert_eq!(level(&rights(&[Ability::Bpf, Ability::Pmu])), CapabilityLevel::Unprivileged);
    }

    #[test]
    fn a_probe_reports_every_ability_once_and_changes_nothing() {
        let own = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap();
        let before = (own("cgroup"), affinity::get(0), sched_attr::get(0));
        let report = Rights::probe(&Proc::default(), &Sys::default()).unwrap();
        assert_eq!(before, (own("cgroup"), affinity::get(0), sched_attr::get(0)));
        let mut names: Vec<_> =
            report.rights.iter().map(|right| format!("{:?}", right.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 18);
        assert!(report.has(Ability::Signals) && report.has(Ability::Affinity));
        for right in &report.rights {
            assert!(!right.detail.is_empty());
            assert!(!right.available || right.remedy.is_none());
        }

        let found = Hierarchies::find(&Proc::default()).unwrap();
        let trees = ["freezer", "cpuset", "cpu"].map(|controller| found.v1(controller));
        for tree in trees.into_iter().chain([found.v2()]).flatten() {
            let probe = tree.own.child(&format!("cosched-probe-{}", std::process::id()));
            assert!(!probe.path().exists());
        }
    }

    #[test]
    fn the_report_is_written_with_the_names_that_scripts_rely_on() {
        let report = Rights {
            kernel: "6.12.0".into(),
            level: CapabilityLevel::Cgroup,
            rights: vec![missing(Ability::FreezeV2, "no", Some("do"))],
        };
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["level"], "cgroup");
        assert_eq!(json["rights"][0]["name"], "freeze-v2");
        assert_eq!(json["rights"][0]["available"], false);
        assert_eq!(json["rights"][0]["remedy"], "do");
    }
}
