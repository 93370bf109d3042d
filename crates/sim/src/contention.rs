//! The speed of running threads, with their co-runners.
//!
//! An instruction takes its base cycles, and for every miss the time of a memory access, divided by
//! how many are in flight at once. Three kinds of interference make that longer:
//!
//! * **[buses](crate::prices)**: traffic queues up;
//! * **[caches](crate::prices)**: programs with too large footprints share them, and miss more. A
//!   program that comes back to a cache that others have used meanwhile [brings
//!   back](crate::eviction) the lines that are gone;
//! * **SMT**: two busy siblings each get a share of the core.
//!
//! A CPU of less capacity is slower in proportion.
//!
//! Memory has a node: a thread's pages lie where it used memory first (Linux' default, "first
//! touch"), and stay there. On another node each of its misses takes longer by the machine's
//! `remote_nanos`. The traffic still counts on the buses of the CPU.

use cosched_core::Level;

use crate::model::Mix;
use crate::prices::{ThreadKind, ThreadSpeed};
use crate::thread::{Doing, ThreadState};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// The capacity of the fastest CPUs.
const FASTEST: f64 = 1024.0;

impl SimulatedWorld {
    /// A thread begins or ends something on its CPU, or leaves it: the speed of others may change.
    pub(crate) fn stir(&mut self, tid: Tid) {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        if self.mix_of(tid).is_some_and(|mix| mix.uses_memory()) {
            self.prices.stir(cpu);
        }
        if self.hardware.smt_share < 1.0 {
            for position in 0..self.shape.around(cpu, Some(Level::Core)).len() {
                let other = usize::from(self.shape.around(cpu, Some(Level::Core))[position]);
                if other == cpu {
                    continue;
                }
                if let Some(sibling) = self.cpus[other].current {
                    self.unprice(other);
                    if self.mix_of(sibling).is_some_and(|mix| mix.uses_memory()) {
                        self.prices.stir(other);
                    }
                }
            }
        }
    }

    /// The mix that a thread computes, if it does.
    fn mix_of(&self, tid: Tid) -> Option<&Mix> {
        match self.threads[tid as usize].doing {
            Doing::Compute { mix, .. } => {
                Some(&self.programs[self.program_of(tid)].model.mixes[usize::from(mix)])
            }
            Doing::Nothing | Doing::Spin { .. } => None,
        }
    }

    /// The speed of a CPU, relative to the fastest with no busy sibling.
    fn core_share(&self, cpu: usize) -> f64 {
        let capacity = f64::from(self.hardware.topology.cpus()[cpu].capacity) / FASTEST;
        let smt = self.hardware.smt_share;
        let core = || self.shape.around(cpu, Some(Level::Core)).iter();
        let busy = |other: &u16| {
            usize::from(*other) != cpu && self.cpus[usize::from(*other)].current.is_some()
        };
        if smt < 1.0 && core().any(busy) { smt * capacity } else { capacity }
    }

    /// Prices the threads that need it, and schedules when each will be done.
    pub(crate) fn price(&mut self) {
        while let Some(domain) = self.prices.stirred.pop() {
            self.price_domain(domain);
        }
        while let Some(cpu) = self.unpriced.pop() {
            self.cpus[cpu].unpriced = false;
            self.note_switch(cpu);
            match self.cpus[cpu].current {
                Some(tid) => self.price_one(tid, cpu),
                None => self.agenda.clear(cpu),
            }
        }
    }

    fn price_domain(&mut self, domain: usize) {
        self.prices.domains[domain].begin();
        for position in 0..self.prices.domains[domain].cpus.len() {
            let cpu = usize::from(self.prices.domains[domain].cpus[position]);
            let one = self.cpus[cpu].current.and_then(|tid| {
                let mix = *self.mix_of(tid).filter(|mix| mix.uses_memory())?;
                let program = self.threads[tid as usize].turn.program;
                let threads = self.programs[usize::from(program)].model.threads;
                let refills = self.threads[tid as usize].lines.refills;
                let is_remote = self.is_remote(tid, cpu);
                let kind = ThreadKind::one(program, threads, mix, self.core_share(cpu), refills);
                Some(kind.remote(is_remote))
            });
            self.prices.domains[domain].place(position, one);
        }
        if self.prices.domains[domain].finish(&self.hardware) {
            for position in 0..self.prices.domains[domain].cpus.len() {
                let cpu = usize::from(self.prices.domains[domain].cpus[position]);
                if self.prices.kind(cpu).is_some() {
                    self.unprice(cpu);
                }
            }
        }
    }

    /// Whether a thread that uses memory on a CPU has its pages on another node. Its first use
    /// decides where they are.
    fn is_remote(&mut self, tid: Tid, cpu: usize) -> bool {
        if self.hardware.remote_nanos <= 0.0 {
            return false;
        }
        let node = self.hardware.topology.cpus()[cpu].node;
        *self.threads[tid as usize].pages.get_or_insert(node) != node
    }

    fn price_one(&mut self, tid: Tid, cpu: usize) {
        debug_assert_eq!(self.threads[tid as usize].place, ThreadState::Running);
        self.account(tid);
        let pace = match self.mix_of(tid) {
            None => ThreadSpeed::default(),
            Some(mix) if !mix.uses_memory() => {
                let rate = self.core_share(cpu) * self.hardware.gigahertz / mix.base_cpi;
                ThreadSpeed { rate, ..ThreadSpeed::default() }
            }
            Some(_) => match self.prices.kind(cpu) {
                Some(kind) => kind.pace(),
                None => unreachable!("the domain of a thread that begins to use memory is stirred"),
            },
        };
        let thread = &mut self.threads[tid as usize];
        thread.pace = pace;
        if pace.regains > 0.0 {
            thread.lines.lost = thread.lines.lost.min(pace.holds);
        }
        match thread.horizon() {
            Some(horizon) => self.agenda.set(cpu, self.now.saturating_add(horizon)),
            None => self.agenda.clear(cpu),
        }
    }
}
