//! The terminal of `cosched top`: it sleeps until a snapshot, a key or a signal comes, and draws.
//!
//! Signals come as data: the terminal is put back however the user ends this program. The user can
//! press a key, use `kill`, or close the window. A change of the window's size is such a signal,
//! too, and so is Ctrl-Z. Before this process stops itself, it puts the terminal back. SIGSTOP
//! gives no chance for that. After every stop, also after SIGSTOP, this process takes the terminal
//! anew, since the shell has changed it meanwhile.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use cosched_core::Interruption;
use cosched_core::engine::outcome::Ended;
use cosched_linux::kernel::poll::{Poll, Ready};
use cosched_linux::kernel::signals::{INTERRUPTIONS, interruption};
use cosched_report::screen::{Line, Tone, View, frame};
use cosched_results::live::Snapshot;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::tcgetwinsize;
use rustix::time::Timespec;

use super::keys::{KeyAction, next_key};
use super::lines::ReceivedLines;
use crate::ui::failure::{Failure, exit_code};
use crate::ui::{print, say};

const RUN: u64 = 0;
const KEYS: u64 = 1;
/// There is no time at which something has to be done.
const NEVER: Timespec = Timespec { tv_sec: i64::MAX / 1_000_000_000, tv_nsec: 0 };
/// Shares are of the time between the newest and the oldest snapshot: this at most, in seconds.
const WINDOW: f64 = 5.0;
/// More snapshots than a run tells in that time.
const MOST_SEEN: usize = 50;
/// Of a terminal that does not tell its size.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Wait,
    /// The user has seen enough.
    Leave,
    /// A signal requests the end, as it would of a run.
    End(Interruption),
    /// Stop, until the shell lets this go on.
    Stop,
    /// After a stop: the terminal is as the shell has left it.
    Resume,
    /// The run has ended.
    Over,
}

/// Shows a run until it ends or the user leaves; the exit code.
pub(super) fn show(stream: UnixStream, pid: u32) -> Result<ExitCode, Failure> {
    stream.set_nonblocking(true).map_err(Failure::broken)?;
    let mut top = Top {
        stream,
        pid,
        lines: ReceivedLines::default(),
        seen: VecDeque::new(),
        view: View::default(),
    };
    let end = {
        let mut raw = Raw::begin().map_err(Failure::broken)?;
        top.follow(&mut raw)?
    };
    if let Next::End(by) = end {
        return Ok(exit_code(Ended::Interrupted(by), true));
    }
    if end == Next::Over {
        if let Some(last) = top.seen.back() {
            print(&super::text(last))?;
        }
        say(format_args!("the run of process {pid} has ended"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is shown, and how.
struct Top {
    stream: UnixStream,
    pid: u32,
    lines: ReceivedLines,
    seen: VecDeque<Snapshot>,
    view: View,
}

impl Top {
    fn follow(&mut self, raw: &mut Raw) -> Result<Next, Failure> {
        let ends = INTERRUPTIONS.map(|(signal, _)| signal);
        let others = [Signal::WINCH, Signal::TSTP, Signal::CONT].map(Signal::as_raw);
        let mut poll = Poll::new(&[&ends[..], &others].concat()).map_err(Failure::broken)?;
        poll.add(self.stream.as_fd(), RUN).map_err(Failure::broken)?;
        poll.add(stdin().as_fd(), KEYS).map_err(Failure::broken)?;
        let mut ready = Vec::new();
        loop {
            self.draw().map_err(Failure::broken)?;
            ready.clear();
            poll.wait(NEVER, &mut ready).map_err(Failure::broken)?;
            for ready in &ready {
                let next = match ready {
                    Ready::Source(RUN) => self.hear()?,
                    Ready::Source(_) => self.obey(),
                    Ready::Signal(signal) => asked_by(*signal),
                };
                match next {
                    Next::Wait => {}
                    Next::Stop => raw.stop().map_err(Failure::broken)?,
                    Next::Resume => raw.resume().map_err(Failure::broken)?,
                    Next::Leave | Next::End(_) | Next::Over => return Ok(next),
                }
            }
        }
    }

    /// Takes what the run tells.
    fn hear(&mut self) -> Result<Next, Failure> {
        match self.lines.read(&mut self.stream) {
            Ok(false) => return Ok(Next::Over),
            Ok(true) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(Failure::broken(error)),
        }
        while let Some(line) = self.lines.next().map_err(Failure::broken)? {
            self.seen.push_back(super::snapshot(&line, self.pid)?);
        }
        self.seen.drain(..self.seen.len().saturating_sub(MOST_SEEN));
        let now = self.seen.back().map_or(0.0, |newest| newest.at_seconds);
        while self.seen.front().is_some_and(|oldest| now - oldest.at_seconds > WINDOW) {
            self.seen.pop_front();
        }
        Ok(Next::Wait)
    }

    /// Does what keys say.
    fn obey(&mut self) -> Next {
        let mut space = [0; 64];
        // A terminal that is gone has nothing to say any more.
        let n = match rustix::io::read(stdin(), &mut space) {
            Ok(n @ 1..) => n,
            // Another process reads here, too, and was quicker.
            Err(Errno::AGAIN | Errno::INTR) => return Next::Wait,
            Ok(_) | Err(_) => return Next::End(Interruption::Hangup),
        };
        let mut keys = &space[..n];
        while let Some((key, rest)) = next_key(keys) {
            keys = rest;
            let programs = self.seen.back().map_or(0, |newest| newest.programs.len());
            match key {
                KeyAction::Leave => return Next::Leave,
                KeyAction::Stop => return Next::Stop,
                KeyAction::Order(order) => self.view.choose(order),
                KeyAction::Scroll(rows) => {
                    let (_, height) = size().unwrap_or(USUAL_SIZE);
                    self.view.scroll_by(rows, programs, height);
                }
                KeyAction::Unknown => {}
            }
        }
        Next::Wait
    }

    fn draw(&self) -> io::Result<()> {
        let (columns, rows) = size().unwrap_or(USUAL_SIZE);
        let lines = match self.seen.back() {
            Some(now) => {
                let past = self.seen.front().filter(|past| past.at_seconds < now.at_seconds);
                frame(now, past, self.view, columns, Some(rows))
            }
            None => vec![Line {
                text: format!("waiting for the first data from process {}", self.pid),
                tone: Tone::Plain,
            }],
        };
        let mut bytes = Vec::new();
        for (row, line) in (0..).zip(&lines) {
            queue!(bytes, MoveTo(0, row), Clear(ClearType::CurrentLine))?;
            paint(line, &mut bytes)?;
        }
        if lines.len() < rows {
            queue!(bytes, MoveTo(0, lines.len() as u16), Clear(ClearType::FromCursorDown))?;
        }
        stdout().write_all(&bytes)?;
        stdout().flush()
    }
}

/// A colour where there is one to say it with; crossterm leaves it out if NO_COLOR is set.
fn paint(line: &Line, bytes: &mut Vec<u8>) -> io::Result<()> {
    match line.tone {
        Tone::Plain | Tone::Waiting => {}
        Tone::Header => queue!(bytes, SetAttribute(Attribute::Reverse))?,
        Tone::Running => queue!(bytes, SetForegroundColor(Color::Green))?,
        Tone::Alarming => queue!(bytes, SetForegroundColor(Color::Red))?,
        Tone::Over => queue!(bytes, SetAttribute(Attribute::Dim))?,
    }
    queue!(bytes, Print(&line.text), SetAttribute(Attribute::Reset), ResetColor)
}

/// Columns and rows of the terminal on standard output, if there is one and it tells.
pub(super) fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout()).ok()?;
    let known = size.ws_col > 0 && size.ws_row > 0;
    known.then_some((size.ws_col.into(), size.ws_row.into()))
}

/// What a signal requests; a new size is seen when the next frame is drawn.
fn asked_by(signal: i32) -> Next {
    match signal {
        _ if signal == Signal::TSTP.as_raw() => Next::Stop,
        _ if signal == Signal::CONT.as_raw() => Next::Resume,
        _ => interruption(signal).map_or(Next::Wait, Next::End),
    }
}

/// The terminal as a screen; as it was found again when this is dropped.
struct Raw;

impl Raw {
    fn begin() -> io::Result<Raw> {
        // What was taken in part is put back, too.
        let raw = Raw;
        take()?;
        Ok(raw)
    }

    /// Puts the terminal back and stops this process. SIGCONT lets it go on, and comes as data
    /// then.
    fn stop(&mut self) -> io::Result<()> {
        put_back();
        Ok(kill_process(getpid(), Signal::STOP)?)
    }

    /// Takes the terminal again, however it was left.
    fn resume(&mut self) -> io::Result<()> {
        // Raw mode that is on already would not be set again.
        disable_raw_mode()?;
        take()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        put_back();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide)
}

fn put_back() {
    // If the terminal is gone, there is nothing to put back.
    let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
