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
mod reading;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{Arena, Measure, Nanos, ProgramId, ThreadId};

use super::names::{Named, ThreadIds};
use super::program::Live;
use crate::hook::Reported;
use crate::kernel::clock::Clock;
use crate::kernel::files::{FileError, unless_gone};
use crate::kernel::procfs::Proc;
use crate::machine::MachineError;
use crate::observe::counters::{Events, Readings, ThreadMisses};
use crate::observe::cpu_clocks::CpuClocks;
use crate::observe::monitor::ThreadUse;
use crate::observe::monitor::interval::Intervals;
use crate::observe::pointers::CodeSamples;
use crate::observe::run_delays::RunDelays;
use crate::process::tree::Process;
use crate::safety::undo::Log;
use source::MonitorState;

#[derive(Debug, Default)]
pub(super) struct Observer {
    proc: Proc,
    source: MonitorState,
    /// Whether it counts ticks, and whether it distinguishes locks.
    ticks: bool,
    locks: bool,
    /// When the next samples are to be taken, where that is necessary.
    look_at: Option<Nanos>,
    requested: BTreeMap<ProgramId, BTreeSet<Measure>>,
    programs: BTreeMap<ProgramId, Observed>,
    reading: Vec<ThreadUse>,
    names: ThreadIds,
    /// Whether threads were seen for the first time.
    has_newcomers: bool,
    /// The counters of single threads, where they are requested.
    misses: ThreadMisses,
    /// How many threads could not be observed, as far as that was reported.
    lost: u64,
    /// The positions of programs in their code, once they are requested and where they are seen.
    pub(super) code: Option<CodeSamples>,
    /// Whether the user knows that they cannot be seen.
    pub(super) is_blind: bool,
    /// Whether the user knows that some of them were lost.
    pub(super) is_incomplete: bool,
}

/// What is unknown about a program's threads.
pub(super) enum Unseen {
    /// What this program's threads sleep for.
    Waits(ProgramId),
    /// A number of threads of any programs.
    Threads(u64),
    /// The cache misses of some threads of this program.
    Misses(ProgramId),
}

#[derive(Debug, Default)]
struct Observed {
    /// Its number for the monitor.
    number: u32,
    /// Its parent, which is not part of it.
    shim: Option<i32>,
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
    /// Counts these events of so many single threads.
    pub(super) fn new(proc: Proc, events: Events, most_threads: usize) -> Observer {
        let misses = ThreadMisses::new(events, most_threads);
        Observer { proc, misses, ..Observer::default() }
    }

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

    pub(super) fn named(&self, id: ThreadId) -> Option<Named> {
        self.names.named(id)
    }

    /// Observes a process of a program, and what it will start, if that is requested. Where the
    /// process is the program's shim, the program is observed from its first instruction on.
    pub(super) fn begin(
        &mut self,
        id: ProgramId,
        process: Process,
        is_shim: bool,
        clock: &Clock,
    ) -> Result<(), FileError> {
        if !self.requested.contains_key(&id) {
            return Ok(());
        }
        let from_the_start = self.is_requested(id, Measure::LockWait);
        let looks_at_threads = self.looks_at_threads(id);
        let number = u32::from(id.slot) << 16 | (id.generation & 0xffff);
        let now = clock.now();
        let shim = is_shim.then_some(process.pid);
        let observed = || Observed { number, shim, from: now, ..Observed::default() };
        let program = self.programs.entry(id).or_insert_with(observed);
        if !looks_at_threads {
            return Ok(());
        }
        let Some(monitor) = self.source.ready(from_the_start, &self.proc) else { return Ok(()) };
        self.look_at = monitor.looks_every().map(|period| now + period);
        program.is_known = true;
        let added = unless_gone(monitor.add(number, process.pid));
        self.set_locks();
        added.map(drop)
    }

    pub(super) fn forget(&mut self, id: ProgramId) {
        self.requested.remove(&id);
        self.code.iter_mut().for_each(|code| code.forget(id));
        if let Some(program) = self.programs.remove(&id) {
            for thread in program.intervals.known().chain(&program.ended) {
                self.names.forget(thread);
                self.misses.forget(thread.thread);
            }
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

    pub(super) fn next_look(&self) -> Nanos {
        self.look_at.filter(|_| !self.programs.is_empty()).unwrap_or(Nanos::NEVER)
    }

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
        let Some(program) = self.programs.get_mut(&id) else { return Ok(None) };
        let own = program.own(id, live, clock.now());
        let is_known = program.is_known;
        into.ips.extend(self.positions(id));
        if !is_known && !looks_at_threads {
            into.samples.push(self.of_processes(live, own));
            return Ok(None);
        }
        match self.begin_threads(live, own.to)? {
            true => self.of_threads(live, own, clock, log, into),
            false => {
                into.samples.push(own);
                Ok(None)
            }
        }
    }
}

/// The threads of these processes that have not ended.
fn threads(members: &[Process], proc: &Proc) -> BTreeSet<i32> {
    members.iter().flat_map(|process| proc.threads(process.pid).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests;
