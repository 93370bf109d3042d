//! Reasons and deviations in words.
//!
//! Policies write no text: they give reasons as data ([`Why`]), and the engine notes deviations as
//! data. Here, and only here, each kind gets its words, so that a trace, an explanation and a table
//! say the same thing. A new kind of reason does not compile without them.

mod choices;

use std::borrow::Cow;

use cosched_core::result::{ProgramResult, RunResult};
use cosched_core::{Aspect, Exit, Manner, Nanos, Refusal, Why};

use choices::chosen;

/// A reason as a clause: what is always so, and in brackets the figures of this case.
pub fn reason(why: &Why) -> String {
    match figures(why) {
        Some(figures) => format!("{} ({figures})", in_general(why)),
        None => in_general(why).to_owned(),
    }
}

/// A reason that was given earlier. Reasons are given when a program's turn changes, and stay in
/// force; their figures are those of then.
pub fn earlier_reason(why: &Why, at: Nanos) -> String {
    match figures(why) {
        Some(figures) => {
            format!("{} (when decided at {}: {figures})", in_general(why), instant(at))
        }
        None => in_general(why).to_owned(),
    }
}

/// A reason without the figures of the case: the same for every reason of its kind.
pub fn in_general(why: &Why) -> &'static str {
    match why {
        Why::LeftToKernel => "the policy leaves everything to the kernel",
        Why::Turn => "it is its turn until it ends",
        Why::Queued { .. } => "it is in the queue for its turn",
        Why::Quantum { .. } => "a quantum begins",
        Why::InGang => "its gang has the quantum",
        Why::Filler => "it gets what the programs in turn leave",
        Why::OtherGang { .. } => "another gang has the quantum",
        Why::Fills => "it fits into CPUs that the quantum would leave idle",
        Why::Lent { .. } => {
            "it does not fit, and all its threads share the CPUs that the quantum would leave idle"
        }
        Why::MostMisses => "of the programs not yet in a gang, it has the most cache misses",
        Why::FewestMissesThatFit => {
            "of those that fit beside the first of its gang, it has the fewest cache misses"
        }
        Why::LeastLost { .. } => "of the gangs with room, it costs least in this one",
        Why::WaitedLongest { .. } => "of those that fit, it has waited longest",
        Why::SlowedMost { .. } => "of those that fit, it is slowed most",
        Why::DoesNotFit { .. } => "it does not fit beside those that have waited longer",
        Why::LeastProgress { .. } => {
            "of those that fit, it is furthest behind what it would do alone"
        }
        Why::MoreProgress { .. } => "it is further ahead than those that run",
        Why::Trained { .. } => {
            "it is made to suffer little, so that its speed alone can be measured"
        }
        Why::BesideTrained => "it fits beside a program whose speed alone is being measured",
        Why::AwaitsTraining => {
            "it does not fit beside a program whose speed alone is being measured"
        }
        Why::NeverFrozen => "it may not be frozen, so it always runs",
        Why::QuantumShortened { .. } => {
            "quanta are shortened, so that nobody is frozen for longer than allowed"
        }
        Why::Slice { .. } => "this is the slice that its locks and cache misses ask for",
        Why::Given { .. } => "this is how its threads are scheduled, without a trial",
        Why::Recalled { .. } => "it was found out before how its threads are scheduled best",
        Why::Tried { .. } => {
            "it is being tried whether another way to schedule its threads is faster"
        }
        Why::Kept { .. } => "another way to schedule its threads was tried, and is kept",
        Why::PutBack { .. } => {
            "another way to schedule its threads was tried, and they are as they were before"
        }
        Why::Granted { .. } => "this is how many threads its parallel regions get",
        Why::TriesThreads { .. } => {
            "it is being tried how fast it is with another number of threads"
        }
        Why::Shuffled { .. } => "threads that wait alike at locks share a socket",
        Why::GroupsTried { .. } => {
            "it is being tried whether it is faster with threads that wait alike at locks on one socket"
        }
        Why::GroupsRecalled { .. } => {
            "it was found out before whether it helps to have threads that wait alike at locks on one socket"
        }
        Why::GroupsKept { .. } => "other groups of its threads were tried, and are kept",
        Why::GroupsPutBack { .. } => {
            "other groups of its threads were tried, and they are where they were before"
        }
        Why::Unbound { .. } => {
            "its threads hardly wait at locks any more, and run where the kernel likes"
        }
        Why::Chosen { manner, ground, .. } => chosen(*manner, *ground),
        Why::Molded { .. } => {
            "it was started with fewer threads, since by runs alone the last program ends sooner so"
        }
        Why::Spread { .. } => "its CPUs are far apart, since it lives from memory",
        Why::LooksAtEach { .. } => "each runs alone for a moment, to see how many CPUs it uses",
        Why::HardlyRuns => "it hardly uses CPUs, so it always runs",
        Why::Deviation { .. } => "something was not as wanted",
        Why::Earlier => "for a reason that only earlier versions of cosched had",
    }
}

/// A reason in two or three words, for a narrow column that has no room to say of when its figures
/// would be. (A slice is in force until the next one is chosen: its length is of now.)
pub fn brief(why: Why) -> Cow<'static, str> {
    let words = match why {
        Why::LeftToKernel => "left to the kernel",
        Why::Turn => "its turn",
        Why::Queued { .. } => "queued",
        Why::Quantum { .. } => "quantum",
        Why::InGang => "in gang",
        Why::Filler => "filler",
        Why::OtherGang { .. } => "other gang",
        Why::Fills => "fills gaps",
        Why::Lent { .. } => "in a gap",
        Why::MostMisses => "most misses",
        Why::FewestMissesThatFit => "least misses that fit",
        Why::LeastLost { .. } => "costs least",
        Why::WaitedLongest { .. } => "waited longest",
        Why::SlowedMost { .. } => "slowed most",
        Why::DoesNotFit { .. } => "does not fit",
        Why::Slice { slice, .. } => return format!("slice {}", span(slice)).into(),
        Why::Given { actuator } => return format!("has {actuator}").into(),
        Why::Recalled { actuator } => return format!("recalls {actuator}").into(),
        Why::Tried { actuator, .. } => return format!("tries {actuator}").into(),
        Why::Kept { actuator, .. } => return format!("keeps {actuator}").into(),
        Why::PutBack { actuator, .. } => return format!("not {actuator}").into(),
        Why::Granted { threads, asked, .. } => {
            return format!("{threads} of {asked} threads").into();
        }
        Why::TriesThreads { threads, .. } => {
            return format!("tries {}", count(threads.into(), "thread", "threads")).into();
        }
        Why::LeastProgress { .. } => "furthest behind",
        Why::MoreProgress { .. } => "further ahead",
        Why::Trained { .. } => "trained",
        Why::BesideTrained => "beside trained",
        Why::AwaitsTraining => "awaits training",
        Why::Shuffled { moved, .. } => return format!("{moved} shuffled").into(),
        Why::GroupsTried { groups, .. } => return format!("tries {groups} groups").into(),
        Why::GroupsRecalled { helped: true } => "recalls groups",
        Why::GroupsRecalled { helped: false } => "recalls no groups",
        Why::GroupsKept { .. } => "keeps groups",
        Why::GroupsPutBack { .. } => "not these groups",
        Why::Unbound { .. } => "unbound",
        Why::NeverFrozen => "not frozen",
        Why::QuantumShortened { .. } => "quantum shortened",
        Why::Chosen { manner: Manner::SideBySide, .. } => "side by side",
        Why::Chosen { manner: Manner::InGangs, .. } => "in gangs",
        Why::Chosen { manner: Manner::Earlier, .. } => "another way",
        Why::Molded { threads, asked } => {
            return format!("started with {threads} of {asked} threads").into();
        }
        Why::Spread { .. } => "spread",
        Why::LooksAtEach { .. } => "looks at each",
        Why::HardlyRuns => "hardly runs",
        Why::Deviation { .. } => "not as wanted",
        Why::Earlier => "other",
    };
    words.into()
}

/// The figures of a reason, if it has any.
fn figures(why: &Why) -> Option<String> {
    match why {
        Why::Queued { ahead: 0 } => Some("nobody is ahead of it".to_owned()),
        Why::Queued { ahead } => {
            Some(format!("{} ahead of it", count((*ahead).into(), "program", "programs")))
        }
        Why::Quantum { round, gang, gangs, length } => {
            Some(format!("{}, {}", place(*round, *gang, *gangs), planned(*length)))
        }
        Why::OtherGang { gang } => Some(format!("its own is gang {}", gang + 1)),
        Why::Lent { cpus } => Some(count((*cpus).into(), "CPU", "CPUs")),
        Why::LeastLost { slowdown } => Some(format!("predicted slowdown {slowdown:.2}")),
        Why::WaitedLongest { waited } => Some(span(*waited)),
        Why::SlowedMost { slowdown } => {
            Some(slowdown.map_or("it has done nothing yet".to_owned(), |slowdown| {
                format!("{slowdown:.2} times its time alone")
            }))
        }
        Why::DoesNotFit { free } => Some(format!("{} left", count((*free).into(), "CPU", "CPUs"))),
        Why::LeastProgress { progress, coverage, slowdown } => {
            let known = format!("speed known for {:.0} % of its quanta", coverage * 100.0);
            Some(format!("{} alone{}, {known}", span(*progress), slowed(*slowdown)))
        }
        Why::MoreProgress { progress, slowdown } => {
            Some(format!("{} alone{}", span(*progress), slowed(*slowdown)))
        }
        Why::Trained { sequential, idle } => {
            let how = if *sequential { "in sequence" } else { "for a phase that is expected" };
            Some(format!("{how}; {} idle", count((*idle).into(), "CPU", "CPUs")))
        }
        Why::QuantumShortened { asked, given } => {
            Some(format!("{} instead of {}", span(*given), span(*asked)))
        }
        Why::Slice { slice, lock_contention, miss_ratio, profiled } => {
            let why = at_locks(*lock_contention, *miss_ratio, *profiled);
            Some(format!("{}; {why}", span(*slice)))
        }
        Why::Given { actuator } | Why::Recalled { actuator } => Some(actuator.to_string()),
        Why::Tried { actuator, against } => Some(format!("{actuator} against {against}")),
        Why::Kept { actuator, progress } => {
            Some(format!("{actuator}, {progress:.2} times the progress"))
        }
        Why::PutBack { actuator, progress, pause } => Some(format!(
            "{actuator}, {progress:.2} times the progress; not tried again for {}",
            span(*pause)
        )),
        Why::Granted { threads, asked, speed } => {
            let speed = speed.filter(|_| threads != asked);
            let speed = speed.map_or(String::new(), |speed| format!("; {speed:.2} times as fast"));
            Some(format!("{threads} of the {asked} that it asks for{speed}"))
        }
        Why::TriesThreads { threads, asked } => {
            Some(format!("{threads} of the {asked} that it asks for"))
        }
        Why::Shuffled { threads, moved, groups, lock_time, .. } => Some(format!(
            "{moved} of {} moved between {groups} sockets; {:.0} % of the time at locks",
            count((*threads).into(), "thread", "threads"),
            lock_time * 100.0
        )),
        Why::GroupsTried { threads, groups } => {
            Some(format!("{} in {groups} groups", count((*threads).into(), "thread", "threads")))
        }
        Why::GroupsRecalled { helped: true } => Some("they do".to_owned()),
        Why::GroupsRecalled { helped: false } => Some("they do not".to_owned()),
        Why::GroupsKept { progress } => Some(format!("{progress:.2} times the progress")),
        Why::GroupsPutBack { progress, pause, .. } => {
            Some(format!("{progress:.2} times the progress; not tried again for {}", span(*pause)))
        }
        Why::Unbound { lock_time } => {
            Some(format!("{:.0} % of the time at locks", lock_time * 100.0))
        }
        Why::Chosen { side_by_side, in_gangs, explored, .. } => {
            let turns = in_gangs.map_or(String::new(), |cpus| format!(", {cpus:.2} in turns"));
            let busy = side_by_side.map(|cpus| format!("{cpus:.2} CPUs busy together{turns}"));
            let cost = Some(explored).filter(|cost| **cost > Nanos::ZERO);
            let cost = cost.map(|cost| format!("finding out has cost {} so far", span(*cost)));
            let told: Vec<String> = busy.into_iter().chain(cost).collect();
            (!told.is_empty()).then(|| told.join("; "))
        }
        Why::Molded { threads, asked } => Some(format!("{threads} of {asked}")),
        Why::Spread { misses } => Some(misses_per_kilo_instruction(*misses)),
        Why::LooksAtEach { moment, moments } => Some(format!("{moments} times {}", span(*moment))),
        Why::Deviation { wanted, refusal } => {
            Some(format!("it {} {}", effect(*wanted), cause(*refusal)))
        }
        Why::LeftToKernel
        | Why::Turn
        | Why::InGang
        | Why::Fills
        | Why::Filler
        | Why::MostMisses
        | Why::FewestMissesThatFit
        | Why::BesideTrained
        | Why::AwaitsTraining
        | Why::HardlyRuns
        | Why::Earlier
        | Why::NeverFrozen => None,
    }
}

/// Cache misses of a program.
pub fn misses_per_kilo_instruction(misses: f64) -> String {
    format!("{misses:.0} cache misses per 1000 instructions")
}

/// By how much a program was slowed, as a clause that begins with a comma.
fn slowed(slowdown: Option<f64>) -> String {
    slowdown.map_or(String::new(), |slowdown| format!(", slowed {slowdown:.2} times since it came"))
}

/// What threads wait for; `profiled`: the misses are those of runs alone.
pub fn at_locks(lock_contention: f64, miss_ratio: Option<f64>, profiled: bool) -> String {
    let misses = match miss_ratio {
        Some(ratio) if profiled => {
            format!("{:.0} % cache misses in its profile, now not known", ratio * 100.0)
        }
        Some(ratio) => format!("{:.0} % cache misses", ratio * 100.0),
        None => "cache misses not known".to_owned(),
    };
    format!("{:.0} % of the time at locks, {misses}", lock_contention * 100.0)
}

/// How much of the CPUs a run used, as a clause that begins with a comma; nothing where that is not
/// known, since all its programs ran before it and after it.
pub fn cpu_use(result: &RunResult) -> String {
    let used = |program: &ProgramResult| program.usage.user_seconds + program.usage.system_seconds;
    match result.programs.iter().any(|program| used(program) > 0.0) {
        true => format!(", CPU use {:.0} %", result.metrics.cpu_utilisation * 100.0),
        false => String::new(),
    }
}

/// That a long run is not kept whole.
pub fn kept_from(result: &RunResult) -> Option<String> {
    let from = result.kept_from_seconds?;
    Some(format!(
        "Decisions, turns and complete runs before {from:.0} s are not kept one by one, \
         since the run was long; all sums have them."
    ))
}

/// Which gang of which round; the first gang is number 1. For policies without rounds, each quantum
/// is one.
pub fn place(round: u64, gang: u16, gangs: u16) -> String {
    match gangs {
        0 | 1 => format!("round {round}"),
        _ => format!("round {round}, gang {} of {gangs}", gang + 1),
    }
}

/// How long a quantum is meant to last.
pub fn planned(length: Nanos) -> String {
    match length {
        Nanos::NEVER => "without an end".to_owned(),
        length => format!("planned for {}", span(length)),
    }
}

/// What it means for a program that this is not as wanted; goes on after its name.
pub fn effect(wanted: Aspect) -> &'static str {
    match wanted {
        Aspect::Frozen => "ran outside its turn",
        Aspect::Running => "did not run in its turn",
        Aspect::Cpus => "was not bound to the CPUs meant for it",
        Aspect::Slice => "did not get the time slice meant for it",
        Aspect::Class => "did not get the scheduling class meant for it",
        Aspect::Nice => "did not get the priority meant for it",
        Aspect::CpuGroup => "did not get a share of the CPUs of its own",
        Aspect::Turn => "does not take turns by weight",
        Aspect::Threads => "did not get the thread count meant for it",
    }
}

/// Why something is not as wanted; goes on after [`effect`].
pub fn cause(why: Refusal) -> &'static str {
    match why {
        Refusal::TimedOut => "because freezing was not confirmed in time",
        Refusal::FrozenTooLong => "because it had been frozen for as long as --max-frozen allows",
        Refusal::CoschedStopped => "because cosched itself was stopped, or got no CPU",
        Refusal::NotPermitted => "because a right is missing",
        Refusal::NotSupported => "because it cannot be done here",
        Refusal::OutOfRange => {
            "because the kernel does not grant as much, or as little: it got the nearest"
        }
        Refusal::RealTime => "because threads of it are in a real-time class, and left as they are",
        Refusal::NoCpuLeft => "because none of them is allowed to it",
        Refusal::Traced => "because a debugger traces it",
        Refusal::HoldsGpu => "because it holds a GPU device",
        Refusal::Listens => "because it listens on a socket",
        Refusal::HoldsTerminal => "because it holds a terminal",
        Refusal::UserSaysNo => "because it must not be frozen",
        Refusal::GroupRuns => "because a program of its group runs",
        Refusal::StoppedByOther => "because somebody else stopped it",
        Refusal::ChangedByOther => "because somebody else changed it",
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

/// A span of time with two or three digits that matter.
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

/// Words in a row: "a", "a and b", "a, b and c".
pub fn list(words: &[String]) -> String {
    match words {
        [] => "nobody".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_tells_what_is_always_so_and_the_figures_of_the_case() {
        let told = [
            reason(&Why::InGang),
            reason(&Why::Queued { ahead: 1 }),
            reason(&Why::DoesNotFit { free: 2 }),
            reason(&Why::OtherGang { gang: 0 }),
            reason(&Why::Quantum { round: 3, gang: 1, gangs: 4, length: Nanos::from_millis(100) }),
            reason(&Why::Quantum { round: 7, gang: 0, gangs: 1, length: Nanos::NEVER }),
            reason(&Why::MoreProgress { progress: Nanos::from_secs(2), slowdown: Some(1.5) }),
        ];
        assert_eq!(
            told,
            [
                "its gang has the quantum",
                "it is in the queue for its turn (1 program ahead of it)",
                "it does not fit beside those that have waited longer (2 CPUs left)",
                "another gang has the quantum (its own is gang 1)",
                "a quantum begins (round 3, gang 2 of 4, planned for 100 ms)",
                "a quantum begins (round 7, without an end)",
                "it is further ahead than those that run (2.00 s alone, slowed 1.50 times since it came)",
            ]
        );
    }

    #[test]
    fn figures_of_an_earlier_reason_are_told_as_of_then() {
        let at = Nanos::from_millis(800);
        assert_eq!(
            earlier_reason(&Why::Queued { ahead: 3 }, at),
            "it is in the queue for its turn (when decided at 0.800 s: 3 programs ahead of it)"
        );
        assert_eq!(earlier_reason(&Why::InGang, at), "its gang has the quantum");
    }

    #[test]
    fn times_have_the_digits_that_matter() {
        let told = [0, 140, 999, 1_500, 9_990, 49_500, 99_960, 203_400, 999_600, 61_250_000]
            .map(|micros| span(Nanos::from_micros(micros)));
        assert_eq!(
            told,
            [
                "0 us", "140 us", "999 us", "1.5 ms", "10 ms", "49.5 ms", "100 ms", "203 ms",
                "1.00 s", "61.25 s"
            ]
        );
    }
}
