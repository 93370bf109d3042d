//! What memory traffic costs: the buses, and who shares them.
//!
//! A bus is one server; a miss waits for half the service time of one line, times u / (1 - u) at utilisation u (a queue
//! with random arrivals and equal services). Since slower threads also send less, utilisation and speed have to be
//! found together. With s the service time and d the delay, that is the root of
//!
//! ```text
//! s Σ n m / (a + b d)  -  d / (d + s / 2)     n threads of a kind, m misses per instruction each,
//!                                             a + b d nanoseconds per instruction
//! ```
//!
//! which falls and is convex in d, so Newton's iteration from d = 0 comes to it from one side without fail. Where misses go
//! through several buses in turn, a few rounds over them are made, always the same number.
//!
//! CPUs whose threads can slow each other down form a domain (those of one bus of the widest kind); only the domain in which
//! something has changed is priced anew, and only if it is not what it was.

use cosched_core::Level;

use crate::hardware::{Hardware, Scope};
use crate::model::Mix;
use crate::shape::Shape;

/// Over all buses of a domain, where misses go through several.
const ROUNDS: usize = 6;
/// Of Newton's iteration, at most; it ends before, once a step is this small a part.
const STEPS: usize = 40;
const SMALL: f64 = 1e-10;
/// No bus is busier.
const FULLEST: f64 = 0.999;
/// Bytes of a cache line.
pub(crate) const LINE: f64 = 64.0;

/// All domains.
#[derive(Debug)]
pub(crate) struct Prices {
    pub(crate) domains: Vec<Domain>,
    /// For each CPU, its domain and its position in it.
    of_cpu: Vec<(u16, u16)>,
    /// Domains in which something has changed.
    pub(crate) stirred: Vec<usize>,
}

/// CPUs whose threads can slow each other down.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) cpus: Vec<u16>,
    stirred: bool,
    /// For each CPU, the last-level cache, by its position in the domain.
    cache_of: Vec<u16>,
    /// For each cache, the buses that its misses go through.
    buses_of: Vec<Vec<usize>>,
    buses: Vec<Bus>,
    /// Who computes with memory, and for each CPU the kind of its thread.
    kinds: Vec<Kind>,
    kind_of: Vec<Option<u16>>,
    /// Those of before, to see whether anything has changed.
    before: Vec<Kind>,
    /// For each cache, how many bytes are wanted of it.
    wanted: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Bus {
    /// Nanoseconds per line.
    service: f64,
    /// What a miss waits here, nanoseconds.
    delay: f64,
}

/// Threads that are priced alike: of one program, with one mix, behind one cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    cache: u16,
    program: u16,
    mix: Mix,
    /// The bytes of cache that one thread can use.
    footprint: f64,
    /// Of the core.
    share: f64,
    count: f64,
    /// Misses per instruction at its present share of the cache.
    pub(crate) misses: f64,
    /// Instructions per nanosecond.
    pub(crate) rate: f64,
    /// Nanoseconds per instruction without waiting for a bus, and for each nanosecond that a miss waits.
    base: f64,
    slope: f64,
}

impl Kind {
    /// One thread of a program with so many.
    pub(crate) fn one(program: u16, threads: u16, mix: Mix, share: f64) -> Kind {
        let footprint = mix.footprint / f64::from(threads);
        let (cache, count) = (0, 1.0);
        let (misses, rate, base, slope) = (0.0, 0.0, 0.0, 0.0);
        Kind { cache, program, mix, footprint, share, count, misses, rate, base, slope }
    }

    fn is_like(&self, other: &Kind) -> bool {
        (self.cache, self.program, self.share) == (other.cache, other.program, other.share)
            && self.mix == other.mix
    }
}

impl Prices {
    pub(crate) fn new(hardware: &Hardware, shape: &Shape) -> Prices {
        let widest = |scope: Scope| hardware.buses.iter().any(|bus| bus.of == scope);
        let level = match (widest(Scope::Machine), widest(Scope::Package)) {
            (true, _) => None,
            (_, true) => Some(Level::Package),
            _ => Some(Level::Llc),
        };
        let count = hardware.topology.cpus().len();
        let mut prices =
            Prices { domains: Vec::new(), of_cpu: vec![(0, 0); count], stirred: Vec::new() };
        for cpu in 0..count {
            let around = shape.around(cpu, level);
            if usize::from(around[0]) != cpu {
                continue;
            }
            for (position, cpu) in around.iter().enumerate() {
                prices.of_cpu[usize::from(*cpu)] = (prices.domains.len() as u16, position as u16);
            }
            prices.domains.push(Domain::new(hardware, shape, around));
        }
        prices
    }

    /// Something has changed around a CPU.
    pub(crate) fn stir(&mut self, cpu: usize) {
        let domain = usize::from(self.of_cpu[cpu].0);
        if !std::mem::replace(&mut self.domains[domain].stirred, true) {
            self.stirred.push(domain);
        }
    }

    /// The kind of the thread on a CPU, with its price.
    pub(crate) fn kind(&self, cpu: usize) -> Option<&Kind> {
        let (domain, position) = self.of_cpu[cpu];
        let domain = &self.domains[usize::from(domain)];
        domain.kind_of[usize::from(position)].map(|kind| &domain.kinds[usize::from(kind)])
    }
}

impl Domain {
    fn new(hardware: &Hardware, shape: &Shape, cpus: &[u16]) -> Domain {
        let cpu = |cpu: &u16| usize::from(*cpu);
        let mut caches: Vec<usize> =
            cpus.iter().map(|of| shape.group(cpu(of), Level::Llc)).collect();
        let cache_of_cpu = caches.clone();
        caches.sort_unstable();
        caches.dedup();
        let position = |cache: &usize| caches.partition_point(|other| other < cache);
        let mut buses = Vec::new();
        let mut buses_of = vec![Vec::new(); caches.len()];
        for bus in &hardware.buses {
            let first = buses.len();
            let mut groups: Vec<usize> = Vec::new();
            for (cache, of) in caches.iter().zip(&mut buses_of) {
                let any = usize::from(shape.cpus(Level::Llc, *cache)[0]);
                let group = match bus.of {
                    Scope::Llc => *cache,
                    Scope::Package => shape.group(any, Level::Package),
                    Scope::Machine => 0,
                };
                let at = groups.iter().position(|known| *known == group).unwrap_or_else(|| {
                    groups.push(group);
                    buses.push(Bus { service: LINE / bus.bytes_per_nano, delay: 0.0 });
                    groups.len() - 1
                });
                of.push(first + at);
            }
        }
        Domain {
            stirred: false,
            cache_of: cache_of_cpu.iter().map(|cache| position(cache) as u16).collect(),
            wanted: vec![0.0; caches.len()],
            kinds: Vec::with_capacity(cpus.len()),
            before: Vec::with_capacity(cpus.len()),
            kind_of: vec![None; cpus.len()],
            cpus: cpus.to_vec(),
            buses_of,
            buses,
        }
    }

    /// Forgets who computes.
    pub(crate) fn begin(&mut self) {
        self.stirred = false;
        std::mem::swap(&mut self.kinds, &mut self.before);
        self.kinds.clear();
    }

    /// Who computes with memory on the CPU at a position; nobody may.
    pub(crate) fn place(&mut self, position: usize, one: Option<Kind>) {
        self.kind_of[position] = one.map(|one| {
            let one = Kind { cache: self.cache_of[position], ..one };
            let known = self.kinds.iter().position(|kind| kind.is_like(&one));
            match known {
                Some(known) => self.kinds[known].count += 1.0,
                None => self.kinds.push(one),
            }
            known.unwrap_or(self.kinds.len() - 1) as u16
        });
    }

    /// Prices everybody. Tells whether anything is not as before.
    pub(crate) fn finish(&mut self, hardware: &Hardware) -> bool {
        let same = |(now, before): (&Kind, &Kind)| now.is_like(before) && now.count == before.count;
        if self.kinds.len() == self.before.len() && self.kinds.iter().zip(&self.before).all(same) {
            std::mem::swap(&mut self.kinds, &mut self.before);
            return false;
        }
        self.share_caches(hardware);
        self.solve();
        true
    }

    /// Programs behind one cache share it in proportion to what they could use of it there.
    fn share_caches(&mut self, hardware: &Hardware) {
        self.wanted.fill(0.0);
        for kind in &self.kinds {
            self.wanted[usize::from(kind.cache)] += kind.count * kind.footprint;
        }
        let gigahertz = hardware.gigahertz;
        for kind in &mut self.kinds {
            let wanted = self.wanted[usize::from(kind.cache)];
            let fits = if wanted > 0.0 { (hardware.cache_bytes / wanted).min(1.0) } else { 1.0 };
            let mix = kind.mix;
            kind.misses = mix.misses + (mix.misses_without_cache - mix.misses) * (1.0 - fits);
            kind.slope = kind.misses / (mix.parallelism * kind.share);
            kind.base =
                mix.base_cpi / (kind.share * gigahertz) + kind.slope * hardware.memory_nanos;
        }
    }

    /// Finds the delays at which everybody's traffic is what he sends at these delays.
    fn solve(&mut self) {
        self.buses.iter_mut().for_each(|bus| bus.delay = 0.0);
        let nested = self.buses_of.iter().any(|buses| buses.len() > 1);
        for _ in 0..if nested { ROUNDS } else { 1 } {
            for bus in 0..self.buses.len() {
                self.solve_bus(bus);
            }
        }
        for kind in &mut self.kinds {
            let buses = &self.buses_of[usize::from(kind.cache)];
            let delay: f64 = buses.iter().map(|bus| self.buses[*bus].delay).sum();
            kind.rate = 1.0 / (kind.base + kind.slope * delay);
        }
    }

    fn solve_bus(&mut self, bus: usize) {
        let service = self.buses[bus].service;
        let half = service / 2.0;
        let most = half * FULLEST / (1.0 - FULLEST);
        let mut delay = 0.0;
        for _ in 0..STEPS {
            let (mut lines, mut change) = (0.0, 0.0);
            for kind in &self.kinds {
                let buses = &self.buses_of[usize::from(kind.cache)];
                if !buses.contains(&bus) {
                    continue;
                }
                let others = buses.iter().filter(|other| **other != bus);
                let waits = delay + others.map(|other| self.buses[*other].delay).sum::<f64>();
                let rate = 1.0 / (kind.base + kind.slope * waits);
                let sends = kind.count * kind.misses * rate;
                lines += sends;
                change += sends * rate * kind.slope;
            }
            let sum = delay + half;
            let gap = service * lines - delay / sum;
            let step = gap / (service * change + half / (sum * sum));
            delay += step;
            if step <= SMALL * sum || delay >= most {
                break;
            }
        }
        self.buses[bus].delay = delay.min(most);
    }
}
