//! What a run ends with: a row per program, a line that says how it went, and below it what to type
//! next.

use comfy_table::Cell;
use cosched_core::{Exit, Waits};
use cosched_report::{after, disturbance, molding, shortened, silence, spent, words};
use cosched_results::result::{Backends, NONE, ProgramResult, RunResult};

use crate::deviations;
use crate::ui::table::{known, number, table, text};

/// A shorter wait for the start is none that a user would see, seconds.
const QUEUED: f64 = 0.05;
/// What cosched sends to programs that do not end in time.
const SIGKILL: u8 = 9;

/// What is told after the table.
#[derive(Clone, Debug, Default)]
pub struct AfterTable {
    /// The last lines: where things are, and what to type next.
    pub next: Vec<String>,
    /// Whether to tell how programs were frozen and bound to CPUs.
    pub means: bool,
}

/// One run: a row per program, and the verdict below. A figure that is not known is a dash.
pub fn run(result: &RunResult, after: &AfterTable) -> String {
    let columns = columns(result);
    let mut table = table(&columns.iter().map(|(header, _)| *header).collect::<Vec<_>>());
    for program in &result.programs {
        table.add_row(columns.iter().map(|(_, cell)| cell(program)));
    }
    [
        vec![table.to_string()],
        details(result, after.means),
        deviations::sentences([result]),
        silence::sentences([result]),
        molding::sentences([result]),
        shortened::sentence(result).into_iter().collect(),
        disturbance::impossible_solos([result]).into_iter().collect(),
        vec![verdict(result)],
        after.next.clone(),
    ]
    .concat()
    .join("\n")
}

type Column = (&'static str, Box<dyn Fn(&ProgramResult) -> Cell>);

fn column(header: &'static str, cell: impl Fn(&ProgramResult) -> Cell + 'static) -> Column {
    (header, Box::new(cell))
}

fn columns(result: &RunResult) -> Vec<Column> {
    let freezes = result.backends.freezing != NONE;
    let mut columns = vec![
        column("program", |program| text(&program.name)),
        column("exit", |program| text(&end(program))),
        column("seconds", |program| seconds(program.turnaround_seconds)),
        column("paused s", move |program| seconds(paused(program, freezes))),
        column("CPU s", |program| seconds(cpu(program))),
    ];
    if result.programs.iter().any(|program| queued(program, freezes) > QUEUED) {
        let queued = move |program: &ProgramResult| seconds(Some(queued(program, freezes)));
        columns.insert(3, column("queued s", queued));
    }
    columns.push(match result.machine.is_simulated() {
        true => column("threads", |program| number(program.threads)),
        false => column("threads seen", |program| number(maybe(program.threads_seen))),
    });
    if knows_solo(result) {
        columns.push(column("solo s", |program| seconds(program.solo_seconds)));
        columns.push(column("slowdown", |program| number(known(program.slowdown, 3))));
    }
    if result.programs.iter().any(|program| program.usage.waits.is_some()) {
        columns.extend(WAITS.into_iter().enumerate().map(|(i, header)| {
            column(header, move |program| waited(program.usage.waits)[i].clone())
        }));
    }
    columns
}

/// What waiting for siblings cost, in CPU seconds; and the mean latency of a barrier.
const WAITS: [&str; 5] = ["useful s", "spun s", "lag s", "barriers", "latency us"];

fn waited(waits: Option<Waits>) -> [Cell; 5] {
    let latency = waits.and_then(|waits| waits.mean_latency_seconds());
    [
        seconds(waits.map(|waits| waits.useful_seconds)),
        seconds(waits.map(|waits| waits.spun_seconds)),
        seconds(waits.map(|waits| waits.lag_seconds)),
        number(maybe(waits.map(|waits| waits.barriers))),
        number(known(latency.map(|latency| 1e6 * latency), 1)),
    ]
}

fn seconds(value: Option<f64>) -> Cell {
    number(known(value, 2))
}

/// What is not known is a dash.
fn maybe(value: Option<impl ToString>) -> String {
    value.map_or("–".to_owned(), |value| value.to_string())
}

/// How long a program waited before it was started.
fn queued(program: &ProgramResult, freezes: bool) -> f64 {
    match program.started_seconds {
        Some(started) if freezes => started - program.arrived_seconds,
        _ => program.waiting_seconds,
    }
}

/// How long it was paused after that; `None`: it never ran.
fn paused(program: &ProgramResult, freezes: bool) -> Option<f64> {
    program.started_seconds?;
    Some((program.waiting_seconds - queued(program, freezes)).max(0.0))
}

/// Its CPU time, where the kernel has told it: with its end, and not of what was attached to.
fn cpu(program: &ProgramResult) -> Option<f64> {
    let used = program.usage.user_seconds + program.usage.system_seconds;
    let is_known = matches!(program.exit, Some(Exit::Code(_) | Exit::Signal(_)));
    Some(used).filter(|used| is_known || *used > 0.0)
}

fn knows_solo(result: &RunResult) -> bool {
    result.programs.iter().any(|program| program.solo_seconds.is_some())
}

/// Whether it ran faster than alone, and with as many threads.
fn is_faster_than_alone(program: &ProgramResult) -> bool {
    program.molded_solo_seconds.is_none()
        && program.slowdown.is_some_and(|slowdown| slowdown < 0.99)
}

/// What is known of the run as a whole.
fn details(result: &RunResult, means: bool) -> Vec<String> {
    let metrics = &result.metrics;
    let mut lines = Vec::new();
    let unfairness = metrics.unfairness.map(|ratio| format!("unfairness {ratio:.2}"));
    let speedup = metrics.weighted_speedup.map(|sum| format!("weighted speedup {sum:.2}"));
    let paused = Some(metrics.responsiveness_longest_gap_seconds).filter(|longest| *longest > 0.0);
    let paused = paused.map(|longest| format!("longest pause {longest:.2} s"));
    let known: Vec<String> = [unfairness, speedup, paused].into_iter().flatten().collect();
    if !known.is_empty() {
        lines.push(format!("In this run: {}.", known.join(", ")));
    }
    if result.machine.is_simulated() && result.programs.iter().any(is_faster_than_alone) {
        let why = "A slowdown below 1: solo runs bind threads to CPUs as `--placement` says, and \
                   here they ran on other CPUs.";
        lines.push(why.to_owned());
    }
    if result.programs.iter().any(|program| program.in_kernel.is_some()) {
        lines.push("Threads were scheduled by cosched's scheduler in the kernel.".to_owned());
    }
    if means {
        lines.push(format!("{}{}.", backends(&result.backends), words::cpu_use(result)));
    }
    lines.extend(words::kept_from(result));
    lines
}

fn backends(Backends { freezing, pinning }: &Backends) -> String {
    let (pinning, shares) = match pinning.split_once(", ") {
        Some((pinning, shares)) => (pinning, format!(" ({shares})")),
        None => (pinning.as_str(), String::new()),
    };
    let done = match (freezing == NONE, pinning == NONE) {
        (true, true) => "No program was frozen or bound to CPUs".to_owned(),
        (true, false) => format!("No program was frozen; all were bound to CPUs by {pinning}"),
        (false, true) => format!("Programs were frozen by {freezing}, and not bound to CPUs"),
        (false, false) => {
            format!("Programs were frozen by {freezing}, and bound to CPUs by {pinning}")
        }
    };
    done + &shares
}

/// The run in one line: how long, how the time was spent, what was in the way.
fn verdict(result: &RunResult) -> String {
    let spent = spent::clause(result);
    let mut sentences =
        vec![format!("{}: {:.2} s in all{spent}.", result.policy_in_words(), result.total_seconds)];
    if let Some(signal) = &result.interrupted_by {
        sentences.push(format!("Interrupted ({signal}) before every program had ended."));
        let killed = |program: &&ProgramResult| program.exit == Some(Exit::Signal(SIGKILL));
        let killed = result.programs.iter().filter(killed).map(|program| program.name.clone());
        let killed: Vec<String> = killed.collect();
        if !killed.is_empty() {
            sentences.push(format!("Killed by cosched: {}.", words::list(&killed)));
        }
    }
    sentences.extend(disturbance::sentence(result));
    sentences.join(" ")
}

fn end(program: &ProgramResult) -> String {
    let how = after::end(program);
    if program.left_running { format!("{how}, left running") } else { how }
}

#[cfg(test)]
mod tests {
    use cosched_core::engine::outcome::{Completion, Deviation, Ended, Outcome, ProgramOutcome};
    use cosched_core::{Aspect, Exit, Nanos, ProgramId, Refusal, Usage};
    use cosched_results::result::{Context, MachineDescription, ProgramContext, TimelineEntry};

    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// Programs that ran for a second each, with these solo times, and deviations.
    fn result(solo: &[Option<Nanos>], deviations: &[(u16, Refusal)], backend: &str) -> RunResult {
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
            what: Aspect::Frozen,
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
            cost: Default::default(),
            switch_gaps: vec![].into(),
        };
        let context = Context {
            policy: "some".into(),
            decided_by: None,
            placement: None,
            quantum: None,
            max_frozen: None,
            fill: None,
            started_at: String::new(),
            machine: MachineDescription { cpus: 2, model: None, kernel: "6.18".into() },
            simulation: None,
            backends: Backends { freezing: backend.into(), pinning: backend.into() },
            own_cpu_seconds: 0.0,
            programs: ["solver", "cg"]
                .iter()
                .zip(solo)
                .map(|(name, solo)| ProgramContext {
                    name: (*name).to_owned(),
                    command: vec![],
                    threads: 1,
                    molded: None,
                    after: Vec::new(),
                    solo: *solo,
                    solo_cpu: None,
                    terms: None,
                    environment: None,
                    barrier: None,
                    instead_of_progress: None,
                })
                .collect(),
        };
        RunResult::new(&outcome, &context)
    }

    fn text_of(result: &RunResult) -> String {
        let next = vec!["Next: `cosched explain out`.".to_owned()];
        run(result, &AfterTable { next, means: true })
    }

    #[test]
    fn without_solo_times_nothing_is_said_of_them() {
        let text = text_of(&result(&[None, None], &[], NONE));
        for absent in ["solo", "slowdown", "unfair", "unknown", "longest pause", "In this run"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        assert!(text.contains("No program was frozen or bound to CPUs."), "{text}");
    }

    #[test]
    fn what_is_known_is_shown() {
        let text = text_of(&result(&[Some(SECOND / 2), Some(SECOND / 4)], &[], "signals"));
        for part in ["solo s", "unfairness 2.00", "speedup 0.75", "frozen by signals, and"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_figure_that_is_not_known_is_a_dash() {
        let mut result = result(&[None, None], &[], NONE);
        result.programs[0].threads_seen = Some(12);
        result.programs[1].exit = Some(Exit::Unknown);
        let text = text_of(&result);
        let row = |name: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(row("solver"), ["solver", "ok", "1.00", "0.00", "0.00", "12"]);
        assert_eq!(row("cg"), ["cg", "unknown", "1.00", "0.00", "–", "–"]);
    }

    #[test]
    fn the_verdict_has_a_line_of_its_own_above_the_last() {
        let mut result = result(&[None, None], &[], NONE);
        let verdict = |result: &RunResult| {
            let text = text_of(result);
            let mut lines = text.lines().rev();
            assert_eq!(lines.next(), Some("Next: `cosched explain out`."));
            lines.next().unwrap().to_owned()
        };
        assert_eq!(verdict(&result), "some: 1.00 s in all.");
        for program in &mut result.programs {
            program.timeline = vec![TimelineEntry(0.0, 1.0, None)];
        }
        result.others_cpu_seconds = Some(1.9);
        assert_eq!(
            verdict(&result),
            "some: 1.00 s in all: running together 100 %. Other processes used 1.9 of 2 CPUs."
        );
        result.interrupted_by = Some("SIGINT".into());
        assert!(verdict(&result).contains("Interrupted (SIGINT)"), "{}", verdict(&result));
        assert!(!verdict(&result).contains("Killed"), "{}", verdict(&result));
        result.programs[0].exit = Some(Exit::Signal(SIGKILL));
        let killed = format!("Killed by cosched: {}.", result.programs[0].name);
        assert!(verdict(&result).contains(&killed), "{}", verdict(&result));
    }

    #[test]
    fn an_impossible_solo_time_is_not_used() {
        let text = text_of(&result(&[Some(SECOND * 2), Some(SECOND / 4)], &[], "signals"));
        assert!(text.contains("The solo time of 'solver' ("), "{text}");
        for absent in ["0.500", "unfairness", "weighted speedup"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        assert!(text.contains("4.000"), "that of cg is possible: {text}");
        let none = text_of(&result(&[Some(SECOND * 2), None], &[], "signals"));
        assert!(!none.contains("solo s"), "no column of dashes: {none}");
    }

    #[test]
    fn a_wait_for_the_start_is_no_pause() {
        let mut result = result(&[None, None], &[], "signals");
        let late = &mut result.programs[1];
        (late.started_seconds, late.waiting_seconds) = (Some(0.5), 0.75);
        let text = text_of(&result);
        let row = text.lines().find(|line| line.contains("cg")).unwrap();
        assert!(text.contains("queued s") && row.contains("0.50"), "{text}");
        assert!(row.contains("0.25"), "{text}");
    }

    #[test]
    fn each_kind_of_deviation_has_a_line_with_its_programs() {
        let late = Refusal::TimedOut;
        let several = [(1, late), (0, Refusal::Listens), (0, late), (1, late)];
        let text = text_of(&result(&[None, None], &several, "signals"));
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("its turn")).collect();
        assert_eq!(
            lines,
            [
                "3 times a program ran outside its turn because pausing it took too long \
                 (cg 2 times, solver 1 time).",
                "Once a program ran outside its turn because it listens on a socket (solver).",
            ]
        );
    }
}
