//! How fast CPUs compute.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cosched_core::{Level, Topology};

use super::{Effort, median, on_each};
use crate::ui::failure::Failure;

/// Of one step of [`chain`]: three operations of one cycle each, every one of which needs the
/// result of the one before.
const CYCLES_PER_STEP: f64 = 3.0;
const STEPS: usize = 4_000_000;
/// Chains in [`chains`]: as many as a core can work on at once.
const CHAINS: usize = 4;

/// Cycles per nanosecond, with all CPUs at work: what programs beside each other have.
pub(super) fn gigahertz(cpus: &[usize], effort: Effort) -> Result<f64, Failure> {
    let steps = STEPS / effort.less;
    let together = Barrier::new(cpus.len());
    let speeds = on_each(cpus, |_| {
        together.wait();
        CYCLES_PER_STEP * steps as f64 / nanos(effort.repetitions, || chain(steps))
    })?;
    Ok(speeds.iter().sum::<f64>() / speeds.len() as f64)
}

/// What one of two SMT siblings gets done while both are busy, over what it does alone; `None`
/// where no core shows two of its siblings.
pub(super) fn smt_share(topology: &Topology, effort: Effort) -> Result<Option<f64>, Failure> {
    let cpus = topology.cpus();
    let sibling = |cpu: &cosched_core::Cpu| {
        let other = |other: &&cosched_core::Cpu| {
            other.id != cpu.id && other.group(Level::Core) == cpu.group(Level::Core)
        };
        cpus.iter().find(other).map(|other| [cpu.id, other.id])
    };
    let Some(pair) = cpus.iter().find_map(sibling) else { return Ok(None) };
    let steps = STEPS / effort.less;
    let time = |on: &[usize]| -> Result<f64, Failure> {
        let together = Barrier::new(on.len());
        let times = on_each(on, |_| {
            together.wait();
            nanos(effort.repetitions, || chains(steps))
        })?;
        Ok(times.iter().sum::<f64>() / times.len() as f64)
    };
    Ok(Some((time(&pair[..1])? / time(&pair)?).min(1.0)))
}

/// What one turn of a loop takes that looks whether a value has changed and tells the CPU that it
/// is waiting, nanoseconds.
pub(crate) fn spin_turn() -> f64 {
    const TURNS: usize = 200_000;
    let value = AtomicU64::new(0);
    let turns = || {
        for _ in 0..TURNS {
            if black_box(&value).load(Ordering::Relaxed) != 0 {
                break;
            }
            spin_loop();
        }
    };
    nanos(9, turns) / TURNS as f64
}

fn chain(steps: usize) -> u64 {
    let (mut x, key) = (black_box(1_u64), black_box(0x9e37_79b9_7f4a_7c15));
    for _ in 0..steps {
        x = (x ^ key).rotate_left(7).wrapping_add(key);
    }
    x
}

/// Several chains that do not need each other, so that a core is busy and not only waiting for
/// results.
fn chains(steps: usize) -> [u64; CHAINS] {
    let (mut all, key) = (black_box([1_u64; CHAINS]), black_box(0x9e37_79b9_7f4a_7c15));
    for _ in 0..steps / CHAINS {
        for x in &mut all {
            *x = (*x ^ key).rotate_left(7).wrapping_add(key);
        }
    }
    all
}

/// The median time of some work.
fn nanos<T>(repetitions: usize, work: impl Fn() -> T) -> f64 {
    let one = |_| {
        let since = Instant::now();
        black_box(work());
        since.elapsed().as_nanos() as f64
    };
    median(&(0..repetitions).map(one).collect::<Vec<f64>>())
}
