//! One instant of a run: what each program did, from when until when, and the reason that was in
//! force.
//!
//! A decision comes before its effect. Where a program runs although its last reason says "wait",
//! either the freeze is not confirmed yet, or it failed, and a deviation says why. A start or a
//! thaw may be unconfirmed in the same way.

use cosched_core::{Aspect, CpuSet, Nanos, Quantum, Why};
use cosched_policy::reasons::{BalanceReason, Mode, SharedReason, ShufflingReason};
use cosched_results::result::{DeviationResult, RunResult};
use serde::Serialize;

use super::SCHEMA;
use super::choices::{Choice, choices};
use crate::history::{Activity, History, Phase, Sent, nanos, reasons_about};
use crate::{after, molding, words};

/// What happened at an instant, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The instant, since the run began.
    pub at_seconds: f64,
    /// The policy's name.
    pub policy: String,
    /// The variant of a comparison to which the run belongs, where that is known.
    pub variant: Option<String>,
    /// The current quantum; `None` before the first, while all programs fit at once, and where the
    /// policy has none.
    pub quantum: Option<QuantumMoment>,
    /// Since when all programs fit at once after there had been quanta; `None` in a quantum, and
    /// where the policy chose to run programs together.
    pub room_since_seconds: Option<f64>,
    /// The choice in force, if the policy chose to run programs together.
    pub together: Option<Choice>,
    /// The programs that arrived after that choice.
    #[serde(skip)]
    arrived_since: Vec<String>,
    /// One per program, or the one requested; in the workload's order.
    pub programs: Vec<ProgramMoment>,
}

/// The quantum at an instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuantumMoment {
    /// Its number among the quanta in run.json, from 1; those of a long run are not all there.
    pub number: usize,
    /// When it was decided.
    pub from_seconds: f64,
    /// When the next one was decided, or all programs fit at once, or the run ended.
    pub to_seconds: f64,
    /// How long it was planned to last; `None`: without a planned end.
    pub planned_seconds: Option<f64>,
    /// In words: where it is in its round, how long it was planned to last, and what else the plan
    /// says of itself.
    pub sentence: String,
}

/// A program at an instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramMoment {
    /// Its name.
    pub name: String,
    /// `"not arrived"`, `"not started"`, `"running"`, `"frozen"`, `"stopped by another process"` or
    /// `"ended"`, also for one that was detached.
    pub state: &'static str,
    /// Since when it is in this state; `None` before its arrival.
    pub since_seconds: Option<f64>,
    /// Until when; `None` after it ended.
    pub until_seconds: Option<f64>,
    /// The CPUs that it is bound to; `None` unless it is running and bound.
    pub cpus: Option<CpuSet>,
    /// The reason of the last decision about it.
    pub reason: Option<Why>,
    /// When that decision was made.
    pub decided_seconds: Option<f64>,
    /// The moment in words.
    pub sentence: String,
}

impl Moment {
    /// What happened at an instant, to all programs or to the one in `slot`.
    pub fn of(result: &RunResult, at: Nanos, slot: Option<usize>) -> Moment {
        let history = History::of(result);
        let slots = slot.map_or(0..result.programs.len(), |slot| slot..slot + 1);
        let quantum = quantum(&history, at);
        let together = together(result, at, quantum.as_ref());
        let arrived_since = together.iter().flat_map(|choice| {
            let chosen = nanos(choice.from_seconds);
            let is_new = move |seconds| (chosen < nanos(seconds)) && nanos(seconds) <= at;
            let new = result.programs.iter().filter(move |one| is_new(one.arrived_seconds));
            new.map(|program| program.name.clone())
        });
        let arrived_since = arrived_since.collect();
        let room = history.room_since(at).filter(|_| together.is_none());
        Moment {
            schema: SCHEMA,
            at_seconds: at.as_secs_f64(),
            policy: result.policy.clone(),
            variant: None,
            quantum: quantum.filter(|_| together.is_none()),
            room_since_seconds: room.map(Nanos::as_secs_f64),
            together,
            arrived_since,
            programs: slots.map(|slot| program(&history, slot, at)).collect(),
        }
    }

    /// The moment of a run that belongs to this variant of a comparison.
    pub fn of_variant(self, variant: Option<String>) -> Moment {
        Moment { variant, ..self }
    }

    /// The moment as lines: the quantum, then the programs that run, then the others.
    pub fn lines(&self) -> Vec<String> {
        let at = words::instant(nanos(self.at_seconds));
        let other = self.variant.iter().find(|variant| **variant != self.policy);
        let variant = other
            .map_or(String::new(), |variant| format!(" (variant '{variant}' of a comparison)"));
        let quantum = self.quantum.iter().map(|quantum| format!(", in {}", quantum.sentence));
        let room = self.room_since_seconds.iter().map(|since| {
            let since = words::instant(nanos(*since));
            format!("; no quanta since {since}, because all programs fit at once")
        });
        let together = self.together.iter().map(|choice| {
            let chosen = words::instant(nanos(choice.from_seconds));
            let before = match &self.arrived_since[..] {
                [] => String::new(),
                new => format!(", before {} arrived", words::list(new)),
            };
            format!(", {} (chosen at {chosen}{before})", words::in_general(&choice.why()))
        });
        let place: String = quantum.chain(room).chain(together).collect();
        let when = format!("At {at}, under {}{variant}{place}:", self.policy);
        let mut programs: Vec<&ProgramMoment> = self.programs.iter().collect();
        programs.sort_by_key(|program| program.state != Activity::Running(None).name());
        let sentences = programs.into_iter().map(|program| program.sentence.clone());
        std::iter::once(when).chain(sentences).collect()
    }
}

/// The choice to run programs together that is in force, unless a quantum began after it.
fn together(result: &RunResult, at: Nanos, quantum: Option<&QuantumMoment>) -> Option<Choice> {
    let mut choices = choices(result).into_iter();
    let last = choices.rfind(|choice| nanos(choice.from_seconds) <= at)?;
    let ended = quantum.is_none_or(|quantum| quantum.from_seconds < last.from_seconds);
    (last.mode == Mode::Corun && ended).then_some(last)
}

fn quantum(history: &History<'_>, at: Nanos) -> Option<QuantumMoment> {
    let quantum = history.quantum_at(at)?;
    // Of a long run, quanta before the first one that is kept are not counted.
    let which = match history.result.kept_from_seconds {
        Some(_) => "a quantum".to_owned(),
        None => format!("quantum {} of the run", quantum.number),
    };
    let mut sentence = format!(
        "{which} (from {} to {}, {})",
        words::instant(quantum.from),
        words::instant(quantum.to),
        words::planned(quantum.length),
    );
    if quantum.gangs > 1 {
        let place = words::place(quantum.round, quantum.gang, quantum.gangs);
        sentence.push_str(&format!(", {place}"));
    }
    let of_the_plan = history.result.decisions[quantum.decision].reasons.iter();
    for reason in of_the_plan.filter(|reason| reason.program.is_none()) {
        if Quantum::of(&reason.why).is_none() {
            sentence.push_str(&format!("; {}", words::reason(&reason.why)));
        }
    }
    Some(QuantumMoment {
        number: quantum.number,
        from_seconds: quantum.from.as_secs_f64(),
        to_seconds: quantum.to.as_secs_f64(),
        planned_seconds: Some(quantum.length)
            .filter(|length| *length != Nanos::NEVER)
            .map(Nanos::as_secs_f64),
        sentence,
    })
}

fn program(history: &History<'_>, slot: usize, at: Nanos) -> ProgramMoment {
    let name = history.name(slot).to_owned();
    let Some(phase) = history.phase_at(slot, at) else {
        return absent(history, slot, at);
    };
    let sent = history.sent_at(slot, at);
    let cpus = match phase.state {
        Activity::Running(cpus) => cpus,
        _ => None,
    };
    let why = why(history, slot, at, &phase, sent);
    let (part, span) = part(history, slot, at, &phase, sent);
    let unbound = match has_bound_threads(history, slot, at) {
        true => ", its threads bound one by one",
        false => " on any CPU",
    };
    let does = does(&phase, part, unbound);
    let mut sentence = format!("{name} {does} ({}): {why}.", span_in_words(span));
    sentence.extend(in_turn(history, at).filter(|_| part == FILLER));
    let molded = molding::in_words(&history.result.programs[slot]);
    sentence.extend(molded.iter().flat_map(|molded| [" ", molded]));
    ProgramMoment {
        name,
        state: phase.state.name(),
        since_seconds: Some(phase.from.as_secs_f64()),
        until_seconds: Some(phase.to.as_secs_f64()),
        cpus,
        reason: sent.map(|sent| sent.why.clone()),
        decided_seconds: sent.map(|sent| sent.at.as_secs_f64()),
        sentence,
    }
}

/// A program before its arrival or after its end.
fn absent(history: &History<'_>, slot: usize, at: Nanos) -> ProgramMoment {
    let program = &history.result.programs[slot];
    let arrives = nanos(program.arrived_seconds);
    let last = history.phases(slot).last().map(|phase| phase.to);
    let name = program.name.clone();
    let (state, since, until, sentence) = if at < arrives {
        let when = words::instant(arrives);
        (
            "not arrived",
            None,
            Some(arrives),
            match after::others(program) {
                Some(others) => format!("{name} has not arrived yet: it arrives after {others}."),
                None => format!("{name} has not arrived yet: it arrives at {when}."),
            },
        )
    } else if let Some(why) = &program.not_started {
        let when = words::instant(arrives);
        let why = after::not_started(why);
        let sentence = format!("{name} was not started: {why}. That was known at {when}.");
        ("not started", Some(arrives), None, sentence)
    } else {
        let when = words::instant(last.unwrap_or(arrives));
        let sentence = match program.exit.map(words::exit) {
            Some(how) => format!("{name} has ended: at {when} ({how})."),
            None if history.result.was_detached(slot) => {
                format!("{name} was detached at {when}: cosched does not know when it ended.")
            }
            None => format!("{name} was scheduled until {when}; it had not ended."),
        };
        ("ended", last, None, sentence)
    };
    ProgramMoment {
        name,
        state,
        since_seconds: since.map(Nanos::as_secs_f64),
        until_seconds: until.map(Nanos::as_secs_f64),
        cpus: None,
        reason: None,
        decided_seconds: None,
        sentence,
    }
}

/// What a running program does, in words, where programs take turns by weight, and elsewhere.
const IN_TURN: &str = "is in turn";
const FILLER: &str = "is a filler";
const RUNS: &str = "runs";

/// What a running program does at an instant, and from when until when.
fn part(
    history: &History<'_>,
    slot: usize,
    at: Nanos,
    phase: &Phase,
    sent: Option<Sent<'_>>,
) -> (&'static str, (Nanos, Nanos)) {
    let whole = (phase.from, phase.to);
    if !matches!(phase.state, Activity::Running(_)) {
        return (RUNS, whole);
    }
    let turns = &history.result.programs[slot].turns;
    let turns = turns.iter().map(|(from, to)| (nanos(*from), nanos(*to)));
    let (mut since, mut until) = whole;
    for (from, to) in turns {
        if (from..to).contains(&at) {
            return (IN_TURN, (from, to));
        }
        if to <= at {
            since = since.max(to);
        } else {
            until = until.min(from);
        }
    }
    match sent.is_some_and(is_filler) {
        true => (FILLER, (since, until)),
        false => (RUNS, whole),
    }
}

/// Whether a program gets only what programs in turn leave.
fn is_filler(sent: Sent<'_>) -> bool {
    sent.why.read() == Some(SharedReason::Filler)
}

/// The programs that are in turn.
fn in_turn(history: &History<'_>, at: Nanos) -> Option<String> {
    let has_turn = |turns: &[(f64, f64)]| {
        turns.iter().any(|(from, to)| (nanos(*from)..nanos(*to)).contains(&at))
    };
    let programs = history.result.programs.iter().filter(|program| has_turn(&program.turns));
    let names: Vec<String> = programs.map(|program| program.name.clone()).collect();
    (!names.is_empty()).then(|| format!(" In turn: {}.", words::list(&names)))
}

/// Whether the latest decision on the threads of a program has bound them one by one.
fn has_bound_threads(history: &History<'_>, slot: usize, at: Nanos) -> bool {
    let earlier = reasons_about(history.result, slot).take_while(|(made, _)| nanos(*made) <= at);
    let binds = |(_, why): (f64, &Why)| {
        if let Some(BalanceReason::KeptApart { .. }) = why.read() {
            return Some(true);
        }
        match why.read()? {
            ShufflingReason::Shuffled { .. } | ShufflingReason::GroupsKept { .. } => Some(true),
            ShufflingReason::GroupsRecalled { helped } => Some(helped),
            ShufflingReason::GroupsPutBack { groups, .. } => Some(groups > 0),
            ShufflingReason::Unbound { .. } => Some(false),
            ShufflingReason::GroupsTried { .. } => None,
        }
    };
    earlier.filter_map(binds).last().unwrap_or(false)
}

fn does(phase: &Phase, part: &str, unbound: &str) -> String {
    match phase.state {
        Activity::Running(Some(cpus)) => format!("{part} on {}", words::cpus(&cpus)),
        Activity::Running(None) => format!("{part}{unbound}"),
        Activity::Frozen => "is paused".to_owned(),
        Activity::Unstarted => "waits for its start".to_owned(),
        Activity::Stopped => "is stopped by another process".to_owned(),
    }
}

fn span_in_words((from, to): (Nanos, Nanos)) -> String {
    format!("from {} to {}", words::instant(from), words::instant(to))
}

/// The reason in force, with the figures from when it was given, and why the program does something
/// else.
fn why(
    history: &History<'_>,
    slot: usize,
    at: Nanos,
    phase: &Phase,
    sent: Option<Sent<'_>>,
) -> String {
    let Some(sent) = sent else { return "there was no decision about it yet".to_owned() };
    // Reasons are sentences, and some begin with a word for their kind: none fits after "because".
    let (when, reason) = (words::instant(sent.at), words::reason(sent.why));
    let decided = format!("as decided at {when}; {reason}");
    let to_run = || match is_filler(sent) {
        // It will run for this reason, but that is not why it begins to.
        true => format!("as decided at {when}; then {reason}"),
        false => decided.clone(),
    };
    match (phase.state, sent.runs()) {
        (Activity::Stopped, _) => "cosched does not touch it until it continues".to_owned(),
        (Activity::Running(_), Some(false)) => match failed_freeze(history, slot, sent.at, at) {
            Some(deviation) => format!(
                "it should wait, {decided}. But it {} {}",
                words::effect(deviation.what),
                words::cause(deviation.why)
            ),
            None => format!("it is about to be paused, {decided}"),
        },
        (Activity::Frozen, Some(true)) => format!("it is about to continue, {}", to_run()),
        (Activity::Unstarted, Some(true)) => format!("it is about to start, {}", to_run()),
        _ => words::earlier_reason(sent.why, sent.at),
    }
}

/// Why a program that was last sent a freeze at `from` was not frozen at `to`, if that is known.
fn failed_freeze<'a>(
    history: &History<'a>,
    slot: usize,
    from: Nanos,
    to: Nanos,
) -> Option<&'a DeviationResult> {
    history.deviations(slot, from, to).find(|deviation| deviation.what == Aspect::Frozen)
}
