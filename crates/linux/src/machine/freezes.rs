//! Confirming freezes: checking again and again until the last thread has stopped.
//!
//! The engine lets no program run on CPUs on which another one may still be running, so every
//! moment until a freeze is known to be complete is lost. A check costs CPU time that others could
//! use. The first check therefore comes after a little less time than the program needed to stop
//! the last time. Later checks become rarer the longer it takes.

use cosched_core::{Event, Happening, Nanos, ProgramId};

use super::orphans::note_strays;
use super::program::{ExecutionState, Live, Parent};
use super::stops::note_stopped;
use super::{Linux, MachineError};

/// The shortest time between two checks of a freeze that is under way, and the part of the elapsed
/// time that later checks wait.
const SHORTEST: Nanos = Nanos::from_micros(20);
const LATER_LOOKS: u64 = 8;
/// The latest time of a first check, however long the last freeze took.
const LATEST_FIRST: Nanos = Nanos::from_micros(200);

impl Linux {
    pub(super) fn look_at_freezes(&mut self) -> Result<(), MachineError> {
        let now = self.clock.now();
        let is_freezing = |live: &Live| matches!(live.state, ExecutionState::Freezing { .. });
        self.freezing.retain(|id| self.live.get(id).is_some_and(is_freezing));
        if self.freezing.is_empty() || now < self.next_look() {
            return Ok(());
        }
        self.adopt()?;
        let (mut orphaned, mut refused) = (Vec::new(), Vec::new());
        for id in &self.freezing {
            let Some(live) = self.live.get_mut(id) else { continue };
            let ExecutionState::Freezing { since, look_at } = live.state else { continue };
            if now < look_at {
                continue;
            }
            if live.freezer.needs_processes() && matches!(live.parent, Parent::Shim(_)) {
                note_strays(live, &self.proc, &mut self.log)?;
            }
            let frozen = live.freezer.is_frozen(&live.tree, &self.proc);
            note_stopped(&live.freezer, &mut self.log)?;
            let what = match frozen {
                Ok(true) if matches!(live.parent, Parent::Cosched) => {
                    orphaned.push(live.id);
                    continue;
                }
                Ok(true) => {
                    live.state = ExecutionState::Frozen;
                    live.frozen.begin(now);
                    live.stops_within = now.since(since);
                    live.not_frozen = None;
                    Happening::Froze(live.id)
                }
                Ok(false) => {
                    let pause = SHORTEST.max(now.since(since) / LATER_LOOKS);
                    live.state = ExecutionState::Freezing { since, look_at: now + pause };
                    continue;
                }
                Err(why) => {
                    live.state = ExecutionState::Running;
                    live.was_not_frozen(why, now);
                    refused.push((live.id, why));
                    continue;
                }
            };
            self.queue.push(Event { at: self.clock.now(), what });
        }
        for (id, why) in refused {
            self.could_not_freeze(id, why);
        }
        // A process may have become an orphan during the walk, and so have been missed.
        if !orphaned.is_empty() && !self.adopt()? {
            for id in orphaned {
                self.with(id, |_, live| {
                    live.state = ExecutionState::Frozen;
                    live.frozen.begin(now);
                });
                self.tell(Happening::Froze(id));
            }
        }
        Ok(())
    }

    /// When to check a program first that was asked to stop now.
    pub(super) fn first_look(live: &Live, now: Nanos) -> Nanos {
        // A little earlier every time; otherwise a faster stop would never be noticed.
        now + (live.stops_within * 3 / 4).clamp(SHORTEST, LATEST_FIRST)
    }

    /// When to check next: the freezes that are under way, or else what programs hold, which takes
    /// longer and must not delay a switch.
    pub(super) fn next_look(&self) -> Nanos {
        let look_at = |id: &ProgramId| match self.live.get(id)?.state {
            ExecutionState::Freezing { look_at, .. } => Some(look_at),
            _ => None,
        };
        let looks = self.freezing.iter().filter_map(look_at);
        looks.min().unwrap_or_else(|| self.next_inspection())
    }
}
