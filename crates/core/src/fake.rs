//! A machine for tests. Programs need a given time of running, effects have a given latency, and a
//! script adds other events, all in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use crate::id::ProgramId;
use crate::machine::{Event, Happening, Machine, Signal, Step};
use crate::plan::Observe;
use crate::program::{Exit, Thread, Usage};
use crate::sample::{Arena, IpBin};
use crate::time::Nanos;

/// More waits than any test needs. It ends tests in which a policy and an engine cause each other's
/// events without end.
const MOST_WAITS: u64 = 100_000;

/// A scripted machine. Programs ignore each other: each makes progress while it may run.
#[derive(Debug, Default)]
pub struct Fake {
    now: Nanos,
    /// How long one run of each slot takes when it is never frozen.
    pub work: Vec<Nanos>,
    /// From a start step to the program's first instruction.
    pub start_latency: Nanos,
    /// From a freeze step to its confirmation.
    pub freeze_latency: Nanos,
    /// From a thaw step to its confirmation.
    pub thaw_latency: Nanos,
    /// The process that drives the machine is itself stopped in this span, and gets no event before
    /// its end.
    pub deaf: Option<(Nanos, Nanos)>,
    /// Programs for which freezes are never confirmed.
    pub unfreezable: BTreeSet<ProgramId>,
    /// Programs that end only on [`Signal::Kill`].
    pub stubborn: BTreeSet<ProgramId>,
    /// Every step that was submitted, with its time.
    pub submitted: Vec<(Nanos, Step)>,
    /// The threads that a reading returns, in the order of [`Arena::threads`].
    pub threads: Vec<Thread>,
    /// The samples of code that a reading returns, in the order of [`Arena::ips`].
    pub ips: Vec<IpBin>,
    /// Every reading, with its time.
    pub reads: Vec<(Nanos, Vec<Observe>)>,
    jobs: BTreeMap<ProgramId, FakeJob>,
    pending: BTreeMap<(Nanos, u64), Event>,
    sequence: u64,
    waits: u64,
}

#[derive(Debug)]
struct FakeJob {
    remaining: Nanos,
    running: bool,
}

impl Fake {
    /// A machine on which slot `i` takes `work[i]`, and effects are immediate.
    pub fn new(work: impl IntoIterator<Item = Nanos>) -> Fake {
        Fake { work: work.into_iter().collect(), ..Fake::default() }
    }

    /// Adds an event at a time of the script's choice.
    pub fn script(&mut self, at: Nanos, what: Happening) {
        self.script_late(at, Event { at, what });
    }

    /// Adds an event that is found at `found`, but happened at another time.
    pub fn script_late(&mut self, found: Nanos, event: Event) {
        self.sequence += 1;
        self.pending.insert((found, self.sequence), event);
    }

    /// The submitted steps without their times.
    pub fn steps(&self) -> Vec<Step> {
        self.submitted.iter().map(|(_, step)| *step).collect()
    }

    fn next_completion(&self) -> Option<(Nanos, ProgramId)> {
        let running = self.jobs.iter().filter(|(_, job)| job.running);
        running.map(|(id, job)| (self.now + job.remaining, *id)).min()
    }

    fn advance(&mut self, to: Nanos) {
        let passed = to - self.now;
        for job in self.jobs.values_mut().filter(|job| job.running) {
            job.remaining = job.remaining - passed;
        }
        self.now = to;
    }

    /// A pending effect takes place: jobs run or stop from here on.
    fn take_effect(&mut self, what: Happening) {
        let Some(id) = what.program() else { return };
        match what {
            Happening::Exited(..) => drop(self.jobs.remove(&id)),
            Happening::Started(_) | Happening::Thawed(_) | Happening::ContinuedByOther(_) => {
                self.set(id, true)
            }
            Happening::Froze(_) | Happening::StoppedByOther(_) => self.set(id, false),
            _ => {}
        }
    }

    fn set(&mut self, id: ProgramId, running: bool) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.running = running;
        }
    }

    fn forget_pending_freeze(&mut self, id: ProgramId) {
        self.pending.retain(|_, event| event.what != Happening::Froze(id));
    }
}

impl Machine for Fake {
    type Error = Infallible;

    fn now(&self) -> Nanos {
        self.now
    }

    fn wait(&mut self, until: Nanos, out: &mut Vec<Event>) -> Result<Nanos, Infallible> {
        let effect = self.pending.keys().next().map(|(at, _)| *at);
        let completion = self.next_completion();
        let next = effect.into_iter().chain(completion.map(|(at, _)| at)).min();
        let at = next.unwrap_or(Nanos::NEVER).min(until).max(self.now);
        let at =
            self.deaf.filter(|(from, to)| (*from..*to).contains(&at)).map_or(at, |span| span.1);
        assert!(at != Nanos::NEVER, "the engine waits for ever: nothing runs and nothing is due");
        self.waits += 1;
        assert!(self.waits < MOST_WAITS, "the run does not end; it is {} now", self.now);
        self.advance(at);
        while let Some(entry) = self.pending.first_entry().filter(|entry| entry.key().0 <= at) {
            let event = entry.remove();
            self.take_effect(event.what);
            out.push(event);
        }
        while let Some((_, id)) = self.next_completion().filter(|(done, _)| *done <= at) {
            self.jobs.remove(&id);
            self.forget_pending_freeze(id);
            out.push(Event { at, what: Happening::Exited(id, Exit::Code(0), Usage::default()) });
        }
        Ok(self.now)
    }

    fn read(&mut self, what: &[Observe], into: &mut Arena) -> Result<(), Infallible> {
        self.reads.push((self.now, what.to_vec()));
        into.threads.clone_from(&self.threads);
        into.ips.clone_from(&self.ips);
        Ok(())
    }

    fn submit(&mut self, steps: &[Step]) -> Result<(), Infallible> {
        for step in steps {
            self.submitted.push((self.now, *step));
            match *step {
                Step::Start(id, _) => {
                    let remaining = self.work[usize::from(id.slot)];
                    self.jobs.insert(id, FakeJob { remaining, running: false });
                    self.script(self.now + self.start_latency, Happening::Started(id));
                }
                Step::Freeze(id) if self.unfreezable.contains(&id) => {}
                Step::Freeze(id) => {
                    self.script(self.now + self.freeze_latency, Happening::Froze(id))
                }
                Step::Thaw(id) | Step::Release(id) => {
                    self.forget_pending_freeze(id);
                    self.script(self.now + self.thaw_latency, Happening::Thawed(id));
                }
                Step::Apply(id, _, epoch) => self.script(self.now, Happening::Applied(id, epoch)),
                Step::ApplyThread(..) | Step::Observe(_) => {}
                Step::Signal(id, signal) => {
                    if signal == Signal::Kill || !self.stubborn.contains(&id) {
                        let exit = Exit::Signal(if signal == Signal::Kill { 9 } else { 15 });
                        self.script(self.now, Happening::Exited(id, exit, Usage::default()));
                    }
                }
            }
        }
        Ok(())
    }
}
