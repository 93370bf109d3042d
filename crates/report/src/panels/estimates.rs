//! What the policy contributes that estimates speeds alone: of how much of each program it came to
//! know them, and what finding out has cost.

use cosched_core::Why;
use cosched_core::result::{DecisionResult, ProgramResult, RunResult};

use super::{Bar, Dot, Dots, Panel, Plot, Stack};
use crate::history::nanos;
use crate::words;

/// The share of each program's quanta of which its speed alone was known in the end (valid data
/// coverage).
pub(super) fn coverage(run: &RunResult) -> Option<Panel> {
    let last = |slot: usize| {
        whys(run).filter(|(of, _)| *of == slot).fold(None, |last, (_, why)| match why {
            Why::LeastProgress { coverage, .. } => Some(coverage),
            _ => last,
        })
    };
    let programs = run.programs.iter().enumerate();
    let rows: Vec<Dot> = programs
        .map(|(slot, program)| Dot {
            name: program.name.clone(),
            value: last(slot),
            interval: None,
        })
        .collect();
    rows.iter().any(|dot| dot.value.is_some()).then(|| Panel {
        id: "coverage",
        title: "Speed alone known".to_owned(),
        says: "Of which share of its quanta a program's speed alone was known from one in which it suffered little. What is not \
               known is estimated from all of them."
            .to_owned(),
        plot: Plot::Dots(Dots { unit: "of its quanta", reference: Some(1.0), rows }),
    })
}

/// By how much each program was slowed as the policy saw it in the end, and as it came out.
pub(super) fn slowdowns(run: &RunResult) -> Option<Panel> {
    let last = |slot: usize| {
        whys(run).filter(|(of, _)| *of == slot).filter_map(|(_, why)| slowdown(why)).last()
    };
    let dots = |(slot, program): (usize, &ProgramResult)| {
        let dot = |what: &str, value| Dot {
            name: format!("{} {what}", program.name),
            value,
            interval: None,
        };
        Some([dot("estimated", Some(last(slot)?)), dot("met", program.slowdown)])
    };
    let rows: Vec<Dot> = run.programs.iter().enumerate().filter_map(dots).flatten().collect();
    let tells =
        |made: &&DecisionResult| made.reasons.iter().any(|reason| slowdown(reason.why).is_some());
    let latest = run.decisions.iter().rev().find(tells)?;
    let [latest, end] = [latest.at_seconds, run.total_seconds].map(|at| words::instant(nanos(at)));
    (!rows.is_empty()).then(|| Panel {
        id: "slowdowns",
        title: "Slowdown: estimated and met".to_owned(),
        says: format!(
            "How many times as long as alone a program took, waiting included: as the policy estimated it when it last \
             decided on it, the last time at {latest} of {end} (while there is room for all, nothing is estimated), and as \
             it came out, where the time alone was measured."
        ),
        plot: Plot::Dots(Dots { unit: "turnaround / alone", reference: Some(1.0), rows }),
    })
}

/// The slowdown that a reason tells.
fn slowdown(why: Why) -> Option<f64> {
    match why {
        Why::LeastProgress { slowdown, .. } | Why::MoreProgress { slowdown, .. } => slowdown,
        _ => None,
    }
}

/// How often each program was trained.
pub(super) fn training(run: &RunResult) -> Option<Panel> {
    let count = |slot: usize, in_sequence: bool| {
        let is_one =
            |why: Why| matches!(why, Why::Trained { sequential, .. } if sequential == in_sequence);
        whys(run).filter(|(of, why)| *of == slot && is_one(*why)).count() as f64
    };
    let bar = |slot: usize| Bar {
        name: run.programs[slot].name.clone(),
        parts: vec![count(slot, false), count(slot, true)],
    };
    let rows: Vec<Bar> = (0..run.programs.len()).map(bar).collect();
    rows.iter().any(|bar| bar.parts.iter().sum::<f64>() > 0.0).then(|| Panel {
        id: "training",
        title: "Quanta for finding out".to_owned(),
        says: "How often others waited and CPUs stayed idle so that a program's speed alone could be measured: for a phase \
               that was expected, or in sequence where phases cannot be predicted."
            .to_owned(),
        plot: Plot::Stack(Stack {
            unit: "quanta",
            parts: vec!["expected", "in sequence"],
            rows,
        }),
    })
}

/// All reasons that are of a program: its slot, and why.
fn whys(run: &RunResult) -> impl Iterator<Item = (usize, Why)> + '_ {
    let reasons = run.decisions.iter().flat_map(|decision| &decision.reasons);
    reasons.filter_map(|reason| Some((usize::from(reason.program?.slot), reason.why)))
}

#[cfg(test)]
mod tests {
    use cosched_core::{Nanos, ProgramId, Reason};

    use super::*;
    use crate::testkit;

    #[test]
    fn the_last_that_was_known_counts_and_training_is_counted_by_kind() {
        let mut run = testkit::gang();
        assert_eq!((coverage(&run), training(&run), slowdowns(&run)), (None, None, None));
        let known = |coverage| Why::LeastProgress {
            progress: Nanos::ZERO,
            coverage,
            slowdown: Some(1.0 + coverage),
        };
        let trained = |sequential| Why::Trained { sequential, idle: 1 };
        for (decision, why) in run.decisions.iter_mut().zip([known(0.25), known(0.5)]) {
            let of = |why| Reason { program: Some(ProgramId::first(1)), why };
            decision.reasons = [why, trained(false), trained(true)].map(of).to_vec();
        }
        let Some(Panel { plot: Plot::Dots(dots), .. }) = coverage(&run) else { panic!() };
        assert_eq!((dots.rows[0].value, dots.rows[1].value), (None, Some(0.5)));
        run.programs[1].slowdown = Some(1.25);
        let Some(Panel { plot: Plot::Dots(dots), says, .. }) = slowdowns(&run) else { panic!() };
        let (latest, end) = (run.decisions[1].at_seconds, run.total_seconds);
        assert!(says.contains(&format!("at {latest:.3} s of {end:.3} s")), "{says}");
        let shown: Vec<_> = dots.rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(shown, [("b estimated", Some(1.5)), ("b met", Some(1.25))]);
        let Some(Panel { plot: Plot::Stack(stack), .. }) = training(&run) else { panic!() };
        let count = run.decisions.len().min(2) as f64;
        assert_eq!(stack.rows[1].parts, [count, count]);
    }
}
