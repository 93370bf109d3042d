//! System calls of the helpers that fail: whichever call of a shim or of the sentinel fails, and
//! when, no program is left frozen, bound, or in a group, and cosched says what is wrong.
//!
//! `strace` makes the calls of one helper fail. The helper is cosched's own executable. A copy of
//! cosched therefore starts helpers by a script, which stops until `strace` traces the first one.
//! `COSCHED_FAULTS` is the number of moments at which each call fails.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::faults::{freezer, moments, without_strace};
use super::kills::{restored, wrongs};
use super::support::{Backend, Cosched, Place, copy_file, eventually, program, two_at_once};

/// A kind of call, how it may fail, and how many of them a helper makes.
type Call = (&'static str, &'static [&'static str], u64);

/// The calls of a program's first process before it executes the command.
const OF_START: [Call; 10] = [
    ("openat", &["EMFILE", "EIO"], 6),
    ("read", &["EIO", "EINTR"], 4),
    ("write", &["EIO", "EINTR"], 3),
    ("recvfrom", &["EIO", "EINTR"], 2),
    ("sendto", &["EPIPE", "EINTR"], 2),
    ("rt_sigaction", &["EINVAL"], 14),
    ("dup2", &["EMFILE", "EINTR"], 3),
    ("setpgid", &["EPERM"], 1),
    ("chdir", &["EIO"], 1),
    ("execve", &["ENOMEM", "EACCES"], 2),
];

/// The calls of a shim.
const OF_SHIM: [Call; 22] = [
    ("openat", &["EMFILE", "EIO"], 12),
    ("read", &["EIO", "EINTR"], 12),
    ("write", &["EIO", "EINTR"], 3),
    ("close_range", &["EINVAL"], 1),
    ("prctl", &["EINVAL"], 3),
    ("rt_sigaction", &["EINVAL"], 14),
    ("fcntl", &["EMFILE"], 17),
    ("dup2", &["EMFILE", "EINTR"], 3),
    ("epoll_create1", &["EMFILE"], 1),
    ("signalfd4", &["EMFILE"], 1),
    ("timerfd_create", &["EMFILE"], 1),
    ("timerfd_settime", &["EINVAL"], 1),
    ("epoll_ctl", &["ENOSPC"], 3),
    ("epoll_wait,epoll_pwait", &["EINTR"], 3),
    ("recvfrom", &["EIO", "EINTR"], 3),
    ("sendto", &["EPIPE", "EINTR"], 3),
    ("socketpair", &["EMFILE"], 1),
    ("recvmsg", &["EIO", "EINTR"], 1),
    ("chdir", &["EIO"], 2),
    ("clone3,fork,clone", &["EAGAIN"], 3),
    ("wait4", &["EINTR"], 3),
    ("getrusage", &["EFAULT"], 2),
];

/// The calls of a sentinel until it is on guard.
const OF_SENTINEL: [Call; 11] = [
    ("openat", &["EMFILE", "EIO"], 24),
    ("read", &["EIO", "EINTR"], 30),
    ("write", &["EIO"], 3),
    ("mkdir", &["ENOSPC"], 1),
    ("fcntl", &["EMFILE"], 10),
    ("dup2", &["EMFILE"], 3),
    ("recvfrom", &["EIO", "EINTR"], 40),
    ("sendto", &["EPIPE"], 2),
    ("setsid", &["EPERM"], 1),
    ("chdir", &["EIO"], 1),
    ("ppoll,poll", &["EINTR", "ENOMEM"], 4),
];

/// The calls of a sentinel that undoes everything.
const OF_UNDOING: [Call; 17] = [
    ("openat", &["EMFILE", "EIO"], 60),
    ("read", &["EIO", "EINTR"], 60),
    ("write", &["EIO", "EINTR"], 12),
    ("pread64", &["EIO", "EINTR"], 6),
    ("getdents64", &["EIO"], 20),
    ("statx,newfstatat", &["EIO"], 20),
    ("fcntl", &["EMFILE"], 20),
    ("rmdir", &["EBUSY"], 6),
    ("unlink", &["EIO"], 3),
    ("ftruncate", &["EIO"], 2),
    ("pidfd_open", &["EMFILE"], 6),
    ("pidfd_send_signal,kill", &["EPERM"], 6),
    ("sched_getaffinity", &["EINVAL"], 6),
    ("sched_setaffinity", &["EINVAL"], 6),
    ("clock_nanosleep,nanosleep", &["EINTR"], 3),
    ("ppoll,poll", &["EINTR", "ENOMEM"], 1),
    ("recvfrom", &["EIO", "EINTR"], 1),
];

/// What starts helpers instead of cosched's own executable, `/proc/self/exe`: a name of the same
/// length, in the folder where cosched is started.
const SCRIPT: &str = "./faulty-start";

/// A cosched that starts its helpers by the script.
fn with_script() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cosched");
    let mut sed = Command::new("sed");
    sed.env("LC_ALL", "C").arg(format!("s|/proc/self/exe|{SCRIPT}|g"));
    sed.arg(env!("CARGO_BIN_EXE_cosched")).stdout(File::create(&path).unwrap());
    assert!(sed.status().unwrap().success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, path)
}

/// The `nth` call of a kind that fails, in the words of `strace`.
fn fault(call: &str, error: &str, nth: u64) -> [String; 4] {
    let kinds: Vec<String> = call.split(',').map(|kind| format!("?{kind}")).collect();
    let kinds = kinds.join(",");
    let inject = format!("inject={kinds}:error={error}:when={nth}");
    ["-e".into(), format!("trace={kinds}"), "-e".into(), inject]
}

/// A call that fails: its kind, the error, the number of the call, and how programs are frozen.
type Fault = (&'static str, &'static str, u64, &'static str);

/// Each call, with the moments at which it fails.
fn each(calls: &[Call]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (kind, (call, errors, most)) in calls.iter().enumerate() {
        for (number, error) in errors.iter().enumerate() {
            for moment in 0..moments().min(*most) {
                // Spread without a pattern.
                let nth = 1 + ((kind + 5 * number) as u64 * 31 + moment * 97) % most;
                let freezer = freezer(kind as u64 + number as u64 + moment);
                faults.push((*call, *error, nth, freezer));
            }
        }
    }
    faults
}

/// Programs that take turns for a while, and note that they came to their end.
fn programs() -> String {
    let work = "i=0; while [ $i -lt 9 ]; do sleep 0.01; i=$((i+1)); done; echo";
    ["a", "b", "c"]
        .map(|name| program(name, "threads = 1", &format!("{work} > {name}.done || exit 9")))
        .concat()
}

/// Has a call of this helper fail from now on; `follows`: also of its children.
fn traced(place: &Place, helper: Process, fault: &[String; 4], follows: bool) -> Child {
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-o"]).arg(place.path("trace")).args(fault);
    let pid = helper.pid.to_string();
    let strace = strace.args(follows.then_some("-f")).args(["-p", &pid]).spawn().unwrap();
    let status = format!("/proc/{pid}/status");
    let tracer = format!("TracerPid:\t{}\n", strace.id());
    eventually("strace", || fs::read_to_string(&status).is_ok_and(|s| s.contains(&tracer)));
    strace
}

/// The calls that have failed.
fn injected(place: &Place) -> String {
    let trace = place.read("trace");
    trace.lines().filter(|line| line.contains("INJECTED")).collect()
}

/// A run in which a call of its first such helper fails.
fn run_with_a_fault(
    cosched: &Path,
    helper: &str,
    fault: &[String; 4],
    freezer: &str,
    follows: bool,
) {
    let place = Place::new();
    place.write("jobs.toml", programs());
    let own = cosched.display();
    let script = format!(
        "#!/bin/sh\n\
         if [ \"$1\" = {helper} ] && mkdir faulty 2> /dev/null; then\n\
         echo $$ > traced; kill -STOP $$\n\
         fi\n\
         exec {own} \"$@\"\n"
    );
    let (written, executed) = (place.write("start.sh", script), place.path(SCRIPT));
    copy_file(&written, &executed);
    fs::set_permissions(executed, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(cosched);
    command.args(["run", "jobs.toml", "--json", "--label", "--policy", "greedy"]);
    command.args(["--quantum", "5ms", "--freezer", freezer]);
    let cosched = Cosched::start(command, &place);
    let marked = place.marked();
    let stopped = || {
        let pid = place.read("traced").trim().parse().ok()?;
        Process::find(&Proc::default(), pid).ok().filter(|helper| marked.is_stopped(*helper))
    };
    eventually("the helper", || stopped().is_some());
    let helper = stopped().unwrap();
    let mut strace = traced(&place, helper, fault, follows);
    marked.signal(helper, Signal::CONT);
    let ended = cosched.ended();
    strace.wait().unwrap();
    let injected = injected(&place);
    let said = format!("{fault:?} {freezer}: {:?} {}\n{injected}", ended.code(), ended.stderr);
    assert!([Some(0), Some(1), Some(2)].contains(&ended.code()), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    let mut is_reported = ended.code() == Some(0) || !ended.stderr.is_empty();
    for program in result["programs"].as_array().into_iter().flatten() {
        let (name, exit) = (program["name"].as_str().unwrap(), &program["exit"]);
        let is_done = place.path(&format!("{name}.done")).exists();
        assert!(exit["code"] != 0 || is_done, "{name} has not run: {exit}\n{said}");
        // A command with failing calls of its own ends with another code. With this one ends a
        // process that could not become the command.
        is_reported |= follows && exit["code"] != 0 && exit["code"] != 1;
    }
    assert!(is_reported, "it says nothing: {said}");
    assert!(ended.code() != Some(0) || result["programs"].is_array(), "{said}");
    restored(&place, ended.pid);
    place.nothing_is_left_of(&ended);
}

#[test]
fn nothing_is_left_behind_whichever_call_of_a_shim_fails() {
    if without_strace() {
        return;
    }
    let (_folder, cosched) = with_script();
    two_at_once(each(&OF_SHIM), |(call, error, nth, freezer)| {
        eprintln!("{call} {nth}: {error}, frozen by {freezer}");
        run_with_a_fault(&cosched, "__shim", &fault(call, error, nth), freezer, false);
    });
}

#[test]
fn nothing_is_left_behind_whichever_call_at_a_start_fails() {
    if without_strace() {
        return;
    }
    let (_folder, cosched) = with_script();
    two_at_once(each(&OF_START), |(call, error, nth, freezer)| {
        eprintln!("{call} {nth}: {error}, frozen by {freezer}");
        run_with_a_fault(&cosched, "__shim", &fault(call, error, nth), freezer, true);
    });
}

#[test]
fn nothing_is_left_behind_whichever_call_of_a_sentinel_fails() {
    if without_strace() {
        return;
    }
    let (_folder, cosched) = with_script();
    two_at_once(each(&OF_SENTINEL), |(call, error, nth, freezer)| {
        eprintln!("{call} {nth}: {error}, frozen by {freezer}");
        run_with_a_fault(&cosched, "__sentinel", &fault(call, error, nth), freezer, false);
    });
}

#[test]
fn everything_is_undone_whichever_call_of_a_sentinel_fails() {
    if without_strace() {
        return;
    }
    // One after another: their programs keep all CPUs busy.
    for (call, error, nth, freezer) in each(&OF_UNDOING) {
        eprintln!("{call} {nth}: {error}, frozen by {freezer}");
        let place = Place::new();
        let cosched = super::kills::start(&place, Backend(freezer));
        super::kills::all_started(&place);
        let marked = place.marked();
        let [sentinel] = marked.named("csentinel")[..] else { panic!("{:?}", marked.all()) };
        let mut strace = traced(&place, sentinel, &fault(call, error, nth), false);
        let pid = cosched.pid();
        cosched.kill();
        eventually("the sentinel's end", || !marked.lives(sentinel));
        strace.wait().unwrap();
        let left = wrongs(&place, pid);
        assert_eq!(left, Vec::<String>::new(), "{}", injected(&place));
        assert!(marked.end());
        place.no_trace_is_left_of(pid);
    }
}
