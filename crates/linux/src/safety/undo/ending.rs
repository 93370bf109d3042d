//! Logs of a cosched that was killed and has not ended yet.
//!
//! A killed process needs CPU time for its end. A cosched that is a program of another one may wait
//! for that in an idle cgroup, until the outer one is undone. Until then its log is in use.

use std::path::PathBuf;

use super::log::{Log, is_in_use, open, owner};
use crate::kernel::procfs::Proc;
use crate::process::tree::Process;

/// The logs in these folders that nothing but the end of a killed cosched keeps from being undone.
pub fn logs_of_ending(folders: &[PathBuf], proc: &Proc) -> Vec<PathBuf> {
    let mut logs: Vec<PathBuf> =
        folders.iter().flat_map(|folder| Log::all(folder).unwrap_or_default()).collect();
    logs.retain(|log| {
        let is_held = || open(log).is_ok_and(|file| is_in_use(&file));
        owner(log).is_some_and(|owner| is_ending(owner, is_held, proc))
    });
    logs
}

fn is_ending(owner: Process, is_held: impl Fn() -> bool, proc: &Proc) -> bool {
    match proc.stat(owner.pid) {
        Ok(stat) if Process::from(stat) != owner => false,
        // It has ended; another process may hold its log open.
        Ok(stat) if stat.has_ended() => is_held(),
        Ok(_) => proc.is_ending(owner.pid).unwrap_or(false),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::live;
    use crate::process::testkit::TestProcess;

    #[test]
    fn a_cosched_that_lives_or_has_ended_is_not_ending() {
        let proc = Proc::default();
        let own = Process::find(&proc, std::process::id() as i32).unwrap();
        assert!(!is_ending(own, || true, &proc));
        let mut child = TestProcess::idle();
        let ended = child.process();
        child.kill();
        while ended.look(&proc).is_some() {
            std::thread::yield_now();
        }
        assert!(is_ending(ended, || true, &proc), "another process holds its log open");
        assert!(!is_ending(ended, || false, &proc));
        let other = Process { start_time: ended.start_time + 1, ..ended };
        assert!(!is_ending(other, || true, &proc), "a later process has its number");
        child.wait();
        assert!(!is_ending(ended, || true, &proc));
    }

    /// A process that is frozen in version 1 ends only later.
    #[test]
    fn the_log_of_a_killed_cosched_that_has_not_ended_is_found() {
        let Some(mut scratch) = live::v1("freezer", "ending") else { return };
        let (folder, proc) = (tempfile::tempdir().unwrap(), Proc::default());
        let pid = scratch.start("exec sleep 1000");
        let owner = Process::find(&proc, pid).unwrap();
        let log = folder.path().join(format!("{pid}-{}-1.undo", owner.start_time));
        std::fs::write(&log, "").unwrap();
        let found = || logs_of_ending(&[folder.path().to_owned()], &proc);
        scratch.dir().write("freezer.state", "FROZEN").unwrap();
        assert_eq!(found(), Vec::<PathBuf>::new());
        owner.signal(&proc, rustix::process::Signal::KILL).unwrap();
        assert_eq!(found(), [log]);
    }
}
