//! The words and figures of a frame, each fitted to its column.

use cosched_core::format::count;
use cosched_core::{Actuator, Exit, Why};
use cosched_policy::reasons::SharedReason;
use cosched_results::live::{BusyProcess, LiveState, Snapshot, Standing};
use cosched_workload::escaped;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::history::nanos;
use crate::{treatment, words};

/// A column: its name, its meaning, and its smallest width.
struct ScreenColumn {
    name: &'static str,
    meaning: &'static str,
    least: usize,
    right: bool,
}

const fn left(name: &'static str, least: usize, meaning: &'static str) -> ScreenColumn {
    ScreenColumn { name, meaning, least, right: false }
}

const fn right(name: &'static str, least: usize, meaning: &'static str) -> ScreenColumn {
    ScreenColumn { name, meaning, least, right: true }
}

const COUNT: usize = 19;
const PROGRAM: usize = 0;
const STATE: usize = 1;
const GANG: usize = 2;
const CPUS: usize = 3;
/// Shown where the figures are known, and there is room.
const CPU_TIME: usize = 8;
const SWITCHES: usize = 9;
/// Shown where threads wait at barriers of cosched, and there is room.
const BARRIER_STATS: usize = 10;
const ASLEEP: usize = 11;
const TURNS: usize = 12;
/// Shown instead of gangs and turns, where the policy chooses time slices, moves threads between
/// groups of CPUs, or equalises slowdowns.
const LOCKS: usize = 13;
const SLICE: usize = 14;
const MOVED: usize = 15;
const PROGRESS: usize = 16;
const SLOWED: usize = 17;
const WHY: usize = 18;

const COLUMNS: [ScreenColumn; COUNT] = [
    left("PROGRAM", 7, "its name"),
    left(
        "STATE",
        7,
        "in turn, fills (idle CPUs), runs, waits (paused), ...; then ok, exit 3, sig 9",
    ),
    left("GANG", 4, "number of the gang that has the quantum (turn), if the program is in it"),
    left("CPUS", 7, "CPUs to which cosched bound it; -: its original CPUs"),
    right("THR", 3, "threads that it requests; 1/2: it requests 2, and its thread limit is 1"),
    right("SHARE", 5, "RUN / (RUN + WAIT), of the last 5 s or since its arrival"),
    right("RUN s", 8, "how long it was allowed to run, or had its turn"),
    right("WAIT s", 8, "how long it waited for its starts, was paused, or filled"),
    right("CPU s", 8, "CPU time of its processes, if it is known and there is room"),
    right("SW/s", 6, "context switches of its threads per second, if known and there is room"),
    right("BARR/s", 6, "barriers of cosched that its threads passed per second, if there is room"),
    right("SLEPT", 5, "share of the waits at these barriers that ended asleep, if there is room"),
    right("TURNS", 6, "how many turns it had"),
    right("LOCK", 5, "share of its threads' time at locks, if the policy uses it"),
    right("SLICE", 6, "time slice set for that share; LOCK and SLICE replace GANG and TURNS"),
    right("MOVED", 6, "how often a thread was moved to another group of CPUs; replaces SLICE"),
    right("PROGR s", 7, "solo time of the work that it has done, weighted; replaces GANG"),
    right("SLOWED", 6, "slowdown since its arrival: time / solo time; replaces TURNS"),
    left("WHY", 10, "the policy's last reason, or its setting for the program's threads"),
];

/// Names get this width first, if the screen is wide enough.
const NAME: usize = 30;

pub(super) fn legend() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|column| (column.name, column.meaning))
}

/// Figures of a program over a span of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    /// Running / (running + waiting).
    pub(super) share: Option<f64>,
    /// Context switches per second.
    pub(super) switches: Option<f64>,
    /// Barriers of cosched per second.
    pub(super) barrier_stats: Option<f64>,
    /// The share of the waits at these barriers that ended asleep.
    pub(super) asleep: Option<f64>,
}

/// How wide the columns are; 0: left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns([usize; COUNT]);

impl Columns {
    pub(super) fn fitting(now: &Snapshot, width: usize) -> Columns {
        let mut needed = COLUMNS.map(|column| column.least);
        for program in &now.programs {
            for (needed, cell) in needed.iter_mut().zip(cells(now, program, Rates::default())) {
                *needed = (*needed).max(cell.width());
            }
        }
        let mut widths = COLUMNS.map(|column| column.least);
        let of = |known: fn(&Standing) -> bool| now.programs.iter().any(known);
        let (slices, moves) =
            (of(|program| program.slice.is_some()), of(|program| program.shuffled.is_some()));
        let equalises = of(|program| program.forward.is_some());
        let others: &[usize] = match (slices, moves, equalises) {
            (true, ..) => &[GANG, TURNS, MOVED, PROGRESS, SLOWED],
            (_, true, _) => &[GANG, TURNS, SLICE, PROGRESS, SLOWED],
            (.., true) => &[GANG, TURNS, LOCKS, SLICE, MOVED],
            _ => &[LOCKS, SLICE, MOVED, PROGRESS, SLOWED],
        };
        [CPU_TIME, SWITCHES, BARRIER_STATS, ASLEEP]
            .iter()
            .chain(others)
            .for_each(|column| widths[*column] = 0);
        if now.quantum.is_none_or(|quantum| quantum.gangs <= 1) {
            widths[GANG] = 0;
        }
        if slices || moves {
            // Such a policy binds no program as a whole, so reasons get the room.
            widths[CPUS] = COLUMNS[CPUS].name.len();
        } else if now.placement.is_none() && !of(|program| program.cpus.is_some()) {
            widths[CPUS] = 0;
        }
        // A state is one word or two, and a part of it says little.
        widths[STATE] = needed[STATE];
        let taken: usize = widths.iter().filter(|width| **width > 0).map(|width| width + 1).sum();
        let mut left = (width + 1).saturating_sub(taken);
        let widen = |widths: &mut [usize; COUNT], left: &mut usize, column: usize, to: usize| {
            let more = to.saturating_sub(widths[column]).min(*left);
            widths[column] += more;
            *left -= more;
        };
        widen(&mut widths, &mut left, PROGRAM, needed[PROGRAM].min(NAME));
        widen(&mut widths, &mut left, WHY, needed[WHY]);
        let has_stats = of(|program| program.barrier_stats.is_some());
        let known = [
            (BARRIER_STATS, has_stats),
            (ASLEEP, has_stats),
            (CPU_TIME, of(|program| program.cpu_seconds.is_some())),
            (SWITCHES, of(|program| program.context_switches.is_some())),
        ];
        for (column, _) in known.into_iter().filter(|(_, known)| *known) {
            // An added column also needs a space.
            if left > needed[column] {
                (widths[column], left) = (needed[column], left - needed[column] - 1);
            }
        }
        for column in [CPUS, PROGRAM] {
            if widths[column] > 0 {
                widen(&mut widths, &mut left, column, needed[column]);
            }
        }
        Columns(widths)
    }

    pub(super) fn header(self) -> String {
        self.line(COLUMNS.map(|column| column.name.to_owned()))
    }

    pub(super) fn row(self, now: &Snapshot, program: &Standing, rates: Rates) -> String {
        self.line(cells(now, program, rates))
    }

    fn line(self, cells: [String; COUNT]) -> String {
        let shown = (0..COUNT).filter(|i| self.0[*i] > 0);
        let padded: Vec<String> =
            shown.map(|i| padded(&cells[i], self.0[i], COLUMNS[i].right)).collect();
        padded.join(" ").trim_end().to_owned()
    }
}

fn cells(now: &Snapshot, program: &Standing, rates: Rates) -> [String; COUNT] {
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let alive = program.state != LiveState::Ended;
    let (slice, shuffled) = (program.slice.filter(|_| alive), program.shuffled.filter(|_| alive));
    // The guard may not set what was chosen.
    let slice =
        slice.filter(|_| program.tried.is_some() || program.actuator != Some(Actuator::None));
    let at_locks = program.lock_contention().filter(|_| alive);
    let forward = program.forward.filter(|_| alive);
    [
        escaped(&program.name),
        state(now, program),
        gang(now, program),
        known(program.cpus.map(|cpus| cpus.to_string())),
        threads(program),
        known(rates.share.map(|share| format!("{:.0} %", 100.0 * share))),
        format!("{:.1}", program.turn_seconds()),
        format!("{:.1}", program.other_seconds()),
        known(program.cpu_seconds.map(|seconds| format!("{seconds:.1}"))),
        known(rates.switches.map(|often| format!("{often:.0}"))),
        known(rates.barrier_stats.map(|often| format!("{often:.0}"))),
        known(rates.asleep.map(|share| format!("{:.0} %", 100.0 * share))),
        program.turns.to_string(),
        known(at_locks.map(|share| format!("{:.0} %", 100.0 * share))),
        known(slice.map(|slice| words::span(nanos(slice.slice_seconds)))),
        known(shuffled.map(|shuffled| shuffled.moves.to_string())),
        known(forward.map(|forward| format!("{:.1}", forward.progress_seconds))),
        known(forward.and_then(|forward| Some(format!("{:.2}", forward.slowdown?)))),
        why(program),
    ]
}

/// The threads of a program: its limit, and its request where that is larger.
fn threads(program: &Standing) -> String {
    let Standing { threads, allowed, .. } = program;
    if threads == allowed { threads.to_string() } else { format!("{allowed}/{threads}") }
}

/// The last reason, or the setting for the program's threads where there is one.
fn why(program: &Standing) -> String {
    let reason = || {
        let why = program.why.as_ref();
        why.map_or_else(String::new, |why| words::brief(why).into_owned())
    };
    match (program.actuator, program.tried) {
        _ if program.state == LiveState::Ended => String::new(),
        (_, Some(tried)) => format!("tries {}", treatment::name(tried)),
        (Some(actuator), None) => treatment::name(actuator).to_owned(),
        (None, None) => reason(),
    }
}

/// The run: its process, policy, CPUs and age.
pub(super) fn title(now: &Snapshot) -> String {
    let placement = now.placement.iter().map(|placement| format!(", {placement}"));
    let quantum = now.quantum_seconds.iter().map(|q| format!(", quantum {}", span(*q)));
    let decided = now.decided_by.iter().map(|policy| format!(" ({policy} decides)"));
    let how: String = decided.chain(placement).chain(quantum).collect();
    format!(
        "cosched {}: {}{how}; CPUs {}; for {}",
        now.pid,
        now.policy,
        now.cpus,
        span(now.at_seconds)
    )
}

/// The current quantum, and the programs that run now: as many names as fit.
pub(super) fn running(now: &Snapshot, width: usize) -> String {
    let running =
        now.programs.iter().filter(|program| program.state.may_run() && !program.is_filler);
    let what = if now.is_by_weight() { "in turn:" } else { "running:" };
    let names: Vec<&str> = running.map(|program| program.name.as_str()).collect();
    let place = now.quantum.map_or(String::new(), |quantum| {
        let length = quantum.length_seconds.map_or(String::new(), |s| format!(" for {}", span(s)));
        match quantum.gangs {
            0 | 1 => format!("quantum {}{length}; ", quantum.round),
            gangs => {
                format!("round {}, gang {} of {gangs}{length}; ", quantum.round, quantum.gang + 1)
            }
        }
    });
    if names.is_empty() {
        return format!("{place}no program runs");
    }
    let mut line = format!("{place}{what}");
    for (i, name) in names.iter().enumerate() {
        let more = format!(" and {} more", names.len() - i);
        let room = if i + 1 < names.len() { more.len() } else { 0 };
        let with = format!("{line} {name}");
        if i > 0 && with.width() + room > width {
            return line + &more;
        }
        line = with;
    }
    line
}

/// The run's own figures, and the time span of the shares.
pub(super) fn figures(now: &Snapshot, past: Option<&Snapshot>) -> String {
    let of = match past {
        Some(past) => format!("of the last {}", span(now.at_seconds - past.at_seconds)),
        None => "since arrival".to_owned(),
    };
    let own = 100.0 * now.own_cpu_seconds / now.at_seconds.max(1e-9);
    format!(
        "switches {}; deviations {}; cosched {own:.2} % of a CPU; share {of}",
        now.switches, now.deviations
    )
}

/// Whether its last run failed.
pub(super) fn has_failed(program: &Standing) -> bool {
    program.exit.is_some_and(|exit| exit != Exit::Code(0))
}

fn state(now: &Snapshot, program: &Standing) -> String {
    let word = match (program.state, program.exit) {
        (LiveState::Expected, _) => "pending",
        (LiveState::New, _) => "new",
        (LiveState::Starting, _) => "starts",
        (LiveState::Running, _) if program.is_filler => "fills",
        (LiveState::Running, _) if now.is_by_weight() => "in turn",
        (LiveState::Running, _) => "runs",
        (LiveState::Freezing, _) => "freezes",
        (LiveState::Frozen, _) => "waits",
        (LiveState::StoppedByOther, _) => "stopped",
        (LiveState::Ended, Some(Exit::Code(0))) => "ok",
        (LiveState::Ended, Some(Exit::Code(code))) => return format!("exit {code}"),
        (LiveState::Ended, Some(Exit::Signal(signal))) => return format!("sig {signal}"),
        (LiveState::Ended, Some(Exit::Failed(_))) => "failed",
        (LiveState::Ended, None) if program.started_seconds.is_none() => "skipped",
        (LiveState::Ended, Some(Exit::Unknown)) => "ended",
        (LiveState::Ended, None) => "detached",
    };
    word.to_owned()
}

/// The gang that has the quantum, from 1, where the program is in it. The numbers of other gangs
/// are not known: a reason with such a number is as old as the program's last turn, and rounds
/// change.
fn gang(now: &Snapshot, program: &Standing) -> String {
    let quantum = now.quantum.filter(|quantum| quantum.gangs > 1);
    let is_other = |why: &Why| matches!(why.read(), Some(SharedReason::OtherGang { .. }));
    match (&program.why, quantum) {
        _ if program.state == LiveState::Ended => "-".to_owned(),
        (Some(why), _) if is_other(why) => "-".to_owned(),
        (Some(_), Some(quantum)) if program.state.may_run() => format!("{}*", quantum.gang + 1),
        _ => "-".to_owned(),
    }
}

/// A time span in few characters.
fn span(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0 => format!("{:.0} ms", seconds * 1000.0),
        1..=59 => format!("{seconds:.1} s"),
        60..=3599 => format!("{}:{:02} min", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
    }
}

/// The line of a process, below its program.
pub(super) fn process(process: &BusyProcess) -> String {
    let BusyProcess { pid, name, threads, cpus } = process;
    let threads = count(*threads as usize, "thread", "threads");
    format!("  {pid} {}: {threads}, {cpus:.2} CPUs", escaped(name))
}

/// The part of a text that fits, with escapes for characters that control a terminal. A mark
/// replaces what was cut.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let text = escaped(text);
    if text.width() <= width {
        return text;
    }
    let room = width.saturating_sub(CUT.width());
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken <= room
    };
    let begin: String = text.chars().take_while(fits).collect();
    if width == 0 { begin } else { begin + CUT }
}

/// Stands where a text was cut.
const CUT: &str = "\u{2026}";

fn padded(text: &str, width: usize, right: bool) -> String {
    let text = fitted(text, width);
    let space = " ".repeat(width - text.width());
    if right { space + &text } else { text + &space }
}
