//! A bar for each row, cut into parts: where the time went.

use super::{Drawing, LINE, Scale, WIDTH, names_width, short};
use crate::panels::{Bar, Stack};

const ROW: f64 = 24.0;

pub(super) fn draw(stack: &Stack) -> Drawing {
    let left = names_width(stack.rows.iter().map(|row| row.name.as_str()));
    let (top, bottom) = (LINE + 10.0, LINE + 10.0 + ROW * stack.rows.len() as f64);
    let mut drawing = Drawing::new(WIDTH, bottom + 36.0);
    let longest = stack.rows.iter().map(length).fold(0.0, f64::max);
    let scale = Scale { values: (0.0, longest), places: (left, WIDTH - 12.0) };
    scale.draw_below(&mut drawing, top, bottom, stack.unit);
    let mut x = left;
    for (part, name) in stack.parts.iter().enumerate() {
        drawing.rect((x, 6.0), (12.0, 12.0), class(part), name);
        drawing.text(x + 17.0, 16.0, "start", "ink", name);
        x += 17.0 + super::text_width(name) + 12.0;
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
                drawing.rect((from, y + 4.0), (to - from, ROW - 8.0), class(part), &tip);
            }
        }
    }
    drawing
}

/// A part below zero has no length.
fn length(bar: &Bar) -> f64 {
    bar.parts.iter().map(|part| part.max(0.0)).sum()
}

/// Work in a colour, waiting in grey, what company costs in another colour.
fn class(part: usize) -> &'static str {
    ["c1", "wait", "c0"][part % 3]
}
