//! Where the time of every program went, and who was treated how.

use cosched_core::result::{ProgramResult, RunResult};

use super::{Bar, Dot, Dots, INTERFERENCE, Panel, Plot, STOPPED, Stack, WAITING};
use crate::history::stopped_seconds;

/// The thesis' figures 5.5 to 5.8 in one: t = t_alone + t_waiting + t_interference (equation 4.1).
/// Where a time alone is unknown, only running and waiting can be distinguished. While another
/// process held a program stopped, the program did neither, and no co-runner made it slower. That
/// time is a part of its own, where there is any.
pub(super) fn turnaround(run: &RunResult) -> Option<Panel> {
    let split = run.programs.iter().all(|program| program.interference_seconds.is_some());
    let held = run.programs.iter().any(|program| stopped_seconds(program) > 0.0);
    let parts = |program: &ProgramResult| {
        let (waiting, stopped) = (program.waiting_seconds, stopped_seconds(program));
        let mut parts = match (program.alone_as_started_seconds(), program.interference_seconds) {
            (Some(alone), Some(interference)) if split => {
                vec![alone, waiting, interference - stopped]
            }
            _ => vec![program.running_seconds, waiting],
        };
        parts.extend(held.then_some(stopped));
        parts
    };
    let bar = |program: &ProgramResult| Bar { name: program.name.clone(), parts: parts(program) };
    let (mut names, says) = match split {
        true => (
            vec!["alone", WAITING, INTERFERENCE],
            "Each program's time from its arrival to its end: what the same work takes alone (with the \
             threads with which it was started), how long it waited (not \
             started, or frozen), and the rest, which its company cost. A negative rest means that the run alone \
             was the slower one; it has no bar.",
        ),
        false => (
            vec!["running", WAITING],
            "How long each program was allowed to run, and how long it waited (not started, or frozen) until its end. \
             What the programs take alone is not known; `cosched profile` measures it.",
        ),
    };
    names.extend(held.then_some(STOPPED));
    let others = if held { " Stopped: somebody else held it." } else { "" };
    Some(Panel {
        id: "turnaround",
        title: "Where the time went".to_owned(),
        says: format!("{says}{others}"),
        plot: Plot::Stack(Stack {
            unit: "s",
            parts: names,
            rows: run.programs.iter().map(bar).collect(),
        }),
    })
}

/// The thesis' figure 5.9 for a single run: f = t_alone / t of every program (equation 4.2).
pub(super) fn fairness(run: &RunResult) -> Option<Panel> {
    let deviation = run.metrics.fairness_stddev?;
    let row = |program: &ProgramResult| Dot {
        name: program.name.clone(),
        value: program.slowdown.map(|slowdown| 1.0 / slowdown),
        interval: None,
    };
    Some(Panel {
        id: "fairness",
        title: "Speed relative to running alone".to_owned(),
        says: format!(
            "1 is as fast as alone. The closer the dots, the fairer: their standard deviation is {deviation:.3} (0 is \
             perfectly fair)."
        ),
        plot: Plot::Dots(Dots {
            unit: "t alone / t",
            reference: Some(1.0),
            rows: run.programs.iter().map(row).collect(),
        }),
    })
}

/// The thesis' responsiveness (equation 4.4) of every program, with its longest wait. Nothing where
/// no program was frozen.
pub(super) fn waiting(run: &RunResult) -> Option<Panel> {
    let frozen = |program: &ProgramResult| program.longest_frozen_seconds > 0.0;
    run.programs.iter().any(frozen).then_some(())?;
    let row = |program: &ProgramResult| Dot {
        name: program.name.clone(),
        value: Some(program.longest_frozen_seconds),
        interval: None,
    };
    Some(Panel {
        id: "waiting",
        title: "Longest time frozen at a stretch".to_owned(),
        says: format!(
            "How long a program did not answer at worst. The mean of a program's waits was at most {:.3} s. A dashed line \
             is the quantum that was asked for.",
            run.metrics.responsiveness_max_seconds
        ),
        plot: Plot::Dots(Dots {
            unit: "s",
            reference: run.quantum_seconds,
            rows: run.programs.iter().map(row).collect(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn time_that_somebody_else_took_is_a_part_of_its_own_and_no_interference() {
        let stack = |run: &RunResult| match turnaround(run).unwrap().plot {
            Plot::Stack(stack) => stack,
            other => panic!("{other:?}"),
        };
        let mut run = testkit::gang();
        assert_eq!(stack(&run).parts, ["alone", "waiting", "interference"]);
        let (turnaround, waiting) = (0.9, run.programs[1].waiting_seconds);
        run.programs[1].turnaround_seconds = Some(turnaround);
        run.programs[1].interference_seconds = Some(turnaround - 0.3 - waiting);
        let held = stack(&run);
        assert_eq!(held.parts, ["alone", "waiting", "interference", "stopped"]);
        let sums: f64 = held.rows[1].parts.iter().sum();
        assert!((sums - turnaround).abs() < 1e-9 && (held.rows[1].parts[3] - 0.3).abs() < 1e-9);
        run.programs[0].solo_seconds = None;
        run.programs[0].interference_seconds = None;
        assert_eq!(stack(&run).parts, ["running", "waiting", "stopped"]);
    }
}
