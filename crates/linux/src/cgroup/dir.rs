//! One cgroup: a folder with control files and child folders.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::kernel::files::{self, FileError};

/// The start of the name of a cgroup that is made to find out what may be done.
pub const PROBE: &str = "cosched-probe-";

const PROCS: &str = "cgroup.procs";
/// How many cgroups below one are looked through for threads.
pub(crate) const MOST_GROUPS: usize = 64;

/// Which generation of the interface a cgroup belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// One tree per controller.
    V1,
    /// One tree for all.
    V2,
}

/// A cgroup. Neither holding nor dropping one changes anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dir {
    path: PathBuf,
    version: Version,
}

impl Dir {
    /// The cgroup at `path`, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>, version: Version) -> Dir {
        Dir { path: path.into(), version }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its generation.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The child called `name`, which need not exist yet.
    pub fn child(&self, name: &str) -> Dir {
        Dir::new(self.path.join(name), self.version)
    }

    /// Makes the child called `name`.
    ///
    /// # Errors
    /// When it exists, or permission is missing.
    pub fn create_child(&self, name: &str) -> Result<Dir, FileError> {
        let child = self.child(name);
        match fs::create_dir(&child.path) {
            Ok(()) => Ok(child),
            Err(source) => Err(FileError::io("make cgroup", &child.path, source)),
        }
    }

    /// The existing children.
    ///
    /// # Errors
    /// When the cgroup is gone or unreadable.
    pub fn children(&self) -> Result<Vec<Dir>, FileError> {
        let listed = |source| FileError::io("list", &self.path, source);
        let mut children = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(listed)? {
            let entry = entry.map_err(listed)?;
            if entry.file_type().map_err(listed)?.is_dir() {
                children.push(Dir::new(entry.path(), self.version));
            }
        }
        Ok(children)
    }

    /// Removes the cgroup, which must have neither processes nor children. Tries once: processes
    /// that have just ended may still be in it, and the caller decides when to try again.
    ///
    /// # Errors
    /// When it is in use (`EBUSY`), gone, or permission is missing.
    pub fn remove(&self) -> Result<(), FileError> {
        fs::remove_dir(&self.path)
            .map_err(|source| FileError::io("remove cgroup", &self.path, source))
    }

    /// Moves a process with all its threads into the cgroup; process 0 is the caller.
    ///
    /// # Errors
    /// When the process is gone, permission is missing, the cgroup passes controllers on (v2,
    /// `EBUSY`), or it has no CPUs or memory nodes yet (v1 cpuset, `ENOSPC`).
    pub fn add(&self, pid: i32) -> Result<(), FileError> {
        self.write(PROCS, &pid.to_string())
    }

    /// The processes in the cgroup itself, ascending; a process from outside the caller's
    /// PID namespace shows as 0.
    ///
    /// # Errors
    /// When the cgroup is gone or unreadable.
    pub fn procs(&self) -> Result<Vec<i32>, FileError> {
        let path = self.path.join(PROCS);
        let parse = |line: &str| {
            line.parse().map_err(|_| FileError::malformed(&path, "process numbers", line))
        };
        let mut pids = files::read(&path)?.lines().map(parse).collect::<Result<Vec<i32>, _>>()?;
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Whether there are cgroups in it, which its number of links tells faster than a list.
    pub(crate) fn has_children(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|found| found.nlink() != 2)
    }

    /// The threads in the cgroup itself. A group that is gone has none.
    pub(crate) fn threads(&self) -> Vec<i32> {
        let file = match self.version {
            Version::V2 => "cgroup.threads",
            Version::V1 => "tasks",
        };
        let list = self.read(file).unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// The threads in the cgroup and below it, and whether these are all: a program may have made
    /// any number of groups.
    pub(crate) fn threads_below(&self) -> (Vec<i32>, bool) {
        let (mut found, mut groups) = (Vec::new(), vec![self.clone()]);
        for _ in 0..MOST_GROUPS {
            let Some(group) = groups.pop() else { break };
            found.extend(group.threads());
            if group.has_children() {
                // One that is gone has none.
                groups.extend(group.children().unwrap_or_default());
            }
        }
        (found, groups.is_empty())
    }

    /// The processes in the cgroup and everywhere below it, ascending.
    pub(crate) fn procs_recursive(&self) -> Result<Vec<i32>, FileError> {
        let mut pids = self.procs()?;
        for child in self.children()? {
            pids.extend(files::unless_gone(child.procs_recursive())?.unwrap_or_default());
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Whether the cgroup has this control file.
    pub fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// Reads a control file.
    ///
    /// # Errors
    /// When it is not there or unreadable.
    pub fn read(&self, file: &str) -> Result<String, FileError> {
        files::read(&self.path.join(file))
    }

    /// Reads a control file; `None` if it is not there.
    pub(crate) fn read_if_there(&self, file: &str) -> Result<Option<String>, FileError> {
        files::read_if_there(&self.path.join(file))
    }

    /// Writes a control file.
    ///
    /// # Errors
    /// When it is not there, permission is missing, or the kernel rejects the text.
    pub fn write(&self, file: &str, text: &str) -> Result<(), FileError> {
        files::write(&self.path.join(file), text)
    }

    /// Finds out whether something can be done with a child, by making one. Owners and permission
    /// bits are not enough: read-only mounts, namespaces and security modules matter, too. The
    /// child is removed when this returns.
    ///
    /// # Errors
    /// What the kernel refused, in `attempt` or before.
    pub fn try_in_child(
        &self,
        attempt: impl FnOnce(&Dir) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let child = self.create_child(&probe_name())?;
        // A process may be moved if both its old and its new group's file can be opened for
        // writing.
        let may_move = |dir: &Dir| dir.open_as(PROCS, "open for writing", true);
        let result = may_move(self).and_then(|_| may_move(&child)).and_then(|_| attempt(&child));
        child.remove()?;
        result
    }

    /// The child that [`Dir::try_in_child`] makes. A caller that can be killed meanwhile announces
    /// it in the undo log.
    pub(crate) fn probe(&self) -> Dir {
        self.child(&probe_name())
    }

    pub(super) fn open(&self, file: &str, write: bool) -> Result<File, FileError> {
        self.open_as(file, "open", write)
    }

    fn open_as(&self, file: &str, action: &'static str, write: bool) -> Result<File, FileError> {
        let path = self.path.join(file);
        let opened = OpenOptions::new().read(!write).write(write).open(&path);
        opened.map_err(|source| FileError::io(action, &path, source))
    }
}

fn probe_name() -> String {
    format!("{PROBE}{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::live;

    #[test]
    fn processes_are_listed_over_the_whole_subtree_once_each() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::new(root.path(), Version::V2);
        let child = dir.create_child("a").unwrap();
        fs::write(dir.path().join("cgroup.procs"), "9\n7\n").unwrap();
        fs::write(child.path().join("cgroup.procs"), "8\n7\n").unwrap();
        assert_eq!(dir.procs().unwrap(), [7, 9]);
        assert_eq!(dir.procs_recursive().unwrap(), [7, 8, 9]);
    }

    #[test]
    fn an_error_for_an_unwritable_folder_has_its_path() {
        let dir = Dir::new("/proc/self/task", Version::V2);
        let error = dir.try_in_child(|_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("/proc/self/task/cosched-probe"), "{error}");
    }

    #[test]
    fn a_process_goes_where_it_is_moved() {
        let Some(mut scratch) = live::v2("dir") else { return };
        scratch.dir().try_in_child(|_| Ok(())).unwrap();
        assert_eq!(scratch.dir().children().unwrap(), []);
        let pid = scratch.start("exec sleep 1000");
        assert_eq!(scratch.dir().procs().unwrap(), [pid]);
        let busy = scratch.dir().remove().unwrap_err();
        assert_eq!(busy.errno(), Some(libc::EBUSY));
    }

    #[test]
    fn threads_started_in_a_programs_own_groups_are_found() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("own/inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(root.path().join("tasks"), "1\n2\n").unwrap();
        std::fs::write(inner.join("tasks"), "3\n").unwrap();
        let dir = Dir::new(root.path(), Version::V1);
        assert_eq!((dir.threads(), dir.threads_below()), (vec![1, 2], (vec![1, 2, 3], true)));
    }
}
