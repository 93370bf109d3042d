//! The panel of policies that set thread limits: how many threads each malleable program had, of
//! the threads that it requested.

use cosched_results::result::RunResult;

use super::panel::{Bar, Panel, Plot, Stack};
use crate::explain::{ThreadLimit, thread_limits};

/// The mean thread limit and the mean request of each program, from the first decision about it to
/// its end.
pub(super) fn threads(run: &RunResult) -> Option<Panel> {
    let bar = |slot: usize| {
        let program = &run.programs[slot];
        let end = program.timeline.last().map_or(run.total_seconds, |span| span.1);
        let (allowed, requested) = means(&thread_limits(run, slot), end)?;
        Some(Bar {
            name: program.name.clone(),
            parts: vec![allowed, (requested - allowed).max(0.0)],
        })
    };
    let rows: Vec<Bar> = (0..run.programs.len()).filter_map(bar).collect();
    (!rows.is_empty()).then(|| Panel {
        id: "thread-limits",
        title: "Thread limits".to_owned(),
        says: "How many threads the parallel regions of malleable programs got, and how many more \
               they requested (means over each program's time)."
            .to_owned(),
        plot: Plot::Stack(Stack {
            unit: "threads",
            parts: vec!["got", "requested beyond the limit"],
            rows,
        }),
    })
}

/// The means of limits and requests over time until the end.
fn means(known: &[ThreadLimit], end: f64) -> Option<(f64, f64)> {
    let began = known.first()?.from_seconds;
    let ends = known.iter().skip(1).map(|next| next.from_seconds).chain([end]);
    let sums = known.iter().zip(ends).fold((0.0, 0.0), |sums, (limit, to)| {
        let span = (to.min(end) - limit.from_seconds).max(0.0);
        (sums.0 + f64::from(limit.threads) * span, sums.1 + f64::from(limit.requested) * span)
    });
    let time = end - began;
    (time > 0.0).then(|| (sums.0 / time, sums.1 / time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn malleable_programs_have_mean_thread_limits() {
        let Some(Panel { plot: Plot::Stack(stack), .. }) = threads(&testkit::adaptive()) else {
            panic!()
        };
        assert_eq!(stack.rows.len(), 1);
        // 1 of 4 for a sixth of the time, then 2 of 4.
        let parts = &stack.rows[0].parts;
        assert!((parts[0] - 11.0 / 6.0).abs() < 1e-9 && (parts[1] - 13.0 / 6.0).abs() < 1e-9);
        assert_eq!(threads(&testkit::gang()), None);
    }
}
