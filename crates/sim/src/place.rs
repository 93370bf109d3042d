//! The CPU on which a thread is queued.
//!
//! This follows Linux in outline. A thread that wakes up goes back to its CPU if that is idle, else
//! to an idle one behind the same cache, else it waits on its own. A new thread, or one that has
//! lost its CPUs, goes to the least loaded part of the machine; only this examines every CPU. Under
//! CFS, a thread that has lost its CPUs goes to the first one that is left to it. A CPU that runs
//! only fillers of [turns by weight](crate::by_weight) counts as idle here.

use cosched_core::Level;

use crate::balance::parts;
use crate::fair::EnqueueReason;
use crate::kernel::Order;
use crate::queue::mix;
use crate::thread::ThreadState;
use crate::tid::Tid;
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// The CPU for a thread that becomes runnable.
    pub(crate) fn place(&self, tid: Tid, how: EnqueueReason) -> usize {
        let own = usize::from(self.threads[tid as usize].cpu);
        if self.kernel.is_solaris() {
            return self.dispatch_to(tid, own, how);
        }
        if self.threads[tid as usize].turn.rank > 0 {
            return self.least_ranked(tid, own);
        }
        if how == EnqueueReason::Fresh {
            return self.least_loaded(tid);
        }
        if !self.may_use(tid, own) {
            return self.elsewhere(tid, own);
        }
        let may_wait = |cpu: usize| !self.kernel.apart || !self.has_sibling(tid, cpu);
        if self.is_free(own) {
            return own;
        }
        match self.free_near(tid, own) {
            Some(free) => free,
            None if may_wait(own) => own,
            None => self.least_loaded(tid),
        }
    }

    /// A free CPU behind the cache of another one.
    fn free_near(&self, tid: Tid, cpu: usize) -> Option<usize> {
        let near = self.shape.around(cpu, Some(Level::Llc)).iter().map(|cpu| usize::from(*cpu));
        near.filter(|cpu| self.is_free(*cpu) && self.may_use(tid, *cpu))
            .min_by_key(|cpu| (self.load_around(*cpu, Level::Core), self.chance(tid, *cpu)))
    }

    /// The CPU for a thread that may no longer use its own.
    fn elsewhere(&self, tid: Tid, own: usize) -> usize {
        self.first_allowed(tid, self.free_near(tid, own)).unwrap_or_else(|| self.least_loaded(tid))
    }

    /// Under CFS, a free CPU that was found, or else the first one that the thread may use: there
    /// all such threads wait until balancing moves them (`cpumask_any_and` in
    /// `set_cpus_allowed_ptr`, `select_fallback_rq`). From Linux 5.6 on they are spread over all
    /// (`cpumask_any_and_distribute`); that is `None`.
    fn first_allowed(&self, tid: Tid, free: Option<usize>) -> Option<usize> {
        let is_old = matches!(self.kernel.order, Order::Cfs { .. }) && !self.kernel.apart;
        let first = || (0..self.cpus.len()).find(|cpu| self.may_use(tid, *cpu));
        is_old.then(|| free.or_else(first)).flatten()
    }

    /// The least loaded CPU in the least loaded group; where siblings are kept apart, one without a
    /// sibling. Among equals, the CPU of the thread that made this one: the search for the idlest
    /// CPUs (`sched_balance_find_dst_group`) leaves the local ones only for less load.
    pub(crate) fn least_loaded(&self, tid: Tid) -> usize {
        let thread = &self.threads[tid as usize];
        let (own, made) = (usize::from(thread.cpu), thread.made);
        let key = |cpu: &usize| {
            let around = |level| self.load_around(*cpu, level);
            let sibling = self.kernel.apart && self.has_sibling(tid, *cpu);
            let load = parts(self.burden(*cpu));
            let surroundings = (around(Level::Core), around(Level::Package));
            (sibling, load, surroundings, made && *cpu != own, self.chance(tid, *cpu))
        };
        let allowed = (0..self.cpus.len()).filter(|cpu| self.may_use(tid, *cpu));
        allowed.min_by_key(key).unwrap_or(0)
    }

    /// The CPU for a thread with a fixed priority: its own CPU if it is first there, else the one
    /// with the lowest priority to displace.
    pub(crate) fn least_ranked(&self, tid: Tid, own: usize) -> usize {
        let rank = self.threads[tid as usize].turn.rank;
        let highest = |cpu: usize| self.highest(cpu);
        if self.may_use(tid, own) && highest(own).is_none_or(|highest| highest < rank) {
            return own;
        }
        let allowed = (0..self.cpus.len()).filter(|cpu| self.may_use(tid, *cpu));
        allowed
            .min_by_key(|cpu| (highest(*cpu), self.cpus[*cpu].load, self.chance(tid, *cpu)))
            .unwrap_or(0)
    }

    /// Whether a thread may run on a CPU.
    pub(crate) fn may_use(&self, tid: Tid, cpu: usize) -> bool {
        let own = self.threads[tid as usize].mask.as_deref();
        let mask = own.or(self.programs[self.program_of(tid)].cpus.as_ref());
        mask.is_none_or(|cpus| cpus.contains(self.hardware.topology.cpus()[cpu].id))
    }

    /// Whether another thread of the same program is on a CPU or in its queue.
    pub(crate) fn has_sibling(&self, tid: Tid, cpu: usize) -> bool {
        let thread = &self.threads[tid as usize];
        let is_there = usize::from(thread.cpu) == cpu
            && matches!(thread.place, ThreadState::Running | ThreadState::Queued);
        self.cpus[cpu].threads_of(thread.turn.program) > u32::from(is_there)
    }

    fn load_around(&self, cpu: usize, level: Level) -> u32 {
        self.loads[level as usize][self.shape.group(cpu, level)]
    }

    /// A random order for ties, which never depends on the number of a CPU.
    pub(crate) fn chance(&self, tid: Tid, cpu: usize) -> u64 {
        mix(self.seed ^ self.now ^ (u64::from(tid) << 32) ^ ((cpu as u64) << 48))
    }

    /// A program's CPUs, or a thread's, have changed: threads that are elsewhere move.
    pub(crate) fn obey_mask(&mut self, tid: Tid) {
        let thread = &self.threads[tid as usize];
        let (place, cpu) = (thread.place, usize::from(thread.cpu));
        if self.may_use(tid, cpu) {
            return;
        }
        if thread.turn.delayed {
            self.let_sleep(tid, cpu);
        }
        if matches!(place, ThreadState::Running | ThreadState::Queued) {
            self.take_off(tid, ThreadState::Held);
            let program = self.program_of(tid);
            self.programs[program].runnable += 1;
            let to = self.first_allowed(tid, None).unwrap_or_else(|| self.least_loaded(tid));
            self.enqueue(tid, to, EnqueueReason::Moved);
        }
    }
}
