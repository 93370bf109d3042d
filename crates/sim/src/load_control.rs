//! Load control: threads that wait spin, and sleep only where the machine has surplus threads.
//!
//! *Source.* Johnson, Stoica, Ailamaki and Mowry, "Decoupling contention management from
//! scheduling" (ASPLOS 2010), as the paper on faithful scheduling has it (sections I and VI), with
//! its update interval of 7 ms. Which threads wait, and where, is not said there: here it holds at
//! barriers, locks and queues.
//!
//! *Idea.* At each look every program with load control gets its [`sleep_slots`]. A thread that
//! waits claims a free slot and sleeps, or spins until there is one. What it waits for wakes it, or
//! a look at which the load has fallen. A lock goes to a thread that spins for it. Only where none
//! does, a sleeper is woken. A look costs nothing here.

use cosched_core::{Nanos, sleep_slots};

use crate::thread::{Doing, ThreadState, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// Sets the time of the next look, if any program waits by the load.
    pub(crate) fn plan_look_at_load(&mut self) {
        if let Some((look, often)) = self.looks() {
            let slot = self.load_slot();
            self.agenda.set(slot, (look + 1).saturating_mul(often));
        }
    }

    /// How many looks there may have been, and the time between two, nanoseconds.
    fn looks(&self) -> Option<(u64, u64)> {
        let alive = self.programs.iter().filter(|program| program.alive > 0);
        let often = alive.filter_map(|program| program.model.load_control).min()?;
        Some((self.now / often.0, often.0))
    }

    /// Looks at the load, and hands out sleep slots.
    pub(crate) fn look_at_load(&mut self) {
        let Some((look, _)) = self.looks() else { return };
        let controlled = |run: &usize| {
            let program = &self.programs[*run];
            program.alive > 0 && !program.frozen && program.model.load_control.is_some()
        };
        let runs: Vec<usize> = (0..self.programs.len()).filter(controlled).collect();
        let sleepers = runs.iter().map(|run| self.sleepers(*run).count() as u64).collect();
        let runnable = self.programs.iter().map(|program| u64::from(program.runnable)).sum();
        let slots = sleep_slots(runnable, self.cpus.len() as u64, sleepers, look);
        for (run, slots) in runs.into_iter().zip(slots) {
            self.programs[run].slots = slots;
            let surplus: Vec<Tid> = self.sleepers(run).skip(slots as usize).collect();
            surplus.into_iter().for_each(|tid| self.wake(tid));
            let spins = |tid: &Tid| {
                let thread = &self.threads[*tid as usize];
                thread.place == ThreadState::Running && matches!(thread.doing, Doing::Spin { .. })
            };
            self.ready.extend(self.programs[run].tids().filter(spins));
        }
        self.plan_look_at_load();
    }

    /// How long a thread of a program that now waits for another spins, nanoseconds: by the load,
    /// or else as its program does.
    pub(crate) fn spins(&self, run: usize, otherwise: Nanos) -> u64 {
        let program = &self.programs[run];
        match program.model.load_control {
            None => otherwise.0,
            Some(_) if (self.sleepers(run).count() as u64) < program.slots => 0,
            Some(_) => u64::MAX,
        }
    }

    /// The threads of a program that sleep until another goes on.
    fn sleepers(&self, run: usize) -> impl Iterator<Item = Tid> {
        let sleeps = |tid: &Tid| {
            let thread = &self.threads[*tid as usize];
            let for_another = matches!(
                thread.waiting,
                WaitTarget::Barrier { .. } | WaitTarget::Lock | WaitTarget::Queue
            );
            thread.place == ThreadState::Blocked && for_another
        };
        self.programs[run].tids().filter(sleeps)
    }
}
