//! Programs without a shim: those that ran before cosched, and the one that has cosched's place at
//! the terminal.
//!
//! cosched is not the parent of what they start, so it does not see their orphans. Such a program
//! is its first process with all its descendants, and ends with that process. A pidfd reports the
//! end. Its exit status is known only for cosched's own children. None of its processes is moved to
//! another cgroup, and cosched never ends one. All changes are in the undo log beforehand, as
//! always.
//!
//! A program in cosched's own place notices nothing of it, as with `nice` or `time`. Signals of the
//! terminal (Ctrl-C, Ctrl-\) have reached it already, and other signals to cosched are passed on.
//! When the terminal stops the job (Ctrl-Z), cosched stops, too, since the shell waits for it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use cosched_core::{Exit, Happening, ProgramId, Settings, Usage};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal as Raw, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use super::program::{ByExt, CommandEnd, Live, Parent};
use super::{Job, Linux, MachineError, Origin, key};
use crate::clients::cpu_time::RootKind;
use crate::hook::HookServer;
use crate::kernel::procfs::Proc;
use crate::kernel::{sched_attr, signals, streams};
use crate::process::children::{self, Child};
use crate::process::claim::{Claim, Of};
use crate::process::tree::{Process, Tree};
use crate::safety::attachable::holder;
use crate::safety::undo::{self, Held, Record};

impl Linux {
    /// Takes over running programs, unless another cosched was quicker. Nothing is changed yet.
    pub(super) fn attach_all(&mut self) -> Result<(), MachineError> {
        let running = |(slot, job): (usize, &Job)| match job.origin {
            Origin::Running(process) => Some((ProgramId::first(slot as u16), process)),
            _ => None,
        };
        let running: Vec<_> = self.config.jobs.iter().enumerate().filter_map(running).collect();
        if running.is_empty() {
            return Ok(());
        }
        let folders = undo::log_folders().unwrap_or_default();
        // Each cosched checks what is free and announces what it takes under one lock, so two never
        // take the same process.
        let _lock = undo::lock_folders(&folders);
        let held =
            folders.iter().flat_map(|folder| Held::all(folder, &self.proc).unwrap_or_default());
        let held: Vec<Held> = held.filter(|held| held.owner.pid != own_pid()).collect();
        for (id, process) in running {
            let below = Tree { main: Some(process), ..Tree::default() }.members(&self.proc);
            if let Some(cosched) = holder(&below, &held, &self.proc) {
                return Err(MachineError::Held { pid: process.pid, cosched });
            }
            // A cosched of another user cannot have it, whatever else that user has locked.
            let user = self.proc.user(process.pid);
            let may_have = |above: &Process| [user, Some(0)].contains(&self.proc.user(above.pid));
            let is_taken = |process| Claim::is_taken(Of::Tree, process, &self.proc);
            let is_taken_above = |(child, above)| {
                may_have(&above)
                    && (is_taken(above) || Claim::is_taken_by_parent(child, above, &self.proc))
            };
            if below.into_iter().any(is_taken) || self.line_of(process).any(is_taken_above) {
                return Err(MachineError::Claimed { pid: process.pid });
            }
            let claim = Claim::take(Of::Tree, process, &self.proc)
                .map_err(|_| MachineError::Claimed { pid: process.pid })?;
            self.attach(id, process)?;
            if let Some(live) = self.live.get_mut(&id) {
                live.claim = claim;
            }
        }
        // Other coscheds do not see what is only in memory, and could take the same processes.
        match self.log.is_whole() {
            true => Ok(()),
            false => Err(self
                .log
                .refusal()
                .map_or(MachineError::Poll(io::ErrorKind::StorageFull.into()), MachineError::Log)),
        }
    }

    /// A process and its parent, that and its parent, and so on.
    fn line_of(&self, process: Process) -> impl Iterator<Item = (Process, Process)> {
        let parent = |process: &Process| {
            let stat = self.proc.stat(process.pid).ok()?;
            Process::find(&self.proc, stat.ppid).ok()
        };
        let line = std::iter::successors(Some(process), parent);
        line.clone().zip(line.skip(1))
    }

    fn attach(&mut self, id: ProgramId, process: Process) -> Result<(), MachineError> {
        let Some(end) = follow(process, &self.proc)? else {
            self.note(id, "had ended before it was attached to");
            self.tell(Happening::Exited(id, Exit::Unknown, Usage::default()));
            return Ok(());
        };
        self.take_over_from(id, process, end, Settings::default(), None)
    }

    pub(super) fn start_child(
        &mut self,
        id: ProgramId,
        settings: Settings,
    ) -> Result<(), MachineError> {
        let Job { order, hook, .. } = self.job(id);
        let mut env = order.env.clone();
        let hook_server = match self.open_hook_server(id, hook.as_ref(), &mut env) {
            Ok(hook_server) => hook_server,
            Err(error) => return self.cannot_start(id, libc::EIO, &error.to_string()),
        };
        let (found, files) = (self.punctual.found(), self.open_files.found());
        let ignored = signals::ignored();
        let mut command = Command::new(&order.executable);
        if let Some((name, arguments)) = order.argv.split_first() {
            command.arg0(name).args(arguments);
        }
        command.env_clear().envs(env);
        // A folder that this user may not enter can be where it is.
        if !std::env::current_dir().is_ok_and(|here| here == order.cwd) {
            command.current_dir(&order.cwd);
        }
        // SAFETY: between `fork` and `exec` this makes system calls only; it allocates nothing and
        // takes no lock.
        unsafe {
            command.pre_exec(move || {
                if let Some(found) = &found {
                    // As with a shim: a process that may not restore its settings has lost that
                    // permission before.
                    let _ = sched_attr::set(0, found);
                }
                files.set()?;
                streams::close_as_found();
                signals::ignore_all(&ignored);
                signals::unblock()
            });
        }
        let started = command.spawn().and_then(|child| {
            let process = Process::find(&self.proc, child.id() as i32).map_err(io::Error::other)?;
            Ok((process, pidfd_open(pid_of(process), PidfdFlags::empty())?))
        });
        match started {
            Ok((process, end)) => self.take_over_from(id, process, end, settings, hook_server),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                self.cannot_start(id, errno, &format!("it cannot be executed: {error}"))
            }
        }
    }

    fn take_over_from(
        &mut self,
        id: ProgramId,
        process: Process,
        end: OwnedFd,
        settings: Settings,
        hook_server: Option<HookServer>,
    ) -> Result<(), MachineError> {
        let cgroups = self.run_cgroups.cgroups_of(id, false, &self.cpus)?;
        let (masks, for_sure) = ((self.own_mask, None), self.job(id).freezable_for_sure);
        let mut live = Live::new(id, None, cgroups, masks, for_sure, &self.proc)?;
        live.at_start = settings;
        live.hook_server = hook_server;
        self.poll.add(end.as_fd(), key(id))?;
        live.parent = Parent::Other(end);
        match self.is_child(id) {
            true => self.show_root(id, Process::find(&self.proc, own_pid()).ok(), RootKind::Shim),
            false => self.show_root(id, Some(process), RootKind::Running),
        }
        self.observer.begin(id, process, false, &self.clock)?;
        self.begin(&mut live, process, self.clock.now())?;
        self.limit_threads(&mut live, &settings);
        self.live.insert(id, live);
        self.count_if_requested(id);
        Ok(())
    }

    pub(super) fn end_attached(&mut self, mut live: Live) -> Result<(), MachineError> {
        if let Parent::Other(end) = std::mem::replace(&mut live.parent, Parent::Absent) {
            self.poll.remove(end.as_fd())?;
        }
        let known = live.tree.main.map_or(Child::NotOurs, |main| children::look(main.pid));
        live.ended = Some(match known {
            Child::Ended(exit, usage) => CommandEnd::unseen(exit, usage),
            Child::Lives | Child::NotOurs => CommandEnd::unseen(Exit::Unknown, Usage::default()),
        });
        self.config.roots.set(live.id.slot, None);
        if self.is_child(live.id) {
            self.adopt_for(&mut live)?;
            self.bury()?;
            let of_orphans = self.used_by_orphans(&live);
            live.ended.iter_mut().for_each(|end| end.usage = end.usage.and(&of_orphans));
        }
        // What it has left running, as far as it is known, gets its original settings.
        live.scheduling.forget_slices();
        live.by_ext = ByExt::Left;
        self.schedule(&mut live, &Settings::default())?;
        live.pinning.forget_rules(&self.proc);
        self.settle_end(live)
    }

    /// Whether a program has cosched's own place.
    pub(super) fn has_child(&self) -> bool {
        self.detached.is_some() || self.live.keys().any(|id| self.is_child(*id))
    }

    /// Whether this program has it.
    pub(super) fn is_child(&self, id: ProgramId) -> bool {
        self.job(id).origin == Origin::Child
    }

    pub(super) fn pass_on(&mut self, signal: i32) {
        match signal {
            libc::SIGINT | libc::SIGQUIT => {}
            // A failure here concerns only cosched: the terminal has stopped the program itself.
            libc::SIGTSTP => _ = kill_process(getpid(), Raw::STOP),
            _ => {
                let ends = self.live.values().filter_map(|live| match &live.parent {
                    Parent::Other(end) => Some(end),
                    _ => None,
                });
                for end in ends.chain(&self.detached) {
                    // It may have ended just now. All handled signals have names.
                    let _ = Raw::from_named_raw(signal).map(|raw| pidfd_send_signal(end, raw));
                }
            }
        }
    }

    pub(super) fn hear_user_requests(&mut self) {
        let requests = self.config.user_requests.as_ref();
        for pid in requests.map(|requests| requests.take()).unwrap_or_default() {
            let has = |live: &&Live| {
                live.tree.members(&self.proc).iter().any(|process| process.pid == pid)
            };
            let Some(id) = self.live.values().find(has).map(|live| live.id) else { continue };
            self.detaching.insert(id);
            self.tell(Happening::Commanded(cosched_core::UserCommand::Detach(id)));
        }
    }

    /// If its user requested that a program is detached, it does not belong to the run any more.
    pub(super) fn detach_if_asked(&mut self, id: ProgramId) -> Result<(), MachineError> {
        if !self.detaching.remove(&id) {
            return Ok(());
        }
        self.observer.forget(id);
        self.forget_units(id);
        self.spin_watch.forget(id);
        self.release_claim(id);
        let Some(live) = self.live.get(&id) else { return Ok(()) };
        let is_refusal = |what| matches!(what, Happening::Refused(refused, ..) if refused == id);
        // Settings that could not be restored stay in the log: another attempt follows at the end.
        if !self.queue.iter().any(|event| is_refusal(event.what)) {
            self.log.note(Record::Gone { program: id })?;
        }
        self.note(id, "was detached, as requested");
        if let Parent::Other(end) = &live.parent {
            self.poll.remove(end.as_fd())?;
            self.inspector.forget(id);
            let is_child = self.is_child(id);
            match self.live.remove(&id).map(|live| live.parent) {
                Some(Parent::Other(end)) if is_child => self.detached = Some(end),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A handle that becomes readable when the process ends; `None`: it has ended.
fn follow(process: Process, proc: &Proc) -> io::Result<Option<OwnedFd>> {
    let handle = match pidfd_open(pid_of(process), PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(None),
        other => other?,
    };
    // Checked after opening: if it is the right process now, the handle belongs to the right one.
    Ok(process.look(proc).map(|_| handle))
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

fn pid_of(process: Process) -> Pid {
    Pid::from_raw(process.pid).expect("no process has the number 0")
}
