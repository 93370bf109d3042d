//! Tables for people. Scripts read `--json`.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, Table};
use cosched_core::Exit;
use cosched_core::result::{ProgramResult, RunResult};

/// One run: a row per program, and the workload below. `profile` is the command that measures its programs alone.
pub(crate) fn run(result: &RunResult, profile: &str) -> String {
    let header = [
        "program",
        "threads",
        "turnaround s",
        "running s",
        "waiting s",
        "alone s",
        "slowdown",
        "end",
    ];
    let mut table = table(&header);
    for program in &result.programs {
        table.add_row([
            text(&program.name),
            number(program.threads),
            seconds(program.turnaround_seconds),
            seconds(Some(program.running_seconds)),
            seconds(Some(program.waiting_seconds)),
            seconds(program.solo_seconds),
            ratio(program.slowdown),
            text(&end(program)),
        ]);
    }
    format!("{table}\n{}", summary(result, profile))
}

fn summary(result: &RunResult, profile: &str) -> String {
    let metrics = &result.metrics;
    let shown = |value: Option<f64>| value.map_or("unknown".to_owned(), |v| format!("{v:.2}"));
    let mut lines = vec![format!(
        "{}: {:.2} s in all, CPU use {:.0} %; freezing by {}, binding by {}.",
        result.policy,
        result.total_seconds,
        metrics.cpu_utilisation * 100.0,
        result.rungs.freezing,
        result.rungs.pinning,
    )];
    lines.push(format!(
        "Unfairness (largest / smallest slowdown) {}, weighted speedup {}, longest frozen {:.2} s.",
        shown(metrics.unfairness),
        shown(metrics.weighted_speedup),
        metrics.responsiveness_longest_gap_seconds,
    ));
    let lacks_solo = |program: &ProgramResult| {
        program.turnaround_seconds.is_some() && program.slowdown.is_none()
    };
    if result.programs.iter().any(lacks_solo) {
        lines.push(format!("Slowdowns need solo times, which this command measures:\n  {profile}"));
    }
    if let Some(signal) = &result.interrupted_by {
        lines.push(format!("Interrupted ({signal}) before every program had ended."));
    }
    lines.join("\n")
}

fn end(program: &ProgramResult) -> String {
    let how = match program.exit {
        None => "not ended".to_owned(),
        Some(Exit::Code(0)) => "ok".to_owned(),
        Some(Exit::Code(code)) => format!("status {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        Some(Exit::Failed(_)) => "not started".to_owned(),
        Some(Exit::Unknown) => "unknown".to_owned(),
    };
    if program.left_running { format!("{how}, left running") } else { how }
}

/// A table whose first column is text, and the last one where it says how things ended.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(header.iter().map(Cell::new));
    table
}

pub(crate) fn text(value: &str) -> Cell {
    Cell::new(value)
}

pub(crate) fn number(value: impl ToString) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}

fn seconds(value: Option<f64>) -> Cell {
    number(value.map_or("–".to_owned(), |v| format!("{v:.2}")))
}

fn ratio(value: Option<f64>) -> Cell {
    number(value.map_or("–".to_owned(), |v| format!("{v:.3}")))
}
