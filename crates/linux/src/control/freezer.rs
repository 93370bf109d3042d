//! Stopping one program and continuing it, with the best available backend.
//!
//! A cgroup stops everything in it at once, whatever it forks meanwhile, and unseen by the
//! program's parents. Without any permission there are still signals. SIGSTOP goes to every process
//! of the program's tree, walk after walk, until a walk finds no new process. Stopping takes a
//! moment with both backends, so there are two calls: [`Freezer::freeze`] requests it, and
//! [`Freezer::is_frozen`] checks whether it is done.
//!
//! A stop begins when *some* thread takes the signal. If that is the process's first thread, and it
//! sleeps (waiting for the others to end, say), it must first get a CPU that its siblings hold:
//! measured, 1 to 4 ms. Where the first thread sleeps, a running thread therefore gets the signal
//! too.
//!
//! With signals, a thread in uninterruptible sleep counts as stopped: its stop is pending, so it
//! cannot run another instruction of the program. The cgroup freezers wait for it, up to the
//! engine's limit.
//!
//! A process with a handler for SIGCONT would see each pause by signals: `mpirun` tells its user.
//! It is left out while it waits and has children that are stopped. Otherwise the program is not
//! frozen, unless the user has said that it may be.
//!
//! A program is not frozen either while a process of it waits in a call that SIGSTOP would end
//! early. Both are looked at right before the signal. What begins in between is not seen: a handler
//! then hears one SIGCONT, and a wait ends early.
//!
//! `script` and its like stop themselves once they hear that a child was stopped, and no process
//! continues them. They hear of it late, when they get a CPU. No child of theirs is therefore
//! stopped: the program is not frozen. They become what they are before they have a child, so that
//! a look at the parent of each process, right before it is stopped, is never too early.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use cosched_core::Refusal;
use rustix::io::Errno;
use rustix::process::{Signal, geteuid};

use crate::cgroup::{Dir, FreezeSwitch};
use crate::kernel::files::{FileError, unless_gone};
use crate::kernel::procfs::{Proc, ProcState, Stat, StateReader};
use crate::kernel::signals;
use crate::observe::dependencies::waits_for_events;
use crate::process::tree::{Process, Tree};

/// How many threads are checked for one that runs. A check costs some ten microseconds: after more
/// of them, the stop would have begun by itself.
const MOST_LOOKS: usize = 64;

/// How many threads of a process are read again and again without being opened each time. Each
/// takes a file that cosched could need for something else.
const MOST_READERS: usize = 8;

/// Commands that stop themselves when their child is stopped.
const STOP_THEMSELVES: [&str; 4] = ["runuser", "script", "su", "sudo"];

#[derive(Debug)]
pub(crate) enum Freezer {
    Cgroup(FreezeSwitch),
    Signals(Stopper),
}

impl Freezer {
    /// By the program's own cgroup that can freeze, or by signals if it has none; with
    /// `is_allowed`, also where its processes see that.
    pub(crate) fn of(cgroup: Option<&Dir>, is_allowed: bool) -> Result<Freezer, FileError> {
        Ok(match cgroup {
            Some(dir) => Freezer::Cgroup(FreezeSwitch::open(dir)?),
            None => Freezer::Signals(Stopper { stops_all: is_allowed, ..Stopper::default() }),
        })
    }

    /// Whether it needs to know every process of the program.
    pub(crate) fn needs_processes(&self) -> bool {
        matches!(self, Freezer::Signals(_))
    }

    /// Finds out which processes another process has stopped. To be called before
    /// [`Freezer::freeze`], so that the undo log knows of them before others are stopped.
    pub(crate) fn look_for_stops(&mut self, tree: &Tree, proc: &Proc) {
        if let Freezer::Signals(stopper) = self {
            stopper.look_for_stops(tree, proc);
        }
    }

    /// The processes that another process had stopped when the program was last frozen, as far as
    /// that was seen. They stay stopped.
    pub(crate) fn stopped_by_others(&self) -> &[Process] {
        match self {
            Freezer::Cgroup(_) => &[],
            Freezer::Signals(stopper) => &stopper.others,
        }
    }

    /// Has every thread of the program stop, but for processes that see it and wait for others that
    /// are stopped. If it cannot be stopped, none of its threads is.
    pub(crate) fn freeze(&mut self, tree: &Tree, proc: &Proc) -> Result<(), Refusal> {
        match self {
            Freezer::Cgroup(switch) => switch.freeze().map_err(refusal),
            Freezer::Signals(stopper) => stopper.freeze(tree, proc),
        }
    }

    pub(crate) fn is_frozen(&mut self, tree: &Tree, proc: &Proc) -> Result<bool, Refusal> {
        match self {
            Freezer::Cgroup(switch) => switch.is_frozen().map_err(refusal),
            Freezer::Signals(stopper) => stopper.is_frozen(tree, proc),
        }
    }

    /// Continues every thread that was stopped here.
    pub(crate) fn thaw(&mut self, proc: &Proc) -> Result<(), Refusal> {
        match self {
            Freezer::Cgroup(switch) => match switch.thaw() {
                Ok(()) | Err(Errno::NODEV) => Ok(()),
                Err(errno) => Err(refusal(errno)),
            },
            Freezer::Signals(stopper) => stopper.thaw(proc),
        }
    }

    /// Continues what an earlier thaw could not continue, if any. Only for a program that is not to
    /// be frozen.
    pub(crate) fn thaw_rest(&mut self, proc: &Proc) -> Result<(), Refusal> {
        match self {
            Freezer::Cgroup(_) => Ok(()),
            Freezer::Signals(stopper) => stopper.thaw(proc),
        }
    }

    /// The processes that a thaw could not continue.
    pub(crate) fn left_stopped(&self) -> Vec<Process> {
        match self {
            Freezer::Cgroup(_) => Vec::new(),
            Freezer::Signals(stopper) => stopper.stopped.iter().map(|one| one.process).collect(),
        }
    }

    /// Closes the files with which it checks whether threads have stopped: undoing needs some.
    pub(crate) fn close_readers(&mut self) {
        if let Freezer::Signals(stopper) = self {
            stopper.stopped.iter_mut().for_each(|one| one.pending.clear());
        }
    }
}

fn refusal(errno: Errno) -> Refusal {
    match errno {
        Errno::PERM | Errno::ACCESS => Refusal::NotPermitted,
        _ => Refusal::NotSupported,
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stopper {
    /// The processes that were stopped here, and those that could not be continued since.
    stopped: Vec<StoppedProcess>,
    /// The processes that another process had stopped: left out, now and at the thaw.
    others: Vec<Process>,
    /// The processes to be stopped, found when it was last looked for stops by others.
    found: Option<Vec<Process>>,
    /// Whether processes are stopped that see it.
    stops_all: bool,
}

#[derive(Debug)]
struct StoppedProcess {
    process: Process,
    parent: i32,
    /// Its threads that have stopped or ended.
    confirmed: HashSet<i32>,
    /// Some of the others.
    pending: Vec<(i32, StateReader)>,
}

impl StoppedProcess {
    fn new(process: Process, parent: i32) -> StoppedProcess {
        StoppedProcess { process, parent, confirmed: HashSet::new(), pending: Vec::new() }
    }

    /// Nothing is known of its threads.
    fn forget(&mut self) {
        self.confirmed.clear();
        self.pending.clear();
    }

    /// Whether no thread can run another instruction of the program before it is continued. Each
    /// thread is checked until it has stopped. The list is read again until it holds no new thread.
    fn is_confirmed(&mut self, proc: &Proc) -> bool {
        loop {
            let confirmed = &mut self.confirmed;
            self.pending.retain(|(tid, reader)| {
                let has_stopped = reader.state().is_ok_and(cannot_run);
                if has_stopped {
                    confirmed.insert(*tid);
                }
                !has_stopped
            });
            if !self.pending.is_empty() {
                return false;
            }
            let threads = match proc.threads(self.process.pid) {
                Ok(threads) => threads,
                // Without that list, nothing is known of its threads.
                Err(error) => return error.is_gone(),
            };
            let is_new = |tid: &i32| !self.confirmed.contains(tid);
            let new: Vec<i32> = threads.into_iter().filter(is_new).collect();
            if new.is_empty() {
                return true;
            }
            for tid in new {
                match StateReader::open(proc, self.process.pid, tid) {
                    Ok(reader) if reader.state().is_ok_and(cannot_run) => {
                        self.confirmed.insert(tid);
                    }
                    Ok(reader) => self.pending.push((tid, reader)),
                    Err(error) if error.is_gone() => {
                        self.confirmed.insert(tid);
                    }
                    // No more files may be opened: others must not lack these as well.
                    Err(_) => {
                        self.pending.clear();
                        return false;
                    }
                }
                if self.pending.len() == MOST_READERS {
                    return false;
                }
            }
        }
    }
}

impl Stopper {
    fn look_for_stops(&mut self, tree: &Tree, proc: &Proc) {
        // One that cannot be read now is as it was before.
        self.others.retain(|process| is_stopped(*process, proc).unwrap_or(true));
        let found = tree.members(proc);
        for process in &found {
            if !self.knows(*process) && is_stopped(*process, proc).unwrap_or(false) {
                self.others.push(*process);
            }
        }
        self.found = Some(found);
    }

    /// Whether the process was stopped, here or by others.
    fn knows(&self, process: Process) -> bool {
        self.stopped.iter().any(|one| one.process == process) || self.others.contains(&process)
    }

    fn freeze(&mut self, tree: &Tree, proc: &Proc) -> Result<(), Refusal> {
        if self.found.is_none() {
            self.look_for_stops(tree, proc);
        }
        let found = self.found.take().unwrap_or_default();
        let again = self.stop_again(proc);
        let stopped = again.and_then(|()| self.stop(found, proc));
        self.all_or_none(stopped, proc).map(|_| ())
    }

    /// Continues what was stopped if the program cannot be.
    fn all_or_none(
        &mut self,
        stopped: Result<bool, Refusal>,
        proc: &Proc,
    ) -> Result<bool, Refusal> {
        if stopped.is_err() {
            self.thaw(proc)?;
        }
        stopped
    }

    /// Sends SIGSTOP to the processes that could not be continued: another process may have
    /// continued them.
    fn stop_again(&mut self, proc: &Proc) -> Result<(), Refusal> {
        for one in &mut self.stopped {
            one.forget();
            send_stop(one.process, proc, true)?;
        }
        Ok(())
    }

    /// Sends SIGSTOP to those of these processes that have not had it. Returns whether there were
    /// any, or may be any.
    fn stop(&mut self, members: Vec<Process>, proc: &Proc) -> Result<bool, Refusal> {
        let (mut any, mut left_out) = (false, Vec::new());
        let mut parents: HashMap<i32, Option<bool>> = HashMap::new();
        for process in members {
            if self.knows(process) {
                continue;
            }
            let (stat, stops_by_itself) = match look(process, proc) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                // It is tried again at the next check.
                Err(_) => {
                    any = true;
                    continue;
                }
            };
            match stat.state {
                _ if stops_by_itself => self.others.push(process),
                ProcState::Traced => return Err(Refusal::Traced),
                state if !self.stops_all && proc.catches_continue(process.pid) => {
                    if state == ProcState::Running {
                        return Err(Refusal::CatchesContinue);
                    }
                    left_out.push((process.pid, stat.ppid));
                }
                _ => {
                    any = true;
                    let stops_itself = || stops_itself(stat.ppid, proc).ok();
                    match parents.entry(stat.ppid).or_insert_with(stops_itself) {
                        Some(false) => {}
                        Some(true) => return Err(Refusal::StopsItself),
                        // It is tried again, as above.
                        None => continue,
                    }
                    // Not noted if it got no signal: it needs none to continue.
                    send_stop(process, proc, self.stops_all)?;
                    self.stopped.push(StoppedProcess::new(process, stat.ppid));
                    if stat.state != ProcState::Running && stat.threads > 1 {
                        stop_by_a_running_thread(process, proc);
                    }
                }
            }
        }
        // Those with descendants that are stopped, from children to parents.
        let mut waiting: HashSet<i32> = self.stopped.iter().map(|one| one.parent).collect();
        for (pid, parent) in left_out.iter().rev() {
            if waiting.contains(pid) {
                waiting.insert(*parent);
            }
        }
        match left_out.iter().all(|(pid, _)| waiting.contains(pid)) {
            true => Ok(any),
            false => Err(Refusal::CatchesContinue),
        }
    }

    fn is_frozen(&mut self, tree: &Tree, proc: &Proc) -> Result<bool, Refusal> {
        if !self.stopped.iter_mut().all(|stopped| stopped.is_confirmed(proc)) {
            return Ok(false);
        }
        let (members, lack) = tree.read_members(proc);
        let stopped = self.stop(members, proc);
        Ok(!self.all_or_none(stopped, proc)? && lack.is_none())
    }

    fn thaw(&mut self, proc: &Proc) -> Result<(), Refusal> {
        let mut refused = None;
        // Children first: a parent may stop its child as soon as it continues itself, and a later
        // SIGCONT would undo that.
        self.stopped.sort_by_key(|one| Reverse(one.process.age()));
        self.stopped.retain_mut(|one| {
            // A failure is tried again: at once, and at later checks. A process that was forgotten
            // here would count as stopped by others, and stay stopped for good.
            let proceed = || one.process.signal(proc, Signal::CONT);
            let Err(errno) = proceed().or_else(|_| proceed()) else { return false };
            refused = refused.or(Some(errno));
            one.forget();
            true
        });
        refused.map_or(Ok(()), |errno| Err(refusal(errno)))
    }
}

/// Sends SIGSTOP, unless SIGCONT may be refused later: a set-uid program, such as `sudo`, is this
/// user's until it makes itself another user's. A stop on its way at that moment would be for good.
/// None is sent either if the process would notice, unless all are to be stopped. It may have made
/// a handler or begun to wait since it was looked at, so another look comes just before the signal.
fn send_stop(process: Process, proc: &Proc, stops_all: bool) -> Result<(), Refusal> {
    if proc.may_change_user(process.pid, geteuid().as_raw()) {
        return Err(Refusal::NotPermitted);
    }
    let status = proc.open_status(process.pid);
    let notices = || match waits_for_events(proc, process.pid) {
        true => Some(Refusal::WaitsForEvents),
        false => status.filter(|s| s.catches_continue()).map(|_| Refusal::CatchesContinue),
    };
    let mut noticed = None;
    let sent = process.signal_if(proc, Signal::STOP, || {
        noticed = if stops_all { None } else { notices() };
        noticed.is_none()
    });
    match noticed {
        Some(why) => Err(why),
        None => sent.map(drop).map_err(refusal),
    }
}

/// Whether a process stops itself when its child is stopped. Those that run a command on a terminal
/// of their own, as `script` does under any name, hear of it by a descriptor, and therefore block
/// SIGCHLD.
pub(crate) fn stops_itself(pid: i32, proc: &Proc) -> Result<bool, FileError> {
    let name = unless_gone(proc.name(pid))?;
    if name.is_some_and(|name| STOP_THEMSELVES.contains(&name.as_str())) {
        return Ok(true);
    }
    if !unless_gone(proc.blocks_child_signals(pid))?.unwrap_or(false) {
        return Ok(false);
    }
    let fds = match unless_gone(proc.fds(pid)) {
        // Another user's: it is not known to be one of these.
        Err(error) if error.is_denied() => return Ok(false),
        fds => fds?.unwrap_or_default(),
    };
    let has = |targets: &[&str]| fds.iter().any(|fd| targets.contains(&fd.target.as_str()));
    Ok(has(&["/dev/ptmx", "/dev/pts/ptmx"]) && has(&["anon_inode:[signalfd]"]))
}

/// Whether a process is stopped by a signal, or about to be; not if it has ended.
fn is_stopped(process: Process, proc: &Proc) -> Result<bool, FileError> {
    Ok(look(process, proc)?.is_some_and(|(_, stops)| stops))
}

/// The data of a process, and whether it has stopped, or has still to take SIGSTOP: it takes the
/// signal only when it gets a CPU. Read in the opposite order: it may take the signal in between.
fn look(process: Process, proc: &Proc) -> Result<Option<(Stat, bool)>, FileError> {
    let is_about_to = proc.is_about_to_stop(process.pid).is_ok_and(|stops| stops);
    let stat = process.check(proc)?;
    Ok(stat.map(|stat| {
        let stops = is_about_to || stat.state == ProcState::Stopped;
        (stat, stops)
    }))
}

/// Makes a thread that is on a CPU begin the stop. The stop is under way in any case, so a failure
/// here does not matter.
fn stop_by_a_running_thread(process: Process, proc: &Proc) {
    let threads = proc.threads(process.pid).unwrap_or_default();
    let runs = |tid: &i32| {
        proc.thread_stat(process.pid, *tid).is_ok_and(|stat| stat.state == ProcState::Running)
    };
    if let Some(tid) = threads.into_iter().take(MOST_LOOKS).find(runs) {
        signals::send_to_thread(process.pid, tid, Signal::STOP);
    }
}

/// Whether a thread in this state runs no further instruction of the program before it is
/// continued.
fn cannot_run(state: ProcState) -> bool {
    matches!(state, ProcState::Stopped | ProcState::Traced | ProcState::DiskSleep)
        || state.has_ended()
}

#[cfg(test)]
mod tests;
