//! What a process does with signals, by the masks of its `/proc/PID/status`.

use super::{Proc, mask};
use crate::kernel::files::{self, FileError};

// Signals, as bits of a mask.
const KILL: u64 = 1 << (libc::SIGKILL - 1);
const PIPE: u64 = 1 << (libc::SIGPIPE - 1);
const CHLD: u64 = 1 << (libc::SIGCHLD - 1);
const CONT: u64 = 1 << (libc::SIGCONT - 1);
const STOP: u64 = 1 << (libc::SIGSTOP - 1);
/// Signals 32 and 33.
const OF_C_LIBRARY: u64 = 0b11 << 31;

impl Proc {
    /// Whether a process has a handler for any signal, or ignores SIGPIPE as the runtimes of
    /// languages do that catch signals by themselves. The C library's own signals do not count.
    /// One that cannot be read may have.
    pub(crate) fn knows_signals(&self, pid: i32) -> bool {
        let status = files::read(&self.folder(pid).join("status"));
        status.map_or(true, |status| {
            mask(&status, "SigCgt") & !OF_C_LIBRARY != 0 || mask(&status, "SigIgn") & PIPE != 0
        })
    }

    /// Whether a process has still to take SIGSTOP.
    pub(crate) fn is_about_to_stop(&self, pid: i32) -> Result<bool, FileError> {
        let status = files::read(&self.folder(pid).join("status"))?;
        Ok(has_pending(&status, STOP))
    }

    /// Whether a process has a handler for SIGCONT.
    pub(crate) fn catches_continue(&self, pid: i32) -> bool {
        let status = files::read(&self.folder(pid).join("status"));
        status.is_ok_and(|status| mask(&status, "SigCgt") & CONT != 0)
    }

    /// Whether a process blocks SIGCHLD.
    pub(crate) fn blocks_child_signals(&self, pid: i32) -> Result<bool, FileError> {
        let status = files::read(&self.folder(pid).join("status"))?;
        Ok(mask(&status, "SigBlk") & CHLD != 0)
    }

    /// Whether a process was killed, or has begun to end, and has not ended yet. It needs CPU time
    /// for its end, and waits for that in an idle cgroup.
    pub(crate) fn is_ending(&self, pid: i32) -> Result<bool, FileError> {
        let status = files::read(&self.folder(pid).join("status"))?;
        // Read in this order: the signal is taken before the end begins.
        Ok(has_pending(&status, KILL) || self.stat(pid)?.is_ending)
    }
}

/// Whether a process has still to take one of these signals, by its `/proc/PID/status`.
fn has_pending(status: &str, signals: u64) -> bool {
    ["SigPnd", "ShdPnd"].iter().any(|field| mask(status, field) & signals != 0)
}
