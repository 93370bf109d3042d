//! All processes of one program, and signals that reach them and no other process.
//!
//! No system call signals a program with all its descendants: they may have left its process group
//! and its session. But they cannot leave the subtree of the program's
//! [shim](crate::process::shim). Walking a tree takes time in which processes fork, so a walk is
//! repeated until it finds nothing to do. A stopped process does not fork, so stopping converges.
//!
//! Process numbers are reused. A process is therefore named by its number *and* its start time, and
//! signals go through a pidfd, which stays bound to the process that it was opened for: open, check
//! whether it is still the right one, send.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::kernel::files::FileError;
use crate::kernel::procfs::{Proc, ProcState, Stat};

/// More walks than any program needs that does not deliberately fork faster than the walks.
const MOST_WALKS: usize = 100;

/// A process or thread, distinguishable from an earlier one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it started, clock ticks since boot.
    pub start_time: u64,
}

impl From<Stat> for Process {
    fn from(stat: Stat) -> Process {
        Process { pid: stat.pid, start_time: stat.start_time }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)
    }
}

impl Process {
    /// The process that has this number now.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(proc: &Proc, pid: i32) -> Result<Process, FileError> {
        proc.stat(pid).map(Process::from)
    }

    /// Orders processes by their beginning: a child comes after its parent, unless numbers were
    /// used again within one clock tick.
    pub(crate) fn age(&self) -> (u64, i32) {
        (self.start_time, self.pid)
    }

    /// Its present data; `None` once it has ended, even if it has not been waited for yet. An error
    /// means that this is not known: the caller may open no more files, say.
    pub(crate) fn check(&self, proc: &Proc) -> Result<Option<Stat>, FileError> {
        let stat = if_there(proc.stat(self.pid))?.filter(|stat| self.is_alive_in(stat));
        match stat {
            Some(stat) if stat.state.has_ended() => {
                let state = state_of_others(proc, self.pid)?;
                Ok(state.map(|state| Stat { state, ..stat }))
            }
            stat => Ok(stat),
        }
    }

    /// Its present data; `None` once it has ended, or if that is not known.
    pub fn look(&self, proc: &Proc) -> Option<Stat> {
        self.check(proc).ok().flatten()
    }

    /// Whether it is not known to have ended. This reads one thread's account: the account of a
    /// process costs as much as it has threads.
    pub(crate) fn is_there(&self, proc: &Proc) -> bool {
        match if_there(proc.thread_stat(self.pid, self.pid)) {
            Ok(stat) => stat.is_some_and(|stat| self.is_alive_in(&stat)),
            Err(_) => true,
        }
    }

    fn is_alive_in(&self, stat: &Stat) -> bool {
        stat.start_time == self.start_time && !stat.has_ended()
    }

    /// Sends a signal. Returns whether the process was there to get it.
    ///
    /// # Errors
    /// When the caller may not send it (the process may have changed its user), or cannot find out
    /// whether this is still the right process.
    pub fn signal(&self, proc: &Proc, signal: Signal) -> Result<bool, Errno> {
        self.signal_if(proc, signal, || true)
    }

    /// Sends a signal if this holds at the last moment.
    ///
    /// # Errors
    /// Those of [`Process::signal`].
    pub(crate) fn signal_if(
        &self,
        proc: &Proc,
        signal: Signal,
        holds: impl FnOnce() -> bool,
    ) -> Result<bool, Errno> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(false) };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(false),
            other => other?,
        };
        // Checked after opening: if it is the right process now, the handle belongs to the right
        // one.
        match self.check(proc) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(error) => return Err(error.errno().map_or(Errno::IO, Errno::from_raw_os_error)),
        }
        if !holds() {
            return Ok(false);
        }
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Where the processes of a program are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The parent that cosched gave it, which is not part of the program.
    pub shim: Option<Process>,
    /// The first process of the program, from which its tree is found if the shim is gone.
    pub main: Option<Process>,
    /// Further processes from which the tree is found then: orphans, without their parents.
    pub orphans: Vec<Process>,
}

impl Tree {
    /// The present processes of the program, without those that have ended and were not waited for,
    /// as far as they can be read.
    pub fn members(&self, proc: &Proc) -> Vec<Process> {
        self.read_members(proc).0
    }

    /// The data of the present processes.
    pub(crate) fn stats(&self, proc: &Proc) -> Vec<Stat> {
        self.read_stats(proc).0
    }

    /// The present processes of the program, and why further ones may be missing: the caller may
    /// open no more files, say.
    pub(crate) fn read_members(&self, proc: &Proc) -> (Vec<Process>, Option<FileError>) {
        let (stats, lack) = self.read_stats(proc);
        (stats.into_iter().map(Process::from).collect(), lack)
    }

    fn read_stats(&self, proc: &Proc) -> (Vec<Stat>, Option<FileError>) {
        let mut lack = None;
        let is_alive = |process: &Process, lack: &mut Option<FileError>| {
            or_note(process.check(proc), lack).is_some()
        };
        let shim = self.shim.filter(|shim| is_alive(shim, &mut lack));
        let roots: Vec<Process> = match shim {
            Some(shim) => vec![shim],
            None => {
                let roots = self.main.iter().chain(&self.orphans).copied();
                roots.filter(|root| is_alive(root, &mut lack)).collect()
            }
        };
        let mut pids = BTreeSet::new();
        for root in roots {
            let below = or_note(if_there(proc.descendants(root.pid)), &mut lack);
            pids.extend(below.unwrap_or_default());
            if shim.is_none() {
                pids.insert(root.pid);
            }
        }
        let mut stats = Vec::new();
        for pid in pids {
            let stat = or_note(if_there(proc.stat(pid)), &mut lack);
            stats.extend(stat.filter(|stat| !stat.has_ended()));
        }
        (stats, lack)
    }

    /// Whether a process belongs to the program. The search goes upwards: that costs a read for
    /// each of its ancestors, where a walk costs one for every process.
    pub(crate) fn has(&self, proc: &Proc, pid: i32) -> bool {
        let Some(shim) = self.shim.filter(|shim| shim.look(proc).is_some()) else {
            return self.members(proc).iter().any(|process| process.pid == pid);
        };
        // If an ancestor ends meanwhile, its children are given to the shim, and the search starts
        // again.
        let mut looks = (0..MOST_WALKS).map(|_| descends_from(proc, pid, shim.pid));
        looks.find_map(|found| found).unwrap_or(false)
    }

    /// Calls `act` on every process, again and again, until a whole walk had nothing to do; `act`
    /// returns whether it did something.
    pub(crate) fn until_stable(&self, proc: &Proc, mut act: impl FnMut(Process) -> bool) {
        for _ in 0..MOST_WALKS {
            let mut busy = false;
            for process in self.members(proc) {
                busy |= act(process);
            }
            if !busy {
                return;
            }
        }
    }

    /// Calls `act` once on every thread of the program, including those that are born meanwhile.
    /// The first error of `act` ends the walk.
    pub(crate) fn threads_until_stable<E>(
        &self,
        proc: &Proc,
        mut act: impl FnMut(Process) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut visited = HashSet::new();
        for _ in 0..MOST_WALKS {
            let mut busy = false;
            for process in self.members(proc) {
                // A process that has just ended has no threads.
                for tid in proc.threads(process.pid).unwrap_or_default() {
                    let Ok(stat) = proc.thread_stat(process.pid, tid) else { continue };
                    let thread = Process::from(stat);
                    if visited.insert(thread) {
                        busy = true;
                        act(thread)?;
                    }
                }
            }
            if !busy {
                break;
            }
        }
        Ok(())
    }

    /// Sends a signal once to every process of the program except those in `except`, including
    /// children born meanwhile. Returns the number of processes that got it. The shim never gets
    /// it.
    ///
    /// # Errors
    /// The first refusal; the other processes got the signal nevertheless.
    pub fn signal(&self, proc: &Proc, signal: Signal, except: &[Process]) -> Result<usize, Errno> {
        let (mut visited, mut reached, mut refused) = (HashSet::new(), 0, None);
        self.until_stable(proc, |process| {
            let new = !except.contains(&process) && visited.insert(process);
            if new {
                match process.signal(proc, signal) {
                    Ok(got_it) => reached += usize::from(got_it),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            new
        });
        refused.map_or(Ok(reached), Err)
    }
}

/// The state of a process whose main thread has ended: that of another thread. `None`: all have
/// ended.
fn state_of_others(proc: &Proc, pid: i32) -> Result<Option<ProcState>, FileError> {
    for tid in if_there(proc.threads(pid))?.unwrap_or_default() {
        let stat = if_there(proc.thread_stat(pid, tid))?;
        if let Some(stat) = stat.filter(|stat| !stat.state.has_ended()) {
            return Ok(Some(stat.state));
        }
    }
    Ok(None)
}

/// What was read about a process; `None`: it has ended, or is hidden from this user. cosched has
/// not stopped what it cannot see.
pub(crate) fn if_there<T>(read: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_gone() || error.is_denied() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What was read; `None` also if it could not be read: the first such error is kept.
fn or_note<T>(read: Result<Option<T>, FileError>, lack: &mut Option<FileError>) -> Option<T> {
    read.unwrap_or_else(|error| {
        lack.get_or_insert(error);
        None
    })
}

/// Whether a process is below another one; `None`: an ancestor has ended meanwhile.
fn descends_from(proc: &Proc, pid: i32, root: i32) -> Option<bool> {
    let mut at = pid;
    while at > 1 {
        at = proc.stat(at).ok()?.ppid;
        if at == root {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::process::testkit::TestProcess;

    #[test]
    fn a_process_with_a_reused_number_gets_no_signal() {
        let (proc, mut child) = (Proc::default(), TestProcess::idle());
        let right = child.process();
        let wrong = Process { start_time: right.start_time + 1, ..right };
        assert_eq!(wrong.signal(&proc, Signal::KILL), Ok(false));
        assert_eq!(right.signal(&proc, Signal::TERM), Ok(true));
        assert_eq!(child.wait().signal(), Some(libc::SIGTERM));
        assert_eq!(right.signal(&proc, Signal::TERM), Ok(false));
    }

    /// That is what `/proc` looks like to a process that may open no more files.
    #[test]
    fn a_process_that_cannot_be_read_is_not_taken_for_ended() {
        let root = tempfile::tempdir().unwrap();
        let (proc, child) = (Proc::new(root.path()), TestProcess::idle());
        let pid = child.pid();
        let process = Process { pid, start_time: 77 };
        let tree = Tree { main: Some(process), ..Tree::default() };
        assert!(!process.is_there(&proc));
        assert_eq!(process.signal(&proc, Signal::KILL), Ok(false));
        assert!(tree.read_members(&proc).1.is_none());
        // A folder can be opened, and not be read as a file.
        std::fs::create_dir_all(proc.folder(pid).join("stat")).unwrap();
        std::fs::create_dir_all(proc.folder(pid).join(format!("task/{pid}/stat"))).unwrap();
        assert!(process.is_there(&proc));
        assert_eq!(process.signal(&proc, Signal::KILL), Err(Errno::ISDIR));
        let (members, lack) = tree.read_members(&proc);
        assert_eq!((members, lack.and_then(|e| e.errno())), (Vec::new(), Some(libc::EISDIR)));
    }

    #[test]
    fn a_process_lives_on_without_its_main_thread() {
        let root = tempfile::tempdir().unwrap();
        let proc = Proc::new(root.path());
        let (process, other) = (Process { pid: 42, start_time: 77 }, 43);
        let says = |tid: i32, state: char, threads: u32| {
            let line = format!(
                "{tid} (a) {state} 1 42 7 0 0 0 1 2 3 4 55 66 5 6 20 0 {threads} 0 77 11 12 \
                 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3"
            );
            let of_thread = proc.folder(process.pid).join(format!("task/{tid}"));
            std::fs::create_dir_all(&of_thread).unwrap();
            std::fs::write(of_thread.join("stat"), &line).unwrap();
            if tid == process.pid {
                std::fs::write(proc.folder(tid).join("stat"), &line).unwrap();
            }
        };
        let tree = Tree { main: Some(process), ..Tree::default() };
        says(process.pid, 'Z', 2);
        says(other, 'T', 2);
        assert_eq!(process.look(&proc).unwrap().state, ProcState::Stopped);
        assert!(process.is_there(&proc));
        assert_eq!(tree.members(&proc), [process]);
        // One that cannot be read may be stopped.
        let of_other = proc.folder(process.pid).join("task/43/stat");
        std::fs::remove_file(&of_other).unwrap();
        std::fs::create_dir(&of_other).unwrap();
        assert!(process.check(&proc).is_err());
        // Now the other one has ended, too.
        std::fs::remove_dir_all(proc.folder(process.pid).join("task/43")).unwrap();
        says(process.pid, 'Z', 1);
        assert!(process.look(&proc).is_none() && !process.is_there(&proc));
        assert_eq!(tree.members(&proc), []);
    }

    #[test]
    fn a_tree_without_living_roots_is_empty() {
        let gone = Process { pid: i32::MAX, start_time: 1 };
        let tree = Tree { shim: Some(gone), main: Some(gone), orphans: vec![gone] };
        assert_eq!(tree.members(&Proc::default()), []);
        assert_eq!(Tree::default().signal(&Proc::default(), Signal::KILL, &[]), Ok(0));
    }

    #[test]
    fn members_below_the_shim_are_found_and_no_others() {
        let (proc, mut shell) = (Proc::default(), TestProcess::parent_of(1));
        let tree = Tree { shim: Some(shell.process()), ..Tree::default() };
        let [child] = tree.members(&proc)[..] else { panic!("it has one child") };
        assert!(tree.has(&proc, child.pid));
        for other in [shell.pid(), std::process::id() as i32, 1, i32::MAX] {
            assert!(!tree.has(&proc, other), "{other}");
        }
        child.signal(&proc, Signal::KILL).unwrap();
        shell.wait();
        assert!(!tree.has(&proc, child.pid));
    }

    #[test]
    fn orphans_count_once_with_their_descendants() {
        let (proc, mut shells) = (Proc::default(), [1, 1].map(TestProcess::parent_of));
        let [main, orphan] = shells.each_ref().map(TestProcess::process);
        let tree = Tree { main: Some(main), orphans: vec![orphan, main], ..Tree::default() };
        assert_eq!(tree.signal(&proc, Signal::KILL, &[]), Ok(4));
        shells.iter_mut().for_each(|shell| _ = shell.wait());
        assert_eq!(tree.members(&proc), []);
    }

    #[test]
    fn all_processes_of_a_tree_but_the_excepted_get_the_signal() {
        let (proc, mut shell) = (Proc::default(), TestProcess::parent_of(2));
        let (main, tree) = (shell.process(), shell.tree());
        let spared = tree.members(&proc).into_iter().find(|process| *process != main).unwrap();
        assert_eq!(tree.signal(&proc, Signal::KILL, &[spared]), Ok(2));
        shell.wait();
        assert_eq!(spared.signal(&proc, Signal::KILL), Ok(true));
    }
}
