//! A bar for each row, cut into parts.

use super::{Drawing, Scale, legend, names_width, short};
use crate::panels::{Bar, INTERFERENCE, STOPPED, Stack, WAITING};

const ROW: f64 = 24.0;

pub(super) fn draw(stack: &Stack, width: f64) -> Drawing {
    let left = names_width(stack.rows.iter().map(|row| row.name.as_str()));
    let (keys, top) = legend(stack.parts.iter().copied(), (8.0, width));
    let bottom = top + ROW * stack.rows.len() as f64;
    let mut drawing = Drawing::new(width, bottom + 36.0);
    let longest = stack.rows.iter().map(length).fold(0.0, f64::max);
    let scale = Scale { values: (0.0, longest), places: (left, width - 12.0) };
    scale.draw_below(&mut drawing, top, bottom, stack.unit);
    for (name, (x, y)) in stack.parts.iter().zip(keys) {
        drawing.rect((x, y + 6.0), (12.0, 12.0), class(name), name);
        drawing.text(x + 17.0, y + 16.0, "start", "ink", name);
    }
    for (i, row) in stack.rows.iter().enumerate() {
        let y = top + ROW * i as f64;
        drawing.text(left - 8.0, y + 16.0, "end", "ink", short(&row.name));
        let mut before = 0.0;
        for (part, value) in row.parts.iter().enumerate() {
            let end = before + value.max(0.0);
            let (from, to) = (scale.at(before), scale.at(end));
            before = end;
            let tip = format!("{}: {} {value:.3} {}", row.name, stack.parts[part], stack.unit);
            if to > from {
                drawing.rect(
                    (from, y + 4.0),
                    (to - from, ROW - 8.0),
                    class(stack.parts[part]),
                    &tip,
                );
            }
        }
    }
    drawing
}

/// The length of a part; a part below zero has none.
fn length(bar: &Bar) -> f64 {
    bar.parts.iter().map(|part| part.max(0.0)).sum()
}

/// The class of a part: work in a colour, waiting in grey, interference and stopped time in others.
fn class(part: &str) -> &'static str {
    match part {
        WAITING => "wait",
        INTERFERENCE => "c0",
        STOPPED => "c3",
        _ => "c1",
    }
}
