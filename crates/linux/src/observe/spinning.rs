//! Spin loops: which part of a program's CPU time goes to threads that wait and keep their CPU.
//!
//! *Problem.* A thread that spins for another one is as busy as one that computes. CPU time,
//! instructions and the kernel's accounts show no difference. Runtimes that the [hook](crate::hook)
//! knows say when they wait; pools of threads of other programs, garbage collectors and pipelines
//! with flags do not.
//!
//! *Mechanism.* Now and then some running threads of a program are sampled for a moment: a clock of
//! the kernel, which runs while the thread does, writes down about each millisecond where in its
//! code the thread is. Each sample that belongs to a spin loop ([`judgement`]) stands for a
//! millisecond in it. Events are opened for single threads and are not inherited, so that what the
//! program starts costs nothing. It needs no permission where `perf_event_paranoid` is at most 2
//! and the process may be read.
//!
//! *A spin loop has a name* that holds in later runs: the build ID of its file and the place in it
//! ([`place`]). Known ones are recognised in fewer samples.
//!
//! *What it cannot see.* Time in the kernel: a thread that yields in a loop spends most of its time
//! there. And loops without any instruction that says that the thread waits.

mod judgement;
mod place;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{SpinLoop, SpinShare, Spinning};

use crate::kernel::procfs::{Proc, ProcState};
use crate::observe::counters;
use crate::observe::pointers::SampleClock;
use crate::observe::ring::{Ring, RingEntry};
use crate::process::tree::Process;
use judgement::judge;
use place::ProcessMemory;
use waiting::{Processor, WaitInstruction};

/// The most threads of a program that are sampled at once.
pub(crate) const MOST_THREADS: usize = 8;
/// Of more threads, only some are checked for whether they run.
const MOST_CHECKED: usize = 64;
/// The size of a thread's ring, bytes: 512 samples, and a look takes 60 to 600.
const RING: usize = 1 << 13;
/// So many loops of a program are reported.
const REPORTED: usize = 3;

/// A moment in which threads are sampled, until it is dropped.
#[derive(Debug)]
pub(crate) struct SpinLook(Vec<(Process, Ring)>);

impl SpinLook {
    /// Begins to sample some running threads of these processes. `None`: fewer than two run, or
    /// none may be sampled.
    pub(crate) fn begin(processes: &[Process], proc: &Proc) -> Option<SpinLook> {
        waiting::HERE?;
        let mut threads = running(processes, proc);
        if threads.len() < 2 {
            return None;
        }
        let step = threads.len().div_ceil(MOST_THREADS);
        threads = threads.into_iter().step_by(step).collect();
        let open = |(process, thread): (Process, i32)| {
            let event = counters::sample_thread(SampleClock::CpuTime.sampling(), thread).ok()?;
            Some((process, Ring::new(event, RING).ok()?))
        };
        let rings: Vec<(Process, Ring)> = threads.into_iter().filter_map(open).collect();
        (!rings.is_empty()).then_some(SpinLook(rings))
    }

    /// The samples of each thread, in order of time.
    fn end(self) -> Vec<(Process, Vec<u64>)> {
        let samples = |(process, mut ring): (Process, Ring)| {
            let mut samples = Vec::new();
            ring.take(|entry| {
                if let RingEntry::Sample { pointer, .. } = entry {
                    samples.push(pointer);
                }
            });
            (process, samples)
        };
        self.0.into_iter().map(samples).collect()
    }
}

/// The threads of these processes that run or are ready to.
fn running(processes: &[Process], proc: &Proc) -> Vec<(Process, i32)> {
    let threads = processes.iter().flat_map(|process| {
        let threads = proc.threads(process.pid).unwrap_or_default();
        threads.into_iter().map(|thread| (*process, thread))
    });
    let threads: Vec<(Process, i32)> = threads.collect();
    let step = threads.len().div_ceil(MOST_CHECKED).max(1);
    let runs = |(process, thread): &(Process, i32)| {
        let stat = proc.thread_stat(process.pid, *thread);
        stat.is_ok_and(|stat| stat.state == ProcState::Running)
    };
    threads.into_iter().step_by(step).filter(runs).collect()
}

/// What looks at one program have shown.
#[derive(Debug, Default)]
pub(crate) struct SpinUse {
    samples: u64,
    loops: BTreeMap<SpinLoop, u64>,
    /// Where the known loops lie in each process of the last look.
    waits: BTreeMap<Process, BTreeMap<WaitInstruction, SpinLoop>>,
}

impl SpinUse {
    /// Ends a look at the program. Spin loops that were not known are added to those that are.
    pub(crate) fn add(&mut self, look: SpinLook, known: &mut Vec<SpinLoop>, proc: &Proc) {
        let Some(processor) = waiting::HERE else { return };
        let mut by_process = BTreeMap::<Process, Vec<Vec<u64>>>::new();
        for (process, samples) in look.end() {
            by_process.entry(process).or_default().push(samples);
        }
        self.waits.retain(|process, _| by_process.contains_key(process));
        for (process, samples) in by_process {
            let Ok(memory) = ProcessMemory::open(proc, process.pid) else { continue };
            let waits = self.waits.entry(process).or_insert_with(|| {
                let addresses = memory.addresses(proc, known).into_iter();
                let wait = |(at, place)| Some((wait_at(&memory, at, processor)?, place));
                addresses.filter_map(wait).collect()
            });
            let here: BTreeSet<WaitInstruction> = waits.keys().copied().collect();
            let judged = judge(&samples, &here, processor, |at, into| memory.read(at, into));
            let fresh: BTreeSet<WaitInstruction> =
                judged.loops.keys().filter(|wait| !here.contains(wait)).copied().collect();
            let addresses: Vec<u64> = fresh.iter().map(|wait| wait.from).collect();
            if !addresses.is_empty() {
                let places = BTreeMap::from_iter(memory.places(proc, &addresses));
                let place = |wait: WaitInstruction| Some((wait, places.get(&wait.from)?.clone()));
                waits.extend(fresh.into_iter().filter_map(place));
                known.extend(places.into_values().filter(|place| place.build_id.is_some()));
            }
            self.samples += judged.samples;
            for (wait, samples) in judged.loops {
                let Some(place) = waits.get(&wait) else { continue };
                *self.loops.entry(place.clone()).or_default() += samples;
            }
        }
    }

    /// The sum so far; `None`: there was no sample.
    pub(crate) fn so_far(&self) -> Option<Spinning> {
        let samples = self.samples;
        let share = |spinning: u64| spinning as f64 / samples as f64;
        let loops = self.loops.iter();
        let loops = loops.map(|(place, of)| SpinShare { place: place.clone(), share: share(*of) });
        let mut loops: Vec<SpinShare> = loops.collect();
        loops.sort_by(|a, b| b.share.total_cmp(&a.share));
        loops.truncate(REPORTED);
        let share = share(self.loops.values().sum());
        (samples > 0).then_some(Spinning { share, samples, loops })
    }
}

/// The waiting instruction at an address of a process.
fn wait_at(memory: &ProcessMemory, address: u64, processor: &Processor) -> Option<WaitInstruction> {
    let mut code = [0; waiting::LONGEST];
    let is_read = memory.read(address, &mut code);
    let wait = is_read.then(|| processor.waits(&code, address).next()).flatten()?;
    (wait.from == address).then_some(wait)
}

#[cfg(test)]
mod tests;
