//! `cosched recover` where only shims lead to the undo log.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use rustix::fs::{XattrFlags, removexattr, setxattr};
use rustix::process::Signal;

use super::kills::{all_started, start};
use super::recover::{killed_with_sentinel, open_to_others, recover_in};
use super::support::{Backend, Cosched, Place, User, eventually, program, skip};

/// Programs that end together, at a file `stop`, and take turns until then.
const TURNS: &str = "while [ ! -e stop ]; do sleep 0.01; done";
const OPTIONS: [&str; 6] = ["--policy", "gang", "--freezer", "signals", "--quantum", "20ms"];

/// Where the kernel keeps the capabilities of a file.
const CAPABILITIES: &str = "security.capability";

fn two_after(first: &str) -> String {
    let first = program("first", "threads = 1", first);
    let later = ["a", "b"].map(|name| program(name, "threads = 1\nafter = [\"first\"]", TURNS));
    [first, later.concat()].concat()
}

fn stopped(place: &Place) -> Vec<Process> {
    let marked = place.marked();
    marked.programs().into_iter().filter(|one| marked.is_stopped(*one)).collect()
}

fn is_one_stopped(place: &Place) -> bool {
    !stopped(place).is_empty()
}

/// Kills cosched while a program is stopped. `recover` with another runtime folder continues it.
fn recovered(place: &Place, cosched: Cosched) {
    eventually("a stopped program", || is_one_stopped(place));
    killed_with_sentinel(place, cosched);
    // A kill may come in the moment of a switch.
    let marked = place.marked();
    let held = is_one_stopped(place);
    let ended = recover_in(place, "data");
    let out = String::from_utf8_lossy(&ended.stdout);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(out.starts_with("After 1 killed cosched: "), "{out}{said}");
    assert_eq!((out.contains("continued"), ended.status.code()), (held, Some(0)), "{out}{said}");
    assert!(!is_one_stopped(place));
    let again = recover_in(place, "data");
    assert_eq!(String::from_utf8_lossy(&again.stdout), "Nothing was left behind.\n");
    place.write("stop", "");
    eventually("the programs' end", || marked.all().is_empty());
}

#[test]
fn programs_that_start_after_the_log_was_removed_are_recovered() {
    let place = Place::new();
    place.write("jobs.toml", two_after("while [ ! -e go ]; do sleep 0.01; done"));
    let cosched = place.cosched(&[&["run", "jobs.toml", "--out", "out"][..], &OPTIONS].concat());
    eventually("the first program", || !place.marked().programs().is_empty());
    fs::remove_dir_all(place.path("run")).unwrap();
    place.write("go", "");
    recovered(&place, cosched);
}

#[test]
fn a_runtime_folder_with_any_name_is_found() {
    let place = Place::new();
    place.write("jobs.toml", two_after("true"));
    let mut folder = place.path("run").into_os_string().into_vec();
    folder.push(0xff);
    let folder = OsString::from_vec(folder);
    fs::create_dir(&folder).unwrap();
    set_mode(Path::new(&folder), 0o700);
    let mut set = OsString::from("XDG_RUNTIME_DIR=");
    set.push(&folder);
    let mut command = Command::new("env");
    command.arg(set).arg(&place.executable).args(["run", "jobs.toml", "--out", "out"]);
    command.args(OPTIONS);
    recovered(&place, Cosched::start(command, &place));
}

#[test]
fn a_renamed_log_is_found() {
    let place = Place::new();
    place.write("jobs.toml", two_after("true"));
    let cosched = place.cosched(&[&["run", "jobs.toml", "--out", "out"][..], &OPTIONS].concat());
    eventually("a stopped program", || is_one_stopped(&place));
    let [log] = &place.undo_logs()[..] else { panic!("{:?}", place.undo_logs()) };
    fs::rename(log, log.with_extension("old")).unwrap();
    recovered(&place, cosched);
}

/// A program of two processes, first the parent.
type Family = [Process; 2];

/// The programs whose processes are both stopped.
fn stopped_families(place: &Place) -> Vec<Family> {
    let stopped = stopped(place);
    let parent = |child: Process| {
        let stat = child.look(&Proc::default())?;
        stopped.iter().copied().find(|one| one.pid == stat.ppid)
    };
    stopped.iter().filter_map(|child| Some([parent(*child)?, *child])).collect()
}

/// Kills the first process of a stopped program together with cosched, while the sentinel is
/// stopped. Returns the sentinels and the process that is left.
fn killed_with_a_parent(place: &Place) -> (Vec<Process>, Process) {
    let waiting = "while [ ! -e stop ]; do :; done & wait";
    let programs = ["a", "b"].map(|name| program(name, "threads = 1", waiting));
    place.write("jobs.toml", programs.concat());
    let cosched = place.cosched(&[&["run", "jobs.toml", "--out", "out"][..], &OPTIONS].concat());
    let (marked, mut found) = (place.marked(), None);
    eventually("a stopped program, and no change since", || {
        if stopped_families(place).is_empty() {
            return false;
        }
        // Stopped first, so that it starts no other sentinel.
        cosched.signal(Signal::STOP);
        eventually("cosched's stop", || marked.is_stopped(cosched.process()));
        let guards = marked.named("csentinel");
        guards.iter().for_each(|guard| marked.signal(*guard, Signal::STOP));
        eventually("their stop", || guards.iter().all(|guard| marked.is_stopped(*guard)));
        found = stopped_families(place).first().map(|family| (guards, *family));
        if found.is_none() {
            marked.continue_own();
        }
        found.is_some()
    });
    let (guards, [parent, child]) = found.unwrap();
    marked.signal(parent, Signal::KILL);
    cosched.kill();
    let is_reaped = || Proc::default().stat(parent.pid).is_err();
    eventually("their end", || is_reaped() && marked.named("cosched").is_empty());
    assert!(marked.is_stopped(child), "it is still stopped");
    (guards, child)
}

#[test]
fn a_stopped_orphan_is_continued_by_the_sentinel() {
    let place = Place::new();
    let (guards, orphan) = killed_with_a_parent(&place);
    let marked = place.marked();
    marked.continue_own();
    eventually("the sentinel's end", || !guards.iter().any(|guard| marked.lives(*guard)));
    assert!(marked.lives(orphan) && stopped(&place).is_empty());
    place.write("stop", "");
    eventually("the end of all", || marked.all().is_empty());
}

#[test]
fn a_stopped_orphan_is_recovered_without_a_sentinel() {
    let place = Place::new();
    let (guards, orphan) = killed_with_a_parent(&place);
    let marked = place.marked();
    guards.into_iter().for_each(|guard| marked.signal(guard, Signal::KILL));
    let ended = place.cosched(&["recover"]).ended().with(0);
    assert!(ended.stdout.contains("continued"), "{}", ended.stdout);
    assert!(marked.lives(orphan) && stopped(&place).is_empty());
    place.write("stop", "");
    eventually("the end of all", || marked.all().is_empty());
}

/// `recover` needs no good folder where shims hold the log.
#[test]
fn an_own_folder_that_others_may_write_to_is_no_obstacle() {
    let place = Place::new();
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    killed_with_sentinel(&place, cosched);
    open_to_others(&place);
    let ended = recover_in(&place, "run");
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(out.starts_with("After 1 killed cosched: "), "{ended:?}");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!is_one_stopped(&place));
}

/// The sentinel has undone it, and could not remove it under its new name.
#[test]
fn a_renamed_log_that_was_undone_holds_nothing() {
    let place = Place::new();
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    fs::rename(place.path("run/cosched"), place.path("run/renamed")).unwrap();
    cosched.signal(Signal::KILL);
    eventually("the sentinel's end", || place.marked().named("csentinel").is_empty());
    assert!(!is_one_stopped(&place));
    cosched.kill();
    let hint = place.cosched(&["top", "--once"]).ended().with(2);
    assert!(!hint.stderr.contains("`cosched recover`"), "{}", hint.stderr);
    let ended = recover_in(&place, "data");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((&said[..], ended.status.code()), ("", Some(0)));
}

/// A run of an ordinary user that was killed, with its sentinel.
fn killed_run_of_an_ordinary_user() -> Place {
    let place = Place::of(User::ordinary());
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    eventually("a stopped program", || is_one_stopped(&place));
    killed_with_sentinel(&place, cosched);
    place
}

fn set_mode(folder: &Path, mode: u32) {
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_cannot_be_listed_keeps_nothing_from_recovery() {
    let place = killed_run_of_an_ordinary_user();
    let folder = place.path("run/cosched");
    set_mode(&folder, 0o300);
    let ended = recover_in(&place, "run");
    set_mode(&folder, 0o700);
    let out = String::from_utf8_lossy(&ended.stdout);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(out.starts_with("After 1 killed cosched: "), "{out}{said}");
    assert!(said.contains("Permission denied") && ended.status.code() == Some(1), "{out}{said}");
    assert!(!is_one_stopped(&place));
}

#[test]
fn an_undone_log_that_cannot_be_removed_is_told_once() {
    let place = killed_run_of_an_ordinary_user();
    let folder = place.path("run/cosched");
    set_mode(&folder, 0o500);
    let first = recover_in(&place, "run");
    let again = recover_in(&place, "run");
    set_mode(&folder, 0o700);
    let said = String::from_utf8_lossy(&first.stderr);
    assert!(said.contains("cannot remove the undo log"), "{said}");
    assert_eq!(first.status.code(), Some(1), "{said}");
    assert!(!is_one_stopped(&place));
    let out = String::from_utf8_lossy(&again.stdout);
    assert_eq!((&out[..], again.status.code()), ("Nothing was left behind.\n", Some(0)));
}

#[test]
fn a_damaged_log_that_cannot_be_renamed_is_kept() {
    let place = killed_run_of_an_ordinary_user();
    let (folder, log) = (place.path("run/cosched"), place.forgotten_logs().remove(0));
    let damaged = [&fs::read(&log).unwrap()[..], b"damage\n"].concat();
    fs::write(&log, &damaged).unwrap();
    set_mode(&folder, 0o500);
    let ended = recover_in(&place, "run");
    set_mode(&folder, 0o700);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("is damaged") && said.contains("cannot rename"), "{said}");
    assert_eq!((ended.status.code(), fs::read(&log).unwrap()), (Some(1), damaged));
    assert!(!is_one_stopped(&place));
    fs::remove_file(log).unwrap();
}

/// Its shims give the capabilities up: with them, only a cosched that has as many could look.
#[test]
fn a_run_with_capabilities_is_recovered_without_them() {
    let place = Place::of(User::ordinary());
    // CAP_SYS_NICE, permitted and effective, as the kernel stores it.
    let nice = [0x0200_0001_u32, 1 << 23, 0, 0, 0].map(u32::to_le_bytes).concat();
    let is_caller = matches!(place.user, User::Caller);
    if is_caller || setxattr(&place.executable, CAPABILITIES, &nice, XattrFlags::empty()).is_err() {
        return skip("this user may give no capabilities to a file");
    }
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    eventually("a stopped program", || is_one_stopped(&place));
    let status = fs::read_to_string(format!("/proc/{}/status", cosched.pid())).unwrap();
    let has_any = status.contains("CapPrm:\t0000000000800000");
    killed_with_sentinel(&place, cosched);
    if !has_any {
        return skip("this user may give no capabilities to a file");
    }
    removexattr(&place.executable, CAPABILITIES).unwrap();
    let ended = recover_in(&place, "data");
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(out.starts_with("After 1 killed cosched: "), "{ended:?}");
    assert!(!is_one_stopped(&place));
}
