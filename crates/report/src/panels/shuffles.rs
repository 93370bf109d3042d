//! The panel of `shuffling`: how much threads waited at locks, how different the threads of a group
//! were, and how many moved.

use cosched_core::Why;
use cosched_policy::reasons::ShufflingReason;
use cosched_results::result::RunResult;

use super::courses::{Course, CoursePoint, Courses};
use super::panel::{Panel, Plot};
use crate::history::reasons_about;
use crate::words;

/// The figures of each program with shuffled threads: at each shuffling, and when the threads
/// were released.
pub(super) fn shuffles(run: &RunResult) -> Option<Panel> {
    let course = |slot: usize| {
        let program = &run.programs[slot];
        let points = reasons_about(run, slot).filter_map(|(at, why)| point(at, why));
        let changes: Vec<CoursePoint> = points.collect();
        let end = program.timeline.last().map_or(run.total_seconds, |span| span.1);
        (!changes.is_empty()).then(|| Course { name: program.name.clone(), changes, end })
    };
    let rows: Vec<Course> = (0..run.programs.len()).filter_map(course).collect();
    (!rows.is_empty()).then(|| Panel {
        id: "shuffles",
        title: "Waits at locks, and how threads were moved".to_owned(),
        says:
            "Each program's time at locks (mean share of its threads' time), the mean difference \
               from that within a group before threads were moved, and how many threads moved to \
               another group of CPUs."
                .to_owned(),
        plot: Plot::Courses(Courses {
            total: run.total_seconds,
            shares: ["time at locks", "difference in a group"],
            level: ("moved", "threads"),
            actuators: Vec::new(),
            rows,
        }),
    })
}

/// The figures of a reason. Trials have none: threads only change their groups if a trial's groups
/// are kept, or the earlier ones are not.
fn point(at: f64, why: &Why) -> Option<CoursePoint> {
    let (shares, level, in_force) = match why.read()? {
        ShufflingReason::Shuffled { moved, groups, lock_time, before, .. } => (
            [lock_time, before.min(1.0)],
            f64::from(moved),
            words::count(groups.into(), "group", "groups"),
        ),
        ShufflingReason::Unbound { lock_time } => ([lock_time, 0.0], 0.0, "anywhere".to_owned()),
        ShufflingReason::GroupsPutBack { groups: 0, .. } => ([0.0; 2], 0.0, "anywhere".to_owned()),
        _ => return None,
    };
    let why = words::reason(why);
    Some(CoursePoint { at, shares, level, actuator: None, tried: None, in_force, why, mark: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn shuffled_programs_have_their_figures() {
        let Some(Panel { plot: Plot::Courses(courses), .. }) = shuffles(&testkit::shuffling())
        else {
            panic!()
        };
        let [row] = &courses.rows[..] else { panic!("{courses:?}") };
        assert_eq!((row.name.as_str(), row.changes.len()), ("a", 2));
        let [first, last] = [&row.changes[0], &row.changes[1]];
        assert_eq!((first.shares, first.level), ([0.6, 0.2], 3.0));
        assert!(first.why.contains("3 of 8 threads moved"), "{}", first.why);
        assert_eq!((last.in_force.as_str(), last.level), ("anywhere", 0.0));
        assert_eq!(shuffles(&testkit::gang()), None);
    }
}
