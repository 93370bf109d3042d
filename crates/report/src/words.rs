//! Reasons and deviations in words.
//!
//! Policies give reasons as data, and have the words for them
//! ([`words`]). The engine notes deviations as data, and this
//! module has the words for them. A trace, an explanation and a table therefore say the same.

use std::borrow::Cow;

pub use cosched_core::format::{
    count, cpus, instant, list, misses_per_kilo_instruction, place, planned, span,
};
use cosched_core::{Aspect, Exit, Nanos, Refusal, Why};
pub use cosched_policy::at_locks;
use cosched_policy::reasons::words;
use cosched_results::result::{ProgramResult, RunResult};

use crate::detached;

/// Of many lines about decisions, this many first ones and this many last ones are told.
const SHOWN: usize = 6;

/// A reason as a clause: what holds for every reason of its kind, then the figures of this case in
/// brackets.
pub fn reason(why: &Why) -> String {
    let words = words(why);
    match words.figures {
        Some(figures) => format!("{} ({figures})", words.in_general),
        None => words.in_general.into_owned(),
    }
}

/// A reason that was given earlier. A policy gives reasons when a program's turn changes, and they
/// stay in force. Their figures are from that time.
pub fn earlier_reason(why: &Why, at: Nanos) -> String {
    let words = words(why);
    match words.figures {
        Some(figures) => {
            format!("{} (when decided at {}: {figures})", words.in_general, instant(at))
        }
        None => words.in_general.into_owned(),
    }
}

/// A reason without figures. All reasons of a kind have the same words.
pub fn in_general(why: &Why) -> Cow<'static, str> {
    words(why).in_general
}

/// A reason in two or three words, for a narrow column.
pub fn brief(why: &Why) -> Cow<'static, str> {
    words(why).brief
}

/// How much of the CPUs a run used, as a clause that begins with a comma. Nothing where that is not
/// known: programs that were attached or detached ran before or after the run.
pub fn cpu_use(result: &RunResult) -> String {
    let used = |program: &ProgramResult| program.usage.user_seconds + program.usage.system_seconds;
    match result.programs.iter().any(|program| used(program) > 0.0) && !detached::is_any(result) {
        true => format!(", CPU use {:.0} %", result.metrics.cpu_utilisation * 100.0),
        false => String::new(),
    }
}

/// Says that a long run is not kept whole.
pub fn kept_from(result: &RunResult) -> Option<String> {
    let from = result.kept_from_seconds?;
    Some(format!(
        "The run was long: single decisions, turns and complete runs before {from:.0} s are not \
         kept. Sums are of the whole run, unless they say \"since {from:.0} s\"."
    ))
}

/// From when on a long run is kept, for what is counted of that part only.
pub fn since(result: &RunResult) -> Option<String> {
    result.kept_from_seconds.map(|from| format!("since {from:.0} s"))
}

/// What a deviation means for a program; the words follow its name.
pub fn effect(aspect: Aspect) -> &'static str {
    match aspect {
        Aspect::Frozen => "ran outside its turn",
        Aspect::Running => "did not run in its turn",
        Aspect::Cpus => "was not bound to the planned CPUs",
        Aspect::Slice => "did not get the planned time slice",
        Aspect::Class => "did not get the planned scheduling class",
        Aspect::Nice => "did not get the planned priority",
        Aspect::CpuGroup => "did not get a CPU share of its own",
        Aspect::Turn => "did not take turns by weight",
        Aspect::Threads => "did not get the planned thread count",
    }
}

/// Why a deviation happened; the words follow those of [`effect`].
pub fn cause(why: Refusal) -> &'static str {
    match why {
        Refusal::TimedOut => "because pausing it took too long",
        Refusal::FrozenTooLong => {
            "because it had been paused for as long as --max-frozen allows, or less for tests"
        }
        Refusal::CoschedStopped => "because cosched itself was stopped or got no CPU",
        Refusal::Unguarded => "because no sentinel could be started that would resume it",
        Refusal::NotPermitted => "because a permission is missing",
        Refusal::NotSupported => "because this machine does not support it",
        Refusal::OutOfRange => {
            "because the kernel does not allow this value: it got the nearest one"
        }
        Refusal::RealTime => "because it has real-time threads, which cosched does not change",
        Refusal::NoCpuLeft => "because it may not use any of these CPUs",
        Refusal::Traced => "because a debugger traces it",
        Refusal::HoldsGpu => "because it holds a GPU device",
        Refusal::Listens => "because it listens on a socket",
        Refusal::HoldsTerminal => "because it holds a terminal",
        Refusal::WaitsForEvents => "because a pause would end a call early in which it waits",
        Refusal::WaitsForStops => "because it would see that its processes stop",
        Refusal::StopsItself => "because it would stop itself when its processes stop",
        Refusal::CatchesContinue => "because it would see that it is continued (SIGCONT)",
        Refusal::LeftCgroup => "because a process of it has moved to another cgroup",
        Refusal::UserSaysNo => "because it must not be paused",
        Refusal::GroupRuns => "because a program of its group is running",
        Refusal::StoppedByOther => "because another process stopped it",
        Refusal::ChangedByOther => "because another process changed it",
    }
}

/// How a run of a program ended.
pub fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(0) => "ok".to_owned(),
        Exit::Code(code) => format!("status {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::Failed(_) => "not started".to_owned(),
        Exit::Unknown => "unknown".to_owned(),
    }
}

/// A line for each; of many, only the first ones and the last ones.
pub(crate) fn abridged<T>(all: &[T], line: impl Fn(&T) -> String) -> Vec<String> {
    let hidden = all.len().saturating_sub(2 * SHOWN);
    if hidden < 2 {
        return all.iter().map(line).collect();
    }
    let more = format!("  ({hidden} more)");
    let (first, last) = (&all[..SHOWN], &all[all.len() - SHOWN..]);
    first.iter().map(&line).chain([more]).chain(last.iter().map(&line)).collect()
}

/// A text with a capital first letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
