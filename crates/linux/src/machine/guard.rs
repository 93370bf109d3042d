//! The sentinel that guards a run, and the one that is started in its place when it fails.
//!
//! The scheduling thread must not wait for a process that starts, since no sentinel guards it then.
//! So another sentinel is started by a thread of the background, and a failed try is repeated every
//! second. After a second without a sentinel, no program is frozen until one is on guard.

mod reliefs;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Child;

use cosched_core::Nanos;

use super::{Linux, MachineError, SENTINEL};
use crate::kernel::procfs::{Proc, Stat};
use crate::safety::sentinel::{Sentinel, Task};
use reliefs::Reliefs;

/// How long after a look at the sentinel the next one is useful. It is worth waking up for one
/// after twice that time.
const LOOK: Nanos = Nanos::from_millis(500);
/// The time between two tries to start a sentinel.
const PAUSE: Nanos = Nanos::from_secs(1);
/// So long programs are frozen without a sentinel: another one usually starts sooner.
const UNGUARDED: Nanos = Nanos::from_secs(1);

#[derive(Debug)]
pub(super) struct SentinelGuard {
    /// The sentinel that is, or was, on guard.
    pub(super) sentinel: Sentinel,
    duty: Duty,
    reliefs: Reliefs,
    looked: Nanos,
    next_try: Nanos,
    /// That it could not be replaced was told.
    is_reported: bool,
    /// One that failed was replaced.
    was_replaced: bool,
    /// Dismissed sentinels that have not ended yet.
    leaving: Vec<Child>,
}

#[derive(Clone, Copy, Debug)]
enum Duty {
    Works,
    /// It is stopped or frozen, since then.
    HeldUp(Nanos),
    /// It has ended, then, and its socket is not looked at any more.
    Ended(Nanos),
}

impl Duty {
    fn lost_since(self) -> Option<Nanos> {
        match self {
            Duty::Works => None,
            Duty::HeldUp(since) | Duty::Ended(since) => Some(since),
        }
    }
}

impl SentinelGuard {
    pub(super) fn new(sentinel: Sentinel, executable: PathBuf) -> SentinelGuard {
        SentinelGuard {
            sentinel,
            duty: Duty::Works,
            reliefs: Reliefs::new(executable),
            looked: Nanos::ZERO,
            next_try: Nanos::ZERO,
            is_reported: false,
            was_replaced: false,
            leaving: Vec::new(),
        }
    }

    /// Whether no sentinel has been on guard for a while.
    pub(super) fn is_off(&self, now: Nanos) -> bool {
        self.duty.lost_since().is_some_and(|since| now >= since + UNGUARDED)
    }

    /// Whether a child of cosched is, or may be, a sentinel.
    pub(super) fn may_have(&self, child: &Stat, proc: &Proc) -> bool {
        let leaving = self.leaving.iter().map(|child| child.id() as i32);
        leaving.chain([self.sentinel.pid()]).any(|pid| pid == child.pid)
            || self.reliefs.may_have(child, proc)
    }

    pub(super) fn next_look(&self) -> Nanos {
        self.looked + LOOK + LOOK
    }

    /// Dismisses the sentinels: everything is undone. Returns whether all ended by themselves, so
    /// that none left a cgroup.
    pub(super) fn goodbye(self, proc: &Proc) -> bool {
        let did_well = self.sentinel.goodbye(proc);
        self.reliefs.goodbye(proc) && did_well && !self.was_replaced
    }

    fn has_ended(&self) -> bool {
        matches!(self.duty, Duty::Ended(_))
    }
}

impl Linux {
    /// Says that the log is kept in memory, if that is new.
    pub(super) fn tell_of_the_log(&mut self) {
        if let Some(refusal) = self.log.refusal() {
            self.note_error(None, format!("{refusal}; it is kept in memory until there is room"));
        }
    }

    /// Learns whether the sentinel has thawed all programs since cosched was stopped, and whether
    /// another one is needed: it has ended.
    pub(super) fn hear_sentinel(&mut self) -> Result<(), MachineError> {
        if !self.guard.has_ended() {
            let heard = self.guard.sentinel.hear()?;
            if let Some((first, last)) = heard.thawed {
                let [first, last] = [first, last].map(|at| self.clock.of_monotonic(at));
                self.was_stopped(first, last);
            }
            if heard.has_ended {
                self.poll.remove(self.guard.sentinel.as_fd())?;
                let since = self.guard.duty.lost_since().unwrap_or(self.clock.now());
                self.guard.duty = Duty::Ended(since);
            }
        }
        self.relieve_sentinel()
    }

    /// Replaces a sentinel that does not work, if it is time to look.
    pub(super) fn look_at_sentinel(&mut self) -> Result<(), MachineError> {
        let now = self.clock.now();
        if now < self.guard.looked + LOOK {
            return Ok(());
        }
        self.guard.looked = now;
        self.guard.leaving.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        match self.guard.duty {
            Duty::Ended(_) => self.guard.sentinel.reap(),
            Duty::Works if self.guard.sentinel.is_held_up(&self.proc) => {
                self.guard.duty = Duty::HeldUp(now);
            }
            Duty::Works | Duty::HeldUp(_) => {}
        }
        self.relieve_sentinel()
    }

    /// Starts another sentinel if one is needed, or puts it on guard when it is ready.
    fn relieve_sentinel(&mut self) -> Result<(), MachineError> {
        let (guard, now) = (&mut self.guard, self.clock.now());
        let tried = match guard.reliefs.hear(now, &mut guard.leaving) {
            Some(Ok(relief)) => return self.put_on_guard(relief),
            Some(Err(why)) => Err(why),
            None => {
                let is_needed = guard.duty.lost_since().is_some();
                if guard.reliefs.is_awaited() || !is_needed || now < guard.next_try {
                    return Ok(());
                }
                guard.reliefs.call(Task::new(&self.log), now).map_err(|error| error.to_string())
            }
        };
        let Err(why) = tried else { return Ok(()) };
        guard.next_try = now + PAUSE;
        if !std::mem::replace(&mut guard.is_reported, true) {
            let text = format!(
                "another sentinel could not be started: {why}; no program is paused until one is \
                 there"
            );
            self.note_error(None, text);
        }
        Ok(())
    }

    fn put_on_guard(&mut self, relief: Sentinel) -> Result<(), MachineError> {
        let guard = &mut self.guard;
        if !guard.has_ended() {
            self.poll.remove(guard.sentinel.as_fd())?;
        }
        self.poll.add(relief.as_fd(), SENTINEL)?;
        let relieved = std::mem::replace(&mut guard.sentinel, relief);
        guard.leaving.push(match guard.duty {
            Duty::Works => relieved.retire(),
            Duty::HeldUp(_) | Duty::Ended(_) => relieved.dismiss(),
        });
        guard.was_replaced |= guard.duty.lost_since().is_some();
        guard.duty = Duty::Works;
        if std::mem::take(&mut guard.is_reported) {
            self.note_error(None, "another sentinel is on guard".to_owned());
        }
        Ok(())
    }
}
