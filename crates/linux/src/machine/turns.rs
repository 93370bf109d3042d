//! Turns by weight: each program's part, and what is done when a turn begins.

use cosched_core::{Aspect, Happening, ProgramId, Refusal, Turn};
use rustix::io::Errno;

use super::Linux;
use super::program::Live;
use crate::cgroup::Dir;
use crate::undo::LogError;

impl Linux {
    /// Gives a program its part in turns by weight; `None`: an ordinary weight.
    pub(super) fn weigh(&mut self, live: &mut Live, turn: Option<Turn>) {
        let set = match &mut live.weight {
            Some(weight) => weight.set(turn),
            None if turn.is_none() => return,
            None => Err(Errno::NOTSUP),
        };
        match set {
            Ok(()) => {
                self.turn_began |= turn == Some(Turn::InTurn) && live.turn != turn;
                live.turn = turn;
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

    /// Gives every program its part again, after another process may have changed weights.
    pub(super) fn weigh_anew(&mut self) {
        for id in self.live.keys().copied().collect::<Vec<ProgramId>>() {
            self.with(id, |linux, live| {
                if let Some(weight) = &mut live.weight {
                    weight.forget();
                    linux.weigh(live, live.turn);
                }
            });
        }
    }

    /// Moves the threads of the programs in turn apart, if a turn has just begun.
    pub(super) fn spread(&mut self) -> Result<(), LogError> {
        if !std::mem::take(&mut self.turn_began) {
            return Ok(());
        }
        self.apart.keep_only(|id| self.live.contains_key(&id));
        let in_turn = self.live.values().filter(|live| live.turn == Some(Turn::InTurn));
        let in_turn: Vec<(ProgramId, &Dir)> =
            in_turn.filter_map(|live| Some((live.id, live.share_dir()?))).collect();
        self.apart.spread(&in_turn, &self.cpus, &self.proc, &mut self.log)
    }
}
