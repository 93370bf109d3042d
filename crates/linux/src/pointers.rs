//! Where in its code a program is: samples of its instruction pointer, counted by block.
//!
//! *Problem.* A policy that tells a program's phases apart asks in which parts of the code each quantum was spent
//! (`cosched_core::Measure::InstructionPointers`); one that asks whether threads spin, how much of it is in
//! runtimes (`runtimes.rs`, `cosched_core::Measure::RuntimeTime`).
//!
//! *Mechanism.* An event of the kernel interrupts whoever runs every so often, and writes down where it was. As with
//! [counters](crate::counters::Counters), it is opened on the shim before that gets its order; what the shim starts inherits it, and
//! `exec` switches it on. Events that are inherited may be written down only CPU by CPU, so there is one for each, with a ring
//! of memory of its own, which the kernel fills and a look empties. A ring that is full takes no more until then:
//! the counts are shares, and a lost sample is lost to no block more than to another. *Threads that are there already*, which are looked
//! at for a moment only, have an event each, and what they start has none: that needs no ring for each CPU.
//!
//! *Which event.* The paper on fair-progress scheduling takes a sample every 500,000 instructions (table 3). Without hardware
//! counters it is a clock that goes while the program is on a CPU. Both need no right where `perf_event_paranoid` is at most 2,
//! since only user mode is looked at.
//!
//! *What a block is.* Not the compiler's basic block, which would take the program's code to find, but [`BLOCK`] bytes. The
//! fewer blocks, the less two samples of the same phase differ by chance alone.

mod ring;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use cosched_core::{CpuSet, Nanos};

use crate::counters::{self, Event, Events, Sampling};
use crate::tree::Process;
use ring::Ring;

/// The size of a block, bytes; a power of two.
pub const BLOCK: u64 = 512;
/// More rings than that are not open in a run: each takes memory that the kernel cannot swap out, and an open file.
pub const MOST_RINGS: usize = 256;
/// Of more threads of a program no samples are taken one by one: some are as good as all.
pub(crate) const MOST_THREADS: usize = 32;
/// Whose samples explain less than this part of its time outside the kernel was hardly seen.
const LEAST_EXPLAINED: f64 = 0.125;
/// Instructions between two samples (table 3 of the paper).
const INSTRUCTIONS: u64 = 500_000;
/// CPU time between two samples without counters, ns: a hundred in a quantum of 100 ms, twenty-five in one of training. With
/// fewer, two quanta of the same phase would differ by chance; twice as many cost up to 4.9 % of a program's time
/// (docs/benchmarks.md). A prime, so that it keeps no step with what programs do.
const NANOS: u64 = 999_983;
/// The same for threads of which so many samples were taken that these tell enough, since each costs some 13 us of their time.
const NANOS_LATER: u64 = 1_999_993;
const ENOUGH: usize = 60;
/// CPU time as the kernel's own clock tells it.
const CPU_CLOCK: Event = Event { kind: 1, config: 0 };

/// When samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Every so many instructions.
    Instructions,
    /// Every so much CPU time.
    CpuTime,
}

impl Source {
    /// The best that works here for the caller; `None`: neither does.
    pub fn here() -> Option<Source> {
        let works = |source: &Source| counters::can_sample(source.sampling()).is_ok();
        [Source::Instructions, Source::CpuTime].into_iter().find(works)
    }

    fn sampling(self) -> Sampling {
        match self {
            Source::Instructions => {
                Sampling { event: Events::HARDWARE.instructions, period: INSTRUCTIONS }
            }
            Source::CpuTime => Sampling { event: CPU_CLOCK, period: NANOS },
        }
    }
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    /// Where it was.
    pub(crate) pointer: u64,
    /// Which process.
    pub(crate) process: i32,
}

/// The samples of one program.
#[derive(Debug)]
pub struct Pointers(Vec<Ring>);

impl Pointers {
    /// Of the program that `shim` is going to start, with all its descendants, on these CPUs. Has to be called before the shim
    /// gets its order.
    ///
    /// # Errors
    /// When one of the events cannot be had: too many files, or too much memory that cannot be swapped out.
    pub fn below(shim: Process, cpus: &CpuSet, source: Source) -> io::Result<Pointers> {
        let open = |cpu| Ring::new(counters::sample_below(source.sampling(), shim, cpu)?);
        Ok(Pointers(cpus.iter().map(open).collect::<io::Result<Vec<Ring>>>()?))
    }

    /// The samples since this was last called.
    pub(crate) fn take(&mut self) -> Vec<Met> {
        take(self.0.iter_mut())
    }
}

/// The samples of threads that are there already.
#[derive(Debug)]
pub(crate) struct ThreadPointers {
    rings: BTreeMap<i32, Ring>,
    /// How many threads there were when these were chosen.
    threads: usize,
    /// CPU time between two samples, ns.
    period: u64,
    /// How many were taken.
    taken: usize,
}

impl Default for ThreadPointers {
    fn default() -> ThreadPointers {
        ThreadPointers { rings: BTreeMap::new(), threads: 0, period: NANOS, taken: 0 }
    }
}

impl ThreadPointers {
    /// Takes samples of these threads from now on, and of no others; of so many at most, far from each other. Whose cannot be had
    /// is left out.
    pub(crate) fn follow(&mut self, threads: &BTreeSet<i32>, most: usize) {
        let step = threads.len().div_ceil(most.max(1)).max(1);
        let chosen: BTreeSet<i32> = threads.iter().copied().step_by(step).take(most).collect();
        self.threads = threads.len();
        self.rings.retain(|thread, _| chosen.contains(thread));
        if self.taken >= ENOUGH && self.period == NANOS {
            self.set_period(NANOS_LATER);
        }
        for thread in chosen {
            if let Entry::Vacant(place) = self.rings.entry(thread) {
                let sampling = Sampling { event: CPU_CLOCK, period: self.period };
                let event = counters::sample_thread(sampling, thread);
                match event.and_then(Ring::new) {
                    Ok(ring) => _ = place.insert(ring),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    // What is refused once is refused to the others, too.
                    Err(_) => return,
                }
            }
        }
    }

    /// Something else begins, of which nothing is known yet.
    pub(crate) fn begin_anew(&mut self) {
        self.taken = 0;
        self.set_period(NANOS);
    }

    fn set_period(&mut self, period: u64) {
        self.period = period;
        // Where that cannot be had it stays as it is, which is more or less than is needed.
        self.rings.values().for_each(|ring| _ = ring.take_each(period));
    }

    /// Whether the program had one thread, of which samples are taken.
    pub(crate) fn is_one(&self) -> bool {
        self.threads == 1 && self.rings.len() == 1
    }

    /// Whether so many samples are enough for so much time outside the kernel, of all threads. The others may be of
    /// threads that came and went meanwhile. (What was more than the rings hold is not missed.)
    pub(crate) fn explain(&self, samples: usize, outside: Nanos) -> bool {
        let followed = self.rings.len() as f64 / self.threads.max(1) as f64;
        let expected = outside.0 as f64 / self.period as f64 * followed;
        let room = (self.rings.len() * ring::ROOM) as f64;
        samples as f64 >= LEAST_EXPLAINED * expected.min(room)
    }

    /// The samples since this was last called.
    pub(crate) fn take(&mut self) -> Vec<Met> {
        let met = take(self.rings.values_mut());
        self.taken += met.len();
        met
    }
}

fn take<'a>(rings: impl Iterator<Item = &'a mut Ring>) -> Vec<Met> {
    let mut all = Vec::new();
    rings.for_each(|ring| ring.take(|met| all.push(met)));
    all
}

/// How often a program was met in which block, ascending.
pub(crate) fn by_block(met: &[Met]) -> BTreeMap<u64, u32> {
    let mut blocks = BTreeMap::new();
    for met in met {
        *blocks.entry(met.pointer / BLOCK).or_default() += 1;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    #[ignore = "the program that another test looks at"]
    fn computes_for_a_while() {
        let began = std::time::Instant::now();
        let mut sum = 0u64;
        while began.elapsed().as_millis() < 200 {
            for i in 0..100_000u64 {
                sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
            }
        }
    }

    #[test]
    fn threads_that_are_there_are_followed_until_they_end() {
        if Source::here().is_none() {
            return eprintln!("skipped: the instruction pointer cannot be sampled here");
        }
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let mut pointers = ThreadPointers::default();
        pointers.follow(&[own, i32::MAX].into(), 2);
        assert_eq!(pointers.rings.len(), 1, "the other one is not there");
        assert!(!pointers.is_one(), "but it was");
        pointers.follow(&[own].into(), 2);
        computes_for_a_while();
        let met = pointers.take();
        assert!(met.len() >= 50 && met.iter().all(|met| met.process == std::process::id() as i32));
        assert!(pointers.is_one() && pointers.explain(met.len(), Nanos::from_millis(200)));
        assert!(!pointers.explain(met.len() / 10, Nanos::from_millis(200)), "whose is the rest?");
        while pointers.taken < ENOUGH {
            computes_for_a_while();
            pointers.take();
        }
        let now = || {
            let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::try_from(used).unwrap().as_secs_f64()
        };
        let period = |pointers: &mut ThreadPointers| {
            pointers.follow(&[own].into(), 2);
            let began = now();
            computes_for_a_while();
            (now() - began) / pointers.take().len() as f64
        };
        let later = period(&mut pointers);
        pointers.begin_anew();
        let anew = period(&mut pointers);
        assert!(later > 1.5 * anew, "enough was known: {later} and {anew} s between samples");
        pointers.follow(&[own, own + 1, own + 2].into(), 0);
        assert!(pointers.rings.is_empty(), "there is no room for any");
    }

    #[test]
    fn a_program_is_met_where_it_computes_and_the_thread_that_starts_it_is_not() {
        let Some(source) = Source::here() else {
            eprintln!("skipped: the instruction pointer cannot be sampled here");
            return;
        };
        let pid = rustix::thread::gettid().as_raw_nonzero().get();
        let cpus = crate::affinity::get(0).unwrap();
        let mut pointers = Pointers::below(Process { pid, start_time: 0 }, &cpus, source).unwrap();
        assert_eq!(pointers.take(), []);
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "pointers::tests::computes_for_a_while", "--ignored"]);
        assert!(program.output().unwrap().status.success());
        let blocks = by_block(&pointers.take());
        let (all, most) =
            blocks.iter().fold((0, 0), |(all, most), (_, count)| (all + count, most.max(*count)));
        assert!(all >= 20 && most * 4 > all, "the loop has a few hundred bytes: {blocks:?}");
        assert_eq!(pointers.take(), [], "what was taken is not told again");
    }
}
