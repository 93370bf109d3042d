//! Children that have ended: how, and what they have used.
//!
//! A shim waits for all of its descendants. cosched waits only for processes that it can name, so
//! it never takes the end of a child from other code that waits for it.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use cosched_core::{Exit, Usage};

/// What is known of a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Child {
    /// It has not ended.
    Lives,
    /// It has ended, and is gone now.
    Ended(Exit, Usage),
    /// It is no child of the caller, or it has been waited for already.
    NotOurs,
}

/// Checks a child, and reaps it if it has ended. Never waits.
pub fn look(pid: i32) -> Child {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::uninit());
    // SAFETY: both pointers are writable and of the types that the call fills.
    let found = unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match found {
        0 => Child::Lives,
        // SAFETY: the call has named a child that has ended, so the kernel has filled every field.
        found if found == pid => {
            Child::Ended(exit_of(status), usage_of(unsafe { usage.assume_init_ref() }))
        }
        _ => Child::NotOurs,
    }
}

/// The usage of all children that were waited for, with theirs in turn.
///
/// # Errors
/// When the kernel does not tell.
pub fn usage_of_all() -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is writable and of the type that the call fills.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so the kernel has filled every field.
    Ok(usage_of(unsafe { usage.assume_init_ref() }))
}

/// How a process ended, from the status of `wait`.
pub fn exit_of(status: i32) -> Exit {
    let status = ExitStatus::from_raw(status);
    let byte = |n: i32| u8::try_from(n).ok();
    match (status.code().and_then(byte), status.signal().and_then(byte)) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

fn usage_of(usage: &libc::rusage) -> Usage {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Usage {
        user_seconds: seconds(usage.ru_utime),
        system_seconds: seconds(usage.ru_stime),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
        max_rss_kib: count(usage.ru_maxrss),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_end_of_a_child_is_reported_once() {
        let mut child = Command::new("sh")
            .args(["-c", "read line; kill -USR1 $$"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        assert_eq!(look(pid), Child::Lives);
        drop(child.stdin.take());
        let (exit, usage) = loop {
            match look(pid) {
                Child::Lives => std::thread::yield_now(),
                Child::Ended(exit, usage) => break (exit, usage),
                Child::NotOurs => panic!("it is ours"),
            }
        };
        assert_eq!(exit, Exit::Signal(libc::SIGUSR1 as u8));
        assert!(usage.max_rss_kib > 0);
        assert_eq!(look(pid), Child::NotOurs);
        assert!(child.wait().is_err(), "its end was told twice");
    }

    #[test]
    fn a_foreign_process_is_not_a_child() {
        assert_eq!(look(1), Child::NotOurs);
    }
}
