//! Plots as SVG: inside the page, and by themselves for a paper.
//!
//! A drawing names colours by class (`c0` to `c5` for programs, `ink`, `line`, ...) and never by
//! value. Inside the page the style sheet gives them one value in daylight and another at night. A
//! plot of its own has the daylight values. Lengths are in CSS pixels. Text is a little less than
//! half its size wide on average; `text_width` is generous, so that nothing overlaps.

mod courses;
mod dots;
mod scale;
mod snapshot;
mod stack;
mod steps;

use std::fmt::{Display, Write};

use cosched_workload::must_be_escaped;

use crate::colours;
use crate::panels::{Lane, Panel, Plot, SnapshotPlot};
use scale::Scale;

/// The width of every plot but the snapshot, which is twice as wide.
const WIDTH: f64 = 460.0;
/// The width on a phone, and in two columns on paper. It has a plot of its own, so that the text
/// keeps its size.
const SLIM: f64 = 320.0;
/// The height of a line of text.
const LINE: f64 = 18.0;
/// How many colours there are. More programs get the same ones, hatched.
const SERIES: usize = 6;

/// The plot as an `<svg>` element for the page.
pub fn inline(panel: &Panel) -> String {
    draw(panel, WIDTH).element(&panel.title)
}

/// The plot as an `<svg>` element for a narrow page.
pub(crate) fn slim(panel: &Panel) -> String {
    draw(panel, SLIM).element(&panel.title)
}

fn draw(panel: &Panel, width: f64) -> Drawing {
    match &panel.plot {
        Plot::Snapshot(plot) => snapshot::draw(plot, 2.0 * width),
        Plot::Stack(plot) => stack::draw(plot, width),
        Plot::Dots(plot) => dots::draw(plot, width),
        Plot::Steps(plot) => steps::draw(plot, width),
        Plot::Courses(plot) => courses::draw(plot, width),
    }
}

/// The mark of a plot of its own: `cosched report` replaces only files with this mark.
pub const MARK: &str = "<metadata>cosched report</metadata>";

/// The plot as a file of its own.
pub fn alone(panel: &Panel) -> String {
    let style = format!(
        "<style>{} text{{font:12.5px sans-serif}}</style>{}\
         <rect width=\"100%\" height=\"100%\" class=\"paper\"/>",
        colours::plain(&colours::DAY),
        hatches()
    );
    let element = inline(panel);
    let (open, content) = element.split_once('>').unwrap_or((&element, ""));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!("{open}>{MARK}{style}{content}\n")
}

/// The colours of the programs of a snapshot, as items of a list.
pub(crate) fn keys(snapshot: &SnapshotPlot) -> String {
    let key = |(i, lane): (usize, &Lane)| {
        let mut drawing = Drawing::new(12.0, 12.0);
        drawing.block((0.0, 0.0), (12.0, 12.0), i, "");
        format!("<li>{}{}</li>", drawing.ornament(), escaped(&lane.name))
    };
    snapshot.programs.iter().enumerate().map(key).collect()
}

/// The colours of the seventh program and those after it: those of the first six, hatched.
pub(crate) fn hatches() -> String {
    let pattern = |(hatch, turned): (usize, i32), colour: usize| {
        format!(
            "<pattern id=\"hatch{hatch}c{colour}\" width=\"6\" height=\"6\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate({turned})\">\
             <rect width=\"6\" height=\"6\" class=\"c{colour}\"/>\
             <rect width=\"2\" height=\"6\" class=\"paper\"/></pattern>"
        )
    };
    let of = |hatch| (0..SERIES).map(move |colour| pattern(hatch, colour));
    let patterns: String = [(1, 45), (2, -45)].into_iter().flat_map(of).collect();
    format!("<defs>{patterns}</defs>")
}

/// The attribute that gives a shape the colour of the `index`-th program.
fn fill(index: usize) -> String {
    let colour = index % SERIES;
    match index / SERIES {
        0 => format!("class=\"c{colour}\""),
        turn => format!("fill=\"url(#hatch{}c{colour})\"", 1 + (turn - 1) % 2),
    }
}

/// A picture that is being drawn.
struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

impl Drawing {
    fn new(width: f64, height: f64) -> Drawing {
        Drawing { width, height, body: String::new() }
    }

    fn element(&self, label: &str) -> String {
        self.svg(&format!("role=\"img\" aria-label=\"{}\"", escaped(label)))
    }

    /// A picture that adds nothing to the text next to it.
    fn ornament(&self) -> String {
        self.svg("aria-hidden=\"true\"")
    }

    fn svg(&self, attributes: &str) -> String {
        let Drawing { width, height, body } = self;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             {attributes}>{body}</svg>"
        )
    }

    /// Text that ends, begins or has its middle at a point of its baseline.
    fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: impl Display) {
        let text = escaped(&text.to_string());
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">\
             {text}</text>"
        ));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.add(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A rectangle with a corner and a size, and a text that shows when the pointer is on it.
    fn rect(&mut self, corner: (f64, f64), size: (f64, f64), class: &str, tip: &str) {
        self.filled(corner, size, &format!("class=\"{class}\""), tip);
    }

    fn filled(&mut self, corner: (f64, f64), size: (f64, f64), fill: &str, tip: &str) {
        let (x, y) = corner;
        let (width, height) = size;
        let shape = format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"",
            width.max(0.0),
            height.max(0.0)
        );
        self.add(format_args!("{shape} {fill}><title>{}</title></rect>", escaped(tip)));
    }

    /// A rectangle in the colour of the `index`-th program.
    fn block(&mut self, corner: (f64, f64), size: (f64, f64), index: usize, tip: &str) {
        self.filled(corner, size, &fill(index), tip);
    }

    fn path(&mut self, path: &str, class: &str) {
        self.add(format_args!("<path d=\"{path}\" class=\"{class}\"/>"));
    }

    fn circle(&mut self, x: f64, y: f64, class: &str, tip: &str) {
        self.add(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" class=\"{class}\">\
             <title>{}</title></circle>",
            escaped(tip)
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("a string takes any text");
    }
}

/// Where the keys of a legend stand between two margins, in lines as long as there is room, and how
/// high that is.
fn legend<'a>(
    names: impl Iterator<Item = &'a str>,
    (left, right): (f64, f64),
) -> (Vec<(f64, f64)>, f64) {
    let (mut x, mut y) = (left, 0.0);
    let place = |name: &str| {
        let needs = 30.0 + text_width(&short(name));
        if x + needs > right && x > left {
            (x, y) = (left, y + LINE);
        }
        x += needs;
        (x - needs, y)
    };
    let places: Vec<(f64, f64)> = names.map(place).collect();
    (places, y + LINE + 10.0)
}

/// How wide a text can be at most.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.8
}

/// A name that fits into a column: cut where it is long. The tip and the table have the whole name.
fn short(name: &str) -> String {
    const LONGEST: usize = 16;
    match name.chars().count() {
        0..=LONGEST => name.to_owned(),
        _ => name.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

/// How wide the column of these names is.
fn names_width<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    names.map(|name| text_width(&short(name))).fold(24.0, f64::max) + 8.0
}

/// A text for HTML and XML: nothing in it is markup, and control characters (which XML forbids) are
/// escaped.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        c if must_be_escaped(c) => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{panels, testkit};

    fn snapshot(window: (f64, f64)) -> String {
        let mut panels = panels::of(&testkit::gang());
        if let Plot::Snapshot(snapshot) = &mut panels[0].plot {
            snapshot.window = window;
        }
        inline(&panels[0])
    }

    #[test]
    fn a_snapshot_draws_only_what_is_in_its_window() {
        assert_eq!(snapshot((0.0, 0.6)).matches("z").count(), 4);
        let early = snapshot((0.0, 0.1));
        assert_eq!(early.matches("z").count(), 1);
        assert_eq!(early.matches("class=\"plate\"").count(), 1, "there is room for its name");
        assert!(early.contains("class=\"c0\"><title>a</title></path>"), "{early}");
    }

    #[test]
    fn the_seventh_program_has_the_colour_of_the_first_hatched() {
        let block = |index| {
            let mut drawing = Drawing::new(10.0, 10.0);
            drawing.block((0.0, 0.0), (1.0, 1.0), index, "");
            drawing.body
        };
        assert!(block(0).contains("class=\"c0\"") && !block(0).contains("hatch"));
        assert!(block(6).contains("url(#hatch1c0)"));
        assert!(block(13).contains("url(#hatch2c1)") && block(19).contains("url(#hatch1c1)"));
        for index in 6..30 {
            let id =
                block(index).split_once("url(#").unwrap().1.split_once(')').unwrap().0.to_owned();
            assert_eq!(hatches().matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        }
    }

    #[test]
    fn plots_for_narrow_pages_are_narrow_and_complete() {
        for panel in panels::of(&testkit::gang()) {
            let snapshot = matches!(panel.plot, Plot::Snapshot(_));
            let width = if snapshot { 2.0 * SLIM } else { SLIM };
            let drawn = slim(&panel);
            assert!(drawn.starts_with(&format!("<svg viewBox=\"0 0 {width} ")), "{drawn}");
        }
        let names = ["solo time", "waiting", "stopped by others", "interference"];
        let (places, height) = legend(names.into_iter(), (8.0, SLIM));
        assert!(places.iter().zip(names).all(|((x, _), name)| x + text_width(name) < SLIM));
        assert_eq!((places[0].1, places[3].1, height), (0.0, LINE, 2.0 * LINE + 10.0));
    }

    #[test]
    fn long_names_are_cut_and_no_name_is_markup() {
        assert_eq!(short("barriers-of-100-us"), "barriers-of-100…");
        assert_eq!(escaped("a<b> & \"c\"\u{1b}"), "a&lt;b&gt; &amp; &quot;c&quot;\\u{1b}");
    }
}
