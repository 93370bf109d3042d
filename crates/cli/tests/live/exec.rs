//! One program in cosched's place: it notices nothing, and cosched ends with its status.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr;
use cosched_linux::process::tree::Process;
use rustix::process::Signal;

use super::support::{Locker, Place, User, eventually};

/// The exit status of `exec` for a program with this script.
fn status(place: &Place, script: &str) -> Option<i32> {
    place.cosched(&["exec", "--policy", "faithful", "--", "sh", "-c", script]).ended().code()
}

#[test]
fn exec_exits_as_its_program_or_with_128_plus_the_signal() {
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        assert_eq!(status(&place, "exit 0"), Some(0));
        assert_eq!(status(&place, "exit 7"), Some(7));
        assert_eq!(status(&place, "kill -USR1 $$"), Some(128 + 10));
    }
}

#[test]
fn a_program_keeps_its_files_process_group_and_signal_mask() {
    let place = Place::new();
    let script = "cat; echo bad >&2; ps -o pgid= -p $$ > group; \
                  grep SigBlk /proc/self/status; echo $PPID > parent";
    let mut command = place.user.command(&place.executable);
    command
        .args(["exec", "--", "sh", "-c", script])
        .current_dir(place.folder())
        .env("XDG_RUNTIME_DIR", place.path("run"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pid = child.id();
    child.stdin.take().unwrap().write_all(b"asked\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "asked\nSigBlk:\t0000000000000000\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "bad\n");
    assert_eq!(place.read("parent").trim(), pid.to_string());
    let group = rustix::process::getpgrp().as_raw_nonzero().to_string();
    assert_eq!(place.read("group").trim(), group);
    place.no_trace_is_left_of(pid as i32);
}

#[test]
fn a_stream_that_is_closed_stays_closed_for_the_program() {
    let place = Place::new();
    for (closed, cannot) in [(">&-", "echo lost"), ("<&-", "cat")] {
        let shell = format!("\"$0\" exec -- sh -c '{cannot} 2> error || exit 7' {closed}");
        let mut command = place.user.command("sh".as_ref());
        command
            .args(["-c", &shell, place.executable.to_str().unwrap()])
            .current_dir(place.folder());
        let status = command.env("XDG_RUNTIME_DIR", place.path("run")).status().unwrap();
        assert_eq!(status.code(), Some(7), "{closed}");
    }
}

#[test]
fn a_program_starts_in_a_folder_that_it_may_not_enter() {
    let place = Place::of(User::ordinary());
    // Only root can start a process of another user there.
    if let User::Caller = place.user {
        return;
    }
    let closed = place.path("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = place.user.command(&place.executable);
    command.args(["exec", "--", "sh", "-c", "exit 7"]).current_dir(&closed);
    let status = command.env("XDG_RUNTIME_DIR", place.path("run")).status().unwrap();
    assert_eq!(status.code(), Some(7));
}

/// Each of the many gets one thread, on any machine; a machine with more CPUs than that is none
/// that tests run on.
#[test]
fn libraries_in_many_processes_get_their_share_of_threads() {
    let place = Place::new();
    let script = "#!/bin/sh\n# Two jobs.\nprintf 'a b' | xargs -P 9999 -n 1 sh -c \
                  'echo $OMP_NUM_THREADS/$GOMAXPROCS'\n";
    let path = place.write("each", script);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let told = |begins: &[&str], own: Option<&str>| {
        let mut command = place.user.command(&place.executable);
        command.args(begins).args(["--", "./each"]).current_dir(place.folder());
        command.env("XDG_RUNTIME_DIR", place.path("run")).env_remove("OMP_NUM_THREADS");
        command.envs(own.map(|own| ("OMP_NUM_THREADS", own)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).contains("starts 9999 processes");
        (String::from_utf8_lossy(&output.stdout).into_owned(), said)
    };
    let shared = ("1/\n1/\n".to_owned(), true);
    assert_eq!(told(&["exec"], None), shared);
    assert_eq!(told(&["exec"], Some("3")), ("3/\n3/\n".to_owned(), false));
    assert_eq!(told(&["exec", "--threads", "3"], None), ("3/3\n3/3\n".to_owned(), false));
    assert_eq!(told(&["exec", "--policy", "linux"], None), ("/\n/\n".to_owned(), false));
    assert_eq!(told(&["run", "--policy", "turns"], None).1, shared.1);
}

#[test]
fn signals_not_from_the_terminal_are_passed_on_to_the_program() {
    let place = Place::new();
    let script =
        "trap 'echo got it > got; exit 5' TERM; echo > ready; while :; do sleep 0.01; done";
    let cosched = place.cosched(&["exec", "--", "sh", "-c", script]);
    eventually("the program", || place.path("ready").exists());
    // The terminal has sent this signal to the program as well, so cosched does not pass it on.
    cosched.signal(Signal::INT);
    cosched.signal(Signal::TERM);
    let ended = cosched.ended().with(5);
    assert_eq!(place.read("got"), "got it\n");
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_detached_program_still_determines_the_exit_status() {
    if !Locker::can_be_changed() {
        return;
    }
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        let trap = place.trap();
        let trap = trap.to_str().unwrap();
        let [mode, threads] = Locker::ARGUMENTS;
        let cosched =
            place.cosched(&["exec", "--no-guard", "--interval", "20ms", "--", trap, mode, threads]);
        let locker = Locker::in_place(&place);
        eventually("a slice", || locker.is_changed());
        let mut detach = place.user.command(&place.executable);
        detach.args(["detach", &locker.process.pid.to_string()]);
        detach.env("XDG_RUNTIME_DIR", place.path("run"));
        let said = detach.output().unwrap();
        assert!(said.status.success(), "{said:?}");
        assert!(locker.has_original_settings(), "{:?}", locker.attrs());
        locker.goes_on(&place);
        locker.stop(&place);
        place.nothing_is_left_of(&cosched.ended().with(7));
    }
}

/// It had its class from the program, and its parent has ended.
#[test]
fn a_daemon_that_a_program_leaves_has_its_original_class() {
    if !Locker::can_be_changed() {
        return;
    }
    let script = r#"
import os, threading, time

lock, done = threading.Lock(), threading.Event()

def work():
    while not done.is_set():
        with lock:
            sum(range(200))
        if os.sched_getscheduler(0) == os.SCHED_BATCH and not done.is_set():
            done.set()
            if os.fork() == 0:
                if os.fork() == 0:
                    os.setsid()
                    print(os.getpid(), file=open("daemon", "w"), flush=True)
                    while not os.path.exists("stop"):
                        time.sleep(0.01)
                os._exit(0)

threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
while not os.path.exists("daemon") or not open("daemon").read():
    time.sleep(0.01)
"#;
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        let options = ["--no-guard", "--actuators", "batch-slice", "--interval", "20ms"];
        let command = ["--", "python3", "-c", script];
        let ended = place.cosched(&[&["exec"], &options[..], &command].concat()).ended().with(0);
        let daemon = place.read("daemon").trim().parse().unwrap();
        let found = sched_attr::get(daemon).unwrap();
        assert_eq!(found.policy, sched_attr::get(0).unwrap().policy, "{found:?}");
        assert_eq!(Some(found.runtime), sched_attr::default_slice().unwrap());
        place.write("stop", "");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_detached_program_still_gets_every_signal_and_stop() {
    let script =
        "trap 'exit 6' USR1; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.01; done";
    // The signals come while cosched ends its part, or after that.
    for round in 0..10 {
        let place = Place::new();
        let cosched = place.cosched(&["exec", "--", "sh", "-c", script]);
        // The program may run before cosched has noted it, and cannot be detached until then.
        eventually("the program", || place.path("pid").exists() && place.has_noted("main"));
        let mut detach = place.user.command(&place.executable);
        detach.args(["detach", place.read("pid").trim()]);
        let said = detach.env("XDG_RUNTIME_DIR", place.path("run")).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        if round % 2 == 0 {
            let (marked, process) = (place.marked(), cosched.process());
            cosched.signal(Signal::TSTP);
            eventually("the stop", || marked.is_stopped(process));
            cosched.signal(Signal::CONT);
        }
        cosched.signal(Signal::USR1);
        place.nothing_is_left_of(&cosched.ended().with(6));
    }
}

#[test]
fn bad_commands_and_policies_that_freeze_are_refused() {
    let place = Place::new();
    place.cosched(&["exec", "--", "no-such-command"]).ended().with(2).saying(&["was not found"]);
    // A script without its interpreter.
    let nothing = place.write("nothing", "#!/no/such/interpreter\n");
    std::fs::set_permissions(&nothing, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let ended = place.cosched(&["exec", "--", "./nothing"]).ended().with(2);
    place.nothing_is_left_of(&ended.saying(&["is a script for /no/such/interpreter"]));
    let gang = ["exec", "--policy", "gang", "--", "touch", "started"];
    place.cosched(&gang).ended().with(2).saying(&["policy 'gang' cannot run a program"]);
    assert!(!place.path("started").exists());
}

#[test]
fn no_option_of_run_is_advised_for_a_taken_folder() {
    let place = Place::new();
    let again = || place.cosched(&["exec", "--out", "out", "--", "true"]).ended();
    again().with(0);
    let ended = again().with(2).saying(&["move the run away (only `cosched run` replaces it"]);
    assert!(!ended.stderr.contains("add --force"), "{}", ended.stderr);
}

#[test]
fn relearning_is_refused_where_nothing_is_measured() {
    let place = Place::new();
    for command in ["run", "exec"] {
        let both = [command, "--policy", "faithful", "--no-guard", "--relearn", "--", "true"];
        place.cosched(&both).ended().with(2).saying(&["'--no-guard'", "'--relearn'"]);
    }
    let own = std::process::id().to_string();
    for (option, values) in [("--relearn", &[] as &[&str]), ("--barrier", &["donate"])] {
        let why = format!("`cosched attach` does not support {option}: leave it out");
        let attach = [&["attach", option], values, &[&own]].concat();
        place.cosched(&attach).ended().with(2).saying(&[&why]);
    }
}

/// One ends before the command does, the other goes on.
#[test]
fn what_orphans_use_counts_as_the_programs() {
    let place = Place::new();
    let orphan = "import sys, time\n\
        while time.process_time() < 0.3: pass\n\
        open(sys.argv[1], 'w').close()\n\
        time.sleep(float(sys.argv[2]))\n";
    place.write("orphan.py", orphan);
    let script = "(python3 orphan.py ended 0 &); (python3 orphan.py stays 1000 & echo $! > pid); \
                  while [ ! -e ended ] || [ ! -e stays ]; do sleep 0.05; done; sleep 0.2";
    let result =
        place.cosched(&["exec", "--out", "out", "--", "sh", "-c", script]).ended().with(0).result();
    let left = Process::find(&Proc::default(), place.read("pid").trim().parse().unwrap());
    left.unwrap().signal(&Proc::default(), Signal::KILL).unwrap();
    let usage = &result.programs[0].usage;
    let used = usage.user_seconds + usage.system_seconds;
    assert!(used >= 0.6, "{used} s");
}
