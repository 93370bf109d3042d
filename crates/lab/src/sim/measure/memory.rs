//! What memory gives: how long one access takes, and how much all CPUs get together.
//!
//! The latency is that of a chain of reads, each of which needs the one before, over much more than
//! the cache holds. The limit of a bus cannot be seen directly: few CPUs may never reach it. So the
//! STREAM triad runs on one CPU and then on all CPUs of a package, and the limit is the one at
//! which the simulator's own queue (see `contention` there) slows them down as much as was seen.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use cosched_core::{Level, Topology};
use serde::Serialize;

use super::{Effort, median, on_each};
use crate::ui::failure::Failure;

const MIB: usize = 1 << 20;
/// Bytes of a cache line, and how many numbers it holds.
pub(super) const LINE: f64 = 64.0;
pub(super) const NUMBERS_PER_LINE: usize = 8;
/// Of a line of each of three arrays: two are read, one is fetched before it is written, and
/// written back.
pub(super) const LINES_MOVED: f64 = 4.0;
/// Where the CPUs do not slow each other down, the bus is given this many times what they move.
pub(super) const FAR_ABOVE: f64 = 16.0;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Memory {
    /// Of one last-level cache; `None` where the kernel does not tell it.
    pub(super) cache_mib: Option<f64>,
    /// Of one access.
    #[serde(rename = "memory_nanos")]
    pub(super) nanos: f64,
    /// Bytes per nanosecond of the triad on one CPU, and on all of a package.
    #[serde(rename = "triad_bytes_per_nano")]
    pub(super) triad: [f64; 2],
    /// How many CPUs those were.
    #[serde(rename = "triad_cpus")]
    pub(super) cpus: usize,
    /// The limit of a package's bus, bytes per nanosecond.
    #[serde(rename = "bus_bytes_per_nano")]
    pub(super) bus: f64,
}

pub(super) fn measure(topology: &Topology, effort: Effort) -> Result<Memory, Failure> {
    let first = topology.cpus()[0];
    let same = |cpu: &&cosched_core::Cpu| cpu.group(Level::Package) == first.group(Level::Package);
    let package: Vec<usize> = topology.cpus().iter().filter(same).map(|cpu| cpu.id).collect();
    let cache_mib = cache_mib(first.id);
    let cache = cache_mib.unwrap_or(8.0) as usize * MIB;
    let chased = (4 * cache).clamp(64 * MIB, 512 * MIB) / effort.less;
    let nanos = on_each(&[first.id], |_| latency(chased, effort))?[0];
    // Together at most 4 GiB.
    let each = (2 * cache).clamp(24 * MIB, 4096 * MIB / package.len()) / effort.less;
    let triad = [triad(&[first.id], each, effort)?, triad(&package, each, effort)?];
    let bus = bus_limit(triad[0], triad[1], package.len(), nanos);
    Ok(Memory { cache_mib, nanos, triad, cpus: package.len(), bus })
}

/// The most that memory carries to as many of these CPUs as move most, bytes per nanosecond, and
/// how many these are.
pub(crate) fn peak(cpus: &[usize]) -> Result<(f64, usize), Failure> {
    let doublings = (0..16).map(|power| 1 << power).filter(|count| *count < cpus.len());
    let mut most = (0.0, 0);
    for count in doublings.chain([cpus.len()]) {
        let moved = triad(&cpus[..count], beyond_caches(cpus, count), Effort::FULL)?;
        if moved > most.0 {
            most = (moved, count);
        }
    }
    Ok(most)
}

/// The bytes of the arrays of each of `count` threads: more than the caches of these CPUs hold, and
/// together at most 4 GiB.
pub(super) fn beyond_caches(cpus: &[usize], count: usize) -> usize {
    let cache = cpus.first().and_then(|cpu| cache_mib(*cpu)).unwrap_or(8.0) as usize * MIB;
    (2 * cache).max(24 * MIB).min(4096 * MIB / count.max(1))
}

/// The size of the outermost cache of a CPU.
fn cache_mib(cpu: usize) -> Option<f64> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let read = |index: usize, file: &str| {
        std::fs::read_to_string(format!("{folder}/index{index}/{file}")).ok()
    };
    let outermost = (0..8)
        .filter_map(|index| {
            let level: u32 = read(index, "level")?.trim().parse().ok()?;
            let kib: f64 = read(index, "size")?.trim().strip_suffix('K')?.parse().ok()?;
            Some((level, kib / 1024.0))
        })
        .max_by_key(|(level, _)| *level);
    outermost.map(|(_, mib)| mib)
}

/// Of one access in a chain through so many bytes, nanoseconds.
fn latency(bytes: usize, effort: Effort) -> f64 {
    let lines = bytes / LINE as usize;
    let mut next = vec![[0_u64; NUMBERS_PER_LINE]; lines];
    // Sattolo's algorithm: one cycle through all lines.
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for i in (1..lines).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(i, (random >> 33) as usize % i);
    }
    for i in 0..lines {
        next[order[i] as usize][0] = u64::from(order[(i + 1) % lines]);
    }
    let steps = 400_000 / effort.less;
    let mut at = 0;
    let one = |_| {
        let since = Instant::now();
        for _ in 0..steps {
            at = next[at as usize][0];
        }
        black_box(at);
        since.elapsed().as_nanos() as f64 / steps as f64
    };
    median(&(0..effort.repetitions).map(one).collect::<Vec<f64>>())
}

/// What these CPUs move together, each in arrays of its own of so many bytes; bytes per nanosecond.
fn triad(cpus: &[usize], bytes: usize, effort: Effort) -> Result<f64, Failure> {
    let numbers = bytes / 24 / NUMBERS_PER_LINE * NUMBERS_PER_LINE;
    let together = Barrier::new(cpus.len());
    let times = on_each(cpus, |_| {
        let (mut a, b, c) = (vec![1.0; numbers], vec![2.0; numbers], vec![3.0; numbers]);
        let one = |_| {
            together.wait();
            let since = Instant::now();
            for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
                *a = b + 3.0 * c;
            }
            black_box(&mut a);
            since.elapsed().as_nanos() as f64
        };
        median(&(0..effort.repetitions).map(one).collect::<Vec<f64>>())
    })?;
    let moved = LINES_MOVED * (numbers / NUMBERS_PER_LINE) as f64 * LINE;
    Ok(times.iter().map(|time| moved / time).sum())
}

/// The limit of a bus, bytes per nanosecond, on which one CPU alone gets `one` and `cpus` CPUs get
/// `all`.
///
/// With s the time of one line on the bus, u its utilisation, m the latency of the idle machine and
/// p how many accesses are on their way at once, a CPU takes (m + s/2 u/(1-u)) / p for a line. In
/// the ratio of the two times p falls out, and both utilisations are known from s; so s is found by
/// halving an interval.
fn bus_limit(one: f64, all: f64, cpus: usize, memory_nanos: f64) -> f64 {
    let slowed = one * cpus as f64 / all;
    let ratio = |line: f64| {
        let time = |rate: f64| {
            let busy = line * rate / LINE;
            memory_nanos + line / 2.0 * busy / (1.0 - busy)
        };
        time(all) / time(one)
    };
    let (mut low, mut high) = (LINE / all / FAR_ABOVE, LINE / all * 0.999);
    if ratio(low) >= slowed {
        return LINE / low;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if ratio(middle) < slowed { low = middle } else { high = middle }
    }
    LINE / low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_is_found_from_what_it_gives_to_one_cpu_and_to_several() {
        // A CPU with 8 accesses on their way, on a bus of 20 bytes per nanosecond: what the
        // simulator's queue gives.
        let (memory, parallelism, bus) = (100.0, 8.0, 20.0);
        let together = |cpus: f64| {
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..60 {
                let busy: f64 = (low + high) / 2.0;
                let line = LINE / bus;
                let time = (memory + line / 2.0 * busy / (1.0 - busy)) / parallelism;
                if cpus * line / time > busy { low = busy } else { high = busy }
            }
            low * bus
        };
        let found = bus_limit(together(1.0), together(4.0), 4, memory);
        assert!((found - bus).abs() < 0.01 * bus, "{found}");
    }

    #[test]
    fn cpus_that_do_not_slow_each_other_down_show_no_limit() {
        assert_eq!(bus_limit(10.0, 20.0, 2, 100.0), 20.0 * FAR_ABOVE);
        assert_eq!(bus_limit(10.0, 21.0, 2, 100.0), 21.0 * FAR_ABOVE);
    }
}
