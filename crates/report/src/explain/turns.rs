//! The turns of a program: how many it had, how long they were, and what it got outside them.
//!
//! Turns are counted until the program was done, as its running time is. Of a long run the first
//! turns are not kept: those that are kept say nothing of the whole running time.

use cosched_core::Nanos;
use cosched_results::result::RunResult;
use cosched_results::statistics::median;

use super::story::seconds;
use crate::history::{Activity, History, Phase, nanos};
use crate::words;

/// How many turns are shown with their time; `report` shows all.
const SHOWN: usize = 5;
/// A smaller part of the running time is rounding, or the moment until a plan was in effect.
const NOTICEABLE: f64 = 0.01;

/// The turns of a program, and the parts of its running time.
pub(super) struct ProgramTurns {
    /// In seconds: by weight, or times in which the program ran. A program that moves to other CPUs
    /// still has the same turn.
    lengths: Vec<f64>,
    /// The turns by weight, from and to.
    by_weight: Vec<(f64, f64)>,
    /// Where the first ones are not kept: "since 35 s".
    since: Option<String>,
    /// No turns are kept of the time in which it ran.
    is_unknown: bool,
    /// Whether it took turns by weight.
    takes_turns: bool,
    was_interrupted: bool,
    running: f64,
    in_turn: f64,
    filler: f64,
    /// It ran, and there were no turns.
    without: f64,
}

impl ProgramTurns {
    /// The turns of a program with these phases until it was done, as far as they are kept.
    pub(super) fn of(history: &History<'_>, slot: usize, phases: &[Phase]) -> ProgramTurns {
        let (run, program) = (history.result, &history.result.programs[slot]);
        let (from, done) = (nanos(run.kept_from_seconds.unwrap_or(0.0)), history.done(slot));
        let counts = |turn: &&(f64, f64)| (from..done).contains(&nanos(turn.0));
        let until_done = |(from, to): &(f64, f64)| (*from, to.min(done.as_secs_f64()));
        let by_weight: Vec<_> = program.turns.iter().filter(counts).map(until_done).collect();
        let of_run = run.programs.iter().any(|program| !program.turns.is_empty());
        let lengths = match of_run {
            true => by_weight.iter().map(|(from, to)| to - from).collect(),
            false => by_phases(phases),
        };
        let (running, filler) = (program.running_seconds, program.filler_seconds);
        let known: f64 = by_weight.iter().map(|(from, to)| to - from).sum();
        let (in_turn, without) = match (of_run, run.kept_from_seconds) {
            (false, _) => (running - filler, 0.0),
            (true, None) => (known, running - filler - known),
            (true, Some(_)) => {
                let after = after_last_turn(run, phases);
                (running - filler - after, after)
            }
        };
        ProgramTurns {
            lengths,
            by_weight,
            since: words::since(run),
            is_unknown: phases.is_empty(),
            takes_turns: filler > 0.0 || !program.turns.is_empty(),
            was_interrupted: run.interrupted_by.is_some(),
            running,
            in_turn,
            filler,
            without: if without < NOTICEABLE * running { 0.0 } else { without },
        }
    }

    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }

    pub(super) fn parts(&self) -> String {
        if !self.takes_turns {
            return format!("{} running", seconds(self.running));
        }
        let mut parts = format!("{} in turn", seconds(self.in_turn));
        for (part, what) in [(self.filler, "as a filler"), (self.without, "without turns")] {
            if part > 0.0 {
                parts.push_str(&format!(", {} {what}", seconds(part)));
            }
        }
        parts
    }

    /// How many turns it had, and what it got outside them. The median is shown, because a program
    /// that runs last and alone may have one very long turn.
    pub(super) fn in_words(&self) -> Option<String> {
        if self.running <= 0.0 || self.is_unknown {
            return None;
        }
        let outside = self.outside();
        // One that ran all the time took no turns.
        if !self.takes_turns && self.lengths.len() == 1 && outside.is_none() {
            return None;
        }
        let when = begins(&self.by_weight);
        let it_had = match &self.since {
            Some(since) => format!("{}, it had", words::capitalised(since)),
            None => "It had".to_owned(),
        };
        let turns = self.number();
        let sum: f64 = self.by_weight.iter().map(|(from, to)| to - from).sum();
        let in_all = match self.by_weight.is_empty() {
            true => String::new(),
            false => format!(", {} in all", seconds(sum)),
        };
        Some(match (&self.since, outside) {
            (None, None) => format!("{it_had} {turns}.{when}"),
            (None, Some(outside)) => format!("{it_had} {turns}{in_all}; {outside}.{when}"),
            (Some(_), None) => format!("{it_had} {turns}{in_all}.{when}"),
            (Some(_), Some(outside)) => {
                format!("{it_had} {turns}{in_all}.{when} In the whole run, {outside}.")
            }
        })
    }

    fn number(&self) -> String {
        match (self.lengths.len(), median(&self.lengths).map(seconds)) {
            (1, Some(length)) => format!("1 turn of {length}"),
            (count, Some(median)) => format!("{count} turns of {median} (median)"),
            (_, None) => "no turn".to_owned(),
        }
    }

    /// How long it ran in other ways.
    fn outside(&self) -> Option<String> {
        let is_filler = self.filler > 0.0 && self.filler >= NOTICEABLE * self.running;
        let is_whole = self.since.is_none() && !self.lengths.is_empty();
        // All that is left is one part.
        let other = if is_whole && is_filler != (self.without > 0.0) { "the other " } else { "" };
        let filled = is_filler.then(|| {
            let filler = seconds(self.filler);
            format!("for {other}{filler} it got the CPU time that programs in turn left")
        });
        let without = (self.without > 0.0).then(|| {
            let why = match self.was_interrupted {
                true => " (there are none after an interruption)",
                false => "",
            };
            format!("for {other}{} it ran without turns{why}", seconds(self.without))
        });
        let parts: Vec<String> = filled.into_iter().chain(without).collect();
        (!parts.is_empty()).then(|| parts.join(", and "))
    }
}

/// The times in which a program ran.
fn by_phases(phases: &[Phase]) -> Vec<f64> {
    let runs = |phase: &Phase| matches!(phase.state, Activity::Running(_));
    let turns = phases.chunk_by(|one, next| runs(one) == runs(next)).filter(|turn| runs(&turn[0]));
    let length = |turn: &[Phase]| turn.iter().map(|phase| phase.length().as_secs_f64()).sum();
    turns.map(length).collect()
}

/// How long a program ran after the last turn of any program.
fn after_last_turn(run: &RunResult, phases: &[Phase]) -> f64 {
    let ends = run.programs.iter().filter_map(|program| program.turns.last());
    let last = ends.map(|(_, to)| nanos(*to)).max().unwrap_or(Nanos::NEVER);
    let runs = phases.iter().filter(|phase| matches!(phase.state, Activity::Running(_)));
    runs.map(|phase| phase.to.since(phase.from.max(last)).as_secs_f64()).sum()
}

/// When the first turns by weight began.
fn begins(by_weight: &[(f64, f64)]) -> String {
    let known = by_weight.iter().take(SHOWN).map(|(from, _)| words::instant(nanos(*from)));
    let known: Vec<String> = known.collect();
    match by_weight.len().saturating_sub(SHOWN) {
        _ if known.is_empty() => String::new(),
        _ if known.len() == 1 => format!(" It began at {}.", known[0]),
        0 => format!(" They began at {}.", words::list(&known)),
        more => {
            let more = words::count(more, "more time", "more times");
            format!(" They began at {}, and {more}.", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Story;
    use crate::testkit;

    /// What a program's story begins with, where it ran for 600 ms in these turns.
    fn told(turns: &[(f64, f64)], filler: f64, change: impl Fn(&mut RunResult)) -> [String; 2] {
        let mut run = testkit::linux();
        run.programs[1].turns = vec![(0.0, 0.05)];
        let program = &mut run.programs[0];
        (program.turns, program.filler_seconds) = (turns.to_vec(), filler);
        (program.solo_seconds, program.interference_seconds) = (None, None);
        change(&mut run);
        let sentences = &Story::of(&run, Some(0)).programs[0].sentences;
        [0, 1].map(|line| sentences.get(line).cloned().unwrap_or_default())
    }

    const THREE: [(f64, f64); 3] = [(0.0, 0.1), (0.2, 0.3), (0.4, 0.5)];

    #[test]
    fn turns_by_weight_are_counted_and_the_rest_is_said() {
        let [sum, turns] = told(&THREE, 0.3, |_| ());
        assert_eq!(sum, "a took 600 ms: 300 ms in turn, 300 ms as a filler, 0 us waiting.");
        assert_eq!(
            turns,
            "It had 3 turns of 100 ms (median), 300 ms in all; for the other 300 ms it got the CPU \
             time that programs in turn left. They began at 0.000 s, 0.200 s and 0.400 s."
        );
        let [sum, whole] = told(&[(0.0, 0.6)], 0.0, |_| ());
        assert_eq!(sum, "a took 600 ms: 600 ms in turn, 0 us waiting.");
        assert_eq!(whole, "It had 1 turn of 600 ms. It began at 0.000 s.");
        let many: Vec<_> = (0..7).map(|turn| 0.08 * f64::from(turn)).collect();
        let many: Vec<_> = many.into_iter().map(|from| (from, from + 0.04)).collect();
        let [_, seven] = told(&many, 0.32, |_| ());
        assert!(seven.ends_with("0.240 s, 0.320 s, and 2 more times."), "{seven}");
        let [_, six] = told(&many[..6], 0.36, |_| ());
        assert!(six.ends_with("0.320 s, and 1 more time."), "{six}");
        let [_, none] = told(&[], 0.6, |_| ());
        assert_eq!(
            none,
            "It had no turn; for 600 ms it got the CPU time that programs in turn left."
        );
    }

    #[test]
    fn turns_of_programs_that_are_paused_have_their_median() {
        let sentences = Story::of(&testkit::gang(), Some(0)).programs[0].sentences.clone();
        assert_eq!(sentences[1], "It had 2 turns of 150 ms (median).");
    }

    #[test]
    fn time_after_an_interruption_is_neither_turn_nor_filler() {
        let interrupted = |run: &mut RunResult| run.interrupted_by = Some("SIGINT".to_owned());
        let [sum, turns] = told(&THREE[..2], 0.1, interrupted);
        assert_eq!(
            sum,
            "a took 600 ms: 200 ms in turn, 100 ms as a filler, 300 ms without turns, 0 us waiting."
        );
        assert_eq!(
            turns,
            "It had 2 turns of 100 ms (median), 200 ms in all; for 100 ms it got the CPU time that \
             programs in turn left, and for 300 ms it ran without turns (there are none after an \
             interruption). They began at 0.000 s and 0.200 s."
        );
        let [_, turns] = told(&THREE[..2], 0.0, |_| ());
        assert!(turns.contains("; for the other 400 ms it ran without turns. They"), "{turns}");
    }

    #[test]
    fn kept_turns_of_a_long_run_are_not_all_turns() {
        let long = |run: &mut RunResult| {
            run.kept_from_seconds = Some(0.15);
            run.programs[1].turns = vec![(0.5, 0.6)];
        };
        let [sum, turns] = told(&THREE[1..], 0.25, long);
        assert_eq!(sum, "a took 600 ms: 350 ms in turn, 250 ms as a filler, 0 us waiting.");
        assert_eq!(
            turns,
            "Since 0 s, it had 2 turns of 100 ms (median), 200 ms in all. They began at 0.200 s \
             and 0.400 s. In the whole run, for 250 ms it got the CPU time that programs in turn \
             left."
        );
        let interrupted = |run: &mut RunResult| {
            run.kept_from_seconds = Some(0.15);
            run.interrupted_by = Some("SIGINT".to_owned());
        };
        let [sum, _] = told(&THREE[1..], 0.25, interrupted);
        let parts = "250 ms in turn, 250 ms as a filler, 100 ms without turns, 0 us waiting.";
        assert!(sum.ends_with(parts), "{sum}");
        let [_, later] = told(&THREE[1..], 0.25, |run: &mut RunResult| {
            run.kept_from_seconds = Some(0.55);
        });
        assert!(
            later.starts_with("Since 1 s, it had no turn. In the whole run, for 250"),
            "{later}"
        );
        // It was done before.
        let [_, early] = told(&THREE[..1], 0.1, |run: &mut RunResult| {
            run.kept_from_seconds = Some(0.3);
            run.programs[0].turnaround_seconds = Some(0.2);
            run.programs[0].running_seconds = 0.2;
        });
        assert!(!early.contains("turn"), "{early}");
    }

    #[test]
    fn turns_of_further_runs_are_not_those_of_the_first() {
        let [sum, turns] = told(&THREE, 0.1, |run| {
            run.programs[0].turnaround_seconds = Some(0.25);
            run.programs[0].running_seconds = 0.25;
        });
        assert_eq!(sum, "a took 250 ms: 150 ms in turn, 100 ms as a filler, 0 us waiting.");
        assert!(turns.starts_with("It had 2 turns of 75 ms (median), 150 ms in all; "), "{turns}");
    }
}
