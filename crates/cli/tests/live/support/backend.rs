//! The freezers that this machine gives the caller, and the cgroups that are left of them.

use std::fs;
use std::path::{Path, PathBuf};

use cosched_linux::cgroup::{Dir, Hierarchies, Hierarchy};
use cosched_linux::kernel::procfs::Proc;

/// A freezer, as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backend(pub(crate) &'static str);

impl Backend {
    /// Those that are available here; for the others a message is printed.
    pub(crate) fn here() -> Vec<Backend> {
        let all = [Backend("cgroup-v2"), Backend("cgroup-v1"), Backend("signals")];
        all.into_iter().filter(|backend| backend.is_here()).collect()
    }

    pub(crate) fn is_here(self) -> bool {
        let trees = Hierarchies::find(&Proc::default()).unwrap();
        let tree = match self.0 {
            "cgroup-v2" => trees.v2(),
            "cgroup-v1" => trees.v1("freezer"),
            _ => return true,
        };
        let usable = |tree: &Hierarchy| tree.own.try_in_child(|_| Ok(())).is_ok();
        let here = tree.is_some_and(usable);
        if !here {
            super::skip(format!("{} is not open to this user", self.0));
        }
        here
    }
}

/// Where cgroup trees are mounted.
fn mounts() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    let rows = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    rows.filter(|row| row[2].starts_with("cgroup")).map(|row| row[1].into()).collect()
}

/// Every cgroup of this name, in every tree.
pub(crate) fn cgroups_named(name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    mounts().iter().for_each(|mount| search(mount, name, &mut found));
    found
}

fn search(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir())) {
        if entry.file_name() == name {
            found.push(entry.path());
        }
        search(&entry.path(), name, found);
    }
}

/// The cgroups of a process that a run of cosched has made.
pub(crate) fn cgroups_of(pid: i32) -> Vec<PathBuf> {
    let places = Proc::default().cgroups(pid).unwrap_or_default();
    let paths = places.iter().map(|place| place.path.trim_start_matches('/').to_owned());
    let ours: Vec<String> = paths.filter(|path| path.contains("cosched-")).collect();
    let folders = mounts().into_iter().flat_map(|m| ours.iter().map(move |path| m.join(path)));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// A frozen cgroup beside the caller's; thawed and removed when dropped.
pub(crate) struct Ice {
    folder: Dir,
    /// The file that freezes it, and what is written there to thaw it.
    file: &'static str,
    thawed: &'static str,
}

impl Ice {
    /// That of a freezer; `None`, with a message, where it cannot be made.
    pub(crate) fn of(backend: Backend) -> Option<Ice> {
        let trees = Hierarchies::find(&Proc::default()).unwrap();
        let (tree, file, frozen, thawed) = match backend.0 {
            "cgroup-v2" => (trees.v2(), "cgroup.freeze", "1", "0"),
            _ => (trees.v1("freezer"), "freezer.state", "FROZEN", "THAWED"),
        };
        let name = format!("test-ice-{}", std::process::id());
        let made = tree.and_then(|tree| tree.own.create_child(&name).ok());
        let made = made.filter(|folder| folder.write(file, frozen).is_ok());
        if made.is_none() {
            super::skip(format!("{} is not open to this user", backend.0));
        }
        made.map(|folder| Ice { folder, file, thawed })
    }

    pub(crate) fn freeze(&self, pid: i32) {
        fs::write(self.folder.path().join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Ice {
    fn drop(&mut self) {
        let _ = self.folder.write(self.file, self.thawed);
        super::eventually("the end of the frozen cgroup", || self.folder.remove().is_ok());
    }
}
