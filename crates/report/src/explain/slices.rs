//! The slices that a program had over a run: from when on, how long, and for which figures.
//!
//! A policy that measures gives its figures with every slice that it chooses. A program whose figures go up and down may have
//! hundreds; the sentences then tell the first ones and the last ones, the data all.

use cosched_core::Why;
use cosched_core::result::{ProgramResult, RunResult};
use serde::Serialize;

use crate::history::nanos;
use crate::words;

/// So many slices are told in sentences at the beginning, and so many at the end.
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

/// Every slice of a program, in order of time.
pub(super) fn choices(result: &RunResult, slot: usize) -> Vec<SliceChoice> {
    let mut choices = Vec::new();
    for decision in &result.decisions {
        for reason in &decision.reasons {
            let own = reason.program.is_some_and(|id| usize::from(id.slot) == slot);
            if let (true, Why::Slice { slice, lock_contention, miss_ratio, profiled }) =
                (own, reason.why)
            {
                choices.push(SliceChoice {
                    from_seconds: decision.at_seconds,
                    slice_seconds: slice.as_secs_f64(),
                    lock_contention,
                    miss_ratio,
                    profiled,
                });
            }
        }
    }
    choices
}

/// All that in words.
pub(super) fn in_words(choices: &[SliceChoice], program: &ProgramResult) -> Vec<String> {
    let Some(first) = choices.first() else { return Vec::new() };
    let before = nanos(first.from_seconds - program.started_seconds.unwrap_or(0.0));
    let mut lines = vec![format!(
        "After {} its threads were made equals, with a slice for the time that they wait at locks and for memory:",
        words::span(before)
    )];
    let line = |choice: &SliceChoice| {
        let from = words::instant(nanos(choice.from_seconds));
        let why = words::at_locks(choice.lock_contention, choice.miss_ratio, choice.profiled);
        format!("  from {from} on {} ({why}).", words::span(nanos(choice.slice_seconds)))
    };
    let hidden = choices.len().saturating_sub(2 * TOLD);
    if hidden < 2 {
        lines.extend(choices.iter().map(line));
        return lines;
    }
    lines.extend(choices[..TOLD].iter().map(line));
    lines.push(format!("  {hidden} more;"));
    lines.extend(choices[choices.len() - TOLD..].iter().map(line));
    lines
}
