//! What `faithful` contributes: how much threads waited for locks and memory, and what was done
//! about it.

use cosched_core::result::RunResult;
use cosched_core::{Actuator, Why};

use super::{Course, Courses, Mark, Panel, Plot, Point};
use crate::treatment::{self, Change};

/// Lock contention, scaling factor and slice of each program, and how its threads were scheduled.
/// The figures are those of the decisions: while they move by less than a row of the table, they
/// stay as they were.
pub(super) fn treatment(run: &RunResult) -> Option<Panel> {
    let changes: Vec<(usize, Vec<Change>)> = (0..run.programs.len())
        .map(|slot| (slot, treatment::changes(run, slot)))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    let known = || changes.iter().flat_map(|(_, changes)| changes).map(|change| change.now);
    let is_there =
        |way: &Actuator| known().any(|now| now.in_force == Some(*way) || now.tried == Some(*way));
    let ways: Vec<Actuator> = Actuator::ALL.into_iter().filter(is_there).collect();
    let course = |(slot, changes): &(usize, Vec<Change>)| {
        let program = &run.programs[*slot];
        Course {
            name: program.name.clone(),
            changes: changes.iter().filter_map(|change| point(change, &ways)).collect(),
            end: program.timeline.last().map_or(run.total_seconds, |span| span.1),
        }
    };
    let tried = match known().any(|now| now.tried.is_some()) {
        false => "",
        true => {
            " Ways to schedule its threads were tried: what was shown to make the program faster was kept, everything else \
             put back. During a trial a program goes to and fro between two of them."
        }
    };
    (!changes.is_empty()).then(|| Panel {
        id: "treatment",
        title: "Locks, slices, and what was done".to_owned(),
        says: format!(
            "Lock contention is the share of a program's threads' time that they waited for locks; the scaling factor is \
             what the larger of it and the cache miss ratio leaves; the slice is the one that the table has for it. All \
             are as of the last decision.{tried}"
        ),
        plot: Plot::Courses(Courses {
            total: run.total_seconds,
            shares: ["lock contention", "scaling factor"],
            level: ("slice", "ms"),
            ways: ways.iter().map(|way| treatment::name(*way)).collect(),
            rows: changes.iter().map(course).collect(),
        }),
    })
}

fn point(change: &Change, ways: &[Actuator]) -> Option<Point> {
    let chosen = change.now.chosen?;
    let place = |way: Option<Actuator>| ways.iter().position(|known| Some(*known) == way);
    Some(Point {
        at: change.at.as_secs_f64(),
        shares: [chosen.lock_contention, chosen.scaling_factor()],
        level: 1e3 * chosen.slice.as_secs_f64(),
        way: place(change.now.in_force),
        tried: place(change.now.tried),
        in_force: treatment::in_words(&change.now)?,
        why: change.because(),
        mark: change.whys.iter().find_map(|why| match *why {
            Why::Kept { actuator, .. } => place(Some(actuator)).map(|way| (Mark::Kept, way)),
            Why::PutBack { actuator, .. } => place(Some(actuator)).map(|way| (Mark::PutBack, way)),
            _ => None,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn a_program_has_its_figures_what_was_done_and_what_came_of_it() {
        let Some(Panel { plot: Plot::Courses(courses), says, .. }) =
            treatment(&testkit::faithful())
        else {
            panic!()
        };
        assert!(says.contains("put back"));
        let [a, b] = &courses.rows[..] else { panic!("{courses:?}") };
        assert_eq!(courses.ways, ["as found", "slice", "batch-slice"]);
        let marks: Vec<_> = a.changes.iter().map(|point| point.mark).collect();
        assert_eq!(marks, [None, None, Some((Mark::Kept, 1)), Some((Mark::PutBack, 2))]);
        let ways: Vec<_> =
            a.changes.iter().map(|point| (point.way.unwrap(), point.tried)).collect();
        assert_eq!(ways, [(0, None), (0, Some(1)), (1, Some(2)), (1, None)]);
        assert_eq!((a.changes[3].in_force.as_str(), a.end), ("slice 200 ms", 0.6));
        assert!((a.changes[0].shares[1] - 0.16).abs() < 1e-9 && b.changes.len() == 1);
        assert!(a.changes[3].why.contains("0.40 times the progress"), "{}", a.changes[3].why);
        assert_eq!(treatment(&testkit::gang()), None);
        let mut untried = testkit::faithful();
        untried.decisions.truncate(2);
        let panel = treatment(&untried).unwrap();
        assert!(!panel.says.contains("tried"));
        assert!(matches!(panel.plot, Plot::Courses(Courses { ways, .. }) if ways == ["as found"]));
    }
}
