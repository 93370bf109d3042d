//! The policy in force inside `auto`. It sees the programs with what `auto` has found out about
//! them.
//!
//! `auto` copies no other policy. It passes the causes to one of them, and adopts its plan. That
//! policy sees a program that hardly uses CPUs as one that may not be frozen.

use std::collections::BTreeSet;

use cosched_core::{
    Cause, Directive, Nanos, Output, Plan, Policy, Program, ProgramId, Token, Why, World,
};

use super::AutoReason;
use crate::common::reasons::SharedReason;

/// The only wake-up of each policy that can be in force.
const ITS_WAKE: Token = Token(0);

/// A policy, and what `auto` has found out about the programs.
pub(super) struct Inner {
    policy: Box<dyn Policy + Send>,
    /// The policy does not have the list of programs yet.
    is_new: bool,
    /// It runs solo probes: every program has equal time, and none is bound to CPUs.
    probes: bool,
    /// The programs that hardly use CPUs, by position in the workload.
    idle: BTreeSet<u16>,
    /// The programs that have backfilled a gang's free CPUs since this was last taken.
    backfilled: BTreeSet<ProgramId>,
}

impl Inner {
    pub(super) fn new(policy: Box<dyn Policy + Send>) -> Inner {
        let (idle, backfilled) = (BTreeSet::new(), BTreeSet::new());
        Inner { policy, is_new: true, probes: false, idle, backfilled }
    }

    /// Puts another policy into force, with the programs that hardly use CPUs.
    pub(super) fn change(
        &mut self,
        policy: Box<dyn Policy + Send>,
        idle: BTreeSet<u16>,
        probes: bool,
    ) {
        (self.policy, self.idle, self.probes, self.is_new) = (policy, idle, probes, true);
    }

    /// The programs that hardly used CPUs when the policy came into force.
    pub(super) fn idle(&self) -> &BTreeSet<u16> {
        &self.idle
    }

    /// The programs that have backfilled a gang's free CPUs since the last call.
    pub(super) fn take_backfilled(&mut self) -> BTreeSet<ProgramId> {
        std::mem::take(&mut self.backfilled)
    }

    pub(super) fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let programs: Vec<Program> = world.programs.iter().map(|p| self.shown(p)).collect();
        let is_new = std::mem::take(&mut self.is_new);
        let causes: Vec<Cause> = match is_new {
            true => programs.iter().map(|program| Cause::Arrived(program.id)).collect(),
            false => causes.iter().filter(|cause| concerns(cause)).copied().collect(),
        };
        if !causes.is_empty() {
            let own = (plan.programs.len(), plan.reasons.len(), plan.outputs.len());
            self.policy.decide(&causes, &World { programs: &programs, ..*world }, plan);
            self.amend(own, plan);
        }
        if is_new && !plan.wake.iter().any(|wake| wake.token == ITS_WAKE) {
            // The policy before this one may have requested a wake-up.
            plan.wake_at(Nanos::NEVER, ITS_WAKE);
        }
    }

    fn shown(&self, program: &Program) -> Program {
        Program {
            freezable: program.freezable && !self.idle.contains(&program.id.slot),
            weight: if self.probes { 1.0 } else { program.weight },
            ..program.clone()
        }
    }

    /// Amends what the policy has added to a plan. `own` has the numbers of directives, reasons and
    /// outputs before. In solo probes programs are left unbound: otherwise they would all start on
    /// the first CPUs afterwards.
    fn amend(&mut self, own: (usize, usize, usize), plan: &mut Plan) {
        let (directives, reasons, outputs) = own;
        for (_, directive) in &mut plan.programs[directives..] {
            match directive {
                Directive::Run(settings) if self.probes => settings.cpus = None,
                _ => {}
            }
        }
        let backfills = |(_, output): &&(ProgramId, Output)| *output == Output::Backfilled;
        self.backfilled.extend(plan.outputs[outputs..].iter().filter(backfills).map(|(id, _)| *id));
        let is_idle = |id: ProgramId| self.idle.contains(&id.slot);
        let never_frozen = Why::from(SharedReason::NeverFrozen);
        for reason in &mut plan.reasons[reasons..] {
            // The policy does not know why the program may not be frozen.
            if reason.why == never_frozen && reason.program.is_some_and(is_idle) {
                reason.why = AutoReason::HardlyRuns.into();
            }
        }
    }
}

/// Whether the policy in force gets a cause: it measures nothing, and knows only its own wake-up.
fn concerns(cause: &Cause) -> bool {
    match *cause {
        Cause::Woke(token) => token == ITS_WAKE,
        Cause::Sampled(_) => false,
        _ => true,
    }
}
