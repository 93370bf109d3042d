//! The content of a report.

use cosched_results::result::RunResult;

use crate::comparison::Comparison;
use crate::panels::{self, Panel, Plot};
use crate::variant::VariantRuns;
use crate::{html, svg};

/// A report as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// Notes that stand below the title, a paragraph each.
    pub notes: Vec<String>,
    /// The comparison of the variants, where they can be compared.
    pub comparison: Option<Comparison>,
    /// The variants one by one.
    pub variants: Vec<VariantRuns>,
    /// The time that the snapshots show, seconds; `None`, or beyond the end of a run: the whole
    /// run.
    pub window: Option<(f64, f64)>,
}

pub(crate) struct ShownVariant<'a> {
    pub(crate) variant: &'a VariantRuns,
    /// Its name in addresses and file names, unique.
    pub(crate) slug: String,
    pub(crate) run: &'a RunResult,
    pub(crate) panels: Vec<Panel>,
}

impl Report {
    /// As one HTML page.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// Every plot as an SVG file: its name and its content.
    pub fn plots(&self) -> Vec<(String, String)> {
        let compared = self.comparison.iter().flat_map(panels::compared);
        let compared = compared.map(|panel| ("comparison".to_owned(), panel));
        let shown = self.shown().into_iter().flat_map(|ShownVariant { slug, panels, .. }| {
            panels.into_iter().map(move |panel| (slug.clone(), panel))
        });
        compared
            .chain(shown)
            .map(|(slug, panel)| (format!("{slug}-{}.svg", panel.id), svg::alone(&panel)))
            .collect()
    }

    /// The names of the pictures of a variant, in the order in which they are shown.
    pub fn sections(&self, variant: &VariantRuns) -> Vec<&'static str> {
        variant.typical().map_or(Vec::new(), |run| panels::of(run).iter().map(|p| p.id).collect())
    }

    pub(crate) fn shown(&self) -> Vec<ShownVariant<'_>> {
        let mut shown: Vec<ShownVariant<'_>> = Vec::new();
        for variant in &self.variants {
            let Some(run) = variant.typical() else { continue };
            let slug = slug(&variant.name);
            let taken = slug == "comparison" || shown.iter().any(|other| other.slug == slug);
            let slug = if taken { format!("{}-{slug}", shown.len() + 1) } else { slug };
            let mut panels = panels::of(run);
            panels.iter_mut().for_each(|panel| self.turn_to_window(panel));
            shown.push(ShownVariant { variant, slug, run, panels });
        }
        shown
    }

    fn turn_to_window(&self, panel: &mut Panel) {
        if let (Plot::Snapshot(snapshot), Some((from, to))) = (&mut panel.plot, self.window) {
            if from < snapshot.total {
                snapshot.window = (from, to.min(snapshot.total));
            }
        }
    }
}

/// Letters, digits and dashes only.
fn slug(name: &str) -> String {
    let sign = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(sign).collect()
}
