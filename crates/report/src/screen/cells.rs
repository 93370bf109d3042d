//! The words and figures of a frame, each fitted to its place.

use cosched_core::live::{Snapshot, Standing, State};
use cosched_core::{Exit, Why};

use crate::words;

/// The least and the most that a name gets, in characters.
const NAME: (usize, usize) = (7, 30);
/// What a reason gets at least.
const WHY: usize = 10;
/// All other columns, with a space after each.
const FIXED: usize = 8 + 5 + 8 + 4 + 6 + 9 + 9 + 7;

/// How wide the columns are whose width depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    name: usize,
    why: usize,
}

impl Columns {
    /// For these programs, on a screen of this width.
    pub(super) fn fitting(now: &Snapshot, width: usize) -> Columns {
        let longest = now.programs.iter().map(|program| program.name.chars().count()).max();
        let room = width.saturating_sub(FIXED + WHY + 1);
        let name = longest.unwrap_or(0).clamp(NAME.0, NAME.1).min(room.max(NAME.0));
        Columns { name, why: width.saturating_sub(FIXED + name + 1).max(WHY) }
    }

    pub(super) fn header(self) -> String {
        self.line([
            "PROGRAM", "STATE", "GANG", "CPUS", "THR", "SHARE", "RUN s", "WAIT s", "TURNS", "WHY",
        ])
    }

    pub(super) fn row(self, now: &Snapshot, program: &Standing, share: Option<f64>) -> String {
        let cpus = program.cpus.map_or("-".to_owned(), |cpus| cpus.to_string());
        let share = share.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        self.line([
            &program.name,
            &state(program),
            &gang(now, program),
            &cpus,
            &program.granted.to_string(),
            &share,
            &format!("{:.1}", program.running_seconds),
            &format!("{:.1}", program.waiting_seconds),
            &program.turns.to_string(),
            &program
                .why
                .filter(|_| program.state != State::Ended)
                .map_or(String::new(), words::brief),
        ])
    }

    fn line(self, cells: [&str; 10]) -> String {
        let [name, state, gang, cpus, threads, share, running, waiting, turns, why] = cells;
        let name = padded(name, self.name);
        let (state, gang, cpus) = (padded(state, 7), padded(gang, 4), padded(cpus, 7));
        let why = fitted(why, self.why);
        format!(
            "{name} {state} {gang} {cpus} {threads:>3} {share:>5} {running:>8} {waiting:>8} {turns:>6} {why}"
        )
        .trim_end()
        .to_owned()
    }
}

/// What is run, by which policy, since when.
pub(super) fn title(now: &Snapshot) -> String {
    let placement = now.placement.iter().map(|placement| format!(", {placement}"));
    let quantum = now.quantum_seconds.iter().map(|q| format!(", quantum {}", span(*q)));
    let how: String = placement.chain(quantum).collect();
    format!(
        "cosched {}: {}{how}; CPUs {}; for {}",
        now.pid,
        now.policy,
        now.cpus,
        span(now.at_seconds)
    )
}

/// Who runs now, as many names as fit, and whose quantum it is.
pub(super) fn who_runs(now: &Snapshot, width: usize) -> String {
    let running = now.programs.iter().filter(|program| program.state.may_run());
    let names: Vec<&str> = running.map(|program| program.name.as_str()).collect();
    let whose = now.quantum.map_or(String::new(), |quantum| {
        let length = quantum.length_seconds.map_or(String::new(), |s| format!(" for {}", span(s)));
        match quantum.gangs {
            0 | 1 => format!("quantum {}{length}; ", quantum.round),
            gangs => {
                format!("round {}, gang {} of {gangs}{length}; ", quantum.round, quantum.gang + 1)
            }
        }
    });
    if names.is_empty() {
        return format!("{whose}nobody runs");
    }
    let mut line = format!("{whose}running:");
    for (i, name) in names.iter().enumerate() {
        let more = format!(" and {} more", names.len() - i);
        let room = if i + 1 < names.len() { more.len() } else { 0 };
        let with = format!("{line} {name}");
        if i > 0 && with.chars().count() + room > width {
            return line + &more;
        }
        line = with;
    }
    line
}

/// The run's own figures, and what the shares are of.
pub(super) fn figures(now: &Snapshot, past: Option<&Snapshot>) -> String {
    let of = match past {
        Some(past) => format!("of the last {}", span(now.at_seconds - past.at_seconds)),
        None => "since each came".to_owned(),
    };
    let own = 100.0 * now.own_cpu_seconds / now.at_seconds.max(1e-9);
    format!(
        "switches {}; deviations {}; cosched {own:.2} % of a CPU; share {of}",
        now.switches, now.deviations
    )
}

/// Whether its last run did not end as it should.
pub(super) fn has_failed(program: &Standing) -> bool {
    program.exit.is_some_and(|exit| exit != Exit::Code(0))
}

fn state(program: &Standing) -> String {
    let word = match (program.state, program.exit) {
        (State::Expected, _) => "to come",
        (State::New, _) => "new",
        (State::Starting, _) => "starts",
        (State::Running, _) => "runs",
        (State::Freezing, _) => "freezes",
        (State::Frozen, _) => "waits",
        (State::StoppedByOther, _) => "stopped",
        (State::Exiting, _) => "exits",
        (State::Ended, Some(Exit::Code(0))) => "ok",
        (State::Ended, Some(Exit::Code(code))) => return format!("exit {code}"),
        (State::Ended, Some(Exit::Signal(signal))) => return format!("sig {signal}"),
        (State::Ended, Some(Exit::Failed(_))) => "failed",
        (State::Ended, Some(Exit::Unknown) | None) => "ended",
    };
    word.to_owned()
}

/// The program's gang in the round, from 1, as far as its reason tells; `*`: it has the quantum.
fn gang(now: &Snapshot, program: &Standing) -> String {
    let quantum = now.quantum.filter(|quantum| quantum.gangs > 1);
    match (program.why, quantum) {
        _ if program.state == State::Ended => "-".to_owned(),
        (Some(Why::OtherGang { gang }), Some(_)) => (gang + 1).to_string(),
        (Some(_), Some(quantum)) if program.state.may_run() => format!("{}*", quantum.gang + 1),
        _ => "-".to_owned(),
    }
}

/// A time in few characters.
fn span(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0 => format!("{:.0} ms", seconds * 1000.0),
        1..=59 => format!("{seconds:.1} s"),
        60..=3599 => format!("{}:{:02} min", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
    }
}

/// What fits, with no character that commands a terminal.
pub(super) fn fitted(text: &str, width: usize) -> String {
    text.chars().take(width).map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn padded(text: &str, width: usize) -> String {
    format!("{:width$}", fitted(text, width))
}
