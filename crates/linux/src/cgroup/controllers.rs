//! Enabling v2 controllers for children.
//!
//! Children of a v2 cgroup have `cpuset.cpus` or `cpu.weight` only if their parent's
//! `cgroup.subtree_control` names the controller. Below the root the kernel allows that only in a
//! cgroup that holds no process itself. A caller in a new cgroup is itself in the way, so it first
//! steps down into a leaf of its own. The cgroup that it leaves can then enable controllers for the
//! leaf and for every other child. Processes other than the caller's are never moved: if there are
//! any, it is an error.

use std::path::PathBuf;

use super::dir::Dir;
use crate::kernel::files::FileError;

/// The file of a cgroup that names the controllers of its children.
pub(crate) const PASSED_ON: &str = "cgroup.subtree_control";

/// The child of a cgroup into which the caller steps down if it is in the way; made by
/// [`enable_controller`].
pub(crate) fn leaf_below(dir: &Dir) -> Dir {
    dir.child(&leaf_name())
}

/// The start of such a leaf's name; the caller's number follows.
pub(crate) const LEAF: &str = "cosched-self-";

/// The name contains the caller's number, so that two callers never share a leaf.
fn leaf_name() -> String {
    format!("{LEAF}{}", own_pid())
}

/// Why controllers could not be enabled.
#[derive(Debug, thiserror::Error)]
pub enum EnableError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The cgroup does not have the controller itself.
    #[error(
        "the controller '{controller}' is not passed down to {}; `cosched doctor` names a remedy",
        dir.display()
    )]
    NotAvailable {
        /// Which controller.
        controller: String,
        /// Which cgroup lacks it.
        dir: PathBuf,
    },
    /// Other processes are in the cgroup.
    #[error(
        "{} holds other processes ({others:?}), so it cannot pass controllers on; start cosched in \
         a cgroup of its own",
        dir.display()
    )]
    Crowded {
        /// Which cgroup.
        dir: PathBuf,
        /// The processes that are not the caller's.
        others: Vec<i32>,
    },
}

/// What [`enable_controller`] changed, so that it can be undone; `None`: nothing.
#[derive(Debug)]
pub(crate) struct Enabled(Option<Change>);

#[derive(Debug)]
struct Change {
    dir: Dir,
    controller: String,
    /// The leaf into which the caller has moved.
    leaf: Option<Dir>,
}

impl Enabled {
    /// Undoes all changes. Other children must be gone or not use the controller.
    pub(crate) fn undo(self) -> Result<(), FileError> {
        let Some(Change { dir, controller, leaf }) = self.0 else { return Ok(()) };
        dir.write(PASSED_ON, &format!("-{controller}"))?;
        leaf.map_or(Ok(()), |leaf| step_up(&dir, &leaf, own_pid()))
    }
}

/// Enables a controller for the children of a v2 cgroup, or changes nothing.
pub(crate) fn enable_controller(dir: &Dir, controller: &str) -> Result<Enabled, EnableError> {
    let lists =
        |file| dir.read(file).map(|list| list.split_whitespace().any(|name| name == controller));
    let (controller, path) = (controller.to_owned(), dir.path().to_owned());
    if !lists("cgroup.controllers")? {
        return Err(EnableError::NotAvailable { controller, dir: path });
    }
    if lists(PASSED_ON)? {
        return Ok(Enabled(None));
    }
    let leaf = step_down(dir, own_pid())?;
    if let Err(error) = dir.write(PASSED_ON, &format!("+{controller}")) {
        leaf.map_or(Ok(()), |leaf| step_up(dir, &leaf, own_pid()))?;
        return Err(error.into());
    }
    Ok(Enabled(Some(Change { dir: dir.clone(), controller, leaf })))
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

/// Moves a process that is in the way into a leaf, provided that it is the only one.
fn step_down(dir: &Dir, me: i32) -> Result<Option<Dir>, EnableError> {
    // The root of the tree, the only group without a type, may hold processes and enable
    // controllers.
    if !dir.has("cgroup.type") {
        return Ok(None);
    }
    let mut others = dir.procs()?;
    let here = others.len();
    others.retain(|pid| *pid != me);
    if !others.is_empty() {
        return Err(EnableError::Crowded { dir: dir.path().to_owned(), others });
    }
    if here == 0 {
        return Ok(None);
    }
    let leaf = dir.create_child(&leaf_name())?;
    if let Err(error) = leaf.add(me) {
        leaf.remove()?;
        return Err(error.into());
    }
    Ok(Some(leaf))
}

fn step_up(dir: &Dir, leaf: &Dir, me: i32) -> Result<(), FileError> {
    dir.add(me)?;
    leaf.remove()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::cgroup::{Version, live};

    /// A made-up cgroup below the root, with these members and enabled controllers.
    fn group(procs: &str, passed_on: &str) -> (TempDir, Dir) {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("cgroup.type", "domain\n"),
            ("cgroup.controllers", "cpuset cpu memory\n"),
            ("cgroup.subtree_control", passed_on),
            ("cgroup.procs", procs),
        ];
        for (file, text) in files {
            fs::write(root.path().join(file), text).unwrap();
        }
        let dir = Dir::new(root.path(), Version::V2);
        (root, dir)
    }

    #[test]
    fn a_group_without_processes_enables_a_missing_controller() {
        let (_root, dir) = group("", "cpu");
        let enabled = enable_controller(&dir, "cpuset").unwrap();
        assert_eq!(dir.read(PASSED_ON).unwrap(), "+cpuset");
        assert!(enabled.0.as_ref().is_some_and(|change| change.leaf.is_none()));
        fs::write(dir.path().join(PASSED_ON), "").unwrap();
        enabled.undo().unwrap();
        assert_eq!(dir.read(PASSED_ON).unwrap(), "-cpuset");
    }

    #[test]
    fn a_group_with_foreign_processes_is_unchanged() {
        let (_root, dir) = group(&format!("{}\n1\n", std::process::id()), "");
        let error = enable_controller(&dir, "cpu").unwrap_err();
        assert!(matches!(&error, EnableError::Crowded { others, .. } if *others == [1]), "{error}");
        assert_eq!(dir.children().unwrap(), []);
        assert_eq!(dir.read(PASSED_ON).unwrap(), "");
    }

    #[test]
    fn the_root_enables_controllers_despite_its_processes() {
        let (root, dir) = group("1\n2\n", "");
        fs::remove_file(root.path().join("cgroup.type")).unwrap();
        enable_controller(&dir, "cpu").unwrap();
        assert_eq!(dir.read(PASSED_ON).unwrap(), "+cpu");
    }

    #[test]
    fn an_enabled_controller_needs_nothing() {
        let (_root, dir) = group("1\n2\n", "cpuset cpu");
        enable_controller(&dir, "cpu").unwrap().undo().unwrap();
        assert_eq!(dir.read(PASSED_ON).unwrap(), "cpuset cpu");
    }

    #[test]
    fn a_controller_that_is_not_there_is_named_with_the_group() {
        let (root, dir) = group("", "");
        let error = enable_controller(&dir, "io").unwrap_err().to_string();
        assert!(error.contains("'io'") && error.contains(root.path().to_str().unwrap()), "{error}");
        assert_eq!(dir.read(PASSED_ON).unwrap(), "");
    }

    #[test]
    fn a_lone_process_steps_down_into_a_leaf_and_up_again() {
        let Some(mut scratch) = live::v2("step") else { return };
        let pid = scratch.start("exec sleep 1000");
        let leaf = step_down(scratch.dir(), pid).unwrap().unwrap();
        assert_eq!(scratch.dir().procs().unwrap(), [0; 0]);
        assert_eq!((&leaf, leaf.procs().unwrap()), (&leaf_below(scratch.dir()), vec![pid]));
        step_up(scratch.dir(), &leaf, pid).unwrap();
        assert_eq!(scratch.dir().procs().unwrap(), [pid]);
        assert_eq!(scratch.dir().children().unwrap(), []);
    }
}
