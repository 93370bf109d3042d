//! What a step of each kernel takes on this machine: from runs of each kernel alone, with other parameters than those
//! that are checked.
//!
//! Every constant is a difference between two runs that differ in one thing (how often, or how many steps), so that
//! what both have in common falls out. None comes from a run beside another program.

use cosched_core::statistics::median;
use cosched_sim::Hardware;
use cosched_sim::model::Mix;
use serde::Serialize;

use super::program::{Kernel, MISSES_PER_LINE, Program};
use crate::sim::measure;

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Differences of times that are mostly noise can come out negative, and nothing takes less than nothing.
const LEAST: f64 = 1e-3;

/// Nanoseconds unless another thing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Constants {
    /// From the order to start until a program has ended that does nothing else.
    empty: f64,
    /// Of a barrier that nobody is late for, and of one step before it, with as many threads as CPUs.
    barrier: f64,
    barrier_step: f64,
    /// Of a lock that nobody else wants, and of one step, with one thread.
    lock: f64,
    lock_step: f64,
    /// CPU time of one block of `compute`, with one thread and with as many as CPUs.
    block: [f64; 2],
    /// CPU time to touch a mebibyte of triad's arrays first.
    pub(super) touch: f64,
    /// Of one line of triad, with one thread: in the cache, and from memory.
    line_cached: f64,
    line: f64,
    /// Of a waiting thread, to look once.
    pub(super) spin_turn: f64,
}

/// The runs alone that the constants come from.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    programs: Vec<Program>,
    /// Seconds, for each program.
    samples: Vec<Vec<f64>>,
}

impl Runs {
    /// For a machine of so many CPUs; `scale` times the work.
    pub(super) fn new(cpus: u16, scale: f64) -> Runs {
        let kernels = [
            (Kernel::Compute, 1, 0.04),
            (Kernel::Compute, cpus, 0.08),
            (Kernel::Barriers { grain: 60.0 }, cpus, 0.08),
            (Kernel::Barriers { grain: 600.0 }, cpus, 0.08),
            (Kernel::Lock { hold: 200.0, gap: 500.0 }, 1, 0.04),
            (Kernel::Lock { hold: 700.0, gap: 6000.0 }, 1, 0.04),
            (Kernel::Triad { mebibytes: 1.0 }, 1, 0.02),
            (Kernel::Triad { mebibytes: 72.0 }, 1, 0.04),
        ];
        // Each with some work, and with three times as much.
        let twice = |(kernel, threads, work)| {
            [1.0, 3.0].map(|times| Program { kernel, threads, work: work * scale * times })
        };
        let programs: Vec<Program> = kernels.into_iter().flat_map(twice).collect();
        Runs { samples: vec![Vec::new(); programs.len()], programs }
    }

    pub(super) fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// A run of the program at this position has taken so long.
    pub(super) fn note(&mut self, position: usize, seconds: f64) {
        self.samples[position].push(seconds);
    }

    /// The constants; `None` while a program has no sample.
    pub(super) fn constants(&self) -> Option<Constants> {
        let times: Option<Vec<f64>> =
            self.samples.iter().map(|samples| Some(median(samples)? * 1e9)).collect();
        let times = times?;
        // From a pair of programs that differ in how much they do: what all have in common, and what one round takes.
        let pair = |first: usize| {
            let (few, many) = (self.programs[first], self.programs[first + 1]);
            let round = (times[first + 1] - times[first]) / (many.rounds() - few.rounds());
            (times[first] - round * few.rounds(), round)
        };
        let steps = |first: usize| self.programs[first].steps().iter().sum::<f64>();
        // From two pairs that differ in how many steps a round has: what a round takes without any, and one step.
        let line = |first: usize| {
            let (a, b) = (pair(first).1, pair(first + 2).1);
            let step = (b - a) / (steps(first + 2) - steps(first));
            (a - step * steps(first), step)
        };
        let (empty, alone) = pair(0);
        let cpus = f64::from(self.programs[2].threads);
        let ((barrier, barrier_step), (lock, lock_step)) = (line(4), line(8));
        let (touched, sweep) = pair(14);
        let big = self.programs[14];
        let Kernel::Triad { mebibytes } = big.kernel else { return None };
        let least = |nanos: f64| nanos.max(LEAST);
        Some(Constants {
            empty: least(empty),
            barrier: least(barrier),
            barrier_step: least(barrier_step),
            lock: least(lock),
            lock_step: least(lock_step),
            block: [alone, pair(2).1 * cpus].map(least),
            touch: least((touched - empty) / mebibytes),
            line_cached: least(pair(12).1 / self.programs[12].lines()),
            line: least(sweep / big.lines()),
            spin_turn: measure::spin_turn(),
        })
    }
}

impl Constants {
    /// Whether the runs alone contradict each other: more of the same took less time.
    pub(super) fn are_doubtful(&self) -> bool {
        let steps = [self.barrier_step, self.lock_step, self.line_cached, self.line];
        steps.iter().chain(&self.block).any(|nanos| *nanos <= LEAST)
    }

    /// What a program does before its own work, beside what the simulator has for a start.
    pub(super) fn start_nanos(&self, hardware: &Hardware) -> f64 {
        self.empty - hardware.own.start.0 as f64
    }

    /// From one barrier to the next.
    pub(super) fn round(&self, steps: f64) -> f64 {
        self.barrier + self.barrier_step * steps
    }

    /// Without the lock and with it: taking it counts to the one, giving it back to the other.
    pub(super) fn turn(&self, [outside, inside]: [f64; 2]) -> [f64; 2] {
        [outside, inside].map(|steps| self.lock / 2.0 + self.lock_step * steps)
    }

    /// CPU time of a block of `compute`.
    pub(super) fn block(&self, threads: u16) -> f64 {
        self.block[usize::from(threads > 1)]
    }

    /// How triad's lines behave: in the cache one takes its base time, and from memory as much longer as was seen with
    /// one thread; that gives how many accesses are on their way at once.
    pub(super) fn line(&self, hardware: &Hardware) -> Mix {
        let bus = hardware.buses.iter().map(|bus| bus.bytes_per_nano).fold(f64::INFINITY, f64::min);
        let service = LINE / bus;
        let busy = (MISSES_PER_LINE * service / self.line).min(0.999);
        let access = hardware.memory_nanos + service / 2.0 * busy / (1.0 - busy);
        let waiting = (self.line - self.line_cached).max(0.01 * self.line);
        Mix {
            base_cpi: self.line_cached * hardware.gigahertz,
            misses: MISSES_PER_LINE,
            misses_without_cache: MISSES_PER_LINE,
            footprint: 0.0,
            parallelism: MISSES_PER_LINE * access / waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_made_up_runs_comes_out_of_them() {
        let mut runs = Runs::new(4, 1.0);
        assert_eq!(runs.constants(), None);
        let expected = Constants {
            empty: 2e6,
            barrier: 400.0,
            barrier_step: 1.5,
            lock: 50.0,
            lock_step: 1.4,
            block: [7e4, 8e4],
            touch: 3e4,
            line_cached: 2.0,
            line: 20.0,
            spin_turn: 0.0,
        };
        for (position, program) in runs.programs.clone().into_iter().enumerate() {
            let steps: f64 = program.steps().iter().sum();
            let round = match program.kernel {
                Kernel::Barriers { .. } => expected.round(steps),
                Kernel::Lock { .. } => expected.lock + expected.lock_step * steps,
                Kernel::Compute => expected.block(program.threads) / f64::from(program.threads),
                Kernel::Triad { mebibytes: 72.0 } => expected.line * program.lines(),
                Kernel::Triad { .. } => expected.line_cached * program.lines(),
            };
            let touch = match program.kernel {
                Kernel::Triad { mebibytes } => expected.touch * mebibytes,
                _ => 0.0,
            };
            let nanos = expected.empty + touch + program.rounds() * round;
            // Two runs that others have slowed down do not move the median of five.
            [1.0, 1.0, 3.0, 1.0, 2.0]
                .iter()
                .for_each(|slow| runs.note(position, slow * nanos * 1e-9));
        }
        let found = runs.constants().unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{a} instead of {b}");
        near(found.empty, expected.empty);
        near(found.round(1e3), expected.round(1e3));
        near(found.turn([1e3, 0.0])[0], expected.turn([1e3, 0.0])[0]);
        near(found.block(1), expected.block(1));
        near(found.block(4), expected.block(4));
        near(found.touch, expected.touch);
        near(found.line, expected.line);
        near(found.line_cached, expected.line_cached);
    }
}
