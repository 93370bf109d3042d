//! What is printed on standard output: results.

use std::io::{Error, Write, stdout};

use cosched_linux::kernel::signals;
use cosched_linux::kernel::streams::output_was_closed;
use cosched_workload::{escaped_json, escaped_lines};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::failure::Failure;
use crate::messages::{LAST_PATIENCE, PIPE_BUF, takes};

const CLOSED: &str = "standard output: is closed, so the result cannot be printed; redirect it to \
                      a file, or to /dev/null";

/// Prints a result and a line break. Escapes what must not reach a terminal: names of programs and
/// processes may hold anything. A missing reader is no error.
///
/// # Errors
/// When standard output was closed at the start, or cannot be written to.
pub fn print(text: &str) -> Result<(), Failure> {
    put(format!("{}\n", escaped_lines(text)).as_bytes())
}

/// Prints a JSON document and a line break, with JSON's escapes for what must not reach a terminal.
/// A missing reader is no error.
///
/// # Errors
/// When standard output was closed at the start, or cannot be written to.
pub fn print_json(document: &str) -> Result<(), Failure> {
    print(&escaped_json(document))
}

/// Prints bytes as they are. Signals end the wait for a reader, as in
/// [`say_last`](crate::say_last). A missing reader is no error.
///
/// # Errors
/// When standard output was closed at the start, or cannot be written to.
pub fn put(bytes: &[u8]) -> Result<(), Failure> {
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

/// Prints a line of many, escaped as by [`print()`], and tells whether a reader is still there.
///
/// # Errors
/// When standard output was closed at the start, or cannot be written to.
pub fn print_if_read(text: &str) -> Result<bool, Failure> {
    put_if_read(format!("{}\n", escaped_lines(text)).as_bytes())
}

/// Refuses a standard output on which no result can be printed, before anything is started.
///
/// # Errors
/// When standard output was closed at the start.
pub fn check_stdout() -> Result<(), Failure> {
    match output_was_closed() {
        false => Ok(()),
        true => Err(Failure::Input(CLOSED.to_owned())),
    }
}

fn put_if_read(bytes: &[u8]) -> Result<bool, Failure> {
    if output_was_closed() {
        return Err(Failure::Broken(CLOSED.to_owned()));
    }
    let mut output = stdout();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if has_no_reader(&error) => Ok(false),
        Err(error) => Err(Failure::Broken(format!("standard output: cannot be written: {error}"))),
    }
}

/// Whether standard output is a pipe that nobody reads any more, or a terminal that has ended (or
/// takes nothing from a background process). `isatty` fails for a terminal that has ended.
fn has_no_reader(error: &Error) -> bool {
    let is_terminal = || {
        let found = rustix::fs::fstat(stdout());
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice)
    };
    let errno = Errno::from_io_error(error);
    errno == Some(Errno::PIPE) || errno == Some(Errno::IO) && is_terminal()
}
