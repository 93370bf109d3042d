//! What is read of a program at the end of an interval, by source: what it tells itself and what
//! its counters have counted, the clocks of its processes, and the threads that a monitor sees.

use cosched_core::{Arena, IpBin, Measure, Nanos, ProgramId, Quality, Sample, Thread};

use super::{Observed, Observer, Unseen};
use crate::hook::HookServer;
use crate::kernel::clock::Clock;
use crate::kernel::files::{FileError, unless_gone};
use crate::kernel::procfs::Proc;
use crate::machine::program::Live;
use crate::machine::samples::{of_locks, of_program, of_thread, with_counts};
use crate::machine::{MachineError, each_process};
use crate::observe::counters::Counters;
use crate::observe::monitor::interval::{Slice, by_program};
use crate::observe::monitor::{Monitor, ThreadActivity, ThreadUse};
use crate::safety::undo::Log;

impl Observed {
    /// Ends the interval at this time, and begins the next one. Returns what is known of it without
    /// a look at processes or threads.
    pub(super) fn own(&mut self, id: ProgramId, live: &Live, to: Nanos) -> Sample {
        let from = std::mem::replace(&mut self.from, to);
        let counts = live.counters.as_ref().map(Counters::readings).unwrap_or_default();
        let counts = counts.since(std::mem::replace(&mut self.counted, counts));
        let reported = live.hook_server.as_ref().map(HookServer::reported).unwrap_or_default();
        let progress = reported.since(std::mem::replace(&mut self.reported, reported));
        let frozen = live.frozen.until(to);
        let frozen = frozen.since(std::mem::replace(&mut self.frozen, frozen));
        with_counts(Sample { progress, frozen, ..Sample::empty(id, from, to) }, counts)
    }
}

impl Observer {
    /// Where in its code a program was.
    pub(super) fn positions(&mut self, program: ProgramId) -> impl Iterator<Item = IpBin> + use<> {
        let blocks = self.code.as_mut().map(|code| code.take(program)).unwrap_or_default();
        blocks.into_iter().map(move |(block, count)| IpBin { program, block, count })
    }

    /// Adds what the clocks of a program's processes tell.
    pub(super) fn of_processes(&mut self, live: &Live, own: Sample) -> Sample {
        let own = Sample { quality: Quality::Exact, ..own };
        let needs_cpu_time = self.is_requested(live.id, Measure::CpuTime);
        // A program that was frozen all the time did nothing: finding its processes would be most
        // of the cost of a sample.
        let rested = own.frozen == own.to - own.from;
        match self.programs.get_mut(&live.id).filter(|_| !rested) {
            Some(program) => {
                let members = live.tree.members(&self.proc);
                let used = program.clocks.next(&members);
                let delays = &mut program.delays;
                let run_delay = needs_cpu_time.then(|| delays.next(&members, &self.proc)).flatten();
                Sample { on_cpu: used.all, user_time: Some(used.outside), run_delay, ..own }
            }
            None => Sample { user_time: Some(Nanos::ZERO), ..own },
        }
    }

    /// Begins to observe the threads of a program, if that has not begun. Returns whether they were
    /// observed in the interval that ends now.
    pub(super) fn begin_threads(&mut self, live: &Live, now: Nanos) -> Result<bool, FileError> {
        let Some(program) = self.programs.get_mut(&live.id) else { return Ok(false) };
        let Some(monitor) = self.source.ready(false, &self.proc) else { return Ok(false) };
        if std::mem::replace(&mut program.is_known, true) {
            return Ok(true);
        }
        self.look_at = monitor.looks_every().map(|period| now + period);
        acquaint(monitor, program, live, &self.proc)?;
        Ok(false)
    }

    /// Adds what a monitor has seen of a program's threads.
    pub(super) fn of_threads(
        &mut self,
        live: &mut Live,
        own: Sample,
        clock: &Clock,
        log: &mut Log,
        into: &mut Arena,
    ) -> Result<Option<Unseen>, MachineError> {
        let id = live.id;
        let Some(monitor) = self.source.ready(false, &self.proc) else { return Ok(None) };
        monitor.read(&mut self.reading)?;
        let lost = monitor.lost();
        let threads = self.share_out(id);
        let Some(program) = self.programs.get_mut(&id) else { return Ok(None) };
        let slices = program.intervals.next(&threads, clock.monotonic(own.from));
        let whole = by_program(&slices).remove(&program.number).unwrap_or_default();
        into.samples.push(of_program(own, &slices, &whole, self.ticks));
        let is_news = whole.hidden && !std::mem::replace(&mut program.is_hidden, whole.hidden);
        for slice in &slices {
            self.add_thread(live, own.to, slice, log, into)?;
        }
        if is_news {
            return Ok(Some(Unseen::Waits(id)));
        }
        if self.misses.has_filled_up() {
            return Ok(Some(Unseen::Misses(id)));
        }
        let previous = std::mem::replace(&mut self.lost, lost);
        Ok((previous == 0 && lost > 0).then_some(Unseen::Threads(lost)))
    }

    fn add_thread(
        &mut self,
        live: &mut Live,
        to: Nanos,
        Slice { thread, .. }: &Slice,
        log: &mut Log,
        into: &mut Arena,
    ) -> Result<(), MachineError> {
        let id = live.id;
        self.has_newcomers |= !self.names.knows(thread);
        let name = self.names.of(id, thread);
        // A thread that came or went meanwhile was there for a part of the interval.
        let lived: Nanos = thread.time.iter().copied().sum();
        let sample = Sample { thread: Some(name), ..Sample::empty(id, to.since(lived), to) };
        let misses = self.is_requested(id, Measure::ThreadMisses);
        let misses = misses.then(|| self.misses.next(thread.thread)).flatten();
        into.samples.push(Sample { llc_misses: misses, ..of_thread(sample, thread) });
        if self.is_requested(id, Measure::LockShares) {
            into.locks.extend(of_locks(name, thread));
        }
        match thread.now {
            None => {
                self.names.forget(thread);
                self.misses.forget(thread.thread);
            }
            Some(_) if self.is_requested(id, Measure::Threads) => into.threads.push(Thread {
                id: name,
                program: id,
                process: thread.process.unsigned_abs(),
                cpu: thread.cpu.unwrap_or_default(),
                on_cpu: thread.in_activity(ThreadActivity::Running),
                mask_owner: live.binding(&self.proc, |pinning, place| {
                    pinning.owner(thread.thread, place, log)
                })?,
            }),
            Some(_) => {}
        }
        Ok(())
    }

    /// The threads of a program in the present reading. The end of a thread is reported only once,
    /// and each program has readings of its own, so the ends of other programs' threads are kept
    /// for them.
    pub(super) fn share_out(&mut self, id: ProgramId) -> Vec<ThreadUse> {
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

/// Adds a running program to a monitor: all its processes, until none is new.
fn acquaint(
    monitor: &mut Monitor,
    program: &Observed,
    live: &Live,
    proc: &Proc,
) -> Result<(), FileError> {
    let mut add = |process| unless_gone(monitor.add(program.number, process)).map(drop);
    program.shim.map_or(Ok(()), &mut add)?;
    each_process(&live.tree, proc, |process| add(process.pid))
}
