//! The sentinel that guards a run, and the one that is started in its place when it fails.
//!
//! A process that starts can be held up for as long as one likes: it is stopped or frozen, or there
//! is no further process. The scheduling thread must not wait for it, since no sentinel guards it
//! then. So another sentinel is started by a thread of the background, and a failed try is repeated
//! every second. After a second without a sentinel, no program is frozen until one is on guard.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{Receiver, SendError, TryRecvError, channel};
use std::time::Duration;

use cosched_core::Nanos;

use super::config::Note;
use super::{Linux, MachineError, SENTINEL};
use crate::kernel::background;
use crate::kernel::procfs::Proc;
use crate::process::helper::HelperError;
use crate::safety::sentinel::{Sentinel, Task};

/// The time between two tries to start a sentinel.
const PAUSE: Nanos = Nanos::from_secs(1);
/// So long programs are frozen without a sentinel: another one usually starts sooner.
const UNGUARDED: Nanos = Nanos::from_secs(1);
/// How long another sentinel may take to start, on a busy machine, before a further one is tried.
const PATIENCE: Duration = Duration::from_secs(3);
/// After this time, one that has not even become a process of its own is given up.
const STUCK: Nanos = Nanos::from_secs(5);
/// How long the end of a run waits for a sentinel that is starting.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The sentinel of a run.
#[derive(Debug)]
pub(super) struct Guard {
    /// The sentinel that is, or was, on guard.
    pub(super) sentinel: Sentinel,
    executable: PathBuf,
    /// Since when it does not work.
    lost_since: Option<Nanos>,
    /// It has ended, and its socket is not looked at any more.
    has_ended: bool,
    /// It holds a file of the log that was replaced.
    is_outdated: bool,
    /// Another one, while it starts, since when.
    relief: Option<(Receiver<Result<Sentinel, HelperError>>, Nanos)>,
    next_try: Nanos,
    /// One that did not begin may do so at any time.
    is_one_given_up: bool,
    /// That it could not be replaced was told.
    is_told: bool,
    /// Dismissed sentinels that have not ended yet.
    leaving: Vec<Child>,
}

impl Guard {
    pub(super) fn new(sentinel: Sentinel, executable: PathBuf) -> Guard {
        Guard {
            sentinel,
            executable,
            lost_since: None,
            has_ended: false,
            is_outdated: false,
            relief: None,
            next_try: Nanos::ZERO,
            is_one_given_up: false,
            is_told: false,
            leaving: Vec::new(),
        }
    }

    /// Whether no sentinel has been on guard for a while.
    pub(super) fn is_off(&self, now: Nanos) -> bool {
        self.lost_since.is_some_and(|since| now >= since + UNGUARDED)
    }

    /// The numbers of the sentinels that are known.
    pub(super) fn sentinels(&self) -> impl Iterator<Item = i32> {
        let leaving = self.leaving.iter().map(|child| child.id() as i32);
        leaving.chain([self.sentinel.pid()])
    }

    /// Whether there may be a further one, which is starting.
    pub(super) fn is_starting_one(&self) -> bool {
        self.relief.is_some() || self.is_one_given_up
    }

    /// Dismisses the sentinels: everything is undone.
    pub(super) fn goodbye(self, proc: &Proc) {
        self.sentinel.goodbye(proc);
        if let Some((relief, _)) = self.relief {
            if let Ok(Ok(relief)) = relief.recv_timeout(LAST_WAIT) {
                relief.goodbye(proc);
            }
        }
    }

    /// Starts another sentinel in the background.
    fn call_relief(&mut self, task: io::Result<Task>, now: Nanos) -> io::Result<()> {
        let (task, executable, (sender, receiver)) = (task?, self.executable.clone(), channel());
        background::spawn("relief", move || {
            // One that was given up must not take this for the end of cosched.
            if let Err(SendError(Ok(late))) = sender.send(task.begin(&executable, PATIENCE)) {
                let _ = late.retire().wait();
            }
        })?;
        self.relief = Some((receiver, now));
        Ok(())
    }
}

impl Linux {
    /// Says that the log is kept in memory, if that is new.
    pub(super) fn tell_of_the_log(&mut self) {
        if let Some(refusal) = self.log.refusal() {
            self.tell_error(format!("{refusal}; it is kept in memory until there is room"));
        }
    }

    fn tell_error(&self, text: String) {
        let _ = self.notes.send(Note { program: None, text, is_error: true });
    }

    /// Learns whether the sentinel has thawed all programs since cosched was stopped, and whether
    /// another one is needed: it has ended, or holds an old file of the log.
    pub(super) fn hear_sentinel(&mut self) -> Result<(), MachineError> {
        if !self.guard.has_ended {
            let heard = self.guard.sentinel.hear()?;
            for at in heard.thawed {
                self.was_stopped(self.clock.of_monotonic(at));
            }
            if heard.has_ended {
                self.poll.remove(self.guard.sentinel.as_fd())?;
                self.guard.has_ended = true;
                self.guard.lost_since.get_or_insert(self.clock.now());
            }
        }
        self.guard.is_outdated |= self.log.has_moved();
        self.relieve_sentinel()
    }

    /// Replaces a sentinel that does not work.
    pub(super) fn look_at_sentinel(&mut self) -> Result<(), MachineError> {
        self.guard.leaving.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.guard.has_ended {
            self.guard.sentinel.reap();
        }
        if self.guard.has_ended || self.guard.sentinel.is_held_up(&self.proc) {
            self.guard.lost_since.get_or_insert(self.clock.now());
        }
        self.relieve_sentinel()
    }

    /// Starts another sentinel if one is needed, or puts it on guard when it is ready.
    fn relieve_sentinel(&mut self) -> Result<(), MachineError> {
        let (guard, now) = (&mut self.guard, self.clock.now());
        let tried = match guard.relief.as_ref().map(|(relief, since)| (relief.try_recv(), *since)) {
            Some((Ok(Ok(relief)), _)) => return self.put_on_guard(relief),
            Some((Err(TryRecvError::Empty), since)) if now < since + STUCK => return Ok(()),
            Some((Ok(Err(error)), _)) => Err(error.to_string()),
            Some((Err(_), _)) => {
                guard.is_one_given_up = true;
                Err("it does not become a process of its own".to_owned())
            }
            None if guard.lost_since.is_none() && !guard.is_outdated => return Ok(()),
            None if now < guard.next_try => return Ok(()),
            None => {
                guard.is_outdated = false;
                guard.call_relief(Task::new(&self.log), now).map_err(|error| error.to_string())
            }
        };
        let Err(why) = tried else { return Ok(()) };
        guard.relief = None;
        guard.is_outdated = true;
        guard.next_try = now + PAUSE;
        if !std::mem::replace(&mut guard.is_told, true) {
            self.tell_error(format!(
                "another sentinel could not be started: {why}; no program is paused until one is \
                 there"
            ));
        }
        Ok(())
    }

    fn put_on_guard(&mut self, relief: Sentinel) -> Result<(), MachineError> {
        let guard = &mut self.guard;
        guard.relief = None;
        if !guard.has_ended {
            self.poll.remove(guard.sentinel.as_fd())?;
        }
        self.poll.add(relief.as_fd(), SENTINEL)?;
        let relieved = std::mem::replace(&mut guard.sentinel, relief);
        guard.leaving.push(match guard.lost_since {
            Some(_) => relieved.dismiss(),
            None => relieved.retire(),
        });
        (guard.has_ended, guard.lost_since) = (false, None);
        if !guard.is_outdated {
            self.log.forget_former();
        }
        if std::mem::take(&mut guard.is_told) {
            self.tell_error("another sentinel is on guard".to_owned());
        }
        Ok(())
    }
}
