//! The file locks of all processes, as the kernel lists them in `/proc/locks`.
//!
//! Below each lock are the processes that wait for it:
//!
//! ```text
//! 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
//! 1: -> FLOCK  ADVISORY  WRITE 4712 08:01:1234 0 EOF
//! ```
//!
//! A lock of an open file description names no process: the number is -1. A lock that other
//! processes inherited names the one that took it, which may have ended.

use rustix::fs::makedev;

use super::files::{self, FileError};
use super::procfs::Proc;

/// Marks the line of a waiting process, after its number.
const WAITS: &str = "->";

/// A lock that a process holds or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileLock {
    /// The number of the lock in the list; its waiters have the same.
    pub(crate) number: u64,
    /// The process that took it, or waits for it, where the list names one.
    pub(crate) pid: Option<i32>,
    /// The device of the file, and its number there.
    pub(crate) file: (u64, u64),
    /// The first byte of the file that is locked, and the last one; `None`: to the end.
    pub(crate) range: (u64, Option<u64>),
    /// Whether the process waits for it.
    pub(crate) waits: bool,
}

/// All of them. Empty where the caller may not read the list.
pub(crate) fn all(proc: &Proc) -> Result<Vec<FileLock>, FileError> {
    match files::read_if_there(&proc.root().join("locks")) {
        Err(error) if error.is_denied() => Ok(Vec::new()),
        list => Ok(listed(&list?.unwrap_or_default())),
    }
}

pub(crate) fn listed(list: &str) -> Vec<FileLock> {
    list.lines().filter_map(lock).collect()
}

fn lock(line: &str) -> Option<FileLock> {
    let mut words = line.split_ascii_whitespace().peekable();
    let number = words.next()?.strip_suffix(':')?.parse().ok()?;
    let waits = words.next_if_eq(&WAITS).is_some();
    let [_kind, _strictness, _access, pid, file, first, last] =
        std::array::from_fn(|_| words.next());
    let pid = Some(pid?.parse().ok()?).filter(|pid| *pid > 0);
    let [major, minor, inode] = {
        let mut parts = file?.split(':');
        [parts.next()?, parts.next()?, parts.next()?]
    };
    let hexadecimal = |number| u32::from_str_radix(number, 16).ok();
    let device = makedev(hexadecimal(major)?, hexadecimal(minor)?);
    let range = (first?.parse().ok()?, last?.parse().ok());
    Some(FileLock { number, pid, file: (device, inode.parse().ok()?), range, waits })
}
