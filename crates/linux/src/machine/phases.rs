//! Whose phases can be told apart: programs that are looked at from their first instruction on.

use cosched_core::{Measure, ProgramId};

use super::Linux;
use crate::pointers::{MOST_RINGS, Pointers, Source};
use crate::tree::Process;

impl Linux {
    /// Takes samples of where in its code a program is that is about to be started, if that is
    /// wanted. Where it cannot be had, all of the program's time is of one phase, and the user is
    /// told once.
    pub(super) fn sample_below(&mut self, id: ProgramId, shim: Process) -> Option<Pointers> {
        if !self.observer.wants(id, Measure::InstructionPointers) {
            return None;
        }
        let source = Source::here();
        let rings = self.cpus.len() * self.jobs.len();
        let opened = source.filter(|_| rings <= MOST_RINGS).map(|source| {
            Pointers::below(shim, &self.cpus, source).map_err(|error| error.to_string())
        });
        let why = match opened {
            Some(Ok(pointers)) => return Some(pointers),
            Some(Err(error)) => error,
            None if source.is_none() => "the kernel does not let this user".to_owned(),
            None => format!("{rings} rings of samples would be too many"),
        };
        if !std::mem::replace(&mut self.observer.is_blind, true) {
            self.note(
                id,
                format!("phases of this program and others are not distinguishable: {why}"),
            );
        }
        None
    }
}
