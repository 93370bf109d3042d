//! A figure for each row, with its interval where there is one.

use super::{Drawing, Scale, names_width, short, text_width};
use crate::panels::Dots;

const ROW: f64 = 24.0;
const UNKNOWN: &str = "not known";

pub(super) fn draw(dots: &Dots, width: f64) -> Drawing {
    let left = names_width(dots.rows.iter().map(|row| row.name.as_str()));
    let (top, bottom) = (8.0, 8.0 + ROW * dots.rows.len() as f64);
    let mut drawing = Drawing::new(width, bottom + 36.0);
    let values = || {
        let rows = dots.rows.iter().flat_map(|row| {
            let (low, high) = row.interval.unzip();
            [row.value, low, high]
        });
        rows.chain([dots.reference]).flatten()
    };
    let scale = Scale { values: ends(values), places: (left, width - 12.0) };
    scale.draw_below(&mut drawing, top, bottom, dots.unit);
    if let Some(reference) = dots.reference {
        let x = scale.at(reference);
        drawing.line((x, top), (x, bottom), "mark");
    }
    for (i, row) in dots.rows.iter().enumerate() {
        let y = top + ROW * (i as f64 + 0.5);
        drawing.text(left - 8.0, y + 4.0, "end", "ink", short(&row.name));
        let Some(value) = row.value else {
            let plate = ((left + 2.0, y - 8.0), (text_width(UNKNOWN), 16.0));
            drawing.rect(plate.0, plate.1, "plate", UNKNOWN);
            drawing.text(left + 6.0, y + 4.0, "start", "soft", UNKNOWN);
            continue;
        };
        if let Some((low, high)) = row.interval {
            drawing.line((scale.at(low), y), (scale.at(high), y), "whisker");
        }
        let tip = format!("{}: {}", row.name, row.shown(dots.unit));
        drawing.circle(scale.at(value), y, "dot", &tip);
    }
    drawing
}

/// The ends of the axis: from zero on, unless the figures would then not be distinguishable.
fn ends<I: Iterator<Item = f64>>(values: impl Fn() -> I) -> (f64, f64) {
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let margin = (high - low) * 0.08;
    match low > high / 2.0 && high > low {
        true => (low - margin, high + margin),
        false if high > 0.0 => (0.0, high * 1.04),
        false => (0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_at_zero_unless_figures_are_close_together() {
        let ends = |figures: &'static [f64]| ends(|| figures.iter().copied());
        assert_eq!(ends(&[1.0, 10.0]).0, 0.0);
        assert!(ends(&[0.98, 1.02]).0 > 0.9);
        assert_eq!(ends(&[3.0, 3.0]).0, 0.0);
        assert_eq!(ends(&[]), (0.0, 1.0));
    }
}
