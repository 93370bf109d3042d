//! Malleable programs: their requests, and their thread limits.
//!
//! A request becomes an event. The engine asks the policy, and the settings that come back, changed
//! or not, are the answer. A policy that sets no limits leaves the number open, and the program
//! gets its request. A frozen program's request waits until it runs; it would not notice an answer
//! before.

use cosched_core::{Aspect, Happening, Nanos, ProgramId, Refusal, Settings};
use cosched_page::BEAT;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use super::program::Live;
use super::{DOOR, Linux, key};
use crate::clock;
use crate::hook::{Door, Hook, preloaded};

const NANOS: u64 = 1_000_000;

impl Linux {
    /// Opens a program's hook server, and passes its name to the program.
    pub(super) fn open_door(
        &self,
        id: ProgramId,
        hook: &Hook,
        env: &mut Vec<(OsString, OsString)>,
    ) -> io::Result<Door> {
        let door = Door::open(hook.uses)?;
        self.poll.add(door.as_fd(), DOOR | key(id))?;
        preloaded(env, &hook.library, door.name());
        Ok(door)
    }

    /// Reads from a program's hook server.
    pub(super) fn hear_door(&mut self, id: ProgramId) {
        let Some(live) = self.live.get_mut(&id) else { return };
        let (tree, proc) = (&live.tree, &self.proc);
        let admits = |pid| tree.has(proc, pid);
        let Some(door) = &mut live.door else { return };
        let heard = door.hear(clock::monotonic() / NANOS, admits);
        let grants = door.uses().threads;
        if heard.too_much {
            self.note(
                id,
                "sends too many requests to cosched: only some of them are answered in each second, and a thread \
                 that cannot wait keeps what it had last, or what it would have without cosched",
            );
        }
        // A program whose threads are not limited sends no requests, unless it lies.
        if let Some(threads) = heard.wanted.filter(|_| grants) {
            self.tell(Happening::Requested { program: id, threads, blocked: heard.blocked });
        }
    }

    /// Sets a program's thread limit, and answers processes that wait for it.
    pub(super) fn grant(&mut self, live: &mut Live, settings: &Settings) {
        self.offer_states(live);
        let cpus = settings.cpus.unwrap_or(self.cpus).len();
        let takes = live.door.as_ref().is_some_and(|door| door.uses().threads);
        if settings.grant.is_some() && !takes {
            self.tell(Happening::Refused(live.id, Aspect::Threads, Refusal::NotSupported));
        }
        if let Some(door) = &mut live.door {
            door.grant(settings.grant, u16::try_from(cpus).unwrap_or(u16::MAX));
        }
    }

    /// When programs with the hook need the next heartbeat.
    pub(super) fn next_beat(&self) -> Nanos {
        let is_due = |door: &Door| door.is_used() || door.is_tired();
        match self.live.values().any(|live| live.door.as_ref().is_some_and(is_due)) {
            true => self.last_beat + Nanos::from_millis(BEAT),
            false => Nanos::NEVER,
        }
    }

    /// Sends the heartbeat, if it is time.
    pub(super) fn beat(&mut self) {
        let now = self.clock.now();
        if now < self.next_beat() {
            return;
        }
        self.last_beat = now;
        let at = self.clock.monotonic(now).0 / NANOS;
        self.live.values_mut().filter_map(|live| live.door.as_mut()).for_each(|door| door.beat(at));
        self.tell_meetings();
    }
}
