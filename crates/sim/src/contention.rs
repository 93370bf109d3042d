//! How fast running threads get on beside each other.
//!
//! An instruction takes its base cycles, and for every miss the time of a memory access, divided by how many are on
//! their way at once. Three things make that longer in company:
//!
//! * **buses**: traffic queues up. A bus is one server; a miss waits for half the service time of one line, times
//!   u / (1 - u) at utilisation u (a queue with random arrivals and equal services). Since slower threads also send
//!   less, utilisation and speed have to be found together: by bisection for each bus, a few
//!   rounds over all buses, always the same number of steps.
//! * **caches**: programs whose footprints do not fit share the cache in proportion to them, and miss more.
//! * **SMT**: two busy siblings each get a share of the core.

use cosched_core::Level;

use crate::hardware::{Hardware, Scope};
use crate::model::Mix;
use crate::thread::{Doing, Place, Tid};
use crate::world::{Due, World};

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Of the bisection, per bus and round.
const HALVINGS: usize = 24;
/// Over all buses.
const ROUNDS: usize = 3;
/// No bus is busier.
const FULLEST: f64 = 0.999;

/// What is priced, and at what.
#[derive(Debug)]
pub(crate) struct Prices {
    buses: Vec<BusState>,
    /// For each CPU, the buses that its misses go through.
    of_cpu: Vec<Vec<usize>>,
    /// Who computes with memory has changed.
    stirred: bool,
    /// Who computes with memory, in the order of CPUs; used again and again, as are the next two.
    users: Vec<User>,
    /// For each bus, the positions of those whose misses go through it.
    on_bus: Vec<Vec<usize>>,
    /// For each last-level cache, how many bytes are wanted of it.
    wanted: Vec<f64>,
}

#[derive(Clone, Debug)]
struct BusState {
    /// Nanoseconds per line.
    service: f64,
    /// What a miss waits here, nanoseconds.
    delay: f64,
}

#[derive(Clone, Copy, Debug)]
struct User {
    tid: Tid,
    cpu: usize,
    program: u16,
    mix: Mix,
    /// Misses per instruction at its present share of the cache.
    misses: f64,
    /// Of the core.
    share: f64,
}

impl Prices {
    pub(crate) fn new(hardware: &Hardware) -> Prices {
        let cpus = hardware.topology.cpus();
        let mut buses = Vec::new();
        let mut of_cpu = vec![Vec::new(); cpus.len()];
        for bus in &hardware.buses {
            let group = |cpu: &cosched_core::Cpu| match bus.of {
                Scope::Llc => usize::from(cpu.group(Level::Llc)),
                Scope::Package => usize::from(cpu.group(Level::Package)),
                Scope::Machine => 0,
            };
            let first = buses.len();
            let count = cpus.iter().map(group).max().map_or(0, |most| most + 1);
            let service = LINE / bus.bytes_per_nano;
            buses.resize(first + count, BusState { service, delay: 0.0 });
            for (cpu, of) in cpus.iter().zip(&mut of_cpu) {
                of.push(first + group(cpu));
            }
        }
        let caches = cpus.iter().map(|cpu| usize::from(cpu.group(Level::Llc)) + 1).max();
        Prices {
            on_bus: vec![Vec::new(); buses.len()],
            wanted: vec![0.0; caches.unwrap_or(0)],
            buses,
            of_cpu,
            stirred: false,
            users: Vec::new(),
        }
    }

    /// What a miss takes from a CPU, nanoseconds.
    fn access(&self, cpu: usize, idle: f64) -> f64 {
        idle + self.of_cpu[cpu].iter().map(|bus| self.buses[*bus].delay).sum::<f64>()
    }

    /// Finds the delays at which everybody's traffic is what he sends at these delays.
    fn solve(&mut self, idle: f64, gigahertz: f64) {
        self.on_bus.iter_mut().for_each(Vec::clear);
        for (position, user) in self.users.iter().enumerate() {
            for bus in &self.of_cpu[user.cpu] {
                self.on_bus[*bus].push(position);
            }
        }
        self.buses.iter_mut().for_each(|bus| bus.delay = 0.0);
        for _ in 0..ROUNDS {
            for bus in 0..self.buses.len() {
                if !self.on_bus[bus].is_empty() {
                    self.solve_bus(bus, idle, gigahertz);
                }
            }
        }
    }

    fn solve_bus(&mut self, bus: usize, idle: f64, gigahertz: f64) {
        let service = self.buses[bus].service;
        let (mut low, mut high) = (0.0, FULLEST);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            self.buses[bus].delay = service / 2.0 * middle / (1.0 - middle);
            let on_it = self.on_bus[bus].iter().map(|position| &self.users[*position]);
            let lines: f64 = on_it
                .map(|user| user.misses * user.rate(self.access(user.cpu, idle), gigahertz))
                .sum();
            if lines * service > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
}

impl User {
    /// Instructions per nanosecond.
    fn rate(&self, access: f64, gigahertz: f64) -> f64 {
        let stall = self.misses * access * gigahertz / self.mix.parallelism;
        self.share * gigahertz / (self.mix.base_cpi + stall)
    }
}

impl World {
    /// A thread begins or ends something on its CPU, or leaves it: others may get on faster or slower.
    pub(crate) fn stir(&mut self, tid: Tid) {
        if self.mix_of(tid).is_some_and(|mix| mix.uses_memory()) {
            self.prices.stirred = true;
        }
        if self.hardware.smt_share < 1.0 {
            let cpu = usize::from(self.threads[tid as usize].cpu);
            let sibling = self.siblings(cpu).find_map(|other| self.cpus[other].current);
            self.unpriced.extend(sibling);
            self.prices.stirred |= sibling.is_some_and(|tid| self.mix_of(tid).is_some());
        }
    }

    /// What a thread computes, if it does.
    fn mix_of(&self, tid: Tid) -> Option<Mix> {
        match self.threads[tid as usize].doing {
            Doing::Compute { mix, .. } => {
                Some(self.programs[self.program_of(tid)].model.mixes[usize::from(mix)])
            }
            Doing::Nothing | Doing::Spin { .. } => None,
        }
    }

    fn siblings(&self, cpu: usize) -> impl Iterator<Item = usize> + '_ {
        let cpus = self.hardware.topology.cpus();
        let core = cpus[cpu].group(Level::Core);
        (0..cpus.len())
            .filter(move |other| *other != cpu && cpus[*other].group(Level::Core) == core)
    }

    /// What one of two busy siblings gets of the core.
    fn core_share(&self, cpu: usize) -> f64 {
        let smt = self.hardware.smt_share;
        let busy = smt < 1.0 && self.siblings(cpu).any(|other| self.cpus[other].current.is_some());
        if busy { smt } else { 1.0 }
    }

    /// Nanoseconds until a thread has its part of the cache again, after somebody else's thread on its CPU.
    pub(crate) fn refill(&self, tid: Tid, last: Option<Tid>) -> f64 {
        let program = &self.programs[self.program_of(tid)];
        if last.is_some_and(|last| self.program_of(last) == self.program_of(tid)) {
            return 0.0;
        }
        let Some(mix) = self.mix_of(tid) else { return 0.0 };
        let part = mix.footprint.min(self.hardware.cache_bytes) / f64::from(program.model.threads);
        part / LINE * self.hardware.memory_nanos / mix.parallelism
    }

    /// Prices who has to be priced, and schedules when each will be done.
    pub(crate) fn price(&mut self) {
        if std::mem::take(&mut self.prices.stirred) {
            self.find_users();
            self.share_caches();
            self.prices.solve(self.hardware.memory_nanos, self.hardware.gigahertz);
            self.unpriced.extend(self.prices.users.iter().map(|user| user.tid));
        }
        let mut unpriced = std::mem::take(&mut self.unpriced);
        for tid in unpriced.drain(..) {
            if self.threads[tid as usize].place == Place::Running {
                self.price_one(tid);
            }
        }
        self.unpriced = unpriced;
    }

    fn price_one(&mut self, tid: Tid) {
        self.account(tid);
        let cpu = usize::from(self.threads[tid as usize].cpu);
        let rate = match self.mix_of(tid) {
            None => 0.0,
            Some(mix) if !mix.uses_memory() => {
                self.core_share(cpu) * self.hardware.gigahertz / mix.base_cpi
            }
            Some(_) => {
                let access = self.prices.access(cpu, self.hardware.memory_nanos);
                let users = &self.prices.users;
                let user = users.binary_search_by_key(&cpu, |user| user.cpu).ok().map(|i| users[i]);
                user.map_or(0.0, |user| user.rate(access, self.hardware.gigahertz))
            }
        };
        let now = self.now;
        let thread = &mut self.threads[tid as usize];
        thread.rate = rate;
        thread.stamp += 1;
        if let Some(horizon) = thread.horizon() {
            self.due.push(now + horizon, Due::Horizon(tid, thread.stamp));
        }
    }

    fn find_users(&mut self) {
        let mut users = std::mem::take(&mut self.prices.users);
        users.clear();
        for cpu in 0..self.cpus.len() {
            let Some(tid) = self.cpus[cpu].current else { continue };
            let Some(mix) = self.mix_of(tid).filter(Mix::uses_memory) else { continue };
            let program = self.threads[tid as usize].program;
            let share = self.core_share(cpu);
            users.push(User { tid, cpu, program, mix, misses: mix.misses, share });
        }
        self.prices.users = users;
    }

    /// Programs behind one cache share it in proportion to what they could use of it there.
    fn share_caches(&mut self) {
        let cpus = self.hardware.topology.cpus();
        let cache = |user: &User| usize::from(cpus[user.cpu].group(Level::Llc));
        let Prices { users, wanted, .. } = &mut self.prices;
        wanted.fill(0.0);
        for user in users.iter() {
            let threads = self.programs[usize::from(user.program)].model.threads;
            wanted[cache(user)] += user.mix.footprint / f64::from(threads);
        }
        for user in users.iter_mut() {
            let fits = (self.hardware.cache_bytes / wanted[cache(user)]).min(1.0);
            let mix = user.mix;
            user.misses = mix.misses + (mix.misses_without_cache - mix.misses) * (1.0 - fits);
        }
    }
}
