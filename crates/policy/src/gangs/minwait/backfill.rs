//! Backfill: a gang's free CPUs go to a program that does not fit together with the gang.
//!
//! *Problem.* Gangs seldom fill the machine: of programs of 18 threads, one at a time runs on 24
//! CPUs, and six CPUs are idle. Running together, the programs would use them.
//!
//! *Idea.* Of the programs that do not fit, the one that has waited longest runs on these CPUs,
//! with all its threads on the few CPUs. If its threads compute, no CPU is idle. If they spin for
//! each other, they waste only CPU time that no program would have used. The gang is not disturbed:
//! no other program runs on its CPUs.
//!
//! *Algorithm.* Once the gang is made, every program that is left needs more CPUs than are left.
//! The one that has waited longest (of equal ones, the first in the order of the workload) is bound
//! to them until the quantum ends. This is no turn: its waiting time goes on, as if it were frozen.
//! Only whole cores are backfilled: a thread slows a gang's thread on the same core.
//!
//! Ours; section 4.2.4 leaves these CPUs idle.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{CpuSet, Level, Nanos, Output, Plan, ProgramId, Settings, World};

use super::MinwaitReason;
use crate::common::unit::Unit;

#[derive(Debug, Default)]
pub(super) struct Backfill {
    /// The programs of a unit, and the CPUs that they share.
    given: Option<(Vec<ProgramId>, CpuSet)>,
    /// Since when units have waited for a turn, although they ran meanwhile.
    waits: BTreeMap<ProgramId, Nanos>,
}

impl Backfill {
    pub(super) fn has(&self, id: ProgramId) -> bool {
        self.given.as_ref().is_some_and(|(members, _)| members.contains(&id))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.given.is_none()
    }

    /// How long a unit has been waiting for a turn.
    pub(super) fn waiting(&self, unit: &Unit, world: &World<'_>) -> Nanos {
        let since = unit.ids().filter_map(|id| self.waits.get(&id)).min();
        unit.waiting(world).max(since.map_or(Nanos::ZERO, |since| world.now.since(*since)))
    }

    pub(super) fn end(&mut self) {
        self.given = None;
    }

    /// Updates the waits: these are all units, and the programs in `assigned` have their turn.
    pub(super) fn update(&mut self, assigned: &BTreeSet<ProgramId>, units: &[Unit]) {
        let present: BTreeSet<ProgramId> = units.iter().flat_map(Unit::ids).collect();
        let remains = |id: &ProgramId| present.contains(id) && !assigned.contains(id);
        self.waits.retain(|id, _| remains(id));
        self.given = self.given.take().filter(|(members, _)| members.iter().all(remains));
    }

    /// Gives the free CPUs to one of the units, none of which fits there: to the one that has them
    /// already, else to the one that has waited longest.
    pub(super) fn assign(
        &mut self,
        units: &[&Unit],
        free: &CpuSet,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        let cpus = whole_cores(free, world);
        let before = self.given.take();
        let has = |unit: &&&Unit| {
            before.as_ref().is_some_and(|(members, _)| members.iter().copied().eq(unit.ids()))
        };
        let longest = || units.iter().rev().max_by_key(|unit| self.waiting(unit, world));
        let Some(unit) = units.iter().find(has).or_else(longest).filter(|_| !cpus.is_empty())
        else {
            return;
        };
        let given = (unit.ids().collect(), cpus);
        if before.as_ref() != Some(&given) {
            let waits = world.now - self.waiting(unit, world);
            for id in unit.ids() {
                self.waits.entry(id).or_insert(waits);
                plan.run(id, Settings::on(cpus));
                plan.because(Some(id), MinwaitReason::SharesBackfill { cpus: cpus.len() as u16 });
                plan.output(id, Output::Backfilled);
            }
        }
        self.given = Some(given);
    }
}

/// The CPUs of the set on cores that no program uses.
fn whole_cores(free: &CpuSet, world: &World<'_>) -> CpuSet {
    let cpus = || world.topology.cpus().iter().filter(|cpu| world.cpus.contains(cpu.id));
    let taken: BTreeSet<u16> =
        cpus().filter(|cpu| !free.contains(cpu.id)).map(|cpu| cpu.group(Level::Core)).collect();
    cpus().filter(|cpu| !taken.contains(&cpu.group(Level::Core))).map(|cpu| cpu.id).collect()
}
