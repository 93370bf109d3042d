//! Where the time of every program went, how fair the run was, and how long programs were paused.

use cosched_results::result::{ProgramResult, RunResult};

use super::panel::{Bar, Dot, Dots, INTERFERENCE, Panel, Plot, STOPPED, Stack, WAITING};
use crate::disturbance::why_unknown;
use crate::interference::Interference;

/// The thesis' figures 5.5 to 5.8 in one: t = t_solo + t_waiting + t_interference (equation 4.1).
/// Where a solo time is unknown or cannot be true, only running and waiting are distinguished.
/// While another process had stopped a program, the program did neither, and no co-runner made it
/// slower. That time is a part of its own, where there is any.
pub(super) fn turnaround(run: &RunResult) -> Option<Panel> {
    let interference = |program: &ProgramResult| Interference::of(program).parts();
    let split = run.programs.iter().all(|program| interference(program).is_some());
    let held = run.programs.iter().any(|program| program.stopped_seconds() > 0.0);
    let parts = |program: &ProgramResult| {
        let (waiting, stopped) = (program.waiting_seconds, program.stopped_seconds());
        let mut parts = match interference(program) {
            Some((solo, lost)) if split => vec![solo, waiting, lost],
            _ => vec![program.running_seconds, waiting],
        };
        parts.extend(held.then_some(stopped));
        parts
    };
    let bar = |program: &ProgramResult| Bar { name: program.name.clone(), parts: parts(program) };
    let (mut names, says) = match split {
        true => (
            vec!["solo time", WAITING, INTERFERENCE],
            "Each program's time from its arrival to its end: solo time, waiting (not started, or \
             paused), and interference (slowdown by programs that ran at the same time)."
                .to_owned(),
        ),
        false => (
            vec!["running", WAITING],
            format!(
                "Each program's time from its arrival to its end: running and waiting (not \
                 started, or paused). {}",
                why_unknown(run)
            ),
        ),
    };
    names.extend(held.then_some(STOPPED));
    let others = if held { " Stopped: another process had stopped it." } else { "" };
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

/// The thesis' figure 5.9 for a single run: f = t_solo / t of every program (equation 4.2).
pub(super) fn fairness(run: &RunResult) -> Option<Panel> {
    let deviation = run.metrics.fairness_stddev?;
    let row = |program: &ProgramResult| Dot {
        name: program.name.clone(),
        value: program.slowdown.map(|slowdown| 1.0 / slowdown),
        interval: None,
    };
    Some(Panel {
        id: "fairness",
        title: "Speed relative to a solo run".to_owned(),
        says: format!(
            "Solo time / turnaround of each program: 1 is as fast as by itself, and the closer the \
             dots, the fairer (standard deviation {deviation:.3}; 0 is perfectly fair)."
        ),
        plot: Plot::Dots(Dots {
            unit: "solo time / turnaround",
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
    let line = run.quantum_seconds.map_or("", |_| " (dashed line: the length of a turn)");
    Some(Panel {
        id: "waiting",
        title: "Longest pause".to_owned(),
        says: format!(
            "The longest time for which each program was paused after its start, so that it did \
             not answer; the mean of a program's waits was at most {:.3} s{line}.",
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
    fn no_interference_is_shown_if_a_solo_time_cannot_be_true() {
        let mut run = testkit::gang();
        testkit::reject_solo(&mut run, 1, 0.9);
        let panel = turnaround(&run).unwrap();
        assert!(panel.says.contains("The solo time of 'b' (900 ms) is not used"), "{}", panel.says);
        assert!(!format!("{:?}", panel.table()).contains("-0."), "{panel:?}");
        assert_eq!(fairness(&run), None);
    }

    #[test]
    fn time_stopped_by_another_process_is_no_interference() {
        let stack = |run: &RunResult| match turnaround(run).unwrap().plot {
            Plot::Stack(stack) => stack,
            other => panic!("{other:?}"),
        };
        let mut run = testkit::gang();
        assert_eq!(stack(&run).parts, ["solo time", "waiting", "interference"]);
        let (turnaround, waiting) = (0.9, run.programs[1].waiting_seconds);
        run.programs[1].turnaround_seconds = Some(turnaround);
        run.programs[1].interference_seconds = Some(turnaround - 0.3 - waiting);
        let held = stack(&run);
        assert_eq!(held.parts, ["solo time", "waiting", "interference", "stopped"]);
        let sums: f64 = held.rows[1].parts.iter().sum();
        assert!((sums - turnaround).abs() < 1e-9 && (held.rows[1].parts[3] - 0.3).abs() < 1e-9);
        run.programs[0].solo_seconds = None;
        run.programs[0].interference_seconds = None;
        assert_eq!(stack(&run).parts, ["running", "waiting", "stopped"]);
    }
}
