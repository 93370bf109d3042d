//! The pictures of a run.
//!
//! A [`Panel`] is a picture as data: a title, a sentence that says what it shows, and figures. It
//! knows nothing of SVG or HTML, so every panel has all forms: a plot in the page, a file for a
//! paper, and a table for users that cannot see the plot.
//!
//! A [`Contribution`] looks at a result and gives a panel, or nothing where the run has no such
//! figures. A policy contributes by giving reasons ([`Why`](cosched_core::Why)). To show what is
//! special about a policy, write a function that turns its reasons into a panel, in a file of this
//! folder, and add it to [`CONTRIBUTIONS`].

mod barrier_stats;
mod compared;
mod courses;
mod equals;
mod estimates;
mod gangs;
mod machine;
mod over_time;
mod panel;
mod predicted;
mod shuffles;
mod snapshot;
mod thread_limits;
mod times;

use cosched_results::result::RunResult;

pub use compared::compared;
pub use courses::{Course, CoursePoint, Courses, TrialMark};
pub use panel::{Bar, Dot, Dots, Panel, Plot, Stack, Steps, Table};
pub(crate) use panel::{INTERFERENCE, STOPPED, WAITING};
pub use snapshot::{Lane, Rows, SnapshotPlot};

/// Makes a panel of a run, if the run has figures for it.
pub type Contribution = fn(&RunResult) -> Option<Panel>;

/// All of them, in the order in which they are shown.
pub const CONTRIBUTIONS: &[Contribution] = &[
    snapshot::snapshot,
    times::turnaround,
    times::fairness,
    times::waiting,
    machine::threads,
    gangs::round,
    gangs::longest_wait,
    thread_limits::threads,
    predicted::slowdowns,
    equals::treatment,
    shuffles::shuffles,
    estimates::slowdowns,
    estimates::coverage,
    estimates::training,
    barrier_stats::waits,
    barrier_stats::latency,
];

/// The panels of a run.
pub fn of(run: &RunResult) -> Vec<Panel> {
    CONTRIBUTIONS.iter().filter_map(|contribution| contribution(run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    fn ids(run: &RunResult) -> Vec<&str> {
        of(run).iter().map(|panel| panel.id).collect()
    }

    #[test]
    fn a_run_has_the_panels_for_its_figures_only() {
        let gang = ["snapshot", "turnaround", "fairness", "waiting", "threads", "round"];
        assert_eq!(ids(&testkit::gang()), gang);
        let mut unmeasured = testkit::linux();
        unmeasured.programs[0].solo_seconds = None;
        unmeasured.programs[0].slowdown = None;
        unmeasured.programs[0].interference_seconds = None;
        unmeasured.metrics.fairness_stddev = None;
        assert_eq!(ids(&unmeasured), ["snapshot", "turnaround"], "no program was ever paused");
        assert_eq!(ids(&testkit::faithful()).last(), Some(&"treatment"));
    }

    #[test]
    fn every_panel_has_a_table_with_full_rows() {
        let runs = [
            testkit::gang(),
            testkit::faithful(),
            testkit::adaptive(),
            testkit::shuffling(),
            testkit::donating(),
        ];
        for panel in runs.iter().flat_map(of) {
            let table = panel.table();
            assert!(!table.rows.is_empty(), "{}", panel.id);
            assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{}", panel.id);
        }
    }
}
