//! Programs that stream through memory side by side, as the variants of STREAM in the thesis do
//! (section 3.3, codes 3.1 and 3.2).
//!
//! Each thread runs the triad over arrays of its own that no cache holds. Additions in registers
//! after each cache line make variants that take less of the memory's bandwidth. All threads stream
//! for the whole time, so each figure is of a time in which all others ran, too.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::memory::{LINE, LINES_MOVED, NUMBERS_PER_LINE, beyond_caches};
use super::on_each;
use crate::ui::failure::Failure;

/// Cache lines between two looks at the clock.
const BLOCK: usize = 512;
/// This part of the time passes before counting begins: one over this.
const WARMING: u32 = 5;

/// One of the programs: a thread on each of its CPUs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stream {
    pub(crate) cpus: Vec<usize>,
    /// Additions after each cache line of the result.
    pub(crate) additions: u32,
}

/// How many bytes programs on these CPUs take together.
pub(crate) fn memory_of_streams(cpus: &[usize]) -> u64 {
    (bytes_of_thread(cpus) * cpus.len()) as u64
}

/// The bytes of the arrays of each thread, where one streams on each of these CPUs.
pub(crate) fn bytes_of_thread(cpus: &[usize]) -> usize {
    beyond_caches(cpus, cpus.len())
}

/// What each of these programs moves between caches and memory while all of them run for so long,
/// GB/s. No two share a CPU.
pub(crate) fn streams(all: &[Stream], window: Duration) -> Result<Vec<f64>, Failure> {
    let cpus: Vec<usize> = all.iter().flat_map(|stream| &stream.cpus).copied().collect();
    let bytes = bytes_of_thread(&cpus);
    let together = Barrier::new(cpus.len());
    let additions = |cpu: usize| {
        let own = all.iter().find(|stream| stream.cpus.contains(&cpu));
        own.map_or(0, |stream| stream.additions)
    };
    let rates = on_each(&cpus, |cpu| thread(bytes, additions(cpu), window, &together))?;
    let rate = |cpu: &usize| cpus.iter().position(|other| other == cpu).map_or(0.0, |i| rates[i]);
    Ok(all.iter().map(|stream| stream.cpus.iter().map(rate).sum()).collect())
}

/// What one thread moves, GB/s.
fn thread(bytes: usize, additions: u32, window: Duration, together: &Barrier) -> f64 {
    let block = BLOCK * NUMBERS_PER_LINE;
    let numbers = (bytes / 24 / block).max(1) * block;
    let (mut a, b, c) = (vec![1.0; numbers], vec![2.0; numbers], vec![3.0; numbers]);
    together.wait();
    let began = Instant::now();
    let (mut counted_from, mut blocks, mut sum) = (None, 0_usize, 0.0);
    let mut at = 0;
    loop {
        let now = began.elapsed();
        match counted_from {
            None if now >= window / WARMING => counted_from = Some(now),
            Some(from) if now >= window + window / WARMING && blocks > 0 => {
                black_box((&a, sum));
                let moved = LINES_MOVED * LINE * (blocks * BLOCK) as f64;
                return moved / (now - from).as_nanos() as f64;
            }
            _ => {}
        }
        let range = at..at + block;
        let lines = a[range.clone()].chunks_exact_mut(NUMBERS_PER_LINE);
        let lines = lines.zip(b[range.clone()].chunks_exact(NUMBERS_PER_LINE));
        for ((a, b), c) in lines.zip(c[range].chunks_exact(NUMBERS_PER_LINE)) {
            for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                *a = b + 3.0 * c;
            }
            for _ in 0..additions {
                sum += 1.0;
            }
        }
        blocks += usize::from(counted_from.is_some());
        at = (at + block) % numbers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is counted is real: no time decides, only that there are figures for each program.
    #[test]
    fn every_stream_has_a_rate_of_its_own() {
        let cpu = cosched_linux::kernel::affinity::get(0).unwrap().iter().next().unwrap();
        let one = [Stream { cpus: vec![cpu], additions: 3 }];
        let rates = streams(&one, Duration::from_millis(5)).unwrap();
        assert!(rates.len() == 1 && rates[0] > 0.0 && rates[0].is_finite(), "{rates:?}");
    }
}
