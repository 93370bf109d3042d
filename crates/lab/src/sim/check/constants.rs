//! What a step of each kernel takes on this machine: from runs of each kernel alone, with other
//! parameters than those that are checked.
//!
//! Every constant is a difference between two runs that differ in one thing (whether there is any
//! work, or how much), so that what both have in common falls out. None comes from a run beside
//! another program.

use cosched_core::Nanos;
use cosched_results::statistics::median;
use cosched_sim::model::Mix;
use cosched_sim::{Costs, Hardware};
use serde::Serialize;

use super::program::{KernelProgram, KernelRun, MISSES_PER_LINE};
use crate::alone::SoloRun;
use crate::sim::measure;

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Differences of times that are mostly noise can come out negative, and nothing takes less than
/// nothing.
const LEAST: f64 = 1e-3;
/// How busy one thread can keep a bus, and which share of its time it waits for memory at least:
/// what keeps nonsense from busy machines within what the simulator can price.
const FULLEST: f64 = 0.95;
const LEAST_WAITING: f64 = 0.1;

/// Nanoseconds unless another thing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Constants {
    /// From the order to start until a program has ended that does nothing else.
    empty: f64,
    /// Of a barrier that no thread is late for, and of one step before it, with as many threads as
    /// CPUs.
    barrier: f64,
    barrier_step: f64,
    /// Of a lock without other waiters, and of one step, with one thread.
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
    /// Switches of a program that does nothing else: it waits for its own pages, and for its end to
    /// be noticed.
    pub(super) switches: f64,
    /// How often others interrupt a program that never waits, per second of its CPU time.
    pub(super) interruptions: f64,
}

/// Which of the programs of [`ConstantRuns::new`] tells what.
const EMPTY: usize = 0;
const BLOCK: [usize; 2] = [1, 2];
const BARRIERS: [usize; 2] = [3, 4];
const LOCKS: [usize; 2] = [5, 6];
const CACHED: usize = 7;
const STREAMS: [usize; 2] = [8, 9];

/// The runs alone that the constants come from.
#[derive(Clone, Debug)]
pub(super) struct ConstantRuns {
    programs: Vec<KernelRun>,
    /// For each program, nanoseconds and switches of each run.
    samples: Vec<Vec<[f64; 2]>>,
}

impl ConstantRuns {
    /// For a machine of so many CPUs; `scale` times the work.
    pub(super) fn new(cpus: u16, scale: f64) -> ConstantRuns {
        let triad = KernelProgram::Triad { mebibytes: 72.0 };
        let programs = [
            (KernelProgram::Compute, 1, 1e-4 / scale),
            (KernelProgram::Compute, 1, 0.12),
            (KernelProgram::Compute, cpus, 0.24),
            (KernelProgram::Barriers { grain: 5.0 }, cpus, 0.15),
            (KernelProgram::Barriers { grain: 600.0 }, cpus, 0.2),
            (KernelProgram::Lock { hold: 200.0, gap: 500.0 }, 1, 0.08),
            (KernelProgram::Lock { hold: 700.0, gap: 6000.0 }, 1, 0.1),
            (KernelProgram::Triad { mebibytes: 1.0 }, 1, 0.1),
            (triad, 1, 0.02),
            // However little is asked for, more often over its arrays than the one before.
            (triad, 1, f64::max(0.15, 0.03 / scale)),
        ];
        let programs = programs.map(|(kernel, threads, work)| KernelRun {
            kernel,
            threads,
            work: work * scale,
        });
        ConstantRuns { programs: programs.to_vec(), samples: vec![Vec::new(); programs.len()] }
    }

    pub(super) fn programs(&self) -> &[KernelRun] {
        &self.programs
    }

    /// The program at this position has run.
    pub(super) fn note(&mut self, position: usize, alone: &SoloRun) {
        self.samples[position].push([alone.turnaround.0 as f64, alone.switches as f64]);
    }

    /// The constants; `None` while a program has no sample.
    pub(super) fn constants(&self) -> Option<Constants> {
        let of = |which: usize| {
            let column = |samples: &Vec<[f64; 2]>| {
                median(&samples.iter().map(|sample| sample[which]).collect::<Vec<f64>>())
            };
            self.samples.iter().map(column).collect::<Option<Vec<f64>>>()
        };
        let (times, switches) = (of(0)?, of(1)?);
        let empty = times[EMPTY];
        // What a run takes beside its start, over its rounds.
        let round = |i: usize| (times[i] - empty) / self.programs[i].rounds();
        // From two programs that differ in how many steps a round has: what a round takes without
        // any, and one step.
        let line = |[few, many]: [usize; 2]| {
            let steps = |i: usize| self.programs[i].steps().iter().sum::<f64>();
            let step = (round(many) - round(few)) / (steps(many) - steps(few));
            (round(few) - step * steps(few), step)
        };
        let ((barrier, barrier_step), (lock, lock_step)) = (line(BARRIERS), line(LOCKS));
        let more = BLOCK.map(|i| (switches[i] - switches[EMPTY]).max(0.0));
        let cpu_time = BLOCK.map(|i| (times[i] - empty) * f64::from(self.programs[i].threads));
        let block = BLOCK.map(|i| round(i) * f64::from(self.programs[i].threads));
        // From two programs that differ in how often they go over the same arrays: once over, and
        // the first touch.
        let [few, many] = STREAMS.map(|i| (times[i], self.programs[i].rounds()));
        let sweep = (many.0 - few.0) / (many.1 - few.1);
        let touched = few.0 - sweep * few.1 - empty;
        let big = self.programs[STREAMS[0]];
        let KernelProgram::Triad { mebibytes } = big.kernel else { return None };
        let least = |value: f64| value.max(LEAST);
        Some(Constants {
            empty: least(empty),
            barrier: least(barrier),
            barrier_step: least(barrier_step),
            lock: least(lock),
            lock_step: least(lock_step),
            block: block.map(least),
            touch: least(touched / mebibytes),
            line_cached: least(round(CACHED) / self.programs[CACHED].lines()),
            line: least(sweep / big.lines()),
            spin_turn: measure::spin_turn(),
            switches: switches[EMPTY],
            interruptions: more.iter().sum::<f64>() / cpu_time.iter().sum::<f64>().max(LEAST) * 1e9,
        })
    }
}

impl Constants {
    /// Whether the runs alone contradict each other: more of the same took less time.
    pub(super) fn are_doubtful(&self) -> bool {
        let steps = [self.barrier_step, self.lock_step, self.line_cached, self.line];
        steps.iter().chain(&self.block).any(|nanos| *nanos <= LEAST)
    }

    /// What a program does before its own work, beside what the simulator has for a start: alone,
    /// programs run in cgroups.
    pub(super) fn start_nanos(&self, hardware: &Hardware) -> f64 {
        self.empty - (hardware.own.start + hardware.own.join).0 as f64
    }

    /// The machine as programs find it. cosched and the programs themselves give the kernel more to
    /// do at its ticks than it has while no program starts or ends. No program joins a cgroup later
    /// than a program that does nothing ends.
    pub(super) fn machine(&self, measured: Hardware) -> Hardware {
        let others = (self.interruptions - measured.interruptions_per_second).max(0.0);
        let empty = Nanos(self.empty as u64);
        let join = measured.own.join.min(empty.since(measured.own.start));
        let own = Costs { join, ..measured.own };
        Hardware { housekeeping_per_second: others, own, ..measured }
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

    /// How triad's lines behave: in the cache one takes its base time, and from memory as much
    /// longer as was seen with one thread; that gives how many accesses are on their way at once.
    pub(super) fn line(&self, hardware: &Hardware) -> Mix {
        let bus = hardware.buses.iter().map(|bus| bus.bytes_per_nano).fold(f64::INFINITY, f64::min);
        let service = LINE / bus;
        // No thread moves more than the bus gives, whatever a busy machine made of the runs alone.
        let line = self.line.max(MISSES_PER_LINE * service / FULLEST);
        let busy = MISSES_PER_LINE * service / line;
        let access = hardware.memory_nanos + service / 2.0 * busy / (1.0 - busy);
        let waiting = (line - self.line_cached).max(LEAST_WAITING * line);
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
    use cosched_sim::model::Op;

    use super::*;

    const MADE_UP: Constants = Constants {
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
        switches: 5.0,
        interruptions: 40.0,
    };

    #[test]
    fn what_goes_into_made_up_runs_comes_out_of_them() {
        let mut runs = ConstantRuns::new(4, 1.0);
        assert_eq!(runs.constants(), None);
        let expected = MADE_UP;
        for (position, program) in runs.programs.clone().into_iter().enumerate() {
            let steps: f64 = program.steps().iter().sum();
            let round = match program.kernel {
                KernelProgram::Barriers { .. } => expected.round(steps),
                KernelProgram::Lock { .. } => expected.lock + expected.lock_step * steps,
                KernelProgram::Compute => {
                    expected.block(program.threads) / f64::from(program.threads)
                }
                KernelProgram::Triad { mebibytes: 72.0 } => expected.line * program.lines(),
                KernelProgram::Triad { .. } => expected.line_cached * program.lines(),
            };
            let touch = match program.kernel {
                KernelProgram::Triad { mebibytes } => expected.touch * mebibytes,
                _ => 0.0,
            };
            let work = if position == EMPTY { 0.0 } else { touch + program.rounds() * round };
            let nanos = expected.empty + work;
            // Two runs that others have slowed down do not move the median of five.
            let busy = if program.kernel == KernelProgram::Compute { work } else { 0.0 };
            let others = expected.interruptions * busy * f64::from(program.threads) * 1e-9;
            for slow in [1.0, 1.0, 3.0, 1.0, 2.0] {
                runs.samples[position].push([slow * nanos, slow * (expected.switches + others)]);
            }
        }
        let found = runs.constants().unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{a} instead of {b}");
        near(found.empty, expected.empty);
        near(found.round(1e3), expected.round(1e3));
        near(found.turn([1e3, 0.0])[0], expected.turn([1e3, 0.0])[0]);
        near(found.block(1), expected.block(1));
        near(found.block(4), expected.block(4));
        near(found.switches, expected.switches);
        near(found.interruptions, expected.interruptions);
        near(found.touch, expected.touch);
        near(found.line, expected.line);
        // A mebibyte that is touched once weighs little in many rounds over it.
        assert!(found.line_cached < 1.01 * expected.line_cached, "{found:?}");
    }

    #[test]
    fn the_machines_own_costs_come_from_measurements() {
        let measured = Hardware::named("e5410-8").unwrap();
        let own = Costs { start: Nanos(500_000), join: Nanos(9_000_000), ..measured.own };
        let measured = Hardware { own, interruptions_per_second: 15.0, ..measured };
        let machine = MADE_UP.machine(measured);
        assert_eq!(
            (machine.interruptions_per_second, machine.housekeeping_per_second),
            (15.0, 25.0)
        );
        // The program that does nothing took two milliseconds.
        assert_eq!(machine.own.join, Nanos(1_500_000));
        assert_eq!(MADE_UP.start_nanos(&machine), 0.0);
    }

    #[test]
    fn compared_programs_differ_even_if_short() {
        for scale in [1.0, 0.05] {
            let rounds = STREAMS.map(|i| ConstantRuns::new(2, scale).programs[i].rounds());
            assert!(rounds[0] < rounds[1], "{rounds:?}");
        }
    }

    #[test]
    fn nonsense_from_a_busy_machine_gives_lines_that_can_be_priced() {
        let hardware = Hardware::named("e5410-8").unwrap();
        let nonsense = Constants { line: LEAST, line_cached: 3.0, ..Constants::default() };
        let mix = nonsense.line(&hardware);
        assert!(mix.parallelism > 0.0 && mix.parallelism < 1000.0, "{mix:?}");
    }

    #[test]
    fn every_kernel_has_a_model_with_rounds_and_a_main_thread() {
        let hardware = Hardware::named("e5410-8").unwrap();
        let kernels = [
            (KernelProgram::Barriers { grain: 300.0 }, 1, 0),
            (KernelProgram::Lock { hold: 300.0, gap: 1000.0 }, 0, 1),
            (KernelProgram::Compute, 1, 0),
            (KernelProgram::Triad { mebibytes: 96.0 }, 1, 0),
        ];
        for (kernel, barriers, sections) in kernels {
            let program = KernelRun { kernel, threads: 2, work: 0.1 };
            let model = program.model(&MADE_UP, &hardware).unwrap();
            let rounds = program.rounds();
            let repeats =
                |op: &&Op| matches!(op, Op::Repeat { times, .. } if f64::from(*times) == rounds);
            let count = |is: &dyn Fn(&&Op) -> bool| model.script.iter().filter(is).count();
            assert_eq!(
                count(&repeats),
                usize::from(kernel != KernelProgram::Compute),
                "{kernel:?}"
            );
            assert_eq!(count(&|op| matches!(op, Op::Acquire(_))), sections, "{kernel:?}");
            assert_eq!((model.script[1], model.barriers), (Op::Create, barriers), "{kernel:?}");
        }
    }
}
