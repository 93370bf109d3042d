//! Which programs need work by the engine. With many programs nearly all of them wait, and nothing
//! changes for them.
//!
//! A program is *idle* when its directive is to wait, it does wait, and no step for it is
//! outstanding. Any event about it, a plan that names it, or the end of its longest freeze wakes
//! it. After an event, the engine works only on programs that are awake. The cost of an event
//! therefore depends on what changes, and not on the number of programs.
//!
//! A program that has been frozen for the longest time allowed is thawed: it has a *grace period*.
//! It is then idle too, while it runs, until this period is over. The first plan after that returns
//! it to its directive. With a thousand gangs, a tenth of all programs are in a grace period at any
//! time.

use std::collections::BTreeSet;

use super::Engine;
use super::reconcile::Control;
use crate::id::ProgramId;
use crate::machine::Machine;
use crate::plan::Directive;
use crate::policy::Policy;
use crate::program::{Program, ProgramState};
use crate::time::Nanos;

/// The programs that are awake, and since when cosched has frozen each of the others.
#[derive(Debug, Default)]
pub(super) struct Awake {
    ids: BTreeSet<ProgramId>,
    /// When each longest freeze ends, and when it began. Programs that are no longer frozen are
    /// removed when the first entries are next examined.
    frozen: BTreeSet<(Nanos, Nanos, ProgramId)>,
    /// The programs in a grace period, and its end.
    thawed_for_a_while: BTreeSet<(Nanos, ProgramId)>,
}

impl Awake {
    /// Something happens to a program.
    pub(super) fn wake(&mut self, id: ProgramId) {
        self.ids.insert(id);
    }

    /// A program is frozen from here on, for so long at most.
    pub(super) fn freezes(&mut self, id: ProgramId, at: Nanos, longest: Nanos) {
        self.frozen.insert((at + longest, at, id));
    }

    /// A program that was frozen for too long runs until this time.
    pub(super) fn thaws_for_a_while(&mut self, id: ProgramId, until: Nanos) {
        self.thawed_for_a_while.insert((until, id));
    }

    /// When the first freeze has lasted for as long as allowed.
    pub(super) fn first_freeze_ends(&self) -> Option<Nanos> {
        self.frozen.first().map(|(ends, ..)| *ends)
    }
}

impl<M: Machine, P: Policy> Engine<M, P> {
    /// The positions of the programs that are awake, in order.
    pub(super) fn awake(&self) -> Vec<usize> {
        self.awake_now().collect()
    }

    pub(super) fn awake_now(&self) -> impl Iterator<Item = usize> + '_ {
        self.awake.ids.iter().filter_map(|id| self.index(*id))
    }

    /// Wakes the programs that have been frozen for as long as allowed.
    pub(super) fn wake_overlong(&mut self) {
        while let Some((ends, since, id)) = self.awake.frozen.first().copied() {
            let over = self.now >= ends;
            if !over && self.accounts[usize::from(id.slot)].frozen_since() == Some(since) {
                return;
            }
            self.awake.frozen.pop_first();
            self.awake.wake(id);
        }
    }

    /// Ends the grace periods that are over: their programs return to their directives.
    pub(super) fn end_grace_periods(&mut self) {
        while let Some((until, id)) = self.awake.thawed_for_a_while.first().copied() {
            if until > self.now {
                return;
            }
            self.awake.thawed_for_a_while.pop_first();
            let Some(i) = self.index(id) else { continue };
            if self.controls[i].override_until == until && self.controls[i].is_thawed_for_a_while()
            {
                self.controls[i].override_freeze = None;
                self.awake.wake(id);
            }
        }
    }

    /// The positions of those with changing running times.
    pub(super) fn runners(&self) -> Vec<usize> {
        let thawed_for_a_while =
            self.awake.thawed_for_a_while.iter().filter_map(|(_, id)| self.index(*id));
        self.awake_now().chain(thawed_for_a_while).collect()
    }

    /// Wakes every program.
    pub(super) fn wake_all(&mut self) {
        self.awake.ids.extend(self.programs.iter().map(|program| program.id));
    }

    /// Programs that wait for nothing but the policy are idle from here on.
    pub(super) fn let_rest(&mut self) {
        for i in self.awake() {
            let (program, control) = (&mut self.programs[i], &self.controls[i]);
            if is_idle(program, control) {
                program.ran = self.accounts[usize::from(program.id.slot)].ran(self.now);
                self.awake.ids.remove(&program.id);
            }
        }
    }

    /// Forgets a program that is no longer there.
    pub(super) fn forget(&mut self, id: ProgramId) {
        self.awake.ids.remove(&id);
    }
}

/// Whether a program is idle. A program in a group never is: its group may begin to run at any
/// time.
fn is_idle(program: &Program, control: &Control) -> bool {
    let waits = control.settled == program.epoch && control.override_freeze.is_none();
    let as_it_is_to_be = match program.state {
        ProgramState::New => waits,
        ProgramState::Frozen => waits && program.freezable,
        ProgramState::Running => control.is_thawed_for_a_while(),
        _ => false,
    };
    as_it_is_to_be
        && control.desired == Directive::Freeze
        && !control.thawing
        && !control.apply_anyway
        && program.group.is_none()
}
