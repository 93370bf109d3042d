//! Whether the kernel shares the CPUs by session.
//!
//! The autogroup feature makes a CPU group of every session, so a session with many threads gets no
//! more than one with few. Programs in cosched's own session would then take CPU time from
//! cosched's share, so each gets a session of its own. But such a session has no controlling
//! terminal. Where the feature is off, or a cpu cgroup decides instead, programs therefore stay in
//! cosched's session.

use crate::cgroup::Hierarchies;
use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::Proc;

/// Whether sessions share the CPUs among the processes that the caller starts.
///
/// # Errors
/// When the cgroups cannot be found.
pub fn shares_by_session(proc: &Proc) -> Result<bool, FileError> {
    Ok(is_in_effect(&Hierarchies::find(proc)?, proc))
}

/// Whether the feature is on, and no cpu cgroup is above it.
pub(crate) fn is_in_effect(trees: &Hierarchies, proc: &Proc) -> bool {
    let below_v2 =
        trees.v2().is_some_and(|tree| tree.own_and_above().any(|dir| dir.has("cpu.weight")));
    let below_v1 = trees.v1("cpu").is_some_and(|tree| tree.own.path() != tree.mount);
    if below_v1 || below_v2 {
        return false;
    }
    let switch = proc.root().join("sys/kernel/sched_autogroup_enabled");
    files::read_if_there(&switch).is_ok_and(|text| text.is_some_and(|t| t.trim() == "1"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A made-up host with this content of the switch and the caller in `/job` of a cgroup v2 tree,
    /// which may have weights.
    fn shares(switch: Option<&str>, weights: bool) -> bool {
        let root = tempfile::tempdir().unwrap();
        let mount = format!("1 1 0:1 / {}/c rw - cgroup2 cgroup2 rw\n", root.path().display());
        for folder in ["c/job", "self", "sys/kernel"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("self/mountinfo"), mount).unwrap();
        fs::write(root.path().join("self/cgroup"), "0::/job\n").unwrap();
        if let Some(text) = switch {
            fs::write(root.path().join("sys/kernel/sched_autogroup_enabled"), text).unwrap();
        }
        if weights {
            fs::write(root.path().join("c/job/cpu.weight"), "100\n").unwrap();
        }
        shares_by_session(&Proc::new(root.path())).unwrap()
    }

    #[test]
    fn sessions_share_cpus_only_with_autogroup_and_no_cpu_cgroup() {
        assert!(shares(Some("1\n"), false));
        assert!(!shares(Some("0\n"), false));
        assert!(!shares(None, false));
        assert!(!shares(Some("1\n"), true));
    }
}
