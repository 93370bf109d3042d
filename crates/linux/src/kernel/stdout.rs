//! Whether this process was started without a standard output: it is closed, or only to be read.
//! The signals that its caller ignores are recorded here, too.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in the place of a closed descriptor. A result
//! that is written there is lost without an error. Only code that runs earlier sees the difference.
//! Errors of a descriptor that cannot be written to are swallowed, too.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::kernel::signals;

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether nothing could be written to standard output when this process started.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

// SAFETY: the loader calls each function in this section once, before `main`. This one needs
// nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: only the flags of a descriptor are read.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let is_closed = flags == -1 || flags & libc::O_ACCMODE == libc::O_RDONLY;
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
    signals::record_ignored();
}
