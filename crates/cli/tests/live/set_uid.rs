//! Programs of an ordinary user that have, or get, the rights of another one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cosched_core::{Aspect, Refusal};
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::{Proc, ProcState};
use cosched_linux::process::tree::Process;
use rustix::process::Signal;

use super::support::{Place, STAMPS, User, copy_file, eventually, program, skip};

/// A copy of a program that has the rights of root, whichever user starts it; `None`, with a
/// message, where there is no such thing.
fn set_uid(place: &Place, original: &str) -> Option<PathBuf> {
    let copy = |original: &str| {
        let path = place.path("set-uid");
        copy_file(Path::new(original), &path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        path
    };
    let tried = place.user.command(&copy("/usr/bin/id")).arg("-u").output().unwrap();
    fs::remove_file(place.path("set-uid")).unwrap();
    match (&place.user, &tried.stdout[..]) {
        (User::Ordinary(_), b"0\n") => Some(copy(original)),
        _ => {
            skip("no set-uid program can be made here");
            None
        }
    }
}

/// It may be stopped: its real user is the caller. But if it made itself root's alone while the
/// stop is on its way, the caller could not continue it.
#[test]
fn a_set_uid_program_is_not_frozen_by_signals() {
    let place = Place::of(User::ordinary());
    let Some(tail) = set_uid(&place, "/usr/bin/tail") else { return };
    // One runs at a time: if `b` sees that `a` is set-uid, it was so when it was to be frozen.
    let a = format!(
        "until [ -s b ]; do :; done; echo $$ > a; exec {} --pid=$(cat b) -f /dev/null",
        tail.display()
    );
    let b = format!(
        "echo $$ > b; until [ -s a ]; do :; done; read pid < a; \
         until grep -q set-uid /proc/$pid/comm; do :; done; {STAMPS}"
    );
    let keys = format!("threads = {}", affinity::get(0).unwrap().len());
    let tables = [program("a", &keys, &a), program("b", &keys, &b)];
    let how = "--policy gang --quantum 20ms --freezer signals";
    let result = place.run(&tables, how).ended().with(0).result();
    let refused = result.deviations.iter().filter(|one| one.program.slot == 0);
    let mut refused = refused.map(|one| (one.what, one.why));
    let expected = (Aspect::Frozen, Refusal::NotPermitted);
    assert!(refused.any(|one| one == expected), "{:?}", result.deviations);
}

/// Where the program has another user for good, as after `sudo`.
#[test]
fn what_only_root_can_undo_is_named_with_the_command() {
    let place = Place::of(User::ordinary());
    let Some(setpriv) = set_uid(&place, "/usr/bin/setpriv") else { return };
    let cpus = affinity::get(0).unwrap();
    if cpus.len() < 2 {
        return skip("one CPU cannot be narrowed");
    }
    let a = format!("exec {} --reuid 0 sleep 1000", setpriv.display());
    let a = format!("until [ -s go ]; do :; done; {a}");
    let tables = [
        program("a", "threads = 1", &a),
        program("b", &format!("threads = {}", cpus.len()), "while :; do :; done"),
    ];
    let how = "--policy gang --quantum 20ms --freezer signals --grace 10ms";
    let cosched = place.run(&tables, how);
    let proc = Proc::default();
    let is_stopped = |text: &str| text.contains("\"stopped_by_signal\":true");
    eventually("a freeze", || {
        place.undo_logs().iter().any(|log| fs::read_to_string(log).is_ok_and(|s| is_stopped(&s)))
    });
    place.write("go", "go");
    let marked = place.marked();
    let of_root = || marked.programs().into_iter().find(|one| proc.user(one.pid) == Some(0));
    let is_sleep = |one: &Process| proc.name(one.pid).is_ok_and(|name| name == "sleep");
    eventually("root's program", || of_root().as_ref().is_some_and(is_sleep));
    let process = of_root().unwrap();
    cosched.signal(Signal::INT);

    let taskset = format!("taskset -cp {cpus} {}`", process.pid);
    let ended = cosched.ended().with(130);
    assert!(!ended.stderr.contains("tries again"), "{}", ended.stderr);
    ended.saying(&[&format!("`sudo {taskset}")]);
    let again = place.cosched(&["recover"]).ended().with(1);
    again.saying(&[&format!("`sudo {taskset}")]);

    // As if cosched's stop had been on its way when the program changed its user.
    assert_eq!(process.signal(&proc, Signal::STOP), Ok(true));
    let is_stopped = || process.look(&proc).unwrap().state == ProcState::Stopped;
    eventually("the stop", is_stopped);
    let again = place.cosched(&["recover"]).ended().with(1);
    again.saying(&[&format!("`sudo kill -CONT {}`", process.pid)]);
    let by_root = || {
        let mut command = Command::new(&place.executable);
        command.arg("recover").env("XDG_RUNTIME_DIR", place.path("tmp")).output().unwrap()
    };
    let (bound, ended) = (affinity::get(process.pid), by_root());
    let said = String::from_utf8(ended.stderr).unwrap();
    for command in [&taskset, &format!("kill -CONT {}`", process.pid)] {
        assert!(said.contains(&format!("`{command}")), "{said}");
    }
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(is_stopped() && affinity::get(process.pid) == bound, "root trusted another user");

    affinity::set(process.pid, &cpus).unwrap();
    assert_eq!(process.signal(&proc, Signal::CONT), Ok(true));
    eventually("its going on", || !is_stopped());
    place.cosched(&["recover"]).ended().with(0);
    assert_eq!(by_root().status.code(), Some(0));
    marked.signal(process, Signal::KILL);
}
