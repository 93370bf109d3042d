//! The panel of barriers of cosched: how the waits of threads that arrived before the last one
//! ended.

use cosched_results::result::{ProgramResult, RunResult};

use super::panel::{Bar, Panel, Plot, Stack};

pub(super) fn waits(run: &RunResult) -> Option<Panel> {
    let bar = |program: &ProgramResult| {
        let stats = program.barrier.as_ref()?.statistics.filter(|stats| stats.waits() > 0)?;
        let parts = [stats.spun_briefly, stats.spun, stats.yielded, stats.slept];
        let parts = parts.map(|some| 100.0 * stats.share(some)).to_vec();
        Some(Bar { name: program.name.clone(), parts })
    };
    let rows: Vec<Bar> = run.programs.iter().filter_map(bar).collect();
    (!rows.is_empty()).then(|| Panel {
        id: "barrier-statistics",
        title: "Waits at barriers of cosched".to_owned(),
        says: "How the waits of threads that arrived before the last one ended: within \
               microseconds, after longer spinning, after yielding the CPU to others, or asleep."
            .to_owned(),
        plot: Plot::Stack(Stack {
            unit: "% of all waits",
            parts: vec!["microseconds", "spun", "yielded", "slept"],
            rows,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn barrier_waits_are_shown_in_percent() {
        let Some(Panel { plot: Plot::Stack(stack), .. }) = waits(&testkit::donating()) else {
            panic!()
        };
        assert_eq!(stack.rows.len(), 1);
        assert_eq!(stack.rows[0].parts, [60.0, 15.0, 0.0, 25.0]);
        assert_eq!(waits(&testkit::gang()), None);
    }
}
