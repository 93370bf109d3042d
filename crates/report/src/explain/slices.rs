//! The slices that were chosen for a program over a run: from when on, how long, and for which
//! figures; and which ways to schedule its threads were tried, and what came of it.
//!
//! A policy that measures gives its figures with every slice that it chooses. A program whose
//! figures go up and down may have hundreds; the sentences then tell the first ones and the last
//! ones, the data all.

use cosched_core::result::{ProgramResult, RunResult};
use cosched_core::{Actuator, Reason, Why};
use serde::Serialize;

use super::story::ProgramStory;
use crate::history::nanos;
use crate::{treatment, words};

/// So many slices, and so many trials, are told in sentences at the beginning, and so many at the
/// end.
const TOLD: usize = 6;

/// A slice that was chosen for a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SliceChoice {
    /// From here on, until the next one.
    pub from_seconds: f64,
    /// How long; where the kernel does not grant that, the nearest that it does was in force.
    pub slice_seconds: f64,
    /// The share of the threads' time at locks that it was chosen for.
    pub lock_contention: f64,
    /// The share of references to the last-level cache that missed, where it is known.
    pub miss_ratio: Option<f64>,
    /// Whether that is what was known from runs alone, since it could not be measured.
    pub profiled: bool,
}

/// A way to schedule its threads that was tried, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TriedWay {
    /// When it was decided to keep it or to put it back.
    pub at_seconds: f64,
    /// What was tried.
    pub actuator: Actuator,
    /// Progress with it against progress without: above 1 is faster.
    pub progress: f64,
    /// Whether it was kept.
    pub kept: bool,
    /// If not, how long nothing is tried again unless the program changes.
    pub pause_seconds: Option<f64>,
}

/// Every slice of a program, in order of time.
pub(super) fn choices(result: &RunResult, slot: usize) -> Vec<SliceChoice> {
    let choice = |(from_seconds, why)| match why {
        Why::Slice { slice, lock_contention, miss_ratio, profiled } => Some(SliceChoice {
            from_seconds,
            slice_seconds: slice.as_secs_f64(),
            lock_contention,
            miss_ratio,
            profiled,
        }),
        _ => None,
    };
    reasons(result, slot).filter_map(choice).collect()
}

/// Every way that was tried, in order of time.
pub(super) fn trials(result: &RunResult, slot: usize) -> Vec<TriedWay> {
    let trial = |(at_seconds, why)| match why {
        Why::Kept { actuator, progress } => {
            Some(TriedWay { at_seconds, actuator, progress, kept: true, pause_seconds: None })
        }
        Why::PutBack { actuator, progress, pause } => Some(TriedWay {
            at_seconds,
            actuator,
            progress,
            kept: false,
            pause_seconds: Some(pause.as_secs_f64()),
        }),
        _ => None,
    };
    reasons(result, slot).filter_map(trial).collect()
}

/// All that was decided about a program, with when.
pub(super) fn reasons(result: &RunResult, slot: usize) -> impl Iterator<Item = (f64, Why)> + '_ {
    let own = move |reason: &&Reason| {
        reason.program.is_some_and(|program| usize::from(program.slot) == slot)
    };
    result.decisions.iter().flat_map(move |decision| {
        decision.reasons.iter().filter(own).map(|reason| (decision.at_seconds, reason.why))
    })
}

/// How a program's threads were scheduled at last, where that was told.
pub(super) fn scheduled(result: &RunResult, slot: usize) -> Option<Actuator> {
    treatment::changes(result, slot).last().and_then(|change| change.now.in_force)
}

/// What had been found best before, in earlier runs or repetitions, where that was taken.
pub(super) fn recalled(result: &RunResult, slot: usize) -> Option<Actuator> {
    reasons(result, slot).find_map(|(_, why)| match why {
        Why::Recalled { actuator } => Some(actuator),
        _ => None,
    })
}

/// All that in words.
pub(super) fn in_words(story: &ProgramStory, program: &ProgramResult) -> Vec<String> {
    let (choices, trials) = (&story.slices, &story.trials);
    let Some(first) = choices.first() else { return Vec::new() };
    let before = nanos(first.from_seconds - program.started_seconds.unwrap_or(0.0));
    let mut lines = vec![format!(
        "After {} slices were chosen for the time that its threads wait at locks and for memory:",
        words::span(before)
    )];
    let slice = |choice: &SliceChoice| {
        let from = words::instant(nanos(choice.from_seconds));
        let why = words::at_locks(choice.lock_contention, choice.miss_ratio, choice.profiled);
        format!("  from {from} on {} ({why}).", words::span(nanos(choice.slice_seconds)))
    };
    lines.extend(told(choices, slice));
    lines.extend(story.recalled.map(|way| {
        match way {
            Actuator::None => {
                "It had been found out before that no other way to schedule its threads helps."
                    .to_owned()
            }
            way => format!("It had been found out before that {way} helps, so it was taken."),
        }
    }));
    if trials.is_empty() {
        lines.extend(story.scheduled.map(|way| match way {
            Actuator::None => {
                "Nothing was done with them: its threads were scheduled as found.".to_owned()
            }
            way => format!("Its threads were scheduled by {way}, without trials."),
        }));
        return lines;
    }
    let kept = trials.iter().filter(|trial| trial.kept).count();
    lines.push(format!(
        "{} to schedule its threads {} tried, and {} kept:",
        words::count(trials.len(), "way", "ways"),
        if trials.len() == 1 { "was" } else { "were" },
        match kept {
            0 => "none was".to_owned(),
            1 => "one was".to_owned(),
            kept => format!("{kept} were"),
        }
    ));
    let trial = |trial: &TriedWay| {
        let at = words::instant(nanos(trial.at_seconds));
        let came = match trial.pause_seconds {
            Some(pause) => {
                // It may have looked faster, and not by enough to be sure.
                let chance = if trial.progress > 1.0 { ", as that may be chance" } else { "" };
                let pause = words::span(nanos(pause));
                format!("put back{chance}; nothing was to be tried for {pause}")
            }
            None => "kept".to_owned(),
        };
        format!(
            "  until {at} {}: {:.2} times the progress; {came}.",
            trial.actuator, trial.progress
        )
    };
    lines.extend(told(trials, trial));
    lines
}

/// A line for each; of very many the first ones and the last ones.
pub(super) fn told<T>(all: &[T], line: impl Fn(&T) -> String) -> Vec<String> {
    let hidden = all.len().saturating_sub(2 * TOLD);
    if hidden < 2 {
        return all.iter().map(line).collect();
    }
    let more = format!("  {hidden} more;");
    let (first, last) = (&all[..TOLD], &all[all.len() - TOLD..]);
    first.iter().map(&line).chain([more]).chain(last.iter().map(&line)).collect()
}
