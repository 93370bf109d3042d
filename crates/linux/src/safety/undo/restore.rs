//! Undoing what a log lists.
//!
//! First everything that is frozen or stopped is continued. Then processes are moved back to their
//! cgroups, and masks and scheduling are restored, in this order because moves between cpusets
//! change masks. Threads that are born meanwhile inherit what is being undone, so this is repeated
//! until there was nothing to do. Last, the cgroups are removed.
//!
//! A program may be in the middle of its start: its shim has got the order, and cosched is dead.
//! Its first process will still bind itself and join its cgroups, so its shim is waited for, with a
//! limit.
//!
//! SIGCONT goes to every process of a program that was frozen by signals, not only to those that
//! look stopped. A SIGSTOP that was sent in cosched's last moment may not have taken effect yet,
//! and SIGCONT cancels it. Processes that another process stopped, and those under a debugger, get
//! none.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use cosched_core::CpuSet;
use rustix::io::Errno;
use rustix::process::Signal;

use super::cgroups::{Doomed, pass_on_no_more};
use super::changes::Changes;
use super::journal::Journal;
use super::not_restored::NotRestored;
use super::owed::{Owed, ProgramUndo};
use crate::kernel::affinity::{self, AffinityError, VisibleMask};
use crate::kernel::clock::ticks_since_boot;
use crate::kernel::files::FileError;
use crate::kernel::procfs::{Proc, ProcState};
use crate::kernel::sched_attr::{self, SchedAttr, SchedError};
use crate::process::helper::Helper;
use crate::process::tree::{Process, Tree, if_there};

/// How long to wait for programs in the middle of their start.
const STARTING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);
const TRIES: usize = 4;
/// More rounds than any program needs, unless it starts threads faster than they can be restored.
const MOST_ROUNDS: usize = 2000;

/// What was undone. All zero if there was nothing (left) to undo.
#[derive(Debug, Default)]
pub struct Restored {
    /// Processes found stopped and continued.
    pub continued: usize,
    /// Threads that got their CPUs back.
    pub masks: usize,
    /// Threads that got their scheduling back.
    pub attrs: usize,
    /// Processes moved back to the cgroup that they came from.
    pub moved: usize,
    /// Cgroups removed.
    pub cgroups: usize,
    /// What could not be undone. A thing that was gone already is no failure.
    pub failed: Vec<NotRestored>,
}

impl Restored {
    fn is_nothing(&self) -> bool {
        let Restored { continued, masks, attrs, moved, cgroups, failed } = self;
        [continued, masks, attrs, moved, cgroups].iter().all(|count| **count == 0)
            && failed.is_empty()
    }

    /// Adds what was undone by another try, which has tried all that had failed.
    fn add(&mut self, more: Restored) {
        self.continued += more.continued;
        self.masks += more.masks;
        self.attrs += more.attrs;
        self.moved += more.moved;
        self.cgroups += more.cgroups;
        self.failed = more.failed;
    }
}

/// Continues every program that cosched has frozen or stopped, gives all the same weight, and
/// leaves the rest as it is.
pub(crate) fn thaw(journal: &Journal, proc: &Proc) -> Restored {
    let (mut owed, mut continued) = (Owed::of(journal), HashSet::new());
    let mut work = Work::begin(&mut continued, proc);
    // First the steps that need no data of a program: reading them may wait for a lock of a program
    // that gets no CPU.
    work.thaw(&owed, Doomed::thaw);
    owed.take_in_members_of_cgroups(proc);
    for program in owed.programs.values().filter(|program| program.stopped_by_signal) {
        for process in work.children_first(&program.tree) {
            work.resume(process, &owed.stopped_by_others);
        }
    }
    work.end()
}

/// Undoes everything in the journal that is not undone already.
///
/// A call that fails, if only for a moment, may hide a process or a thread. Everything is therefore
/// gone over again until there was nothing to do.
pub fn restore(journal: &Journal, proc: &Proc) -> Restored {
    let mut continued = HashSet::new();
    let mut done = restore_once(journal, &mut continued, proc);
    for _ in 0..TRIES {
        let more = restore_once(journal, &mut continued, proc);
        let is_all = more.is_nothing();
        done.add(more);
        if is_all {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    done
}

fn restore_once(journal: &Journal, continued: &mut HashSet<Process>, proc: &Proc) -> Restored {
    let mut owed = Owed::of(journal);
    let mut work = Work::begin(continued, proc);
    work.thaw(&owed, Doomed::thaw_all);
    // What cannot be done shows when a cgroup cannot be removed.
    let _ = owed.cgroups.iter().rev().map(Doomed::pass_nothing_on).fold(Ok(()), Result::and);
    for (dir, added) in owed.controllers.iter().rev() {
        // A cgroup accepts processes again only when it enables no controllers.
        work.expect(pass_on_no_more(dir, added));
    }
    let give_up = Instant::now() + STARTING;
    for _ in 0..MOST_ROUNDS {
        // Listed before the round: a process that binds itself and executes meanwhile is found by
        // the next one.
        owed.take_in_members_of_cgroups(proc);
        let starting = owed.programs.values().any(|program| is_starting(&program.tree, proc));
        if work.round(&owed) {
            continue;
        }
        if !starting || Instant::now() > give_up {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    // Inner ones were made later.
    for cgroup in owed.cgroups.iter().rev().filter(|cgroup| cgroup.dir.path().is_dir()) {
        let removed = cgroup.remove();
        work.done.cgroups += usize::from(removed.is_ok());
        work.expect(removed);
    }
    work.end()
}

struct Work<'a> {
    proc: &'a Proc,
    /// When it began, clock ticks since boot.
    began: u64,
    /// Processes that got their SIGCONT, also from an earlier try.
    continued: &'a mut HashSet<Process>,
    /// Threads that cannot be restored.
    hopeless: HashSet<Process>,
    /// What could not be read of processes in this round.
    unread: Vec<FileError>,
    done: Restored,
}

impl<'a> Work<'a> {
    fn begin(continued: &'a mut HashSet<Process>, proc: &'a Proc) -> Work<'a> {
        Work {
            proc,
            began: ticks_since_boot(),
            continued,
            hopeless: HashSet::new(),
            unread: Vec::new(),
            done: Restored::default(),
        }
    }

    fn end(mut self) -> Restored {
        for failed in &self.done.failed {
            // It is tried again.
            use NotRestored::{OthersStopped, Stopped};
            if let Stopped { process, .. } | OthersStopped { process } = failed {
                self.continued.remove(process);
            }
        }
        self.done.failed.extend(self.unread.into_iter().map(NotRestored::Unread));
        self.done
    }

    /// The processes of a program, as far as they can be read.
    fn members(&mut self, tree: &Tree) -> Vec<Process> {
        let (members, lack) = tree.read_members(self.proc);
        self.unread.extend(lack);
        members
    }

    /// The processes of a program, most children before their parents. A parent may stop its child
    /// as soon as it continues itself, and a later SIGCONT would undo that.
    fn children_first(&mut self, tree: &Tree) -> Vec<Process> {
        let mut members = self.members(tree);
        members.sort_by_key(|process| Reverse(process.age()));
        members
    }

    /// What was read about a process; `None`: it has ended, or cannot be read. What cannot be read
    /// may be stopped: it must not be taken for ended.
    fn noting<T>(&mut self, read: Result<Option<T>, FileError>) -> Option<T> {
        read.unwrap_or_else(|error| {
            self.unread.push(error);
            None
        })
    }

    fn thaw(&mut self, owed: &Owed, thaw: fn(&Doomed) -> Result<(), FileError>) {
        for cgroup in &owed.cgroups {
            self.expect(thaw(cgroup));
            let evened_out = cgroup.even_out();
            self.expect(evened_out);
        }
    }

    /// Goes over everything once. Returns whether there was something to do.
    fn round(&mut self, owed: &Owed) -> bool {
        let mut busy = false;
        // An earlier round may have lacked files that are there now.
        self.unread.clear();
        for program in owed.programs.values().filter(|program| program.stopped_by_signal) {
            for process in self.children_first(&program.tree) {
                busy |= self.resume(process, &owed.stopped_by_others);
            }
        }
        for cgroup in &owed.cgroups {
            let mut moved = 0;
            // Failures here show when the cgroup cannot be removed.
            let _ = (cgroup.thaw_all(), cgroup.evacuate(&mut moved));
            self.done.moved += moved;
            busy |= moved > 0;
        }
        for program in owed.programs.values().filter(|program| program.has_changed_threads()) {
            let mut visited = HashSet::new();
            for process in self.members(&program.tree) {
                busy |= self.restore_threads(process, program, &mut visited);
            }
            // If their program's first process has ended, no tree leads to them any more, nor to
            // their siblings.
            for thread in program.attrs.threads().chain(program.masks.threads()) {
                if visited.contains(&thread) {
                    continue;
                }
                let stat = thread.check(self.proc);
                if self.noting(stat).is_some() {
                    busy |= self.restore_threads(thread, program, &mut visited);
                }
            }
        }
        busy
    }

    /// Continues a process. Returns whether another round has to follow.
    fn resume(&mut self, process: Process, stopped_by_others: &HashSet<Process>) -> bool {
        let stat = process.check(self.proc);
        let Some(stat) = self.noting(stat) else { return false };
        // A handler for SIGCONT would run in vain.
        let would_see_it = || {
            self.proc.catches_continue(process.pid)
                && !may_be_stopped(process, stat.state, self.proc)
                && !has_stopped_thread(process, self.proc)
        };
        let not_ours = stopped_by_others.contains(&process)
            || stat.state == ProcState::Traced
            || would_see_it();
        if not_ours || !self.continued.insert(process) {
            return false;
        }
        match process.signal(self.proc, Signal::CONT) {
            Ok(_) => self.done.continued += usize::from(stat.state == ProcState::Stopped),
            Err(errno) if was_never_stopped(process, stat.state, errno, self.proc) => {}
            Err(errno) => self.done.failed.push(NotRestored::stopped(process, errno)),
        }
        // While all is undone, cosched stops no program. A process that was born since needs no
        // further round: a program that starts one after another would have such a process in every
        // round.
        process.start_time <= self.began || stat.state == ProcState::Stopped
    }

    /// Restores cosched's settings on the threads of a process, which any of its threads stands
    /// for. Returns whether there were any.
    fn restore_threads(
        &mut self,
        process: Process,
        program: &ProgramUndo,
        visited: &mut HashSet<Process>,
    ) -> bool {
        let mut busy = false;
        let threads = if_there(self.proc.threads(process.pid));
        for tid in self.noting(threads).unwrap_or_default() {
            let stat = if_there(self.proc.thread_stat(process.pid, tid));
            let Some(stat) = self.noting(stat) else { continue };
            let thread = Process::from(stat);
            visited.insert(thread);
            busy |= self.restore_thread(thread, program);
        }
        busy
    }

    fn restore_thread(&mut self, thread: Process, program: &ProgramUndo) -> bool {
        if self.hopeless.contains(&thread) {
            return false;
        }
        let mask = restore_mask(thread, &program.masks);
        let attr = restore_attr(thread, &program.attrs).map_err(NotRestored::from);
        let mut busy = false;
        for (result, count) in [(mask, &mut self.done.masks), (attr, &mut self.done.attrs)] {
            match result {
                Ok(done) => {
                    *count += usize::from(done);
                    busy |= done;
                }
                Err(NotRestored::Mask(AffinityError::Gone(_)))
                | Err(NotRestored::Attr(SchedError::Gone(_))) => {}
                Err(error) => {
                    self.done.failed.push(error);
                    self.hopeless.insert(thread);
                }
            }
        }
        busy
    }

    fn expect(&mut self, result: Result<(), FileError>) {
        self.done.failed.extend(result.err().map(NotRestored::from));
    }
}

/// Whether cosched cannot have stopped a process that refuses SIGCONT: its user is another one
/// since, as after `sudo`, and it refused SIGSTOP, too. A stop may have been on its way when it
/// changed its user, and may still be.
fn was_never_stopped(process: Process, state: ProcState, refused: Errno, proc: &Proc) -> bool {
    refused == Errno::PERM && !may_be_stopped(process, state, proc)
}

/// Whether a process is stopped, or a stop is on its way.
fn may_be_stopped(process: Process, state: ProcState, proc: &Proc) -> bool {
    state == ProcState::Stopped || proc.is_about_to_stop(process.pid).unwrap_or(false)
}

/// Whether one of its threads has taken a stop that others have still to take.
fn has_stopped_thread(process: Process, proc: &Proc) -> bool {
    let stops = |tid: &i32| {
        let stat = proc.thread_stat(process.pid, *tid);
        stat.map_or_else(|error| !error.is_gone(), |stat| stat.state == ProcState::Stopped)
    };
    proc.threads(process.pid).map_or(true, |threads| threads.iter().any(stops))
}

/// The mask that a thread had, and its present one, if that is cosched's.
pub(super) fn owed_mask(
    thread: Process,
    changes: &Changes<CpuSet>,
) -> Result<Option<[CpuSet; 2]>, AffinityError> {
    if changes.is_empty() {
        return Ok(None);
    }
    let seen = VisibleMask::of(thread.pid)?;
    let found = changes.original(thread, seen.mask).or_else(|| {
        let mut shown = changes.sets().filter(|set| seen.shows(set));
        shown.find_map(|set| changes.original(thread, set))
    });
    Ok(found.map(|found| [found, seen.mask]))
}

/// Restores a mask. Returns whether it was cosched's.
fn restore_mask(thread: Process, changes: &Changes<CpuSet>) -> Result<bool, NotRestored> {
    let Some([found, present]) = owed_mask(thread, changes)? else { return Ok(false) };
    affinity::set(thread.pid, &found).map_err(|error| NotRestored::mask(thread, found, error))?;
    // The kernel removes CPUs that the thread's cpuset lacks: the rest may be what was there.
    Ok(affinity::get(thread.pid)? != present)
}

/// Restores the scheduling. Returns whether it was cosched's.
fn restore_attr(thread: Process, changes: &Changes<SchedAttr>) -> Result<bool, SchedError> {
    if changes.is_empty() {
        return Ok(false);
    }
    let present = sched_attr::get(thread.pid)?;
    let Some(found) = changes.original_scheduling(thread, present) else { return Ok(false) };
    sched_attr::set(thread.pid, &found)?;
    Ok(sched_attr::get(thread.pid)? != present)
}

/// Whether the program's first process may not have called `exec` yet: there is none, or it has the
/// shim's name.
fn is_starting(tree: &Tree, proc: &Proc) -> bool {
    let Some(shim) = tree.shim.filter(|shim| shim.look(proc).is_some()) else { return false };
    let children = proc.children(shim.pid).unwrap_or_default();
    let is_shim = |pid: &i32| {
        proc.name(*pid).is_ok_and(|name| name.as_bytes() == Helper::Shim.name().to_bytes())
    };
    children.is_empty() || children.iter().any(is_shim)
}

#[cfg(test)]
mod tests;
