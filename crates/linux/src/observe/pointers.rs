//! Where in its code a program is: samples of its instruction pointer, counted by block.
//!
//! *Problem.* A policy that distinguishes a program's phases needs to know in which parts of the
//! code each quantum was spent (`cosched_core::Measure::InstructionPointers`).
//!
//! *Mechanism.* An event of the kernel interrupts the running thread at intervals, and writes down
//! where it was. As with [counters](crate::observe::counters::Counters), it is opened on the shim
//! before that gets its order. What the shim starts inherits it, and `exec` switches it on.
//! Inherited events may be written down only CPU by CPU. There is therefore one for each, with a
//! ring of memory of its own, which the kernel fills and cosched empties. A full ring takes no
//! more until then. The counts are used as shares, and a lost sample is not lost to one block more
//! than to another.
//!
//! *Which event.* The paper on fair-progress scheduling takes a sample every 500,000 instructions
//! (table 3). Without hardware counters, it is a clock that runs while the program is on a CPU.
//! Both need no permission where `perf_event_paranoid` is at most 2, since only user mode is
//! sampled.
//!
//! *What a block is.* Not the compiler's basic block, which would take the program's code to find,
//! but [`BLOCK`] bytes. The fewer blocks, the less two samples of the same phase differ by chance.

use std::collections::BTreeMap;
use std::io;

use cosched_core::CpuSet;

use crate::observe::counters::{self, CounterEvent, Events, Sampling};
use crate::observe::ring::Ring;
use crate::process::tree::Process;

/// The size of a block, bytes; a power of two.
pub const BLOCK: u64 = 512;
/// The largest number of rings in a run: each takes memory that the kernel cannot swap out, and an
/// open file.
pub(crate) const MOST_RINGS: usize = 256;
/// Instructions between two samples (table 3 of the paper).
const INSTRUCTIONS: u64 = 500_000;
/// CPU time between two samples without counters, ns: a hundred in a quantum of 100 ms, twenty-five
/// in one of training. With fewer, two quanta of the same phase would differ by chance. Twice as
/// many cost up to 4.9 % of a program's time (docs/research/benchmarks.md). A prime, so that it is
/// not in step with programs.
const NANOS: u64 = 999_983;
/// CPU time by the kernel's own clock.
const CPU_CLOCK: CounterEvent = CounterEvent { kind: 1, config: 0 };

/// When samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleClock {
    /// Every 500,000 instructions.
    Instructions,
    /// About every millisecond of CPU time.
    CpuTime,
}

impl SampleClock {
    /// The best source that works here for the caller; `None`: neither does.
    pub fn here() -> Option<SampleClock> {
        let works = |source: &SampleClock| counters::can_sample(source.sampling()).is_ok();
        [SampleClock::Instructions, SampleClock::CpuTime].into_iter().find(works)
    }

    pub(super) fn sampling(self) -> Sampling {
        match self {
            SampleClock::Instructions => {
                Sampling { event: Events::HARDWARE.instructions, period: INSTRUCTIONS }
            }
            SampleClock::CpuTime => Sampling { event: CPU_CLOCK, period: NANOS },
        }
    }
}

/// The samples of one program.
#[derive(Debug)]
pub(crate) struct Pointers(Vec<Ring>);

impl Pointers {
    /// Samples the program that `shim` is going to start, with all its descendants, on these CPUs.
    /// Has to be called before the shim gets its order. An event is unavailable where there are too
    /// many files, or too much memory that cannot be swapped out.
    pub(crate) fn below(shim: Process, cpus: &CpuSet, source: SampleClock) -> io::Result<Pointers> {
        let open = |cpu| Ring::new(counters::sample_below(source.sampling(), shim, cpu)?);
        Ok(Pointers(cpus.iter().map(open).collect::<io::Result<Vec<Ring>>>()?))
    }

    /// The samples since this was last called.
    pub(crate) fn take(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        self.0.iter_mut().for_each(|ring| ring.take(|pointer| all.push(pointer)));
        all
    }
}

/// The number of samples in each block, ascending.
pub(crate) fn by_block(samples: &[u64]) -> BTreeMap<u64, u32> {
    let mut blocks = BTreeMap::new();
    for pointer in samples {
        *blocks.entry(pointer / BLOCK).or_default() += 1;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process::Command;

    use super::*;

    #[test]
    #[ignore = "the program that another test looks at"]
    fn computes_for_a_while() {
        // Of its own time: others may have the CPU.
        let used = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            time.tv_sec * 1000 + time.tv_nsec / 1_000_000
        };
        let (began, mut sum) = (used(), 0u64);
        while used() < began + 200 {
            for i in 0..100_000u64 {
                sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
            }
        }
    }

    #[test]
    fn a_program_is_sampled_where_it_computes_but_not_its_starter() {
        let Some(source) = SampleClock::here() else {
            eprintln!("skipped: the instruction pointer cannot be sampled here");
            return;
        };
        let pid = rustix::thread::gettid().as_raw_nonzero().get();
        let cpus = crate::kernel::affinity::get(0).unwrap();
        let mut pointers = Pointers::below(Process { pid, start_time: 0 }, &cpus, source).unwrap();
        assert!(pointers.take().is_empty());
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "observe::pointers::tests::computes_for_a_while", "--ignored"]);
        assert!(program.output().unwrap().status.success());
        let blocks = by_block(&pointers.take());
        let mut counts: Vec<u32> = blocks.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all: u32 = counts.iter().sum();
        // Unoptimised, the loop and the functions that it calls are in some six blocks.
        let most: u32 = counts.iter().take(8).sum();
        assert!(all >= 20 && most * 4 > all * 3, "it computes in a few blocks: {blocks:?}");
        assert!(pointers.take().is_empty(), "what was taken is not told again");
    }
}
