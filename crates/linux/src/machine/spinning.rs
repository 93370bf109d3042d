//! Looks for spin loops: when, and of which program.
//!
//! One program is looked at at a time, while it is allowed to run. A look ends at its time, however
//! much of that the program had a CPU.

use std::collections::BTreeMap;

use cosched_core::{CpuSet, Nanos, ProgramId, SpinLoop, Spinning};

use super::program::{ExecutionState, Live};
use crate::kernel::procfs::Proc;
use crate::observe::spinning::{SpinLook, SpinUse};

/// From a program's start to its first look.
const FIRST: Nanos = Nanos::from_millis(200);
/// The shortest time between two looks at a program, and the same as a multiple of a look. A sample
/// is an interrupt of some 13 us, so samples cost a program 0.04 to 0.13 % of its time.
const PAUSE: Nanos = Nanos::from_secs(2);
const PAUSES: u64 = 10;
/// The length of a look where each thread has a CPU. Threads that share CPUs need more time for as
/// many samples.
const LENGTH: Nanos = Nanos::from_millis(60);
/// From one look to the next one at any program, also where there was nothing to sample: a look
/// takes cosched up to 1 ms.
const GAP: Nanos = Nanos::from_secs(1);
/// The longest look.
const LONGEST: Nanos = Nanos::from_millis(600);

/// What has been seen of spin loops, and when to look again.
#[derive(Debug)]
pub(super) struct SpinWatch {
    is_off: bool,
    known: Vec<SpinLoop>,
    /// By slot.
    seen: Vec<SpinUse>,
    /// When to look at which program.
    due: BTreeMap<ProgramId, Nanos>,
    /// No look begins before.
    rests_until: Nanos,
    open: Option<OpenLook>,
}

/// The look that goes on.
#[derive(Debug)]
struct OpenLook {
    at: ProgramId,
    look: SpinLook,
    until: Nanos,
}

impl SpinWatch {
    /// Without known spin loops, be it none, there are no looks.
    pub(super) fn new(slots: usize, known: Option<&Vec<SpinLoop>>) -> SpinWatch {
        let seen = (0..slots).map(|_| SpinUse::default()).collect();
        let (is_off, known) = (known.is_none(), known.cloned().unwrap_or_default());
        let (due, rests_until) = (BTreeMap::new(), Nanos::ZERO);
        SpinWatch { is_off, known, seen, due, rests_until, open: None }
    }

    pub(super) fn expect(&mut self, id: ProgramId, now: Nanos) {
        if !self.is_off {
            self.due.insert(id, now + FIRST);
        }
    }

    pub(super) fn forget(&mut self, id: ProgramId) {
        self.due.remove(&id);
        self.open.take_if(|open| open.at == id);
    }

    /// How much of each program's CPU time went to spin loops, by slot; `None`: there was no sample
    /// of it.
    pub(super) fn so_far(&self) -> Vec<Option<Spinning>> {
        self.seen.iter().map(SpinUse::so_far).collect()
    }

    /// When to look next.
    pub(super) fn next_look(&self, programs: &BTreeMap<ProgramId, Live>) -> Nanos {
        match &self.open {
            Some(open) => open.until,
            None => self.next(programs).map_or(Nanos::NEVER, |(_, due)| due.max(self.rests_until)),
        }
    }

    /// The program to look at next, of those that are allowed to run.
    fn next(&self, programs: &BTreeMap<ProgramId, Live>) -> Option<(ProgramId, Nanos)> {
        let runs = |id: &ProgramId| {
            programs.get(id).is_some_and(|live| live.state == ExecutionState::Running)
        };
        let due = self.due.iter().filter(|(id, _)| runs(id));
        due.map(|(id, due)| (*id, *due)).min_by_key(|(_, due)| *due)
    }

    /// Begins a look at one of these programs on these CPUs, or ends the one that goes on, if it
    /// is time.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        programs: &BTreeMap<ProgramId, Live>,
        cpus: &CpuSet,
        proc: &Proc,
    ) {
        if now < self.next_look(programs) {
            return;
        }
        self.rests_until = now + GAP;
        if let Some(OpenLook { at, look, .. }) = self.open.take() {
            self.seen[usize::from(at.slot)].add(look, &mut self.known, proc);
        } else if let Some((id, _)) = self.next(programs) {
            let members = programs.get(&id).map(|live| live.tree.members(proc));
            let look = SpinLook::begin(&members.unwrap_or_default(), proc);
            let length = if look.is_some() { length(cpus, proc) } else { Nanos::ZERO };
            let until = now + length;
            self.open = look.map(|look| OpenLook { at: id, look, until });
            self.due.insert(id, until + PAUSE.max(length * PAUSES));
        }
    }
}

/// The length of a look, by how many threads of the machine share its CPUs.
fn length(cpus: &CpuSet, proc: &Proc) -> Nanos {
    let ready = proc.running_threads().unwrap_or_default();
    (LENGTH * ready.div_ceil(cpus.len() as u64).max(1)).min(LONGEST)
}
