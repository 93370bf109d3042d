//! `cosched top`: a running instance in the terminal, or one look at it as text or JSON.
//!
//! It reads the socket that every `cosched run` opens ([`live`](crate::live)) and asks for nothing: the run does not
//! notice whether somebody looks or how long it takes to draw.

mod keys;
mod terminal;

use std::io::{BufRead, BufReader, ErrorKind, IsTerminal};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cosched_core::live::Snapshot;
use cosched_linux::open_files::VISITORS;
use cosched_linux::undo;
use cosched_report::screen::{View, frame};

use crate::failure::Failure;
use crate::live::{running, socket_of};
use crate::session::print;

/// A run tells how it stands several times a second; one that is stopped, or gets no CPU, may not.
const PATIENCE: Duration = Duration::from_secs(10);
/// The width of a frame that is no terminal's.
const WIDTH: usize = 80;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The process of the `cosched run` to watch; not needed where there is only one.
    #[arg(value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Print one frame as text.
    #[arg(long, conflicts_with = "json")]
    pub(crate) once: bool,
    /// Print one snapshot as JSON (docs/live.md).
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows a run.
pub(crate) fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    let folder = undo::log_folder().map_err(Failure::input)?;
    let pid = chosen(args.pid, &folder)?;
    let stream = UnixStream::connect(socket_of(&folder, pid)).map_err(Failure::broken)?;
    if args.json || args.once {
        let snapshot = one(stream, pid)?;
        match args.json {
            true => print(&snapshot.to_json())?,
            false => print(&text(&snapshot))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::Input(
            "top needs a terminal; use --once for one frame as text, --json for one snapshot"
                .into(),
        ));
    }
    terminal::show(stream, pid)?;
    Ok(ExitCode::SUCCESS)
}

/// The run that is meant.
fn chosen(asked: Option<u32>, folder: &Path) -> Result<u32, Failure> {
    let found = running(folder);
    let list = |pids: &[u32]| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match (asked, &found[..]) {
        (Some(pid), _) if found.contains(&pid) => Ok(pid),
        (None, [pid]) => Ok(*pid),
        (_, []) => Err(Failure::Input(
            "no run of yours is under way: start one with `cosched run`".to_owned(),
        )),
        (Some(pid), _) => Err(Failure::Input(format!(
            "process {pid} makes no run that you may watch; these do: {}",
            list(&found)
        ))),
        (None, _) => Err(Failure::Input(format!(
            "several runs are under way: name one, `cosched top PID`: {}",
            list(&found)
        ))),
    }
}

/// The next snapshot.
fn one(stream: UnixStream, pid: u32) -> Result<Snapshot, Failure> {
    stream.set_read_timeout(Some(PATIENCE)).map_err(Failure::broken)?;
    let mut line = String::new();
    match BufReader::new(stream).read_line(&mut line) {
        Ok(0) => Err(Failure::Broken(format!("the run of process {pid} has just ended"))),
        Ok(_) => snapshot(&line, pid),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Failure::Broken(format!(
            "process {pid} has told nothing for {} s: is it stopped, or do {VISITORS} others look on already?",
            PATIENCE.as_secs()
        ))),
        Err(error) => Err(Failure::broken(error)),
    }
}

fn snapshot(line: &str, pid: u32) -> Result<Snapshot, Failure> {
    Snapshot::from_json(line).map_err(|error| {
        Failure::Broken(format!("what process {pid} tells cannot be read: {error}"))
    })
}

/// One frame, as wide as the terminal if there is one.
fn text(snapshot: &Snapshot) -> String {
    let width = terminal::size().map_or(WIDTH, |(columns, _)| columns);
    let lines = frame(snapshot, None, View::default(), width, None);
    lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_only_run_needs_no_name_and_of_several_one_has_to_be_named() {
        let folder = tempfile::tempdir().unwrap();
        let said = |asked| match chosen(asked, folder.path()) {
            Err(Failure::Input(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(said(None).contains("`cosched run`"));
        let listen = |pid| UnixListener::bind(socket_of(folder.path(), pid)).unwrap();
        let _first = listen(12);
        assert_eq!(chosen(None, folder.path()).unwrap(), 12);
        let _second = listen(7);
        assert_eq!(chosen(Some(12), folder.path()).unwrap(), 12);
        assert!(said(None).ends_with(": 7, 12"));
        assert!(said(Some(8)).ends_with(": 7, 12"));
    }
}
