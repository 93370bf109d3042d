//! The panels of barriers of cosched: how the waits of threads that arrived before the last one
//! ended, and how long barriers took.

use cosched_results::result::{ProgramResult, RunResult};

use super::panel::{Bar, Dot, Dots, Panel, Plot, Stack};

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

/// The paper on Tidon, section 2.3, equation 5.
pub(super) fn latency(run: &RunResult) -> Option<Panel> {
    let dot = |program: &ProgramResult| {
        let mean = program.barrier.as_ref()?.statistics?.mean_latency_seconds()?;
        Some(Dot { name: program.name.clone(), value: Some(1e6 * mean), interval: None })
    };
    let rows: Vec<Dot> = run.programs.iter().filter_map(dot).collect();
    (!rows.is_empty()).then(|| Panel {
        id: "barrier-latency",
        title: "Latency of barriers of cosched".to_owned(),
        says: "From the first thread's arrival at a barrier until it may go on, on average: long \
               where work is uneven, or late threads have no CPU."
            .to_owned(),
        plot: Plot::Dots(Dots { unit: "us", reference: None, rows }),
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

    /// 40 ms over 2000 barriers.
    #[test]
    fn latency_is_the_mean_of_a_barrier() {
        let Some(Panel { plot: Plot::Dots(dots), .. }) = latency(&testkit::donating()) else {
            panic!()
        };
        assert_eq!((dots.rows.len(), dots.rows[0].value), (1, Some(20.0)));
        let mut earlier = testkit::donating();
        let barrier = earlier.programs[0].barrier.as_mut().unwrap();
        barrier.statistics.as_mut().unwrap().times = None;
        assert_eq!(latency(&earlier), None);
    }
}
