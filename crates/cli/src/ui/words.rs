//! What people are told, on standard error and standard output.

use std::io::{IsTerminal, Write};

use cosched_linux::kernel::stdout;
use cosched_workload::escaped;

use crate::ui::failure::Failure;

const CLOSED: &str = "standard output: is closed, so the result cannot be printed; redirect it to \
                      a file, or to /dev/null";

/// Tells people something; a missing reader must not stop anything.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    // Names and paths of users may hold anything; a terminal must not obey it.
    let lines: Vec<String> = text.to_string().split('\n').map(escaped).collect();
    let _ = writeln!(std::io::stderr(), "cosched: {}", lines.join("\n"));
}

/// Prints a result, and says so if it cannot be written. A missing reader is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    put(format!("{text}\n").as_bytes())
}

/// The same for what is no text.
pub(crate) fn put(bytes: &[u8]) -> Result<(), Failure> {
    put_if_read(bytes).map(drop)
}

/// Prints a line of many, and tells whether a reader is still there.
pub(crate) fn print_if_read(text: &str) -> Result<bool, Failure> {
    put_if_read(format!("{text}\n").as_bytes())
}

/// Refuses a standard output on which no result can be printed, before anything is started.
pub(crate) fn check_stdout() -> Result<(), Failure> {
    match stdout::was_closed() {
        false => Ok(()),
        true => Err(Failure::Input(CLOSED.to_owned())),
    }
}

fn put_if_read(bytes: &[u8]) -> Result<bool, Failure> {
    if stdout::was_closed() {
        return Err(Failure::Broken(CLOSED.to_owned()));
    }
    let mut output = std::io::stdout();
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
