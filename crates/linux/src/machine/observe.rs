//! What policies have measured: the readings of a [monitor](crate::monitor), as samples of programs and threads.
//!
//! Nothing is loaded or read before a policy asks for it. To load programs into the kernel takes a tenth of a second, so
//! that is done in the [background](crate::background), and nobody starts later for it: a program whose threads are to be
//! counted is observed from when it is done. A program whose waits for locks are wanted before it starts is observed from its
//! first instruction on, and starts later if need be: its shim is observed, of which it inherits that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use cosched_core::{
    Arena, Counts, MaskOwner, Measure, Nanos, Observe, ProgramId, Quality, Sample, Thread, ThreadId,
};

use super::Linux;
use super::program::Live;
use crate::background;
use crate::clock::Clock;
use crate::counters::{Counters, Events, Readings};
use crate::files::FileError;
use crate::hook::Door;
use crate::monitor::interval::{Intervals, ProgramUse, Slice, by_program};
use crate::monitor::{Activity, Monitor, ThreadUse, Ticks};
use crate::procfs::Proc;
use crate::tree::Process;

/// What is observed, and by what.
#[derive(Debug, Default)]
pub(super) struct Observer {
    source: Source,
    /// Whether it counts ticks.
    ticks: bool,
    /// When samples are to be taken next, where they have to be.
    look_at: Option<Nanos>,
    /// What each program is observed for.
    wanted: BTreeMap<ProgramId, BTreeSet<Measure>>,
    programs: BTreeMap<ProgramId, Observed>,
    reading: Vec<ThreadUse>,
    names: Names,
}

/// What looks at programs.
#[derive(Debug, Default)]
enum Source {
    #[default]
    Closed,
    Opening(Receiver<Monitor>),
    Open(Monitor),
}

impl Source {
    /// Opened in the background; `None` until that is done, unless it is waited for.
    fn ready(&mut self, wait: bool) -> Option<&mut Monitor> {
        let open = || Monitor::open(&Proc::default()).0;
        if let Source::Closed = self {
            let (done, opened) = channel();
            // Whoever waits for it may have gone meanwhile.
            let spawned = background::spawn("observe", move || _ = done.send(open()));
            *self = spawned.map_or_else(|_| Source::Open(open()), |_| Source::Opening(opened));
        }
        if let Source::Opening(opened) = self {
            let received = match wait {
                true => opened.recv().map_err(|_| TryRecvError::Disconnected),
                false => opened.try_recv(),
            };
            *self = match received {
                Ok(monitor) => Source::Open(monitor),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Source::Open(Monitor::sampled(&Proc::default())),
            };
        }
        match self {
            Source::Open(monitor) => Some(monitor),
            Source::Closed | Source::Opening(_) => None,
        }
    }
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
    /// The ticks that it had told of its own progress.
    ticks: u64,
}

/// The names of threads for policies: a slot each, used again with another generation.
#[derive(Debug, Default)]
struct Names {
    slots: BTreeMap<(i32, i32), ThreadId>,
    next: u32,
    free: Vec<ThreadId>,
}

impl Names {
    fn of(&mut self, thread: &ThreadUse) -> ThreadId {
        let (next, free) = (&mut self.next, &mut self.free);
        *self.slots.entry((thread.process, thread.thread)).or_insert_with(|| match free.pop() {
            Some(used) => ThreadId { generation: used.generation + 1, ..used },
            None => {
                *next += 1;
                ThreadId { slot: *next - 1, generation: 0 }
            }
        })
    }

    fn forget(&mut self, thread: &ThreadUse) {
        self.free.extend(self.slots.remove(&(thread.process, thread.thread)));
    }
}

impl Observer {
    /// Whether a program is to be observed for something.
    pub(super) fn wants(&self, id: ProgramId, measure: Measure) -> bool {
        self.wanted.get(&id).is_some_and(|measures| measures.contains(&measure))
    }

    /// Begins with a program before its first instruction.
    pub(super) fn begin_below(
        &mut self,
        id: ProgramId,
        shim: Process,
        clock: &Clock,
    ) -> Result<(), FileError> {
        if !self.wanted.contains_key(&id) {
            return Ok(());
        }
        self.begin(id, Some(shim.pid), &[shim.pid], clock)
    }

    /// Begins with a program's first process as soon as it is there.
    pub(super) fn begin_at(
        &mut self,
        id: ProgramId,
        main: Process,
        clock: &Clock,
    ) -> Result<(), FileError> {
        if !self.wanted.contains_key(&id) {
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
        let from_the_start = self.wants(id, Measure::LockWait);
        let number = u32::from(id.slot) << 16 | (id.generation & 0xffff);
        let now = clock.now();
        let program = self.programs.entry(id).or_insert_with(|| Observed {
            number,
            shim,
            is_known: false,
            from: now,
            intervals: Intervals::default(),
            counted: Readings::default(),
            ticks: 0,
        });
        let Some(monitor) = self.source.ready(from_the_start) else { return Ok(()) };
        self.look_at = monitor.looks_every().map(|period| now + period);
        program.is_known = true;
        processes.iter().try_for_each(|process| add(monitor, number, *process))
    }

    /// A program has ended.
    pub(super) fn forget(&mut self, id: ProgramId) {
        self.wanted.remove(&id);
        self.programs.remove(&id);
        self.set_ticks();
    }

    /// Ticks are counted while somebody's user time is wanted. Where the kernel does not let us, there is none.
    fn set_ticks(&mut self) {
        let wanted = self.wanted.values().any(|measures| measures.contains(&Measure::UserTime));
        if wanted == self.ticks {
            return;
        }
        if let Some(monitor) = self.source.ready(false) {
            self.ticks = wanted && monitor.count_ticks(wanted).is_ok();
        }
    }

    /// When [`Observer::look`] is to be called next.
    pub(super) fn next_look(&self) -> Nanos {
        self.look_at.filter(|_| !self.programs.is_empty()).unwrap_or(Nanos::NEVER)
    }

    /// Takes a sample, if it is time.
    pub(super) fn look(&mut self, now: Nanos) -> Result<(), FileError> {
        let due = now >= self.next_look();
        let Some(monitor) = self.source.ready(false).filter(|_| due) else { return Ok(()) };
        monitor.look()?;
        self.look_at = monitor.looks_every().map(|period| now + period);
        Ok(())
    }

    fn read(
        &mut self,
        id: ProgramId,
        live: &Live,
        clock: &Clock,
        into: &mut Arena,
    ) -> Result<(), FileError> {
        self.set_ticks();
        let Some(program) = self.programs.get_mut(&id) else { return Ok(()) };
        let to = clock.now();
        let from = std::mem::replace(&mut program.from, to);
        let counted = live.counters.as_ref().map(Counters::readings).unwrap_or_default();
        let counted = counted.since(std::mem::replace(&mut program.counted, counted));
        let ticks = live.door.as_ref().and_then(Door::ticks);
        let before = std::mem::replace(&mut program.ticks, ticks.unwrap_or_default());
        // A count that goes back is a lie.
        let progress = ticks.map(|ticks| ticks.saturating_sub(before));
        let empty = Sample { progress, ..Sample::empty(id, from, to) };
        let monitor = match self.source.ready(false) {
            Some(monitor) if program.is_known => monitor,
            not_yet => {
                if let Some(monitor) = not_yet {
                    program.is_known = true;
                    self.look_at = monitor.looks_every().map(|period| to + period);
                    acquaint(monitor, program, live)?;
                }
                into.samples.push(with_counts(empty, counted));
                return Ok(());
            }
        };
        monitor.read(&mut self.reading)?;
        let own = |thread: &&ThreadUse| {
            thread.program == program.number && Some(thread.process) != program.shim
        };
        let own: Vec<ThreadUse> = self.reading.iter().filter(own).copied().collect();
        let slices = program.intervals.next(&own, clock.monotonic(from));
        let whole = by_program(&slices).remove(&program.number).unwrap_or_default();
        into.samples.push(with_counts(of_program(empty, &slices, &whole), counted));
        let all = self.wanted.get(&id).is_some_and(|wanted| wanted.contains(&Measure::Threads));
        for Slice { thread, .. } in &slices {
            let name = self.names.of(thread);
            // A thread that came or went meanwhile was there for a part of the interval.
            let lived: Nanos = thread.time.iter().copied().sum();
            let sample =
                Sample { thread: Some(name), from: to.since(lived), progress: None, ..empty };
            into.samples.push(of_thread(sample, thread));
            match thread.now {
                None => self.names.forget(thread),
                Some(_) if all => into.threads.push(Thread {
                    id: name,
                    program: id,
                    cpu: thread.cpu.unwrap_or_default(),
                    on_cpu: thread.in_activity(Activity::Running),
                    mask_owner: MaskOwner::Cosched,
                }),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Tells a monitor of a process, if it is still there.
fn add(monitor: &mut Monitor, program: u32, process: i32) -> Result<(), FileError> {
    match monitor.add(program, process) {
        Err(error) if error.is_gone() => Ok(()),
        other => other,
    }
}

/// Tells a monitor of a program that runs already: of all its processes, until none is new.
fn acquaint(monitor: &mut Monitor, program: &Observed, live: &Live) -> Result<(), FileError> {
    let mut told = BTreeSet::new();
    let mut result = program.shim.map_or(Ok(()), |shim| add(monitor, program.number, shim));
    live.tree.until_stable(&Proc::default(), |process| {
        let is_new = told.insert(process.pid) && result.is_ok();
        if is_new {
            result = add(monitor, program.number, process.pid);
        }
        is_new
    });
    result
}

fn of_thread(sample: Sample, thread: &ThreadUse) -> Sample {
    Sample {
        on_cpu: thread.in_activity(Activity::Running),
        frozen: thread.in_activity(Activity::Stopped),
        run_delay: Some(thread.in_activity(Activity::Runnable)),
        lock_wait: Some(thread.at_locks()),
        voluntary_switches: Some(thread.voluntary),
        involuntary_switches: Some(thread.involuntary),
        quality: quality(thread.preemptions.is_some()),
        ..sample
    }
}

fn of_program(sample: Sample, slices: &[Slice], whole: &ProgramUse) -> Sample {
    let sum = |activity: Activity| {
        slices.iter().map(|slice| slice.thread.in_activity(activity)).sum::<Nanos>()
    };
    let frozen = slices.iter().map(|slice| slice.thread.in_activity(Activity::Stopped)).max();
    let on_cpu = sum(Activity::Running);
    Sample {
        on_cpu,
        user_time: user_part(slices).map(|part| Nanos((on_cpu.0 as f64 * part) as u64)),
        frozen: frozen.unwrap_or_default(),
        run_delay: Some(sum(Activity::Runnable)),
        lock_wait: Some(slices.iter().map(|slice| slice.thread.at_locks()).sum()),
        voluntary_switches: Some(whole.voluntary),
        involuntary_switches: Some(whole.involuntary),
        quality: quality(whole.preemptions.is_some()),
        ..sample
    }
}

/// Of the CPU time, the part outside the kernel; `None` where nobody counted.
fn user_part(slices: &[Slice]) -> Option<f64> {
    let sum =
        |ticks: fn(Ticks) -> u64| slices.iter().map(|slice| ticks(slice.thread.ticks)).sum::<u64>();
    let (user, kernel) = (sum(|ticks| ticks.user), sum(|ticks| ticks.kernel));
    (user + kernel > 0).then(|| user as f64 / (user + kernel) as f64)
}

/// Without the kernel's part, times at locks are estimates.
fn quality(exact: bool) -> Quality {
    if exact { Quality::Exact } else { Quality::Scaled }
}

fn with_counts(sample: Sample, counts: Counts) -> Sample {
    let Counts { instructions, cycles, llc_references, llc_misses, .. } = counts;
    Sample { instructions, cycles, llc_references, llc_misses, ..sample }
}

impl Linux {
    /// Begins to measure, or stops.
    pub(super) fn observe(&mut self, observe: Observe) -> Result<(), FileError> {
        let Some(id) = observe.program else { return Ok(()) };
        if observe.period == Nanos::ZERO {
            if let Some(measures) = self.observer.wanted.get_mut(&id) {
                measures.remove(&observe.measure);
            }
            self.observer.set_ticks();
            return Ok(());
        }
        self.observer.wanted.entry(id).or_default().insert(observe.measure);
        self.count_if_wanted(id);
        self.observer.set_ticks();
        let running = self.live.get(&id).filter(|_| !self.observer.programs.contains_key(&id));
        let Some(live) = running else { return Ok(()) };
        let members: Vec<i32> =
            live.tree.members(&self.proc).iter().map(|process| process.pid).collect();
        self.observer.begin(id, None, &members, &self.clock)
    }

    /// Counts a program that runs already from now on, if that is wanted and it was not counted from its start.
    pub(super) fn count_if_wanted(&mut self, id: ProgramId) {
        if !self.observer.wants(id, Measure::Counters) {
            return;
        }
        let Some(live) = self.live.get_mut(&id).filter(|live| live.counters.is_none()) else {
            return;
        };
        let members = live.tree.members(&self.proc);
        // What ends meanwhile has nothing to count.
        let threads =
            members.iter().flat_map(|process| self.proc.threads(process.pid).unwrap_or_default());
        let events = self.count.unwrap_or(Events::HARDWARE);
        live.counters = Some(Counters::of(&threads.collect::<Vec<i32>>(), events));
    }

    /// Measures what is due.
    pub(super) fn sample(&mut self, what: &[Observe], into: &mut Arena) -> Result<(), FileError> {
        let due: BTreeSet<ProgramId> = what.iter().filter_map(|observe| observe.program).collect();
        let stays = |id: ProgramId| self.live.contains_key(&id) && !due.contains(&id);
        into.samples.retain(|sample| stays(sample.program));
        into.threads.retain(|thread| stays(thread.program));
        for id in due {
            if let Some(live) = self.live.get(&id) {
                self.observer.read(id, live, &self.clock, into)?;
            }
        }
        into.samples.sort_by_key(|sample| (sample.program, sample.thread));
        into.threads.sort_by_key(|thread| (thread.program, thread.id));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::ACTIVITIES;

    #[test]
    fn a_slot_is_used_again_with_another_generation() {
        let thread = |thread: i32| ThreadUse {
            program: 0,
            process: 1,
            thread,
            now: None,
            cpu: None,
            since: Nanos::ZERO,
            time: [Nanos::ZERO; ACTIVITIES],
            voluntary: 0,
            involuntary: 0,
            preemptions: None,
            migrations: None,
            ticks: Ticks::default(),
        };
        let mut names = Names::default();
        let first = names.of(&thread(10));
        assert_eq!(names.of(&thread(10)), first);
        assert_ne!(names.of(&thread(11)).slot, first.slot);
        names.forget(&thread(10));
        let again = names.of(&thread(12));
        assert_eq!((again.slot, again.generation), (first.slot, first.generation + 1));
    }
}
