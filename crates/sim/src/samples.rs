//! Measurements for policies: the same samples as on a real machine, without their cost and their
//! error.
//!
//! Waiting for locks is what the kernel sees of it: time asleep at a lock, a barrier or a queue.
//! Spinning counts as running. References to the last-level cache are the misses that there would
//! be without it. Each mix of a program is a basic block, in which the instruction pointer is seen
//! once in 500,000 instructions, without randomness, so that segments of one mix are all equal. A
//! program with a model that has `progress = true` reports how often its threads have passed a
//! barrier or begun a region, as the library inside real programs does. The simulator also reports
//! what only a simulator knows: how long work takes [alone](crate::alone).

use std::ops::{Add, Sub};

use cosched_core::{
    Arena, IpBin, LockShare, MachineSample, MaskOwner, Measure, Nanos, Observe, ProgramId, Quality,
    Sample, ThreadId,
};

use crate::prices::LINE;
use crate::thread::{SimulatedThread, ThreadState, ThreadUsage, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// Instructions between two samples of the instruction pointer.
const PERIOD: f64 = 500_000.0;

/// The values of a program's last reading.
#[derive(Clone, Debug)]
pub(crate) struct ProgramReading {
    at: u64,
    frozen: u64,
    used: Vec<ThreadUsage>,
    locks: Vec<u64>,
    mixes: Vec<f64>,
    passages: u64,
}

impl ProgramReading {
    pub(crate) fn new(at: u64, threads: usize) -> ProgramReading {
        let (used, locks, mixes) = (vec![ThreadUsage::default(); threads], Vec::new(), Vec::new());
        ProgramReading { at, frozen: 0, used, locks, mixes, passages: 0 }
    }
}

impl SimulatedWorld {
    /// Measures, and replaces the measured values.
    pub(crate) fn read(&mut self, what: &[Observe], into: &mut Arena) {
        for cpu in 0..self.cpus.len() {
            if let Some(tid) = self.cpus[cpu].current {
                self.account(tid);
            }
        }
        let lives = |id: ProgramId| self.programs.iter().any(|p| p.id == id && p.alive > 0);
        let stays = |id: ProgramId| lives(id) && what.iter().all(|o| o.program != Some(id));
        into.samples.retain(|sample| stays(sample.program));
        into.threads.retain(|thread| stays(thread.program));
        into.ips.retain(|bin| stays(bin.program));
        into.locks.retain(|share| {
            let owner = &self.threads[share.thread.slot as usize];
            stays(self.programs[usize::from(owner.turn.program)].id)
        });
        for run in 0..self.programs.len() {
            let id = self.programs[run].id;
            let requested =
                |measure| what.iter().any(|o| o.program == Some(id) && o.measure == measure);
            if self.programs[run].alive > 0 && what.iter().any(|o| o.program == Some(id)) {
                self.read_program(run, &requested, into);
            }
        }
        into.samples.sort_by_key(|sample| (sample.program, sample.thread));
        into.threads.sort_by_key(|thread| (thread.program, thread.id));
        into.ips.sort_by_key(|bin| (bin.program, bin.block));
        into.locks.sort_by_key(|share| (share.thread, share.lock));
        if what.iter().any(|o| o.program.is_none() && o.measure == Measure::Bandwidth) {
            into.machine = self.machine_sample();
        }
    }

    fn read_program(&mut self, run: usize, requested: &dyn Fn(Measure) -> bool, into: &mut Arena) {
        let by_mix = requested(Measure::InstructionPointers) || requested(Measure::Alone);
        let fresh = ProgramReading {
            at: self.now,
            frozen: self.frozen(run),
            used: self.programs[run].tids().map(|tid| self.used(tid)).collect(),
            locks: self.lock_waits(run),
            mixes: if by_mix { self.by_mix(run) } else { Vec::new() },
            passages: self.programs[run].sync.passages(),
        };
        let last = std::mem::replace(&mut self.programs[run].reading, fresh);
        let now = &self.programs[run].reading;
        let (id, first) = (self.programs[run].id, self.programs[run].first);
        let co_runners = self.programs.iter().enumerate().filter(|(other, _)| *other != run);
        let co_runners = co_runners.filter(|(other, _)| self.ran_since(*other, last.at)).count();
        let before = last.mixes.iter().copied().chain(std::iter::repeat(0.0));
        let computed: Vec<f64> =
            now.mixes.iter().zip(before).map(|(now, last)| now - last).collect();
        let alone =
            requested(Measure::Alone).then(|| Nanos(self.nanos_alone(run, &computed) as u64));
        let tells = self.programs[run].model.tells && now.passages > 0;
        let progress =
            (tells && requested(Measure::Progress)).then(|| now.passages - last.passages);
        let missing = requested(Measure::Progress) && !self.programs[run].model.tells;
        let frozen = Nanos(now.frozen - last.frozen);
        let sample = |thread: Option<ThreadId>, used: ThreadUsage| Sample {
            program: id,
            thread,
            from: Nanos(last.at),
            to: Nanos(now.at),
            on_cpu: Nanos(used.ran),
            user_time: requested(Measure::UserTime).then_some(Nanos(used.ran)),
            frozen,
            run_delay: requested(Measure::CpuTime).then_some(Nanos(used.queued)),
            lock_wait: requested(Measure::LockWait).then_some(Nanos(used.waited)),
            instructions: requested(Measure::Counters).then_some(used.instructions as u64),
            cycles: requested(Measure::Counters)
                .then_some((used.ran as f64 * self.hardware.gigahertz) as u64),
            llc_references: requested(Measure::Counters).then_some(used.references as u64),
            llc_misses: (requested(Measure::Counters)
                || (thread.is_some() && requested(Measure::ThreadMisses)))
            .then_some(used.misses as u64),
            memory_bytes: requested(Measure::Counters).then_some((used.misses * LINE) as u64),
            progress: progress.filter(|_| thread.is_none()),
            alone: alone.filter(|_| thread.is_none()),
            voluntary_switches: requested(Measure::CpuTime).then_some(used.switches[0]),
            involuntary_switches: requested(Measure::CpuTime).then_some(used.switches[1]),
            co_runners: co_runners as u16,
            quality: if missing { Quality::Missing } else { Quality::Exact },
        };
        let each: Vec<ThreadUsage> =
            now.used.iter().zip(&last.used).map(|(now, last)| now.since(last)).collect();
        into.samples.push(sample(
            None,
            each.iter().copied().fold(ThreadUsage::default(), ThreadUsage::plus),
        ));
        for (index, used) in each.iter().enumerate() {
            let tid = first + index as Tid;
            let thread = &self.threads[tid as usize];
            if thread.place == ThreadState::Ended {
                continue;
            }
            let name = ThreadId { slot: tid, generation: thread.generation };
            if requested(Measure::LockWait) || requested(Measure::Threads) {
                into.samples.push(sample(Some(name), *used));
            }
            if requested(Measure::Threads) {
                into.threads.push(cosched_core::Thread {
                    id: name,
                    program: id,
                    process: first,
                    cpu: self.hardware.topology.cpus()[usize::from(thread.cpu)].id as u16,
                    on_cpu: Nanos(thread.used.ran),
                    mask_owner: MaskOwner::Cosched,
                });
            }
        }
        if requested(Measure::InstructionPointers) {
            let counts = computed.iter().map(|count| (count / PERIOD).round() as u32);
            let bins = (0..).zip(counts).filter(|(_, count)| *count > 0);
            into.ips.extend(bins.map(|(block, count)| IpBin { program: id, block, count }));
        }
        if requested(Measure::LockShares) {
            let threads = each.len();
            for (position, waited) in now.locks.iter().enumerate() {
                let before = last.locks.get(position).copied().unwrap_or(0);
                let tid = first + (position % threads) as Tid;
                let generation = self.threads[tid as usize].generation;
                if *waited > before {
                    into.locks.push(LockShare {
                        thread: ThreadId { slot: tid, generation },
                        lock: (position / threads) as u64,
                        wait: Nanos(waited - before),
                    });
                }
            }
        }
    }

    /// A thread's usage, including its present operation.
    pub(crate) fn used(&self, tid: Tid) -> ThreadUsage {
        let thread = &self.threads[tid as usize];
        let since = self.now - thread.changed;
        let mut used = thread.used;
        match thread.place {
            ThreadState::Queued => used.queued += since,
            ThreadState::Blocked if waits_for_others(thread) => used.waited += since,
            _ => {}
        }
        used
    }

    /// For each lock, how long each thread has slept for it.
    fn lock_waits(&self, run: usize) -> Vec<u64> {
        self.programs[run].sync.locks.iter().flat_map(|lock| lock.waited.iter().copied()).collect()
    }

    fn frozen(&self, run: usize) -> u64 {
        let program = &self.programs[run];
        program.frozen_before + if program.frozen { self.now - program.frozen_since } else { 0 }
    }

    fn ran_since(&self, run: usize, from: u64) -> bool {
        self.programs[run].tids().any(|tid| {
            let thread = &self.threads[tid as usize];
            thread.place == ThreadState::Running || (thread.seen > from && thread.used.ran > 0)
        })
    }

    fn machine_sample(&mut self) -> MachineSample {
        let misses: f64 = self.threads.iter().map(|thread| thread.used.misses).sum();
        let now = (self.now, misses + self.past_misses);
        let last = std::mem::replace(&mut self.machine_reading, now);
        let passed = (now.0 - last.0) as f64;
        let lines_per_nano = (passed > 0.0).then_some((now.1 - last.1) / passed);
        MachineSample {
            from: Nanos(last.0),
            to: Nanos(now.0),
            bytes_per_second: lines_per_nano.map(|lines| lines * LINE * 1e9),
            bus_transactions_per_microsecond: lines_per_nano.map(|lines| lines * 1e3),
        }
    }
}

fn waits_for_others(thread: &SimulatedThread) -> bool {
    matches!(thread.waiting, WaitTarget::Barrier { .. } | WaitTarget::Lock | WaitTarget::Queue)
}

impl ThreadUsage {
    pub(crate) fn since(&self, before: &ThreadUsage) -> ThreadUsage {
        self.with(before, u64::sub, f64::sub)
    }

    pub(crate) fn plus(self, other: ThreadUsage) -> ThreadUsage {
        self.with(&other, u64::add, f64::add)
    }

    /// Combines each figure with that of another thread or time.
    fn with(
        &self,
        other: &ThreadUsage,
        whole: fn(u64, u64) -> u64,
        part: fn(f64, f64) -> f64,
    ) -> ThreadUsage {
        ThreadUsage {
            ran: whole(self.ran, other.ran),
            spun: whole(self.spun, other.spun),
            queued: whole(self.queued, other.queued),
            waited: whole(self.waited, other.waited),
            instructions: part(self.instructions, other.instructions),
            references: part(self.references, other.references),
            misses: part(self.misses, other.misses),
            switches: [0, 1].map(|kind| whole(self.switches[kind], other.switches[kind])),
        }
    }
}
