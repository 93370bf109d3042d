//! What people are told, on standard error.

use std::io::{IsTerminal, stderr};
use std::os::fd::AsFd;

use cosched_linux::kernel::signals;
use cosched_workload::escaped;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{retry_on_intr, write};
use rustix::time::Timespec;

/// How long a message may delay what comes after it, such as the start of programs.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long the last message of a command waits before signals may end it.
pub(crate) const LAST_PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// A pipe that takes anything takes so many bytes at once (POSIX: at least 512).
pub(crate) const PIPE_BUF: usize = 4096;

/// Tells people something. The message is dropped if a pipe without a reader that is awake, or a
/// paused terminal, does not take it.
pub fn say(text: std::fmt::Arguments<'_>) {
    write_out(text, || takes(stderr(), PATIENCE));
}

/// Tells people why a command ends: the message waits until it is taken, or until a signal ends
/// cosched. A run may have blocked the signals, and nothing of it is left to be undone.
pub fn say_last(text: std::fmt::Arguments<'_>) {
    write_out(text, || takes(stderr(), LAST_PATIENCE) || signals::unblock().is_ok());
}

/// Tells people something in a thread of its own, which may wait.
pub fn say_waiting(text: std::fmt::Arguments<'_>) {
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
pub(crate) fn takes(stream: impl AsFd, patience: Timespec) -> bool {
    let mut asked = [PollFd::new(&stream, PollFlags::OUT)];
    retry_on_intr(|| poll(&mut asked, Some(&patience))) != Ok(0)
}

/// Whether people look at standard error.
pub fn watched() -> bool {
    std::io::stderr().is_terminal()
}
