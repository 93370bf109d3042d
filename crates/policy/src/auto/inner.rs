//! The policy in force: one of the others, shown a world of its own.
//!
//! `auto` copies none of the policies that it chooses from. It hands on to one of them what happens, and takes over its
//! plan. What that one sees differs from the world in what `auto` knows better: who has been let in, who hardly runs (it may
//! not be frozen), and how many CPUs a program really uses.
//!
//! A policy that decides on threads has programs measured as it likes. What `auto` itself has measured stays so, and what else is
//! measured ends with that policy. It hears of all who have asked for threads before it came.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{
    Cause, Directive, Measure, Nanos, Observe, Plan, Policy, Program, ProgramId, Token, Why, World,
};

use super::MEASURES;

/// The one wake-up that each of the policies here has.
const ITS_WAKE: Token = Token(0);

/// What is known of a program better than by what it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// It hardly uses CPUs.
    pub(super) idles: bool,
    /// How many CPUs it uses, where these are fewer than it asks for.
    pub(super) threads: Option<u16>,
    /// It has a moment alone, as long as everybody's, on the CPUs on which it finds itself.
    pub(super) on_trial: bool,
}

/// A policy, and whether it has been told who is there.
pub(super) struct Inner {
    policy: Box<dyn Policy + Send>,
    known: BTreeMap<ProgramId, Known>,
    is_new: bool,
    /// It wants to know of samples.
    learns: bool,
    /// Who has asked for threads.
    asked: BTreeSet<ProgramId>,
    /// What is measured for it only.
    measured: BTreeSet<(ProgramId, Measure)>,
    /// Who was lent CPUs since that was last asked.
    borrowed: BTreeSet<ProgramId>,
}

impl Inner {
    pub(super) fn new(policy: impl Policy + Send + 'static) -> Inner {
        Inner {
            policy: Box::new(policy),
            known: BTreeMap::new(),
            is_new: true,
            learns: false,
            asked: BTreeSet::new(),
            measured: BTreeSet::new(),
            borrowed: BTreeSet::new(),
        }
    }

    /// From now on another policy is in force, which knows this of programs. If it `learns`, it hears of what was measured.
    pub(super) fn change(
        &mut self,
        policy: Box<dyn Policy + Send>,
        known: BTreeMap<ProgramId, Known>,
        learns: bool,
    ) {
        (self.policy, self.known, self.learns) = (policy, known, learns);
        self.is_new = true;
    }

    /// What it was told of programs.
    pub(super) fn known(&self) -> &BTreeMap<ProgramId, Known> {
        &self.known
    }

    /// Who was lent CPUs since this was last asked.
    pub(super) fn take_borrowed(&mut self) -> BTreeSet<ProgramId> {
        std::mem::take(&mut self.borrowed)
    }

    /// Has it decide about those who are in; `new` are so since now.
    pub(super) fn decide(
        &mut self,
        causes: &[Cause],
        new: &[ProgramId],
        is_in: impl Fn(ProgramId) -> bool,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        self.asked.extend(causes.iter().filter_map(asks));
        self.asked.retain(|id| world.program(*id).is_some());
        let programs: Vec<Program> =
            world.programs.iter().filter(|p| is_in(p.id)).map(|p| self.shown(p)).collect();
        let is_new = std::mem::take(&mut self.is_new);
        let causes: Vec<Cause> = match is_new {
            true => {
                let asked = programs.iter().filter(|p| self.asked.contains(&p.id));
                let again = asked.map(|p| {
                    let (program, threads) = (p.id, p.requested);
                    Cause::Requested { program, threads, blocked: false }
                });
                programs.iter().map(|p| Cause::Arrived(p.id)).chain(again).collect()
            }
            false => {
                let learns = self.learns;
                let its = causes.iter().filter(|cause| concerns(cause, learns, &is_in)).copied();
                its.chain(new.iter().map(|id| Cause::Arrived(*id))).collect()
            }
        };
        if !causes.is_empty() {
            let shown = World { programs: &programs, ..*world };
            let (directives, reasons) = (plan.programs.len(), plan.reasons.len());
            let observed = plan.observe.len();
            self.policy.decide(&causes, &shown, plan);
            self.amend(directives, reasons, plan);
            self.measure(observed, is_new, world, plan);
        }
        if is_new && !plan.wake.iter().any(|wake| wake.token == ITS_WAKE) {
            // What the one before it had asked for.
            plan.wake_at(Nanos::NEVER, ITS_WAKE);
        }
    }

    /// Keeps what `auto` has measured as it is, and ends what was measured for the policy before this one.
    fn measure(&mut self, from: usize, is_new: bool, world: &World<'_>, plan: &mut Plan) {
        let before = if is_new { std::mem::take(&mut self.measured) } else { BTreeSet::new() };
        let wanted: Vec<Observe> = plan.observe.drain(from..).collect();
        let ended = before.into_iter().filter(|(id, _)| world.program(*id).is_some());
        plan.observe.extend(ended.map(|(id, measure)| Observe {
            program: Some(id),
            measure,
            period: Nanos::ZERO,
        }));
        let wanted = wanted.into_iter().filter(|one| !MEASURES.contains(&one.measure));
        for observe in wanted {
            if let Some(id) = observe.program {
                match observe.period {
                    Nanos::ZERO => self.measured.remove(&(id, observe.measure)),
                    _ => self.measured.insert((id, observe.measure)),
                };
            }
            plan.observe.push(observe);
        }
    }

    fn shown(&self, program: &Program) -> Program {
        let known = self.known.get(&program.id).copied().unwrap_or_default();
        Program {
            freezable: program.freezable && !known.idles,
            asked: known.threads.map_or(program.asked, |threads| threads.min(program.asked)),
            weight: if known.on_trial { 1.0 } else { program.weight },
            ..program.clone()
        }
    }

    /// A program that uses fewer CPUs than it asks for is bound to none where it has all that it uses: it may want more of them
    /// later, and libraries count the CPUs of their mask when they are loaded. A trial binds nobody: all would begin on the first
    /// CPUs afterwards.
    fn amend(&mut self, directives: usize, reasons: usize, plan: &mut Plan) {
        for (id, directive) in &mut plan.programs[directives..] {
            if let Directive::Run(settings) = directive {
                let has = settings.cpus.map_or(usize::MAX, |cpus| cpus.len());
                let has_all = |threads| has >= usize::from(threads);
                let known = self.known.get(id).copied().unwrap_or_default();
                if known.on_trial || known.threads.is_some_and(has_all) {
                    settings.cpus = None;
                }
            }
        }
        for reason in &mut plan.reasons[reasons..] {
            if matches!(reason.why, Why::Lent { .. }) {
                self.borrowed.extend(reason.program);
            }
            let idles = |id| self.known.get(&id).is_some_and(|known| known.idles);
            if reason.why == Why::NeverFrozen && reason.program.is_some_and(idles) {
                reason.why = Why::HardlyRuns;
            }
        }
    }
}

/// Whether the inner policy is told: what is about programs that are not in, and what `auto` has asked for, it is not.
fn concerns(cause: &Cause, learns: bool, is_in: impl Fn(ProgramId) -> bool) -> bool {
    match *cause {
        Cause::Woke(token) => token == ITS_WAKE,
        Cause::Sampled(id) => learns && is_in(id),
        // Whoever is in is told of apart.
        Cause::Arrived(_) => false,
        Cause::ThreadsChanged(id) | Cause::Continued(id) | Cause::Grouped(id) => is_in(id),
        Cause::Requested { program, .. }
        | Cause::Settled { program, .. }
        | Cause::Deviated { program, .. } => is_in(program),
        Cause::Exited(..) | Cause::MachineChanged | Cause::Commanded(_) => true,
    }
}

/// Who asks for threads.
fn asks(cause: &Cause) -> Option<ProgramId> {
    match cause {
        Cause::Requested { program, .. } => Some(*program),
        _ => None,
    }
}
