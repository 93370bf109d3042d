//! How much of the machine the running programs could use: the thesis' figure 5.10 over time.

use cosched_core::format::count;
use cosched_results::result::RunResult;

use super::over_time;
use super::panel::{Panel, Plot, Steps};
use super::snapshot::{Rows, SnapshotPlot};

/// Threads that were allowed to run and had a CPU, at every time. Nothing where programs shared
/// CPUs, since it is not known which thread had which CPU.
pub(super) fn threads(run: &RunResult) -> Option<Panel> {
    (SnapshotPlot::of(run).rows == Rows::Cpus).then_some(())?;
    let cpus = run.machine.cpus as f64;
    let spans = run.programs.iter().flat_map(|program| {
        program.timeline.iter().map(move |span| {
            let bound = span.2.map_or(cpus, |set| set.len() as f64);
            (span.0, span.1, bound.min(f64::from(program.threads)))
        })
    });
    Some(Panel {
        id: "threads",
        title: "CPUs with a thread to run".to_owned(),
        says: format!(
            "For how many of {} the running programs had a thread; over the whole \
             run, they used {:.0} % of the CPU time.",
            count(run.machine.cpus, "CPU", "CPUs"),
            run.metrics.cpu_utilisation * 100.0
        ),
        plot: Plot::Steps(Steps {
            unit: "CPUs",
            total: run.total_seconds,
            values: over_time::sums(spans, run.total_seconds),
            top: Some(cpus),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn two_threads_fill_two_cpus_unless_programs_share_them() {
        let panel = threads(&testkit::gang()).unwrap();
        let Plot::Steps(steps) = panel.plot else { panic!("{panel:?}") };
        assert!(steps.values.iter().all(|value| (value - 2.0).abs() < 1e-9), "{steps:?}");
        assert_eq!(threads(&testkit::linux()), None);
    }
}
