//! Cgroups of a run that nothing leads to: its log was removed, and all its processes were killed.
//!
//! A cgroup tells by its [mark](crate::cgroup::Mark) which log it was in, and whether its cosched
//! lives. What was in the log besides is lost: the threads that were bound or got another priority
//! one by one. Processes that were stopped by signals carry no mark, since programs would see it.

use std::path::{Path, PathBuf};

use super::journal::Journal;
use super::log::owner;
use super::place::{is_own_folder, own_uid};
use super::record::{CgroupKind, Record};
use crate::cgroup::{
    Dir, Hierarchies, Hierarchy, LEAF, Mark, PASSED_ON, PROBE, RUN, Version, is_numbered,
};
use crate::kernel::procfs::Proc;

/// The most levels below a mount: far more than any system uses.
const DEEPEST: usize = 32;

/// The cgroups of a run.
#[derive(Debug)]
pub struct LostGroups {
    /// Where the log was.
    pub log: PathBuf,
    /// What is to be undone of them.
    pub journal: Journal,
}

/// A cgroup of a run of this user. Its cosched is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftGroup {
    /// Its folder.
    pub dir: PathBuf,
    /// The log that its mark names, in whatever folder.
    pub log: PathBuf,
}

/// All cgroups of this user's runs of which the cosched is gone. Their logs may be in any folder: a
/// run can have had another `XDG_RUNTIME_DIR`.
pub fn left_groups(proc: &Proc) -> Vec<LeftGroup> {
    let mut left = Vec::new();
    each_left(proc, |_, dir, log| {
        if is_of_a_gone_cosched(&log, proc) {
            left.push(LeftGroup { dir: dir.path().to_owned(), log });
        }
    });
    left
}

/// The cgroups of this user's runs of which the cosched is gone, and the log was removed from one
/// of these folders.
pub fn lost_groups(folders: &[PathBuf], proc: &Proc) -> Vec<LostGroups> {
    let mut lost: Vec<LostGroups> = Vec::new();
    each_left(proc, |kind, dir, log| {
        let Some(origin) = dir.path().parent().filter(|_| is_lost(&log, folders, proc)) else {
            return;
        };
        let known = lost.iter().position(|one| one.log == log);
        let known = known.unwrap_or_else(|| {
            lost.push(LostGroups { log, journal: Journal::default() });
            lost.len() - 1
        });
        records(kind, dir, origin).into_iter().for_each(|one| lost[known].journal.add(one));
    });
    lost
}

/// Calls `act` for each cgroup of this user that has a mark and that no cosched holds, with the log
/// that the mark names.
fn each_left(proc: &Proc, mut act: impl FnMut(CgroupKind, &Dir, PathBuf)) {
    let user = own_uid();
    for tree in Hierarchies::find(proc).iter().flat_map(Hierarchies::all) {
        let Some(kind) = kind(tree) else { continue };
        let top = Dir::new(&tree.mount, tree.own.version());
        each(&top, DEEPEST, &mut |dir| {
            if let Some(log) = Mark::left(dir, user) {
                act(kind, dir, log);
            }
        });
    }
}

fn kind(tree: &Hierarchy) -> Option<CgroupKind> {
    let has = |name: &str| tree.controllers.iter().any(|controller| controller == name);
    match tree.own.version() {
        Version::V2 => Some(CgroupKind::V2),
        Version::V1 if has("freezer") => Some(CgroupKind::V1Freezer),
        Version::V1 if has("cpuset") => Some(CgroupKind::V1Cpuset),
        Version::V1 if has("cpu") => Some(CgroupKind::V1Cpu),
        Version::V1 => None,
    }
}

/// Whether this log was in one of these folders, and is not there any more, and neither is its
/// cosched.
fn is_lost(log: &Path, folders: &[PathBuf], proc: &Proc) -> bool {
    let is_ours = folders.iter().any(|folder| log.parent() == Some(folder));
    // Another user may have made a folder of that name in /tmp since.
    let is_removed = log.symlink_metadata().is_err() || !log.parent().is_some_and(is_own_folder);
    is_ours && is_of_a_gone_cosched(log, proc) && is_removed
}

fn is_of_a_gone_cosched(log: &Path, proc: &Proc) -> bool {
    owner(log).is_some_and(|owner| owner.look(proc).is_none())
}

/// Calls `act` for each cgroup that has the name of one of a run.
fn each(dir: &Dir, levels: usize, act: &mut impl FnMut(&Dir)) {
    for child in dir.children().unwrap_or_default() {
        let name = child.path().file_name().unwrap_or_default().to_string_lossy();
        let is_of_a_run = [RUN, LEAF, PROBE].iter().any(|start| is_numbered(&name, start));
        // Programs of a run may be runs themselves; those come first.
        if levels > 0 && child.has_children() {
            each(&child, levels - 1, act);
        }
        if is_of_a_run {
            act(&child);
        }
    }
}

/// What its log said of a cgroup.
fn records(kind: CgroupKind, dir: &Dir, origin: &Path) -> Vec<Record> {
    let passed_on = |dir: &Dir| {
        let list = dir.read(PASSED_ON).unwrap_or_default();
        let added: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
        (!added.is_empty()).then(|| Record::Controllers { dir: dir.path().to_owned(), added })
    };
    let mut records = Vec::new();
    if kind == CgroupKind::V2 {
        // The run with a leaf has enabled all that is enabled above it: no cgroup passes
        // controllers on while a process is in it.
        let name = dir.path().file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(LEAF) {
            records.extend(passed_on(&Dir::new(origin, Version::V2)));
        }
        records.extend(passed_on(dir));
    }
    let (dir, origin) = (dir.path().to_owned(), origin.to_owned());
    records.push(Record::CgroupDir { kind, dir, origin });
    records
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::cgroup::live;
    use crate::process::tree::Process;

    #[test]
    fn a_log_in_a_folder_of_others_counts_as_removed() {
        let root = tempfile::tempdir().unwrap();
        let (folder, proc) = (root.path().join("cosched"), Proc::default());
        let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        // No process has the greatest number.
        let log = folder.join(format!("{}-1-1.undo", i32::MAX));
        let is_lost = || is_lost(&log, std::slice::from_ref(&folder), &proc);
        assert!(is_lost(), "there is no such folder");
        fs::create_dir(&folder).unwrap();
        fs::write(&log, "").unwrap();
        mode(0o700);
        assert!(!is_lost());
        mode(0o777);
        assert!(is_lost());
    }

    #[test]
    fn groups_are_found_by_their_names_on_every_level() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "cosched-5/p0-1/cosched-6-2",
            "a/b/cosched-self-7",
            "cosched-probe-5",
            "cosched-5.scope",
        ] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let mut found = Vec::new();
        let top = Dir::new(root.path(), Version::V2);
        each(&top, DEEPEST, &mut |dir| {
            found.push(dir.path().strip_prefix(root.path()).unwrap().to_owned());
        });
        found.sort();
        assert_eq!(
            found,
            ["a/b/cosched-self-7", "cosched-5", "cosched-5/p0-1/cosched-6-2", "cosched-probe-5"]
                .map(PathBuf::from)
        );
    }

    #[test]
    fn a_leaf_tells_that_the_group_above_passes_controllers_on() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().to_owned();
        let passing = |dir: &Path, list: &str| fs::write(dir.join(PASSED_ON), list).unwrap();
        for (name, inner) in [("cosched-self-5", ""), ("cosched-5", "cpu")] {
            let dir = Dir::new(&top, Version::V2).create_child(name).unwrap();
            passing(&top, "cpu\n");
            passing(dir.path(), inner);
            let made = records(CgroupKind::V2, &dir, &top);
            let passes = if inner.is_empty() { top.clone() } else { dir.path().to_owned() };
            let passes = Record::Controllers { dir: passes, added: vec!["cpu".to_owned()] };
            let kind = CgroupKind::V2;
            let dir = dir.path().to_owned();
            assert_eq!(made, [passes, Record::CgroupDir { kind, dir, origin: top.clone() }]);
        }
    }

    #[test]
    fn a_left_group_names_its_log_in_any_folder() {
        let proc = Proc::default();
        let of = |owner: Process| {
            PathBuf::from(format!("/no/such/folder/{}-{}-1.undo", owner.pid, owner.start_time))
        };
        // No process has the greatest number.
        let gone = of(Process { pid: i32::MAX, start_time: 1 });
        let alive = of(Process::find(&proc, std::process::id() as i32).unwrap());
        for scratch in [live::v2("left"), live::v1("freezer", "left")].into_iter().flatten() {
            let of_log = |log: &Path| {
                let dir = scratch.dir().create_child(&format!("{RUN}{}", i32::MAX)).unwrap();
                let mark = Mark::set(&dir, log);
                let is_it = |one: &LeftGroup| one.dir == dir.path();
                assert!(!left_groups(&proc).iter().any(is_it), "its cosched holds it");
                let is_marked = mark.is_some();
                drop(mark);
                let left = left_groups(&proc).into_iter().find(is_it);
                dir.remove().unwrap();
                is_marked.then_some(left)
            };
            let Some(left) = of_log(&gone) else {
                eprintln!("skipped: this kernel keeps no marks of cgroups");
                continue;
            };
            assert_eq!(left.map(|left| left.log), Some(gone.clone()));
            assert_eq!(of_log(&alive), Some(None), "its cosched lives");
            assert_eq!(of_log(Path::new("/no/log")), Some(None), "it is not the mark of a run");
        }
    }

    #[test]
    fn what_a_killed_run_has_tried_out_is_found() {
        let folder = tempfile::tempdir().unwrap();
        // No process has the greatest number.
        let log = folder.path().join(format!("{}-1-1.undo", i32::MAX));
        for scratch in [live::v2("probe"), live::v1("freezer", "probe")].into_iter().flatten() {
            let probe = scratch.dir().create_child(&format!("{PROBE}{}", i32::MAX)).unwrap();
            if Mark::set(&probe, &log).is_none() {
                eprintln!("skipped: this kernel keeps no marks of cgroups");
            } else {
                let lost = lost_groups(&[folder.path().to_owned()], &Proc::default());
                let [lost] = &lost[..] else { panic!("{lost:?}") };
                let path = probe.path();
                let is_probe = |record: &Record| match record {
                    Record::CgroupDir { dir, .. } => dir == path,
                    _ => false,
                };
                assert!(lost.log == log && lost.journal.records().iter().any(is_probe));
            }
            probe.remove().unwrap();
        }
    }
}
