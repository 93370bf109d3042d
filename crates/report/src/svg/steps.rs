//! A figure that changes over time.

use std::fmt::Write;

use super::{Drawing, LINE, Scale};
use crate::panels::Steps;

const HEIGHT: f64 = 130.0;

pub(super) fn draw(steps: &Steps, width: f64) -> Drawing {
    let (top, bottom) = (LINE + 6.0, LINE + 6.0 + HEIGHT);
    let (left, right) = (44.0, width - 12.0);
    let mut drawing = Drawing::new(width, bottom + 36.0);
    drawing.text(left - 6.0, 12.0, "start", "soft", steps.unit);
    let highest = steps.values.iter().copied().fold(steps.top.unwrap_or(0.0), f64::max);
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let up = Scale { values: (0.0, highest), places: (bottom, top) };
    let along = Scale { values: (0.0, steps.total), places: (left, right) };
    let (ticks, decimals) = up.ticks(4);
    for tick in ticks {
        let y = up.at(tick);
        drawing.line((left, y), (right, y), "line");
        drawing.text(left - 6.0, y + 4.0, "end", "soft", format_args!("{tick:.decimals$}"));
    }
    along.draw_below(&mut drawing, bottom, bottom + 4.0, "s since the start");
    let mut path = String::new();
    let part = steps.total / steps.values.len().max(1) as f64;
    for (i, value) in steps.values.iter().enumerate() {
        let (x, y) = (along.at(i as f64 * part), up.at(*value));
        let word = if i == 0 { 'M' } else { 'L' };
        write!(path, "{word}{x:.1} {y:.1}H{:.1}", along.at((i + 1) as f64 * part))
            .expect("a string takes any text");
    }
    if !path.is_empty() {
        drawing.path(&path, "curve");
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_the_figure_stands_at_its_axis() {
        let steps = Steps { unit: "gangs", total: 1.0, values: vec![2.0], top: None };
        assert!(draw(&steps, 320.0).body.contains(">gangs</text>"));
    }
}
