//! A figure that changes over time.

use std::fmt::Write;

use super::{Drawing, Scale, WIDTH};
use crate::panels::Steps;

const HEIGHT: f64 = 130.0;

pub(super) fn draw(steps: &Steps) -> Drawing {
    let (top, bottom) = (10.0, 10.0 + HEIGHT);
    let mut drawing = Drawing::new(WIDTH, bottom + 36.0);
    let highest = steps.values.iter().copied().fold(steps.top.unwrap_or(0.0), f64::max);
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let up = Scale { values: (0.0, highest), places: (bottom, top) };
    let left = 44.0;
    let along = Scale { values: (0.0, steps.total), places: (left, WIDTH - 12.0) };
    let (ticks, decimals) = up.ticks(4);
    for tick in ticks {
        let y = up.at(tick);
        drawing.line((left, y), (WIDTH - 12.0, y), "line");
        drawing.text(left - 6.0, y + 4.0, "end", "soft", format_args!("{tick:.decimals$}"));
    }
    along.draw_below(&mut drawing, bottom, bottom + 4.0, "s since the start");
    let mut path = String::new();
    let width = steps.total / steps.values.len().max(1) as f64;
    for (i, value) in steps.values.iter().enumerate() {
        let (x, y) = (along.at(i as f64 * width), up.at(*value));
        let word = if i == 0 { 'M' } else { 'L' };
        write!(path, "{word}{x:.1} {y:.1}H{:.1}", along.at((i + 1) as f64 * width))
            .expect("a string takes any text");
    }
    if !path.is_empty() {
        drawing.path(&path, "curve");
    }
    drawing
}
