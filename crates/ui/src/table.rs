//! Tables for people, and how all of them look. Scripts read `--json`.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

/// Columns of a table of sentences where no terminal says how many there are.
const WIDTH: u16 = 100;

/// A table with these columns.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(header.iter().map(Cell::new));
    table
}

/// A table: the first column is text, and the others are figures.
pub fn figures(header: &[&str]) -> Table {
    let mut table = table(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A table with sentences in it, which are broken where the terminal ends.
pub fn sentences(header: &[&str]) -> Table {
    let mut table = table(header);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    // A terminal tells how wide it is; a file or a pager does not.
    if !table.is_tty() {
        table.set_width(WIDTH);
    }
    table
}

/// A figure with so many digits after the point; one that is not known is a dash.
pub fn known(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

/// A cell with words.
pub fn text(value: &str) -> Cell {
    Cell::new(value)
}

/// A cell with a figure, at the right.
pub fn number(value: impl ToString) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}
