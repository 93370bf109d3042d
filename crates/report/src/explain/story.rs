//! The whole run: where each program's time went.
//!
//! t = t_solo + t_waiting + t_interference (the thesis on gang scheduling, eq. 4.1). Waiting has
//! the policy's reasons, summed up by kind, and the programs that ran meanwhile. Interference has
//! the co-runners. While another process had stopped a program, the program neither ran nor waited
//! for cosched. That time is a part of its own and no interference. Everything is counted until the
//! program was done, as in `run.json`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cosched_core::{Actuator, Nanos, Spinning};
use cosched_policy::reasons::SharedReason;
use cosched_results::result::{BarrierResult, Instead, ProgramResult, RunResult, Simulation};
use serde::Serialize;

use super::SCHEMA;
use super::choices::{self, Choice};
use super::slices::{self, SliceChoice, TriedActuator};
use super::thread_decisions::{self, ThreadDecision};
use super::thread_limits::{self, ThreadLimit};
use super::turns::ProgramTurns;
use super::{barrier_stats, lag, left_to_linux, spread, sum};
use crate::disturbance;
use crate::history::{Activity, History, Phase, PlannedQuantum, Sent, nanos};
use crate::interference::Interference;
use crate::shortened::sentence as shortened_turns;
use crate::{after, detached, molding, processes, silence, spent, spinning, unpaused, words};

/// Where the time of a run went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Story {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The policy's name.
    pub policy: String,
    /// The variant of a comparison to which the run belongs, where that is known: a policy, or a
    /// rival such as `split`, which runs under `linux`.
    pub variant: Option<String>,
    /// From the start of the run to its end.
    pub total_seconds: f64,
    /// How many quanta there were; of a long run, since it is kept.
    pub quanta: usize,
    /// How often one gang followed another.
    pub switches: usize,
    /// The modes that the policy `auto` chose, in order of time; empty under other policies.
    pub choices: Vec<Choice>,
    /// The run as a whole, in words.
    pub sentences: Vec<String>,
    /// One per program, or the one requested; in the workload's order.
    pub programs: Vec<ProgramStory>,
}

/// Where the time of one program went, until it was done. Of a long run, turns, waits, their
/// reasons and co-runners are those since it is kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramStory {
    /// Its name.
    pub name: String,
    /// From its arrival until it was done; `None` if it never was.
    pub turnaround_seconds: Option<f64>,
    /// With how many threads it was started.
    pub threads: u16,
    /// How many threads it requested, where it was started with fewer.
    pub molded_from: Option<u16>,
    /// Its solo time with these threads, where it is known.
    pub alone_seconds: Option<f64>,
    /// How long it was allowed to run.
    pub running_seconds: f64,
    /// How long it waited, before its start and frozen.
    pub waiting_seconds: f64,
    /// How long another process stopped it; 0 where that is not distinguishable from rounding.
    pub stopped_seconds: f64,
    /// Turnaround - solo time - waiting - stopped. Below 0 is noise of the solo time.
    pub interference_seconds: Option<f64>,
    /// How often it got a turn.
    pub turns: usize,
    /// How often it waited.
    pub waits: usize,
    /// Its longest wait, be it for its start or frozen.
    pub longest_wait: Option<LongestWait>,
    /// Why it waited, the reason with the longest wait first.
    pub reasons: Vec<WaitReason>,
    /// The programs that ran while it waited, longest first.
    pub meanwhile: Vec<CoRunner>,
    /// Its co-runners: the programs that were allowed to run while it was, longest first.
    pub co_runners: Vec<CoRunner>,
    /// Its time slices, in order of time; empty under policies that choose none.
    pub slices: Vec<SliceChoice>,
    /// The trials of actuators, in order of time; empty under policies without trials.
    pub trials: Vec<TriedActuator>,
    /// The learned setting for its threads, from earlier runs or repetitions, where it was used.
    pub recalled: Option<Actuator>,
    /// How its threads were scheduled last, where the run says it.
    pub scheduled: Option<Actuator>,
    /// What was decided about its threads, in order of time.
    pub thread_decisions: Vec<ThreadDecision>,
    /// Its thread limits, in order of time; empty under policies that set none.
    pub thread_limits: Vec<ThreadLimit>,
    /// How its threads waited at barriers; `None`: at its own barriers.
    pub barrier: Option<BarrierResult>,
    /// How much of its CPU time went to spin loops, where it was sampled.
    pub spinning: Option<Spinning>,
    /// What the policy used instead of progress that it needed and the program did not report.
    pub instead_of_progress: Option<Instead>,
    /// Its deviations from the plan, the most frequent first.
    pub deviations: Vec<Misfortune>,
    /// The story in words; the first sentence sums it up.
    pub sentences: Vec<String>,
}

/// The longest wait of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LongestWait {
    /// From here.
    pub from_seconds: f64,
    /// So long.
    pub seconds: f64,
}

/// A kind of reason to wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitReason {
    /// In words, without the figures of each case.
    pub reason: String,
    /// How many waits had it, at least for a part.
    pub times: usize,
    /// Their total length.
    pub seconds: f64,
}

/// Another program that ran at the same time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoRunner {
    /// Its name.
    pub program: String,
    /// How long.
    pub seconds: f64,
}

/// A kind of deviation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Misfortune {
    /// What happened, in words.
    pub what: String,
    /// How often.
    pub times: usize,
}

impl Story {
    /// The story of all programs, or of the one in `slot`.
    pub fn of(result: &RunResult, slot: Option<usize>) -> Story {
        let history = History::of(result);
        let slots = slot.map_or(0..result.programs.len(), |slot| slot..slot + 1);
        Story {
            schema: SCHEMA,
            policy: result.policy.clone(),
            variant: None,
            total_seconds: result.total_seconds,
            quanta: kept_quanta(&history).len(),
            switches: result.own.switches,
            choices: choices::choices(result),
            sentences: sentences(&history),
            programs: slots.map(|slot| program(&history, slot)).collect(),
        }
    }

    /// The story of a run that belongs to this variant of a comparison.
    pub fn of_variant(mut self, variant: Option<String>) -> Story {
        let other = variant.iter().filter(|variant| **variant != self.policy);
        let sentence =
            other.map(|variant| format!("The run is of the variant '{variant}' of a comparison."));
        self.sentences.splice(1..1, sentence);
        Story { variant, ..self }
    }

    /// The run as a whole, and a line for each program.
    pub fn lines(&self) -> Vec<String> {
        let programs = self.programs.iter().filter_map(|program| program.sentences.first());
        self.sentences.iter().chain(programs).cloned().collect()
    }
}

fn sentences(history: &History<'_>) -> Vec<String> {
    let result = history.result;
    let mut lines = vec![spent::verdict(result)];
    lines.extend(disturbance::sentence(result));
    let simulated = |simulation: &Simulation| format!("The run was simulated: {simulation}.");
    lines.extend(result.simulation.iter().map(simulated));
    lines.extend(words::kept_from(result));
    lines.extend(interruption(result));
    lines.extend(shares(result));
    lines.extend(left_to_linux::sentence(history));
    lines.extend(choices::in_words(result, history.end()));
    lines.extend(slices::unset(result));
    lines.extend(molding::sentences([result]));
    lines.extend(spread::sentence(result));
    lines.extend(processes::sentence(result));
    lines.extend(spinning::sentence(result));
    lines.extend(quanta(history).into_iter().chain(shortened_turns(result)));
    lines.extend(silence::sentences([result]));
    let last = result.programs.iter().filter_map(|program| {
        Some((program.arrived_seconds + program.turnaround_seconds?, &program.name))
    });
    // A program that an interruption ended is not done.
    let several = result.programs.len() > 1 && result.interrupted_by.is_none();
    let last = last.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|_| several);
    lines.extend(last.map(|(_, name)| format!("{name} finished last.")));
    lines
}

fn interruption(result: &RunResult) -> Option<String> {
    let signal = result.interrupted_by.as_ref()?;
    let left = result.programs.iter().filter(|one| one.left_running && one.exit.is_none());
    let left: Vec<String> = left.map(|program| program.name.clone()).collect();
    let left = match left.is_empty() {
        true => String::new(),
        false => format!("; it did not end {}", words::list(&left)),
    };
    Some(format!("The run was interrupted ({signal}) before every program had finished{left}."))
}

/// The parts of the programs' turnarounds, summed over all programs.
fn shares(result: &RunResult) -> Option<String> {
    let sum = |part: fn(&ProgramResult) -> Option<f64>| {
        result.programs.iter().map(part).sum::<Option<f64>>()
    };
    let turnaround = sum(|program| program.turnaround_seconds).filter(|sum| *sum > 0.0)?;
    let share = |part: f64| format!("{} %", (100.0 * part / turnaround).round() as i64);
    let filling = sum(|program| Some(program.filler_seconds))?;
    let waiting = format!("{} waiting", share(sum(|program| Some(program.waiting_seconds))?));
    // Of the running time, so it is no part of its own.
    let fillers = match filling > 0.0 {
        true => format!(
            " For {} of that time, programs were fillers: they used what the program in turn left.",
            share(filling)
        ),
        false => String::new(),
    };
    let all = words::span(nanos(turnaround));
    let stopped: f64 = result.programs.iter().map(ProgramResult::stopped_seconds).sum();
    let held = match stopped > 0.0 {
        true => format!(", {} stopped by another process", share(stopped)),
        false => String::new(),
    };
    let all = format!("All turnarounds (from a program's arrival to its end) add up to {all}");
    let solo = sum(|program| Interference::of(program).parts().map(|(solo, _)| solo));
    let lost = sum(|program| Interference::of(program).parts().map(|(_, lost)| lost));
    Some(match solo.zip(lost) {
        Some((solo, lost)) => format!(
            "{all}: {} solo time, {waiting}{held}, {} interference (slowdown by programs that ran \
             at the same time).{fillers}",
            share(solo),
            share(lost),
        ),
        None => format!("{all}: {waiting}{held}.{fillers} {}", disturbance::why_unknown(result)),
    })
}

/// The quanta from when the run is kept whole.
fn kept_quanta<'a>(history: &'a History<'_>) -> &'a [PlannedQuantum] {
    let from = nanos(history.result.kept_from_seconds.unwrap_or(0.0));
    let quanta = history.quanta();
    &quanta[quanta.partition_point(|quantum| quantum.from < from)..]
}

/// How many quanta there were, and what switching cost.
fn quanta(history: &History<'_>) -> Option<String> {
    let result = history.result;
    let quanta = kept_quanta(history);
    let lengths = || quanta.iter().map(|quantum| quantum.length);
    let shortest = lengths().min()?;
    // The last program has a quantum without a planned end.
    let longest = lengths().filter(|length| *length < Nanos::NEVER).max().unwrap_or(shortest);
    let up_to = match shortest < longest {
        true => format!(" to {}", words::span(longest)),
        false => String::new(),
    };
    let had = words::count(quanta.len(), "quantum (turn)", "quanta (turns)");
    let had = format!("the run had {had}, {}{up_to}", words::planned(shortest));
    // All switches are counted, also where not all quanta are kept.
    let had = match words::since(result) {
        Some(since) => format!("{}, {had}. In all it had", words::capitalised(&since)),
        None => format!("{}, and", words::capitalised(&had)),
    };
    let mut line = format!("{had} {}", words::count(result.own.switches, "switch", "switches"));
    if let Some(gap) = &result.own.switch_gap {
        let (median, longest) = (nanos(gap.p50_seconds), nanos(gap.max_seconds));
        line.push_str(&format!(
            " of {} (median; longest {})",
            words::span(median),
            words::span(longest)
        ));
    }
    Some(line + ".")
}

fn program(history: &History<'_>, slot: usize) -> ProgramStory {
    let program = &history.result.programs[slot];
    let done = history.done(slot);
    let kept_from = nanos(history.result.kept_from_seconds.unwrap_or(0.0));
    let phases = history.phases_until_done(slot).filter(|phase| phase.to > kept_from);
    let phases = phases.map(|phase| Phase { from: phase.from.max(kept_from), ..phase });
    let phases: Vec<Phase> = phases.collect();
    let stopped_seconds = program.stopped_seconds();
    let turns = ProgramTurns::of(history, slot, &phases);
    let waits: Vec<&Phase> = phases.iter().filter(|phase| phase.state.waits()).collect();
    let runs: Vec<&Phase> =
        phases.iter().filter(|phase| matches!(phase.state, Activity::Running(_))).collect();
    let mut story = ProgramStory {
        name: program.name.clone(),
        turnaround_seconds: program.turnaround_seconds,
        threads: program.threads,
        molded_from: program.molded_from,
        alone_seconds: program.alone_as_started_seconds(),
        running_seconds: program.running_seconds,
        waiting_seconds: program.waiting_seconds,
        stopped_seconds,
        interference_seconds: program.interference_seconds.map(|cost| cost - stopped_seconds),
        turns: turns.count(),
        waits: waits.len(),
        longest_wait: waits.iter().max_by_key(|phase| phase.length()).map(|phase| LongestWait {
            from_seconds: phase.from.as_secs_f64(),
            seconds: phase.length().as_secs_f64(),
        }),
        reasons: reasons(history, slot, &waits),
        meanwhile: co_runners(history, slot, &waits),
        co_runners: co_runners(history, slot, &runs),
        slices: slices::choices(history.result, slot),
        trials: slices::trials(history.result, slot),
        recalled: slices::recalled(history.result, slot),
        scheduled: slices::scheduled(history.result, slot),
        thread_decisions: thread_decisions::of(history.result, slot),
        thread_limits: thread_limits::thread_limits(history.result, slot),
        barrier: program.barrier.clone(),
        spinning: program.spinning.clone(),
        instead_of_progress: program.instead_of_progress,
        deviations: deviations(history, slot, done),
        sentences: vec![],
    };
    story.sentences = in_words(&story, history.result, slot, &turns);
    story
}

/// Why a program waited. The policy may decide again during a wait: each part counts for the reason
/// that was in force in it.
fn reasons(history: &History<'_>, slot: usize, waits: &[&Phase]) -> Vec<WaitReason> {
    let mut reasons: Vec<WaitReason> = Vec::new();
    for (words, length) in waits.iter().flat_map(|wait| parts(history, slot, wait)) {
        let seconds = length.as_secs_f64();
        match reasons.iter_mut().find(|known| known.reason == words) {
            Some(known) => {
                known.times += 1;
                known.seconds += seconds;
            }
            None => reasons.push(WaitReason { reason: words.into_owned(), times: 1, seconds }),
        }
    }
    reasons.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    reasons
}

/// The reasons that were in force in a wait, and how long each was in all.
fn parts(history: &History<'_>, slot: usize, wait: &Phase) -> Vec<(Cow<'static, str>, Nanos)> {
    let mut parts: Vec<(Cow<'static, str>, Nanos)> = Vec::new();
    let mut add = |sent: Option<Sent<'_>>, length: Nanos| {
        let words = match sent.map(|sent| (sent.why, sent.runs())) {
            None => "it had just arrived".into(),
            Some((why, _)) if why.read() == Some(SharedReason::Filler) => {
                "it is a filler, and waits for an idle CPU or its first turn".into()
            }
            Some((_, Some(true))) => "cosched was starting or resuming it".into(),
            Some((why, _)) => words::in_general(why),
        };
        match parts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, sum)) => *sum += length,
            _ if length > Nanos::ZERO => parts.push((words, length)),
            _ => {}
        }
    };
    let (mut sent, mut from) = (history.sent_at(slot, wait.from), wait.from);
    for next in history.sent_within(slot, wait) {
        add(sent, next.at - from);
        (sent, from) = (Some(*next), next.at);
    }
    add(sent, wait.to - from);
    parts
}

/// How long the others were allowed to run in these phases of a program, which are in order of
/// time.
fn co_runners(history: &History<'_>, slot: usize, phases: &[&Phase]) -> Vec<CoRunner> {
    let mut together: BTreeMap<usize, Nanos> = BTreeMap::new();
    for (run, other) in history.running().filter(|(_, other)| *other != slot) {
        let first = phases.partition_point(|phase| phase.to <= run.from);
        for phase in phases[first..].iter().take_while(|phase| phase.from < run.to) {
            *together.entry(other).or_default() += run.to.min(phase.to) - run.from.max(phase.from);
        }
    }
    let mut co_runners: Vec<CoRunner> = together
        .into_iter()
        .map(|(other, time)| CoRunner {
            program: history.name(other).to_owned(),
            seconds: time.as_secs_f64(),
        })
        .collect();
    co_runners.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    co_runners
}

fn deviations(history: &History<'_>, slot: usize, done: Nanos) -> Vec<Misfortune> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for deviation in history.deviations(slot, Nanos::ZERO, done) {
        let what = format!("{} {}", words::effect(deviation.what), words::cause(deviation.why));
        *kinds.entry(what).or_default() += 1;
    }
    let mut kinds: Vec<Misfortune> =
        kinds.into_iter().map(|(what, times)| Misfortune { what, times }).collect();
    kinds.sort_by_key(|kind| usize::MAX - kind.times);
    kinds
}

fn in_words(
    story: &ProgramStory,
    run: &RunResult,
    slot: usize,
    turns: &ProgramTurns,
) -> Vec<String> {
    let program = &run.programs[slot];
    // What follows the sums of a long run is known of its kept part only.
    let since = |text: &str| match words::since(run) {
        Some(since) => format!("{}, {}", words::capitalised(&since), text),
        None => words::capitalised(text),
    };
    let mut lines = vec![sum::in_words(story, run, slot, turns)];
    lines.extend(turns.in_words());
    if let Some(longest) = story.longest_wait {
        let waited = match story.waits {
            1 => "once, for".to_owned(),
            waits => format!("{}, at most", times(waits)),
        };
        lines.push(since(&format!(
            "it waited {waited} {} (from {}):",
            seconds(longest.seconds),
            words::instant(nanos(longest.from_seconds)),
        )));
    }
    let reason = |reason: &WaitReason| {
        let length = match reason.times {
            1 => seconds(reason.seconds),
            more => format!("{}, {} in all", times(more), seconds(reason.seconds)),
        };
        format!("  {length}: {}.", reason.reason)
    };
    lines.extend(story.reasons.iter().map(reason));
    if !story.meanwhile.is_empty() {
        let ran = format!("while it waited, {} ran.", co_runners_in_words(&story.meanwhile));
        lines.push(since(&ran));
    }
    if !story.co_runners.is_empty() {
        let known = Interference::of(program).parts().is_some();
        let slowdown = if known { ": interference is slowdown by such programs" } else { "" };
        lines.push(since(&format!(
            "while it ran, {} also ran{slowdown}.",
            co_runners_in_words(&story.co_runners)
        )));
    }
    lines.extend(detached::in_words(run, slot));
    lines.extend(after::in_words(program));
    lines.extend(molding::in_words(program));
    lines.extend(processes::in_words(program));
    lines.extend(spinning::in_words(program));
    lines.extend(unpaused::in_words(run, program));
    lines.extend(slices::in_words(story, run, slot));
    lines.extend(thread_decisions::in_words(&story.thread_decisions));
    lines.extend(thread_limits::in_words(&story.thread_limits));
    lines.extend(lag::in_words(run, slot));
    lines.extend(barrier_stats::in_words(program));
    lines.extend(silence::in_words(program));
    let misfortune =
        |kind: &Misfortune| format!("{} it {}.", words::capitalised(&times(kind.times)), kind.what);
    lines.extend(story.deviations.iter().map(misfortune));
    lines
}

fn co_runners_in_words(co_runners: &[CoRunner]) -> String {
    let named = |one: &CoRunner| format!("{} ({})", one.program, seconds(one.seconds));
    words::list(&co_runners.iter().map(named).collect::<Vec<_>>())
}

pub(super) fn seconds(value: f64) -> String {
    words::span(nanos(value))
}

fn times(n: usize) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}
