//! The programs whose processes may take turns.

use std::collections::BTreeMap;

use cosched_core::{Nanos, ProgramId};

use super::family::Family;
use crate::cgroup::Dir;

/// The programs of a run, and what is known of their processes.
#[derive(Debug)]
pub(crate) struct Within {
    pub(crate) families: BTreeMap<ProgramId, Family>,
    /// How many units there have been: each has a name of its own.
    pub(crate) made: u32,
    /// The most units that the programs had, by their slots.
    pub(crate) most: BTreeMap<u16, u32>,
    /// From when on there is something to do.
    pub(crate) next: Nanos,
}

impl Default for Within {
    fn default() -> Within {
        Within { families: BTreeMap::new(), made: 0, most: BTreeMap::new(), next: Nanos::NEVER }
    }
}

impl Within {
    /// The group of the unit that has its turn within a program, and a number that no other unit
    /// has.
    pub(crate) fn in_turn(&self, id: ProgramId) -> Option<(&Dir, u32)> {
        let unit = self.families.get(&id)?.in_turn()?;
        Some((&unit.dir, unit.number))
    }

    /// The most units that a program had at once, in all its runs.
    pub(crate) fn most_units(&self, slot: usize) -> Option<u32> {
        self.most.get(&u16::try_from(slot).ok()?).copied()
    }

    /// When to wake up for what there is to do.
    pub(crate) fn wakes_at(&self) -> Nanos {
        self.families.values().map(Family::wakes_at).min().unwrap_or(Nanos::NEVER)
    }

    /// Whether processes of any program take turns.
    pub(crate) fn has_turns(&self) -> bool {
        self.families.values().any(|family| family.units.len() > 1)
    }

    /// The program's own turn begins or ends.
    pub(crate) fn program_turns(&mut self, id: ProgramId, has_turn: bool, now: Nanos) {
        if let Some(family) = self.families.get_mut(&id) {
            family.program_turns(has_turn, now);
            self.next = self.next.min(family.due());
        }
    }

    /// Gives every unit its weight again, after another process may have changed weights.
    pub(crate) fn weigh_anew(&mut self) {
        for family in self.families.values_mut() {
            family.weigh_anew();
        }
    }
}
