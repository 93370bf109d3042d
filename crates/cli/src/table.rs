//! Tables for people, and how all of them look. Scripts read `--json`.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use cosched_core::result::{NONE, ProgramResult, RunResult, Rungs};
use cosched_core::{Exit, Waits};
use cosched_report::{after, molding, silence, words};

use crate::deviations;

/// Columns of a table of sentences where no terminal says how many there are.
const WIDTH: u16 = 100;
/// A longer command than this is too long to paste.
const LONGEST_COMMAND: usize = 1000;

/// One run: a row per program, and the workload below. What is known of no program has no column.
/// `profile` is the command that measures its programs alone, where there is one.
pub(crate) fn run(result: &RunResult, profile: Option<&str>) -> String {
    let solo = result.programs.iter().any(|program| program.solo_seconds.is_some());
    let times = ["program", "threads", "turnaround s", "running s", "waiting s"];
    let against_solo: &[&str] = if solo { &["alone s", "slowdown"] } else { &[] };
    let waits = result.programs.iter().any(|program| program.usage.waits.is_some());
    let waiting: &[&str] = if waits { &WAITS } else { &[] };
    let mut table = table(&[&times, against_solo, waiting, &["end"]].concat());
    for program in &result.programs {
        let mut row = vec![
            text(&program.name),
            number(program.threads),
            seconds(program.turnaround_seconds),
            seconds(Some(program.running_seconds)),
            seconds(Some(program.waiting_seconds)),
        ];
        if solo {
            row.extend([seconds(program.solo_seconds), ratio(program.slowdown)]);
        }
        if waits {
            row.extend(waited(program.usage.waits));
        }
        row.push(text(&end(program)));
        table.add_row(row);
    }
    [
        vec![table.to_string()],
        summary(result, profile),
        deviations::sentences([result]),
        silence::sentences([result]),
        molding::sentences([result]),
    ]
    .concat()
    .join("\n")
}

/// What waiting for siblings cost, in CPU seconds; and the mean latency of a barrier.
const WAITS: [&str; 5] = ["useful s", "spun s", "lag s", "barriers", "latency us"];

fn waited(waits: Option<Waits>) -> [Cell; 5] {
    let latency = waits.and_then(|waits| waits.mean_latency_seconds());
    [
        seconds(waits.map(|waits| waits.useful_seconds)),
        seconds(waits.map(|waits| waits.spun_seconds)),
        seconds(waits.map(|waits| waits.lag_seconds)),
        number(waits.map_or("–".to_owned(), |waits| waits.barriers.to_string())),
        number(latency.map_or("–".to_owned(), |latency| format!("{:.1}", 1e6 * latency))),
    ]
}

fn summary(result: &RunResult, profile: Option<&str>) -> Vec<String> {
    let metrics = &result.metrics;
    let mut lines = vec![format!(
        "{}: {:.2} s in all{}; {}.",
        result.policy,
        result.total_seconds,
        words::cpu_use(result),
        rungs(&result.rungs),
    )];
    let unfairness =
        metrics.unfairness.map(|ratio| format!("largest / smallest slowdown {ratio:.2}"));
    let speedup = metrics.weighted_speedup.map(|sum| format!("weighted speedup {sum:.2}"));
    let frozen = Some(metrics.responsiveness_longest_gap_seconds).filter(|longest| *longest > 0.0);
    let frozen = frozen.map(|longest| format!("longest frozen {longest:.2} s"));
    let known: Vec<String> = [unfairness, speedup, frozen].into_iter().flatten().collect();
    if !known.is_empty() {
        lines.push(format!("In this run: {}.", known.join(", ")));
    }
    // A program that failed has not done the work that takes so long alone.
    let lacks_solo =
        |program: &ProgramResult| program.exit == Some(Exit::Code(0)) && program.slowdown.is_none();
    if let Some(profile) = profile.filter(|_| result.programs.iter().any(lacks_solo)) {
        lines.push(match profile.len() <= LONGEST_COMMAND {
            true => format!("Slowdowns need solo times, which this command measures:\n  {profile}"),
            false => {
                "Slowdowns need solo times, which `cosched profile` measures of the same programs."
                    .to_owned()
            }
        });
    }
    lines.extend(words::kept_from(result));
    if let Some(signal) = &result.interrupted_by {
        lines.push(format!("Interrupted ({signal}) before every program had ended."));
    }
    lines
}

fn rungs(rungs: &Rungs) -> String {
    match rungs.pinning.strip_prefix(NONE) {
        Some(share) if rungs.freezing == NONE => format!("nothing frozen or bound{share}"),
        _ => format!("freezing by {}, binding by {}", rungs.freezing, rungs.pinning),
    }
}

fn end(program: &ProgramResult) -> String {
    let how = after::end(program);
    if program.left_running { format!("{how}, left running") } else { how }
}

/// A table with these columns.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(header.iter().map(Cell::new));
    table
}

/// A table whose columns are figures, but for the first.
pub(crate) fn figures(header: &[&str]) -> Table {
    let mut table = table(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A table with sentences in it, which are broken where the terminal ends.
pub(crate) fn sentences(header: &[&str]) -> Table {
    let mut table = table(header);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    // A terminal tells how wide it is; a file or a pager does not.
    if !table.is_tty() {
        table.set_width(WIDTH);
    }
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

#[cfg(test)]
mod tests {
    use cosched_core::engine::outcome::{Completion, Deviation, Ended, Outcome, ProgramOutcome};
    use cosched_core::result::{Context, MachineDescription, ProgramContext};
    use cosched_core::{Aspect, Exit, Nanos, ProgramId, Refusal, Usage};

    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// Programs that ran for a second each, with these times alone, and what was not as wanted.
    fn shown(solo: &[Option<Nanos>], deviations: &[(u16, Refusal)], rung: &str) -> String {
        let end = Completion { at: SECOND, exit: Exit::Code(0), usage: Usage::default() };
        let program = ProgramOutcome {
            started: Some(Nanos::ZERO),
            completions: vec![end].into(),
            done: Some(SECOND),
            ran: SECOND,
            ..ProgramOutcome::default()
        };
        let deviation = |(slot, why): &(u16, Refusal)| Deviation {
            at: SECOND,
            program: ProgramId::first(*slot),
            wanted: Aspect::Frozen,
            why: *why,
        };
        let outcome = Outcome {
            ended: Ended::Complete,
            total: SECOND,
            cpus: 2,
            programs: vec![program; solo.len()],
            decisions: vec![].into(),
            deviations: deviations.iter().map(deviation).collect(),
            wake_lateness: vec![].into(),
            switches: vec![].into(),
            switch_gaps: vec![].into(),
        };
        let context = Context {
            policy: "some".into(),
            placement: None,
            quantum: None,
            max_frozen: None,
            fill: None,
            started_at: String::new(),
            machine: MachineDescription { cpus: 2, model: None, kernel: "6.18".into() },
            simulation: None,
            rungs: Rungs { freezing: rung.into(), pinning: rung.into() },
            own_cpu_seconds: 0.0,
            programs: ["solver", "cg"]
                .iter()
                .zip(solo)
                .map(|(name, solo)| ProgramContext {
                    name: (*name).to_owned(),
                    command: vec![],
                    threads: 1,
                    molded: None,
                    solo: *solo,
                    after: Vec::new(),
                    terms: None,
                    environment: None,
                    barrier: None,
                    instead_of_progress: None,
                })
                .collect(),
        };
        run(&RunResult::new(&outcome, &context), Some("cosched profile jobs.toml"))
    }

    #[test]
    fn what_is_not_known_has_no_column_and_no_line_and_there_is_one_hint() {
        let text = shown(&[None, None], &[], NONE);
        for absent in ["alone", "unfair", "unknown", "longest frozen", "–", "In this run"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        assert!(text.contains("nothing frozen or bound."), "{text}");
        assert_eq!(text.matches("cosched profile").count(), 1, "{text}");
    }

    #[test]
    fn what_is_known_is_shown() {
        let text = shown(&[Some(SECOND / 2), Some(SECOND / 4)], &[], "signals");
        for part in ["alone s", "slowdown 2.00", "speedup 0.75", "freezing by signals"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("cosched profile"), "{text}");
        let one = shown(&[Some(SECOND / 2), None], &[], "signals");
        assert!(one.contains("alone s") && one.contains("cosched profile"), "{one}");
    }

    #[test]
    fn each_kind_of_deviation_has_a_line_with_the_programs_it_happened_to() {
        let late = Refusal::TimedOut;
        let several = [(1, late), (0, Refusal::Listens), (0, late), (1, late)];
        let text = shown(&[None, None], &several, "signals");
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("its turn")).collect();
        assert_eq!(
            lines,
            [
                "3 times a program ran outside its turn because freezing was not confirmed in time (cg 2, solver 1).",
                "Once a program ran outside its turn because it listens on a socket (solver 1).",
            ]
        );
    }
}
