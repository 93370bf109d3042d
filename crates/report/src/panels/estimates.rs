//! The panels of `fair-progress`, which estimates solo speeds: for how much of each program they
//! became known, and what measuring cost.

use cosched_core::Reason;
use cosched_policy::reasons::FairReason;
use cosched_results::result::{ProgramResult, RunResult};

use super::panel::{Bar, Dot, Dots, Panel, Plot, Stack};
use crate::history::{nanos, reasons, reasons_about};
use crate::words;

/// The share of each program's quanta for which its solo speed was known at the end (valid data
/// coverage).
pub(super) fn coverage(run: &RunResult) -> Option<Panel> {
    let last = |slot: usize| {
        whys(run, slot).fold(None, |last, why| match why {
            FairReason::LeastProgress { coverage, .. } => Some(coverage),
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
        title: "Solo speed known".to_owned(),
        says: "The share of each program's quanta (turns) for which its solo speed was known from \
               a quantum with little interference; for the rest it is estimated."
            .to_owned(),
        plot: Plot::Dots(Dots { unit: "of its quanta", reference: Some(1.0), rows }),
    })
}

/// The slowdown of each program as the policy last estimated it, and as measured.
pub(super) fn slowdowns(run: &RunResult) -> Option<Panel> {
    let last = |slot: usize| whys(run, slot).filter_map(slowdown).last();
    let dots = |(slot, program): (usize, &ProgramResult)| {
        let dot = |what: &str, value| Dot {
            name: format!("{} {what}", program.name),
            value,
            interval: None,
        };
        Some([dot("estimated", Some(last(slot)?)), dot("measured", program.slowdown)])
    };
    let rows: Vec<Dot> = run.programs.iter().enumerate().filter_map(dots).flatten().collect();
    let tells = |reason: &Reason| reason.why.read().and_then(slowdown).is_some();
    let (latest, _) = reasons(run).filter(|(_, reason)| tells(reason)).last()?;
    let [latest, end] = [latest, run.total_seconds].map(|at| words::instant(nanos(at)));
    (!rows.is_empty()).then(|| Panel {
        id: "slowdowns",
        title: "Slowdown: estimated and measured".to_owned(),
        says: format!(
            "Turnaround / solo time of each program, as the policy last estimated it (the last \
             time at {latest} of {end}, since it estimates only while programs wait), and as \
             measured, where the solo time is known."
        ),
        plot: Plot::Dots(Dots { unit: "turnaround / solo time", reference: Some(1.0), rows }),
    })
}

fn slowdown(why: FairReason) -> Option<f64> {
    match why {
        FairReason::LeastProgress { slowdown, .. } | FairReason::MoreProgress { slowdown, .. } => {
            slowdown
        }
        _ => None,
    }
}

pub(super) fn training(run: &RunResult) -> Option<Panel> {
    let count = |slot: usize, in_sequence: bool| {
        let is_one = |why: FairReason| match why {
            FairReason::Trained { sequential, .. } => sequential == in_sequence,
            _ => false,
        };
        whys(run, slot).filter(|why| is_one(*why)).count() as f64
    };
    let bar = |slot: usize| Bar {
        name: run.programs[slot].name.clone(),
        parts: vec![count(slot, false), count(slot, true)],
    };
    let rows: Vec<Bar> = (0..run.programs.len()).map(bar).collect();
    rows.iter().any(|bar| bar.parts.iter().sum::<f64>() > 0.0).then(|| Panel {
        id: "training",
        title: "Training quanta".to_owned(),
        says: "In a training quantum, other programs wait so that a program's solo speed can be \
               measured: for an expected phase, or in sequence where phases cannot be predicted."
            .to_owned(),
        plot: Plot::Stack(Stack { unit: "quanta", parts: vec!["expected", "in sequence"], rows }),
    })
}

/// The policy's reasons that are about a program.
fn whys(run: &RunResult, slot: usize) -> impl Iterator<Item = FairReason> {
    reasons_about(run, slot).filter_map(|(_, why)| why.read())
}

#[cfg(test)]
mod tests {
    use cosched_core::{Nanos, ProgramId};

    use super::*;
    use crate::testkit;

    #[test]
    fn the_last_estimate_counts_and_training_has_two_kinds() {
        let mut run = testkit::gang();
        assert_eq!((coverage(&run), training(&run), slowdowns(&run)), (None, None, None));
        let known = |coverage| FairReason::LeastProgress {
            progress: Nanos::ZERO,
            coverage,
            slowdown: Some(1.0 + coverage),
        };
        let trained = |sequential| FairReason::Trained { sequential, idle: 1 };
        for (decision, why) in run.decisions.iter_mut().zip([known(0.25), known(0.5)]) {
            let of = |why: FairReason| {
                let program = Some(ProgramId::first(1));
                Reason { program, why: why.into() }
            };
            decision.reasons = [why, trained(false), trained(true)].map(of).to_vec();
        }
        let Some(Panel { plot: Plot::Dots(dots), .. }) = coverage(&run) else { panic!() };
        assert_eq!((dots.rows[0].value, dots.rows[1].value), (None, Some(0.5)));
        run.programs[1].slowdown = Some(1.25);
        let Some(Panel { plot: Plot::Dots(dots), says, .. }) = slowdowns(&run) else { panic!() };
        let (latest, end) = (run.decisions[1].at_seconds, run.total_seconds);
        assert!(says.contains(&format!("at {latest:.3} s of {end:.3} s")), "{says}");
        let shown: Vec<_> = dots.rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(shown, [("b estimated", Some(1.5)), ("b measured", Some(1.25))]);
        let Some(Panel { plot: Plot::Stack(stack), .. }) = training(&run) else { panic!() };
        let count = run.decisions.len().min(2) as f64;
        assert_eq!(stack.rows[1].parts, [count, count]);
    }
}
