//! `cosched top`: a running instance in the terminal, or one look at it as text or JSON.
//!
//! It reads the socket that every `cosched run` opens ([`live`](crate::live)) and requests nothing.
//! The run does not notice whether a user looks, or how long it takes to draw.

mod keys;
mod lines;
mod terminal;

use std::io::{ErrorKind, IsTerminal};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use cosched_linux::clients::onlookers::{self, Run, everybodys};
use cosched_linux::kernel::open_files::VISITORS;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::safety::undo;
use cosched_report::screen::{View, frame};
use cosched_results::live::Snapshot;
use rustix::process::geteuid;

use crate::args::pid;
use crate::live::{running, socket_of};
use crate::ui::failure::Failure;
use crate::ui::{print, print_json};
use lines::ReceivedLines;

/// A run tells how it stands several times a second; one that is stopped, or gets no CPU, may not.
const PATIENCE: Duration = Duration::from_secs(10);
/// A shorter time for the run of another user, which may be held up on purpose.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(2);
/// The width of a frame that is no terminal's, where no variable says it.
const WIDTH: usize = 80;

#[derive(Debug, Args)]
#[command(after_help = keys::help())]
pub(crate) struct TopArgs {
    /// The process number of the `cosched run` to watch; not needed if there is only one.
    #[arg(value_name = "PID", value_parser = |text: &str| pid(text).map(i32::unsigned_abs))]
    pub(crate) pid: Option<u32>,
    /// Print one frame as text (with --json: one snapshot as JSON).
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one snapshot as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows a run.
pub(crate) fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    let proc = Proc::own().map_err(Failure::input)?;
    let run = chosen(args.pid, own(&proc)?, others(&proc)?)?;
    let stream = onlookers::connect_to(&run.socket).map_err(Failure::broken)?;
    let pid = run.pid;
    if args.json || args.once {
        let patience = if run.uid == geteuid().as_raw() { PATIENCE } else { PATIENCE_WITH_OTHERS };
        let snapshot = one(stream, pid, patience)?;
        match args.json {
            true => print_json(&snapshot.to_json())?,
            false => print(&text(&snapshot))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::Input(
            "top needs a terminal; use --once for one frame as text, or --json for one snapshot"
                .into(),
        ));
    }
    terminal::show(stream, pid)
}

/// The runs in the user's own folders.
fn own(proc: &Proc) -> Result<Vec<Run>, Failure> {
    let uid = geteuid().as_raw();
    let runs = |folder: &PathBuf| {
        let run = |pid| Run { pid, uid, socket: socket_of(folder, pid) };
        running(folder, proc).into_iter().map(run).collect::<Vec<Run>>()
    };
    Ok(undo::own_log_folders().map_err(Failure::input)?.iter().flat_map(runs).collect())
}

/// The runs of all users, for root.
fn others(proc: &Proc) -> Result<Vec<Run>, Failure> {
    if !geteuid().is_root() {
        return Ok(Vec::new());
    }
    everybodys(proc).map_err(Failure::broken)
}

/// The run that is meant. The run of another user has to be named.
fn chosen(asked: Option<u32>, own: Vec<Run>, mut others: Vec<Run>) -> Result<Run, Failure> {
    others.retain(|other| own.iter().all(|run| run.pid != other.pid));
    let list = |runs: &[Run], tell: fn(&Run) -> String| -> String {
        runs.iter().map(tell).collect::<Vec<_>>().join(", ")
    };
    let mine = list(&own, |run| run.pid.to_string());
    let further = match list(&others, |run| format!("{} (user {})", run.pid, run.uid)) {
        others if others.is_empty() => others,
        others => {
            format!("of other users, or with another XDG_RUNTIME_DIR: {others} (`cosched top PID`)")
        }
    };
    let all = [&mine[..], &further].into_iter().filter(|some| !some.is_empty());
    let all = all.collect::<Vec<_>>().join("; ");
    match (asked, &own[..]) {
        (Some(pid), _) => {
            let none = own.is_empty() && others.is_empty();
            let found = own.into_iter().chain(others).find(|run| run.pid == pid);
            found.ok_or_else(|| match none {
                true => no_run(&further),
                false => Failure::Input(format!(
                    "process {pid} is not a run that you may watch; name one of these: {all}"
                )),
            })
        }
        (None, [run]) => Ok(run.clone()),
        (None, []) => Err(no_run(&further)),
        (None, _) => Err(Failure::Input(format!(
            "several runs are in progress; name one with `cosched top PID`: {all}"
        ))),
    }
}

fn no_run(further: &str) -> Failure {
    let further = if further.is_empty() { String::new() } else { format!("; {further}") };
    Failure::Input(format!("no run of yours is in progress; start one with `cosched run`{further}"))
}

/// The next snapshot.
fn one(mut stream: UnixStream, pid: u32, patience: Duration) -> Result<Snapshot, Failure> {
    let until = Instant::now() + patience;
    let mut lines = ReceivedLines::default();
    loop {
        if let Some(line) = lines.next().map_err(Failure::broken)? {
            return snapshot(&line, pid);
        }
        let silent = || {
            Failure::Broken(format!(
                "process {pid} has sent nothing for {} s; it may be stopped, or {VISITORS} \
                 viewers may be connected \
                 already",
                patience.as_secs()
            ))
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(silent());
        }
        stream.set_read_timeout(Some(left)).map_err(Failure::broken)?;
        match lines.read(&mut stream) {
            Ok(true) => {}
            Ok(false) => {
                return Err(Failure::Broken(format!("the run of process {pid} has just ended")));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(silent()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::broken(error)),
        }
    }
}

fn snapshot(line: &str, pid: u32) -> Result<Snapshot, Failure> {
    Snapshot::from_json(line).map_err(|error| {
        Failure::Broken(format!("process {pid} sent data that cannot be read: {error}"))
    })
}

/// One frame, as wide as the terminal if there is one, or else as `COLUMNS` says.
fn text(snapshot: &Snapshot) -> String {
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    let columns = terminal::size().map(|(columns, _)| columns);
    let width = columns.or_else(asked).unwrap_or(WIDTH);
    let lines = frame(snapshot, None, View::default(), width, None);
    lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_runs_must_be_named() {
        assert!(said(None, &[], &[]).ends_with("start one with `cosched run`"));
        assert!(said(Some(7), &[], &[]).ends_with("start one with `cosched run`"));
        assert_eq!(chosen(None, runs(&[12]), vec![]).unwrap().pid, 12);
        assert_eq!(chosen(Some(12), runs(&[7, 12]), vec![]).unwrap().pid, 12);
        assert!(said(None, &[7, 12], &[]).ends_with(": 7, 12"));
        assert!(said(Some(8), &[7, 12], &[]).ends_with(": 7, 12"));
    }

    #[test]
    fn runs_of_others_have_to_be_named_and_are_listed() {
        // The list of all has one's own, too.
        assert_eq!(chosen(None, runs(&[12]), runs(&[12, 13])).unwrap().pid, 12);
        assert_eq!(chosen(Some(13), runs(&[12]), runs(&[12, 13])).unwrap().pid, 13);
        assert_eq!(chosen(Some(13), vec![], runs(&[13])).unwrap().pid, 13);
        assert!(said(None, &[], &[13]).contains("XDG_RUNTIME_DIR: 13 (user 1000)"));
        assert!(said(Some(8), &[], &[13]).contains("one of these: of other users"));
        assert!(
            said(None, &[7, 12], &[13])
                .contains(": 7, 12; of other users, or with another XDG_RUNTIME_DIR: 13")
        );
    }

    fn runs(pids: &[u32]) -> Vec<Run> {
        pids.iter().map(|pid| Run { pid: *pid, uid: 1000, socket: "s".into() }).collect()
    }

    fn said(asked: Option<u32>, own: &[u32], others: &[u32]) -> String {
        match chosen(asked, runs(own), runs(others)) {
            Err(Failure::Input(text)) => text,
            other => panic!("{other:?}"),
        }
    }
}
