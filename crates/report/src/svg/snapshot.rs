//! Which program had which CPU when: the thesis' snapshot of gangs (figures 5.11 and 5.12), with
//! time along one axis, and CPUs or programs along the other.
//!
//! *Size.* A hundred CPUs and fifty quanta are thousands of blocks. Each program's blocks are one
//! path, and turns with less than half a pixel between them are one block. Where there are still
//! too many, the picture is sampled: in columns of a pixel, or of two, four and so on, each row has
//! the colour of the program that has it in the middle of the column.

use std::collections::HashMap;
use std::fmt::Write;

use cosched_results::result::TimelineEntry;

use super::{Drawing, Scale, fill, legend, names_width, short, text_width};
use crate::panels::{Lane, Rows, SnapshotPlot};

/// A picture with more blocks than this is sampled.
const MOST: usize = 16_000;
/// Blocks of a program with a smaller gap are joined, pixels.
const NEAR: f64 = 0.5;

/// Some rows of a program for some time, as pixels from left to right and rows from first to last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    from: f64,
    to: f64,
    rows: (usize, usize),
}

pub(super) fn draw(snapshot: &SnapshotPlot, width: f64) -> Drawing {
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
    // Names stand only where they fit.
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
            let [from, y, wide, high] = [*from, y, wide, high].map(digits);
            write!(path, "M{from} {y}h{wide}v{high}h-{wide}z").expect("a string takes any text");
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

/// A length to a tenth of a pixel, without a zero after the point.
fn digits(pixels: f64) -> String {
    let text = format!("{pixels:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// The blocks of every program: exact, or sampled where there are too many.
fn blocks(snapshot: &SnapshotPlot, scale: Scale) -> Vec<Vec<Block>> {
    let programs = snapshot.programs.iter().enumerate();
    let exact = programs.map(|(i, program)| of_one(snapshot, scale, i, program)).collect();
    let wider = |column: &f64| (*column < scale.places.1).then_some(column * 2.0);
    let columns = std::iter::successors(Some(1.0), wider);
    let mut forms = std::iter::once(exact).chain(columns.map(|c| sampled(snapshot, scale, c)));
    let count = |blocks: &Vec<Vec<Block>>| blocks.iter().map(Vec::len).sum::<usize>();
    forms.find(|blocks| count(blocks) <= MOST).unwrap_or_default()
}

/// The program that has each row in the middle of each column, as blocks.
fn sampled(snapshot: &SnapshotPlot, scale: Scale, column: f64) -> Vec<Vec<Block>> {
    let (left, right) = scale.places;
    let columns = ((right - left) / column).floor() as usize;
    let mut grid = vec![vec![None; columns]; snapshot.row_names().len()];
    // The first column with its middle at a place or right of it.
    let first_at = |x: f64| (((x - left) / column - 0.5).ceil().max(0.0) as usize).min(columns);
    for (i, program) in snapshot.programs.iter().enumerate() {
        for span in within(snapshot, program) {
            let middles = first_at(scale.at(span.0))..first_at(scale.at(span.1));
            for (first, last) in rows_of(snapshot, i, span) {
                grid[first..=last].iter_mut().for_each(|row| row[middles.clone()].fill(Some(i)));
            }
        }
    }
    let mut blocks = vec![Vec::new(); snapshot.programs.len()];
    for (row, owners) in grid.iter().enumerate() {
        let mut at = 0;
        for run in owners.chunk_by(|a, b| a == b) {
            let (from, to) = (left + at as f64 * column, left + (at + run.len()) as f64 * column);
            at += run.len();
            if let Some(i) = run[0] {
                blocks[i].push(Block { from, to, rows: (row, row) });
            }
        }
    }
    blocks.into_iter().map(stacked).collect()
}

/// Blocks above each other of the same width as one.
fn stacked(blocks: Vec<Block>) -> Vec<Block> {
    let mut stacked: Vec<Block> = Vec::new();
    let mut latest: HashMap<(u64, u64), usize> = HashMap::new();
    for block in blocks {
        let place = (block.from.to_bits(), block.to.to_bits());
        match latest.get(&place).map(|at| &mut stacked[*at]) {
            Some(above) if above.rows.1 + 1 == block.rows.0 => above.rows.1 = block.rows.1,
            _ => {
                latest.insert(place, stacked.len());
                stacked.push(block);
            }
        }
    }
    stacked
}

/// The turns of a program that are in the picture.
fn within<'a>(
    snapshot: &SnapshotPlot,
    program: &'a Lane,
) -> impl Iterator<Item = &'a TimelineEntry> + use<'a> {
    let (begin, end) = snapshot.window;
    program.spans.iter().filter(move |span| span.1 > begin && span.0 < end)
}

/// The rows that the `i`-th program has in a turn, as ranges.
fn rows_of(snapshot: &SnapshotPlot, i: usize, span: &TimelineEntry) -> Vec<(usize, usize)> {
    match snapshot.rows {
        Rows::Cpus => snapshot.ranges(span.2.as_ref()),
        Rows::Programs | Rows::Turns => vec![(i, i)],
    }
}

/// The blocks of the `i`-th program; near ones are joined.
fn of_one(snapshot: &SnapshotPlot, scale: Scale, i: usize, program: &Lane) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut latest: HashMap<(usize, usize), usize> = HashMap::new();
    for span in within(snapshot, program) {
        let (from, to) = (scale.at(span.0), scale.at(span.1));
        for rows in rows_of(snapshot, i, span) {
            match latest.get(&rows).map(|at| &mut blocks[*at]) {
                Some(last) if from - last.to < NEAR => last.to = to,
                _ => {
                    latest.insert(rows, blocks.len());
                    blocks.push(Block { from, to, rows });
                }
            }
        }
    }
    blocks
}

/// The name on a block, where there is room. It stands on a plate, so that it is legible on every
/// colour.
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
    use cosched_results::result::TimelineEntry;

    use super::*;
    use crate::testkit;

    #[test]
    fn turns_less_than_half_a_pixel_apart_are_one_block() {
        let mut run = testkit::gang();
        let spans = |gap: f64| [TimelineEntry(0.0, 0.1, None), TimelineEntry(0.1 + gap, 0.3, None)];
        run.programs[0].timeline = spans(0.0001).to_vec();
        run.programs[1].timeline = spans(0.01).to_vec();
        let snapshot = SnapshotPlot { window: (0.0, 0.6), ..SnapshotPlot::of(&run) };
        let scale = Scale { values: snapshot.window, places: (0.0, 600.0) };
        let counts: Vec<usize> = blocks(&snapshot, scale).iter().map(Vec::len).collect();
        assert_eq!(counts, [1, 2]);
    }

    /// Forty programs of 128 threads that take turns of this length, each on half of 128 CPUs
    /// without two neighbours.
    fn pieces(turn: f64) -> SnapshotPlot {
        let mut run = testkit::gang();
        (run.machine.cpus, run.total_seconds) = (128, 5.7);
        let model = run.programs[0].clone();
        let turns = (5.7 / turn) as usize;
        run.programs = (0..40)
            .map(|slot| {
                let mut program = model.clone();
                program.name = format!("p{slot}");
                let cpus: CpuSet = (0..128).filter(|cpu| cpu % 2 == slot % 2).collect();
                let own = (0..turns).filter(|n| n % 20 == slot / 2);
                let span = |n: usize| (n as f64 * turn, (n as f64 + 0.9) * turn);
                let entry = |(from, to)| TimelineEntry(from, to, Some(cpus));
                program.timeline = own.map(span).map(entry).collect();
                program
            })
            .collect();
        let snapshot = SnapshotPlot::of(&run);
        assert_eq!(snapshot.rows, Rows::Cpus);
        SnapshotPlot { window: (0.0, 5.7), ..snapshot }
    }

    #[test]
    fn forty_programs_on_128_cpus_make_a_small_picture() {
        for (turn, most) in [(0.1, 250_000), (0.005, 450_000)] {
            let picture = draw(&pieces(turn), 920.0).element("picture");
            assert!(picture.len() < most, "{turn} s: {} bytes", picture.len());
            assert!(picture.matches("z").count() > 2000, "{turn} s: this cannot be all");
        }
    }

    #[test]
    fn a_sampled_picture_shows_programs_only_where_they_ran() {
        let snapshot = pieces(0.01);
        let scale = Scale { values: snapshot.window, places: (50.0, 908.0) };
        let exact: usize = (snapshot.programs.iter().enumerate())
            .map(|(i, program)| of_one(&snapshot, scale, i, program).len())
            .sum();
        assert!(exact > MOST);
        for (program, blocks) in snapshot.programs.iter().zip(blocks(&snapshot, scale)) {
            for block in blocks {
                let middle = (block.from + block.to) / 2.0;
                let runs = |span: &TimelineEntry| {
                    // Half a column, of which there are at least as many as turns.
                    (scale.at(span.0) - 2.0..scale.at(span.1) + 2.0).contains(&middle)
                };
                assert!(program.spans.iter().any(runs), "{}: {block:?}", program.name);
            }
        }
    }
}
