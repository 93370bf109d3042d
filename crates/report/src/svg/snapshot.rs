//! Who had which CPU when: the thesis' snapshot of gangs (figures 5.11 and 5.12), time along, CPUs or programs up.

use super::{Drawing, LINE, Scale, WIDTH, names_width, short, text_width};
use crate::panels::{Rows, Snapshot};

pub(super) fn draw(snapshot: &Snapshot) -> Drawing {
    let rows = snapshot.row_names();
    let height = (240.0 / rows.len().max(1) as f64).clamp(5.0, 28.0);
    let left = names_width(rows.iter().map(String::as_str));
    let width = 2.0 * WIDTH;
    let programs = || snapshot.programs.iter().enumerate();
    let (mut x, mut y) = (left, 0.0);
    let keys: Vec<(f64, f64)> = programs()
        .map(|(_, program)| {
            let needs = 30.0 + text_width(&short(&program.name));
            if x + needs > width {
                (x, y) = (left, y + LINE);
            }
            x += needs;
            (x - needs, y)
        })
        .collect();
    let top = y + LINE + 10.0;
    let bottom = top + height * rows.len() as f64;
    let mut drawing = Drawing::new(width, bottom + 36.0);
    let (from, to) = snapshot.window;
    let scale = Scale { values: (from, to), places: (left, width - 12.0) };
    for ((i, program), (x, y)) in programs().zip(keys) {
        drawing.block((x, y + 4.0), (12.0, 12.0), i, &program.name);
        drawing.text(x + 17.0, y + 14.0, "start", "ink", short(&program.name));
    }
    scale.draw_below(&mut drawing, top, bottom, "s since the start");
    // As many names as fit.
    let every = (14.0 / height).ceil().max(1.0) as usize;
    for (i, name) in rows.iter().enumerate().step_by(every) {
        let y = top + height * (i as f64 + 0.5);
        drawing.text(left - 8.0, y + 4.0, "end", "ink", short(name));
    }
    for (i, program) in programs() {
        for span in program.spans.iter().filter(|span| span.1 > from && span.0 < to) {
            let (x0, x1) = (scale.at(span.0), scale.at(span.1));
            let tip = format!("{}: {:.3} s to {:.3} s", program.name, span.0, span.1);
            let ranges = match snapshot.rows {
                Rows::Cpus => snapshot.ranges(span.2.as_ref()),
                Rows::Programs => vec![(i, i)],
            };
            for (first, last) in ranges {
                let y = top + height * first as f64;
                let size = (x1 - x0, height * (last - first + 1) as f64 - 1.0);
                drawing.block((x0, y), size, i, &tip);
                label(&mut drawing, (x0, y), size, &program.name);
            }
        }
    }
    drawing
}

/// The name on a block, on a plate so that it can be read on every colour, where there is room.
fn label(drawing: &mut Drawing, corner: (f64, f64), size: (f64, f64), name: &str) {
    let (width, height) = (text_width(&short(name)), 16.0);
    if width + 2.0 > size.0 || height > size.1 {
        return;
    }
    let (x, y) = (corner.0 + size.0 / 2.0, corner.1 + size.1 / 2.0);
    drawing.rect((x - width / 2.0, y - height / 2.0), (width, height), "plate", name);
    drawing.text(x, y + 4.5, "middle", "ink", short(name));
}
