//! The unit of scheduling: a program, or the programs of a group.
//!
//! Programs of one group (connected by a pipe, for example) stall each other when only one of them
//! runs. Policies therefore do not schedule programs but *units*: a program alone, or all programs
//! of a group. A unit's threads are the sum of its programs' threads, at most all CPUs. Where the
//! sum is larger, its programs share the CPUs. Its cache misses are the mean over its threads, and
//! its traffic with memory is the sum. Its waiting time is that of its program that waited longest.
//!
//! Not scheduled are programs that another process stopped and programs after the end of their
//! command. They are left alone, and a stopped program joins the back of the queue when it goes on.
//! Programs that may not be frozen, and groups with one of these, run at once and always, with
//! their original settings. They are in no gang, and gangs are made as if they were not there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{
    Aspect, Cause, CpuSet, GroupId, Nanos, Plan, Profile, Program, ProgramId, ProgramState,
    Refusal, Settings, Why, World,
};

use crate::common::reasons::SharedReason;
use crate::gangs::params::Params;
use crate::gangs::placement::Placement;
use crate::gangs::placement::one_kind::place_on_one_kind;

/// One program of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: ProgramId,
    /// How many CPUs it requests, from 1 to all.
    pub(crate) threads: usize,
    /// Its thread limit; `None`: the policy sets no thread limits, or the program cannot change its
    /// threads.
    pub(crate) thread_limit: Option<u16>,
    /// Not bound to its CPUs yet: it has its thread limit and its room, but still has to see all
    /// CPUs.
    pub(crate) unbound: bool,
}

/// Programs that run at the same time or not at all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    /// Its programs, in the order of the workload.
    pub(crate) members: Vec<Member>,
    /// How many CPUs it requests, from 1 to all.
    pub(crate) threads: usize,
    /// Last-level cache misses per 1000 instructions; `None` if unknown for any of its programs.
    pub(crate) misses: Option<f64>,
    /// Traffic with memory alone, GB/s, of all its programs together; `None` if unknown for any of
    /// them.
    pub(crate) traffic: Option<f64>,
    /// The largest of its programs' weights, above zero.
    pub(crate) weight: f64,
}

impl Unit {
    fn new(programs: &[&Program], cpus: usize) -> Unit {
        let threads = |program: &Program| usize::from(program.thread_count).clamp(1, cpus.max(1));
        let members: Vec<Member> = programs
            .iter()
            .map(|p| Member { id: p.id, threads: threads(p), thread_limit: None, unbound: false })
            .collect();
        let sum: usize = members.iter().map(|member| member.threads).sum();
        let misses = programs
            .iter()
            .map(|p| p.profile.misses_per_kilo_instruction.map(|m| m * threads(p) as f64))
            .sum::<Option<f64>>();
        let traffic = programs.iter().map(|p| p.profile.memory_gigabytes_per_second).sum();
        let weights = programs.iter().map(|p| p.weight);
        Unit {
            members,
            threads: sum.min(cpus.max(1)),
            misses: misses.map(|m| m / sum as f64),
            traffic,
            weight: weights.fold(f64::MIN_POSITIVE, f64::max),
        }
    }

    pub(crate) fn waiting(&self, world: &World<'_>) -> Nanos {
        let programs = self.ids().filter_map(|id| world.program(id));
        programs.map(|program| program.waiting(world.now)).max().unwrap_or_default()
    }

    /// The CPUs that its programs have, or had last.
    pub(crate) fn last_cpus(&self, world: &World<'_>) -> CpuSet {
        let last = self.ids().filter_map(|id| world.program(id)?.cpus);
        last.fold(CpuSet::EMPTY, |all, cpus| all.union(&cpus))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.members.iter().map(|member| member.id)
    }
}

/// The units of the last decision. Quanta end more often than programs arrive and end, and the
/// units stay while the programs do.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// The programs from which they were made.
    programs: Vec<UnitProperties>,
    cpus: usize,
    /// The units, in the order of the workload.
    pub(crate) units: Vec<Unit>,
    /// The programs that may not be frozen. Each was told once to run with its original settings.
    pub(crate) unfreezable: Vec<ProgramId>,
}

/// The properties that units depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct UnitProperties {
    id: ProgramId,
    schedulable: bool,
    freezable: bool,
    thread_count: u16,
    group: Option<GroupId>,
    weight: f64,
    profile: Profile,
}

impl UnitProperties {
    fn of(program: &Program) -> UnitProperties {
        let Program { id, freezable, thread_count, group, weight, profile, .. } = *program;
        let schedulable = schedulable(program);
        UnitProperties { id, schedulable, freezable, thread_count, group, weight, profile }
    }
}

impl Sorted {
    /// Makes the units again if a program arrived, ended or changed; returns whether. Programs that
    /// may not be frozen run from now on.
    pub(crate) fn update(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) -> bool {
        if causes.iter().all(leaves_units) {
            return false;
        }
        let known = || world.programs.iter().map(UnitProperties::of);
        if self.cpus == world.cpus.len() && known().eq(self.programs.iter().copied()) {
            return false;
        }
        self.programs.clear();
        self.programs.extend(known());
        self.cpus = world.cpus.len();
        let told = std::mem::take(&mut self.unfreezable);
        (self.units, self.unfreezable) = sort_out(world);
        for id in self.unfreezable.iter().filter(|id| !told.contains(id)) {
            plan.run(*id, Settings::default());
            plan.because(Some(*id), SharedReason::NeverFrozen);
        }
        true
    }
}

/// The units to schedule, in the order of the workload, and the programs that may not be frozen.
fn sort_out(world: &World<'_>) -> (Vec<Unit>, Vec<ProgramId>) {
    let mut together: Vec<Vec<&Program>> = Vec::new();
    let mut groups: BTreeMap<GroupId, usize> = BTreeMap::new();
    for program in world.programs.iter().filter(|p| schedulable(p)) {
        let known = program.group.and_then(|group| groups.get(&group).copied());
        match known {
            Some(unit) => together[unit].push(program),
            None => {
                groups.extend(program.group.map(|group| (group, together.len())));
                together.push(vec![program]);
            }
        }
    }
    let mut units = Vec::new();
    let mut unfreezable = Vec::new();
    for programs in together {
        if programs.iter().all(|p| p.freezable) {
            units.push(Unit::new(&programs, world.cpus.len()));
        } else {
            unfreezable.extend(programs.iter().map(|p| p.id));
        }
    }
    (units, unfreezable)
}

/// Whether the causes are only directives in effect, or requests for threads on which no policy
/// decides. There is then nothing to decide. Most causes are of this kind, so examining all
/// programs for each would be most of the work.
pub(crate) fn only_settled(causes: &[Cause]) -> bool {
    causes.iter().all(|cause| matches!(cause, Cause::Settled { .. } | Cause::Requested { .. }))
}

/// Whether the units stay the same after this cause. The most frequent causes are of this kind:
/// quanta end, and programs that waited for as long as any may be frozen run for a while.
fn leaves_units(cause: &Cause) -> bool {
    use Refusal::{FrozenTooLong, TimedOut};
    match cause {
        Cause::Woke(_) | Cause::Settled { .. } | Cause::Sampled(_) | Cause::Requested { .. } => {
            true
        }
        Cause::Deviated { why, .. } => matches!(why, FrozenTooLong | TimedOut),
        _ => false,
    }
}

/// Programs that run although they were told to wait: a freeze failed, or ended because it had
/// lasted too long. Each is told once more.
#[derive(Debug, Default)]
pub(crate) struct Denied(BTreeSet<ProgramId>);

impl Denied {
    /// Adds the programs that run from now on.
    pub(crate) fn update(&mut self, causes: &[Cause]) {
        self.0.extend(causes.iter().filter_map(|cause| match cause {
            Cause::Deviated { program, what: Aspect::Frozen, .. } => Some(*program),
            _ => None,
        }));
    }

    /// The programs that have not been told again.
    pub(crate) fn take(&mut self) -> BTreeSet<ProgramId> {
        std::mem::take(&mut self.0)
    }
}

fn schedulable(program: &Program) -> bool {
    program.state != ProgramState::StoppedByOther
}

#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) members: Vec<ProgramId>,
    pub(crate) cpus: CpuSet,
}

/// The input of a placement: the program, its number of threads, and how they are placed.
type Question = (ProgramId, usize, Placement);

/// Places programs, and remembers the answers: a gang of the same programs on the same CPUs is
/// placed as last time.
#[derive(Debug)]
pub(crate) struct Placer {
    placement: Placement,
    params: Params,
    /// Programs with this many misses per 1000 instructions are spread, wherever the others go.
    spreads_misses: Option<f64>,
    /// The programs that were reported as spread for their misses.
    explained: BTreeSet<ProgramId>,
    /// The CPUs of the run that the answers are for.
    cpus: CpuSet,
    /// The answer for a program and a number of threads: the CPUs that were free, those that it had
    /// had, and those that it got.
    answers: BTreeMap<Question, (CpuSet, CpuSet, Option<CpuSet>)>,
}

impl Placer {
    pub(crate) fn new(placement: Placement, params: Params) -> Placer {
        Placer {
            placement,
            params,
            spreads_misses: None,
            explained: BTreeSet::new(),
            cpus: CpuSet::EMPTY,
            answers: BTreeMap::new(),
        }
    }

    /// Spreads programs with `many_misses` per 1000 instructions. They then have more paths to
    /// memory, and programs that compute lose nothing by sharing caches with them.
    pub(crate) fn spreading_misses(self, many_misses: f64) -> Placer {
        Placer { spreads_misses: Some(many_misses), ..self }
    }

    /// The misses of a unit, if it is spread for them.
    fn spread_for(&self, unit: &Unit) -> Option<f64> {
        let many = self.spreads_misses?;
        unit.misses.filter(|misses| *misses >= many)
    }

    fn placement(&self, unit: &Unit) -> Placement {
        if self.spread_for(unit).is_some() { Placement::Spread } else { self.placement }
    }

    /// Reports a unit as spread for its misses, where that makes a difference: it has several
    /// threads, and they do not fill the machine.
    fn tell(&mut self, unit: &Unit, cpus: &CpuSet, world: &World<'_>, plan: &mut Plan) {
        let is_new = self.placement != Placement::Spread && cpus.len() > 1 && cpus != world.cpus;
        let Some(misses) = self.spread_for(unit).filter(|_| is_new) else { return };
        for id in unit.ids().filter(|id| self.explained.insert(*id)) {
            plan.because(Some(id), SharedReason::Spread { misses });
        }
    }

    /// Like [`place_on_one_kind`], for a program that had the CPUs `last`.
    fn of(
        &mut self,
        member: Member,
        world: &World<'_>,
        free: &CpuSet,
        last: &CpuSet,
        placement: Placement,
    ) -> Option<CpuSet> {
        let Member { id, threads, .. } = member;
        let World { topology, cpus, .. } = world;
        if std::mem::replace(&mut self.cpus, **cpus) != **cpus {
            self.answers.clear();
        }
        if let Some((was_free, was_last, answer)) = self.answers.get(&(id, threads, placement)) {
            // A program that already has what it would get keeps it.
            if was_free == free && (was_last == last || *answer == Some(*last)) {
                return *answer;
            }
        }
        let answer =
            place_on_one_kind(topology, cpus, free, threads, placement, Some(last), &self.params);
        self.answers.insert((id, threads, placement), (*free, *last, answer));
        answer
    }

    /// Forgets programs that are gone.
    pub(crate) fn retain(&mut self, world: &World<'_>) {
        self.answers.retain(|(id, ..), _| world.program(*id).is_some());
        self.explained.retain(|id| world.program(*id).is_some());
    }
}

/// Runs units together on free CPUs, larger ones placed first, each with the given reason.
pub(crate) fn run_together(
    mut units: Vec<(&Unit, Why)>,
    mut free: CpuSet,
    places: &mut Placer,
    world: &World<'_>,
    plan: &mut Plan,
) -> Vec<Assignment> {
    units.sort_by_key(|(unit, _)| Reverse(unit.threads));
    let mut assignments = Vec::new();
    for (unit, why) in units {
        let last = unit.last_cpus(world);
        // The topology lacks some of the CPUs: better unplaced than not run.
        let whole = Member { threads: unit.threads, ..unit.members[0] };
        let placement = places.placement(unit);
        let cpus = places.of(whole, world, &free, &last, placement).unwrap_or(*world.cpus);
        free = free.difference(&cpus);
        places.tell(unit, &cpus, world, plan);
        for (Member { id, thread_limit, unbound, .. }, cpus) in divided(unit, cpus, places, world) {
            let cpus = if unbound { *world.cpus } else { cpus };
            plan.run(id, Settings { thread_limit, ..settings(cpus, world) });
            plan.because(Some(id), why.clone());
        }
        assignments.push(Assignment { members: unit.ids().collect(), cpus });
    }
    assignments
}

/// A unit's CPUs by program: CPUs of its own for each, or all of them for each where there are not
/// enough.
pub(crate) fn divided(
    unit: &Unit,
    cpus: CpuSet,
    places: &mut Placer,
    world: &World<'_>,
) -> Vec<(Member, CpuSet)> {
    if let [only] = unit.members[..] {
        return vec![(only, cpus)];
    }
    let mut members = unit.members.clone();
    members.sort_by_key(|member| Reverse(member.threads));
    let (mut free, placement) = (cpus, places.placement(unit));
    let apart = members.iter().map(|member| {
        let last = world.program(member.id).and_then(|p| p.cpus).unwrap_or(CpuSet::EMPTY);
        let own = places.of(*member, world, &free, &last, placement)?;
        free = free.difference(&own);
        Some((*member, own))
    });
    let apart: Option<Vec<_>> = apart.collect();
    apart.unwrap_or_else(|| unit.members.iter().map(|member| (*member, cpus)).collect())
}

/// The whole machine is no restriction: the program then keeps its original settings.
pub(crate) fn settings(cpus: CpuSet, world: &World<'_>) -> Settings {
    if cpus == *world.cpus { Settings::default() } else { Settings::on(cpus) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::{Scene, program};
    use cosched_core::{Directive, Topology};

    fn packed() -> Placer {
        Placer::new(Placement::Packed, Params::DEFAULT)
    }

    fn units_of(programs: Vec<Program>, cpus: u16) -> (Vec<Unit>, Vec<ProgramId>) {
        sort_out(&Scene::new(cpus, programs).world())
    }

    /// A group adds threads, and averages misses by thread.
    #[test]
    fn a_group_adds_threads_and_averages_misses() {
        let mut programs = vec![program(0, 1), program(1, 2), program(2, 3)];
        for (p, misses) in programs.iter_mut().zip([10.0, 1.0, 2.0]) {
            p.profile.misses_per_kilo_instruction = Some(misses);
        }
        programs[0].group = Some(GroupId(7));
        programs[2].group = Some(GroupId(7));
        let (units, _) = units_of(programs.clone(), 8);
        assert_eq!(units.len(), 2);
        assert_eq!(units[0].ids().collect::<Vec<_>>(), [ProgramId::first(0), ProgramId::first(2)]);
        assert_eq!((units[0].threads, units[0].misses), (4, Some(4.0)));

        programs[2].profile.misses_per_kilo_instruction = None;
        let (units, _) = units_of(programs, 3);
        assert_eq!((units[0].threads, units[0].misses), (3, None), "capped at the CPUs");
    }

    #[test]
    fn a_group_with_one_program_that_may_not_be_frozen_runs_always() {
        let mut programs = vec![program(0, 1), program(1, 1), program(2, 1)];
        programs[0].group = Some(GroupId(1));
        programs[1].group = Some(GroupId(1));
        programs[1].freezable = false;
        let (units, unfreezable) = units_of(programs, 4);
        assert_eq!(unfreezable, [ProgramId::first(0), ProgramId::first(1)]);
        assert_eq!(units.len(), 1);
    }

    #[test]
    fn stopped_programs_are_not_scheduled() {
        let mut programs = vec![program(0, 1), program(1, 1)];
        programs[0].state = ProgramState::StoppedByOther;
        let (units, unfreezable) = units_of(programs, 4);
        assert_eq!(units.len(), 1);
        assert!(unfreezable.is_empty());
    }

    #[test]
    fn a_group_too_large_for_the_machine_shares_all_cpus() {
        let mut programs = vec![program(0, 2), program(1, 2)];
        for p in &mut programs {
            p.group = Some(GroupId(1));
        }
        let scene = Scene::new(3, programs);
        let (world, mut plan) = (scene.world(), Plan::default());
        let (units, _) = sort_out(&world);
        let gang = vec![(&units[0], SharedReason::InGang.into())];
        let assignments = run_together(gang, *world.cpus, &mut packed(), &world, &mut plan);
        assert_eq!(assignments[0].cpus, *world.cpus);
        let original = Directive::Run(Settings::default());
        assert!(plan.programs.iter().all(|(_, directive)| *directive == original));
    }

    #[test]
    fn memory_bound_programs_are_spread_where_requested() {
        let mut programs = vec![program(0, 3), program(1, 2)];
        let mut given = |misses, mut places: Placer| {
            programs[1].profile.misses_per_kilo_instruction = misses;
            let mut scene = Scene::new(8, programs.clone());
            scene.topology = Topology::regular(2, 1, 4, 1, 1);
            let (world, mut plan) = (scene.world(), Plan::default());
            let (units, _) = sort_out(&world);
            let gang = units.iter().map(|unit| (unit, SharedReason::InGang.into())).collect();
            run_together(gang, *world.cpus, &mut places, &world, &mut plan);
            let cpus = |slot| match plan.directive(ProgramId::first(slot)) {
                Some(Directive::Run(settings)) => settings.cpus,
                _ => None,
            };
            let spread = plan.reasons.iter().filter_map(|reason| match reason.why.read()? {
                SharedReason::Spread { misses } => Some((reason.program?.slot, misses)),
                _ => None,
            });
            let spread: Vec<_> = spread.collect();
            (cpus(0).unwrap().to_string(), cpus(1).unwrap().to_string(), spread)
        };
        let spreading = || packed().spreading_misses(10.0);
        let both = |one: &str, other: &str, spread| (one.to_owned(), other.to_owned(), spread);
        assert_eq!(given(Some(50.0), spreading()), both("0-2", "3-4", vec![(1, 50.0)]));
        for (misses, places) in
            [(Some(50.0), packed()), (Some(1.0), spreading()), (None, spreading())]
        {
            assert_eq!(given(misses, places), both("0-2", "4-5", vec![]), "{misses:?}");
        }
    }

    /// The topology does not have these CPUs.
    #[test]
    fn programs_on_unknown_cpus_run_unplaced() {
        let mut scene = Scene::new(2, vec![program(0, 2), program(1, 2)]);
        scene.cpus = CpuSet::first(4);
        let (world, mut plan) = (scene.world(), Plan::default());
        let (units, _) = sort_out(&world);
        let gang = units.iter().map(|unit| (unit, SharedReason::InGang.into())).collect();
        run_together(gang, *world.cpus, &mut packed(), &world, &mut plan);
        let second = plan.directive(ProgramId::first(1));
        assert_eq!(second, Some(&Directive::Run(Settings::default())));
    }
}
