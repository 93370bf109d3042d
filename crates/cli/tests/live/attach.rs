//! Programs that run already: a policy schedules them until cosched is ended. They get their
//! original settings back, and run on.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SchedAttr, SchedPolicy};
use cosched_linux::process::tree::Process;
use rustix::process::Signal;
use serde_json::Value;

use super::ends::is_not_pending;
use super::support::{Cosched, Locker, Place, User, eventually, skip};

/// Short intervals, so that a slice is chosen soon.
const SOON: &str = "--interval=20ms";

fn attach(place: &Place, locker: &Locker) -> Cosched {
    let pid = locker.process.pid.to_string();
    place.cosched(&[
        "attach",
        SOON,
        "--no-guard",
        "--actuators",
        "batch-slice",
        "--out",
        "out",
        &pid,
    ])
}

fn ended_by(signal: Signal, code: i32, user: User) {
    if !Locker::can_be_changed() {
        return;
    }
    let place = Place::of(user);
    let locker = Locker::start(&place);
    let cosched = attach(&place, &locker);
    eventually("a slice", || locker.is_changed());
    assert!(locker.attrs().iter().all(|attr| attr.policy == SchedPolicy::Batch));
    cosched.signal(signal);
    let ended = cosched.ended().with(code);
    assert!(locker.has_original_settings(), "{:?}", locker.attrs());
    locker.goes_on(&place);
    let program = &ended.result().programs[0];
    assert!(program.left_running && program.exit.is_none() && program.running_seconds > 0.0);
    let decisions = serde_json::to_value(&ended.result().decisions).unwrap();
    assert!(decisions.to_string().contains("\"slice\""), "{decisions}");
    assert!(ended.stdout.contains("every setting is restored"), "{}", ended.stdout);
    place.no_trace_is_left_of(ended.pid);
    assert_eq!(locker.stop(&place), Some(7));
}

#[test]
fn ctrl_c_detaches_and_restores_the_original_settings() {
    ended_by(Signal::INT, 130, User::Caller);
}

/// `timeout` and other wrappers often send two.
#[test]
fn two_interrupts_do_not_cut_off_the_result() {
    for _ in 0..10 {
        if !Locker::can_be_changed() {
            return;
        }
        let place = Place::new();
        let locker = Locker::start(&place);
        let cosched = attach(&place, &locker);
        eventually("a slice", || locker.is_changed());
        cosched.signal(Signal::INT);
        // Otherwise both could arrive as one.
        eventually("the first", || is_not_pending(cosched.pid(), Signal::INT));
        cosched.signal(Signal::INT);
        let ended = cosched.ended().with(130);
        assert!(ended.stdout.contains("not ended, left running"), "{}", ended.stdout);
        assert_eq!(locker.stop(&place), Some(7));
    }
}

#[test]
fn sigterm_detaches_from_an_ordinary_users_program() {
    ended_by(Signal::TERM, 143, User::ordinary());
}

#[test]
fn attach_ends_with_its_program_of_unknown_status() {
    let place = Place::new();
    let locker = Locker::start(&place);
    let pid = locker.process.pid.to_string();
    let cosched = place.cosched(&["attach", "--policy", "linux", "--json", &pid]);
    eventually("the attachment", || place.has_noted("main"));
    assert_eq!(locker.stop(&place), Some(7));
    let ended = cosched.ended().with(0);
    let run: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(run["programs"][0]["name"], format!("trap-{pid}"));
    assert_eq!(run["programs"][0]["exit"], "unknown");
    place.nothing_is_left_of(&ended);
}

#[test]
fn attach_says_at_its_end_that_nothing_was_changed() {
    let place = Place::new();
    // Its name is longer than the kernel keeps.
    place.write("my-tool.x y:z+more", "#!/bin/sh\nread line\n");
    let tool = place.path("my-tool.x y:z+more");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut tool = std::process::Command::new(tool).stdin(Stdio::piped()).spawn().unwrap();
    let cosched = place.cosched(&["attach", "--policy", "linux", &tool.id().to_string()]);
    eventually("the attachment", || place.has_noted("main"));
    drop(tool.stdin.take());
    tool.wait().unwrap();
    let name = format!("my-tool.x y:z+m-{}", tool.id());
    let ended = cosched.ended().with(0).saying(&[&format!("attaching to {name};")]);
    assert!(ended.stdout.contains(&name), "{}", ended.stdout);
    assert!(ended.stdout.contains("Nothing was changed"), "{}", ended.stdout);
}

#[test]
fn detach_restores_a_program_and_says_what_is_restored() {
    if !Locker::can_be_changed() {
        return;
    }
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        let locker = Locker::start(&place);
        let pid = locker.process.pid.to_string();
        let cosched = attach(&place, &locker);
        eventually("a slice", || locker.is_changed());
        // Its outputs go elsewhere: the files of the place are the first one's.
        let said = |arguments: &[&str]| {
            let mut command = place.user.command(&place.executable);
            command.args(arguments).env("XDG_RUNTIME_DIR", place.path("run")).stdin(Stdio::null());
            let output = command.output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            (output.status.code().unwrap(), String::from_utf8(text).unwrap())
        };
        let (code, text) = said(&["attach", &pid]);
        assert!(code == 2 && text.contains("another cosched (process"), "{text}");
        let (code, text) = said(&["detach", &cosched.pid().to_string()]);
        assert!(code == 2 && text.contains(" is cosched itself; name a process of"), "{text}");
        let (code, text) = said(&["detach", &pid]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("the original class, nice value and slice"), "{text}");
        assert!(locker.has_original_settings(), "{:?}", locker.attrs());
        let ended = cosched.ended().with(1).saying(&["was detached, as requested"]);
        let (code, text) = said(&["detach", &pid]);
        assert!(code == 2 && text.contains("no cosched of yours schedules process"), "{text}");
        locker.goes_on(&place);
        place.no_trace_is_left_of(ended.pid);
        assert_eq!(locker.stop(&place), Some(7));
    }
}

#[test]
fn a_run_goes_on_without_a_detached_program() {
    if !Locker::can_be_changed() {
        return;
    }
    let place = Place::new();
    let trap = place.trap();
    let [mode, threads] = Locker::ARGUMENTS;
    let arguments = ["run", "--policy", "faithful", "--no-guard", SOON, "--out", "out", "--"];
    let programs = [trap.to_str().unwrap(), mode, threads, ":::", "sh", "-c"];
    let other = ["while [ ! -e over ]; do sleep 0.01; done"];
    let cosched = place.cosched(&[&arguments[..], &programs, &other].concat());
    let locker = Locker::in_place(&place);
    eventually("a slice", || locker.is_changed());
    let mut detach = place.user.command(&place.executable);
    detach.args(["detach", "--json", &locker.process.pid.to_string()]);
    let said = detach.env("XDG_RUNTIME_DIR", place.path("run")).output().unwrap();
    let document: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(
        (&document["schema"], &document["name"]),
        (&"cosched-detach/2".into(), &"trap".into())
    );
    assert!(document["threads"].as_u64().unwrap() >= 4, "{document}");
    assert_eq!(document["threads"], document["original"]);
    assert!(locker.has_original_settings(), "{:?}", locker.attrs());
    place.write("over", "");
    let ended = cosched.ended();
    let result = ended.result();
    assert_eq!((result.others_cpu_seconds, result.stolen_cpu_seconds), (None, None));
    let [detached, other] = &result.programs[..] else { panic!() };
    assert!(detached.left_running && detached.exit.is_none());
    assert_eq!(other.exit, Some(cosched_core::Exit::Code(0)));
    locker.goes_on(&place);
    locker.stop(&place);
    place.nothing_is_left_of(&ended);
}

/// Only the shim could know how it ended, and that is gone by then.
#[test]
fn a_detached_program_that_ends_before_the_run_is_told() {
    let place = Place::new();
    let until = |file: &str| {
        let wait = format!("while test ! -e {file}; do sleep 0.01; done");
        format!("echo $$ > {file}.new; mv {file}.new {file}.pid; {wait}")
    };
    let (first, second) = (until("over"), until("go"));
    let fixed = ["run", "-p", "linux", "--out", "out", "--"];
    let programs = ["sh", "-c", &first, ":::", "sh", "-c", &second];
    let cosched = place.cosched(&[&fixed[..], &programs].concat());
    eventually("the programs", || ["over.pid", "go.pid"].iter().all(|f| place.path(f).exists()));
    // A program may run before cosched has noted it, and cannot be detached until then.
    eventually("the release", || {
        let mut detach = place.user.command(&place.executable);
        detach.args(["detach", place.read("go.pid").trim()]);
        detach.env("XDG_RUNTIME_DIR", place.path("run")).output().unwrap().status.success()
    });
    let second = format!("/proc/{}", place.read("go.pid").trim());
    place.write("go", "");
    eventually("its end", || !std::path::Path::new(&second).exists());
    place.write("over", "");
    let ended = cosched.ended().with(1);
    assert!(ended.stdout.contains(" detached "), "{}", ended.stdout);
    let result = ended.result();
    assert!(result.programs[1].detached_seconds.is_some() && !result.programs[1].left_running);
    let told = place.cosched(&["explain", "out"]).ended().with(0).stdout;
    assert!(told.contains("sh-2 was detached before it finished"), "{told}");
}

#[test]
fn one_of_several_simultaneous_attaches_succeeds() {
    if !Locker::can_be_changed() {
        return;
    }
    let place = Place::new();
    let locker = Locker::start(&place);
    let pid = locker.process.pid.to_string();
    let attach = |_| {
        let mut command = place.user.command(&place.executable);
        command.args(["attach", "--policy", "linux", &pid]);
        command.env("XDG_RUNTIME_DIR", place.path("run")).env("MARK", place.folder());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut all: Vec<std::process::Child> = (0..8).map(attach).collect();
    let left = |all: &mut Vec<std::process::Child>| {
        all.iter_mut().filter_map(|one| one.try_wait().unwrap().is_none().then_some(())).count()
    };
    eventually("all but one are refused", || left(&mut all) == 1);
    let is_winner = |one: &mut std::process::Child| one.try_wait().unwrap().is_none();
    let winner = all.iter_mut().position(is_winner).unwrap();
    let mut winner = all.swap_remove(winner);
    for one in all {
        let ended = one.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains("another cosched (process"), "{said}");
    }
    let process = Process::find(&Proc::default(), winner.id() as i32).unwrap();
    // It handles signals once its socket is there.
    eventually("its socket", || !place.sockets().is_empty());
    process.signal(&Proc::default(), Signal::INT).unwrap();
    assert_eq!(winner.wait().unwrap().code(), Some(130));
    locker.stop(&place);
}

#[test]
fn processes_that_must_not_be_attached_are_refused() {
    let place = Place::new();
    let locker = Locker::start(&place);
    let (own, pid) = (std::process::id().to_string(), locker.process.pid.to_string());
    for (arguments, why) in [
        (&["attach", "--policy", "gang", &pid] as &[&str], "policy 'gang' cannot attach"),
        (
            &["attach", "--policy", "fair-progress", &pid],
            "or start the programs with `cosched run`",
        ),
        (&["attach", "--policy", "linux-groups", &pid], "choose from linux, faithful"),
        (
            &["attach", "--policy", "linux", "--actuators", "batch", &pid],
            "for policies that measure",
        ),
        (
            &["attach", "--actuators", "batch,slice,batch", &pid],
            "--actuators: batch is there twice",
        ),
        (&["attach", &own], "would schedule itself"),
        (&["attach", &pid, &pid], "named twice: name it once"),
        (&["attach", "2147483647"], "there is no such process"),
        (&["attach", "1"], "process 1: "),
        (&["detach", "2147483647"], "there is no process 2147483647: `ps -e` lists"),
    ] {
        place.cosched(arguments).ended().with(2).saying(&[why]);
    }
    locker.stop(&place);
}

#[test]
fn a_program_stopped_by_others_stays_stopped() {
    let place = Place::new();
    let locker = Locker::start(&place);
    let marked = place.marked();
    marked.signal(locker.process, Signal::STOP);
    eventually("the stop", || marked.is_stopped(locker.process));
    let cosched = attach(&place, &locker);
    eventually("cosched's notice", || place.has_noted("stopped-by-other"));
    cosched.signal(Signal::INT);
    place.no_trace_is_left_of(cosched.ended().with(130).pid);
    assert!(marked.is_stopped(locker.process) && locker.has_original_settings());
    marked.signal(locker.process, Signal::CONT);
    assert_eq!(locker.stop(&place), Some(7));
}

#[test]
fn a_process_of_another_user_is_refused() {
    let User::Ordinary(_) = User::ordinary() else {
        return skip("it takes root to have processes of two users");
    };
    let (roots, place) = (Place::new(), Place::of(User::ordinary()));
    let locker = Locker::start(&roots);
    let pid = locker.process.pid.to_string();
    place.cosched(&["attach", &pid]).ended().with(2).saying(&["it belongs to another user"]);
    locker.stop(&roots);
}

#[test]
fn a_real_time_thread_is_unchanged_and_reported_once() {
    if !Locker::can_be_changed() {
        return;
    }
    let place = Place::new();
    let locker = Locker::start(&place);
    let main = locker.process.pid;
    let found = sched_attr::get(main).unwrap();
    // The main thread sleeps nearly all the time.
    let real_time =
        SchedAttr { policy: SchedPolicy::RoundRobin, priority: 1, ..found.in_default_class() };
    let real_time = SchedAttr { policy: SchedPolicy::RoundRobin, nice: 0, ..real_time };
    if sched_attr::set(main, &real_time.reset_on_fork()).is_err() {
        return skip("this user may not have real-time threads");
    }
    let set = sched_attr::get(main).unwrap();
    let cosched = attach(&place, &locker);
    eventually("a slice", || {
        locker.attrs().iter().filter(|attr| attr.policy == SchedPolicy::Batch).count() >= 3
    });
    assert_eq!(sched_attr::get(main).unwrap(), set);
    cosched.signal(Signal::INT);
    let ended = cosched.ended().with(130);
    assert_eq!(ended.stderr.matches("real-time class: they").count(), 1, "{}", ended.stderr);
    assert_eq!(sched_attr::get(main).unwrap(), set);
    locker.stop(&place);
}

#[test]
fn stat_says_that_waits_are_unknown_without_access_to_syscalls() {
    let User::Ordinary(_) = User::ordinary() else {
        return skip("it takes root to have processes of two users");
    };
    let (roots, place) = (Place::new(), Place::of(User::ordinary()));
    let locker = Locker::start(&roots);
    let pid = locker.process.pid.to_string();
    let stat = ["stat", "--sampled", "--json", "--interval", "50ms", "--count", "2", "--pid", &pid];
    let ended =
        place.cosched(&stat).ended().with(0).saying(&["(remedy: run this command as root)"]);
    assert_eq!(ended.stderr.matches("are not known").count(), 1, "{}", ended.stderr);
    for line in ended.stdout.lines() {
        let program = &serde_json::from_str::<Value>(line).unwrap()["programs"][0];
        assert!(program["threads"].as_u64().unwrap() >= 4, "{line}");
        for share in ["lock_share", "mutex_share", "condition_share", "barrier_share"] {
            assert!(program[share].is_null(), "{share}: {line}");
        }
    }
    locker.stop(&roots);
}

#[test]
fn processes_that_stat_cannot_observe_are_refused() {
    let place = Place::new();
    let locker = Locker::start(&place);
    let threads =
        cosched_linux::kernel::procfs::Proc::default().threads(locker.process.pid).unwrap();
    let thread = threads[1].to_string();
    let why = format!("it is a thread of process {}", locker.process.pid);
    place.cosched(&["stat", "--pid", &thread]).ended().with(2).saying(&[&why]);
    place.cosched(&["stat", "--pid", "2147483647"]).ended().with(2).saying(&["no such process"]);
    locker.stop(&place);
}

#[test]
fn stat_of_a_running_process_ends_when_its_reader_does() {
    let place = Place::new();
    let locker = Locker::start(&place);
    let mut command = place.user.command(&place.executable);
    command.args(["stat", "--json", "--interval", "20ms", "--pid"]);
    command.arg(locker.process.pid.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut stat = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(stat.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("cosched-stat/2"), "{line}");
    eventually("its end", || stat.try_wait().unwrap().is_some());
    assert!(stat.wait().unwrap().success());
    locker.stop(&place);
}

#[test]
fn a_process_is_taken_once_wherever_the_logs_are() {
    let place = Place::new();
    let locker = Locker::start(&place);
    let pid = locker.process.pid.to_string();
    let attach = |runtime: &str| {
        std::fs::create_dir_all(place.path(runtime)).unwrap();
        let mut command = std::process::Command::new(&place.executable);
        command.args(["attach", "--policy", "linux", &pid]).current_dir(place.folder());
        command.env("XDG_RUNTIME_DIR", place.path(runtime)).env("MARK", place.folder());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = attach("run");
    let has_signals = || !place.sockets().is_empty();
    eventually("its program", || has_signals() && place.has_noted("main"));
    for (runtime, log_is_removed) in [("elsewhere", false), ("run", true)] {
        if log_is_removed {
            place.undo_logs().iter().for_each(|log| std::fs::remove_file(log).unwrap());
        }
        let refused = attach(runtime).wait_with_output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("another cosched schedules it"), "{said}");
    }
    let process = Process::find(&Proc::default(), first.id() as i32).unwrap();
    process.signal(&Proc::default(), Signal::INT).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    locker.stop(&place);
}
