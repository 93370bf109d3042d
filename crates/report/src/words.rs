//! Reasons and deviations in words.
//!
//! Policies write no text: they give reasons as data ([`Why`]), and the engine notes deviations as
//! data. This module is the only place that has words for them, so that a trace, an explanation and
//! a table say the same. A new kind of reason does not compile without words.

mod choices;

use std::borrow::Cow;

use cosched_core::{Aspect, Exit, Mode, Nanos, Refusal, Why};
use cosched_results::result::{ProgramResult, RunResult};

use crate::treatment::name;
use choices::chosen;

/// A reason as a clause: what holds for every reason of its kind, then the figures of this case in
/// brackets.
pub fn reason(why: &Why) -> String {
    match figures(why) {
        Some(figures) => format!("{} ({figures})", in_general(why)),
        None => in_general(why).to_owned(),
    }
}

/// A reason that was given earlier. A policy gives reasons when a program's turn changes, and they
/// stay in force. Their figures are from that time.
pub fn earlier_reason(why: &Why, at: Nanos) -> String {
    match figures(why) {
        Some(figures) => {
            format!("{} (when decided at {}: {figures})", in_general(why), instant(at))
        }
        None => in_general(why).to_owned(),
    }
}

/// A reason without figures. All reasons of a kind have the same words.
pub fn in_general(why: &Why) -> &'static str {
    match why {
        Why::LeftToKernel => "the policy leaves scheduling to the kernel",
        Why::Turn => "it has its turn, which lasts until it ends",
        Why::Queued { .. } => "it is queued for its turn",
        Why::Quantum { .. } => "a quantum begins",
        Why::InGang => "it has its turn",
        Why::Filler => "it gets the CPU time that the programs in turn leave idle",
        Why::OtherGang { .. } => "it is another program's turn",
        Why::Backfills => "backfill: it fits into CPUs that this quantum leaves idle",
        Why::SharesBackfill { .. } => {
            "backfill: its threads share the CPUs that this quantum leaves idle, which are too \
             few for it"
        }
        Why::MostMisses => {
            "it has the most cache misses of the programs that are not in a gang yet"
        }
        Why::FewestMissesThatFit => {
            "it has the fewest cache misses of the programs that fit with the first of its gang"
        }
        Why::LeastLost { .. } => "this gang loses the least speed by taking it in",
        Why::WaitedLongest { weight: Some(_), .. } => {
            "of the programs that fit, its waiting time times its weight is largest"
        }
        Why::WaitedLongest { .. } => "of the programs that fit, it has waited longest for its turn",
        Why::SlowedMost { .. } => "it has the largest slowdown of the programs that fit",
        Why::DoesNotFit { .. } => "other programs come first, and it does not fit",
        Why::LeastProgress { .. } => "it is furthest behind of the programs that fit",
        Why::MoreProgress { .. } => "it is further ahead than the programs that run",
        Why::Trained { .. } => "its solo speed is being measured, with little interference",
        Why::WithTrained => {
            "the solo speed of another program is being measured, and this one fits with it"
        }
        Why::AwaitsTraining => {
            "the solo speed of another program is being measured, and this one does not fit"
        }
        Why::NeverFrozen => "it must never be paused",
        Why::QuantumShortened { .. } => {
            "quanta are shortened, so that no program is paused for longer than allowed"
        }
        Why::Slice { .. } => "this time slice suits its waits at locks and its cache misses",
        Why::Given { .. } => "its threads are scheduled this way without a trial",
        Why::Recalled { .. } => {
            "learned setting: earlier trials showed how to schedule its threads"
        }
        Why::Tried { .. } => "a trial measures another way to schedule its threads",
        Why::Kept { .. } => "a trial of another way to schedule its threads succeeded",
        Why::PutBack { .. } => {
            "a trial of another way to schedule its threads failed, and the earlier way is restored"
        }
        Why::LimitsThreads { .. } => "this is the thread limit of its parallel regions",
        Why::TriesThreads { .. } => "a trial measures its speed with another thread limit",
        Why::Shuffled { .. } => "threads with similar waits at locks share a socket",
        Why::GroupsTried { .. } => {
            "a trial measures its speed with threads that have similar waits at locks on one socket"
        }
        Why::GroupsRecalled { helped: true } => {
            "learned setting: threads with similar waits at locks share a socket"
        }
        Why::GroupsRecalled { helped: false } => {
            "learned setting: its threads are not grouped, since that did not help in earlier \
             trials"
        }
        Why::GroupsKept { .. } => "a trial of other groups of its threads succeeded",
        Why::GroupsPutBack { .. } => {
            "a trial of other groups of its threads failed, and the earlier groups are restored"
        }
        Why::Unbound { .. } => {
            "its threads hardly wait at locks any more, so the kernel chooses their CPUs"
        }
        Why::Chosen { mode, reason_code, .. } => chosen(*mode, *reason_code),
        Why::Molded { .. } => {
            "it was started with fewer threads, because solo times show that the last program \
             then ends sooner"
        }
        Why::Spread { .. } => "memory-bound: its threads are spread over caches",
        Why::SoloProbes { .. } => {
            "solo probe: each program runs by itself for a moment, to measure how many CPUs it uses"
        }
        Why::HardlyRuns => "it uses hardly any CPU time, so it always runs",
        Why::Deviation { .. } => "the machine could not do what the policy planned",
        Why::Earlier => {
            "an earlier version of cosched had a reason that this version does not know"
        }
    }
}

/// A reason in two or three words, for a narrow column. It has no figures, since there is no room
/// to say from when they are. The length of a slice is an exception: it holds until the next slice
/// is chosen.
pub fn brief(why: Why) -> Cow<'static, str> {
    let words = match why {
        Why::LeftToKernel => "left to the kernel",
        Why::Turn => "its turn",
        Why::Queued { .. } => "queued",
        Why::Quantum { .. } => "quantum",
        Why::InGang => "in gang",
        Why::Filler => "fills idle CPU time",
        Why::OtherGang { .. } => "other gang",
        Why::Backfills => "backfill",
        Why::SharesBackfill { .. } => "shared backfill",
        Why::MostMisses => "most misses",
        Why::FewestMissesThatFit => "fewest misses that fit",
        Why::LeastLost { .. } => "costs least",
        Why::WaitedLongest { .. } => "waited longest for its turn",
        Why::SlowedMost { .. } => "slowed most",
        Why::DoesNotFit { .. } => "does not fit",
        Why::Slice { slice, .. } => return format!("slice {}", span(slice)).into(),
        Why::Given { actuator } => return format!("uses {}", name(actuator)).into(),
        Why::Recalled { actuator } => return format!("learned {}", name(actuator)).into(),
        Why::Tried { actuator, .. } => return format!("tries {}", name(actuator)).into(),
        Why::Kept { actuator, .. } => return format!("keeps {}", name(actuator)).into(),
        Why::PutBack { actuator, .. } => return format!("rejects {}", name(actuator)).into(),
        Why::LimitsThreads { threads, requested, .. } => {
            return format!("{threads} of {requested} threads").into();
        }
        Why::TriesThreads { threads, .. } => {
            return format!("tries {}", count(threads.into(), "thread", "threads")).into();
        }
        Why::LeastProgress { .. } => "furthest behind",
        Why::MoreProgress { .. } => "further ahead",
        Why::Trained { .. } => "in training",
        Why::WithTrained => "fits training",
        Why::AwaitsTraining => "awaits training",
        Why::Shuffled { moved, .. } => return format!("{moved} shuffled").into(),
        Why::GroupsTried { groups, .. } => return format!("tries {groups} groups").into(),
        Why::GroupsRecalled { helped: true } => "learned groups",
        Why::GroupsRecalled { helped: false } => "learned no groups",
        Why::GroupsKept { .. } => "keeps groups",
        Why::GroupsPutBack { .. } => "rejects groups",
        Why::Unbound { .. } => "unbound",
        Why::NeverFrozen => "never paused",
        Why::QuantumShortened { .. } => "quantum shortened",
        Why::Chosen { mode: Mode::Corun, .. } => "running together",
        Why::Chosen { mode: Mode::Gangs, .. } => "taking turns",
        Why::Chosen { mode: Mode::Earlier, .. } => "unknown mode",
        Why::Molded { threads, requested } => {
            return format!("started with {threads} of {requested} threads").into();
        }
        Why::Spread { .. } => "spread",
        Why::SoloProbes { .. } => "solo probes",
        Why::HardlyRuns => "almost idle",
        Why::Deviation { .. } => "deviation",
        Why::Earlier => "other",
    };
    words.into()
}

/// The figures of a reason, if it has any.
fn figures(why: &Why) -> Option<String> {
    match why {
        Why::Queued { ahead: 0 } => Some("it is first in the queue".to_owned()),
        Why::Queued { ahead } => Some(format!(
            "{} ahead of it in the queue",
            count((*ahead).into(), "program", "programs")
        )),
        Why::Quantum { round, gang, gangs, length } => {
            Some(format!("{}, {}", place(*round, *gang, *gangs), planned(*length)))
        }
        Why::OtherGang { gang } => Some(format!("it is in gang {}", gang + 1)),
        Why::SharesBackfill { cpus } => Some(count((*cpus).into(), "CPU", "CPUs")),
        Why::LeastLost { slowdown } => Some(format!("predicted slowdown {slowdown:.2}")),
        Why::WaitedLongest { waited, weight: Some(weight) } => {
            Some(format!("{} times {weight}", span(*waited)))
        }
        Why::WaitedLongest { waited, weight: None } => Some(span(*waited)),
        Why::SlowedMost { slowdown } => {
            Some(slowdown.map_or("it has done no work yet".to_owned(), |slowdown| {
                format!("{slowdown:.2} times its solo time")
            }))
        }
        Why::DoesNotFit { free } => Some(format!("{} left", count((*free).into(), "CPU", "CPUs"))),
        Why::LeastProgress { progress, coverage, slowdown } => {
            let known = format!("solo speed known for {:.0} % of its quanta", coverage * 100.0);
            Some(format!("{}{}, {known}", work(*progress), slowed(*slowdown)))
        }
        Why::MoreProgress { progress, slowdown } => {
            Some(format!("{}{}", work(*progress), slowed(*slowdown)))
        }
        Why::Trained { sequential, idle } => {
            let how = if *sequential { "several quanta" } else { "one expected phase" };
            Some(format!("for {how}; {} left idle", count((*idle).into(), "CPU", "CPUs")))
        }
        Why::QuantumShortened { requested, given } => {
            Some(format!("{} instead of {}", span(*given), span(*requested)))
        }
        Why::Slice { slice, lock_contention, miss_ratio, profiled } => {
            let why = at_locks(*lock_contention, *miss_ratio, *profiled);
            Some(format!("{}; {why}", span(*slice)))
        }
        Why::Given { actuator } | Why::Recalled { actuator } => Some(name(*actuator).to_owned()),
        Why::Tried { actuator, against } => {
            Some(format!("{} against {}", name(*actuator), name(*against)))
        }
        Why::Kept { actuator, progress } => {
            Some(format!("{}, {progress:.2} times the progress", name(*actuator)))
        }
        Why::PutBack { actuator, progress, pause } => Some(format!(
            "{}, {progress:.2} times the progress; no trial for {}",
            name(*actuator),
            span(*pause)
        )),
        Why::LimitsThreads { threads, requested, speed } => {
            let speed = speed.filter(|_| threads != requested);
            let speed = speed.map_or(String::new(), |speed| format!("; {speed:.2} times as fast"));
            Some(format!("{threads} of {requested} requested threads{speed}"))
        }
        Why::TriesThreads { threads, requested } => {
            Some(format!("{threads} of {requested} requested threads"))
        }
        Why::Shuffled { threads, moved, groups, lock_time, .. } => Some(format!(
            "{moved} of {} moved between {groups} sockets; {:.0} % of the time at locks",
            count((*threads).into(), "thread", "threads"),
            lock_time * 100.0
        )),
        Why::GroupsTried { threads, groups } => {
            Some(format!("{} in {groups} groups", count((*threads).into(), "thread", "threads")))
        }
        Why::GroupsKept { progress } => Some(format!("{progress:.2} times the progress")),
        Why::GroupsPutBack { progress, pause, .. } => {
            Some(format!("{progress:.2} times the progress; no trial for {}", span(*pause)))
        }
        Why::Unbound { lock_time } => {
            Some(format!("{:.0} % of the time at locks", lock_time * 100.0))
        }
        Why::Chosen { corun, gangs, explored, .. } => {
            let turns =
                gangs.map_or(String::new(), |cpus| format!(", {cpus:.2} when taking turns"));
            let busy =
                corun.map(|cpus| format!("{cpus:.2} CPUs busy when running together{turns}"));
            let cost = Some(explored).filter(|cost| **cost > Nanos::ZERO);
            let cost = cost.map(|cost| format!("measuring has cost {} so far", span(*cost)));
            let figures: Vec<String> = busy.into_iter().chain(cost).collect();
            (!figures.is_empty()).then(|| figures.join("; "))
        }
        Why::Molded { threads, requested } => {
            Some(format!("{threads} of {requested} requested threads"))
        }
        Why::Spread { misses } => Some(misses_per_kilo_instruction(*misses)),
        Why::SoloProbes { length, probes } => Some(format!("{probes} times {}", span(*length))),
        Why::Deviation { what, refusal } => {
            Some(format!("it {} {}", effect(*what), cause(*refusal)))
        }
        Why::LeftToKernel
        | Why::Turn
        | Why::InGang
        | Why::Backfills
        | Why::Filler
        | Why::MostMisses
        | Why::FewestMissesThatFit
        | Why::WithTrained
        | Why::AwaitsTraining
        | Why::HardlyRuns
        | Why::GroupsRecalled { .. }
        | Why::Earlier
        | Why::NeverFrozen => None,
    }
}

/// Cache misses of a program.
pub fn misses_per_kilo_instruction(misses: f64) -> String {
    format!("{misses:.0} cache misses per 1000 instructions")
}

/// The work of a program, as the time that it takes without co-runners.
fn work(solo: Nanos) -> String {
    format!("{} of solo time done", span(solo))
}

/// By how much a program was slowed down, as a clause that begins with a comma.
fn slowed(slowdown: Option<f64>) -> String {
    slowdown.map_or(String::new(), |slowdown| format!(", slowdown {slowdown:.2} since it arrived"))
}

/// What threads wait for; `profiled`: the misses are from the program's profile.
pub fn at_locks(lock_contention: f64, miss_ratio: Option<f64>, profiled: bool) -> String {
    let misses = match miss_ratio {
        Some(ratio) if profiled => {
            format!("{:.0} % cache misses in its profile, not measured in this run", ratio * 100.0)
        }
        Some(ratio) => format!("{:.0} % cache misses", ratio * 100.0),
        None => "cache misses unknown".to_owned(),
    };
    format!("{:.0} % of the time at locks, {misses}", lock_contention * 100.0)
}

/// How much of the CPUs a run used, as a clause that begins with a comma. Nothing where that is not
/// known: programs that were attached ran before and after the run.
pub fn cpu_use(result: &RunResult) -> String {
    let used = |program: &ProgramResult| program.usage.user_seconds + program.usage.system_seconds;
    match result.programs.iter().any(|program| used(program) > 0.0) {
        true => format!(", CPU use {:.0} %", result.metrics.cpu_utilisation * 100.0),
        false => String::new(),
    }
}

/// Says that a long run is not kept whole.
pub fn kept_from(result: &RunResult) -> Option<String> {
    let from = result.kept_from_seconds?;
    Some(format!(
        "The run was long: single decisions, turns and complete runs before {from:.0} s are not \
         kept. \
         All sums include them."
    ))
}

/// Which gang of which round; the first gang is number 1. A policy without rounds counts each
/// quantum as a round.
pub fn place(round: u64, gang: u16, gangs: u16) -> String {
    match gangs {
        0 | 1 => format!("round {round}"),
        _ => format!("round {round}, gang {} of {gangs}", gang + 1),
    }
}

/// How long a quantum is meant to last.
pub fn planned(length: Nanos) -> String {
    match length {
        Nanos::NEVER => "without a planned end".to_owned(),
        length => format!("planned for {}", span(length)),
    }
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
        Aspect::Turn => "does not take turns by weight",
        Aspect::Threads => "did not get the planned thread count",
    }
}

/// Why a deviation happened; the words follow those of [`effect`].
pub fn cause(why: Refusal) -> &'static str {
    match why {
        Refusal::TimedOut => "because the kernel did not confirm the pause in time",
        Refusal::FrozenTooLong => "because it had been paused for as long as --max-frozen allows",
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

/// A time span with two or three significant digits.
pub fn span(time: Nanos) -> String {
    let micros = time.0 as f64 / 1e3;
    match micros {
        m if m >= 999_500.0 => format!("{:.2} s", m / 1e6),
        m if m >= 99_950.0 => format!("{:.0} ms", m / 1e3),
        m if m >= 999.5 => format!("{} ms", (m / 100.0).round() / 10.0),
        m => format!("{m:.0} us"),
    }
}

/// An instant of a run: to the millisecond.
pub fn instant(at: Nanos) -> String {
    format!("{:.3} s", at.as_secs_f64())
}

/// "1 switch", "2 switches".
pub fn count(n: usize, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}

/// A list in words: "a", "a and b", "a, b and c".
pub fn list(words: &[String]) -> String {
    match words {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// A text with a capital first letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
