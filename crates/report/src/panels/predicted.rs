//! The panel of `bandwidth`: the slowdowns that it predicted, and the measured ones.

use cosched_policy::reasons::BandwidthReason;
use cosched_results::result::RunResult;

use super::panel::{Dot, Dots, Panel, Plot};
use crate::history::reasons_about;
use crate::interference::Interference;

/// The mean of the predictions for every program, and running time / solo time. Nothing without
/// predictions.
pub(super) fn slowdowns(run: &RunResult) -> Option<Panel> {
    let predicted = |slot: usize| {
        let figures = reasons_about(run, slot).filter_map(|(_, why)| {
            why.read().map(|BandwidthReason::LeastLost { slowdown }| slowdown)
        });
        let figures: Vec<f64> = figures.collect();
        (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
    };
    let rows: Vec<Dot> = run
        .programs
        .iter()
        .enumerate()
        .filter_map(|(slot, program)| {
            let predicted = predicted(slot)?;
            let parts = Interference::of(program).parts();
            let measured = parts.map(|(solo, lost)| (solo + lost) / solo);
            let dot = |what: &str, value| Dot {
                name: format!("{} {what}", program.name),
                value,
                interval: None,
            };
            Some([dot("predicted", Some(predicted)), dot("measured", measured)])
        })
        .flatten()
        .collect();
    (!rows.is_empty()).then(|| Panel {
        id: "predicted",
        title: "Slowdown while running: predicted and measured".to_owned(),
        says: "Running time / solo time of each program, as predicted for its gangs (mean of all \
               predictions) and as measured; programs without a prediction are not shown."
            .to_owned(),
        plot: Plot::Dots(Dots { unit: "running time / solo time", reference: Some(1.0), rows }),
    })
}

#[cfg(test)]
mod tests {
    use cosched_core::{ProgramId, Reason};

    use super::*;
    use crate::testkit;

    #[test]
    fn predictions_stand_with_measured_slowdowns() {
        let mut run = testkit::gang();
        assert_eq!(slowdowns(&run), None);
        let why = BandwidthReason::LeastLost { slowdown: 1.5 }.into();
        run.decisions[0].reasons.push(Reason { program: Some(ProgramId::first(1)), why });
        run.programs[1].solo_seconds = Some(0.15);
        let Some(Panel { plot: Plot::Dots(dots), .. }) = slowdowns(&run) else { panic!() };
        let rounded = |value: f64| (value * 1e6).round() / 1e6;
        let shown = dots.rows.iter().map(|row| (row.name.as_str(), row.value.map(rounded)));
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown, [("b predicted", Some(1.5)), ("b measured", Some(2.0))]);
    }
}
