//! Real cgroups for tests: made if the caller may, removed in any case.

use std::process::{Child, Command};
use std::time::Duration;

use super::{Dir, FreezeSwitch, Hierarchies, Hierarchy};
use crate::kernel::procfs::Proc;

/// A cgroup that is removed, when dropped, with everything in it.
pub(crate) struct Scratch {
    dir: Dir,
    children: Vec<Child>,
}

impl Scratch {
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Starts a command of the shell, which ends with the cgroup at the latest, and moves it in.
    pub(crate) fn start(&mut self, script: &str) -> i32 {
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let pid = child.id() as i32;
        self.children.push(child);
        self.dir.add(pid).unwrap();
        pid
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Ok(switch) = FreezeSwitch::open(&self.dir) {
            switch.thaw().unwrap();
        }
        for child in &mut self.children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        remove(&self.dir);
    }
}

fn remove(dir: &Dir) {
    for child in dir.children().unwrap_or_default() {
        remove(&child);
    }
    // Processes that were waited for may still be leaving.
    for _ in 0..1000 {
        if dir.remove().is_ok() || !dir.path().exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    eprintln!("could not remove {}", dir.path().display());
}

/// A cgroup of version 2; `None`, with a message, where permission is missing.
pub(crate) fn v2(name: &str) -> Option<Scratch> {
    let found = Hierarchies::find(&Proc::default()).unwrap();
    scratch(found.v2(), "cgroup v2", name)
}

/// A cgroup of a version 1 controller; `None`, with a message, where permission is missing.
pub(crate) fn v1(controller: &str, name: &str) -> Option<Scratch> {
    let found = Hierarchies::find(&Proc::default()).unwrap();
    scratch(found.v1(controller), controller, name)
}

fn scratch(tree: Option<&Hierarchy>, what: &str, name: &str) -> Option<Scratch> {
    let Some(tree) = tree else {
        eprintln!("skipped: {what} is not mounted here");
        return None;
    };
    match tree.own.create_child(&format!("cosched-test-{name}-{}", std::process::id())) {
        Ok(dir) => Some(Scratch { dir, children: Vec::new() }),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}
