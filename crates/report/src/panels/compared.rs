//! Several variants compared: a figure with its interval for each.

use cosched_results::statistics::Estimate;

use super::panel::{Dot, Dots, Panel, Plot};
use crate::comparison::{Compared, Comparison};

/// A figure of a comparison: its name, its sentence, and where its value is.
struct Figure {
    id: &'static str,
    title: &'static str,
    says: &'static str,
    unit: &'static str,
    reference: Option<f64>,
    /// Why it may be unknown for a variant.
    unknown: &'static str,
    of: fn(&Compared) -> Option<Estimate>,
}

const FIGURES: [Figure; 8] = [
    Figure {
        id: "ratio",
        title: "Total time relative to the first variant",
        says: "Total time / total time of the first variant, from the ratios within each round: \
               left of the line is faster.",
        unit: "of the first variant's total time",
        reference: Some(1.0),
        unknown: NEVER,
        of: |variant| Some(variant.against.as_ref().map_or(SAME, |against| against.total_ratio)),
    },
    Figure {
        id: "total",
        title: "Total time",
        says: "The time from the start until the last program ended: less is better.",
        unit: "s",
        reference: None,
        unknown: NEVER,
        of: |variant| Some(variant.total_seconds),
    },
    Figure {
        id: "solo-sum",
        title: "Total time / sum of solo times",
        says: "1 is as long as running one program after another: less is better.",
        unit: "ratio",
        reference: Some(1.0),
        unknown: "solo times are missing (`cosched profile` measures them), a program failed, or a \
                  program ran on as a co-runner after it was done",
        of: |variant| variant.ratio_to_solo_sum,
    },
    Figure {
        id: "mean-turnaround",
        title: "Mean turnaround",
        says: "The mean turnaround, which is the time from a program's arrival to its end: less is \
               better.",
        unit: "s",
        reference: None,
        unknown: "a program did not finish",
        of: |variant| variant.mean_turnaround_seconds,
    },
    Figure {
        id: "unfairness",
        title: "Unfairness",
        says: "The largest / the smallest slowdown of the programs (turnaround / solo time): 1 is \
               perfectly fair.",
        unit: "ratio",
        reference: Some(1.0),
        unknown: "solo times are missing (`cosched profile` measures them), or a program failed",
        of: |variant| variant.unfairness,
    },
    Figure {
        id: "longest-wait",
        title: "Longest wait",
        says: "The longest single wait of any program, for its start or paused: less is better.",
        unit: "s",
        reference: None,
        unknown: "the comparison is from an earlier version of cosched",
        of: |variant| variant.longest_wait_seconds,
    },
    Figure {
        id: "longest-gap",
        title: "Longest pause",
        says: "The longest time for which any program was paused after its start, so that it did \
               not answer: less is better.",
        unit: "s",
        reference: None,
        unknown: NEVER,
        of: |variant| Some(variant.responsiveness_longest_gap_seconds),
    },
    Figure {
        id: "utilisation",
        title: "CPU use",
        says: "CPU time of the programs / (CPUs x total time): more is better, unless threads spin \
               while they wait.",
        unit: "share",
        reference: Some(1.0),
        unknown: NEVER,
        of: |variant| Some(variant.cpu_utilisation),
    },
];

/// Stands at figures that every variant has.
const NEVER: &str = "";

const SAME: Estimate = Estimate { value: 1.0, interval: None };

/// A panel for each figure that is known for at least one variant.
pub fn compared(comparison: &Comparison) -> Vec<Panel> {
    let panel = |figure: &Figure| {
        let row = |variant: &Compared| {
            let estimate = (figure.of)(variant);
            Dot {
                name: variant.name.clone(),
                value: estimate.map(|estimate| estimate.value),
                interval: estimate.and_then(|estimate| estimate.interval),
            }
        };
        let rows: Vec<Dot> = comparison.variants.iter().map(row).collect();
        let mut says = figure.says.to_owned();
        if figure.id == "ratio" && rows.iter().any(|row| row.interval.is_some()) {
            says.push_str(" A variant is better if its whole interval is left of the line.");
        }
        if rows.iter().any(|row| row.value.is_none()) {
            says.push_str(&format!(" Unknown where {}.", figure.unknown));
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
    use crate::{VariantRuns, testkit};

    #[test]
    fn a_figure_that_no_variant_has_is_not_shown() {
        let variant = |name: &str, run| VariantRuns { name: name.into(), runs: vec![run] };
        let variants = [variant("linux", testkit::linux()), variant("gang", testkit::gang())];
        let ids = |variants: &[VariantRuns]| -> Vec<&'static str> {
            compared(&Comparison::of(variants).unwrap()).iter().map(|panel| panel.id).collect()
        };
        assert!(ids(&variants).contains(&"solo-sum"));
        let unprofiled = variants.map(|mut variant| {
            variant.runs[0].programs[0].solo_seconds = None;
            variant
        });
        assert!(!ids(&unprofiled).contains(&"solo-sum"));
        assert_eq!(ids(&unprofiled)[..2], ["ratio", "total"]);
        assert!(ids(&unprofiled).contains(&"longest-wait"));
    }

    #[test]
    fn a_sentence_only_explains_what_is_in_its_picture() {
        let variant = |name: &str, run| VariantRuns { name: name.into(), runs: vec![run] };
        let mut undone = testkit::gang();
        undone.metrics.mean_turnaround_seconds = None;
        let variants = [variant("linux", testkit::linux()), variant("gang", undone)];
        let panels = compared(&Comparison::of(&variants).unwrap());
        let says = |id: &str| panels.iter().find(|panel| panel.id == id).unwrap().says.clone();
        assert!(!says("ratio").contains("interval"), "one run each has none");
        assert!(says("mean-turnaround").ends_with("Unknown where a program did not finish."));
        assert!(!says("total").contains("Unknown"));
    }
}
