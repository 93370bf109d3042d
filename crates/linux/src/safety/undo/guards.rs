//! Sentinels that cannot undo what a killed cosched left, since they are stopped or frozen.
//!
//! A living cosched replaces such a sentinel. If cosched is killed before that, the log has an
//! owner that does nothing: programs stay frozen until the sentinel continues. One that is stopped
//! is continued, and undoes its log. One that is frozen is killed (it ends when it is thawed), and
//! another process undoes its log.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::kept::{KeptLog, descriptors, shown_path};
use super::lines::is_marked;
use super::log::owner;
use super::place::own_uid;
use crate::cgroup::{Dir, Hierarchies, Hierarchy, Version};
use crate::kernel::procfs::{Proc, ProcState};
use crate::process::helper::Helper;
use crate::process::tree::Process;
use crate::safety::refuge;

/// How long a sentinel may take to undo everything, and to end: far longer than one needs that gets
/// any CPU.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);
/// How long a killed sentinel may take to end, if it is not frozen for good.
const ENDS: Duration = Duration::from_millis(500);
/// How often to list what a sentinel holds: once more than it moves the log while it begins.
const LISTS: usize = 3;
/// What the memory that belongs to a log is called.
const MEMORY: &str = "/memfd:undo";

/// The stopped sentinels of this user after the end of their cosched, as far as their logs are, or
/// were, in one of these folders.
pub fn stopped_sentinels(folders: &[PathBuf], proc: &Proc) -> Vec<Process> {
    let mut found = of_gone_cosched(folders, proc);
    found.retain(|sentinel| is_stopped(*sentinel, proc));
    found
}

fn of_gone_cosched(folders: &[PathBuf], proc: &Proc) -> Vec<Process> {
    // In a container, its cosched has another number, or start time.
    let is_here = |pid: &i32| proc.numbers_alike(*pid) && proc.times_alike(*pid);
    let sentinels = Helper::Sentinel.all_of(own_uid(), proc).filter(is_here);
    let found = sentinels.filter_map(|pid| Process::find(proc, pid).ok());
    found.filter(|sentinel| log_of_a_gone_cosched(*sentinel, folders, proc).is_some()).collect()
}

/// Whether a sentinel cannot do anything.
fn is_held_up(sentinel: Process, proc: &Proc) -> bool {
    let is_frozen = |tree: &Hierarchy| {
        let reads = |file: &str, line: &str| {
            tree.own.read(file).is_ok_and(|text| text.lines().any(|found| found == line))
        };
        match tree.own.version() {
            Version::V2 => reads("cgroup.events", "frozen 1"),
            Version::V1 => ["FROZEN", "FREEZING"].iter().any(|it| reads("freezer.state", it)),
        }
    };
    let trees = Hierarchies::of(sentinel.pid, proc);
    is_stopped(sentinel, proc) || trees.is_ok_and(|trees| trees.all().iter().any(is_frozen))
}

/// Whether sentinels of this user, after the end of their cosched, are still there after so long.
pub fn are_at_work(folders: &[PathBuf], proc: &Proc, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while !of_gone_cosched(folders, proc).is_empty() {
        if Instant::now() > until {
            return true;
        }
        sleep(PAUSE);
    }
    false
}

/// Lets stopped sentinels continue. They then undo everything.
pub fn continue_sentinels(sentinels: &[Process], proc: &Proc) {
    for sentinel in sentinels {
        // It may have ended just now.
        let _ = sentinel.signal(proc, Signal::CONT);
    }
}

fn is_stopped(sentinel: Process, proc: &Proc) -> bool {
    let state = sentinel.look(proc).map(|stat| stat.state);
    matches!(state, Some(ProcState::Stopped | ProcState::Traced))
}

/// A killed sentinel that could not undo its log, and the log.
#[derive(Debug)]
pub struct HeldUp {
    /// Its process, which may end only later.
    pub sentinel: Process,
    /// Its log.
    pub log: KeptLog,
    /// Its own cgroup, where it has one.
    place: Option<Dir>,
}

impl HeldUp {
    /// Removes the cgroup of the sentinel, once that has ended.
    pub fn remove_place(&self) {
        let until = Instant::now() + ENDS;
        while self.place.as_ref().is_some_and(|place| place.remove().is_err())
            && Instant::now() < until
        {
            sleep(PAUSE);
        }
    }
}

/// The sentinels of this user that cannot undo anything after the end of their cosched. Those at
/// work are waited for, and these are killed.
pub fn held_up_sentinels(folders: &[PathBuf], proc: &Proc) -> Vec<HeldUp> {
    if !are_at_work(folders, proc, PATIENCE) {
        return Vec::new();
    }
    let held_up = |sentinel: Process| {
        if !is_held_up(sentinel, proc) {
            return None;
        }
        let (path, descriptor) = log_of_a_gone_cosched(sentinel, folders, proc)?;
        let open = |descriptor: &Path| OpenOptions::new().read(true).write(true).open(descriptor);
        let file = open(&descriptor).ok()?;
        let is_memory = |(target, _): &(PathBuf, _)| target.to_string_lossy().starts_with(MEMORY);
        let memory = descriptors(sentinel.pid, proc).find(is_memory);
        let memory = memory.and_then(|(_, descriptor)| open(&descriptor).ok());
        let trees = Hierarchies::of(sentinel.pid, proc).unwrap_or_default();
        let place = trees.v2().map(|tree| tree.own.clone());
        let place = place.filter(|place| refuge::is_of(sentinel.pid, place));
        let _ = sentinel.signal(proc, Signal::KILL);
        Some(HeldUp { sentinel, log: KeptLog { path, file, memory }, place })
    };
    of_gone_cosched(folders, proc).into_iter().filter_map(held_up).collect()
}

/// The path of the log that a sentinel holds, and the descriptor. A log that was removed meanwhile
/// is still held open. One that was undone counts only if its sentinel is stopped.
fn log_of_a_gone_cosched(
    sentinel: Process,
    folders: &[PathBuf],
    proc: &Proc,
) -> Option<(PathBuf, PathBuf)> {
    let parent = proc.stat(sentinel.pid).ok().and_then(|stat| proc.stat(stat.ppid).ok());
    let parent = parent.filter(|parent| !parent.has_ended()).map(|parent| parent.pid);
    // In another time namespace a process has another start time.
    let lives = |owner: Process| owner.look(proc).is_some() || parent == Some(owner.pid);
    let mut all = in_lists(|| descriptors(sentinel.pid, proc));
    all.find_map(|(target, descriptor)| {
        let path = shown_path(target);
        let is_ours = folders.iter().any(|folder| path.parent() == Some(folder));
        let is_gone = is_ours && owner(&path).is_some_and(|owner| !lives(owner));
        // What did not fit on the disk is in the sentinel's memory.
        let is_undone = || fs::metadata(&descriptor).map_or(true, |found| is_marked(&found));
        // A stopped one does not end, even if another has undone its log.
        (is_gone && (!is_undone() || is_stopped(sentinel, proc))).then_some((path, descriptor))
    })
}

/// What is in several lists, each made when the one before has ended: a list can miss a log that is
/// moved to another descriptor meanwhile.
fn in_lists<L: Iterator>(mut list: impl FnMut() -> L) -> impl Iterator<Item = L::Item> {
    (0..LISTS).flat_map(move |_| list())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_log_that_the_first_lists_miss_is_found() {
        // It is moved from the third place to the first one while the second list is made.
        let lists = [vec!["a", "b"], vec!["a", "b"], vec!["log", "b"]];
        let mut made = 0;
        let list = || {
            made += 1;
            lists[made - 1].clone().into_iter()
        };
        assert!(in_lists(list).any(|one| one == "log"));
        assert_eq!(made, LISTS);
        let mut made = 0;
        let list = || {
            made += 1;
            ["log"].into_iter()
        };
        assert!(in_lists(list).any(|one| one == "log"));
        assert_eq!(made, 1, "one list is enough");
        assert!(!in_lists(|| ["a"].into_iter()).any(|one| one == "log"));
    }

    /// The number of the made-up sentinel.
    const SENTINEL: Process = Process { pid: 7, start_time: 1 };

    #[test]
    fn only_the_log_of_a_gone_cosched_is_one_to_undo() {
        let root = tempfile::tempdir().unwrap();
        let (fd, logs) = (root.path().join("7/fd"), root.path().join("logs"));
        [&fd, &logs].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let proc = Proc::new(root.path());
        let stat =
            format!("5 (cosched) S 1 5 5 0 0 0 0 0 0 0 1 2 0 0 20 0 1 0 9 0 0 {}", "0 ".repeat(16));
        fs::create_dir(root.path().join("5")).unwrap();
        fs::write(root.path().join("5/stat"), stat).unwrap();
        let found = |target: &Path, text: Option<&str>| {
            if let Some(text) = text {
                fs::write(target, text).unwrap();
            }
            let descriptor = fd.join("3");
            symlink(target, &descriptor).unwrap();
            let found = log_of_a_gone_cosched(SENTINEL, std::slice::from_ref(&logs), &proc);
            fs::remove_file(&descriptor).unwrap();
            found.map(|(log, by)| {
                assert_eq!(by, descriptor);
                log
            })
        };
        let gone = logs.join("5-8-1.undo");
        assert_eq!(found(&gone, Some("{}\n")), Some(gone.clone()));
        let removed = logs.join("5-8-2.undo (deleted)");
        assert_eq!(found(&removed, Some("{}\n")), Some(logs.join("5-8-2.undo")));
        for (other, why) in [
            (logs.join("5-9-1.undo"), "its cosched lives"),
            (logs.join("5-8-1.sock"), "it is no log"),
            (root.path().join("5-8-1.undo"), "it is in another folder"),
        ] {
            assert_eq!(found(&other, Some("{}\n")), None, "{why}");
        }
        let empty = logs.join("5-8-3.undo");
        assert_eq!(found(&empty, Some("")), Some(empty.clone()), "the disk is full");
        assert_eq!(found(&empty, Some("\0")), None, "it was undone");
        fs::create_dir(root.path().join("7")).unwrap_or_default();
        let stopped = "7 (csentinel) T 1 7 7 0 0 0 0 0 0 0 1 2 0 0 20 0 1 0 1 0 0 ".to_owned();
        fs::write(root.path().join("7/stat"), stopped + &"0 ".repeat(16)).unwrap();
        assert_eq!(found(&empty, Some("\0")), Some(empty.clone()), "it does not end");
        assert_eq!(log_of_a_gone_cosched(SENTINEL, &[logs], &proc), None, "it holds none");
    }
}
