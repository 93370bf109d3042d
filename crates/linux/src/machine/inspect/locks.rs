//! When to look for programs that wait for each other's file lock.
//!
//! A freeze interrupts the system call that waits for a lock, and the kernel begins it anew after
//! the thaw. Frozen programs therefore wait for nothing. Where programs are frozen, the check comes
//! just before a freeze: those that are to be frozen have had a turn to wait in.

use cosched_core::{Nanos, ProgramId, Step};

use super::{Linux, MachineError};
use crate::observe::dependencies;

/// The shortest and the longest time between two checks.
const BETWEEN: (Nanos, Nanos) = (Nanos::from_millis(250), Nanos::from_secs(4));
/// Within these limits, one check comes after so many times the time that it takes: 6 to 8 ms on
/// many kernels, of which 0.3 ms are CPU time.
const PARTS: u64 = 200;
/// How long programs stay tied by a lock after the last wait for it was seen.
const TIED: Nanos = Nanos::from_secs(30);

impl Linux {
    /// Looks for them before these steps are carried out, if programs are to be frozen.
    pub(in super::super) fn look_at_locks_before(
        &mut self,
        steps: &[Step],
    ) -> Result<(), MachineError> {
        match steps.iter().any(|step| matches!(step, Step::Freeze(_))) {
            true => self.look_at_locks(),
            false => Ok(()),
        }
    }

    /// Finds programs that wait for each other's file lock. Not every check sees a lock that is
    /// taken and released all the time.
    pub(super) fn look_at_locks(&mut self) -> Result<(), MachineError> {
        let now = self.clock.now();
        let watched = self.inspector.watched.iter().filter(|(_, watched)| watched.turns());
        let all: Vec<ProgramId> = watched.map(|(id, _)| *id).collect();
        let running = || all.iter().copied().filter(|id| !self.is_paused(*id));
        let is_due = running().any(|id| now >= self.inspector.watched[&id].locks_at);
        if now < self.inspector.locks_at || !is_due || all.len() < 2 {
            return Ok(());
        }
        let running: Vec<ProgramId> = running().collect();
        let tied = dependencies::contended_locks(&self.proc)?;
        let mut news = false;
        for id in &all {
            let live = self.live.get(id).filter(|_| !tied.is_empty());
            let members = live.map(|live| live.tree.members(&self.proc)).unwrap_or_default();
            let keys = members.iter().filter_map(|process| tied.get(&process.pid)).flatten();
            let Some(watched) = self.inspector.watched.get_mut(id) else { continue };
            for key in keys {
                news |= watched.locks.insert(*key, now).is_none();
            }
            let before = watched.locks.len();
            watched.locks.retain(|_, seen| now.since(*seen) < TIED);
            news |= watched.locks.len() < before;
        }
        let pause = (self.clock.now().since(now) * PARTS).clamp(BETWEEN.0, BETWEEN.1);
        self.inspector.locks_at = now + pause;
        // The next checks see the others run first. Else, with turns as long as the pause, all
        // checks could come at the end of turns of one and the same program.
        let rounds = 1 + (all.len() - running.len()) as u64;
        for id in running {
            let watched = self.inspector.watched.get_mut(&id);
            watched.into_iter().for_each(|watched| watched.locks_at = now + pause * rounds);
        }
        if news {
            self.regroup();
        }
        Ok(())
    }
}
