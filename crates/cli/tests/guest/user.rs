//! An ordinary user logs in, and a systemd user manager gives cosched a scope.
//!
//! cosched recommends this to users without privileges: the manager makes a cgroup below its own
//! and delegates it, with the controllers that it has itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use rustix::process::Signal;

use super::guest_is_one_of;
use super::support::{Cosched, Place, User, eventually, program};

/// A user that can log in; the guest has such an account.
const ACCOUNT: &str = "tester";
const SPIN: &str = "while :; do :; done";

/// Starts cosched as the user does: logs in, and types one line.
fn log_in_and_run(place: &Place, tables: &[String], options: &str) -> Cosched {
    place.write("jobs.toml", tables.concat());
    let run =
        "exec systemd-run --user --scope --quiet -p Delegate=yes ./cosched run jobs.toml --out out";
    log_in(place, &format!("{run} {options}"))
}

/// Logs in, goes to the place, and types a line.
pub(super) fn log_in(place: &Place, line: &str) -> Cosched {
    let line = format!("cd {} && {line}", place.folder().display());
    let mut command = Command::new("runuser");
    command.args(["--login", "--whitelist-environment=COSCHED_TEST_PLACE", ACCOUNT, "-c", &line]);
    Cosched::start(command, place)
}

pub(super) fn number(option: &str) -> u32 {
    let said = Command::new("id").args([option, ACCOUNT]).output().unwrap().stdout;
    String::from_utf8(said).unwrap().trim().parse().unwrap()
}

/// A place of that user.
pub(super) fn place() -> Place {
    let place = Place::of(User::Ordinary(number("-u")));
    let executable = fs::metadata(&place.executable).unwrap();
    assert_eq!(executable.permissions().mode() & 0o005, 0o005);
    place
}

/// Nothing of cosched's is left below the user's manager: no scope, no cgroup, no log.
pub(super) fn nothing_is_left(place: &Place) {
    eventually("the end of every process", || place.marked().all().is_empty());
    let uid = number("-u");
    let logs = fs::read_dir(format!("/run/user/{uid}/cosched"));
    assert_eq!(logs.map_or(0, Iterator::count), 0);
    let slice = format!("/sys/fs/cgroup/user.slice/user-{uid}.slice");
    let ours = || {
        let found = Command::new("find").args([&slice, "-name", "c*-*[0-9]*"]).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    eventually("the end of every cgroup", || ours().is_empty());
}

/// The cosched that was started in a place, not its helpers.
pub(super) fn main_process(place: &Place) -> Process {
    let proc = Proc::default();
    let has_arguments = |process: &Process| {
        let arguments = fs::read(proc.folder(process.pid).join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == b"jobs.toml")
    };
    place.marked().named("cosched").into_iter().find(has_arguments).unwrap()
}

#[test]
fn a_user_scope_freezes_by_cgroup() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let work = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; cat /proc/self/cgroup";
    let tables = ["a", "b"].map(|name| program(name, "threads = 2", work));
    let ended = log_in_and_run(&place, &tables, "--policy gang --quantum 100ms").ended().with(0);
    let result = ended.result();
    assert_eq!(result.backends.freezing, "cgroup-v2");
    for program in &result.programs {
        assert_eq!(program.exit_status, Some(0));
        assert!(program.timeline.len() > 1, "{} was never frozen", program.name);
        let cgroup = place.read(&format!("out/{}.stdout", program.name));
        assert!(cgroup.contains(&format!("/user@{}.service/", number("-u"))), "{cgroup}");
        assert!(cgroup.contains("/cosched-"), "{cgroup}");
    }
    nothing_is_left(&place);
}

#[test]
fn a_user_with_the_cpu_controller_gets_a_weight_per_program() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    // Again and again: the sentinel leaves the scope at the same time.
    for _ in 0..2 {
        let place = place();
        let script = "cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/cpu.weight";
        let tables = ["a", "b"].map(|name| program(name, "", script));
        let ended = log_in_and_run(&place, &tables, "--policy linux-groups").ended().with(0);
        for name in ["a", "b"] {
            assert_eq!(place.read(&format!("out/{name}.stdout")), "100\n", "{}", ended.stderr);
        }
        nothing_is_left(&place);
    }
}

#[test]
fn a_cpuset_not_delegated_to_the_manager_is_refused() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let ended = log_in_and_run(&place, &[program("a", "", ":")], "--policy gang --pinning cpuset");
    ended.ended().with(2).saying(&["cpuset", "`cosched doctor` names a remedy"]);
    let doctor = log_in(&place, "exec ./cosched doctor --json").ended().with(0);
    assert!(doctor.stdout.contains("`Delegate=cpu cpuset "), "{}", doctor.stdout);
    nothing_is_left(&place);
}

#[test]
fn programs_are_restored_after_sigkill_in_a_user_scope() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    for milliseconds in [0, 300] {
        let place = place();
        let script = |name: &str| format!("echo $$ > {name}; {SPIN}");
        let tables = ["a", "b"].map(|name| program(name, "threads = 2", &script(name)));
        let cosched = log_in_and_run(&place, &tables, "--policy gang --quantum 20ms");
        eventually("the programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let marked = place.marked();
        marked.signal(main_process(&place), Signal::KILL);
        eventually("the sentinel's end", || marked.named("csentinel").is_empty());
        let everything = cosched_linux::kernel::affinity::get(0).unwrap();
        for name in ["a", "b"] {
            let pid: i32 = place.read(name).trim().parse().unwrap();
            let process = marked.programs().into_iter().find(|p| p.pid == pid).unwrap();
            assert!(!marked.is_held(process));
            assert_eq!(marked.cpus(process), Some(everything));
        }
        assert!(marked.end());
        cosched.kill();
        nothing_is_left(&place);
    }
}
