//! System calls that fail: whichever call fails, and when, no program is left frozen, bound, or in
//! a group, and cosched reports the error or goes on.
//!
//! `strace` makes the calls fail. `COSCHED_FAULTS` is the number of moments at which each of them
//! does.

use std::process::Command;

use super::kills::restored;
use super::support::{Backend, Cosched, Place, program, skip, two_at_once};

/// The calls that cosched makes while programs run, and how each may fail.
const CALLS: [(&str, &[&str]); 24] = [
    ("openat", &["EMFILE", "EIO", "EINTR", "ENOSPC"]),
    ("read", &["EIO", "EINTR"]),
    ("write", &["ENOSPC", "EIO", "EINTR"]),
    ("pread64", &["EIO"]),
    ("pwrite64", &["EIO", "ENOSPC"]),
    ("ftruncate", &["EIO"]),
    ("rename", &["ENOSPC"]),
    ("unlink", &["EIO"]),
    ("mkdir", &["ENOSPC", "EIO"]),
    ("rmdir", &["EBUSY"]),
    ("memfd_create", &["EMFILE"]),
    ("fcntl", &["EMFILE"]),
    ("socketpair", &["EMFILE"]),
    ("recvfrom", &["EIO", "EINTR"]),
    ("sendto", &["EPIPE"]),
    ("epoll_wait", &["EINTR"]),
    ("epoll_ctl", &["ENOMEM"]),
    ("timerfd_settime", &["EINVAL"]),
    ("clone3", &["EAGAIN"]),
    ("wait4", &["EINTR"]),
    ("sched_setaffinity", &["EINVAL"]),
    ("sched_setattr", &["EPERM"]),
    ("pidfd_send_signal", &["EPERM"]),
    ("kill", &["EPERM"]),
];
/// The first call of a kind that may fail: those before it are made by the loader of executables.
const FIRST: u64 = 10;

pub(super) fn moments() -> u64 {
    std::env::var("COSCHED_FAULTS").map_or(1, |text| text.parse().unwrap())
}

/// The backends of freezing in turn, of which each has some moments.
pub(super) fn freezer(moment: u64) -> &'static str {
    let here = Backend::here();
    here[moment as usize % here.len()].0
}

/// Programs that take turns for a while; one starts later.
fn programs() -> [String; 3] {
    let work = "i=0; while [ $i -lt 15 ]; do sleep 0.01; i=$((i+1)); done";
    ["threads = 1", "threads = 2", "start = '100ms'"]
        .into_iter()
        .zip(["a", "b", "c"])
        .map(|(keys, name)| program(name, keys, &format!("echo $$ > {name}; {work}")))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

/// Makes the `nth` call of this kind fail like this.
fn with_a_fault(call: &str, error: &str, nth: u64, freezer: &str) {
    let what = format!("{call} {nth}: {error}, frozen by {freezer}");
    let place = Place::new();
    place.write("jobs.toml", programs().concat());
    let mut command = Command::new("strace");
    command.args(["-D", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
    command.arg("-e").arg(format!("inject={call}:error={error}:when={nth}"));
    command.arg(&place.executable).args(["run", "jobs.toml", "--out", "out"]);
    command.args(["--policy", "greedy", "--quantum", "5ms", "--freezer", freezer]);
    eprintln!("{what}");
    let ended = Cosched::start(command, &place).ended();
    let said = &ended.stderr;
    assert!(ended.code().is_some_and(|code| code != 101), "{what}: {said}");
    assert!(!said.contains("panicked") && !said.contains("invalid value"), "{what}: {said}");
    assert!(ended.code() == Some(0) || !said.is_empty(), "{what}: it says nothing");
    restored(&place, ended.pid);
    place.marked().end();
}

pub(super) fn without_strace() -> bool {
    let is_missing = Command::new("strace").arg("-V").output().is_err();
    if is_missing {
        skip("there is no strace");
    }
    is_missing
}

#[test]
fn nothing_is_left_behind_whichever_call_fails() {
    if without_strace() {
        return;
    }
    let mut faults = Vec::new();
    for (kind, (call, errors)) in CALLS.iter().enumerate() {
        for (number, error) in errors.iter().enumerate() {
            for moment in 0..moments() {
                // Spread without a pattern, from the first preparations to the last turns.
                let spread = ((kind + 7 * number) as u64 * 31 + moment * 97) % 400;
                let nth = FIRST + spread * spread / 400;
                faults.push((call, error, nth, freezer(kind as u64 + number as u64 + moment)));
            }
        }
    }
    two_at_once(faults, |(call, error, nth, freezer)| with_a_fault(call, error, nth, freezer));
}
