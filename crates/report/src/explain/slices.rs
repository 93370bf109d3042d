//! The time slices that `faithful` chose for a program over a run, and its trials of other ways to
//! schedule the program's threads.
//!
//! The policy gives its figures with every slice. A program with changing figures may have
//! hundreds of slices. The sentences then have the first and the last ones; the data have all.

use std::collections::BTreeMap;

use cosched_core::{Actuator, Why, scaling_factor};
use cosched_policy::NOTHING_TO_WIN;
use cosched_policy::reasons::FaithfulReason;
use cosched_results::result::RunResult;
use serde::Serialize;

use super::story::ProgramStory;
use crate::history::{nanos, reasons_about};
use crate::words::abridged;
use crate::{spinning, treatment, words};

/// A slice that was chosen for a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SliceChoice {
    /// From here on, until the next one.
    pub from_seconds: f64,
    /// Its length. Where the kernel does not allow it, the nearest allowed length was in force.
    pub slice_seconds: f64,
    /// The share of the threads' time at locks for which it was chosen.
    pub lock_contention: f64,
    /// The share of references to the last-level cache that missed, where it is known.
    pub miss_ratio: Option<f64>,
    /// Whether that share is from the program's profile, because it could not be measured.
    pub profiled: bool,
    /// The share of the threads' time asleep for anything but locks, where that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_wait: Option<f64>,
}

/// A trial of an actuator, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TriedActuator {
    /// When the policy decided to keep the actuator, or to restore the earlier one.
    pub at_seconds: f64,
    /// What was tried.
    pub actuator: Actuator,
    /// Progress with it / progress without it: above 1 is faster.
    pub progress: f64,
    /// Whether it was kept.
    pub kept: bool,
    /// If not, how long there is no other trial unless the program changes.
    pub pause_seconds: Option<f64>,
}

pub(super) fn choices(result: &RunResult, slot: usize) -> Vec<SliceChoice> {
    let choice = |(from_seconds, why): (f64, &Why)| match why.read()? {
        FaithfulReason::Slice { slice, lock_contention, miss_ratio, profiled, io_wait } => {
            Some(SliceChoice {
                from_seconds,
                slice_seconds: slice.as_secs_f64(),
                lock_contention,
                miss_ratio,
                profiled,
                io_wait,
            })
        }
        _ => None,
    };
    reasons_about(result, slot).filter_map(choice).collect()
}

pub(super) fn trials(result: &RunResult, slot: usize) -> Vec<TriedActuator> {
    let trial = |(at_seconds, why): (f64, &Why)| match why.read()? {
        FaithfulReason::Kept { actuator, progress } => {
            Some(TriedActuator { at_seconds, actuator, progress, kept: true, pause_seconds: None })
        }
        FaithfulReason::PutBack { actuator, progress, pause } => Some(TriedActuator {
            at_seconds,
            actuator,
            progress,
            kept: false,
            pause_seconds: Some(pause.as_secs_f64()),
        }),
        _ => None,
    };
    reasons_about(result, slot).filter_map(trial).collect()
}

/// How a program's threads were scheduled last, where the run says it.
pub(super) fn scheduled(result: &RunResult, slot: usize) -> Option<Actuator> {
    treatment::changes(result, slot).last().and_then(|change| change.now.in_force)
}

/// The learned setting from earlier runs or repetitions, where it was used.
pub(super) fn recalled(result: &RunResult, slot: usize) -> Option<Actuator> {
    reasons_about(result, slot).find_map(|(_, why)| match why.read()? {
        FaithfulReason::Recalled { actuator } => Some(actuator),
        _ => None,
    })
}

/// That no slice was set although some were chosen, and why, for each reason with its programs.
/// Empty where something was changed for every program that slices were chosen for.
pub fn unset(result: &RunResult) -> Vec<String> {
    let mut programs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (slot, program) in result.programs.iter().enumerate() {
        let why = why_unset(result, slot);
        why.into_iter().for_each(|why| programs.entry(why).or_default().push(program.name.clone()));
    }
    let sentence = |(why, names): (&str, Vec<String>)| {
        format!("No time slice was set for {}: {why}.", words::list(&names))
    };
    programs.into_iter().map(sentence).collect()
}

/// Why a program with chosen slices always had its original settings; `None`: it had not.
pub fn why_unset(result: &RunResult, slot: usize) -> Option<&'static str> {
    if !treatment::is_original(result, slot) {
        return None;
    }
    let factor = |choice: &SliceChoice| {
        scaling_factor(choice.lock_contention, choice.miss_ratio, choice.io_wait)
    };
    let hardly_waits = choices(result, slot).iter().all(|choice| factor(choice) > NOTHING_TO_WIN);
    let spins = spinning::noteworthy(&result.programs[slot]).is_some();
    Some(match recalled(result, slot) {
        _ if hardly_waits && spins => "threads that wait in spin loops gain nothing from it",
        _ if hardly_waits => "threads that hardly wait for locks or memory gain nothing from it",
        Some(_) => "no other way to schedule threads helped in earlier trials",
        None => "no other way to schedule threads was tried",
    })
}

pub(super) fn in_words(story: &ProgramStory, run: &RunResult, slot: usize) -> Vec<String> {
    let (choices, trials, program) = (&story.slices, &story.trials, &run.programs[slot]);
    let Some(first) = choices.first() else { return Vec::new() };
    let before = nanos(first.from_seconds - program.started_seconds.unwrap_or(0.0));
    let why_unset = why_unset(run, slot);
    let has_no_slices = treatment::has_no_slices(run, slot);
    let chosen = match has_no_slices {
        true => "its waits at locks and its cache misses were known. Slices that suit them",
        false => "time slices were chosen to suit its waits at locks and its cache misses",
    };
    let mut lines = vec![format!("After {}, {chosen}:", words::span(before))];
    let slice = |choice: &SliceChoice| {
        let from = words::instant(nanos(choice.from_seconds));
        let SliceChoice { lock_contention, miss_ratio, profiled, io_wait, .. } = *choice;
        let why = words::at_locks(lock_contention, miss_ratio, profiled, io_wait);
        format!("  from {from}: {} ({why}).", words::span(nanos(choice.slice_seconds)))
    };
    lines.extend(abridged(choices, slice));
    if let Some(why) = why_unset {
        lines.push(format!(
            "None of them was set, and its threads kept their original settings: {why}."
        ));
        return lines;
    }
    if has_no_slices {
        lines.push("None of them was set: its threads had the kernel's own slices.".to_owned());
    }
    lines.extend(story.recalled.map(|actuator| {
        match actuator {
            Actuator::None => {
                "Learned setting: no other way to schedule its threads helped in earlier trials."
                    .to_owned()
            }
            actuator => format!("Learned setting: {actuator}, which helped in earlier trials."),
        }
    }));
    if trials.is_empty() {
        lines.extend(story.scheduled.map(|actuator| match actuator {
            Actuator::None => "No trial of another way to schedule its threads ended.".to_owned(),
            actuator => format!("Its threads were scheduled by {actuator}, without trials."),
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
    let trial = |trial: &TriedActuator| {
        let at = words::instant(nanos(trial.at_seconds));
        let came = match trial.pause_seconds {
            Some(pause) => {
                // It may have been faster, but not by enough to be sure.
                let chance = if trial.progress > 1.0 { ", since that may be chance" } else { "" };
                let pause = words::span(nanos(pause));
                format!("the earlier way was restored{chance}; no trial for {pause}")
            }
            None => "kept".to_owned(),
        };
        format!(
            "  until {at}: {}, {:.2} times the progress; {came}.",
            treatment::name(trial.actuator),
            trial.progress
        )
    };
    lines.extend(abridged(trials, trial));
    lines
}
