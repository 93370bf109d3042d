//! The policy in force inside `auto`: it sees the programs as `auto` knows them.
//!
//! `auto` copies no other policy. It hands the causes on to one of them, and takes over its plan.
//! That policy sees a program that hardly uses CPUs as one that may not be frozen.

use std::collections::BTreeSet;

use cosched_core::{Cause, Directive, Nanos, Plan, Policy, Program, ProgramId, Token, Why, World};

/// The only wake-up of each policy that can be in force.
const ITS_WAKE: Token = Token(0);

/// A policy, and what `auto` knows of the programs.
pub(super) struct Inner {
    policy: Box<dyn Policy + Send>,
    /// The policy has not been told yet which programs there are.
    is_new: bool,
    /// It runs solo probes: every program has equal time, and none is bound to CPUs.
    probes: bool,
    /// The programs that hardly use CPUs, by position in the workload.
    idle: BTreeSet<u16>,
    /// The programs that ran on CPUs left over by a gang since this was last taken.
    lent: BTreeSet<ProgramId>,
}

impl Inner {
    pub(super) fn new(policy: Box<dyn Policy + Send>) -> Inner {
        let (idle, lent) = (BTreeSet::new(), BTreeSet::new());
        Inner { policy, is_new: true, probes: false, idle, lent }
    }

    /// From now on another policy is in force, and these programs hardly use CPUs.
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

    /// The programs that ran on CPUs left over by a gang since this was last asked.
    pub(super) fn take_lent(&mut self) -> BTreeSet<ProgramId> {
        std::mem::take(&mut self.lent)
    }

    pub(super) fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let programs: Vec<Program> = world.programs.iter().map(|p| self.shown(p)).collect();
        let is_new = std::mem::take(&mut self.is_new);
        let causes: Vec<Cause> = match is_new {
            true => programs.iter().map(|program| Cause::Arrived(program.id)).collect(),
            false => causes.iter().filter(|cause| concerns(cause)).copied().collect(),
        };
        if !causes.is_empty() {
            let (directives, reasons) = (plan.programs.len(), plan.reasons.len());
            self.policy.decide(&causes, &World { programs: &programs, ..*world }, plan);
            self.amend(directives, reasons, plan);
        }
        if is_new && !plan.wake.iter().any(|wake| wake.token == ITS_WAKE) {
            // The policy before this one may have asked for a wake-up.
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

    /// Leaves programs unbound in solo probes: afterwards they would all begin on the first CPUs.
    fn amend(&mut self, directives: usize, reasons: usize, plan: &mut Plan) {
        for (_, directive) in &mut plan.programs[directives..] {
            match directive {
                Directive::Run(settings) if self.probes => settings.cpus = None,
                _ => {}
            }
        }
        for reason in &mut plan.reasons[reasons..] {
            match (reason.why, reason.program) {
                (Why::Lent { .. }, Some(id)) => _ = self.lent.insert(id),
                (Why::NeverFrozen, Some(id)) if self.idle.contains(&id.slot) => {
                    reason.why = Why::HardlyRuns;
                }
                _ => {}
            }
        }
    }
}

/// Whether the policy in force is told: it measures nothing, and knows only its own wake-up.
fn concerns(cause: &Cause) -> bool {
    match *cause {
        Cause::Woke(token) => token == ITS_WAKE,
        Cause::Sampled(_) => false,
        _ => true,
    }
}
