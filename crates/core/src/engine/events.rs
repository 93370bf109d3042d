//! Accounting of what happened: events become states, accounts and causes.

use super::Engine;
use super::outcome::Deviation;
use crate::cause::{Aspect, Cause, Refusal, UserCommand};
use crate::id::ProgramId;
use crate::machine::{Event, Happening, Machine};
use crate::plan::Directive;
use crate::policy::Policy;
use crate::program::ProgramState;
use crate::time::Nanos;

impl<M: Machine, P: Policy> Engine<M, P> {
    /// Takes one event into the accounts.
    pub(super) fn account_for(&mut self, Event { at, what }: Event) {
        match what {
            Happening::Interrupted(by) => return self.interrupt(by),
            Happening::MachineChanged(cpus) => {
                self.count_shares(at);
                self.setup.cpus = cpus;
                self.causes.push(Cause::MachineChanged);
                return;
            }
            Happening::Commanded(command) => return self.obey(command),
            _ => {}
        }
        let Some(id) = what.program() else { return };
        let Some(i) = self.index(id) else { return };
        self.awake.wake(id);
        if let Happening::Exited(..)
        | Happening::StoppedByOther(_)
        | Happening::ContinuedByOther(_)
        | Happening::Requested { .. } = what
        {
            self.count_shares(at);
        }
        let (program, control) = (&mut self.programs[i], &mut self.controls[i]);
        let account = &mut self.accounts[usize::from(id.slot)];
        match what {
            Happening::Started(_) | Happening::Thawed(_) | Happening::ContinuedByOther(_) => {
                program.state = ProgramState::Running;
                control.thawing = false;
                account.runs(program, at);
                self.switched(at, matches!(what, Happening::Thawed(_)));
                if matches!(what, Happening::ContinuedByOther(_)) {
                    self.causes.push(Cause::Continued(id));
                }
            }
            Happening::Froze(_) => {
                program.state = ProgramState::Frozen;
                control.thawing = false;
                control.unreliable = false;
                account.freezes(program, at);
                self.awake.freezes(id, at, program.max_frozen);
            }
            Happening::StoppedByOther(_) => {
                program.state = ProgramState::StoppedByOther;
                account.stops_running(at);
                self.deviate(at, id, Aspect::Running, Refusal::StoppedByOther);
            }
            Happening::Applied(_, epoch) => {
                control.applying = control.applying.filter(|applying| *applying != epoch);
                account.moves(program, at);
                account.takes_turns(program, at);
            }
            Happening::Exited(_, exit, usage) => {
                match self.closing.is_some() && account.done() {
                    true => account.is_cut_short(program, at, usage),
                    false => account.ends(program, at, exit, usage),
                }
                self.causes.push(Cause::Exited(id, exit));
                self.leave_world(i, at);
            }
            Happening::Refused(_, aspect, why) => {
                // A program that was thawed while cosched was stopped can be frozen again.
                if aspect == Aspect::Frozen && why != Refusal::CoschedStopped {
                    control.override_freeze = Some(why);
                }
                self.deviate(at, id, aspect, why);
            }
            Happening::Unfreezable(_, why) => {
                program.freezable = false;
                self.renew_max_frozen();
                self.deviate(at, id, Aspect::Frozen, why);
            }
            Happening::Grouped(_, group) => {
                program.group = Some(group);
                self.causes.push(Cause::Grouped(id));
            }
            Happening::ThreadsChanged(_) => {
                self.timers.hurry(id, self.now);
                self.causes.push(Cause::ThreadsChanged(id));
            }
            Happening::Requested { threads, blocked, .. } => {
                program.requested = threads;
                control.apply_anyway |= blocked;
                self.causes.push(Cause::Requested { program: id, threads, blocked });
            }
            Happening::Interrupted(_) | Happening::MachineChanged(_) | Happening::Commanded(_) => {}
        }
    }

    /// Does the engine's part of a user's request.
    fn obey(&mut self, command: UserCommand) {
        let (UserCommand::Detach(id) | UserCommand::Weight(id, _)) = command;
        let Some(i) = self.index(id) else { return };
        self.count_shares(self.now);
        match command {
            UserCommand::Weight(_, weight) => self.programs[i].weight = weight,
            UserCommand::Detach(_) => {
                self.accounts[usize::from(id.slot)].outcome.detached = Some(self.now);
                self.detach(id);
            }
        }
        self.causes.push(Cause::Commanded(command));
    }

    /// Removes an ended program from the world. It may arrive again.
    pub(super) fn leave_world(&mut self, i: usize, at: Nanos) {
        let id = self.programs.remove(i).id;
        self.controls.remove(i);
        self.renew_max_frozen();
        self.turns.ends(id);
        self.forget(id);
        self.timers.forget(|observe| observe.program == Some(id));
        self.outcome.total = self.outcome.total.max(at);
        let repeats = self.accounts[usize::from(id.slot)].repeats() && !self.all_done();
        if repeats && self.closing.is_none() {
            self.arrive(id.next(), at);
        }
    }

    /// Records a deviation from the plan with its time, and tells the policy.
    pub(super) fn deviate(&mut self, at: Nanos, program: ProgramId, what: Aspect, why: Refusal) {
        self.outcome.deviations.push(Deviation { at, program, what, why });
        self.causes.push(Cause::Deviated { program, what, why });
    }

    /// Keeps the time that a switch between gangs took. A switch that starts a program or follows
    /// an end has no gap to measure.
    pub(super) fn switched(&mut self, at: Nanos, thawed: bool) {
        if self.switch_began.is_none() || !self.all_run() {
            return;
        }
        if let Some(began) = self.switch_began.take().filter(|_| thawed) {
            self.outcome.switch_gaps.add(at - began);
        }
    }

    /// Tells the policy, once for each directive, that it is in full effect.
    pub(super) fn settle(&mut self) {
        // A freeze after which no program had to be thawed was no switch.
        let awake = self.awake();
        let freezing = awake.iter().any(|i| self.programs[*i].state == ProgramState::Freezing);
        if !freezing && self.all_run() {
            self.switch_began = None;
        }
        for i in awake {
            let (program, control) = (&mut self.programs[i], &mut self.controls[i]);
            let in_effect = match control.desired {
                Directive::Run(_) => {
                    program.state == ProgramState::Running && control.applying.is_none()
                }
                Directive::Freeze => {
                    matches!(program.state, ProgramState::Frozen | ProgramState::New)
                }
                Directive::Release => false,
            };
            if in_effect && control.settled != program.epoch {
                control.settled = program.epoch;
                program.settled_at = self.now;
                self.causes.push(Cause::Settled { program: program.id, epoch: program.epoch });
            }
        }
        self.let_rest();
    }
}
