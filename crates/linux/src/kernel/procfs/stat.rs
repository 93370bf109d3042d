//! The line of `/proc/PID/stat` and `/proc/PID/task/TID/stat`.
//!
//! The second field is the thread's name in brackets, which the program chooses: it may hold
//! blanks, line ends and brackets. No later field can hold a bracket, so the name ends at the
//! *last* one.

use std::path::Path;

use crate::kernel::files::{self, FileError};

/// The kernel's data about a process or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The process, or the thread in data about a thread.
    pub pid: i32,
    /// The parent process.
    pub ppid: i32,
    /// The process group.
    pub pgrp: i32,
    /// The session.
    pub session: i32,
    /// Its present state (for a process: its main thread's).
    pub state: ProcState,
    /// CPU time in user mode, clock ticks (1/100 s on every usual kernel).
    pub utime: u64,
    /// CPU time in the kernel, clock ticks.
    pub stime: u64,
    /// Page faults without a disk of the children that it has waited for: the number grows with
    /// each child.
    pub faults_of_reaped: u64,
    /// CPU time of the children that it has waited for, and of those that they have waited for,
    /// clock ticks.
    pub reaped: u64,
    /// How many threads the process has.
    pub threads: u32,
    /// When it started, clock ticks since boot: distinguishes two processes that had the same
    /// number.
    pub start_time: u64,
    /// The CPU that it was on last.
    pub cpu: usize,
    /// Whether it has begun to end.
    pub is_ending: bool,
    /// Whether it is a thread of the kernel.
    pub is_of_kernel: bool,
}

/// The flag of a thread that ends (`PF_EXITING` of the kernel).
const ENDING: u64 = 4;
/// The flag of the kernel's own threads (`PF_KTHREAD`).
const OF_KERNEL: u64 = 0x0020_0000;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcState {
    /// On a CPU, or waiting for one.
    Running,
    /// Waiting for something.
    Sleeping,
    /// Waiting for something that signals do not interrupt; a frozen thread of cgroup v1 as well.
    DiskSleep,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by a debugger.
    Traced,
    /// Ended, and not yet waited for.
    Zombie,
    /// Gone.
    Dead,
    /// A state that only kernel threads have.
    Other,
}

impl ProcState {
    /// The state for the kernel's letter.
    pub fn of(letter: u8) -> ProcState {
        match letter {
            b'R' => ProcState::Running,
            b'S' => ProcState::Sleeping,
            b'D' => ProcState::DiskSleep,
            b'T' => ProcState::Stopped,
            b't' => ProcState::Traced,
            b'Z' => ProcState::Zombie,
            b'X' | b'x' => ProcState::Dead,
            _ => ProcState::Other,
        }
    }

    /// Whether it will never run again.
    pub fn has_ended(self) -> bool {
        matches!(self, ProcState::Zombie | ProcState::Dead)
    }
}

impl Stat {
    /// Whether the process has ended. Its main thread may end before others: the process then has
    /// the state of an ended one, and more threads.
    pub fn has_ended(&self) -> bool {
        self.state.has_ended() && self.threads <= 1
    }
}

pub(super) fn read(path: &Path) -> Result<Stat, FileError> {
    let line = files::read_line(path)?;
    parse(&line).ok_or_else(|| FileError::malformed(path, "a line of process status", &line))
}

fn parse(line: &str) -> Option<Stat> {
    let (pid, _) = line.split_once(' ')?;
    let (_, rest) = line.rsplit_once(')')?;
    // Counted as in proc(5): the first field after the name is the third.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let flags: u64 = field(9)?.parse().ok()?;
    Some(Stat {
        pid: pid.parse().ok()?,
        ppid: field(4)?.parse().ok()?,
        pgrp: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        state: ProcState::of(*field(3)?.as_bytes().first()?),
        utime: field(14)?.parse().ok()?,
        stime: field(15)?.parse().ok()?,
        faults_of_reaped: field(11)?.parse().ok()?,
        reaped: field(16)?.parse::<u64>().ok()? + field(17)?.parse::<u64>().ok()?,
        threads: field(20)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
        cpu: field(39)?.parse().ok()?,
        is_ending: flags & ENDING != 0,
        is_of_kernel: flags & OF_KERNEL != 0,
    })
}

/// The state in the beginning of a stat line; `None` if it is cut off before it.
pub(super) fn state_in(beginning: &[u8]) -> Option<ProcState> {
    let name_ends = beginning.iter().rposition(|byte| *byte == b')')?;
    beginning.get(name_ends + 2).map(|letter| ProcState::of(*letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "S 1 42 7 34816 42 4194304 1 2 3 4 55 66 5 6 20 0 9 0 123456 11 12 \
        0 0 0 0 0 0 0 0 0 0 0 0 0 0 3";

    #[test]
    fn fields_are_found_where_the_manual_counts_them() {
        let stat = parse(&format!("42 (cat) {REST}")).unwrap();
        let expected = Stat {
            pid: 42,
            ppid: 1,
            pgrp: 42,
            session: 7,
            state: ProcState::Sleeping,
            utime: 55,
            stime: 66,
            faults_of_reaped: 2,
            reaped: 11,
            threads: 9,
            start_time: 123_456,
            cpu: 3,
            is_ending: false,
            is_of_kernel: false,
        };
        assert_eq!(stat, expected);
        let ending = parse(&format!("42 (cat) {}", REST.replace("4194304", "4194308")));
        assert_eq!(ending, Some(Stat { is_ending: true, ..expected }));
    }

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let plain = parse(&format!("42 (cat) {REST}"));
        for name in ["a) R 9 9 9", ")", "", "((", "two\nlines) Z", "\u{fffd})"] {
            let line = format!("42 ({name}) {REST}");
            assert_eq!(parse(&line), plain, "{name}");
            assert_eq!(state_in(line.as_bytes()), Some(ProcState::Sleeping), "{name}");
        }
    }

    #[test]
    fn cut_lines_are_no_lines() {
        assert_eq!(parse("42 (cat) S 1 42"), None);
        assert_eq!(parse(""), None);
        assert_eq!(state_in(b"42 (cat"), None);
        assert_eq!(state_in(b"42 (cat)"), None);
    }
}
