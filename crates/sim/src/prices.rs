//! The cost of memory traffic: how threads share last-level caches and buses.
//!
//! A cache is shared here, among the programs that run behind it. A thread misses more if its
//! footprint fits only in part. What programs lose of a cache between their turns is a matter of
//! [lines](crate::eviction).
//!
//! A cache keeps what was used last. There is a time for which an unused line stays; a thread holds
//! what it uses within that time, and no more than its footprint. The time is the one at which all
//! of this fills the cache. A small footprint that is used quickly thus stays whole beside streams,
//! which have the rest by how quickly they read. Source: Denning, "The working set model for
//! program behavior" (1968); Che, Tung and Wang (2002) for the time; Eklov, Black-Schaffer and
//! Hagersten, "StatCC" (2010), for processors' shared caches.
//!
//! A bus is one server; a miss waits for half the service time of one line, times u / (1 - u) at
//! utilisation u (a queue with random arrivals and equal services). Slower threads also send less,
//! so utilisation and speed have to be solved together. With s the service time and d the delay,
//! that is the root of
//!
//! ```text
//! s Σ n m / (a + b d)  -  d / (d + s / 2)     n threads of a kind, m misses per instruction each,
//!                                             a + b d nanoseconds per instruction
//! ```
//!
//! which falls and is convex in d, so Newton's iteration always converges: from the left step by
//! step, and from the right in one step to the left. Where misses go through several buses in turn,
//! rounds over them are made until nothing changes any more.
//!
//! CPUs with threads that can slow each other down form a domain (those of one bus of the widest
//! kind). A domain is priced again only when something in it has changed, and only if the change
//! has an effect.

mod kind;

use cosched_core::Level;

use crate::hardware::{Hardware, Scope};
use crate::shape::Shape;
pub(crate) use kind::{ThreadKind, ThreadSpeed};

/// The most rounds over all buses of a domain, where misses go through several, and the most steps
/// of Newton's iteration. Both end earlier once a delay changes by less than this part.
const ROUNDS: usize = 30;
const STEPS: usize = 40;
const SMALL: f64 = 1e-8;
/// Bytes of a cache line.
pub(crate) const LINE: f64 = 64.0;

#[derive(Debug)]
pub(crate) struct Prices {
    pub(crate) domains: Vec<Domain>,
    /// For each CPU, its domain and its position in it.
    of_cpu: Vec<(u16, u16)>,
    /// Domains in which something has changed.
    pub(crate) stirred: Vec<usize>,
}

/// CPUs with threads that can slow each other down.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) cpus: Vec<u16>,
    stirred: bool,
    /// For each CPU, the last-level cache, by its position in the domain.
    cache_of: Vec<u16>,
    /// For each cache, the buses that its misses go through.
    buses_of: Vec<Vec<usize>>,
    buses: Vec<BusPrice>,
    /// The threads that compute with memory, by kind, and for each CPU the kind of its thread.
    kinds: Vec<ThreadKind>,
    kind_of: Vec<Option<u16>>,
    /// The kinds of before, to see whether anything has changed.
    before: Vec<ThreadKind>,
    /// For each cache, for how long an unused line stays in it, nanoseconds.
    stays: Vec<f64>,
}

#[derive(Clone, Debug)]
struct BusPrice {
    /// Nanoseconds per line.
    service: f64,
    /// The wait of a miss here, nanoseconds.
    delay: f64,
    /// The kinds with misses that go through it, by their positions.
    kinds: Vec<u16>,
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
    pub(crate) fn kind(&self, cpu: usize) -> Option<&ThreadKind> {
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
                    let (service, kinds) =
                        (LINE / bus.bytes_per_nano, Vec::with_capacity(cpus.len()));
                    buses.push(BusPrice { service, delay: 0.0, kinds });
                    groups.len() - 1
                });
                of.push(first + at);
            }
        }
        Domain {
            stirred: false,
            cache_of: cache_of_cpu.iter().map(|cache| position(cache) as u16).collect(),
            stays: vec![0.0; caches.len()],
            kinds: Vec::with_capacity(cpus.len()),
            before: Vec::with_capacity(cpus.len()),
            kind_of: vec![None; cpus.len()],
            cpus: cpus.to_vec(),
            buses_of,
            buses,
        }
    }

    /// Removes all threads.
    pub(crate) fn begin(&mut self) {
        self.stirred = false;
        std::mem::swap(&mut self.kinds, &mut self.before);
        self.kinds.clear();
    }

    /// Sets the kind that computes with memory on the CPU at a position, or none.
    pub(crate) fn place(&mut self, position: usize, one: Option<ThreadKind>) {
        self.kind_of[position] = one.map(|one| {
            let one = ThreadKind { cache: self.cache_of[position], ..one };
            let known = self.kinds.iter().position(|kind| kind.is_like(&one));
            match known {
                Some(known) => self.kinds[known].count += 1.0,
                None => self.kinds.push(one),
            }
            known.unwrap_or(self.kinds.len() - 1) as u16
        });
    }

    /// Prices all kinds. Returns whether anything has changed.
    pub(crate) fn finish(&mut self, hardware: &Hardware) -> bool {
        let same = |(now, before): (&ThreadKind, &ThreadKind)| {
            now.is_like(before) && now.count == before.count
        };
        if self.kinds.len() == self.before.len() && self.kinds.iter().zip(&self.before).all(same) {
            std::mem::swap(&mut self.kinds, &mut self.before);
            return false;
        }
        self.share_caches(hardware);
        self.solve();
        true
    }

    /// Finds for how long an unused line stays in each cache: step by step, since what threads hold
    /// rises with that time, and ever less.
    fn age_caches(&mut self, cache_bytes: f64) {
        for (cache, stays) in self.stays.iter_mut().enumerate() {
            let kinds = || self.kinds.iter().filter(|kind| usize::from(kind.cache) == cache);
            *stays = 0.0;
            loop {
                let (mut room, mut touched) = (cache_bytes, 0.0);
                for kind in kinds().filter(|kind| kind.footprint > 0.0) {
                    match kind.footprint <= kind.touches * *stays {
                        true => room -= kind.count * kind.footprint,
                        false => touched += kind.count * kind.touches,
                    }
                }
                // Where every footprint fits, lines stay.
                let next = if touched > 0.0 { room / touched } else { f64::INFINITY };
                if next <= *stays || next == f64::INFINITY {
                    *stays = next;
                    break;
                }
                *stays = next;
            }
        }
    }

    /// Programs behind one cache share it by how quickly they use it.
    fn share_caches(&mut self, hardware: &Hardware) {
        let gigahertz = hardware.gigahertz;
        for kind in &mut self.kinds {
            let mix = kind.mix;
            let memory = mix.misses / (mix.parallelism * kind.share) * hardware.memory_nanos;
            let nanos = mix.base_cpi / (kind.share * gigahertz) + memory;
            kind.touches = LINE * mix.misses_without_cache / nanos;
        }
        self.age_caches(hardware.cache_bytes);
        for kind in &mut self.kinds {
            let holds = kind.touches * self.stays[usize::from(kind.cache)];
            // What is never used is never missed.
            let is_used = kind.footprint > 0.0 && kind.touches > 0.0;
            let fits = if is_used { (holds / kind.footprint).min(1.0) } else { 1.0 };
            let mix = kind.mix;
            let warm = mix.misses + (mix.misses_without_cache - mix.misses) * (1.0 - fits);
            kind.misses = if kind.refills { mix.misses_without_cache } else { warm };
            kind.back = kind.misses - warm;
            kind.holds = fits * kind.footprint;
            kind.slope = kind.misses / (mix.parallelism * kind.share);
            let farther = if kind.is_remote { hardware.remote_nanos } else { 0.0 };
            let memory_nanos = hardware.memory_nanos + farther;
            kind.base = mix.base_cpi / (kind.share * gigahertz) + kind.slope * memory_nanos;
        }
    }

    /// Finds the delays that match the traffic that is sent at these delays.
    fn solve(&mut self) {
        for bus in &mut self.buses {
            bus.delay = 0.0;
            bus.kinds.clear();
        }
        for (position, kind) in self.kinds.iter().enumerate() {
            for bus in &self.buses_of[usize::from(kind.cache)] {
                self.buses[*bus].kinds.push(position as u16);
            }
        }
        let nested = self.buses_of.iter().any(|buses| buses.len() > 1);
        for _ in 0..if nested { ROUNDS } else { 1 } {
            let mut moved = false;
            for bus in 0..self.buses.len() {
                moved |= self.solve_bus(bus);
            }
            if !moved {
                break;
            }
        }
        for kind in &mut self.kinds {
            kind.rate = 1.0 / (kind.base + kind.slope * kind.waits);
        }
    }

    /// Finds the delay of one bus while the others keep theirs. Returns whether it has changed.
    fn solve_bus(&mut self, bus: usize) -> bool {
        let BusPrice { service, delay: before, ref kinds } = self.buses[bus];
        let half = service / 2.0;
        let mut delay = before;
        for _ in 0..STEPS {
            let (mut lines, mut change) = (0.0, 0.0);
            for kind in kinds {
                let kind = &self.kinds[usize::from(*kind)];
                let rate = 1.0 / (kind.base + kind.slope * (kind.waits - before + delay));
                let sends = kind.count * kind.misses * rate;
                lines += sends;
                change += sends * rate * kind.slope;
            }
            let sum = delay + half;
            let gap = service * lines - delay / sum;
            let step = gap / (service * change + half / (sum * sum));
            delay = (delay + step).max(0.0);
            if step.abs() <= SMALL * sum {
                break;
            }
        }
        for kind in kinds {
            let kind = &mut self.kinds[usize::from(*kind)];
            kind.waits = kind.waits - before + delay;
        }
        self.buses[bus].delay = delay;
        (delay - before).abs() > SMALL * (delay + half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mix;

    /// How many misses each thread has in flight.
    const IN_FLIGHT: [f64; 4] = [1.0, 4.0, 64.0, 1000.0];

    fn streams(misses: f64, parallelism: f64) -> Mix {
        Mix { misses, misses_without_cache: misses, parallelism, ..Mix::computing(1.0) }
    }

    /// A thread on every CPU of a machine.
    fn priced(words: &str, mix: Mix) -> (Domain, Hardware) {
        let hardware = Hardware::words(words).unwrap();
        let shape = Shape::new(&hardware.topology);
        let mut domain = Prices::new(&hardware, &shape).domains.remove(0);
        domain.begin();
        for position in 0..domain.cpus.len() {
            domain.place(position, Some(ThreadKind::one(position as u16 % 3, 4, mix, 1.0, false)));
        }
        assert!(domain.finish(&hardware));
        (domain, hardware)
    }

    /// The traffic is the one that is sent at these delays.
    #[test]
    fn the_delay_of_each_bus_matches_its_traffic() {
        for words in [
            "package:2 l3:4 core:8 bus=llc:10",
            "package:2 l3:4 core:8 bus=llc:10 bus=package:30",
            "package:4 l3:1 core:6 bus=package:5.1 bus=machine:10.2",
            "package:2 l3:2 core:2 bus=llc:4 bus=package:6 bus=machine:9",
        ] {
            for (misses, parallelism) in
                [0.0001, 0.003, 0.03, 0.3].iter().flat_map(|misses| IN_FLIGHT.map(|n| (*misses, n)))
            {
                let (domain, _) = priced(words, streams(misses, parallelism));
                for bus in &domain.buses {
                    let sends = |kind: &u16| {
                        let kind = &domain.kinds[usize::from(*kind)];
                        kind.count * kind.misses * kind.rate
                    };
                    let used = bus.service * bus.kinds.iter().map(sends).sum::<f64>();
                    let expected = bus.service / 2.0 * used / (1.0 - used);
                    let error = (bus.delay - expected).abs() / (expected + bus.service);
                    let at = format!("{words} {misses} {parallelism}: {used} {error}");
                    assert!(used < 1.0 && error < 1e-3, "{at}");
                }
            }
        }
    }

    #[test]
    fn no_bus_in_a_row_is_overloaded_and_one_is_nearly_full() {
        // The bandwidth for each cache; where it is equal everywhere, all are full at once.
        const WIDE: [f64; 4] = [2.0, 9.9, 10.0, 200.0];
        for (llc, package, machine) in (0..64).map(|i| (WIDE[i / 16], WIDE[i / 4 % 4], WIDE[i % 4]))
        {
            let buses = format!(
                "bus=machine:{} bus=package:{} bus=llc:{llc}",
                32.0 * machine,
                4.0 * package
            );
            let words = format!("package:8 l3:4 core:8 {buses}");
            for parallelism in IN_FLIGHT {
                let (domain, _) = priced(&words, streams(0.3, parallelism));
                let used = domain.buses.iter().map(|bus| {
                    let kinds = bus.kinds.iter().map(|kind| &domain.kinds[usize::from(*kind)]);
                    bus.service
                        * kinds.map(|kind| kind.count * kind.misses * kind.rate).sum::<f64>()
                });
                let fullest = used.fold(0.0, f64::max);
                let is_full = parallelism > 4.0 && llc.min(package).min(machine) < 200.0;
                assert!(fullest < 1.0, "{words} {parallelism}: {fullest}");
                assert!(!is_full || fullest > 0.99, "{words} {parallelism}: {fullest}");
            }
        }
    }

    #[test]
    fn a_bus_carries_its_limit_however_many_misses_there_are() {
        for (words, cpus) in [("core:64", 64.0), ("core:1024", 1024.0)] {
            for parallelism in IN_FLIGHT {
                let (domain, hardware) =
                    priced(&format!("{words} bus=machine:10"), streams(0.1, parallelism));
                let (kind, service) = (&domain.kinds[0], domain.buses[0].service);
                // The traffic that causes this delay, from a quadratic equation.
                let base = 0.4 + 0.1 / parallelism * hardware.memory_nanos;
                let (slope, most) = (0.1 / parallelism, service * cpus * 0.1);
                let linear = most - base;
                let root = (linear * linear + 2.0 * slope * most * service).sqrt();
                let delay = (linear + root) / (2.0 * slope);
                let rate = 1.0 / (base + slope * delay);
                assert!((kind.rate / rate - 1.0).abs() < 1e-6, "{words} {parallelism}");
                let carried = LINE * cpus * 0.1 * kind.rate;
                assert!(carried < 10.0, "{words} {parallelism}: {carried} GB/s");
            }
        }
    }

    /// What one thread of each program holds of a cache of 16 MiB behind two CPUs, in MiB,
    /// and for how long a line stays there, microseconds.
    fn shared(mixes: [Mix; 2]) -> ([f64; 2], f64) {
        let hardware = Hardware::words("l3:1 core:2 bus=llc:1000").unwrap();
        let shape = Shape::new(&hardware.topology);
        let mut domain = Prices::new(&hardware, &shape).domains.remove(0);
        domain.begin();
        for (position, mix) in mixes.into_iter().enumerate() {
            domain.place(position, Some(ThreadKind::one(position as u16, 1, mix, 1.0, false)));
        }
        assert!(domain.finish(&hardware));
        let holds = |position: usize| domain.kinds[position].holds / MIB;
        ([holds(0), holds(1)], domain.stays[0] / 1e3)
    }

    const MIB: f64 = 1024.0 * 1024.0;

    /// A thread that uses its footprint within the time for which lines stay keeps all of it.
    #[test]
    fn a_small_set_that_is_reused_keeps_its_lines_beside_a_stream() {
        // One instruction per nanosecond, of which 1 in 100 reads a line: 0.64 bytes per
        // nanosecond, from the cache or, without waiting, from memory.
        let reads = |footprint: f64, misses| Mix {
            misses,
            misses_without_cache: 0.01,
            footprint: footprint * MIB,
            parallelism: 1e9,
            ..Mix::computing(1.0)
        };
        let hardware = Hardware::words("l3:1 core:2 bus=llc:1000").unwrap();
        let rate = 0.64 * hardware.gigahertz * 1e3 / MIB;
        let ([small, stream], stays) = shared([reads(2.0, 0.0), reads(64.0, 0.01)]);
        assert!((small - 2.0).abs() < 1e-6 && (stream - 14.0).abs() < 1e-6, "{small} {stream}");
        assert!((stays / (14.0 / rate) - 1.0).abs() < 1e-3, "{stays}");
        // Two of a kind share evenly; what fits stays.
        let (halves, _) = shared([reads(64.0, 0.0), reads(64.0, 0.0)]);
        assert!(halves.iter().all(|half| (half - 8.0).abs() < 1e-6), "{halves:?}");
        let (fit, stays) = shared([reads(2.0, 0.0), reads(12.0, 0.0)]);
        assert_eq!((fit, stays), ([2.0, 12.0], f64::INFINITY));
    }

    #[test]
    fn an_unchanged_domain_is_not_priced_again() {
        let mix = Mix { misses: 0.01, misses_without_cache: 0.01, ..Mix::computing(1.0) };
        let (mut domain, hardware) = priced("core:4", mix);
        let rate = domain.kinds[0].rate;
        domain.begin();
        for position in 0..4 {
            domain.place(position, Some(ThreadKind::one(position as u16 % 3, 4, mix, 1.0, false)));
        }
        assert!(!domain.finish(&hardware));
        assert_eq!(domain.kinds[0].rate, rate);
        domain.begin();
        (0..4).for_each(|position| domain.place(position, None));
        assert!(domain.finish(&hardware));
    }
}
