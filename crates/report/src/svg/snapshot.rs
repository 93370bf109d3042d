//! Who had which CPU when: the thesis' snapshot of gangs (figures 5.11 and 5.12), time along, CPUs or programs up.
//!
//! *Size.* A hundred CPUs and fifty quanta are thousands of blocks. Each program's blocks are one path, and turns with less
//! than half a pixel between them are one block; where there are still too many, with less than a pixel, two, four.

use std::collections::HashMap;
use std::fmt::Write;

use super::{Drawing, Scale, fill, legend, names_width, short, text_width};
use crate::panels::{Lane, Rows, Snapshot};

/// More blocks than this are no picture any more.
const MOST: usize = 8000;
/// Nearer blocks of a program are one, in pixels.
const NEAR: f64 = 0.5;

/// Some rows of a program for some time, as pixels from left to right and rows from first to last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    from: f64,
    to: f64,
    rows: (usize, usize),
}

pub(super) fn draw(snapshot: &Snapshot, width: f64) -> Drawing {
    let rows = snapshot.row_names();
    let height = (240.0 / rows.len().max(1) as f64).clamp(5.0, 28.0);
    let left = names_width(rows.iter().map(String::as_str));
    let programs = || snapshot.programs.iter().enumerate();
    let names = snapshot.programs.iter().map(|program| program.name.as_str());
    let (keys, top) = legend(names, (left, width));
    let bottom = top + height * rows.len() as f64;
    let mut drawing = Drawing::new(width, bottom + 36.0);
    let scale = Scale { values: snapshot.window, places: (left, width - 12.0) };
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
    for ((i, program), blocks) in programs().zip(blocks(snapshot, scale)) {
        let mut path = String::new();
        for Block { from, to, rows: (first, last) } in &blocks {
            let (y, wide) = (top + height * *first as f64, to - from);
            let high = height * (last - first + 1) as f64 - 1.0;
            write!(path, "M{from:.1} {y:.1}h{wide:.1}v{high:.1}h-{wide:.1}z")
                .expect("a string takes any text");
        }
        if blocks.is_empty() {
            continue;
        }
        let (fill, tip) = (fill(i), super::escaped(&program.name));
        drawing.add(format_args!("<path d=\"{path}\" {fill}><title>{tip}</title></path>"));
        for Block { from, to, rows: (first, last) } in blocks {
            let size = (to - from, height * (last - first + 1) as f64 - 1.0);
            label(&mut drawing, (from, top + height * first as f64), size, &program.name);
        }
    }
    drawing
}

/// The blocks of every program.
fn blocks(snapshot: &Snapshot, scale: Scale) -> Vec<Vec<Block>> {
    let all = |near| -> Vec<Vec<Block>> {
        let programs = snapshot.programs.iter().enumerate();
        programs.map(|(i, program)| of_one(snapshot, scale, i, program, near)).collect()
    };
    let fewer = |near: &f64| (*near < scale.places.1).then_some(near * 2.0);
    let mut nears = std::iter::successors(Some(NEAR), fewer).map(all);
    let few_enough = |blocks: &Vec<Vec<Block>>| blocks.iter().map(Vec::len).sum::<usize>() <= MOST;
    let mut blocks = nears.next().unwrap_or_default();
    while !few_enough(&blocks) {
        let Some(next) = nears.next() else { break };
        blocks = next;
    }
    blocks
}

/// The blocks of the `i`-th program; nearer ones are joined.
fn of_one(snapshot: &Snapshot, scale: Scale, i: usize, program: &Lane, near: f64) -> Vec<Block> {
    let (begin, end) = snapshot.window;
    let mut blocks: Vec<Block> = Vec::new();
    let mut latest: HashMap<(usize, usize), usize> = HashMap::new();
    for span in program.spans.iter().filter(|span| span.1 > begin && span.0 < end) {
        let (from, to) = (scale.at(span.0), scale.at(span.1));
        let ranges = match snapshot.rows {
            Rows::Cpus => snapshot.ranges(span.2.as_ref()),
            Rows::Programs => vec![(i, i)],
        };
        for rows in ranges {
            match latest.get(&rows).map(|at| &mut blocks[*at]) {
                Some(last) if from - last.to < near => last.to = to,
                _ => {
                    latest.insert(rows, blocks.len());
                    blocks.push(Block { from, to, rows });
                }
            }
        }
    }
    blocks
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

#[cfg(test)]
mod tests {
    use cosched_core::CpuSet;
    use cosched_core::result::TimelineEntry;

    use super::*;
    use crate::testkit;

    #[test]
    fn turns_with_less_than_half_a_pixel_between_them_are_one_block_and_others_are_not() {
        let mut run = testkit::gang();
        let spans = |gap: f64| [TimelineEntry(0.0, 0.1, None), TimelineEntry(0.1 + gap, 0.3, None)];
        run.programs[0].timeline = spans(0.0001).to_vec();
        run.programs[1].timeline = spans(0.01).to_vec();
        let snapshot = Snapshot { window: (0.0, 0.6), ..Snapshot::of(&run) };
        let scale = Scale { values: snapshot.window, places: (0.0, 600.0) };
        let counts: Vec<usize> = blocks(&snapshot, scale).iter().map(Vec::len).collect();
        assert_eq!(counts, [1, 2]);
    }

    #[test]
    fn forty_programs_in_pieces_on_128_cpus_make_a_small_picture() {
        let mut run = testkit::gang();
        (run.machine.cpus, run.total_seconds) = (128, 5.7);
        let model = run.programs[0].clone();
        let piece = |quantum: usize, slot: usize| -> CpuSet {
            // Each fourth CPU, and others in the next quantum: nothing lies side by side.
            (0..128)
                .filter(|cpu| (cpu + quantum) % 4 == slot % 4 && cpu % 2 == quantum % 2)
                .collect()
        };
        run.programs = (0..40)
            .map(|slot| {
                let mut program = model.clone();
                program.name = format!("p{slot}");
                let at = |quantum: usize| quantum as f64 * 0.1;
                program.timeline = (0..57)
                    .filter(|quantum| quantum % 10 == slot / 4)
                    .map(|q| TimelineEntry(at(q), at(q) + 0.09, Some(piece(q, slot))))
                    .collect();
                program
            })
            .collect();
        let mut snapshot = Snapshot::of(&run);
        snapshot.rows = Rows::Cpus;
        let picture = draw(&snapshot, 920.0).element("picture");
        assert!(picture.len() < 350_000, "{} bytes", picture.len());
        assert!(picture.matches("z").count() > 1000, "this cannot be all");
    }
}
