//! A result by program: what each did from its arrival to its end, and what the policy decided
//! about it.
//!
//! *Problem.* `run.json` lists the spans in which a program was allowed to run, and separately all
//! decisions in order of time. To learn why a program did not run, a reader needs the spans
//! *between* those, and the decision that was in force then.
//!
//! *Idea.* A program's life is cut into [`Phase`]s without gaps. Each program has a list of the
//! decisions about it, in which a time is found by bisection. A decision comes a moment before its
//! effect, since `run.json` counts *confirmed* effects. A program may therefore still run although
//! it was last sent a freeze, and the other way round.
//!
//! *What run.json does not say.* A span between two turns counts as frozen unless the program had
//! ended before it, or another process stopped it in that span. A program that repeats only as a
//! co-runner, and waits for its next start when the run ends, counts as ended. What a program did
//! before the first span that is kept of a long run is not known, and no phase.

mod quanta;

use cosched_core::{CpuSet, Nanos, Reason, Refusal, Says, Why};
use cosched_policy::reasons::words;
use cosched_results::result::{CompletionResult, DeviationResult, RunResult, TimelineEntry};

pub use quanta::PlannedQuantum;

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activity {
    /// It has arrived, for the first time or again, and waits for its start.
    Unstarted,
    /// It may run on these CPUs; `None`: on all CPUs that it could use without cosched.
    Running(Option<CpuSet>),
    /// cosched has frozen it.
    Frozen,
    /// Another process has stopped it.
    Stopped,
}

impl Activity {
    /// Whether the program waits for a turn.
    pub fn waits(self) -> bool {
        matches!(self, Activity::Unstarted | Activity::Frozen)
    }

    /// One word, or a few words.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Unstarted => "not started",
            Activity::Running(_) => "running",
            Activity::Frozen => "frozen",
            Activity::Stopped => "stopped by another process",
        }
    }
}

/// A span in which a program does one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// From here, nanoseconds since the run began.
    pub from: Nanos,
    /// To here; later than `from`.
    pub to: Nanos,
    /// What it does.
    pub state: Activity,
}

impl Phase {
    /// How long it lasts.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// A decision about a program: what it was last sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent<'a> {
    /// When.
    pub at: Nanos,
    /// Which of its runs the decision is about, from 0.
    pub generation: u32,
    /// The reason, which says what was decided.
    pub why: &'a Why,
    says: Says,
}

impl Sent<'_> {
    /// Whether the program is to run.
    pub fn runs(&self) -> Option<bool> {
        runs(self.says)
    }
}

/// Whether a program is to run by what a reason says (`true`) or to wait (`false`). `None` for
/// reasons of a plan as a whole, and for reasons about threads.
pub fn runs(says: Says) -> Option<bool> {
    match says {
        Says::Runs => Some(true),
        Says::Waits => Some(false),
        Says::Threads | Says::Nothing => None,
    }
}

/// A result by program.
#[derive(Clone, Debug)]
pub struct History<'a> {
    /// The result.
    pub result: &'a RunResult,
    phases: Vec<Vec<Phase>>,
    sent: Vec<Vec<Sent<'a>>>,
    quanta: Vec<PlannedQuantum>,
}

impl<'a> History<'a> {
    /// Sorts a result by program.
    pub fn of(result: &'a RunResult) -> History<'a> {
        let slots = 0..result.programs.len();
        let mut sent: Vec<Vec<Sent<'a>>> = slots.clone().map(|_| Vec::new()).collect();
        for decision in &result.decisions {
            for reason in &decision.reasons {
                // A damaged file may name programs that it does not have.
                let Some(id) = reason.program else { continue };
                let Some(list) = sent.get_mut(usize::from(id.slot)) else { continue };
                let says = words(&reason.why).says;
                if says != Says::Threads {
                    let (at, why) = (nanos(decision.at_seconds), &reason.why);
                    list.push(Sent { at, generation: id.generation, why, says });
                }
            }
        }
        let phases: Vec<Vec<Phase>> = slots.map(|slot| phases(result, slot)).collect();
        let quanta = quanta::quanta(result, &phases);
        History { result, phases, sent, quanta }
    }

    /// What a program did, in order of time and without gaps, from its arrival, or from the first
    /// span that is kept of it, to its last end.
    pub fn phases(&self, slot: usize) -> &[Phase] {
        &self.phases[slot]
    }

    /// What it did at a time; `None` before its arrival and after its end.
    pub fn phase_at(&self, slot: usize, at: Nanos) -> Option<Phase> {
        let phases = &self.phases[slot];
        let next = phases.partition_point(|phase| phase.to <= at);
        phases.get(next).filter(|phase| phase.from <= at).copied()
    }

    /// The last decision about a program's current run at a time.
    pub fn sent_at(&self, slot: usize, at: Nanos) -> Option<Sent<'a>> {
        let generation = self.generation(slot, at);
        self.sent_until(slot, at).rev().find(|sent| sent.generation == generation).copied()
    }

    /// Why a program waited in a phase: the last decision before its end that made it wait.
    pub fn waits_because(&self, slot: usize, phase: &Phase) -> Option<Sent<'a>> {
        let generation = self.generation(slot, phase.from);
        let meant = |sent: &&Sent<'_>| sent.generation == generation && sent.runs() == Some(false);
        self.sent_until(slot, phase.to).rev().find(meant).copied()
    }

    /// The decisions about a program's current run within a phase, in order of time.
    pub fn sent_within(&self, slot: usize, phase: &Phase) -> impl Iterator<Item = &Sent<'a>> {
        let (generation, to) = (self.generation(slot, phase.from), phase.to);
        let sent = &self.sent[slot];
        let later = sent[sent.partition_point(|sent| sent.at <= phase.from)..].iter();
        later.take_while(move |sent| sent.at < to).filter(move |sent| sent.generation == generation)
    }

    fn sent_until(&self, slot: usize, at: Nanos) -> impl DoubleEndedIterator<Item = &Sent<'a>> {
        let sent = &self.sent[slot];
        sent[..sent.partition_point(|sent| sent.at <= at)].iter()
    }

    /// The number of a program's current or next run at a time, from 0.
    fn generation(&self, slot: usize, at: Nanos) -> u32 {
        let ended = |run: &CompletionResult| nanos(run.at_seconds) <= at;
        let program = &self.result.programs[slot];
        program.earlier_completions as u32 + program.completions.partition_point(ended) as u32
    }

    /// The deviations of a program from one time to another (both included), latest first.
    pub fn deviations(
        &self,
        slot: usize,
        from: Nanos,
        to: Nanos,
    ) -> impl Iterator<Item = &'a DeviationResult> {
        deviations(self.result, slot, from, to)
    }

    /// The quanta, in order of time.
    pub fn quanta(&self) -> &[PlannedQuantum] {
        &self.quanta
    }

    /// The quantum at a time; `None` before the first, and while all programs fit at once.
    pub fn quantum_at(&self, at: Nanos) -> Option<&PlannedQuantum> {
        self.begun(at).filter(|quantum| at < quantum.to || quantum.to == self.end())
    }

    /// Since when all programs fit at once at a time, so that there are no quanta any more.
    pub fn room_since(&self, at: Nanos) -> Option<Nanos> {
        let quantum = self.begun(at)?;
        self.quantum_at(at).is_none().then_some(quantum.to)
    }

    /// The last quantum that was decided at or before a time.
    fn begun(&self, at: Nanos) -> Option<&PlannedQuantum> {
        self.quanta[..self.quanta.partition_point(|quantum| quantum.from <= at)].last()
    }

    /// When a program was done or detached; the end of the run where it was not.
    pub fn done(&self, slot: usize) -> Nanos {
        let program = &self.result.programs[slot];
        let turnaround = program.turnaround_seconds;
        let last = || self.phases(slot).last().filter(|_| self.result.was_detached(slot));
        let end = || last().map_or(self.end(), |phase| phase.to);
        turnaround.map_or_else(end, |time| nanos(program.arrived_seconds + time))
    }

    /// When the run ended.
    pub fn end(&self) -> Nanos {
        nanos(self.result.total_seconds)
    }

    /// A program's name.
    pub fn name(&self, slot: usize) -> &'a str {
        &self.result.programs[slot].name
    }

    /// What a program did until it was done, in order of time.
    pub fn phases_until_done(&self, slot: usize) -> impl Iterator<Item = Phase> + '_ {
        let done = self.done(slot);
        let before = self.phases(slot).iter().filter(move |phase| phase.from < done);
        before.map(move |phase| Phase { to: phase.to.min(done), ..*phase })
    }

    /// The longest single wait of a program until it was done, for a start or frozen.
    pub fn longest_wait(&self, slot: usize) -> Option<Phase> {
        self.phases_until_done(slot).filter(|p| p.state.waits()).max_by_key(Phase::length)
    }

    /// The spans in which programs may run, each with the position of its program.
    pub fn running(&self) -> impl Iterator<Item = (Phase, usize)> + '_ {
        let of = |slot| move |phase: &Phase| (*phase, slot);
        let all = self.phases.iter().enumerate().flat_map(move |(slot, p)| p.iter().map(of(slot)));
        all.filter(|(phase, _)| matches!(phase.state, Activity::Running(_)))
    }
}

/// Seconds of a file in the engine's unit, exact to the microsecond.
pub fn nanos(seconds: f64) -> Nanos {
    Nanos::from_micros((seconds * 1e6).round() as u64)
}

/// From spans that each have a member: for every time at which a member comes or goes, the members
/// that are there from then on, in ascending order.
pub fn changes(spans: impl Iterator<Item = (Nanos, Nanos, usize)>) -> Vec<(Nanos, Vec<usize>)> {
    let mut edges: Vec<(Nanos, bool, usize)> = Vec::new();
    for (from, to, member) in spans {
        edges.extend([(from, true, member), (to, false, member)]);
    }
    // A member that goes and comes back at the same time does not count as having gone.
    edges.sort_unstable();
    let mut present: Vec<usize> = Vec::new();
    let mut changes: Vec<(Nanos, Vec<usize>)> = Vec::new();
    for together in edges.chunk_by(|a, b| a.0 == b.0) {
        for (_, comes, member) in together {
            match (comes, present.binary_search(member)) {
                (true, Ok(place) | Err(place)) => present.insert(place, *member),
                (false, Ok(place)) => {
                    present.remove(place);
                }
                (false, Err(_)) => {}
            }
        }
        if changes.last().is_none_or(|(_, before)| *before != present) {
            changes.push((together[0].0, present.clone()));
        }
    }
    changes
}

/// All reasons of a run, each with the time of its decision, seconds.
pub(crate) fn reasons(run: &RunResult) -> impl Iterator<Item = (f64, &Reason)> {
    run.decisions.iter().flat_map(|made| made.reasons.iter().map(|why| (made.at_seconds, why)))
}

/// The reasons that were given for a program, each with its time.
pub(crate) fn reasons_about(run: &RunResult, slot: usize) -> impl Iterator<Item = (f64, &Why)> {
    let is_own =
        move |reason: &Reason| reason.program.is_some_and(|id| usize::from(id.slot) == slot);
    reasons(run).filter(move |(_, reason)| is_own(reason)).map(|(at, reason)| (at, &reason.why))
}

fn deviations(
    result: &RunResult,
    slot: usize,
    from: Nanos,
    to: Nanos,
) -> impl Iterator<Item = &DeviationResult> {
    let at = |deviation: &DeviationResult| nanos(deviation.at_seconds);
    let until = result.deviations.partition_point(|deviation| at(deviation) <= to);
    let latest_first = result.deviations[..until].iter().rev();
    latest_first
        .take_while(move |deviation| at(deviation) >= from)
        .filter(move |deviation| usize::from(deviation.program.slot) == slot)
}

fn phases(result: &RunResult, slot: usize) -> Vec<Phase> {
    let program = &result.programs[slot];
    let mut phases = Vec::new();
    let mut until = nanos(program.arrived_seconds);
    let mut push = |from: Nanos, to: Nanos, state: Activity| {
        if from < to {
            phases.push(Phase { from, to, state });
        }
    };
    let held = |from: Nanos, to: Nanos| {
        let stopped = |deviation: &DeviationResult| deviation.why == Refusal::StoppedByOther;
        match deviations(result, slot, from, to).any(stopped) {
            true => Activity::Stopped,
            false => Activity::Frozen,
        }
    };
    let ended_within = |from: Nanos, to: Nanos| {
        let ends = |completion: &CompletionResult| nanos(completion.at_seconds);
        let before = program.completions.partition_point(|completion| ends(completion) <= to);
        program.completions[..before].last().map(ends).filter(|end| *end >= from)
    };
    let first = program.timeline.first().zip(program.started_seconds);
    let is_cut = result.kept_from_seconds.is_some()
        && first.is_some_and(|(first, started)| nanos(first.0) > nanos(started));
    let mut started = false;
    for TimelineEntry(from, to, cpus) in &program.timeline {
        let (from, to) = (nanos(*from), nanos(*to));
        match ended_within(until, from) {
            _ if is_cut && !started => {}
            _ if !started => push(until, from, Activity::Unstarted),
            Some(end) => {
                push(until, end, held(until, end));
                push(end, from, Activity::Unstarted);
            }
            None => push(until, from, held(until, from)),
        }
        push(from, to, Activity::Running(*cpus));
        (until, started) = (to, true);
    }
    let end = nanos(result.total_seconds);
    match ended_within(until, end) {
        // It could not be started, or the run ended before its start.
        _ if !started => {
            push(until, end.min(until + nanos(program.waiting_seconds)), Activity::Unstarted);
        }
        Some(ended) => push(until, ended, held(until, ended)),
        None if result.was_detached(slot) => {}
        None => push(until, end, held(until, end)),
    }
    phases
}

#[cfg(test)]
mod tests;
