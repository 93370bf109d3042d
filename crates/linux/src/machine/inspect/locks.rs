//! When to look for programs that wait for each other's file lock.
//!
//! A freeze interrupts the system call that waits for a lock, and the kernel begins it anew after
//! the thaw. Frozen programs therefore wait for nothing. In a run that freezes programs, the looks
//! come when turns end, before the engine decides anything: the programs that are frozen next have
//! had a turn to wait in. In turns by weight, all run, and a look must not delay a switch.

use std::collections::BTreeSet;

use cosched_core::{Nanos, ProgramId};

use super::{Linux, MachineError};
use crate::observe::dependencies::{ContendedLocks, SharedKey};
use crate::process::tree::Process;

/// The shortest and the longest time between two looks at a program where all programs run.
const BETWEEN: (Nanos, Nanos) = (Nanos::from_millis(250), Nanos::from_secs(4));
/// Within these limits, the next look comes after so many times the time that one takes: 6 to 8 ms
/// on many kernels, of which 0.3 ms are CPU time.
const PARTS: u64 = 200;
/// How long programs stay tied by a lock after the last wait for it was seen.
const TIED: Nanos = Nanos::from_secs(30);
/// The longest time between two looks at a program: ties have to outlast some.
const LONGEST: Nanos = Nanos::from_secs(8);

impl Linux {
    /// Looks for them as a turn ends, in a run that freezes programs.
    pub(in super::super) fn look_at_locks_before_freezes(&mut self) -> Result<(), MachineError> {
        match self.run_cgroups.is_by_weight() || !self.freezing.is_empty() {
            true => Ok(()),
            false => self.look_at_locks(),
        }
    }

    /// Finds programs that wait for each other's file lock. Not every look sees a lock that is
    /// taken and released all the time.
    pub(super) fn look_at_locks(&mut self) -> Result<(), MachineError> {
        let now = self.clock.now();
        let watched = self.inspector.watched.iter().filter(|(_, watched)| watched.turns());
        let all: Vec<ProgramId> = watched.map(|(id, _)| *id).collect();
        let running = || all.iter().copied().filter(|id| !self.is_paused(*id));
        let is_due = running().any(|id| now >= self.inspector.watched[&id].locks_at);
        if !is_due || all.len() < 2 {
            return Ok(());
        }
        self.guard.sentinel.works();
        let running: Vec<ProgramId> = running().collect();
        let contended = ContendedLocks::read(&self.proc)?;
        let shared: Vec<Vec<(SharedKey, bool)>> =
            all.iter().map(|id| self.locks_shared_by(*id, &contended)).collect();
        // Programs do not wait for each other if only other processes wait for them.
        let awaited: BTreeSet<SharedKey> =
            shared.iter().flatten().filter(|(_, waits)| *waits).map(|(key, _)| *key).collect();
        let mut news = false;
        for (id, shared) in all.iter().zip(shared) {
            let keys = shared.into_iter().map(|(key, _)| key).filter(|key| awaited.contains(key));
            let Some(watched) = self.inspector.watched.get_mut(id) else { continue };
            for key in keys {
                news |= watched.locks.insert(key, now).is_none();
            }
            let before = watched.locks.len();
            watched.locks.retain(|_, seen| now.since(*seen) < TIED);
            news |= watched.locks.len() < before;
        }
        let pause = (self.clock.now().since(now) * PARTS).clamp(BETWEEN.0, BETWEEN.1);
        // Each look sees those that run. In between, there is one for each of the others.
        let rounds = 1 + (all.len() - running.len()) as u64;
        let next = now + (pause * rounds).min(LONGEST);
        for id in running {
            self.inspector.watched.get_mut(&id).into_iter().for_each(|one| one.locks_at = next);
        }
        if news {
            self.regroup();
        }
        Ok(())
    }

    fn locks_shared_by(&self, id: ProgramId, contended: &ContendedLocks) -> Vec<(SharedKey, bool)> {
        let live = self.live.get(&id).filter(|_| !contended.are_none());
        let members = live.map(|live| live.tree.members(&self.proc)).unwrap_or_default();
        let shared = |process: &Process| contended.shared_by(process.pid, &self.proc);
        members.iter().flat_map(shared).collect()
    }
}
