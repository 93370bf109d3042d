//! What policies have measured: the readings of a [monitor](crate::observe::monitor), as samples of
//! programs and threads.
//!
//! Nothing is loaded or read before a policy requests it. To load programs into the kernel takes a
//! tenth of a second. It is done in the [background](crate::kernel::background), and no program
//! starts later for it. A program with threads that are to be counted is observed from when loading
//! is done. If its waits for locks are requested before it starts, it is observed from its first
//! instruction on. It starts later if need be: its shim is observed, and the program inherits that.
//!
//! If nothing is requested about single threads, or about their waits, the
//! [clocks](crate::observe::cpu_clocks) of processes have all that is needed, and nothing is
//! loaded.

mod asked;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{Arena, IpBin, Measure, Nanos, ProgramId, Quality, Sample, Thread, ThreadId};

use super::names::{Named, ThreadIds};
use super::program::Live;
use super::samples::{of_locks, of_program, of_thread, with_counts};
use crate::hook::{HookServer, Reported};
use crate::kernel::clock::Clock;
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;
use crate::machine::MachineError;
use crate::observe::counters::{Counters, Readings};
use crate::observe::cpu_clocks::CpuClocks;
use crate::observe::monitor::interval::{Intervals, Slice, by_program};
use crate::observe::monitor::{Monitor, ThreadActivity, ThreadUse};
use crate::observe::pointers::{Pointers, by_block};
use crate::observe::run_delays::RunDelays;
use crate::process::tree::Process;
use crate::safety::undo::Log;
use source::{MonitorState, add};

/// What is observed, and by what.
#[derive(Debug)]
pub(super) struct Observer {
    proc: Proc,
    source: MonitorState,
    /// Whether it counts ticks, and whether it distinguishes locks.
    ticks: bool,
    locks: bool,
    /// When the next samples are to be taken, where that is necessary.
    look_at: Option<Nanos>,
    /// The measures requested for each program.
    requested: BTreeMap<ProgramId, BTreeSet<Measure>>,
    programs: BTreeMap<ProgramId, Observed>,
    reading: Vec<ThreadUse>,
    names: ThreadIds,
    /// How many threads could not be observed, as far as that was reported.
    lost: u64,
    /// Whether the user knows that the positions of programs in their code cannot be seen.
    pub(super) is_blind: bool,
}

/// What is unknown about a program's threads.
pub(super) enum Unseen {
    /// What this program's threads sleep for.
    Waits(ProgramId),
    /// A number of threads of any programs.
    Threads(u64),
}

/// An observed program.
#[derive(Debug)]
struct Observed {
    /// Its number for the monitor.
    number: u32,
    /// Its parent, which is not part of it.
    shim: Option<i32>,
    /// Whether the monitor knows it.
    is_known: bool,
    from: Nanos,
    intervals: Intervals,
    counted: Readings,
    /// The progress that it had reported.
    reported: Reported,
    /// For how long it had been frozen.
    frozen: Nanos,
    /// Threads that have ended, reported when others were read.
    ended: Vec<ThreadUse>,
    /// The CPU time of its processes, and how long they wait for CPUs, while its threads are not
    /// observed.
    clocks: CpuClocks,
    delays: RunDelays,
    /// Whether the user knows that its waits cannot be seen.
    is_hidden: bool,
}

impl Observer {
    /// Nothing is observed yet.
    pub(super) fn new(proc: Proc) -> Observer {
        Observer {
            proc,
            source: MonitorState::default(),
            ticks: false,
            locks: false,
            look_at: None,
            requested: BTreeMap::new(),
            programs: BTreeMap::new(),
            reading: Vec::new(),
            names: ThreadIds::default(),
            lost: 0,
            is_blind: false,
        }
    }

    /// Whether a measure is requested for a program.
    pub(super) fn is_requested(&self, id: ProgramId, measure: Measure) -> bool {
        self.requested.get(&id).is_some_and(|measures| measures.contains(&measure))
    }

    /// Whether a measure is requested for a program that needs its threads.
    fn looks_at_threads(&self, id: ProgramId) -> bool {
        use Measure::{Counters, CpuTime, InstructionPointers, Progress, UserTime};
        let of_processes = [Counters, CpuTime, InstructionPointers, Progress, UserTime];
        let requested = self.requested.get(&id);
        requested.is_some_and(|measures| measures.iter().any(|one| !of_processes.contains(one)))
    }

    /// The thread with this id.
    pub(super) fn named(&self, id: ThreadId) -> Option<Named> {
        self.names.named(id)
    }

    /// Observes a program from its first instruction on.
    pub(super) fn begin_below(
        &mut self,
        id: ProgramId,
        shim: Process,
        clock: &Clock,
    ) -> Result<(), FileError> {
        if !self.requested.contains_key(&id) {
            return Ok(());
        }
        self.begin(id, Some(shim.pid), &[shim.pid], clock)
    }

    /// Observes a program from the start of its first process on.
    pub(super) fn begin_at(
        &mut self,
        id: ProgramId,
        main: Process,
        clock: &Clock,
    ) -> Result<(), FileError> {
        if !self.requested.contains_key(&id) {
            return Ok(());
        }
        self.begin(id, None, &[main.pid], clock)
    }

    fn begin(
        &mut self,
        id: ProgramId,
        shim: Option<i32>,
        processes: &[i32],
        clock: &Clock,
    ) -> Result<(), FileError> {
        let from_the_start = self.is_requested(id, Measure::LockWait);
        let looks_at_threads = self.looks_at_threads(id);
        let number = u32::from(id.slot) << 16 | (id.generation & 0xffff);
        let now = clock.now();
        let program = self.programs.entry(id).or_insert_with(|| Observed {
            number,
            shim,
            is_known: false,
            from: now,
            intervals: Intervals::default(),
            counted: Readings::default(),
            reported: Reported::default(),
            frozen: Nanos::ZERO,
            ended: Vec::new(),
            clocks: CpuClocks::default(),
            delays: RunDelays::default(),
            is_hidden: false,
        });
        if !looks_at_threads {
            return Ok(());
        }
        let Some(monitor) = self.source.ready(from_the_start, &self.proc) else { return Ok(()) };
        self.look_at = monitor.looks_every().map(|period| now + period);
        program.is_known = true;
        let result = processes.iter().try_for_each(|process| add(monitor, number, *process));
        self.set_locks();
        result
    }

    /// Stops observing a program that has ended.
    pub(super) fn forget(&mut self, id: ProgramId) {
        self.requested.remove(&id);
        if let Some(program) = self.programs.remove(&id) {
            program.intervals.known().chain(&program.ended).for_each(|t| self.names.forget(t));
            if let MonitorState::Open(monitor) = &mut self.source {
                monitor.forget(program.number);
            }
        }
        self.set_ticks();
    }

    /// Counts ticks while the user time of some program is requested and its clocks are not enough.
    /// Where the kernel does not allow that, there is no user time.
    fn set_ticks(&mut self) {
        let is_requested = |id: &ProgramId| self.is_requested(*id, Measure::UserTime);
        let needs_ticks =
            self.requested.keys().any(|id| is_requested(id) && self.looks_at_threads(*id));
        if needs_ticks == self.ticks {
            return;
        }
        if let Some(monitor) = self.source.ready(false, &self.proc) {
            let is_done = monitor.count_ticks(needs_ticks).is_ok();
            self.ticks = needs_ticks && is_done;
        }
    }

    /// Distinguishes locks once a policy requests it, where the kernel allows it.
    fn set_locks(&mut self) {
        let mut requested = self.requested.values();
        if self.locks || !requested.any(|measures| measures.contains(&Measure::LockShares)) {
            return;
        }
        if let Some(monitor) = self.source.ready(false, &self.proc) {
            self.locks = monitor.tell_locks_apart().is_ok();
        }
    }

    /// When [`Observer::look`] is to be called next.
    pub(super) fn next_look(&self) -> Nanos {
        self.look_at.filter(|_| !self.programs.is_empty()).unwrap_or(Nanos::NEVER)
    }

    /// Takes a sample, if it is time.
    pub(super) fn look(&mut self, now: Nanos) -> Result<(), FileError> {
        if now < self.next_look() {
            return Ok(());
        }
        let Some(monitor) = self.source.ready(false, &self.proc) else { return Ok(()) };
        monitor.look()?;
        self.look_at = monitor.looks_every().map(|period| now + period);
        Ok(())
    }

    fn read(
        &mut self,
        id: ProgramId,
        live: &mut Live,
        clock: &Clock,
        log: &mut Log,
        into: &mut Arena,
    ) -> Result<Option<Unseen>, MachineError> {
        self.set_ticks();
        self.set_locks();
        let looks_at_threads = self.looks_at_threads(id);
        let needs_cpu_time = self.is_requested(id, Measure::CpuTime);
        let Some(program) = self.programs.get_mut(&id) else { return Ok(None) };
        let to = clock.now();
        let from = std::mem::replace(&mut program.from, to);
        let counted = live.counters.as_ref().map(Counters::readings).unwrap_or_default();
        let counted = counted.since(std::mem::replace(&mut program.counted, counted));
        let reported = live.hook_server.as_ref().map(HookServer::reported).unwrap_or_default();
        let progress = reported.since(std::mem::replace(&mut program.reported, reported));
        let frozen = live.frozen.until(to);
        let frozen = frozen.since(std::mem::replace(&mut program.frozen, frozen));
        let empty = Sample { progress, frozen, ..Sample::empty(id, from, to) };
        let samples = live.pointers.as_mut().map(Pointers::take).unwrap_or_default();
        let bin = |(block, count)| IpBin { program: id, block, count };
        into.ips.extend(by_block(&samples).into_iter().map(bin));
        if !program.is_known && !looks_at_threads {
            // A program that was frozen all the time did nothing: finding its processes would be
            // most of the cost of a sample.
            if frozen == to - from {
                let nothing = Some(Nanos::ZERO);
                let sample = Sample { user_time: nothing, quality: Quality::Exact, ..empty };
                into.samples.push(with_counts(sample, counted));
                return Ok(None);
            }
            let members = live.tree.members(&self.proc);
            let used = program.clocks.next(&members);
            let (on_cpu, user_time) = (used.all, Some(used.outside));
            let run_delay =
                needs_cpu_time.then(|| program.delays.next(&members, &self.proc)).flatten();
            let quality = Quality::Exact;
            let sample = Sample { on_cpu, user_time, run_delay, quality, ..empty };
            into.samples.push(with_counts(sample, counted));
            return Ok(None);
        }
        let monitor = match self.source.ready(false, &self.proc) {
            Some(monitor) if program.is_known => monitor,
            not_yet => {
                if let Some(monitor) = not_yet {
                    program.is_known = true;
                    self.look_at = monitor.looks_every().map(|period| to + period);
                    acquaint(monitor, program, live, &self.proc)?;
                }
                into.samples.push(with_counts(empty, counted));
                return Ok(None);
            }
        };
        monitor.read(&mut self.reading)?;
        let lost = monitor.lost();
        let own = self.share_out(id);
        let Some(program) = self.programs.get_mut(&id) else { return Ok(None) };
        let slices = program.intervals.next(&own, clock.monotonic(from));
        let whole = by_program(&slices).remove(&program.number).unwrap_or_default();
        let sample = of_program(empty, &slices, &whole, self.ticks);
        into.samples.push(with_counts(sample, counted));
        let is_requested =
            |measure| self.requested.get(&id).is_some_and(|requested| requested.contains(&measure));
        let (all, shares) = (is_requested(Measure::Threads), is_requested(Measure::LockShares));
        for Slice { thread, .. } in &slices {
            let name = self.names.of(id, thread);
            // A thread that came or went meanwhile was there for a part of the interval.
            let lived: Nanos = thread.time.iter().copied().sum();
            let sample =
                Sample { thread: Some(name), from: to.since(lived), progress: None, ..empty };
            into.samples.push(of_thread(sample, thread));
            if shares {
                into.locks.extend(of_locks(name, thread));
            }
            match thread.now {
                None => self.names.forget(thread),
                Some(_) if all => into.threads.push(Thread {
                    id: name,
                    program: id,
                    cpu: thread.cpu.unwrap_or_default(),
                    on_cpu: thread.in_activity(ThreadActivity::Running),
                    mask_owner: live.binding(&self.proc, |pinning, place| {
                        pinning.owner(thread.thread, place, log)
                    })?,
                }),
                Some(_) => {}
            }
        }
        if whole.hidden && !program.is_hidden {
            program.is_hidden = true;
            return Ok(Some(Unseen::Waits(id)));
        }
        let previous = std::mem::replace(&mut self.lost, lost);
        Ok((previous == 0 && lost > 0).then_some(Unseen::Threads(lost)))
    }

    /// The threads of a program in the present reading. The end of a thread is reported only once,
    /// and each program has readings of its own, so the ends of other programs' threads are kept
    /// for them.
    fn share_out(&mut self, id: ProgramId) -> Vec<ThreadUse> {
        for thread in self.reading.iter().filter(|thread| thread.now.is_none()) {
            let others = self.programs.iter_mut().filter(|(other, _)| **other != id);
            let its = others.map(|(_, other)| other).find(|other| other.number == thread.program);
            its.into_iter().for_each(|other| other.ended.push(*thread));
        }
        let Some(program) = self.programs.get_mut(&id) else { return Vec::new() };
        let is_own = |thread: &ThreadUse| {
            thread.program == program.number && Some(thread.process) != program.shim
        };
        let ended = std::mem::take(&mut program.ended);
        self.reading.iter().copied().chain(ended).filter(is_own).collect()
    }
}

/// The threads of these processes that have not ended.
fn threads(members: &[Process], proc: &Proc) -> BTreeSet<i32> {
    members.iter().flat_map(|process| proc.threads(process.pid).unwrap_or_default()).collect()
}

/// Adds a running program to a monitor: all its processes, until none is new.
fn acquaint(
    monitor: &mut Monitor,
    program: &Observed,
    live: &Live,
    proc: &Proc,
) -> Result<(), FileError> {
    let mut added = BTreeSet::new();
    let mut result = program.shim.map_or(Ok(()), |shim| add(monitor, program.number, shim));
    live.tree.until_stable(proc, |process| {
        let is_new = added.insert(process.pid) && result.is_ok();
        if is_new {
            result = add(monitor, program.number, process.pid);
        }
        is_new
    });
    result
}

#[cfg(test)]
mod tests;
