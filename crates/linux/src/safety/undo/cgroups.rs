//! Removing cgroups: thaw, move all processes back, remove.
//!
//! Programs may have made cgroups of their own below, so each step goes over the whole subtree.
//! Programs may also fork, or be about to end, meanwhile; each step may be repeated.

use std::path::Path;
use std::time::{Duration, Instant};

use super::record::CgroupKind;
use crate::cgroup::{Dir, Version, even_out};
use crate::kernel::files::FileError;

/// How long to wait for ended processes to leave a cgroup.
const LEAVING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

/// A cgroup to be removed, and where its processes go.
#[derive(Debug)]
pub(super) struct Doomed {
    pub(super) kind: CgroupKind,
    pub(super) dir: Dir,
    pub(super) origin: Dir,
}

impl Doomed {
    pub(super) fn new(kind: CgroupKind, dir: &Path, origin: &Path) -> Doomed {
        let at = |path: &Path| Dir::new(path, kind.version());
        Doomed { kind, dir: at(dir), origin: at(origin) }
    }

    pub(super) fn is_there(&self) -> bool {
        self.dir.path().is_dir()
    }

    /// Thaws everything in the subtree.
    pub(super) fn thaw(&self) -> Result<(), FileError> {
        let (file, text) = match self.kind {
            CgroupKind::V2 => ("cgroup.freeze", "0"),
            CgroupKind::V1Freezer => ("freezer.state", "THAWED"),
            CgroupKind::V1Cpuset | CgroupKind::V1Cpu => return Ok(()),
        };
        each(&self.dir, &mut |dir| unless_gone(dir.write(file, text)))
    }

    /// Gives all programs of the run the same weight.
    pub(super) fn even_out(&self) -> Result<(), FileError> {
        if !matches!(self.kind, CgroupKind::V2 | CgroupKind::V1Cpu) {
            return Ok(());
        }
        // Groups further down are the programs' own.
        children(&self.dir)?.iter().try_for_each(|program| unless_gone(even_out(program)))
    }

    /// Moves every process of the subtree to its original cgroup. Returns the number of moved
    /// processes.
    pub(super) fn evacuate(&self) -> Result<usize, FileError> {
        let mut moved = 0;
        each(&self.dir, &mut |dir| {
            // A process of another PID namespace reads as 0, which would mean the caller itself.
            let pids = dir
                .procs()
                .or_else(|error| if vanished(&error) { Ok(Vec::new()) } else { Err(error) })?;
            for pid in pids.into_iter().filter(|pid| *pid != 0) {
                match self.origin.add(pid) {
                    Ok(()) => moved += 1,
                    // It has ended. If the original cgroup is gone, the removal fails and shows
                    // that.
                    Err(error) if error.is_gone() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        Ok(moved)
    }

    /// Removes the subtree, moving out processes that are born in it meanwhile.
    pub(super) fn remove(&self) -> Result<(), FileError> {
        let until = Instant::now() + LEAVING;
        loop {
            match remove_all(&self.dir) {
                Err(error) if error.errno() == Some(libc::EBUSY) && Instant::now() < until => {
                    self.evacuate()?;
                    std::thread::sleep(PAUSE);
                }
                result => return result,
            }
        }
    }
}

/// Disables the controllers that [`enable_controllers`](crate::cgroup::enable_controllers) enabled.
/// Nothing is written where it was announced and not done: the cgroup may not be the user's.
pub(super) fn pass_on_no_more(dir: &Path, added: &[String]) -> Result<(), FileError> {
    let dir = Dir::new(dir, Version::V2);
    let Some(list) = dir.read_if_there(PASSED_ON)? else { return Ok(()) };
    let is_passed_on = |name: &&String| list.split_whitespace().any(|passed| passed == *name);
    let words: Vec<String> =
        added.iter().filter(is_passed_on).map(|name| format!("-{name}")).collect();
    match words.is_empty() {
        true => Ok(()),
        false => unless_gone(dir.write(PASSED_ON, &words.join(" "))),
    }
}

const PASSED_ON: &str = "cgroup.subtree_control";

/// From the top down, so that a cgroup is thawed after those above it.
fn each(dir: &Dir, act: &mut impl FnMut(&Dir) -> Result<(), FileError>) -> Result<(), FileError> {
    act(dir)?;
    for child in children(dir)? {
        each(&child, act)?;
    }
    Ok(())
}

fn remove_all(dir: &Dir) -> Result<(), FileError> {
    for child in children(dir)? {
        remove_all(&child)?;
    }
    unless_gone(dir.remove())
}

fn children(dir: &Dir) -> Result<Vec<Dir>, FileError> {
    match dir.children() {
        Err(error) if vanished(&error) => Ok(Vec::new()),
        other => other,
    }
}

fn unless_gone(result: Result<(), FileError>) -> Result<(), FileError> {
    match result {
        Err(error) if vanished(&error) => Ok(()),
        other => other,
    }
}

/// Whether the cgroup was removed: before its file was opened, or afterwards.
fn vanished(error: &FileError) -> bool {
    error.is_gone() || error.errno() == Some(libc::ENODEV)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn controllers_are_disabled_only_where_they_are_enabled() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(PASSED_ON);
        let added = ["cpu", "io"].map(str::to_owned);
        for (passed_on, written) in [("memory io\n", "-io"), ("memory\n", "memory\n")] {
            fs::write(&file, passed_on).unwrap();
            pass_on_no_more(root.path(), &added).unwrap();
            assert!(fs::read_to_string(&file).unwrap().starts_with(written), "{passed_on}");
        }
        fs::remove_file(&file).unwrap();
        pass_on_no_more(root.path(), &added).unwrap();
        assert!(!file.exists());
    }

    #[test]
    fn subtrees_are_thawed_only_in_hierarchies_that_freeze() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("job/own");
        fs::create_dir_all(&inner).unwrap();
        let files = [root.path().join("job/cgroup.freeze"), inner.join("cgroup.freeze")];
        files.iter().for_each(|file| fs::write(file, "1").unwrap());
        Doomed::new(CgroupKind::V1Cpu, &root.path().join("job"), root.path()).thaw().unwrap();
        assert_eq!(fs::read_to_string(&files[1]).unwrap(), "1");
        Doomed::new(CgroupKind::V2, &root.path().join("job"), root.path()).thaw().unwrap();
        assert!(files.iter().all(|file| fs::read_to_string(file).unwrap() == "0"));
    }

    #[test]
    fn processes_are_moved_to_the_origin_but_never_number_0() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("job")).unwrap();
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        fs::write(root.path().join("job/cgroup.procs"), "0\n12\n").unwrap();
        let doomed = Doomed::new(CgroupKind::V2, &root.path().join("job"), root.path());
        assert_eq!(doomed.evacuate().unwrap(), 1);
        assert_eq!(fs::read_to_string(root.path().join("cgroup.procs")).unwrap(), "12");
    }

    #[test]
    fn a_removed_cgroup_needs_nothing() {
        let doomed = Doomed::new(CgroupKind::V2, Path::new("/not/there"), Path::new("/not"));
        doomed.thaw().unwrap();
        assert_eq!(doomed.evacuate().unwrap(), 0);
        doomed.remove().unwrap();
    }
}
