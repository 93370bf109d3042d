//! The kernels of `workloads/src` as commands and as models.
//!
//! A model says what the source says: how many rounds of how many steps, with a barrier or a lock
//! after each, and how waiting threads wait. What a step takes on this machine is a
//! [constant](super::constants), from runs alone. The figures that sources and models share stand
//! here once more, each with the place where it is defined.

use std::path::Path;

use cosched_sim::{Hardware, Model, ModelError};

use super::constants::Constants;

/// random.h: `STEPS_PER_MICROSECOND`.
const STEPS_PER_MICROSECOND: f64 = 700.0;
/// common.h: `MEBIBYTES` of the three arrays of triad; bytes of a number in each of them.
const MEBIBYTE: f64 = 1_048_576.0;
const BYTES_PER_NUMBER: f64 = 24.0;
/// triad.c: `LINE`, the numbers that are worked on at once, and how many lines of memory that
/// moves: two are read, one is fetched before it is written, and written back.
const NUMBERS_PER_LINE: f64 = 8.0;
pub(super) const MISSES_PER_LINE: f64 = 4.0;
/// libgomp (env.c): how often a waiting thread looks before it sleeps, where `OMP_WAIT_POLICY` is
/// not set and threads are not more than CPUs. Set explicitly, so that no setting of the user's
/// changes it.
pub(super) const SPINS: u32 = 300_000;

/// One of the kernels, with its knobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KernelProgram {
    /// barrier-storm: microseconds between two barriers.
    Barriers { grain: f64 },
    /// lock-loop: nanoseconds with the lock and without.
    Lock { hold: f64, gap: f64 },
    /// compute.
    Compute,
    /// triad: the size of its arrays.
    Triad { mebibytes: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KernelRun {
    pub(super) kernel: KernelProgram,
    pub(super) threads: u16,
    /// 1 is about a second on two CPUs.
    pub(super) work: f64,
}

impl KernelRun {
    pub(super) fn name(&self) -> &'static str {
        match self.kernel {
            KernelProgram::Barriers { .. } => "barrier-storm",
            KernelProgram::Lock { .. } => "lock-loop",
            KernelProgram::Compute => "compute",
            KernelProgram::Triad { .. } => "triad",
        }
    }

    pub(super) fn command(&self, folder: &Path) -> Vec<String> {
        let knobs = match self.kernel {
            KernelProgram::Barriers { grain } => vec![("--grain", grain)],
            KernelProgram::Lock { hold, gap } => vec![("--hold", hold), ("--gap", gap)],
            KernelProgram::Compute => vec![],
            KernelProgram::Triad { mebibytes } => vec![("--mebibytes", mebibytes)],
        };
        let common = [("--threads", f64::from(self.threads)), ("--work", self.work)];
        let options = common.into_iter().chain(knobs);
        let words = options.flat_map(|(option, value)| [option.to_owned(), value.to_string()]);
        [folder.join(self.name()).display().to_string()].into_iter().chain(words).collect()
    }

    /// How often its loop is gone through, by each thread: rounds, turns, sweeps; of compute the
    /// blocks of all threads.
    pub(super) fn rounds(&self) -> f64 {
        let size = f64::from(self.threads);
        let rounds = match self.kernel {
            // barrier-storm.c and lock-loop.c: "The sum over the threads stays".
            KernelProgram::Barriers { grain } => self.work * 1.85e6 / (grain + 0.3) / size,
            KernelProgram::Lock { hold, gap } => self.work * 2e9 / (hold + gap + 60.0) / size,
            KernelProgram::Compute => self.work * 14_000.0,
            KernelProgram::Triad { mebibytes } => {
                return 2.0 * (self.work * 8500.0 / mebibytes).floor().max(1.0);
            }
        };
        rounds.floor().max(1.0)
    }

    /// How many steps of the random walk are in one of its rounds; those under the lock apart.
    pub(super) fn steps(&self) -> [f64; 2] {
        match self.kernel {
            KernelProgram::Barriers { grain } => [(grain * STEPS_PER_MICROSECOND).floor(), 0.0],
            KernelProgram::Lock { hold, gap } => {
                [gap, hold].map(|nanos| (nanos * STEPS_PER_MICROSECOND / 1e3).floor())
            }
            KernelProgram::Compute | KernelProgram::Triad { .. } => [0.0; 2],
        }
    }

    /// How many lines of its arrays triad works on in a sweep, all threads together.
    pub(super) fn lines(&self) -> f64 {
        match self.kernel {
            KernelProgram::Triad { mebibytes } => {
                (mebibytes * MEBIBYTE / BYTES_PER_NUMBER / NUMBERS_PER_LINE).floor()
            }
            _ => 0.0,
        }
    }

    /// What the simulator takes it for on this machine. Instructions are such that one takes a
    /// cycle, but for triad's lines.
    pub(super) fn model(
        &self,
        constants: &Constants,
        hardware: &Hardware,
    ) -> Result<Model, ModelError> {
        let size = f64::from(self.threads);
        let rounds = self.rounds();
        // Nanoseconds of each thread.
        let instructions = |nanos: f64| nanos.max(0.0) * hardware.gigahertz * size;
        // What comes before there is a team: the first thread does it alone.
        let start = instructions(constants.start_nanos(hardware)) / size;
        // A mutex of glibc does not spin.
        let looks = if matches!(self.kernel, KernelProgram::Lock { .. }) { 0 } else { SPINS };
        let spin = (constants.spin_turn * f64::from(looks)) as u64;
        let phases = match self.kernel {
            KernelProgram::Barriers { .. } => {
                // What a spinning thread learns late is the simulator's own cost of a signal.
                let signal = if self.threads > 1 { hardware.signal_nanos[1] } else { 0.0 };
                let all = instructions(constants.round(self.steps()[0]) - signal) * rounds;
                format!("instructions = {all:e}\nbarriers = {rounds}")
            }
            KernelProgram::Lock { .. } => {
                let [outside, inside] = constants.turn(self.steps()).map(instructions);
                let (all, inside) = ((outside + inside) * rounds, inside / size);
                format!(
                    "instructions = {all:e}\n\
                     critical = {{ sections = {rounds}, instructions = {inside:e} }}"
                )
            }
            KernelProgram::Compute => {
                let all = instructions(constants.block(self.threads)) / size * rounds;
                format!("instructions = {all:e}\nbarriers = 1")
            }
            KernelProgram::Triad { mebibytes } => {
                let touch = instructions(constants.touch * mebibytes) / size;
                let (lines, mix) = (self.lines(), constants.line(hardware));
                let (cycles, misses) = (mix.base_cpi, 1e3 * mix.misses);
                // One "instruction" for each line. A parallel loop: each thread waits for all
                // at its end, and for the master, which has one line more to do, at the start of
                // the next one.
                let (serial, in_flight) = (1.0 / lines, mix.parallelism);
                format!(
                    "instructions = {touch:e}\n\n[[phase]]\nrepeat = {rounds}\ninstructions = \
                     {lines:e}\n\
                     serial = {serial:e}\nbarriers = 1\ncycles_per_instruction = {cycles:e}\n\
                     misses_per_kilo_instruction = {misses:e}\nmisses_in_flight = {in_flight:e}"
                )
            }
        };
        let head = format!("spin = \"{spin}ns\"\nstartup_instructions = {start:e}");
        Model::read(&format!("{head}\n\n[[phase]]\n{phases}").parse()?, self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_models_match_the_kernels() {
        let kernel = KernelProgram::Lock { hold: 300.0, gap: 1000.0 };
        let program = KernelRun { kernel, threads: 2, work: 0.5 };
        let command = program.command(Path::new("/k")).join(" ");
        assert_eq!(command, "/k/lock-loop --threads 2 --work 0.5 --hold 300 --gap 1000");
        // 0.5 x 2e9 / 1360 / 2, and 700 steps for a microsecond.
        assert_eq!((program.rounds(), program.steps()), (367_647.0, [700.0, 210.0]));
        let triad =
            KernelRun { kernel: KernelProgram::Triad { mebibytes: 96.0 }, threads: 2, work: 0.1 };
        assert_eq!((triad.rounds(), triad.lines()), (16.0, 524_288.0));
    }
}
