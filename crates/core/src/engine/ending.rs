//! How a run ends: because everything is done, or at the user's request.
//!
//! In both cases the engine first releases every program that is still there (thaws and unbinds
//! it). It then requests the end of these programs, and ends them by force after a grace period. A
//! second request ends the grace period at once, unless it comes right after the first: `timeout`
//! signals its child, and then all processes of its group. No policy decides any more, so no
//! program is frozen or started meanwhile. A program that ran before the run began goes on after
//! it: the engine releases it, and does not request its end.

use super::Engine;
use super::ledger::Account;
use super::outcome::Ended;
use crate::id::ProgramId;
use crate::machine::{Interruption, Machine, Signal, Step};
use crate::plan::Directive;
use crate::policy::Policy;
use crate::program::ProgramState;
use crate::time::Nanos;

/// How long the kernel may take to end a program.
const SHORTEST_GRACE: Nanos = Nanos::from_secs(2);

/// Two signals within this time are one request.
const ONE_REQUEST: Nanos = Nanos::from_millis(100);

/// The run is being ended.
#[derive(Debug)]
pub(super) struct Closing {
    began: Nanos,
    /// When the remaining programs are ended by force. A program that is still starting is ended as
    /// soon as it has started.
    pub(super) kill_at: Nanos,
    /// When the engine gives up programs that even force did not end (a permission is missing, or
    /// the kernel holds them).
    pub(super) give_up_at: Nanos,
}

impl<M: Machine, P: Policy> Engine<M, P> {
    pub(super) fn all_done(&self) -> bool {
        self.accounts.iter().all(Account::done)
    }

    /// Once every program has done its work, ends the programs that run again only as co-runners.
    pub(super) fn close_if_done(&mut self) {
        if self.closing.is_none() && self.all_done() && !self.programs.is_empty() {
            self.close(Ended::Complete, Signal::Terminate);
        }
    }

    /// A signal asks for the end of the run.
    pub(super) fn interrupt(&mut self, by: Interruption) {
        let is_interrupted = matches!(self.outcome.ended, Ended::Interrupted(_));
        let began = self.closing.as_ref().filter(|_| is_interrupted).map(|closing| closing.began);
        if began.is_none_or(|began| self.now.since(began) >= ONE_REQUEST) {
            self.close(Ended::Interrupted(by), by.signal());
        }
    }

    /// Begins the end of the run. A second call ends the grace period.
    fn close(&mut self, ended: Ended, signal: Signal) {
        self.count_shares(self.now);
        self.outcome.ended = ended;
        let again = self.closing.is_some();
        let kill_at = if again { self.now } else { self.now + self.setup.limits.grace };
        let give_up_at = kill_at + self.setup.limits.grace.max(SHORTEST_GRACE);
        self.closing = Some(Closing { began: self.now, kill_at, give_up_at });
        self.pause = None;
        self.give_up_arrivals();
        self.wake_all();
        for control in &mut self.controls {
            control.desired = Directive::Release;
            control.signal = Some(signal);
            control.killed = false;
        }
        if !again {
            self.drop_unstarted();
            self.release_attached();
        }
    }

    fn release_attached(&mut self) {
        let entries = &self.setup.programs;
        let attached: Vec<ProgramId> = self
            .programs
            .iter()
            .map(|program| program.id)
            .filter(|id| entries[usize::from(id.slot)].runs_already)
            .collect();
        attached.into_iter().for_each(|id| self.detach(id));
    }

    /// Has the machine release a program. The engine ignores it from here on.
    pub(super) fn detach(&mut self, id: ProgramId) {
        let Some(i) = self.index(id) else { return };
        self.pending.push(Step::Release(id));
        self.accounts[usize::from(id.slot)].detaches(self.now);
        self.programs.remove(i);
        self.controls.remove(i);
        self.forget(id);
        self.timers.forget(|observe| observe.program == Some(id));
    }

    /// Gives up the programs that are left: the engine waits for no program for ever.
    pub(super) fn give_up_if_hopeless(&mut self) {
        if self.closing.as_ref().is_some_and(|closing| self.now >= closing.give_up_at) {
            self.programs.clear();
            self.controls.clear();
        }
    }

    /// Programs that never started are not started any more.
    pub(super) fn drop_unstarted(&mut self) {
        for program in self.programs.iter_mut().filter(|p| p.state == ProgramState::New) {
            self.accounts[usize::from(program.id.slot)].stops_waiting(program, self.now);
        }
        let mut keep = self.programs.iter().map(|p| p.state != ProgramState::New);
        self.controls.retain(|_| keep.next().unwrap_or(true));
        self.programs.retain(|p| p.state != ProgramState::New);
    }
}
