//! Whether a result can be true.
//!
//! *Problem.* A file that was written by hand, cut and glued, or damaged on a disk may be
//! well-formed and still have values that no run can have. Examples are a time before its
//! beginning, a CPU that the machine does not have, and an end before a start. Code that draws or
//! explains such a run would fail on it, each part in another place.
//!
//! *Idea.* [`RunResult::load`](super::RunResult::load) checks once all that other code relies on,
//! and names the first impossible field. Sums are not checked: this check does not look for forged
//! files.

use std::collections::HashSet;

use cosched_core::MAX_CPUS;
use cosched_core::format::count;
use cosched_core::{Exit, Quantum, Reason};
use cosched_workload::{LONGEST_WORD, shown};

use super::{DecisionResult, ProgramResult, RunResult};

/// The longest time that is accepted: thirty years. Nanoseconds of it fit into 64 bits many times.
const LONGEST_SECONDS: f64 = 1e9;
/// The shortest time that the format can express.
const SHORTEST_SECONDS: f64 = 1e-6;
const RANGE: &str = "but can be 0 to 1e9 s";
/// More than any weight that can be requested.
const HEAVIEST: f64 = 1e6;
/// Times are rounded to microseconds, so a span may begin that much before the one before it ends.
const ROUNDING: f64 = 2e-6;

/// The impossible field, and why it is impossible.
pub(super) type Fault = (String, String);

pub(super) fn check(run: &RunResult) -> Result<(), Fault> {
    let cpus = run.machine.cpus;
    if !(1..=MAX_CPUS).contains(&cpus) {
        return fault("machine.cpus", format!("is {cpus}, but can be 1 to {MAX_CPUS}"));
    }
    time("total_seconds", run.total_seconds)?;
    let asked =
        [("quantum_seconds", run.quantum_seconds), ("max_frozen_seconds", run.max_frozen_seconds)];
    for (field, length) in asked.into_iter().filter_map(|(field, asked)| Some((field, asked?))) {
        time(field, length)?;
        if length < SHORTEST_SECONDS {
            return fault(
                field,
                format!("is {length:e} s, but must be {SHORTEST_SECONDS:e} or more"),
            );
        }
    }
    let by_others = [
        ("others_cpu_seconds", run.others_cpu_seconds),
        ("stolen_cpu_seconds", run.stolen_cpu_seconds),
    ];
    by_others.into_iter().try_for_each(|(field, used)| time(field, used.unwrap_or_default()))?;
    time("metrics.responsiveness_max_seconds", run.metrics.responsiveness_max_seconds)?;
    time(
        "metrics.responsiveness_longest_gap_seconds",
        run.metrics.responsiveness_longest_gap_seconds,
    )?;
    let mut names = HashSet::new();
    for (slot, of) in run.programs.iter().enumerate() {
        let at = format!("programs[{slot}]");
        if of.name.is_empty() {
            return fault(&format!("{at}.name"), "is empty".to_owned());
        }
        if !names.insert(&of.name) {
            return fault(&format!("{at}.name"), format!("'{}' is there twice", shown(&of.name)));
        }
        program(&at, of)?;
    }
    for (slot, of) in run.programs.iter().enumerate() {
        let after = of.after.iter().map(|after| ("after", &after.program));
        let not_started = of.not_started.iter().map(|of| ("not_started", &of.program));
        if let Some((list, name)) = after.chain(not_started).find(|(_, name)| !names.contains(name))
        {
            let field = format!("programs[{slot}].{list}.program");
            return fault(&field, format!("is '{}', which is no program of the run", shown(name)));
        }
    }
    let deviations = run.deviations.iter().map(|deviation| deviation.at_seconds);
    ascending("deviations", "at_seconds", deviations)?;
    for (i, deviation) in run.deviations.iter().enumerate() {
        known(&format!("deviations[{i}].program.slot"), deviation.program.slot, run)?;
    }
    ascending("decisions", "at_seconds", run.decisions.iter().map(|made| made.at_seconds))?;
    run.decisions.iter().enumerate().try_for_each(|(i, made)| decision(i, made, run))
}

fn program(at: &str, program: &ProgramResult) -> Result<(), Fault> {
    let field = |name: &str| format!("{at}.{name}");
    command(&field("command"), &program.command)?;
    let given = [
        ("arrived_seconds", Some(program.arrived_seconds)),
        ("started_seconds", program.started_seconds),
        ("turnaround_seconds", program.turnaround_seconds),
        ("running_seconds", Some(program.running_seconds)),
        ("waiting_seconds", Some(program.waiting_seconds)),
        ("filler_seconds", Some(program.filler_seconds)),
        ("solo_seconds", program.solo_seconds),
        ("solo_cpu_seconds", program.solo_cpu_seconds),
        ("rejected_solo_seconds", program.rejected_solo_seconds),
        ("molded_solo_seconds", program.molded_solo_seconds),
        ("detached_seconds", program.detached_seconds),
        ("longest_frozen_seconds", Some(program.longest_frozen_seconds)),
        ("usage.user_seconds", Some(program.usage.user_seconds)),
        ("usage.system_seconds", Some(program.usage.system_seconds)),
        // Interference is negative where the run alone was the slower one.
        ("interference_seconds", program.interference_seconds.map(f64::abs)),
        ("fair_share.share_seconds", program.fair_share.map(|fair| fair.share_seconds)),
        ("fair_share.lag_seconds", program.fair_share.map(|fair| fair.lag_seconds.abs())),
    ];
    for (name, seconds) in given {
        seconds.map_or(Ok(()), |seconds| time(&field(name), seconds))?;
    }
    let weight = program.terms.as_ref().map_or(1.0, |terms| terms.weight);
    if !(weight > 0.0 && weight <= HEAVIEST) {
        return fault(
            &field("terms.weight"),
            format!("is {weight}, but must be above 0 and at most {HEAVIEST}"),
        );
    }
    if program.threads == 0 {
        return fault(&field("threads"), "is 0, but a program has at least one".to_owned());
    }
    let ends = program.completions.iter().map(|completion| completion.exit);
    for exit in ends.chain(program.exit) {
        if let Exit::Signal(signal @ (0 | 65..)) = exit {
            let why = format!("has signal {signal}, but must have one from 1 to 64");
            return fault(&field("exit"), why);
        }
    }
    match (program.exit_status, program.exit.map(Exit::shell_status)) {
        (Some(status), None) => {
            return fault(&field("exit"), format!("is missing, but `exit_status` is {status}"));
        }
        (status, Some(of_exit)) if status != Some(of_exit) => {
            let found = status.map_or("missing".to_owned(), |status| status.to_string());
            let why = format!("is {found}, but must be {of_exit}, as `exit` says");
            return fault(&field("exit_status"), why);
        }
        _ => {}
    }
    in_order(&field("timeline"), program.timeline.iter().map(|span| (span.0, span.1)))?;
    in_order(&field("turns"), program.turns.iter().copied())?;
    let ends = program.completions.iter().map(|completion| completion.at_seconds);
    ascending(&field("completions"), "at_seconds", ends)
}

/// Words that the kernel has executed, or nothing.
fn command(field: &str, words: &[String]) -> Result<(), Fault> {
    for (i, word) in words.iter().enumerate() {
        let at = format!("{field}[{i}]");
        if i == 0 && word.is_empty() {
            return fault(&at, "is empty".to_owned());
        }
        if word.contains('\0') {
            return fault(&at, "has a NUL character".to_owned());
        }
        if word.len() > LONGEST_WORD {
            let most = format!("but can have at most {LONGEST_WORD}");
            return fault(&at, format!("has {} bytes, {most}", word.len()));
        }
    }
    Ok(())
}

/// Spans of time, from and to, one after another.
fn in_order(list: &str, spans: impl Iterator<Item = (f64, f64)>) -> Result<(), Fault> {
    let mut until = 0.0;
    for (i, (from, to)) in spans.enumerate() {
        let name = format!("{list}[{i}]");
        time(&name, from)?;
        time(&name, to)?;
        if to < from {
            return fault(&name, format!("ends at {to} s, before it begins at {from} s"));
        }
        if from < until - ROUNDING {
            return fault(&name, format!("begins at {from} s, before the one before it ends"));
        }
        until = to;
    }
    Ok(())
}

fn decision(i: usize, made: &DecisionResult, run: &RunResult) -> Result<(), Fault> {
    let reason = |(n, reason): (usize, &Reason)| {
        let at = format!("decisions[{i}].reasons[{n}]");
        if let Some(id) = reason.program {
            known(&format!("{at}.program.slot"), id.slot, run)?;
        }
        match Quantum::of(&reason.why) {
            Some(Quantum { gang, gangs, .. }) if gang >= gangs.max(1) => {
                fault(&format!("{at}.gang"), format!("is {gang} of {gangs}; the first one is 0"))
            }
            _ => Ok(()),
        }
    };
    made.reasons.iter().enumerate().try_for_each(reason)
}

/// Programs are named by their position.
fn known(field: &str, slot: u16, run: &RunResult) -> Result<(), Fault> {
    let programs = run.programs.len();
    match usize::from(slot) < programs {
        true => Ok(()),
        false => fault(
            field,
            format!(
                "is {slot}, but there are {}, from 0 on",
                count(programs, "program", "programs")
            ),
        ),
    }
}

/// Lists are searched by bisection.
fn ascending(list: &str, field: &str, times: impl Iterator<Item = f64>) -> Result<(), Fault> {
    let mut before = 0.0;
    for (i, at) in times.enumerate() {
        let name = || format!("{list}[{i}].{field}");
        time(&name(), at)?;
        if at < before {
            return fault(&name(), format!("is {at} s, before the one before it"));
        }
        before = at;
    }
    Ok(())
}

fn time(field: &str, seconds: f64) -> Result<(), Fault> {
    match (0.0..=LONGEST_SECONDS).contains(&seconds) {
        true => Ok(()),
        // A number of three hundred digits cannot be read.
        false if seconds.abs() > 1e12 => fault(field, format!("is {seconds:e} s, {RANGE}")),
        false => fault(field, format!("is {seconds} s, {RANGE}")),
    }
}

fn fault<T>(field: &str, what: String) -> Result<T, Fault> {
    Err((field.to_owned(), what))
}
