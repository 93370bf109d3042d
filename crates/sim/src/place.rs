//! On which CPU a thread is queued, and how queues are evened out.
//!
//! As Linux does it, in outline: a thread that wakes up goes back to its CPU if that is idle, else to
//! an idle one behind the same cache, else it waits on its own; a new one goes to the least
//! loaded part of the machine. A CPU that runs out of work takes a thread from the longest
//! queue, near ones first, and now and then all CPUs look whether somebody has two more than they.

use cosched_core::Level;

use crate::queue::mix;
use crate::thread::{Place, Tid};
use crate::world::{Due, World};

/// The distances at which work is looked for, near to far; `None`: the whole machine.
const DISTANCES: [Option<Level>; 3] = [Some(Level::Core), Some(Level::Llc), None];
/// Every so many ticks a CPU looks at each of those distances.
const PERIODS: [u64; 3] = [1, 2, 8];

impl World {
    /// The CPU for a thread that becomes runnable.
    pub(crate) fn place(&self, tid: Tid, woken: bool) -> usize {
        let own = usize::from(self.threads[tid as usize].cpu);
        if self.kernel.apart {
            return self.apart(tid);
        }
        if woken && self.may_use(tid, own) {
            if self.is_idle(own) {
                return own;
            }
            let near = |cpu: usize| self.near(own, cpu, Some(Level::Llc));
            let idle = (0..self.cpus.len())
                .filter(|cpu| near(*cpu) && self.is_idle(*cpu) && self.may_use(tid, *cpu))
                .min_by_key(|cpu| (self.load_around(*cpu, Level::Core), self.chance(tid, *cpu)));
            return idle.unwrap_or(own);
        }
        self.least_loaded(tid)
    }

    /// The least loaded CPU in the least loaded surroundings.
    fn least_loaded(&self, tid: Tid) -> usize {
        let key = |cpu: &usize| {
            let around = |level| self.load_around(*cpu, level);
            let load = self.load(*cpu);
            (load, around(Level::Core), around(Level::Package), self.chance(tid, *cpu))
        };
        let allowed = (0..self.cpus.len()).filter(|cpu| self.may_use(tid, *cpu));
        allowed.min_by_key(key).unwrap_or(0)
    }

    /// Balance scheduling: of the CPUs without a sibling the least loaded one.
    fn apart(&self, tid: Tid) -> usize {
        let program = self.threads[tid as usize].program;
        let siblings = |cpu: usize| {
            let is_one =
                |other: &Tid| *other != tid && self.threads[*other as usize].program == program;
            let (queue, current) = (&self.cpus[cpu].queue, &self.cpus[cpu].current);
            queue.iter().chain(current).filter(|other| is_one(other)).count()
        };
        let allowed = (0..self.cpus.len()).filter(|cpu| self.may_use(tid, *cpu));
        let key = |cpu: &usize| (siblings(*cpu), self.load(*cpu), self.chance(tid, *cpu));
        allowed.min_by_key(key).unwrap_or(0)
    }

    /// Whether a thread may run on a CPU.
    pub(crate) fn may_use(&self, tid: Tid, cpu: usize) -> bool {
        let id = self.hardware.topology.cpus()[cpu].id;
        let program = &self.programs[self.program_of(tid)];
        program.cpus.as_ref().is_none_or(|cpus| cpus.contains(id))
    }

    fn is_idle(&self, cpu: usize) -> bool {
        self.load(cpu) == 0
    }

    fn load(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.len() + usize::from(self.cpus[cpu].current.is_some())
    }

    fn load_around(&self, cpu: usize, level: Level) -> u32 {
        let group = self.hardware.topology.cpus()[cpu].group(level);
        self.loads[level as usize][usize::from(group)]
    }

    /// A thread has come to a CPU's queue, or has left it or the CPU.
    pub(crate) fn load_changes(&mut self, cpu: usize, comes: bool) {
        let cpu = self.hardware.topology.cpus()[cpu];
        for level in Level::ALL {
            let load = &mut self.loads[level as usize][usize::from(cpu.group(level))];
            *load = if comes { *load + 1 } else { *load - 1 };
        }
    }

    fn near(&self, a: usize, b: usize, level: Option<Level>) -> bool {
        let cpus = self.hardware.topology.cpus();
        level.is_none_or(|level| cpus[a].group(level) == cpus[b].group(level))
    }

    /// What decides where nothing else does: never the number of a CPU.
    fn chance(&self, tid: Tid, cpu: usize) -> u64 {
        mix(self.seed ^ self.now ^ (u64::from(tid) << 32) ^ ((cpu as u64) << 48))
    }

    /// An idle CPU takes a thread from the longest queue, the nearest first.
    pub(crate) fn pull(&mut self, cpu: usize) {
        if self.queued == 0 {
            return;
        }
        for distance in DISTANCES {
            if let Some((from, tid)) = self.longest(cpu, distance, 1) {
                self.move_queued(tid, from, cpu);
                return;
            }
        }
    }

    /// The CPU around with the most threads, of those with so many more than this one, and a thread that can come over.
    fn longest(&self, cpu: usize, distance: Option<Level>, more: usize) -> Option<(usize, Tid)> {
        let own = self.load(cpu);
        let candidates = (0..self.cpus.len()).filter(|other| {
            *other != cpu
                && self.near(cpu, *other, distance)
                && !self.cpus[*other].queue.is_empty()
                && self.load(*other) > own + more
        });
        let movable = |from: usize| {
            let queue = &self.cpus[from].queue;
            queue
                .iter()
                .copied()
                .find(|tid| self.may_use(*tid, cpu) && !self.joins_sibling(*tid, cpu))
        };
        candidates
            .filter_map(|from| movable(from).map(|tid| (from, tid)))
            .max_by_key(|(from, tid)| (self.load(*from), self.chance(*tid, *from)))
    }

    /// Balance scheduling never brings siblings together.
    fn joins_sibling(&self, tid: Tid, cpu: usize) -> bool {
        let program = self.threads[tid as usize].program;
        let is_one = |other: &Tid| self.threads[*other as usize].program == program;
        let (queue, current) = (&self.cpus[cpu].queue, &self.cpus[cpu].current);
        self.kernel.apart && queue.iter().chain(current).any(is_one)
    }

    fn move_queued(&mut self, tid: Tid, from: usize, to: usize) {
        debug_assert_eq!(self.threads[tid as usize].place, Place::Queued);
        self.part(tid, from);
        self.cpus[from].queue.retain(|queued| *queued != tid);
        self.queued -= 1;
        self.load_changes(from, false);
        self.enqueue(tid, to, false);
    }

    /// All CPUs look whether somebody has two threads more than they have.
    pub(crate) fn balance(&mut self) {
        if self.queued == 0 {
            self.balancing = false;
            return;
        }
        let ticks = self.now / self.kernel.tick.0;
        for (distance, period) in DISTANCES.into_iter().zip(PERIODS) {
            for cpu in 0..self.cpus.len() {
                // Each CPU in its own phase.
                if (ticks + mix(self.seed ^ cpu as u64) % period) % period != 0 {
                    continue;
                }
                if let Some((from, tid)) = self.longest(cpu, distance, 1) {
                    self.move_queued(tid, from, cpu);
                }
            }
        }
        self.due.push(self.now + self.kernel.tick.0, Due::Balance);
    }

    /// A program's CPUs have changed: threads that are elsewhere move.
    pub(crate) fn obey_mask(&mut self, program: usize) {
        for tid in self.programs[program].tids() {
            let place = self.threads[tid as usize].place;
            let cpu = usize::from(self.threads[tid as usize].cpu);
            if matches!(place, Place::Running | Place::Queued) && !self.may_use(tid, cpu) {
                self.take_off(tid, Place::Blocked);
                self.programs[program].runnable += 1;
                let to = self.least_loaded(tid);
                self.enqueue(tid, to, false);
            }
        }
    }
}
