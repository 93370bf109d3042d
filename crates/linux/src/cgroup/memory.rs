//! How much memory the calling process can still take.

use super::dir::{Dir, Version};
use super::find::Hierarchies;
use crate::kernel::files;
use crate::kernel::procfs::Proc;

/// Bytes: what the machine has available, or what the limits of the caller's cgroups leave, if that
/// is less. `None` where the kernel tells neither.
pub fn memory_left(proc: &Proc) -> Option<u64> {
    let machine = files::read(&proc.root().join("meminfo")).ok();
    let machine = machine.and_then(|text| named(&text, "MemAvailable:")).map(|kib| kib * 1024);
    let trees = Hierarchies::find(proc).unwrap_or_default();
    let groups = trees.v2().into_iter().chain(trees.v1("memory"));
    groups
        .flat_map(|tree| tree.own_and_above())
        .filter_map(|dir| left_in(&dir))
        .chain(machine)
        .min()
}

/// What a group's limit leaves. Files that were read once are given back when memory is short.
fn left_in(dir: &Dir) -> Option<u64> {
    let (limit, used, given_back) = match dir.version() {
        Version::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        Version::V2 => ("memory.max", "memory.current", "inactive_file"),
    };
    let number = |file: &str| dir.read(file).ok()?.trim().parse::<u64>().ok();
    // Without a limit: `max`.
    let limit = number(limit)?;
    let given_back = dir.read("memory.stat").ok().and_then(|text| named(&text, given_back));
    let used = number(used)?.saturating_sub(given_back.unwrap_or(0));
    Some(limit.saturating_sub(used))
}

/// The number behind a name, of lines with one each.
fn named(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_limit_leaves_what_is_not_used() {
        for (version, files) in [
            (Version::V2, ["memory.max", "memory.current", "inactive_file"]),
            (
                Version::V1,
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
            let dir = Dir::new(folder.path(), version);
            assert_eq!(left_in(&dir), None, "the root has no limit");
            write(files[1], "700\n");
            write(files[0], "max\n");
            assert_eq!(left_in(&dir), None);
            write(files[0], "1000\n");
            assert_eq!(left_in(&dir), Some(300));
            write("memory.stat", &format!("anon 600\n{} 100\n", files[2]));
            assert_eq!(left_in(&dir), Some(400));
        }
    }

    #[test]
    fn this_machine_has_memory_left() {
        let left = memory_left(&Proc::default()).unwrap();
        assert!(left > 1 << 20, "{left}");
    }
}
