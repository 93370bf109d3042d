//! Waits that a pause would end early, or with a result that the program takes for something else.
//!
//! After a pause, the kernel ends some system calls with EINTR, although no handler of a signal has
//! run (`docs/safety.md`, "Limits"). A program that catches signals has to expect that. One that
//! catches none may take it for an error, and end.
//!
//! A parent that waits with WUNTRACED or WCONTINUED is told of each child that a pause by signals
//! stops or continues.
//!
//! Which call a thread is in is read from `/proc/PID/task/TID/syscall`. Not seen: `recv` on a
//! socket with a time-out and `sigwaitinfo`, which look like calls that are begun again.

use crate::kernel::files;
use crate::kernel::procfs::Proc;

/// The most threads of a process that are looked at, right before a pause.
const MOST_THREADS: usize = 64;

/// Whether a process catches no signal, and one of its first threads is in a call that a pause
/// would end early.
pub(crate) fn waits_for_events(proc: &Proc, pid: i32) -> bool {
    if proc.knows_signals(pid) {
        return false;
    }
    calls(proc, pid).any(|call| ends_early(&call))
}

/// Whether one of the first threads of a process waits for children, also for those that stop or
/// continue.
pub(crate) fn waits_for_stops(proc: &Proc, pid: i32) -> bool {
    calls(proc, pid).any(|call| asks_for_stopped(&call))
}

/// The calls in which the first threads of a process are. One that has ended has none.
pub(super) fn calls(proc: &Proc, pid: i32) -> impl Iterator<Item = String> {
    let tasks = proc.folder(pid).join("task");
    let threads = files::numbered(&tasks, "").unwrap_or_default();
    let call = move |tid: usize| files::read(&tasks.join(tid.to_string()).join("syscall")).ok();
    threads.into_iter().take(MOST_THREADS).filter_map(call)
}

/// Whether a pause would end the call in a line of `/proc/PID/syscall`, which is its number and its
/// arguments.
fn ends_early(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let Some(Ok(number)) = words.next().map(str::parse::<i64>) else { return false };
    match number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => true,
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => true,
        libc::SYS_semop | libc::SYS_semtimedop => true,
        libc::SYS_io_getevents | libc::SYS_io_uring_enter => true,
        // The C library begins `sigwait`, which has no time-out, again by itself.
        libc::SYS_rt_sigtimedwait => words.nth(2).is_some_and(|timeout| timeout != "0x0"),
        _ => false,
    }
}

/// Whether the call in such a line waits for children, also for those that stop or continue.
fn asks_for_stopped(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let Some(Ok(number)) = words.next().map(str::parse::<i64>) else { return false };
    let options = match number {
        libc::SYS_wait4 => words.nth(2),
        libc::SYS_waitid => words.nth(3),
        _ => return false,
    };
    let hexadecimal = options.and_then(|word| word.strip_prefix("0x"));
    let options = hexadecimal.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // The kernel takes the lower half.
    let stops = libc::WUNTRACED | libc::WSTOPPED | libc::WCONTINUED;
    options.is_some_and(|options| options as i32 & stops != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_end_early_are_known_by_their_numbers() {
        let line = |number: i64, third: &str| format!("{number} 0x3 0x7ff {third} 0x0 0x8 0x0 0x1");
        for number in [libc::SYS_epoll_pwait, libc::SYS_semtimedop] {
            assert!(ends_early(&line(number, "0x1")), "{number}");
        }
        assert!(ends_early(&line(libc::SYS_rt_sigtimedwait, "0x7ffe")));
        assert!(!ends_early(&line(libc::SYS_rt_sigtimedwait, "0x0")), "sigwait");
        for line in [&line(libc::SYS_read, "0x1"), "running", "-1 0x7ffe 0x7f34", ""] {
            assert!(!ends_early(line), "{line}");
        }
    }

    #[test]
    fn waits_for_stopped_children_are_known_by_their_options() {
        let line = |number: i64, third: &str, fourth: &str| {
            format!("{number} 0xffffffff 0x7ff {third} {fourth} 0x8 0x0 0x1")
        };
        assert!(asks_for_stopped(&line(libc::SYS_wait4, "0xa", "0x0")));
        assert!(asks_for_stopped(&line(libc::SYS_wait4, "0xffffffff80000002", "0x0")));
        assert!(asks_for_stopped(&line(libc::SYS_waitid, "0x7ff2", "0x6")));
        assert!(asks_for_stopped(&line(libc::SYS_waitid, "0x7ff2", "0xc")), "continued");
        assert!(asks_for_stopped(&line(libc::SYS_wait4, "0x8", "0x0")), "continued");
        for line in [
            &line(libc::SYS_wait4, "0x0", "0x2"),
            &line(libc::SYS_waitid, "0x7ff2", "0x4"),
            &line(libc::SYS_read, "0x2", "0x2"),
            "running",
        ] {
            assert!(!asks_for_stopped(line), "{line}");
        }
    }

    #[test]
    fn a_process_that_catches_signals_expects_early_ends() {
        let root = tempfile::tempdir().unwrap();
        let proc = Proc::new(root.path());
        let process = proc.folder(7);
        std::fs::create_dir_all(process.join("task/7")).unwrap();
        let call = format!("{} 0x3 0x7ff 0x1 0xffffffff 0x0 0x8", libc::SYS_epoll_pwait);
        std::fs::write(process.join("task/7/syscall"), call).unwrap();
        // The C library's own signals, 32 and 33, are no program's.
        let cases =
            [("0000000000000006", "0000000180000000", true), ("0", "0000000180000002", false)];
        for (ignored, caught, expected) in cases.into_iter().chain([("1000", "0", false)]) {
            let status = format!("SigIgn:\t{ignored}\nSigCgt:\t{caught}\n");
            std::fs::write(process.join("status"), status).unwrap();
            assert_eq!(waits_for_events(&proc, 7), expected, "{ignored} {caught}");
        }
        assert!(!waits_for_events(&proc, 8));
        std::fs::rename(process.join("task/7"), process.join("task/40")).unwrap();
        for thread in 7..40 {
            let thread = process.join(format!("task/{thread}"));
            std::fs::create_dir_all(&thread).unwrap();
            std::fs::write(thread.join("syscall"), "running\n").unwrap();
        }
        std::fs::write(process.join("status"), "SigIgn:\t0\nSigCgt:\t0\n").unwrap();
        assert!(waits_for_events(&proc, 7), "behind 33 others");
    }
}
