//! Several ways beside each other: one figure with its interval for each.

use cosched_core::statistics::Estimate;

use super::{Dot, Dots, Panel, Plot};
use crate::comparison::{Compared, Comparison};

/// What a figure is: where to find it in a way, and how to read it.
struct Figure {
    id: &'static str,
    title: &'static str,
    says: &'static str,
    unit: &'static str,
    reference: Option<f64>,
    /// Why it may not be known of a way.
    unknown: &'static str,
    of: fn(&Compared) -> Option<Estimate>,
}

const FIGURES: [Figure; 8] = [
    Figure {
        id: "ratio",
        title: "Total time beside the first way",
        says: "From the ratios within each round. Left of the line is faster.",
        unit: "of the first way's total time",
        reference: Some(1.0),
        unknown: NEVER,
        of: |way| Some(way.against.as_ref().map_or(SAME, |against| against.total_ratio)),
    },
    Figure {
        id: "total",
        title: "Total time",
        says: "From the start until the last program ended. Less is better.",
        unit: "s",
        reference: None,
        unknown: NEVER,
        of: |way| Some(way.total_seconds),
    },
    Figure {
        id: "solo-sum",
        title: "Total time / sum of the times alone",
        says: "1 is as long as one program after the other. Less is better.",
        unit: "ratio",
        reference: Some(1.0),
        unknown: "times alone are missing (`cosched profile` measures them), a program failed, or one ran on after it was done \
                  for the others' sake",
        of: |way| way.ratio_to_solo_sum,
    },
    Figure {
        id: "mean-turnaround",
        title: "Mean turnaround",
        says: "From a program's arrival to its end, on average. Less is better.",
        unit: "s",
        reference: None,
        unknown: "a program was not done",
        of: |way| way.mean_turnaround_seconds,
    },
    Figure {
        id: "unfairness",
        title: "Unfairness",
        says: "Largest slowdown / smallest slowdown of the programs. 1 is perfectly fair.",
        unit: "ratio",
        reference: Some(1.0),
        unknown: "times alone are missing (`cosched profile` measures them), or a program failed",
        of: |way| way.unfairness,
    },
    Figure {
        id: "longest-wait",
        title: "Longest wait",
        says: "The longest time that any program waited at a stretch, for its start or frozen. Less is better.",
        unit: "s",
        reference: None,
        unknown: "the comparison was printed by an earlier version",
        of: |way| way.longest_wait_seconds,
    },
    Figure {
        id: "longest-gap",
        title: "Longest time frozen",
        says: "The longest time that any program was frozen at a stretch after its start: for so long it did not answer. Less \
               is better.",
        unit: "s",
        reference: None,
        unknown: NEVER,
        of: |way| Some(way.responsiveness_longest_gap_seconds),
    },
    Figure {
        id: "utilisation",
        title: "CPU utilisation",
        says: "CPU time of the programs / (CPUs x total time). High is good only if the time is not spent on waiting in \
               loops.",
        unit: "share",
        reference: Some(1.0),
        unknown: NEVER,
        of: |way| Some(way.cpu_utilisation),
    },
];

/// Of figures that every way has.
const NEVER: &str = "";

const SAME: Estimate = Estimate { value: 1.0, interval: None };

/// A panel for every figure that is known of some way.
pub fn compared(comparison: &Comparison) -> Vec<Panel> {
    let panel = |figure: &Figure| {
        let row = |way: &Compared| {
            let estimate = (figure.of)(way);
            Dot {
                name: way.way.clone(),
                value: estimate.map(|estimate| estimate.value),
                interval: estimate.and_then(|estimate| estimate.interval),
            }
        };
        let rows: Vec<Dot> = comparison.ways.iter().map(row).collect();
        let mut says = figure.says.to_owned();
        if figure.id == "ratio" && rows.iter().any(|row| row.interval.is_some()) {
            says.push_str(" If the whole interval is left of it, it is better.");
        }
        if rows.iter().any(|row| row.value.is_none()) {
            says.push_str(&format!(" Not known where {}.", figure.unknown));
        }
        rows.iter().any(|row| row.value.is_some()).then(|| Panel {
            id: figure.id,
            title: figure.title.to_owned(),
            says,
            plot: Plot::Dots(Dots { unit: figure.unit, reference: figure.reference, rows }),
        })
    };
    FIGURES.iter().filter_map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Way, testkit};

    #[test]
    fn a_figure_that_no_way_has_is_not_shown() {
        let way = |name: &str, run| Way { name: name.into(), runs: vec![run] };
        let ways = [way("linux", testkit::linux()), way("gang", testkit::gang())];
        let ids = |ways: &[Way]| -> Vec<&'static str> {
            compared(&Comparison::of(ways).unwrap()).iter().map(|panel| panel.id).collect()
        };
        assert!(ids(&ways).contains(&"solo-sum"));
        let unprofiled = ways.map(|mut way| {
            way.runs[0].programs[0].solo_seconds = None;
            way
        });
        assert!(!ids(&unprofiled).contains(&"solo-sum"));
        assert_eq!(ids(&unprofiled)[..2], ["ratio", "total"]);
        assert!(ids(&unprofiled).contains(&"longest-wait"));
    }

    #[test]
    fn a_picture_says_only_of_what_is_in_it_how_to_read_it_and_why_a_figure_is_missing() {
        let way = |name: &str, run| Way { name: name.into(), runs: vec![run] };
        let mut undone = testkit::gang();
        undone.metrics.mean_turnaround_seconds = None;
        let ways = [way("linux", testkit::linux()), way("gang", undone)];
        let panels = compared(&Comparison::of(&ways).unwrap());
        let says = |id: &str| panels.iter().find(|panel| panel.id == id).unwrap().says.clone();
        assert!(!says("ratio").contains("interval"), "one run each has none");
        assert!(says("mean-turnaround").ends_with("Not known where a program was not done."));
        assert!(!says("total").contains("Not known"));
    }
}
