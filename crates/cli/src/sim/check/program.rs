//! The kernels of `workloads/src` as commands and as models.
//!
//! A model says what the source says: how many rounds of how many steps, with a barrier or a lock after each, and how
//! waiting threads wait. What a step takes on this machine is a [constant](super::constants), from runs
//! alone. The figures that sources and models share stand here once more, each with the place where it is defined.

use std::path::Path;

use cosched_core::Nanos;
use cosched_sim::model::{Mix, Op};
use cosched_sim::{Hardware, Model};

use super::constants::Constants;

/// random.h: `STEPS_PER_MICROSECOND`.
const STEPS_PER_MICROSECOND: f64 = 700.0;
/// common.h: `MEBIBYTES` of the three arrays of triad; bytes of a number in each of them.
const MEBIBYTE: f64 = 1_048_576.0;
const BYTES_PER_NUMBER: f64 = 24.0;
/// triad.c: `LINE`, the numbers that are worked on at once, and how many lines of memory that moves: two are read, one
/// is fetched before it is written, and written back.
const NUMBERS_PER_LINE: f64 = 8.0;
pub(super) const MISSES_PER_LINE: f64 = 4.0;
/// libgomp (env.c): how often a waiting thread looks before it sleeps, where `OMP_WAIT_POLICY` is not set and threads are
/// not more than CPUs. Set explicitly, so that no setting of the user's changes it.
pub(super) const SPINS: u32 = 300_000;

/// One of the kernels, with its knobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kernel {
    /// barrier-storm: microseconds between two barriers.
    Barriers { grain: f64 },
    /// lock-loop: nanoseconds with the lock and without.
    Lock { hold: f64, gap: f64 },
    /// compute.
    Compute,
    /// triad: the size of its arrays.
    Triad { mebibytes: f64 },
}

/// A run of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Program {
    pub(super) kernel: Kernel,
    pub(super) threads: u16,
    /// 1 is about a second on two CPUs.
    pub(super) work: f64,
}

impl Program {
    /// The name of its executable.
    pub(super) fn name(&self) -> &'static str {
        match self.kernel {
            Kernel::Barriers { .. } => "barrier-storm",
            Kernel::Lock { .. } => "lock-loop",
            Kernel::Compute => "compute",
            Kernel::Triad { .. } => "triad",
        }
    }

    /// How it is started.
    pub(super) fn command(&self, folder: &Path) -> Vec<String> {
        let knobs = match self.kernel {
            Kernel::Barriers { grain } => vec![("--grain", grain)],
            Kernel::Lock { hold, gap } => vec![("--hold", hold), ("--gap", gap)],
            Kernel::Compute => vec![],
            Kernel::Triad { mebibytes } => vec![("--mebibytes", mebibytes)],
        };
        let common = [("--threads", f64::from(self.threads)), ("--work", self.work)];
        let options = common.into_iter().chain(knobs);
        let words = options.flat_map(|(option, value)| [option.to_owned(), value.to_string()]);
        [folder.join(self.name()).display().to_string()].into_iter().chain(words).collect()
    }

    /// How often its loop is gone through, by each thread: rounds, turns, sweeps; of compute the blocks of all threads.
    pub(super) fn rounds(&self) -> f64 {
        let size = f64::from(self.threads);
        let rounds = match self.kernel {
            // barrier-storm.c and lock-loop.c: "The sum over the threads stays".
            Kernel::Barriers { grain } => self.work * 1.85e6 / (grain + 0.3) / size,
            Kernel::Lock { hold, gap } => self.work * 2e9 / (hold + gap + 60.0) / size,
            Kernel::Compute => self.work * 14_000.0,
            Kernel::Triad { mebibytes } => {
                return 2.0 * (self.work * 8500.0 / mebibytes).floor().max(1.0);
            }
        };
        rounds.floor().max(1.0)
    }

    /// How many steps of the random walk are in one of its rounds; those under the lock apart.
    pub(super) fn steps(&self) -> [f64; 2] {
        match self.kernel {
            Kernel::Barriers { grain } => [(grain * STEPS_PER_MICROSECOND).floor(), 0.0],
            Kernel::Lock { hold, gap } => {
                [gap, hold].map(|nanos| (nanos * STEPS_PER_MICROSECOND / 1e3).floor())
            }
            Kernel::Compute | Kernel::Triad { .. } => [0.0; 2],
        }
    }

    /// How many lines of its arrays triad works on in a sweep, all threads together.
    pub(super) fn lines(&self) -> f64 {
        match self.kernel {
            Kernel::Triad { mebibytes } => {
                (mebibytes * MEBIBYTE / BYTES_PER_NUMBER / NUMBERS_PER_LINE).floor()
            }
            _ => 0.0,
        }
    }

    /// What the simulator takes it for on this machine. Instructions are such that one takes a cycle.
    pub(super) fn model(&self, constants: &Constants, hardware: &Hardware) -> Model {
        let instructions = |nanos: f64| nanos.max(0.0) * hardware.gigahertz;
        let plain = Mix::computing(1.0);
        let size = f64::from(self.threads);
        let rounds = self.rounds() as u32;
        let compute = |nanos: f64| Op::Compute { instructions: instructions(nanos), mix: 0 };
        // What comes before there is a team: the first thread does it alone.
        let start = compute(constants.start_nanos(hardware));
        let again = |from: u32| Op::Repeat { from, times: rounds, counter: 0 };
        let team = Model {
            spin: Nanos((constants.spin_turn * f64::from(SPINS)) as u64),
            barriers: 1,
            ..Model::parallel(self.threads, 0.0, plain)
        };
        match self.kernel {
            Kernel::Barriers { .. } => {
                // What a spinning thread learns late is the simulator's own cost of a signal.
                let signal = if self.threads > 1 { hardware.signal_nanos[1] } else { 0.0 };
                let round = constants.round(self.steps()[0]) - signal;
                Model {
                    script: vec![start, Op::Create, compute(round), Op::Barrier(0), again(2)],
                    ..team
                }
            }
            Kernel::Lock { .. } => {
                let [outside, inside] = constants.turn(self.steps());
                let script = vec![
                    start,
                    Op::Create,
                    compute(outside),
                    Op::Acquire(0),
                    compute(inside),
                    Op::Release(0),
                    again(2),
                ];
                // A mutex of glibc does not spin.
                Model { script, locks: 1, spin: Nanos::ZERO, barriers: 0, ..team }
            }
            Kernel::Compute => {
                let share = constants.block(self.threads) * self.rounds() / size;
                Model { script: vec![start, Op::Create, compute(share), Op::Barrier(0)], ..team }
            }
            Kernel::Triad { mebibytes } => {
                let touch = compute(constants.touch * mebibytes / size);
                // One "instruction" for each line.
                let sweep = Op::Compute { instructions: self.lines() / size, mix: 1 };
                // A parallel loop: everybody waits for everybody at its end, and for the master at the next one's start.
                let script =
                    vec![start, Op::Create, touch, sweep, Op::Barrier(0), Op::Barrier(0), again(3)];
                Model { script, mixes: vec![plain, constants.line(hardware)], ..team }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_knobs_of_its_kernel_and_a_model_the_rounds_of_its_source() {
        let kernel = Kernel::Lock { hold: 300.0, gap: 1000.0 };
        let program = Program { kernel, threads: 2, work: 0.5 };
        let command = program.command(Path::new("/k")).join(" ");
        assert_eq!(command, "/k/lock-loop --threads 2 --work 0.5 --hold 300 --gap 1000");
        // 0.5 x 2e9 / 1360 / 2, and 700 steps for a microsecond.
        assert_eq!((program.rounds(), program.steps()), (367_647.0, [700.0, 210.0]));
        let triad = Program { kernel: Kernel::Triad { mebibytes: 96.0 }, threads: 2, work: 0.1 };
        assert_eq!((triad.rounds(), triad.lines()), (16.0, 524_288.0));
    }
}
