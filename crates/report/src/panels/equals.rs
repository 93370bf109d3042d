//! The panel of `faithful`: how much threads waited for locks and memory, and how they were
//! scheduled.

use cosched_core::Actuator;
use cosched_policy::reasons::FaithfulReason;
use cosched_results::result::RunResult;

use super::courses::{Course, CoursePoint, Courses, TrialMark};
use super::panel::{Panel, Plot};
use crate::treatment::{self, TreatmentChange};

/// Lock contention, scaling factor and slice of each program, and how its threads were scheduled.
/// The figures are those of the decisions, which only change when they move by a row of the table.
pub(super) fn treatment(run: &RunResult) -> Option<Panel> {
    let changes: Vec<(usize, Vec<TreatmentChange>)> = (0..run.programs.len())
        .map(|slot| (slot, treatment::changes(run, slot)))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    let known = || changes.iter().flat_map(|(_, changes)| changes).map(|change| change.now);
    let is_there = |actuator: &Actuator| {
        known().any(|now| now.in_force == Some(*actuator) || now.tried == Some(*actuator))
    };
    let actuators: Vec<Actuator> = Actuator::ALL.into_iter().filter(is_there).collect();
    let course = |(slot, changes): &(usize, Vec<TreatmentChange>)| {
        let program = &run.programs[*slot];
        Course {
            name: program.name.clone(),
            changes: changes.iter().filter_map(|change| point(change, &actuators)).collect(),
            end: program.timeline.last().map_or(run.total_seconds, |span| span.1),
        }
    };
    let tried = match known().any(|now| now.tried.is_some()) {
        false => "",
        true => {
            " In a trial, a program alternates between two ways to schedule its threads: the new \
             way is kept if it is faster, \
             and otherwise the earlier one is restored."
        }
    };
    (!changes.is_empty()).then(|| Panel {
        id: "treatment",
        title: "Waits at locks, and how threads were scheduled".to_owned(),
        says: format!(
            "Each program's lock contention (share of its threads' time at locks), its scaling \
             factor (1 - the larger of lock contention and cache miss ratio), and the time slice \
             that the table has for it.{tried}"
        ),
        plot: Plot::Courses(Courses {
            total: run.total_seconds,
            shares: ["lock contention", "scaling factor"],
            level: ("slice", "ms"),
            actuators: actuators.iter().map(|actuator| treatment::name(*actuator)).collect(),
            rows: changes.iter().map(course).collect(),
        }),
    })
}

fn point(change: &TreatmentChange, actuators: &[Actuator]) -> Option<CoursePoint> {
    let chosen = change.now.chosen?;
    let place =
        |actuator: Option<Actuator>| actuators.iter().position(|known| Some(*known) == actuator);
    Some(CoursePoint {
        at: change.at.as_secs_f64(),
        shares: [chosen.lock_contention, chosen.scaling_factor()],
        level: 1e3 * chosen.slice.as_secs_f64(),
        actuator: place(change.now.in_force),
        tried: place(change.now.tried),
        in_force: treatment::in_words(&change.now)?,
        why: change.because(),
        mark: change.whys.iter().find_map(|why| match why.read()? {
            FaithfulReason::Kept { actuator, .. } => {
                place(Some(actuator)).map(|actuator| (TrialMark::Kept, actuator))
            }
            FaithfulReason::PutBack { actuator, .. } => {
                place(Some(actuator)).map(|actuator| (TrialMark::PutBack, actuator))
            }
            _ => None,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn a_program_has_its_figures_trials_and_results() {
        let Some(Panel { plot: Plot::Courses(courses), says, .. }) =
            treatment(&testkit::faithful())
        else {
            panic!()
        };
        assert!(says.contains("restored"));
        let [a, b] = &courses.rows[..] else { panic!("{courses:?}") };
        assert_eq!(courses.actuators, ["original", "slice", "batch-slice"]);
        let marks: Vec<_> = a.changes.iter().map(|point| point.mark).collect();
        assert_eq!(marks, [None, None, Some((TrialMark::Kept, 1)), Some((TrialMark::PutBack, 2))]);
        let actuators: Vec<_> =
            a.changes.iter().map(|point| (point.actuator.unwrap(), point.tried)).collect();
        assert_eq!(actuators, [(0, None), (0, Some(1)), (1, Some(2)), (1, None)]);
        assert_eq!((a.changes[3].in_force.as_str(), a.end), ("slice 200 ms", 0.6));
        assert!((a.changes[0].shares[1] - 0.16).abs() < 1e-9 && b.changes.len() == 1);
        assert!(a.changes[3].why.contains("0.40 times the progress"), "{}", a.changes[3].why);
        assert_eq!(treatment(&testkit::gang()), None);
        let mut untried = testkit::faithful();
        untried.decisions.truncate(2);
        let panel = treatment(&untried).unwrap();
        assert!(!panel.says.contains("trial"));
        assert!(matches!(
            panel.plot,
            Plot::Courses(Courses { actuators, .. }) if actuators == ["original"]
        ));
    }
}
