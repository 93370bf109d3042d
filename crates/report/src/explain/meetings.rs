//! Where the threads of a program waited for each other, and how: for programs whose barriers were those of cosched.

use cosched_core::Meetings;
use cosched_core::result::{BarrierResult, ProgramResult};
use cosched_core::workload::Barrier;

use crate::history::nanos;
use crate::words;

/// Without figures.
const NOT_TOLD: &str = "They were not seen to meet there: it has no barriers that cosched can serve (a program that is linked \
                        statically has none), or the result is of an older cosched.";

/// The same, where only some barriers were to be cosched's.
const NOT_THERE: &str = "They were not seen to meet there: they do so by other means than OpenMP, did so only while they shared \
                         no CPUs, or not at all.";

/// Nothing is told of a program that waited in its own way.
pub(super) fn in_words(program: &ProgramResult) -> Vec<String> {
    let Some(barrier) = &program.barrier else { return Vec::new() };
    if barrier.way == Barrier::Own {
        return barrier.lacks.iter().map(|why| barred(why)).collect();
    }
    let ran = program.timeline.iter().map(|span| span.1 - span.0).sum();
    let not_told = if barrier.chosen { NOT_THERE } else { NOT_TOLD };
    let met = barrier.meetings.map_or_else(|| not_told.to_owned(), |met| waits(&met, ran));
    [place(barrier), met].into_iter().chain(between(barrier)).collect()
}

/// Why barriers of cosched, which the policy chose, were not there.
fn barred(why: &str) -> String {
    format!(
        "Its threads waited for each other at its own barriers, since cosched's could not go in: {why}."
    )
}

/// At whose barriers, who wanted that, and what was known there.
fn place(barrier: &BarrierResult) -> String {
    let chosen = match barrier.chosen {
        true => {
            " in the place of OpenMP's while they shared CPUs (the policy chose so, since the programs asked for more \
             threads than there were CPUs, and not all might be frozen)"
        }
        false => "",
    };
    let at = format!("Its threads were to wait for each other at barriers of cosched{chosen}");
    match (barrier.way, &barrier.lacks) {
        (Barrier::Donate, None) if barrier.chosen => {
            format!(
                "{at}, where whoever waited knew which of them ran once the run had lasted for some seconds."
            )
        }
        (Barrier::Donate, None) => format!("{at}, where whoever waited knew which of them ran."),
        (_, Some(why)) => format!("{at}, where nobody knew which of them ran: {why}."),
        (way, None) => format!("{at}, in the way '{way}'."),
    }
}

/// How it was bounded how long they look on where nobody else can see them.
fn between(barrier: &BarrierResult) -> Option<String> {
    let given = barrier.between_regions.iter().map(|(name, value)| format!("{name}={value}"));
    let given: Vec<String> = given.collect();
    (!given.is_empty()).then(|| {
        let given = words::list(&given);
        format!("Between parallel regions they look on for a bounded time, by {given}.")
    })
}

/// How often they met while the program ran for so many seconds, and how their waits ended.
fn waits(met: &Meetings, ran: f64) -> String {
    let mut line = format!("They met {} times", met.barriers);
    if ran > 0.0 {
        line.push_str(&format!(", {:.0} times per second", met.barriers as f64 / ran));
    }
    let percent = |some: u64| format!("{:.0} %", 100.0 * met.share(some));
    if met.waits() > 0 {
        line.push_str(&format!(
            "; of {} waits {} ended within some microseconds, {} with looking on for longer, {} with giving way, {} asleep",
            met.waits(),
            percent(met.glanced),
            percent(met.looked_on),
            percent(met.gave_way),
            percent(met.slept),
        ));
    }
    if met.long_waits() > 0 {
        let known = (met.knew as f64 / met.long_waits() as f64).min(1.0);
        line.push_str(&format!(
            "; the longer ones took {} of their time together, and in {:.0} % of them it was known what those did who were late",
            words::span(nanos(met.waited_seconds)),
            100.0 * known,
        ));
    }
    line + "."
}
