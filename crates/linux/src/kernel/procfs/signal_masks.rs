//! What a process does with signals, by the masks of its `/proc/PID/status`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str;

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

    /// A process' status, opened beforehand: a look at it then takes next to no time.
    pub(crate) fn open_status(&self, pid: i32) -> Option<OpenStatus> {
        File::open(self.folder(pid).join("status")).ok().map(OpenStatus)
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

/// An open `/proc/PID/status`.
pub(crate) struct OpenStatus(File);

impl OpenStatus {
    /// Whether the process has a handler for SIGCONT now.
    pub(crate) fn catches_continue(&self) -> bool {
        const FIELD: &str = "SigCgt:\t";
        let mut text = [0; 4096];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = str::from_utf8(&text[..length]).unwrap_or_default();
        let found = text.find(FIELD).and_then(|at| text.get(at + FIELD.len()..)?.get(..16));
        found.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0) & CONT != 0
    }
}

/// Whether a process has still to take one of these signals, by its `/proc/PID/status`.
fn has_pending(status: &str, signals: u64) -> bool {
    ["SigPnd", "ShdPnd"].iter().any(|field| mask(status, field) & signals != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_open_status_shows_a_handler_that_was_made_since() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("7/status");
        fs::create_dir(file.parent().unwrap()).unwrap();
        let write = |mask| fs::write(&file, format!("Pid:\t7\nSigCgt:\t{mask:016x}\nEnd:\t1\n"));
        write(1 << (libc::SIGCHLD - 1)).unwrap();
        let status = Proc::new(root.path()).open_status(7).unwrap();
        assert!(!status.catches_continue());
        write(CONT).unwrap();
        assert!(status.catches_continue());
        fs::write(&file, "Pid:\t7\nSigCgt:\t2\n").unwrap();
        assert!(!status.catches_continue(), "it ends too early");
    }
}
