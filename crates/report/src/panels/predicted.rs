//! What `bandwidth` contributes: the slowdowns that it predicted, beside those that came.

use cosched_core::result::RunResult;
use cosched_core::{ProgramId, Why};

use super::{Dot, Dots, Panel, Plot};

/// The mean of the predictions for every program, and running / alone. Nothing without predictions.
pub(super) fn slowdowns(run: &RunResult) -> Option<Panel> {
    let predicted = |slot: usize| {
        let reasons = run.decisions.iter().flat_map(|decision| &decision.reasons);
        let figures: Vec<f64> = reasons
            .filter_map(|reason| match (reason.program, reason.why) {
                (Some(ProgramId { slot: of, .. }), Why::LeastLost { slowdown })
                    if usize::from(of) == slot =>
                {
                    Some(slowdown)
                }
                _ => None,
            })
            .collect();
        (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
    };
    let rows: Vec<Dot> = run
        .programs
        .iter()
        .enumerate()
        .filter_map(|(slot, program)| {
            let predicted = predicted(slot)?;
            let met = program.interference_seconds.zip(program.alone_as_started_seconds());
            let met = met.map(|(interference, alone)| (alone + interference) / alone);
            let dot = |what: &str, value| Dot {
                name: format!("{} {what}", program.name),
                value,
                interval: None,
            };
            Some([dot("predicted", Some(predicted)), dot("met", met)])
        })
        .flatten()
        .collect();
    (!rows.is_empty()).then(|| Panel {
        id: "predicted",
        title: "Slowdown while running: predicted and met".to_owned(),
        says: "How much longer a program was expected to run beside its gang than alone (the mean of all predictions), \
               and how much longer it did run. Programs for which nothing was predicted are not shown."
            .to_owned(),
        plot: Plot::Dots(Dots { unit: "running / alone", reference: Some(1.0), rows }),
    })
}

#[cfg(test)]
mod tests {
    use cosched_core::Reason;

    use super::*;
    use crate::testkit;

    #[test]
    fn predictions_stand_beside_what_came() {
        let mut run = testkit::gang();
        assert_eq!(slowdowns(&run), None);
        let why = Why::LeastLost { slowdown: 1.5 };
        run.decisions[0].reasons.push(Reason { program: Some(ProgramId::first(1)), why });
        run.programs[1].interference_seconds = Some(0.3);
        let Some(Panel { plot: Plot::Dots(dots), .. }) = slowdowns(&run) else { panic!() };
        let shown: Vec<_> = dots.rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(shown, [("b predicted", Some(1.5)), ("b met", Some(2.0))]);
    }
}
