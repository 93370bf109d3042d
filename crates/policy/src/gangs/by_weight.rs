//! Turns by weight: any policy that freezes programs works without freezing them.
//!
//! *Problem.* A frozen program makes others wait: its clients, its parent, a time-out inside it.
//! CPUs that the programs in turn leave idle (imports, serial parts, files) stay idle. Where turns
//! do not help, freezing only costs time. A policy that freezes therefore needs much knowledge
//! before it may begin.
//!
//! *Idea.* Every program runs, and the weights of CPU groups decide. The groups of the programs in
//! turn have the largest weight that the kernel knows. All other programs are *fillers*: their
//! groups are idle, get what the programs in turn leave, and are preempted at once when a thread in
//! turn wakes. A filler's thread that spins for a sibling takes a CPU from no program in turn. The
//! weights that users give to programs are not these: the inner policy reads them, as always.
//!
//! *Algorithm.* The inner policy decides as always. Where it freezes a program, that program
//! becomes a filler; where it lets one run, that program has its turn. Every program starts at
//! once, as a filler if it has no turn yet. (Where programs keep their turns until they end, those
//! with a time limit are [held back](crate::gangs::held).) The inner policy sees a filler as
//! frozen, or as not started before its first turn. Waiting times, queues and rounds therefore
//! count turns. No program is bound to CPUs, because the kernel spreads the threads of programs in
//! turn over all CPUs by the weight of their groups. There is one exception: several programs are
//! in turn together, there are fillers, and the CPUs have several last-level caches. Then each
//! program in turn is bound to the CPUs that the inner policy gave it, until its turn is over.
//! Otherwise these programs would share caches and disturb each other. A measurement that the inner
//! policy requests while all programs are frozen is made while they run.
//!
//! *Source.* Ours. Relatives: paired gang scheduling (Wiseman and Feitelson, 2003) and flexible
//! coscheduling (Frachtenberg and others, 2003) also run a second program with the gang;
//! backfilling gives idle processors to jobs further behind.

use std::collections::BTreeMap;

use cosched_core::{
    AtExpiry, Cause, CpuSet, Directive, Level, Nanos, Plan, Policy, Program, ProgramId,
    ProgramState, Settings, Topology, Turn, World,
};

use crate::common::reasons::SharedReason;
use crate::gangs::held::HeldPrograms;

/// The limit on waiting: long enough that no number of programs shortens their turns.
const LONGEST_WAIT: Nanos = Nanos::from_secs(365 * 86_400);

/// Whether programs in turn together are bound to CPUs of their own.
pub fn binds_by_weight(topology: &Topology, cpus: &CpuSet) -> bool {
    topology.spanned(cpus, Level::Llc) > 1
}

pub(crate) struct ByWeightPolicy {
    policy: Box<dyn Policy + Send>,
    /// The programs that are not started as fillers, if the policy holds any.
    held: Option<HeldPrograms>,
    parts: BTreeMap<ProgramId, TurnPart>,
    /// The programs as the policy sees them; kept to reuse its memory.
    shown: Vec<Program>,
}

/// A program's present part.
#[derive(Clone, Copy, Debug)]
struct TurnPart {
    role: TurnRole,
    /// The start of this part.
    since: Nanos,
    /// How long it was a filler before that.
    filled: Nanos,
    /// The CPUs that the policy gave it last.
    cpus: Option<CpuSet>,
    /// The thread limit that the policy set last.
    thread_limit: Option<u16>,
}

/// What a program is at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnRole {
    /// It has its turn. It may be bound to the CPUs that the policy gave it.
    InTurn { bound: bool },
    /// It gets what others leave. It may have had a turn before.
    Filler { began: bool },
}

impl TurnRole {
    fn turn(self) -> Turn {
        match self {
            TurnRole::InTurn { .. } => Turn::InTurn,
            TurnRole::Filler { .. } => Turn::Filler,
        }
    }

    /// Whether it has had a turn, or has one.
    fn began(self) -> bool {
        match self {
            TurnRole::InTurn { .. } => true,
            TurnRole::Filler { began } => began,
        }
    }
}

impl TurnPart {
    /// How long it has been a filler.
    fn filled(&self, now: Nanos) -> Nanos {
        match self.role {
            TurnRole::Filler { .. } => self.filled + now.since(self.since),
            TurnRole::InTurn { .. } => self.filled,
        }
    }
}

impl ByWeightPolicy {
    pub(crate) fn new(policy: Box<dyn Policy + Send>) -> ByWeightPolicy {
        ByWeightPolicy { policy, held: None, parts: BTreeMap::new(), shown: Vec::new() }
    }

    /// For a policy under which programs keep their turns until they end.
    pub(crate) fn holding(policy: Box<dyn Policy + Send>, held: HeldPrograms) -> ByWeightPolicy {
        ByWeightPolicy { held: Some(held), ..ByWeightPolicy::new(policy) }
    }

    /// A program as the inner policy sees it: a filler is frozen.
    fn shown(&self, program: &Program, now: Nanos) -> Program {
        let shown = Program { freezable: true, ..program.clone() };
        let Some(part) = self.parts.get(&program.id) else { return shown };
        let filled = part.filled(now);
        let waits = part.role.turn() == Turn::Filler && program.state.may_run();
        Program {
            state: match waits {
                true if part.role.began() => ProgramState::Frozen,
                true => ProgramState::New,
                false => program.state,
            },
            cpus: part.cpus,
            ran: program.ran.since(filled),
            waited: program.waited + part.filled,
            waiting_since: if waits { Some(part.since) } else { program.waiting_since },
            ..shown
        }
    }

    /// Whether several programs are in turn together, and others are not.
    fn several_compete(&self) -> bool {
        let in_turn = self.parts.values().filter(|part| part.role.turn() == Turn::InTurn).count();
        in_turn > 1 && in_turn < self.parts.len()
    }

    /// Keeps the CPUs of the inner policy for programs that are to be bound, and releases bound
    /// programs that no longer are.
    fn bind(&mut self, world: &World<'_>, plan: &mut Plan) {
        let binds = self.several_compete() && binds_by_weight(world.topology, world.cpus);
        for (id, directive) in &mut plan.programs {
            if let (Directive::Run(settings), Some(part)) = (directive, self.parts.get_mut(id)) {
                settings.cpus = settings.cpus.filter(|_| binds);
                if let TurnRole::InTurn { bound } = &mut part.role {
                    *bound = settings.cpus.is_some();
                }
            }
        }
        let is_bound = |part: &TurnPart| part.role == TurnRole::InTurn { bound: true };
        for (id, part) in self.parts.iter_mut().filter(|(_, part)| is_bound(part) && !binds) {
            part.role = TurnRole::InTurn { bound: false };
            let (turn, thread_limit) = (Some(Turn::InTurn), part.thread_limit);
            plan.run(*id, Settings { turn, thread_limit, ..Settings::default() });
            plan.because(Some(*id), SharedReason::Turn);
        }
    }

    /// The programs that have their turn or a time limit and run once this plan is in effect.
    fn busy(&self, world: &World<'_>, plan: &Plan) -> BTreeMap<ProgramId, Turn> {
        let turn = |program: &Program| {
            let part = self.parts.get(&program.id);
            let turn = match plan.directive(program.id) {
                Some(Directive::Run(_)) => Turn::InTurn,
                Some(_) => part.map(|_| Turn::Filler)?,
                None => part?.role.turn(),
            };
            let is_busy = turn == Turn::InTurn || program.time_limit.is_some();
            is_busy.then_some((program.id, turn))
        };
        world.programs.iter().filter_map(turn).collect()
    }

    /// Holds programs back, and adds those that start now as fillers to the plan.
    fn hold(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let Some(mut held) = self.held.take() else { return };
        for id in held.update(causes, self.busy(world, plan), world, plan) {
            if plan.directive(id).is_none() {
                plan.freeze(id);
                plan.because(Some(id), SharedReason::Filler);
            }
        }
        self.held = Some(held);
    }

    /// Makes a filler of a program that the inner policy freezes, and gives a turn to one that it
    /// lets run.
    fn by_weight(&mut self, id: ProgramId, directive: Directive, now: Nanos) -> Directive {
        let before = self.parts.get(&id).copied();
        let (role, cpus, settings) = match directive {
            Directive::Release => {
                self.parts.remove(&id);
                return Directive::Release;
            }
            // Whether it is bound follows.
            Directive::Run(settings) => {
                (TurnRole::InTurn { bound: false }, settings.cpus, settings)
            }
            Directive::Freeze => {
                let thread_limit = before.and_then(|part| part.thread_limit);
                let cpus = before.and_then(|part| part.cpus);
                let began = before.is_some_and(|part| part.role.began());
                (TurnRole::Filler { began }, cpus, Settings { thread_limit, ..Settings::default() })
            }
        };
        let turn = role.turn();
        let stays = before.filter(|part| part.role.turn() == turn);
        let part = TurnPart {
            role,
            since: stays.map_or(now, |part| part.since),
            filled: match stays {
                Some(part) => part.filled,
                None => before.map_or(Nanos::ZERO, |part| part.filled(now)),
            },
            cpus,
            thread_limit: settings.thread_limit,
        };
        self.parts.insert(id, part);
        Directive::Run(Settings { turn: Some(turn), ..settings })
    }
}

impl Policy for ByWeightPolicy {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        self.parts.retain(|id, _| world.program(*id).is_some());
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        shown.extend(world.programs.iter().map(|program| self.shown(program, world.now)));
        let own = plan.reasons.len();
        // No program is frozen, so the limit on frozen time shortens no turn.
        let shown_world = World { programs: &shown, max_frozen: LONGEST_WAIT, ..*world };
        self.policy.decide(causes, &shown_world, plan);
        self.shown = shown;
        self.hold(causes, world, plan);
        for (id, directive) in &mut plan.programs {
            if *directive == Directive::Freeze {
                if self.held.as_ref().is_some_and(|held| held.holds(*id)) {
                    continue;
                }
                let of_it =
                    plan.reasons[own..].iter_mut().filter(|reason| reason.program == Some(*id));
                of_it.for_each(|reason| reason.why = SharedReason::Filler.into());
            }
            *directive = self.by_weight(*id, *directive, world.now);
        }
        self.bind(world, plan);
        for wake in &mut plan.wake {
            if wake.first == AtExpiry::FreezeAndRead {
                wake.first = AtExpiry::Read;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Why;

    use super::*;
    use crate::common::testkit::{Lab, program};
    use crate::gangs::fcfs::Fcfs;
    use crate::gangs::minwait::Minwait;
    use crate::kind::Options;

    fn turns(lab: &Lab<ByWeightPolicy>) -> Vec<(u16, Turn)> {
        let turn = |(id, directive): &(ProgramId, Directive)| match directive {
            Directive::Run(Settings { turn: Some(turn), cpus: None, .. }) => (id.slot, *turn),
            other => panic!("{other:?}"),
        };
        let mut turns: Vec<(u16, Turn)> = lab.plan.programs.iter().map(turn).collect();
        turns.sort_by_key(|(slot, _)| *slot);
        turns
    }

    #[test]
    fn every_program_starts_at_once_and_turns_go_round() {
        use Turn::{Filler, InTurn};
        let policy = ByWeightPolicy::new(Box::new(Minwait::new(&Options::default())));
        let programs = (0..3).map(|slot| program(slot, 2)).collect();
        let mut lab = Lab::new(policy, 2, programs);
        assert_eq!(turns(&lab), [(0, InTurn), (1, Filler), (2, Filler)]);
        let filler = Why::from(SharedReason::Filler);
        let fillers = lab.plan.reasons.iter().filter(|reason| reason.why == filler);
        assert_eq!(
            fillers.filter_map(|reason| Some(reason.program?.slot)).collect::<Vec<_>>(),
            [1, 2]
        );
        lab.wake();
        assert_eq!(turns(&lab), [(0, Filler), (1, InTurn)]);
        lab.wake();
        assert_eq!(turns(&lab), [(1, Filler), (2, InTurn)]);
        lab.exit(2);
        assert_eq!(turns(&lab), [(0, InTurn)], "its wait counts from its last turn");
    }

    #[test]
    fn the_limit_on_frozen_time_shortens_no_turn() {
        let options = Options { quantum: Nanos::from_secs(5), ..Options::default() };
        let policy = ByWeightPolicy::new(Box::new(Minwait::new(&options)));
        let mut lab = Lab::new(policy, 2, (0..40).map(|slot| program(slot, 2)).collect());
        assert_eq!(lab.next_wake(), Some(options.quantum));
        lab.wake();
        assert_eq!(lab.next_wake(), Some(options.quantum * 2));
    }

    #[test]
    fn every_program_is_a_filler_until_its_turn() {
        use Turn::{Filler, InTurn};
        let policy = ByWeightPolicy::new(Box::new(Fcfs::default()));
        let mut lab = Lab::new(policy, 2, vec![program(0, 2), program(1, 2), program(2, 2)]);
        assert_eq!(turns(&lab), [(0, InTurn), (1, Filler), (2, Filler)]);
        lab.exit(0);
        assert_eq!(turns(&lab), [(1, InTurn)]);
        lab.exit(1);
        assert_eq!(turns(&lab), [(2, InTurn)]);
    }

    /// Programs that share a turn are bound to CPUs where the machine has several caches.
    #[test]
    fn co_runners_in_turn_are_bound_on_several_caches() {
        let cpus = |lab: &Lab<ByWeightPolicy>| -> Vec<(u16, Turn, Option<CpuSet>)> {
            let settings = |(id, directive): &(ProgramId, Directive)| match directive {
                Directive::Run(Settings { turn: Some(turn), cpus, .. }) => (id.slot, *turn, *cpus),
                other => panic!("{other:?}"),
            };
            let mut found: Vec<_> = lab.plan.programs.iter().map(settings).collect();
            found.sort_by_key(|(slot, ..)| *slot);
            found
        };
        let (first, second) = (CpuSet::from_iter([0, 1]), CpuSet::from_iter([2, 3]));
        let policy = ByWeightPolicy::new(Box::new(Minwait::new(&Options::default())));
        let mut lab = Lab::new(policy, 4, Vec::new());
        lab.scene.topology = Topology::regular(1, 2, 1, 2, 1);
        for (slot, threads) in [(0, 2), (1, 2), (2, 3)] {
            lab.arrive(program(slot, threads));
        }
        lab.wake();
        let alone = [(0, Turn::Filler, None), (1, Turn::Filler, None), (2, Turn::InTurn, None)];
        assert_eq!(cpus(&lab), alone, "a program in turn alone may run everywhere");
        lab.wake();
        let together = [
            (0, Turn::InTurn, Some(first)),
            (1, Turn::InTurn, Some(second)),
            (2, Turn::Filler, None),
        ];
        assert_eq!(cpus(&lab), together);
        lab.exit(2);
        let free = [(0, Turn::InTurn, None), (1, Turn::InTurn, None)];
        assert_eq!(cpus(&lab), free, "no program is a filler any more");
    }

    #[test]
    fn a_program_that_may_not_be_frozen_takes_turns_too() {
        let policy = ByWeightPolicy::new(Box::new(Minwait::new(&Options::default())));
        let fixed = |slot| Program { freezable: false, ..program(slot, 2) };
        let lab = Lab::new(policy, 2, vec![fixed(0), fixed(1)]);
        assert_eq!(turns(&lab), [(0, Turn::InTurn), (1, Turn::Filler)]);
    }
}
