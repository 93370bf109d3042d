//! Phases of programs, which need samples from a program's first instruction on.

use cosched_core::{Measure, ProgramId};

use super::Linux;
use crate::observe::pointers::{MOST_RINGS, Pointers, SampleClock};
use crate::process::tree::Process;

impl Linux {
    /// Samples where in its code a program is that is about to be started, if that is requested.
    /// Where that is unavailable, all of the program's time belongs to one phase, and the user gets
    /// one message.
    pub(super) fn sample_below(&mut self, id: ProgramId, shim: Process) -> Option<Pointers> {
        if !self.observer.is_requested(id, Measure::InstructionPointers) {
            return None;
        }
        let source = SampleClock::here();
        let rings = self.cpus.len() * self.config.jobs.len();
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
