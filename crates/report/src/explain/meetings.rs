//! Where the threads of a program waited for each other, and how: for programs whose barriers were
//! those of cosched.

use cosched_core::Meetings;
use cosched_core::result::{BarrierResult, ProgramResult};
use cosched_core::workload::Barrier;

use crate::history::nanos;
use crate::words;

/// Without figures.
const NOT_TOLD: &str = "They were not seen to meet there: it has no barriers that cosched can serve (a program that is linked \
                        statically has none), or the result is of an older cosched.";

/// Nothing is told of a program that waited in its own way.
pub(super) fn in_words(program: &ProgramResult) -> Vec<String> {
    let Some(barrier) = &program.barrier else { return Vec::new() };
    if barrier.way == Barrier::Own {
        return Vec::new();
    }
    let ran = program.timeline.iter().map(|span| span.1 - span.0).sum();
    let met = barrier.meetings.map_or_else(|| NOT_TOLD.to_owned(), |met| waits(&met, ran));
    [place(barrier), met].into_iter().chain(between(barrier)).collect()
}

/// At which barriers, and what was known there.
fn place(barrier: &BarrierResult) -> String {
    let at = "Its threads were to wait for each other at barriers of cosched";
    match (barrier.way, &barrier.lacks) {
        (Barrier::Donate, None) => format!("{at}, where whoever waited knew which of them ran."),
        (_, Some(why)) => format!("{at}, where nobody knew which of them ran: {why}."),
        (way, None) => format!("{at}, in the way '{way}'."),
    }
}

/// What bounded how long they look on between parallel regions, where they cannot be seen.
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
