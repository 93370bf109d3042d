//! Where in its code a program is: samples of its instruction pointer, counted by block.
//!
//! *Problem.* A policy that distinguishes a program's phases needs to know in which parts of the
//! code each quantum was spent (`cosched_core::Measure::InstructionPointers`).
//!
//! *Mechanism.* An event of the kernel interrupts the running thread at intervals, and writes down
//! where it was. As with [counters](crate::observe::counters::Counters), it is opened on the shim
//! before that gets its order. What the shim starts inherits it, and `exec` switches it on.
//! Inherited events may be written down only CPU by CPU, so there is one for each. The events of
//! all programs on a CPU share a ring of memory, which the kernel fills and cosched empties, and
//! each sample has the number of its event. Rings therefore grow with the machine, and not with the
//! number of programs.
//!
//! *Nothing is lost as long as cosched is awake in time.* A ring that is half full wakes cosched,
//! which adds the samples to those of their programs. A quantum of any length is therefore seen
//! whole. What did not fit is counted.
//!
//! *Memory.* It cannot be swapped out, so the kernel limits it: by default to 516 KiB for each CPU
//! and user (`perf_event_mlock_kb`), and beyond that to `RLIMIT_MEMLOCK`. Where 64 KiB are too
//! much, smaller rings wake cosched more often.
//!
//! *Which event.* The paper on fair-progress scheduling takes a sample every 500,000 instructions
//! (table 3). Without hardware counters, it is a clock that runs while the program is on a CPU.
//! Both need no permission where `perf_event_paranoid` is at most 2, since only user mode is
//! sampled.
//!
//! *What a block is.* Not the compiler's basic block, which would take the program's code to find,
//! but a number of bytes. In small blocks, two quanta of one phase differ by chance, and in large
//! ones two phases are alike. `bench/blocks.py` measures both.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use cosched_core::{CpuSet, ProgramId};

use crate::observe::counters::{self, CounterEvent, Events, Sampling};
use crate::observe::ring::{Ring, RingEntry};
use crate::process::tree::Process;

/// The size of a ring, bytes: 2,730 samples. At 3 GHz and two instructions per cycle, a CPU takes
/// 1,200 in 100 ms, so that a usual quantum wakes cosched once at most.
const RING: usize = 1 << 16;
/// The smallest size that is tried, bytes: 170 samples.
const SMALLEST: usize = 1 << 12;
/// The most blocks that are kept of a program while its samples are not requested.
pub(crate) const MOST_BLOCKS: usize = 1 << 16;
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

/// What opens rings and events: the kernel, or a made-up machine.
pub(crate) trait SampleSource {
    /// An event that takes samples until it is dropped.
    type Event;

    /// The size of a block of code, bytes.
    fn bytes_of_block(&self) -> u64;

    /// A ring for the samples of a CPU, with room for about so many bytes.
    fn ring(&self, cpu: usize, bytes: usize) -> io::Result<Ring>;

    /// Has samples taken of what a shim is going to start, while it is on the CPU of this ring.
    /// Returns the number that they have there.
    fn event(&self, shim: Process, cpu: usize, ring: &Ring) -> io::Result<(u64, Self::Event)>;
}

impl SampleSource for SampleClock {
    type Event = File;

    /// A quantum has 600 samples or more by instructions, and 100 by CPU time.
    fn bytes_of_block(&self) -> u64 {
        match self {
            SampleClock::Instructions => 1 << 12,
            SampleClock::CpuTime => 1 << 14,
        }
    }

    fn ring(&self, cpu: usize, bytes: usize) -> io::Result<Ring> {
        Ring::new(counters::ring_owner(cpu)?, bytes)
    }

    fn event(&self, shim: Process, cpu: usize, ring: &Ring) -> io::Result<(u64, File)> {
        counters::sample_below(self.sampling(), shim, cpu, ring.event())
    }
}

/// The samples of all programs.
#[derive(Debug)]
pub(crate) struct CodeSamples<S: SampleSource = SampleClock> {
    source: S,
    /// By CPU.
    rings: BTreeMap<usize, Ring>,
    /// Which program's event has which number.
    events: BTreeMap<u64, ProgramId>,
    programs: BTreeMap<ProgramId, ProgramSamples<S::Event>>,
    lost: u64,
    surplus: u64,
}

/// The events of a program, and its samples since they were last taken, by block.
#[derive(Debug)]
struct ProgramSamples<E> {
    _events: Vec<E>,
    blocks: BTreeMap<u64, u32>,
}

impl<S: SampleSource> CodeSamples<S> {
    pub(crate) fn new(source: S) -> CodeSamples<S> {
        CodeSamples {
            source,
            rings: BTreeMap::new(),
            events: BTreeMap::new(),
            programs: BTreeMap::new(),
            lost: 0,
            surplus: 0,
        }
    }

    /// Samples the program that `shim` is going to start, with all its descendants, on these CPUs.
    /// Has to be called before the shim gets its order. `watch` gets each new ring, and has to see
    /// to it that [`drain`](CodeSamples::drain) is called when one can be read. All programs
    /// together open no more than `most_files`: an event takes one for each CPU.
    ///
    /// # Errors
    /// Where there are too many files, or too much memory that cannot be swapped out.
    pub(crate) fn begin(
        &mut self,
        program: ProgramId,
        shim: Process,
        cpus: &CpuSet,
        most_files: usize,
        watch: impl Fn(&Ring) -> io::Result<()>,
    ) -> io::Result<()> {
        self.forget(program);
        let missing = cpus.iter().filter(|cpu| !self.rings.contains_key(cpu)).count();
        if self.open_files() + missing + cpus.len() > most_files {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        self.add_rings(cpus, watch)?;
        let on_cpus = self.rings.iter().filter(|(cpu, _)| cpus.contains(**cpu));
        let open = on_cpus.map(|(cpu, ring)| self.source.event(shim, *cpu, ring));
        let opened = open.collect::<io::Result<Vec<(u64, S::Event)>>>()?;
        self.events.extend(opened.iter().map(|(number, _)| (*number, program)));
        let events = opened.into_iter().map(|(_, event)| event).collect();
        self.programs.insert(program, ProgramSamples { _events: events, blocks: BTreeMap::new() });
        Ok(())
    }

    /// Adds the rings that are missing, all of one size: the largest one that there may be.
    fn add_rings(
        &mut self,
        cpus: &CpuSet,
        watch: impl Fn(&Ring) -> io::Result<()>,
    ) -> io::Result<()> {
        let missing = || cpus.iter().filter(|cpu| !self.rings.contains_key(cpu));
        let open = |bytes| {
            let ring = |cpu| Ok((cpu, self.source.ring(cpu, bytes)?));
            missing().map(ring).collect::<io::Result<BTreeMap<usize, Ring>>>()
        };
        let mut bytes = RING;
        let rings = loop {
            match open(bytes) {
                Err(error) if is_about_memory(&error) && bytes > SMALLEST => bytes /= 2,
                rings => break rings?,
            }
        };
        rings.values().try_for_each(watch)?;
        self.rings.extend(rings);
        Ok(())
    }

    /// Empties all rings.
    pub(crate) fn drain(&mut self) {
        let bytes = self.source.bytes_of_block();
        for ring in self.rings.values_mut() {
            ring.take(|entry| match entry {
                RingEntry::Lost(samples) => self.lost += samples,
                // One of a program that is no longer observed belongs to no program.
                RingEntry::Sample { pointer, event } => {
                    let program = event.and_then(|event| self.events.get(&event));
                    let Some(of) = program.and_then(|id| self.programs.get_mut(id)) else { return };
                    let block = pointer / bytes;
                    if of.blocks.len() < MOST_BLOCKS || of.blocks.contains_key(&block) {
                        *of.blocks.entry(block).or_default() += 1;
                    } else {
                        self.surplus += 1;
                    }
                }
            });
        }
    }

    /// How many samples of a program are in each block, ascending, since this was last called.
    pub(crate) fn take(&mut self, program: ProgramId) -> BTreeMap<u64, u32> {
        self.drain();
        let of = self.programs.get_mut(&program);
        of.map(|of| std::mem::take(&mut of.blocks)).unwrap_or_default()
    }

    pub(crate) fn forget(&mut self, program: ProgramId) {
        if self.programs.remove(&program).is_some() {
            self.events.retain(|_, of| *of != program);
        }
    }

    fn open_files(&self) -> usize {
        self.rings.len() + self.events.len()
    }

    /// How many samples were lost so far, because a ring was full.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// How many samples were not kept so far, because their program had [`MOST_BLOCKS`] already.
    pub(crate) fn surplus(&self) -> u64 {
        self.surplus
    }
}

/// Whether less memory may be granted.
fn is_about_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

#[cfg(test)]
mod tests;
