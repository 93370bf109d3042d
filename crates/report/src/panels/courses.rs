//! Figures of each program that change over time: two shares, a level, and which setting is in
//! force or on trial.

use super::panel::Table;

/// A table has at most this many rows of each program: its first and its last ones.
const ROWS: usize = 200;

/// Figures that change over time, for each program.
#[derive(Clone, Debug, PartialEq)]
pub struct Courses {
    /// The time that they cover, seconds.
    pub total: f64,
    /// The names of both shares; the second one has a dashed line.
    pub shares: [&'static str; 2],
    /// The name of the level, and its unit.
    pub level: (&'static str, &'static str),
    /// The names of the settings that a program had or tried; none where there was no choice.
    pub actuators: Vec<&'static str>,
    /// One each, in the order in which they are shown.
    pub rows: Vec<Course>,
}

/// The changes of one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Its name.
    pub name: String,
    /// In order of time.
    pub changes: Vec<CoursePoint>,
    /// Until when the last one holds, seconds.
    pub end: f64,
}

/// A change, and the figures from then on.
#[derive(Clone, Debug, PartialEq)]
pub struct CoursePoint {
    /// When, seconds.
    pub at: f64,
    /// Both shares, 0 to 1.
    pub shares: [f64; 2],
    /// The level.
    pub level: f64,
    /// Which setting is in force.
    pub actuator: Option<usize>,
    /// Which setting is on trial.
    pub tried: Option<usize>,
    /// The setting in force, in few words.
    pub in_force: String,
    /// Why it changed, in words.
    pub why: String,
    /// The result of a trial, and of which setting.
    pub mark: Option<(TrialMark, usize)>,
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialMark {
    /// The setting is kept.
    Kept,
    /// The earlier setting is restored.
    PutBack,
}

impl TrialMark {
    /// Both, with their words.
    pub const ALL: [(TrialMark, &'static str); 2] =
        [(TrialMark::Kept, "kept"), (TrialMark::PutBack, "earlier restored")];
}

impl Courses {
    pub(super) fn table(&self) -> Table {
        let head = ["program", "from"].into_iter().chain(self.shares).chain(["scheduled", "why"]);
        Table {
            head: head.map(str::to_owned).collect(),
            rows: self.rows.iter().flat_map(Course::rows).collect(),
        }
    }
}

impl Course {
    /// The rows of a table. Of many changes, only the first and the last ones, and how many are
    /// left out.
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |point: &CoursePoint| {
            let share = |share: f64| format!("{:.0} %", 100.0 * share);
            let [first, second] = point.shares.map(share);
            let from = format!("{:.3} s", point.at);
            vec![self.name.clone(), from, first, second, point.in_force.clone(), point.why.clone()]
        };
        let all = &self.changes;
        if all.len() <= ROWS {
            return all.iter().map(row).collect();
        }
        let (first, last) = (&all[..ROWS / 2], &all[all.len() - ROWS / 2..]);
        let mut left_out = vec![String::new(); 6];
        left_out[0] = self.name.clone();
        left_out[5] = format!("{} more are in run.json", all.len() - ROWS);
        first.iter().map(row).chain([left_out]).chain(last.iter().map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_changes_a_table_has_the_first_and_the_last() {
        let point = |i| CoursePoint {
            at: f64::from(i),
            shares: [0.84, 0.16],
            level: 200.0,
            actuator: None,
            tried: None,
            in_force: "200 ms".into(),
            why: "because".into(),
            mark: None,
        };
        let rows = |count: u32| {
            Course { name: "a".into(), changes: (0..count).map(point).collect(), end: 1e3 }.rows()
        };
        assert_eq!(rows(2)[1], ["a", "1.000 s", "84 %", "16 %", "200 ms", "because"]);
        let many = rows(500);
        assert_eq!((many.len(), many[100][5].as_str()), (201, "300 more are in run.json"));
        assert_eq!(many[200][1], "499.000 s");
    }
}
