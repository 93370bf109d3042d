//! What people are told, on standard error and standard output.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;

use cosched_linux::kernel::signals;
use cosched_linux::kernel::stdout::was_closed;
use cosched_workload::escaped;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{retry_on_intr, write};
use rustix::time::Timespec;

use crate::ui::failure::Failure;

const CLOSED: &str = "standard output: is closed, so the result cannot be printed; redirect it to \
                      a file, or to /dev/null";

/// How long a message may delay what comes after it, such as the start of programs.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long the last message of a command waits before signals may end it.
const LAST_PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// A pipe that takes anything takes so many bytes at once (POSIX: at least 512).
const PIPE_BUF: usize = 4096;

/// Tells people something. The message is dropped if a pipe without a reader that is awake, or a
/// paused terminal, does not take it.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    write_out(text, || takes(stderr(), PATIENCE));
}

/// Tells people why a command ends: the message waits until it is taken, or until a signal ends
/// cosched. A run may have blocked the signals, and nothing of it is left to be undone.
pub(crate) fn say_last(text: std::fmt::Arguments<'_>) {
    write_out(text, || takes(stderr(), LAST_PATIENCE) || signals::unblock().is_ok());
}

/// Tells people something in a thread of its own, which may wait.
pub(super) fn say_waiting(text: std::fmt::Arguments<'_>) {
    write_out(text, || true);
}

/// Writes a message while `goes_on`. It takes no lock: another thread may be waiting in a write.
fn write_out(text: std::fmt::Arguments<'_>, goes_on: impl Fn() -> bool) {
    // Names and paths of users may hold anything; a terminal must not obey it.
    let lines = text.to_string();
    let lines = lines.split('\n').map(|line| format!("cosched: {}\n", escaped(line)));
    let message: String = lines.collect();
    let mut rest = message.as_bytes();
    while !rest.is_empty() && goes_on() {
        match retry_on_intr(|| write(stderr(), &rest[..rest.len().min(PIPE_BUF)])) {
            Ok(written) => rest = &rest[written..],
            // A missing reader must not stop anything.
            Err(_) => return,
        }
    }
}

/// Whether a stream takes something within this time. If that cannot be asked, the write tells.
fn takes(stream: impl AsFd, patience: Timespec) -> bool {
    let mut asked = [PollFd::new(&stream, PollFlags::OUT)];
    retry_on_intr(|| poll(&mut asked, Some(&patience))) != Ok(0)
}

/// Prints a result, and says so if it cannot be written. A missing reader is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    put(format!("{text}\n").as_bytes())
}

/// The same for what is no text. Signals end the wait for a reader, as in [`say_last`].
pub(crate) fn put(bytes: &[u8]) -> Result<(), Failure> {
    for piece in bytes.chunks(PIPE_BUF) {
        if !takes(stdout(), LAST_PATIENCE) {
            signals::unblock().map_err(Failure::broken)?;
        }
        if !put_if_read(piece)? {
            break;
        }
    }
    Ok(())
}

/// Prints a line of many, and tells whether a reader is still there.
pub(crate) fn print_if_read(text: &str) -> Result<bool, Failure> {
    put_if_read(format!("{text}\n").as_bytes())
}

/// Refuses a standard output on which no result can be printed, before anything is started.
pub(crate) fn check_stdout() -> Result<(), Failure> {
    match was_closed() {
        false => Ok(()),
        true => Err(Failure::Input(CLOSED.to_owned())),
    }
}

fn put_if_read(bytes: &[u8]) -> Result<bool, Failure> {
    if was_closed() {
        return Err(Failure::Broken(CLOSED.to_owned()));
    }
    let mut output = stdout();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Broken(format!("standard output: cannot be written: {error}"))),
    }
}

/// Whether people look at standard error.
pub(crate) fn watched() -> bool {
    std::io::stderr().is_terminal()
}
