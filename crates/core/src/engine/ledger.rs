//! The accounts: which program ran when, and which waited how long.
//!
//! The accounts rest on what the machine *confirmed*, at the time that the machine gave, and never
//! on what was requested. A program counts as running until its last thread is known to be stopped.

use super::latest::Latest;
use super::outcome::{Completion, NotStarted, ProgramOutcome, Span, Stretch, Totals};
use super::setup::ProgramSetup;
use crate::cpuset::CpuSet;
use crate::engine::Repeat;
use crate::estimates::Estimates;
use crate::id::ProgramId;
use crate::program::{Exit, Program, Usage};
use crate::time::Nanos;
use crate::turn::Turn;

/// At least this many spans, turns and complete runs of every program are kept.
const LEAST_SPANS: usize = 256;

/// The account of one slot of the workload.
#[derive(Debug)]
pub(super) struct Account {
    repeat: Repeat,
    pub(super) outcome: ProgramOutcome,
    /// Closed spans of the present run of the program, summed up.
    ran: Nanos,
    running_since: Option<(Nanos, Option<CpuSet>)>,
    /// Where programs take turns by weight: the start of its turn, if it is in turn.
    in_turn_since: Option<Nanos>,
    /// Where programs take turns by weight: since when it is a filler, if it is one.
    fills_since: Option<Nanos>,
    frozen_since: Option<Nanos>,
    detached: Option<Nanos>,
    /// Sums over all runs of the program, without the present spans.
    totals: Totals,
}

impl Account {
    /// An account that keeps this many spans.
    pub(super) fn new(entry: &ProgramSetup, spans: usize) -> Account {
        let most = spans.max(LEAST_SPANS);
        // What a program had used before it was attached to is no part of the run.
        let share = (!entry.runs_already).then_some(Nanos::ZERO);
        let outcome = ProgramOutcome {
            arrived: entry.arrives,
            completions: Latest::of(most),
            timeline: Latest::of(most),
            turns: Latest::of(most),
            share,
            ..ProgramOutcome::default()
        };
        Account {
            repeat: entry.repeat,
            outcome,
            ran: Nanos::ZERO,
            running_since: None,
            in_turn_since: None,
            fills_since: None,
            frozen_since: None,
            detached: None,
            totals: Totals { share, ..Totals::default() },
        }
    }

    /// The sums over all runs of the program at `now`. `program` is the present run, if there is
    /// one.
    pub(super) fn totals(&self, program: Option<&Program>, now: Nanos) -> Totals {
        let runs = self.running_since.map_or(Nanos::ZERO, |(from, _)| now - from);
        let waits = program.map_or(Nanos::ZERO, |program| program.waiting(now));
        let fills = self.fills_since.map_or(Nanos::ZERO, |since| now - since);
        Totals {
            ran: self.totals.ran + runs,
            waited: self.totals.waited + waits,
            filled: self.totals.filled + fills,
            ..self.totals
        }
    }

    /// Since when the program has been frozen, if it is.
    pub(super) fn frozen_since(&self) -> Option<Nanos> {
        self.frozen_since
    }

    /// Whether the run waits for nothing more of the program: it has done what the workload
    /// requires of it, it was released, or it never comes.
    pub(super) fn done(&self) -> bool {
        let outcome = &self.outcome;
        self.detached.is_some() || outcome.done.is_some() || outcome.not_started.is_some()
    }

    /// When the user let the program go.
    pub(super) fn detached(&self) -> Option<Nanos> {
        self.detached
    }

    /// Whether each of its runs so far has returned 0.
    pub(super) fn succeeded(&self) -> bool {
        let mut exits = self.outcome.completions.iter().map(|completion| completion.exit);
        self.outcome.earlier.failed.is_none() && exits.all(|exit| exit == Exit::Code(0))
    }

    /// The program will not be started.
    pub(super) fn never_comes(&mut self, why: NotStarted) {
        self.outcome.arrived = why.at;
        self.outcome.not_started = Some(why);
    }

    /// Whether the workload has a further run after the last completion.
    pub(super) fn repeats(&self) -> bool {
        let failed = |last: &Completion| matches!(last.exit, Exit::Failed(_));
        match self.repeat {
            _ if self.outcome.completions.last().is_some_and(failed) => false,
            Repeat::Times(n) => self.outcome.completions.count() < u64::from(n),
            Repeat::UntilAllFinish => true,
        }
    }

    /// Its threads may run from here on.
    pub(super) fn runs(&mut self, program: &mut Program, at: Nanos) {
        self.outcome.started.get_or_insert(at);
        self.stops_waiting(program, at);
        let begins = self.running_since.is_none() && program.turn.is_none();
        self.totals.turns += u64::from(begins);
        self.running_since.get_or_insert((at, program.cpus));
        self.takes_turns(program, at);
    }

    /// Its turn by weight may have begun or ended.
    pub(super) fn takes_turns(&mut self, program: &Program, at: Nanos) {
        let runs = self.running_since.is_some();
        match runs && program.turn == Some(Turn::Filler) {
            true => drop(self.fills_since.get_or_insert(at)),
            false => self.ends_filling(at),
        }
        let has_turn = runs && program.turn == Some(Turn::InTurn);
        match self.in_turn_since {
            None if has_turn => {
                self.in_turn_since = Some(at);
                self.totals.turns += 1;
            }
            Some(_) if !has_turn => self.ends_turn(at),
            _ => {}
        }
    }

    fn ends_turn(&mut self, at: Nanos) {
        if let Some(from) = self.in_turn_since.take() {
            self.outcome.turns.push(Stretch { from, to: at });
        }
    }

    fn ends_filling(&mut self, at: Nanos) {
        let filled = self.fills_since.take().map_or(Nanos::ZERO, |since| at - since);
        self.totals.filled += filled;
        if !self.done() {
            self.outcome.filled += filled;
        }
    }

    /// A share of the machine's CPU time is its own.
    pub(super) fn shares(&mut self, share: Nanos) {
        self.totals.share = self.totals.share.map(|so_far| so_far + share);
        if !self.done() {
            self.outcome.share = self.outcome.share.map(|so_far| so_far + share);
        }
    }

    /// Its waiting is over, whether it was for its start or frozen.
    pub(super) fn stops_waiting(&mut self, program: &mut Program, at: Nanos) {
        let waited = program.waiting_since.take().map(|since| at - since);
        let frozen = self.frozen_since.take().map(|since| at - since);
        program.waited += waited.unwrap_or_default();
        self.totals.waited += waited.unwrap_or_default();
        if !self.done() {
            self.outcome.waited += waited.unwrap_or_default();
            frozen.into_iter().for_each(|gap| self.outcome.frozen.add(gap));
        }
    }

    /// The policy has estimated its speed alone. Idle CPUs after it was done are not charged to it.
    pub(super) fn estimates(&mut self, estimates: Estimates, now: Nanos) {
        let is_over = self.outcome.done.is_some_and(|done| done < now);
        let charged = self.outcome.estimates.filter(|_| is_over);
        let idle = charged.map_or(estimates.training_idle_seconds, |e| e.training_idle_seconds);
        self.outcome.estimates = Some(Estimates { training_idle_seconds: idle, ..estimates });
    }

    /// cosched has stopped all its threads from here on.
    pub(super) fn freezes(&mut self, program: &mut Program, at: Nanos) {
        self.stops_running(at);
        self.frozen_since = Some(at);
        program.waiting_since = Some(at);
    }

    /// It does not run from here on, for a reason outside cosched.
    pub(super) fn stops_running(&mut self, at: Nanos) {
        self.ends_turn(at);
        self.ends_filling(at);
        let Some((from, cpus)) = self.running_since.take() else { return };
        self.ran += at - from;
        self.totals.ran += at - from;
        if !self.done() {
            self.outcome.ran += at - from;
        }
        self.outcome.timeline.push(Span { from, to: at, cpus });
    }

    /// It runs on other CPUs from here on.
    pub(super) fn moves(&mut self, program: &Program, at: Nanos) {
        if self.running_since.is_some_and(|(_, cpus)| cpus != program.cpus) {
            let (in_turn_since, fills_since) = (self.in_turn_since.take(), self.fills_since.take());
            self.stops_running(at);
            self.running_since = Some((at, program.cpus));
            (self.in_turn_since, self.fills_since) = (in_turn_since, fills_since);
        }
    }

    /// How long the present run of the program has been running at `now`.
    pub(super) fn ran(&self, now: Nanos) -> Nanos {
        self.ran + self.running_since.map_or(Nanos::ZERO, |(from, _)| now - from)
    }

    /// The program arrives, perhaps again.
    pub(super) fn arrives(&mut self, id: ProgramId, at: Nanos) {
        self.ran = Nanos::ZERO;
        if id.generation == 0 {
            self.outcome.arrived = at;
        }
    }

    /// The user detached it: it is not waited for.
    pub(super) fn detaches(&mut self, at: Nanos) {
        self.stops_running(at);
        self.detached = Some(at);
    }

    /// A run was cut short by cosched: it ran only as a co-runner of the others.
    pub(super) fn is_cut_short(&mut self, program: &mut Program, at: Nanos, usage: Usage) {
        self.stops_waiting(program, at);
        self.stops_running(at);
        self.outcome.unfinished = usage;
    }

    /// Its command ended.
    pub(super) fn ends(&mut self, program: &mut Program, at: Nanos, exit: Exit, usage: Usage) {
        self.stops_waiting(program, at);
        self.stops_running(at);
        for old in self.outcome.completions.push(Completion { at, exit, usage }) {
            self.outcome.earlier.take_in(&old, self.outcome.done);
        }
        let enough = match self.repeat {
            // A program that cannot be started once is not tried again.
            _ if matches!(exit, Exit::Failed(_)) => true,
            Repeat::Times(n) => self.outcome.completions.count() >= u64::from(n),
            Repeat::UntilAllFinish => true,
        };
        if enough {
            self.outcome.done.get_or_insert(at);
        }
    }
}
