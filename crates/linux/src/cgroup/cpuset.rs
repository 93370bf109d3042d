//! Filling a cpuset: which CPUs and memory nodes a cgroup's threads may use.
//!
//! A v2 cpuset that names nothing inherits from its parent. A v1 cpuset that names nothing is empty
//! and takes no process. Its memory nodes must therefore be named first; they come from the parent
//! if the caller names none. The kernel itself narrows the masks of the threads inside, now and
//! when further ones start: no thread can be missed.

use cosched_core::CpuSet;

use super::dir::{Dir, Version};
use crate::kernel::files::FileError;

/// Binds a cgroup of a cpuset tree to CPUs, and to NUMA nodes if any are given. No nodes (an empty
/// list) are those of the parent. Nodes that the parent has not are left out: the kernel offers
/// none without memory. In version 1 pages that are elsewhere stay there; version 2 moves them. The
/// CPUs are bound even where the nodes are refused.
pub(crate) fn bind_to(dir: &Dir, cpus: &CpuSet, nodes: Option<&[u16]>) -> Result<(), FileError> {
    let nodes = match nodes.map(|nodes| offered(dir, nodes)) {
        Some(nodes) if !nodes.is_empty() || dir.version() == Version::V2 => Some(nodes),
        _ => inherited_nodes(dir)?,
    };
    let nodes_bound = match nodes {
        // The kernel does not see a write of nothing.
        Some(nodes) => dir.write("cpuset.mems", if nodes.is_empty() { "\n" } else { &nodes }),
        None => Ok(()),
    };
    dir.write("cpuset.cpus", &cpus.to_string()).and(nodes_bound)
}

/// Those of the nodes that the parent has, as a list.
fn offered(dir: &Dir, nodes: &[u16]) -> String {
    let file = match dir.version() {
        Version::V1 => "cpuset.mems",
        Version::V2 => "cpuset.mems.effective",
    };
    let parent = dir.path().parent().map(|parent| Dir::new(parent, dir.version()));
    // Nodes have the form of CPUs, in the kernel's lists.
    let there = parent.and_then(|parent| parent.read(file).ok()?.trim().parse::<CpuSet>().ok());
    let is_there = |node: &&u16| there.is_none_or(|there| there.contains(usize::from(**node)));
    nodes.iter().filter(is_there).map(u16::to_string).collect::<Vec<String>>().join(",")
}

/// The parent's memory nodes, where a child has to name its own.
fn inherited_nodes(dir: &Dir) -> Result<Option<String>, FileError> {
    let unset = dir.version() == Version::V1 && dir.read("cpuset.mems")?.trim().is_empty();
    match dir.path().parent() {
        Some(parent) if unset => {
            let nodes = Dir::new(parent, Version::V1).read("cpuset.mems")?;
            Ok(Some(nodes.trim().to_owned()))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cgroup::live;
    use crate::kernel::{affinity, files};

    fn group(version: Version) -> (tempfile::TempDir, Dir) {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::new(root.path(), version).create_child("job").unwrap();
        for folder in [root.path(), dir.path()] {
            fs::write(folder.join("cpuset.cpus"), "").unwrap();
            fs::write(folder.join("cpuset.mems"), "").unwrap();
        }
        fs::write(root.path().join("cpuset.mems"), "0-1\n").unwrap();
        (root, dir)
    }

    #[test]
    fn a_v1_group_takes_its_memory_nodes_from_its_parent() {
        let (_root, dir) = group(Version::V1);
        bind_to(&dir, &CpuSet::first(2), None).unwrap();
        assert_eq!(dir.read("cpuset.mems").unwrap(), "0-1");
        assert_eq!(dir.read("cpuset.cpus").unwrap(), "0-1");
    }

    #[test]
    fn a_v2_group_keeps_inheriting_memory_nodes_unless_bound() {
        let (_root, dir) = group(Version::V2);
        bind_to(&dir, &CpuSet::first(2), None).unwrap();
        assert_eq!(dir.read("cpuset.mems").unwrap(), "");
        bind_to(&dir, &CpuSet::first(2), Some(&[0, 2])).unwrap();
        assert_eq!(dir.read("cpuset.mems").unwrap(), "0,2");
        // Files of the kernel are not written in part.
        fs::write(dir.path().join("cpuset.mems"), "").unwrap();
        bind_to(&dir, &CpuSet::first(2), Some(&[])).unwrap();
        assert_eq!(dir.read("cpuset.mems").unwrap(), "\n");
    }

    /// Node 1 has no memory: the kernel offers node 0 only.
    #[test]
    fn nodes_without_memory_are_left_out() {
        for (version, unbound) in [(Version::V1, "0"), (Version::V2, "\n")] {
            let (root, dir) = group(version);
            for file in ["cpuset.mems", "cpuset.mems.effective"] {
                fs::write(root.path().join(file), "0\n").unwrap();
            }
            bind_to(&dir, &CpuSet::first(2), Some(&[0, 1])).unwrap();
            assert_eq!(dir.read("cpuset.mems").unwrap(), "0");
            fs::write(dir.path().join("cpuset.mems"), "").unwrap();
            bind_to(&dir, &CpuSet::first(2), Some(&[1])).unwrap();
            assert_eq!(dir.read("cpuset.mems").unwrap(), unbound, "{version:?}");
        }
    }

    #[test]
    fn cpus_are_bound_where_nodes_are_refused() {
        let (_root, dir) = group(Version::V2);
        fs::remove_file(dir.path().join("cpuset.mems")).unwrap();
        fs::create_dir(dir.path().join("cpuset.mems")).unwrap();
        assert!(bind_to(&dir, &CpuSet::first(2), Some(&[0])).is_err());
        assert_eq!(dir.read("cpuset.cpus").unwrap(), "0-1");
    }

    #[test]
    fn a_group_without_the_controller_is_an_error_with_the_file() {
        let root = tempfile::tempdir().unwrap();
        let error = bind_to(&Dir::new(root.path(), Version::V2), &CpuSet::first(1), None);
        assert!(matches!(
            &error,
            Err(files::FileError::Io { path, .. }) if path.ends_with("cpuset.cpus")
        ));
    }

    #[test]
    fn a_real_cpuset_narrows_the_mask_of_moved_processes() {
        let Some(mut scratch) = live::v1("cpuset", "bind") else { return };
        let one: CpuSet = affinity::get(0).unwrap().iter().take(1).collect();
        bind_to(scratch.dir(), &one, None).unwrap();
        let pid = scratch.start("exec sleep 1000");
        assert_eq!(affinity::get(pid).unwrap(), one);
    }
}
