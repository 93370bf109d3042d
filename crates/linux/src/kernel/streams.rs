//! How this process found its standard streams: which are closed, or, of standard output, only to
//! be read. The signals that its caller ignores are recorded here, too.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in the place of a closed descriptor. A result
//! that is written there is lost without an error. Only code that runs earlier sees the difference.
//! Errors of a descriptor that cannot be written to are swallowed, too.

use std::sync::atomic::{AtomicBool, Ordering};

use libc::{STDERR_FILENO, STDIN_FILENO, STDOUT_FILENO};

use crate::kernel::signals;

const STREAMS: [i32; 3] = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO];
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
static IS_UNWRITABLE: AtomicBool = AtomicBool::new(false);

/// Whether nothing could be written to standard output when this process started.
pub fn output_was_closed() -> bool {
    IS_UNWRITABLE.load(Ordering::Relaxed)
}

/// Closes the streams that were closed when this process started, for a program in its place. As
/// safe between `fork` and `exec` as a system call.
pub fn close_as_found() {
    for (stream, closed) in STREAMS.iter().zip(&CLOSED) {
        if closed.load(Ordering::Relaxed) {
            // SAFETY: nothing owns the descriptor, which stands for one that was not there.
            unsafe { libc::close(*stream) };
        }
    }
}

// SAFETY: the loader calls each function in this section once, before `main`. This one needs
// nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: only the flags of a descriptor are read.
    let flags = |stream: i32| unsafe { libc::fcntl(stream, libc::F_GETFL) };
    for (stream, closed) in STREAMS.iter().zip(&CLOSED) {
        closed.store(flags(*stream) == -1, Ordering::Relaxed);
    }
    let output = flags(STDOUT_FILENO);
    let is_unwritable = output == -1 || output & libc::O_ACCMODE == libc::O_RDONLY;
    IS_UNWRITABLE.store(is_unwritable, Ordering::Relaxed);
    signals::record_ignored();
}
