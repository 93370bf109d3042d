//! Malleable programs: what they ask for, and what they get.
//!
//! A request becomes an event; the engine asks the policy, and the settings that come back, changed or not, are the
//! answer. A policy that does not grant threads leaves the number open, and the program has what it wants. A frozen program's
//! request waits until it runs; it would not notice an answer before.

use std::path::Path;

use cosched_core::{Aspect, Happening, Nanos, ProgramId, Refusal, Settings};
use cosched_page::BEAT;
use std::io;
use std::os::fd::AsFd;

use super::program::Live;
use super::{DOOR, Linux, key};
use crate::clock;
use crate::hook::{Door, preloaded};
use crate::launch::Order;

const NANOS: u64 = 1_000_000;

impl Linux {
    /// Opens a program's door, and tells the program of it.
    pub(super) fn open_door(
        &self,
        id: ProgramId,
        library: &Path,
        order: &mut Order,
    ) -> io::Result<Door> {
        let door = Door::open()?;
        self.poll.add(door.as_fd(), DOOR | key(id))?;
        preloaded(&mut order.env, library, door.name());
        Ok(door)
    }

    /// Somebody is at a program's door.
    pub(super) fn hear_door(&mut self, id: ProgramId) {
        let Some(live) = self.live.get_mut(&id) else { return };
        let (tree, proc) = (&live.tree, &self.proc);
        let admits = |pid| tree.members(proc).iter().any(|process| process.pid == pid);
        let Some(door) = &mut live.door else { return };
        let heard = door.hear(clock::monotonic() / NANOS, admits);
        if heard.shut {
            self.note(id, "asks for threads without end: it is not heard any more, and has as many as it wants");
        }
        if let Some(threads) = heard.wanted {
            self.tell(Happening::Requested { program: id, threads, blocked: heard.blocked });
        }
    }

    /// Gives a program so many threads; who waits for that is answered.
    pub(super) fn grant(&mut self, live: &mut Live, settings: &Settings) {
        let cpus = settings.cpus.unwrap_or(self.cpus).len();
        match &mut live.door {
            Some(door) => door.grant(settings.grant, u16::try_from(cpus).unwrap_or(u16::MAX)),
            None if settings.grant.is_some() => {
                self.tell(Happening::Refused(live.id, Aspect::Threads, Refusal::NotSupported));
            }
            None => {}
        }
    }

    /// When malleable programs have to be told again that cosched is alive.
    pub(super) fn next_beat(&self) -> Nanos {
        let is_used = |live: &Live| live.door.as_ref().is_some_and(Door::is_used);
        match self.live.values().any(is_used) {
            true => self.last_beat + Nanos::from_millis(BEAT),
            false => Nanos::NEVER,
        }
    }

    /// Tells them, if it is time.
    pub(super) fn beat(&mut self) {
        let now = self.clock.now();
        if now < self.next_beat() {
            return;
        }
        self.last_beat = now;
        let at = self.clock.monotonic(now).0 / NANOS;
        self.live.values().filter_map(|live| live.door.as_ref()).for_each(|door| door.beat(at));
    }
}
