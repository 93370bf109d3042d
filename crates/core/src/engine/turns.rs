//! Which programs have CPUs by decision. Switches between gangs are counted by this.
//!
//! A switch is a decision that changes which programs have CPUs. It stops a program, starts one,
//! lets one go on, or changes by weight which program's turn it is. The first set of programs
//! follows no other set, and is no switch. The following are no switches either, because no
//! decision makes them:
//!
//! - the same gang goes on for another quantum;
//! - a program ends;
//! - a program starts again in the gang in which it has just ended;
//! - the engine keeps a promise against the policy's plan.
//!
//! The count therefore depends on decisions alone. It does not depend on how long a switch took, or
//! on whether its gap could be measured.

use crate::id::ProgramId;
use crate::machine::Machine;
use crate::plan::{Directive, Plan};
use crate::policy::Policy;

use super::Engine;

/// The programs that the last decisions let run, by slot.
#[derive(Debug)]
pub(super) struct ChosenPrograms {
    chosen: Vec<bool>,
    /// The chosen programs that have ended since the last switch. Each keeps its place until other
    /// programs are run.
    ended: Vec<u16>,
    /// A program was started or thawed.
    begun: bool,
}

impl ChosenPrograms {
    pub(super) fn new(slots: usize) -> ChosenPrograms {
        ChosenPrograms { chosen: vec![false; slots], ended: Vec::new(), begun: false }
    }

    /// A program that runs already arrived with the run.
    pub(super) fn finds(&mut self, id: ProgramId) {
        (self.chosen[usize::from(id.slot)], self.begun) = (true, true);
    }

    pub(super) fn ends(&mut self, id: ProgramId) {
        if self.chosen[usize::from(id.slot)] {
            self.ended.push(id.slot);
        }
    }
}

impl<M: Machine, P: Policy> Engine<M, P> {
    /// Counts a plan that is about to be adopted if it is a switch.
    pub(super) fn count_switch(&mut self, plan: &Plan) {
        let mut changed = false;
        for (id, directive) in &plan.programs {
            let Some(i) = self.index(*id) else { continue };
            let chosen = &mut self.turns.chosen[usize::from(id.slot)];
            let ran = self.controls[i].desired.gives_cpus();
            match directive {
                // A released program runs on.
                Directive::Release => {}
                directive if directive.gives_cpus() => changed |= !std::mem::replace(chosen, true),
                // A program that waits goes on waiting.
                _ if ran => {
                    *chosen = false;
                    changed = true;
                }
                _ => {}
            }
        }
        if !changed {
            return;
        }
        for slot in std::mem::take(&mut self.turns.ended) {
            let runs_again = |(id, directive): &(ProgramId, Directive)| {
                id.slot == slot && directive.gives_cpus()
            };
            self.turns.chosen[usize::from(slot)] = plan.programs.iter().any(runs_again);
        }
        if std::mem::replace(&mut self.turns.begun, true) {
            self.outcome.switches.push(self.now);
        }
    }
}
