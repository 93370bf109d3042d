//! What a picture is, as data.

use super::courses::Courses;
use super::snapshot::SnapshotPlot;

/// A picture, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its name in addresses and file names.
    pub id: &'static str,
    /// What stands above it.
    pub title: String,
    /// What it shows, in a sentence that stands below it.
    pub says: String,
    /// The figures.
    pub plot: Plot,
}

/// The kinds of pictures.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Which program ran where and when.
    Snapshot(SnapshotPlot),
    /// A bar for each row, cut into parts.
    Stack(Stack),
    /// A figure for each row.
    Dots(Dots),
    /// A figure that changes over time.
    Steps(Steps),
    /// Shares that change over time, with the settings in force.
    Courses(Courses),
}

/// Names of parts that mean the same in every picture.
pub(crate) const WAITING: &str = "waiting";
pub(crate) const INTERFERENCE: &str = "interference";
pub(crate) const STOPPED: &str = "stopped";

/// A bar for each row, cut into parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The unit of all parts.
    pub unit: &'static str,
    /// The names of the parts; at most four.
    pub parts: Vec<&'static str>,
    /// One bar each, in the order in which they are shown.
    pub rows: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The name of the row.
    pub name: String,
    /// As many as there are names of parts.
    pub parts: Vec<f64>,
}

/// A figure for each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// The unit of all figures.
    pub unit: &'static str,
    /// A value to compare the others with, such as 1 for a ratio.
    pub reference: Option<f64>,
    /// In the order in which they are shown.
    pub rows: Vec<Dot>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    /// The name of the row.
    pub name: String,
    /// The figure, if it is known.
    pub value: Option<f64>,
    /// Its 95 % interval, where there is one.
    pub interval: Option<(f64, f64)>,
}

impl Dot {
    /// The figure in words.
    pub fn shown(&self, unit: &str) -> String {
        match (self.value, self.interval) {
            (None, _) => "not known".to_owned(),
            (Some(value), None) => format!("{value:.3} {unit}"),
            (Some(value), Some((low, high))) => {
                format!("{value:.3} {unit} ({low:.3} to {high:.3})")
            }
        }
    }
}

/// A figure that changes over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// The unit of the figure.
    pub unit: &'static str,
    /// The time that they cover, seconds.
    pub total: f64,
    /// Averages over parts of equal length.
    pub values: Vec<f64>,
    /// The largest possible value of the figure, where there is one.
    pub top: Option<f64>,
}

/// The figures of a panel in rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The first column names the row.
    pub rows: Vec<Vec<String>>,
}

impl Panel {
    /// The figures as a table.
    pub fn table(&self) -> Table {
        match &self.plot {
            Plot::Snapshot(snapshot) => snapshot.table(),
            Plot::Stack(stack) => stack.table(),
            Plot::Dots(dots) => dots.table(),
            Plot::Steps(steps) => steps.table(),
            Plot::Courses(courses) => courses.table(),
        }
    }
}

impl Stack {
    fn table(&self) -> Table {
        let parts = self.parts.iter().map(|part| format!("{part} ({})", self.unit));
        let row = |bar: &Bar| {
            let parts = bar.parts.iter().map(|part| format!("{part:.3}"));
            [bar.name.clone()].into_iter().chain(parts).collect()
        };
        Table {
            head: ["program".to_owned()].into_iter().chain(parts).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

impl Dots {
    /// The figures as a table, without a column of intervals where there are none.
    fn table(&self) -> Table {
        let intervals = self.rows.iter().any(|dot| dot.interval.is_some());
        let row = |dot: &Dot| {
            let value = dot.value.map_or("not known".to_owned(), |value| format!("{value:.3}"));
            let interval = match dot.interval {
                Some((low, high)) => format!("{low:.3} to {high:.3}"),
                None => "none".to_owned(),
            };
            [dot.name.clone(), value].into_iter().chain(intervals.then_some(interval)).collect()
        };
        let head = ["name", self.unit].into_iter().chain(intervals.then_some("95 % interval"));
        Table { head: head.map(str::to_owned).collect(), rows: self.rows.iter().map(row).collect() }
    }
}

impl Steps {
    /// The figures as a table of averages over tenths of the time.
    fn table(&self) -> Table {
        let tenth = self.values.len().div_ceil(10).max(1);
        let part = self.total / self.values.len().max(1) as f64;
        let row = |(i, values): (usize, &[f64])| {
            let from = (i * tenth) as f64 * part;
            let to = from + values.len() as f64 * part;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            vec![format!("{from:.2} s to {to:.2} s"), format!("{mean:.3}")]
        };
        Table {
            head: vec!["time".to_owned(), self.unit.to_owned()],
            rows: self.values.chunks(tenth).enumerate().map(row).collect(),
        }
    }
}
