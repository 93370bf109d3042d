//! The outcome of a run: the accounts that the engine kept, before any metric is computed.

use serde::{Deserialize, Serialize};

use super::latest::Latest;
use crate::cause::{Aspect, Refusal};
use crate::cpuset::CpuSet;
use crate::estimates::Estimates;
use crate::id::ProgramId;
use crate::learned::Learning;
use crate::machine::Interruption;
use crate::program::{Exit, Usage};
use crate::reason::Reason;
use crate::time::Nanos;

/// A run as the engine saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// From the start of the run to its end: the last first-completion, or the interruption.
    pub total: Nanos,
    /// Number of CPUs that programs could use.
    pub cpus: usize,
    /// One per program of the workload, in its order.
    pub programs: Vec<ProgramOutcome>,
    /// The plans that changed anything, in order of time.
    pub decisions: Latest<Decision>,
    /// What the machine could not do, or another process undid.
    pub deviations: Latest<Deviation>,
    /// How late each wake-up of the policy came, nanoseconds after it was due.
    pub wake_lateness: Samples,
    /// The times at which a decision changed which programs run: see `engine/turns.rs`.
    pub switches: Latest<Nanos>,
    /// What the policy cost.
    pub cost: Cost,
    /// The gaps of switches that froze one program and thawed another: from the first freeze step
    /// to the last program of the new gang running.
    pub switch_gaps: Samples,
}

impl Outcome {
    /// The time from which on all decisions, spans and runs are kept; `None`: from the beginning.
    pub fn kept_from(&self) -> Option<Nanos> {
        let of_programs = self.programs.iter().flat_map(|program| {
            [
                program.completions.first_after_a_gap().map(|completion| completion.at),
                program.timeline.first_after_a_gap().map(|span| span.from),
                program.turns.first_after_a_gap().map(|turn| turn.from),
            ]
        });
        let own = [
            self.decisions.first_after_a_gap().map(|decision| decision.at),
            self.deviations.first_after_a_gap().map(|deviation| deviation.at),
        ];
        own.into_iter().chain(of_programs).flatten().max()
    }

    /// Removes what came after the end. Programs that run again only as co-runners are still being
    /// ended then.
    pub(super) fn end_at(&mut self, total: Nanos) {
        self.total = total;
        self.decisions.retain(|decision| decision.at <= total);
        self.deviations.retain(|deviation| deviation.at <= total);
        self.switches.retain(|at| *at <= total);
        for program in &mut self.programs {
            program.completions.retain(|completion| completion.at <= total);
            program.timeline.retain(|span| span.from <= total);
            for span in &mut program.timeline {
                span.to = span.to.min(total);
            }
            program.turns.retain(|turn| turn.from <= total);
            for turn in &mut program.turns {
                turn.to = turn.to.min(total);
            }
        }
    }
}

/// What a policy cost, by the machine's clock; nothing in a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Time in which measurements were read.
    pub reading: Nanos,
    /// Time in which the policy decided.
    pub deciding: Nanos,
    /// How many samples of programs' code it got.
    pub code_samples: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every program ended.
    Complete,
    /// The user asked for the end with this signal.
    Interrupted(Interruption),
}

/// What one program of the workload did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramOutcome {
    /// When it arrived.
    pub arrived: Nanos,
    /// When it was first started.
    pub started: Option<Nanos>,
    /// Why it never came, where it was to start after others.
    pub not_started: Option<NotStarted>,
    /// Its complete runs, in order; programs that repeat have several.
    pub completions: Latest<Completion>,
    /// Sums over the complete runs that are not kept.
    pub earlier: Earlier,
    /// What it used in a last run that was not complete, because it was ended when every program
    /// was done.
    pub unfinished: Usage,
    /// When the program counts as done (see the workload's `repeat`); `None` if it never was.
    pub done: Option<Nanos>,
    /// Up to `done`: how long it was allowed to run.
    pub ran: Nanos,
    /// Up to `done`: how long it waited, before its first start and frozen.
    pub waited: Nanos,
    /// Up to `done`: how long it was a filler, of the time in which it was allowed to run.
    pub filled: Nanos,
    /// Up to `done`: its fair share of the CPU time; `None`: it ran before the run began.
    pub share: Option<Nanos>,
    /// Up to `done`: the spans in which it was frozen.
    pub frozen: Gaps,
    /// Every span in which it was allowed to run, with its CPUs.
    pub timeline: Latest<Span>,
    /// Where programs take turns by weight: its turns. It may run outside of them, too.
    pub turns: Latest<Stretch>,
    /// When the user detached it, if that was before the run ended.
    pub detached: Option<Nanos>,
    /// Whether processes of it were still alive when the run ended, and were left running.
    pub left_running: bool,
    /// What trials have shown of it.
    pub learning: Learning,
    /// What the policy has estimated of its speed alone.
    pub estimates: Option<Estimates>,
}

/// That a program was not started, since another one did not end as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotStarted {
    /// When that was known.
    pub at: Nanos,
    /// The position of the program that it waited for.
    pub program: u16,
    /// What that lacked.
    pub why: Missing,
}

/// Why a program that another one waits for does not let that start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// A run of it did not return 0.
    Failed,
    /// It was not started itself.
    NotStarted,
    /// The user detached it, so that its end is not known.
    Detached,
    /// The run was interrupted before.
    Interrupted,
}

/// Complete runs of a program that are not kept one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Earlier {
    /// What they used.
    pub usage: Usage,
    /// How many of them count for the turnaround: they ended before the program was done, or with
    /// it.
    pub counted: u64,
    /// How the first run ended that failed, of those that count.
    pub failed: Option<Exit>,
    /// How the last run ended, of those that count.
    pub last: Option<Exit>,
}

impl Earlier {
    /// Adds a run that is no longer kept one by one. `done` is the time at which its program was
    /// done, if it was.
    pub(super) fn take_in(&mut self, run: &Completion, done: Option<Nanos>) {
        self.usage = self.usage.and(&run.usage);
        if done.is_none_or(|done| run.at <= done) {
            self.counted += 1;
            self.last = Some(run.exit);
            let failed = Some(run.exit).filter(|exit| *exit != Exit::Code(0));
            self.failed = self.failed.or(failed);
        }
    }
}

/// A sum of spans of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// How many spans.
    pub count: u64,
    /// The sum of their lengths.
    pub total: Nanos,
    /// The longest span.
    pub longest: Nanos,
}

impl Gaps {
    /// Adds a span.
    pub fn add(&mut self, gap: Nanos) {
        self.count += 1;
        self.total += gap;
        self.longest = self.longest.max(gap);
    }
}

impl FromIterator<Nanos> for Gaps {
    fn from_iter<I: IntoIterator<Item = Nanos>>(gaps: I) -> Gaps {
        let mut all = Gaps::default();
        gaps.into_iter().for_each(|gap| all.add(gap));
        all
    }
}

/// Measured times: the latest ones, and the longest of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// The latest times.
    pub latest: Latest<Nanos>,
    /// The longest of all.
    pub longest: Nanos,
}

impl Samples {
    /// No times yet; at most this many will be kept.
    pub(super) fn of(most: usize) -> Samples {
        Samples { latest: Latest::of(most), longest: Nanos::ZERO }
    }

    /// Adds a time.
    pub(super) fn add(&mut self, time: Nanos) {
        self.latest.push(time);
        self.longest = self.longest.max(time);
    }
}

impl From<Vec<Nanos>> for Samples {
    fn from(times: Vec<Nanos>) -> Samples {
        let longest = times.iter().copied().max().unwrap_or_default();
        Samples { latest: times.into(), longest }
    }
}

/// Sums over all runs of one program so far, also those after it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How long it was allowed to run.
    pub ran: Nanos,
    /// How long it waited, before its starts and frozen.
    pub waited: Nanos,
    /// How long it was a filler, of the time in which it was allowed to run.
    pub filled: Nanos,
    /// Its fair share of the CPU time; `None`: it ran before the run began.
    pub share: Option<Nanos>,
    /// How often it began to run (its starts and its thaws), or a turn by weight began.
    pub turns: u64,
}

/// One complete run of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completion {
    /// When it ended.
    pub at: Nanos,
    /// How it ended.
    pub exit: Exit,
    /// What it used.
    pub usage: Usage,
}

/// A span in which a program was allowed to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its start.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// The CPUs; `None`: the original ones.
    pub cpus: Option<CpuSet>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its start.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
}

/// A plan that changed something.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// When it was made.
    pub at: Nanos,
    /// The reasons for it.
    pub reasons: Vec<Reason>,
}

/// A part of a plan that is not in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Since when, as far as that is known.
    pub at: Nanos,
    /// The program of the directive.
    pub program: ProgramId,
    /// The part of the directive.
    pub what: Aspect,
    /// Why it is not in effect.
    pub why: Refusal,
}
