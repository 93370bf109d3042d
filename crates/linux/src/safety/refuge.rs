//! A cgroup for the sentinel alone, so that it survives when cosched's is killed.
//!
//! systemd ends a service or scope by killing everything in its cgroup. Where the caller may write
//! in the cgroup *above* cosched's (a delegated subtree), the sentinel makes a cgroup for itself
//! there. Where there is a systemd user manager, it is asked to put the sentinel into a scope of
//! its own. Both may fail without harm: in an ordinary terminal no software kills cgroups, and a
//! sentinel that stays is as good.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cgroup::{Dir, Hierarchies};
use crate::kernel::procfs::Proc;
use crate::kernel::signals;

/// How long the kernel may take to notice that the cgroup is empty.
const LEAVING: Duration = Duration::from_millis(500);

const NAME: &str = "csentinel-";

/// The cgroup that was made for the sentinel and into which it has moved, where that was possible,
/// with the one that it has left.
pub(super) struct Refuge(Option<(Dir, Dir)>);

impl Refuge {
    /// Moves this process to a cgroup of its own, where it may.
    pub(super) fn enter(proc: &Proc) -> Refuge {
        let moved = beside_own_cgroup(proc);
        if moved.is_none() {
            ask_user_manager();
        }
        Refuge(moved)
    }

    /// Moves back and removes the cgroup.
    pub(super) fn leave(self) {
        let Some((place, before)) = self.0 else { return };
        // cosched's cgroup may be gone; the one above exists as long as this process is below it.
        let above = place.path().parent().map(|path| Dir::new(path, place.version()));
        if before.add(0).is_err() && above.is_none_or(|above| above.add(0).is_err()) {
            return;
        }
        let until = Instant::now() + LEAVING;
        while place.remove().is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn beside_own_cgroup(proc: &Proc) -> Option<(Dir, Dir)> {
    let trees = Hierarchies::find(proc).ok()?;
    let tree = trees.v2()?;
    let above = tree.own_and_above().nth(1)?;
    remove_left(&above, proc);
    // In a folder that is not writable, this fails.
    let place = above.create_child(&format!("{NAME}{}", std::process::id())).ok()?;
    if place.add(0).is_err() {
        let _ = place.remove();
        return None;
    }
    Some((place, tree.own.clone()))
}

/// Removes the cgroups that killed sentinels have left above the caller's, as far as they are
/// empty.
pub fn remove_left_refuges(proc: &Proc) {
    let Ok(trees) = Hierarchies::find(proc) else { return };
    let above = trees.v2().into_iter().flat_map(|tree| tree.own_and_above());
    above.for_each(|dir| remove_left(&dir, proc));
}

/// Whether a cgroup is that of this sentinel.
pub(super) fn is_of(sentinel: i32, cgroup: &Dir) -> bool {
    sentinel_of(cgroup) == Some(sentinel)
}

/// The number of the sentinel that a cgroup was made for.
fn sentinel_of(cgroup: &Dir) -> Option<i32> {
    cgroup.path().file_name()?.to_str()?.strip_prefix(NAME)?.parse().ok()
}

fn remove_left(above: &Dir, proc: &Proc) {
    for place in above.children().unwrap_or_default() {
        let has_ended = |pid| proc.stat(pid).map_or(true, |stat| stat.has_ended());
        if sentinel_of(&place).is_some_and(has_ended) {
            // A cgroup with processes stays.
            let _ = place.remove();
        }
    }
}

/// Requests a scope with this process in it from systemd's user manager, without waiting for the
/// answer. This is what `systemd-run --scope` does, but for a process that exists already.
fn ask_user_manager() {
    let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR") else { return };
    if !Path::new(&runtime).join("systemd/private").exists() {
        return;
    }
    // Ignored, so that the kernel reaps the messenger.
    if signals::ignore(Signal::CHILD).is_err() {
        return;
    }
    let pid = std::process::id();
    let manager =
        "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager";
    // A name, what to do if there is such a scope, two properties, and no further units.
    let unit =
        format!("csentinel-{pid}.scope fail 2 PIDs au 1 {pid} CollectMode s inactive-or-failed 0");
    let _ = Command::new("busctl")
        .args(["--user", "call"])
        .args(manager.split(' '))
        .args(["StartTransientUnit", "ssa(sv)a(sa(sv))"])
        .args(unit.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cgroup::Version;

    #[test]
    fn only_groups_of_sentinels_that_are_gone_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let alive = format!("{NAME}{}", std::process::id());
        // No process has the greatest number.
        let gone = format!("{NAME}{}", i32::MAX);
        // It has ended, and was not waited for.
        let mut child = Command::new("true").spawn().unwrap();
        let proc = Proc::default();
        while !proc.stat(child.id() as i32).unwrap().has_ended() {
            std::thread::yield_now();
        }
        let ended = format!("{NAME}{}", child.id());
        for name in [&alive, &gone, &ended, "csentinel-a", "other-2147483647"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        remove_left(&Dir::new(folder.path(), Version::V2), &Proc::default());
        let left = |name: &str| folder.path().join(name).exists();
        assert_eq!([alive.as_str(), &gone, "csentinel-a"].map(left), [true, false, true]);
        assert!(left("other-2147483647") && !left(&ended));
        child.wait().unwrap();
    }
}
