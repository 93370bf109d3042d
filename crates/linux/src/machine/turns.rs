//! Turns by weight: each program's part, and when threads are moved apart.

use std::collections::BTreeMap;

use cosched_core::{Aspect, Happening, Nanos, ProgramId, Refusal, Settings, Step, Turn};
use rustix::io::Errno;

use super::Linux;
use super::others::Others;
use super::program::Live;
use crate::cgroup::Version;
use crate::control::spread::{Spread, SpreadCandidate};
use crate::safety::undo::LogError;

#[derive(Debug)]
pub(super) struct Moves {
    apart: Spread,
    /// When the threads of programs in turn are next moved apart during a turn.
    pub(super) next: Nanos,
    /// Whether they were moved apart when a turn last began.
    at_begin: bool,
    others: Others,
}

impl Default for Moves {
    fn default() -> Moves {
        let (apart, others) = Default::default();
        Moves { apart, next: Nanos::NEVER, at_begin: false, others }
    }
}

impl Linux {
    /// Gives a program its part in turns by weight; `None`: the default weight.
    pub(super) fn weigh(&mut self, live: &mut Live, turn: Option<Turn>) {
        let set = match (&self.ext, &mut live.weight) {
            (Some(ext), _) => {
                ext.set_turn(live.id.slot, turn);
                Ok(())
            }
            (None, Some(weight)) => weight.set(turn),
            (None, None) if turn.is_none() => return,
            (None, None) => Err(Errno::NOTSUP),
        };
        match set {
            Ok(()) => {
                live.turn = turn;
                let has_turn = turn != Some(Turn::Filler);
                self.within.program_turns(live.id, has_turn, self.clock.now());
                self.moves.next = self.moves.next.min(self.later_spread());
            }
            Err(errno) => {
                let why = match errno {
                    Errno::PERM | Errno::ACCESS => Refusal::NotPermitted,
                    _ => Refusal::NotSupported,
                };
                self.tell(Happening::Refused(live.id, Aspect::Turn, why));
            }
        }
    }

    /// Gives every program its part again, and what ended ones have left running, after another
    /// process may have changed weights.
    pub(super) fn weigh_anew(&mut self) {
        for id in self.live.keys().copied().collect::<Vec<ProgramId>>() {
            self.with(id, |linux, live| {
                if let Some(weight) = &mut live.weight {
                    weight.forget();
                    linux.weigh(live, live.turn);
                }
            });
        }
        self.within.weigh_anew();
        // These have ended for the engine, which hears of no refusal.
        for left in &mut self.leftovers {
            if let Some(weight) = &mut left.weight {
                weight.forget();
                let _ = weight.set(left.turn);
            }
        }
    }

    /// Begins the turns that these steps order, before others end: sets the weights of the
    /// programs, and moves the threads of all programs in turn apart.
    pub(super) fn begin_turns(&mut self, steps: &[Step]) -> Result<(), LogError> {
        let applied: BTreeMap<ProgramId, Settings> = steps
            .iter()
            .filter_map(|step| match *step {
                Step::Apply(id, settings, _) => Some((id, settings)),
                _ => None,
            })
            .collect();
        let in_turn = Some(Turn::InTurn);
        let begins = |id: ProgramId| self.live.get(&id).is_some_and(|live| live.turn != in_turn);
        let turns = applied.iter().filter(|(_, settings)| settings.turn == in_turn);
        let begin: Vec<ProgramId> = turns.map(|(id, _)| *id).filter(|id| begins(*id)).collect();
        if begin.is_empty() {
            return Ok(());
        }
        for id in begin {
            self.with(id, |linux, live| linux.weigh(live, in_turn));
        }
        if self.ext.is_some() {
            return Ok(());
        }
        self.moves.apart.keep_only(|id| self.live.contains_key(&id));
        self.moves.next = self.later_spread();
        self.moves.apart.begin();
        self.moves.at_begin = !(self.moves.at_begin && self.moves_harm_others());
        if self.moves.at_begin { self.move_apart(&applied) } else { Ok(()) }
    }

    /// Whether other processes lose their share of the CPUs if threads are moved apart whenever a
    /// turn begins: they compute, cgroups are of version 1, and there are at most two CPUs. If
    /// threads are moved at every second turn only, they keep it (`docs/research/turns.md`, "Other
    /// processes").
    fn moves_harm_others(&mut self) -> bool {
        let mut dirs = self.live.values().filter_map(Live::share_dir);
        self.cpus.len() <= 2
            && dirs.any(|dir| dir.version() == Version::V1)
            && self.moves.others.compute(&self.clock, &self.cpus, &self.live, &self.proc)
    }

    /// Moves the threads of programs in turn apart again, if that is due and others fill.
    pub(super) fn keep_apart(&mut self) -> Result<(), LogError> {
        // That scheduler's queues are not bound to CPUs.
        if self.ext.is_some() || self.clock.now() < self.moves.next {
            return Ok(());
        }
        let has =
            |turn| self.live.values().any(|live| live.turn == Some(turn) && !live.is_detached);
        let is_filled =
            has(Turn::Filler) || self.within.has_turns() || self.run_cgroups.is_nested();
        if !(has(Turn::InTurn) && is_filled) {
            self.moves.next = Nanos::NEVER;
            return Ok(());
        }
        self.moves.next = self.later_spread();
        self.move_apart(&BTreeMap::new())?;
        self.settle_moves()
    }

    /// Moves the threads of units apart that begin their turn within a program in turn.
    pub(super) fn begin_turns_within(&mut self) -> Result<(), LogError> {
        self.moves.next = self.later_spread();
        self.moves.apart.begin();
        self.move_apart(&BTreeMap::new())?;
        self.settle_moves()
    }

    fn later_spread(&self) -> Nanos {
        let every = Turn::moved_apart_every(self.cpus.len(), self.run_cgroups.is_nested());
        every.map_or(Nanos::NEVER, |every| self.clock.now() + every)
    }

    /// Moves the threads of programs in turn apart. These settings are about to be applied.
    fn move_apart(&mut self, applied: &BTreeMap<ProgramId, Settings>) -> Result<(), LogError> {
        let in_turn = Some(Turn::InTurn);
        let mut candidates = Vec::new();
        for live in self.live.values().filter(|live| !live.is_detached) {
            let settings = applied.get(&live.id);
            let turn = settings.map_or(live.turn, |settings| settings.turn);
            if let Some(home) = live.share_dir().filter(|_| turn == in_turn) {
                let cpus = settings.and_then(|settings| settings.cpus).unwrap_or(self.cpus);
                let (dir, unit) = self.within.in_turn(live.id).unwrap_or((home, 0));
                candidates.push(SpreadCandidate { program: live.id, unit, dir, home, cpus });
            }
        }
        self.moves.apart.spread(&candidates, self.cpus.len(), &self.proc, &mut self.log)
    }

    /// Makes sure that any moves of threads are over.
    pub(super) fn settle_moves(&mut self) -> Result<(), LogError> {
        let dir = |id| self.live.get(&id).and_then(Live::share_dir);
        self.moves.apart.settle(dir, &self.proc, &mut self.log)
    }
}
