//! Where the time of every program went, and who was treated how.

use cosched_core::result::{ProgramResult, RunResult};

use super::{Bar, Dot, Dots, Panel, Plot, Stack};

/// The thesis' figures 5.5 to 5.8 in one: t = t_alone + t_waiting + t_interference (equation 4.1). Where a time alone is
/// unknown, only running and waiting can be told apart.
pub(super) fn turnaround(run: &RunResult) -> Option<Panel> {
    let split = run.programs.iter().all(|program| program.interference_seconds.is_some());
    let parts = |program: &ProgramResult| match (program.solo_seconds, program.interference_seconds)
    {
        (Some(alone), Some(interference)) if split => {
            vec![alone, program.waiting_seconds, interference]
        }
        _ => vec![program.running_seconds, program.waiting_seconds],
    };
    let bar = |program: &ProgramResult| Bar { name: program.name.clone(), parts: parts(program) };
    let (names, says) = match split {
        true => (
            vec!["alone", "waiting", "interference"],
            "Each program's time from its arrival to its end: what the same work takes alone, how long it waited (not \
             started, or frozen), and the rest, which its company cost. A negative rest means that the run alone \
             was the slower one; it has no bar.",
        ),
        false => (
            vec!["running", "waiting"],
            "How long each program was allowed to run, and how long it waited (not started, or frozen) until its end. \
             What the programs take alone is not known; `cosched profile` measures it.",
        ),
    };
    Some(Panel {
        id: "turnaround",
        title: "Where the time went".to_owned(),
        says: says.to_owned(),
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

/// The thesis' responsiveness (equation 4.4) of every program, with its longest wait. Nothing where nobody was frozen.
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
