//! Figures of each program that change over time: its shares in one band, its level in the next,
//! and below these a lane for each setting, with blocks where it was in force or on trial.

use std::fmt::Write;

use super::{Drawing, LINE, Scale, legend, names_width, short};
use crate::panels::{Course, CoursePoint, Courses, TrialMark};

/// The heights of the two bands and of a lane, and the gap between them.
const SHARES: f64 = 48.0;
const LEVEL: f64 = 28.0;
const LANE: f64 = 16.0;
const GAP: f64 = 8.0;
/// Between the bands, so that the names of their ends do not touch.
const APART: f64 = 16.0;
/// Changes that are nearer to each other than this are not distinguishable, pixels.
const NEAR: f64 = 0.5;
/// The classes of keys and of the shapes that they stand for.
const CURVES: [&str; 2] = ["curve", "second"];
const LEVELS: &str = "third";
const IN_FORCE: &str = "held";
const ON_TRIAL: &str = "trial";

pub(super) fn draw(courses: &Courses, width: f64) -> Drawing {
    let left = names_width(courses.actuators.iter().copied()).max(52.0);
    let keys = keys(courses);
    let (places, top) = legend(keys.iter().map(|(name, _)| *name), (8.0, width));
    let pitch = LINE + SHARES + APART + LEVEL + GAP + LANE * courses.actuators.len() as f64 + GAP;
    let bottom = top + pitch * courses.rows.len() as f64 - GAP;
    let mut drawing = Drawing::new(width, bottom + 36.0);
    for ((name, key), (x, y)) in keys.into_iter().zip(places) {
        let (from, to, middle) = (x, x + 14.0, y + 12.0);
        match key {
            LegendKey::Line(class) => drawing.line((from, middle), (to, middle), class),
            LegendKey::Block(class) => drawing.rect((from, y + 6.0), (14.0, 12.0), class, name),
            LegendKey::Mark(mark) => draw_mark(&mut drawing, (x + 7.0, middle), mark, name),
        }
        drawing.text(x + 19.0, y + 16.0, "start", "ink", name);
    }
    let along = Scale { values: (0.0, courses.total), places: (left, width - 12.0) };
    along.draw_below(&mut drawing, top, bottom, "s since the start");
    for (i, row) in courses.rows.iter().enumerate() {
        Bands { courses, row, along, top: top + pitch * i as f64 }.draw(&mut drawing);
    }
    drawing
}

/// The shape of a key.
enum LegendKey {
    Line(&'static str),
    Block(&'static str),
    Mark(TrialMark),
}

/// Keys for the shapes that are in the picture.
fn keys(courses: &Courses) -> Vec<(&'static str, LegendKey)> {
    let any = |is: &dyn Fn(&CoursePoint) -> bool| {
        courses.rows.iter().flat_map(|row| &row.changes).any(is)
    };
    let mut keys: Vec<(&str, LegendKey)> =
        courses.shares.into_iter().zip(CURVES.map(LegendKey::Line)).collect();
    keys.push((courses.level.0, LegendKey::Line(LEVELS)));
    keys.extend(
        any(&|point| point.actuator.is_some()).then_some(("in force", LegendKey::Block(IN_FORCE))),
    );
    keys.extend(
        any(&|point| point.tried.is_some()).then_some(("on trial", LegendKey::Block(ON_TRIAL))),
    );
    for (mark, says) in TrialMark::ALL {
        let found = any(&|point| point.mark.is_some_and(|(found, _)| found == mark));
        keys.extend(found.then_some((says, LegendKey::Mark(mark))));
    }
    keys
}

/// One program's part of the picture.
struct Bands<'a> {
    courses: &'a Courses,
    row: &'a Course,
    along: Scale,
    top: f64,
}

impl Bands<'_> {
    fn draw(&self, drawing: &mut Drawing) {
        let (left, _) = self.along.places;
        drawing.text(left, self.top + 12.0, "start", "ink", short(&self.row.name));
        let points = apart(&self.row.changes, self.along);
        let shares = self.top + LINE;
        let up = Scale { values: (0.0, 1.0), places: (shares + SHARES, shares) };
        for tick in [0.0, 0.5, 1.0] {
            self.tick(drawing, up.at(tick), &format!("{:.0} %", 100.0 * tick));
        }
        for (share, class) in CURVES.into_iter().enumerate() {
            self.curve(drawing, &points, class, |point| up.at(point.shares[share]));
        }
        let level = shares + SHARES + APART;
        let highest = self.courses.rows.iter().flat_map(|row| &row.changes);
        let highest = highest.map(|point| point.level).fold(0.0, f64::max).max(1e-9);
        let up = Scale { values: (0.0, highest), places: (level + LEVEL, level) };
        self.tick(drawing, up.at(0.0), "0");
        self.tick(drawing, up.at(highest), &format!("{highest} {}", self.courses.level.1));
        self.curve(drawing, &points, LEVELS, |point| up.at(point.level));
        self.lanes(drawing, &points, level + LEVEL + GAP);
    }

    fn tick(&self, drawing: &mut Drawing, y: f64, name: &str) {
        let (left, right) = self.along.places;
        drawing.line((left, y), (right, y), "line");
        drawing.text(left - 6.0, y + 4.0, "end", "soft", name);
    }

    /// Where the change at this position ends.
    fn until(&self, points: &[(CoursePoint, f64)], i: usize) -> f64 {
        points.get(i + 1).map_or(self.along.at(self.row.end), |(_, next)| *next)
    }

    fn curve(
        &self,
        drawing: &mut Drawing,
        points: &[(CoursePoint, f64)],
        class: &str,
        height: impl Fn(&CoursePoint) -> f64,
    ) {
        let mut path = String::new();
        for (i, (point, x)) in points.iter().enumerate() {
            let word = if i == 0 { 'M' } else { 'L' };
            write!(path, "{word}{x:.1} {:.1}H{:.1}", height(point), self.until(points, i))
                .expect("a string takes any text");
        }
        drawing.path(&path, class);
    }

    /// The settings in force and on trial, and above them the results of trials.
    fn lanes(&self, drawing: &mut Drawing, points: &[(CoursePoint, f64)], top: f64) {
        let (left, _) = self.along.places;
        let lane = |actuator: usize| top + LANE * actuator as f64;
        for (actuator, name) in self.courses.actuators.iter().enumerate() {
            drawing.text(left - 6.0, lane(actuator) + 12.0, "end", "soft", name);
        }
        for (i, (point, x)) in points.iter().enumerate() {
            let class = if point.tried.is_some() { ON_TRIAL } else { IN_FORCE };
            let tip = format!(
                "{} from {:.3} s on: {} ({})",
                self.row.name, point.at, point.in_force, point.why
            );
            for actuator in point.actuator.into_iter().chain(point.tried) {
                let size = (self.until(points, i) - x, LANE - 6.0);
                drawing.rect((*x, lane(actuator) + 3.0), size, class, &tip);
            }
        }
        for (point, x) in points {
            if let Some((mark, actuator)) = point.mark {
                draw_mark(drawing, (*x, lane(actuator) + LANE / 2.0), mark, &point.why);
            }
        }
    }
}

/// The changes with their places. Of changes at the same place the last one stays, with the last
/// result of a trial among them.
fn apart(changes: &[CoursePoint], along: Scale) -> Vec<(CoursePoint, f64)> {
    let mut apart: Vec<(CoursePoint, f64)> = Vec::new();
    for point in changes {
        let x = along.at(point.at);
        match apart.last_mut() {
            Some((last, at)) if x - *at < NEAR => {
                *last = CoursePoint { mark: point.mark.or(last.mark), ..point.clone() };
            }
            _ => apart.push((point.clone(), x)),
        }
    }
    apart
}

/// A full dot where a setting was kept, and a cross where the earlier one was restored. Both stand
/// on paper, so that shapes below do not hide them.
fn draw_mark(drawing: &mut Drawing, (x, y): (f64, f64), mark: TrialMark, tip: &str) {
    drawing.circle(x, y, "under", tip);
    match mark {
        TrialMark::Kept => drawing.circle(x, y, "dot", tip),
        TrialMark::PutBack => {
            let (left, right, high, low) = (x - 4.0, x + 4.0, y - 4.0, y + 4.0);
            drawing.path(
                &format!(
                    "M{left:.1} {high:.1}L{right:.1} {low:.1}M{left:.1} {low:.1}L{right:.1} \
                          {high:.1}"
                ),
                "cross",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: f64, mark: Option<TrialMark>) -> CoursePoint {
        CoursePoint {
            at,
            shares: [0.8, 0.2],
            level: 200.0,
            actuator: Some(0),
            tried: None,
            in_force: "original".into(),
            why: "it was tried".into(),
            mark: mark.map(|mark| (mark, 1)),
        }
    }

    fn drawn(changes: Vec<CoursePoint>, actuators: Vec<&'static str>) -> String {
        let row = Course { name: "a".into(), changes, end: 1.0 };
        let (shares, level) = (["lock contention", "scaling factor"], ("slice", "ms"));
        draw(&Courses { total: 1.0, shares, level, actuators, rows: vec![row] }, 460.0).body
    }

    #[test]
    fn only_shapes_in_the_picture_have_keys() {
        let alone = drawn(vec![CoursePoint { actuator: None, ..point(0.1, None) }], vec![]);
        assert!(alone.contains(">slice</text>") && alone.contains(">200 ms</text>"), "{alone}");
        assert!(!alone.contains("in force") && !alone.contains("kept"));
        let tried = CoursePoint { tried: Some(1), ..point(0.1, None) };
        let found = point(0.5, Some(TrialMark::PutBack));
        let marked = drawn(vec![tried, found], vec!["original", "batch"]);
        for word in [">earlier restored</text>", ">on trial</text>", ">batch</text>"] {
            assert!(marked.contains(word), "{word}: {marked}");
        }
        assert!(!marked.contains(">kept</text>"));
        assert_eq!(marked.matches("class=\"cross\"").count(), 2, "the key and the mark");
        assert_eq!(
            marked.matches("class=\"trial\"").count(),
            3,
            "the key, and two blocks that alternate"
        );
    }

    #[test]
    fn joined_changes_keep_the_result_of_a_trial() {
        let scale = Scale { values: (0.0, 1.0), places: (0.0, 100.0) };
        let changes = [
            point(0.1, None),
            point(0.101, Some(TrialMark::Kept)),
            point(0.102, None),
            point(0.5, None),
        ];
        let kept: Vec<_> = apart(&changes, scale).iter().map(|(point, _)| point.mark).collect();
        assert_eq!(kept, [Some((TrialMark::Kept, 1)), None]);
        assert_eq!(apart(&changes, scale)[0].0.at, 0.102);
        let many: Vec<CoursePoint> =
            (0..5000).map(|i| point(f64::from(i) / 5000.0, None)).collect();
        assert!(drawn(many, vec!["original"]).len() < 600_000);
    }
}
