//! A program's run in a sentence.

use cosched_core::Exit;
use cosched_results::result::RunResult;

use super::story::{ProgramStory, seconds};
use super::turns::ProgramTurns;
use crate::interference::Interference;
use crate::{after, disturbance};

/// A program in a sentence; in two where its solo time cannot be true.
pub(super) fn in_words(
    story: &ProgramStory,
    run: &RunResult,
    slot: usize,
    turns: &ProgramTurns,
) -> String {
    let (program, why) = (&run.programs[slot], disturbance::why_impossible(run));
    let ProgramStory { name, waiting_seconds, stopped_seconds, .. } = story;
    let running = turns.parts();
    let mut waiting = format!("{} waiting", seconds(*waiting_seconds));
    if *stopped_seconds > 0.0 {
        waiting.push_str(&format!(", {} stopped by another process", seconds(*stopped_seconds)));
    }
    let Some(turnaround) = story.turnaround_seconds.map(seconds) else {
        return match &program.not_started {
            Some(why) => format!("{name} was not started: {}.", after::not_started(why)),
            None if run.was_detached(slot) => {
                format!("{name} was detached before it finished: {running}, {waiting}.")
            }
            None => format!("{name} did not finish: {running}, {waiting}."),
        };
    };
    let took = match program.exit {
        Some(Exit::Signal(signal)) => {
            format!("{name} was ended by signal {signal} after {turnaround}")
        }
        Some(Exit::Code(status)) if status != 0 => {
            format!("{name} ended with status {status} after {turnaround}")
        }
        _ => format!("{name} took {turnaround}"),
    };
    match Interference::of(program) {
        Interference::Known { solo, ran } if ran > solo => format!(
            "{took}: {} solo time, {waiting}, {} interference.",
            seconds(solo),
            seconds(ran - solo)
        ),
        Interference::Known { solo, ran } if seconds(ran) == seconds(solo) => {
            format!("{took}: {} solo time, {waiting}, no interference.", seconds(solo))
        }
        Interference::Known { solo, ran } => format!(
            "{took}: {} running (less than its solo time of {}), {waiting}, no interference.",
            seconds(ran),
            seconds(solo)
        ),
        Interference::Unknown => format!("{took}: {running}, {waiting}."),
        Interference::Impossible { solo, .. } if story.turnaround_seconds < Some(solo) => {
            format!("{took}, less than its solo time of {}: {why}.", seconds(solo))
        }
        Interference::Impossible { solo, ran } => format!(
            "{took}: {} running, {waiting}. It ran for less than its solo time of {}: \
             {why}.",
            seconds(ran),
            seconds(solo)
        ),
    }
}
