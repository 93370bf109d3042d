//! What may be done with cgroups. Everything is tried on a child made for it.

use std::path::Path;

use rustix::process::geteuid;

use super::{Ability, Right, missing, tried};
use crate::cgroup::{Dir, FreezeSwitch, Hierarchies, Hierarchy, bind_to, enable_controller};
use crate::kernel::affinity;
use crate::kernel::files::FileError;

/// There as long as systemd manages the host.
const SYSTEMD: &str = "/run/systemd/system";
const DELEGATE: &str =
    "run it in a cgroup of its own: `systemd-run --user --scope -p Delegate=yes cosched ...`";
const DELEGATE_MORE: &str = "have systemd pass the controller on: `sudo systemctl edit \
                             user@.service` with `[Service]` and `Delegate=cpu cpuset io memory \
                             pids`, log in anew, and run `systemd-run --user --scope -p \
                             Delegate=yes cosched ...`";
const MOUNT_V2: &str = "mount cgroup v2: `mount -t cgroup2 none /sys/fs/cgroup/unified`, or boot \
                        with systemd.unified_cgroup_hierarchy=1";

/// What a user types to have a cgroup below `parent` with the shell in it. A new version 1 cgroup
/// with a cpuset has no CPUs and no memory, and takes no process until it has both.
fn own_below(parent: &Path, uid: u32) -> String {
    let dir = parent.join(format!("user-{uid}"));
    let (parent, dir) = (parent.display(), dir.display());
    let copy = match Path::new(&format!("{parent}/cpuset.mems")).exists() {
        true => format!(
            " && sudo sh -c 'for f in cpus mems; do cat {parent}/cpuset.$f >{dir}/cpuset.$f; done'"
        ),
        false => String::new(),
    };
    format!(
        "sudo mkdir -p {dir}{copy} && sudo chown -R {uid} {dir} && echo $$ | sudo tee \
         {dir}/cgroup.procs"
    )
}

/// What shows on a child whether something works.
type Attempt = fn(&Dir) -> Result<(), FileError>;

pub(super) fn all(cgroups: &Hierarchies) -> Vec<Right> {
    let make_idle = |child: &Dir| child.write("cpu.idle", "1");
    vec![
        freeze_v2(cgroups),
        controller_v2(Ability::CpusetV2, cgroups, "cpuset", bind_to_all),
        controller_v2(Ability::CpuV2, cgroups, "cpu", |child| child.write("cpu.weight", "100")),
        controller_v1(Ability::FreezerV1, cgroups, "freezer", freeze_and_thaw),
        controller_v1(Ability::CpusetV1, cgroups, "cpuset", bind_to_all),
        controller_v1(Ability::CpuV1, cgroups, "cpu", |child| child.write("cpu.shares", "1024")),
        // Below version 2 if it has the controller, else below version 1.
        match cgroups.v1("cpu") {
            Some(_) => controller_v1(Ability::IdleGroups, cgroups, "cpu", make_idle),
            None => controller_v2(Ability::IdleGroups, cgroups, "cpu", make_idle),
        },
    ]
}

fn freeze_v2(cgroups: &Hierarchies) -> Right {
    match cgroups.v2() {
        Some(tree) => {
            let result = tree.own.try_in_child(freeze_and_thaw);
            tried_in(&tree.own, Ability::FreezeV2, result, &remedy_v2(tree, DELEGATE))
        }
        None => missing(Ability::FreezeV2, "no cgroup v2 tree is visible", Some(MOUNT_V2)),
    }
}

fn controller_v1(
    name: Ability,
    cgroups: &Hierarchies,
    controller: &str,
    attempt: Attempt,
) -> Right {
    match cgroups.v1(controller) {
        Some(tree) => {
            let shell = own_below(tree.own.path(), geteuid().as_raw());
            let remedy = format!("run as root, or have a cgroup of your own: `{shell}`");
            tried_in(&tree.own, name, tree.own.try_in_child(attempt), &remedy)
        }
        // No remedy is needed: hosts without v1 have the same in v2.
        None => missing(name, "no such cgroup v1 tree is visible", None),
    }
}

fn controller_v2(
    name: Ability,
    cgroups: &Hierarchies,
    controller: &str,
    attempt: Attempt,
) -> Right {
    let Some(tree) = cgroups.v2() else {
        return missing(name, "no cgroup v2 tree is visible", None);
    };
    if cgroups.v1(controller).is_some() {
        return missing(name, "this host binds the controller to a cgroup v1 tree", None);
    }
    let remedy = remedy_v2(tree, DELEGATE_MORE);
    match enable_controller(&tree.own, controller) {
        Ok(enabled) => {
            let result = tree.own.try_in_child(attempt);
            tried_in(&tree.own, name, enabled.undo().and(result), &remedy)
        }
        Err(error) => missing(name, error.to_string(), Some(&remedy)),
    }
}

/// What to request from systemd, or what to type on a host without it.
fn remedy_v2(tree: &Hierarchy, by_systemd: &str) -> String {
    match Path::new(SYSTEMD).exists() {
        true => by_systemd.to_owned(),
        false => own_v2(&tree.mount, geteuid().as_raw()),
    }
}

fn own_v2(mount: &Path, uid: u32) -> String {
    if uid != 0 {
        return format!("have a cgroup of your own: `{}`", own_below(mount, uid));
    }
    let own = mount.join("own");
    let own = own.display();
    format!(
        "start it in a cgroup of its own: `mkdir -p {own} && sh -c 'echo $$ >{own}/cgroup.procs; \
         exec cosched ...'`"
    )
}

fn tried_in(dir: &Dir, name: Ability, result: Result<(), FileError>, remedy: &str) -> Right {
    tried(name, result.map(|()| format!("in {}", dir.path().display())), Some(remedy))
}

fn freeze_and_thaw(child: &Dir) -> Result<(), FileError> {
    let switch = FreezeSwitch::open(child)?;
    let result = switch.freeze().and_then(|()| switch.thaw());
    result.map_err(|errno| FileError::io("freeze", child.path(), errno))
}

fn bind_to_all(child: &Dir) -> Result<(), FileError> {
    let cpus = affinity::get(0).map_err(|error| FileError::io("bind", child.path(), error))?;
    bind_to(child, &cpus, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::procfs::Proc;

    #[test]
    fn without_a_cgroup_tree_nothing_is_there_and_v2_has_a_remedy() {
        let none = Hierarchies::default();
        assert!(freeze_v2(&none).remedy.is_some());
        for right in all(&none) {
            assert!(!right.available, "{right:?}");
        }
    }

    #[test]
    fn a_tree_that_cannot_freeze_is_detected() {
        // An ordinary folder accepts subfolders, but they have no control files.
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("self");
        std::fs::create_dir_all(root.path().join("c")).unwrap();
        std::fs::create_dir(&own).unwrap();
        let mount = format!("1 1 0:1 / {}/c rw - cgroup2 none rw", root.path().display());
        std::fs::write(own.join("mountinfo"), mount).unwrap();
        std::fs::write(own.join("cgroup"), "0::/\n").unwrap();
        let found = Hierarchies::find(&Proc::new(root.path())).unwrap();
        let right = freeze_v2(&found);
        assert!(!right.available && right.remedy == Some(remedy_v2(found.v2().unwrap(), DELEGATE)));
        assert_eq!(std::fs::read_dir(root.path().join("c")).unwrap().count(), 0);
    }

    #[test]
    fn a_remedy_copies_the_cpuset_and_moves_the_shell() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("user-1000");
        let (from, to) = (parent.path().display(), dir.display());
        let moved = format!("sudo chown -R 1000 {to} && echo $$ | sudo tee {to}/cgroup.procs");
        assert_eq!(own_below(parent.path(), 1000), format!("sudo mkdir -p {to} && {moved}"));
        std::fs::write(parent.path().join("cpuset.mems"), "0\n").unwrap();
        assert_eq!(
            own_below(parent.path(), 1000),
            format!(
                "sudo mkdir -p {to} && sudo sh -c 'for f in cpus mems; do cat {from}/cpuset.$f \
                 >{to}/cpuset.$f; done' && {moved}"
            )
        );
    }

    #[test]
    fn without_systemd_users_get_a_cgroup_of_their_own() {
        let mount = Path::new("/c");
        let of_user = own_v2(mount, 1000);
        assert!(of_user.starts_with("have a cgroup of your own: `sudo mkdir -p /c/user-1000 && "));
        let of_root = own_v2(mount, 0);
        assert!(of_root.starts_with("start it in a cgroup of its own: `mkdir -p /c/own && "));
        assert!(of_root.ends_with("exec cosched ...'`") && !of_root.contains("sudo"), "{of_root}");
    }
}
