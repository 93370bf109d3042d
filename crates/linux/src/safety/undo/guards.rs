//! Sentinels that were stopped before they could undo what a killed cosched left.
//!
//! A living cosched replaces a stopped sentinel. If cosched is killed before that, the log has an
//! owner that does nothing: programs stay frozen until the sentinel continues.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::kept::REMOVED;
use super::log::owner;
use crate::kernel::procfs::{Proc, State};
use crate::process::helper::Helper;
use crate::process::tree::Process;

/// How long a sentinel may take to undo everything, and to end: far longer than one needs that gets
/// any CPU.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);

/// The stopped sentinels of this user after the end of their cosched, as far as their logs are, or
/// were, in one of these folders.
pub fn stopped_sentinels(folders: &[PathBuf], proc: &Proc) -> Vec<Process> {
    let mut found = of_gone_cosched(folders, proc);
    found.retain(|sentinel| is_stopped(*sentinel, proc));
    found
}

fn of_gone_cosched(folders: &[PathBuf], proc: &Proc) -> Vec<Process> {
    let user = rustix::process::geteuid().as_raw();
    let is_sentinel =
        |pid: &i32| Helper::Sentinel.may_be(*pid, proc) && proc.user(*pid) == Some(user);
    let sentinels = proc.processes().unwrap_or_default().into_iter().filter(is_sentinel);
    let found = sentinels.filter_map(|pid| Process::find(proc, pid).ok());
    found.filter(|sentinel| holds_log_of_a_gone_cosched(*sentinel, folders, proc)).collect()
}

/// Whether sentinels of this user, after the end of their cosched, are still at work after a while.
pub fn are_at_work(folders: &[PathBuf], proc: &Proc) -> bool {
    let until = Instant::now() + PATIENCE;
    while !of_gone_cosched(folders, proc).is_empty() {
        if Instant::now() > until {
            return true;
        }
        sleep(PAUSE);
    }
    false
}

/// Lets stopped sentinels continue, and waits until they have undone everything. Returns those that
/// are still stopped: by a tracer, or again by another process.
pub fn continue_sentinels(sentinels: &[Process], proc: &Proc) -> Vec<Process> {
    let until = Instant::now() + PATIENCE;
    for sentinel in sentinels {
        // It may have ended just now.
        let _ = sentinel.signal(proc, Signal::CONT);
    }
    let is_there = |sentinel: &&Process| sentinel.look(proc).is_some();
    while sentinels.iter().any(|sentinel| is_there(&sentinel)) && Instant::now() < until {
        sleep(PAUSE);
    }
    sentinels.iter().filter(|sentinel| is_stopped(**sentinel, proc)).copied().collect()
}

fn is_stopped(sentinel: Process, proc: &Proc) -> bool {
    let state = sentinel.look(proc).map(|stat| stat.state);
    matches!(state, Some(State::Stopped | State::Traced))
}

/// A log that was removed meanwhile is still held open.
fn holds_log_of_a_gone_cosched(sentinel: Process, folders: &[PathBuf], proc: &Proc) -> bool {
    let descriptors = fs::read_dir(proc.folder(sentinel.pid).join("fd"));
    let targets = descriptors.into_iter().flatten().flatten();
    targets.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|target| {
        let shown = target.to_string_lossy();
        let path = Path::new(shown.strip_suffix(REMOVED).unwrap_or(&shown));
        let is_ours = folders.iter().any(|folder| path.parent() == Some(folder));
        is_ours && owner(path).is_some_and(|owner| owner.look(proc).is_none())
    })
}
