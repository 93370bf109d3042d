//! Programs below their shims, on the real kernel, with the permissions of the caller.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use cosched_core::{CpuSet, Exit};
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::{Proc, ProcState};
use cosched_linux::process::launch::{
    LaunchOrder, Launcher, LineLabels, OutputTo, ShimReport, Spec, StartStep,
};
use cosched_linux::process::tree::{Process, Tree};
use rustix::process::Signal;
use support::{HIDDEN, Program, eventually, reports_of, script};

fn null() -> OutputTo {
    OutputTo::File { path: "/dev/null".into(), append: true }
}

/// Runs an order to its end and returns what it wrote.
fn output_of(order: LaunchOrder) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut program = Program::start(order, OutputTo::File { path: path.clone(), append: false });
    assert!(matches!(program.report(2), ShimReport::Gone { .. }));
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_code_and_a_signal_are_reported_as_such() {
    for (text, expected) in
        [("exit 7", Exit::Code(7)), ("kill -USR1 $$", Exit::Signal(libc::SIGUSR1 as u8))]
    {
        let mut program = Program::start(script(text), null());
        program.main();
        assert!(
            matches!(program.report(1), ShimReport::Exited { exit, .. } if exit == expected),
            "{text}"
        );
        assert!(matches!(program.report(2), ShimReport::Gone { .. }));
        program.shim_ends();
        assert!(program.reports().len() == 3 && program.launched.reports.closed());
    }
}

#[test]
fn usage_includes_awaited_children_and_orphans() {
    let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let mut program = Program::start(script(&format!("({spin}); (({spin}) &); exit 0")), null());
    let ShimReport::Exited { usage: first, .. } = program.report(1) else { panic!() };
    let ShimReport::Gone { usage: all, .. } = program.report(2) else { panic!() };
    assert!(first.user_seconds > 0.0 && first.max_rss_kib > 0);
    assert!(all.user_seconds > first.user_seconds);
}

#[test]
fn a_failed_start_is_reported_with_step_and_reason() {
    let cases = [
        (
            LaunchOrder { executable: "/not/there".into(), ..script("") },
            StartStep::Command,
            libc::ENOENT,
        ),
        (
            LaunchOrder { executable: "/etc/passwd".into(), ..script("") },
            StartStep::Command,
            libc::EACCES,
        ),
        (
            LaunchOrder { cwd: "/not/there".into(), ..script("") },
            StartStep::Directory,
            libc::ENOENT,
        ),
        (
            LaunchOrder { stdin: Some("/not/there".into()), ..script("") },
            StartStep::Input,
            libc::ENOENT,
        ),
        (
            LaunchOrder { cgroups: vec!["/not/there".into()], ..script("") },
            StartStep::Cgroup,
            libc::ENOENT,
        ),
        // The kernel cannot do it, and then the process cannot move there by itself either.
        (
            LaunchOrder { born_in: Some("/proc".into()), ..script("") },
            StartStep::Cgroup,
            libc::ENOENT,
        ),
        (LaunchOrder { cpus: Some(CpuSet::EMPTY), ..script("") }, StartStep::Cpus, libc::EINVAL),
    ];
    for (order, step, errno) in cases {
        let mut program = Program::start(order, null());
        assert_eq!(program.report(0), ShimReport::Failed { step, errno });
        program.shim_ends();
        assert_eq!(program.reports().len(), 1);
    }
}

#[test]
fn an_output_that_cannot_be_opened_is_named_in_the_error() {
    let stdout = OutputTo::File { path: "/not/there/out".into(), append: false };
    let spec = Spec { order: script(""), stdout, stderr: OutputTo::Inherit };
    let error = Launcher::new(Path::new(HIDDEN), Proc::default()).prepare(&spec).unwrap_err();
    assert!(error.to_string().contains("/not/there/out"), "{error}");
}

#[test]
fn a_daemon_that_forks_twice_stays_in_the_tree_and_delays_gone() {
    let mut program = Program::start(script("(setsid sleep 1000 &) ; exit 0"), null());
    assert!(matches!(program.report(1), ShimReport::Exited { exit: Exit::Code(0), .. }));
    let daemon = program.tree().members(&program.proc);
    assert_eq!(daemon.len(), 1);
    assert_eq!(program.reports().len(), 2);
    assert_eq!(program.tree().signal(&program.proc, Signal::KILL, &[]), Ok(1));
    assert!(matches!(program.report(2), ShimReport::Gone { .. }));
    program.shim_ends();
}

#[test]
fn a_program_gets_what_was_ordered_and_nothing_else_open() {
    let folder = tempfile::tempdir().unwrap();
    let text = "echo $0,$1; pwd; echo $COLOUR; env | grep -c =; \
        readlink /proc/self/fd/0; ls /proc/self/fd";
    let order = LaunchOrder {
        argv: ["called-so", "-c", text, "a b", "c"].map(String::from).to_vec(),
        env: vec![("COLOUR".into(), "blue".into()), ("PATH".into(), "/usr/bin:/bin".into())],
        cwd: folder.path().canonicalize().unwrap(),
        ..script("")
    };
    let cwd = order.cwd.display().to_string();
    let written = output_of(order);
    let lines: Vec<&str> = written.lines().collect();
    // The shell itself adds PWD, and `ls` opens the folder as 3.
    assert_eq!(lines, ["a b,c", &cwd, "blue", "3", "/dev/null", "0", "1", "2", "3"]);
}

#[test]
fn environments_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStringExt;
    let odd = std::ffi::OsString::from_vec(vec![b'a', 0xff, b'b']);
    let mut order = script("printf %s \"$ODD\" | od -An -tx1");
    order.env.push(("ODD".into(), odd));
    assert_eq!(output_of(order).trim(), "61 ff 62");
}

#[test]
fn every_signal_has_its_default_effect_and_none_is_blocked() {
    let written = output_of(script("grep -E 'Sig(Blk|Ign)' /proc/self/status"));
    let masks: Vec<u64> =
        written.lines().map(|line| u64::from_str_radix(line[8..].trim(), 16).unwrap()).collect();
    assert_eq!(masks, [0, 0], "{written}");
}

/// The shim itself ignores SIGPIPE and SIGTSTP, but not the others.
#[test]
fn a_program_ignores_the_signals_that_its_order_names() {
    let ignored = vec![libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTSTP, libc::SIGUSR1];
    let expected = ignored.iter().fold(0_u64, |all, signal| all | 1_u64 << (signal - 1));
    let order = LaunchOrder { ignored, ..script("grep SigIgn /proc/self/status") };
    let written = output_of(order);
    let mask = u64::from_str_radix(written["SigIgn:".len()..].trim(), 16).unwrap();
    assert_eq!(mask, expected, "{written}");
}

#[test]
fn two_outputs_in_one_file_and_appending_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for append in [false, true] {
        let output = OutputTo::File { path: path.clone(), append };
        let mut program = Program::start(script("echo one; echo two >&2; echo three"), output);
        program.report(2);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n".repeat(2));
}

#[test]
fn a_program_has_its_own_process_group_or_session() {
    let ours = Proc::default().stat(std::process::id() as i32).unwrap();
    for new_session in [false, true] {
        let mut program =
            Program::start(LaunchOrder { new_session, ..script("sleep 1000; :") }, null());
        let main = program.main().look(&Proc::default()).unwrap();
        assert_eq!(main.pgrp, main.pid);
        assert_eq!(main.session, if new_session { main.pid } else { ours.session });
    }
}

#[test]
fn a_program_is_bound_from_its_first_instruction() {
    let one: CpuSet = affinity::get(0).unwrap().iter().take(1).collect();
    let order =
        LaunchOrder { cpus: Some(one), ..script("grep Cpus_allowed_list /proc/self/status") };
    assert_eq!(output_of(order), format!("Cpus_allowed_list:\t{one}\n"));
}

#[test]
fn a_shim_without_an_order_ends_with_cosched() {
    let proc = Proc::default();
    let spec = Spec { order: script("exit 1"), stdout: null(), stderr: null() };
    let prepared = Launcher::new(Path::new(HIDDEN), proc.clone()).prepare(&spec).unwrap();
    let shim = prepared.shim();
    assert!(shim.look(&proc).is_some());
    drop(prepared);
    eventually("the shim's end", || shim.look(&proc).is_none());
}

#[test]
fn a_program_not_noted_before_cosched_dies_never_starts() {
    let folder = tempfile::tempdir().unwrap();
    let order = LaunchOrder { cwd: folder.path().to_owned(), ..script("touch begun") };
    let spec = Spec { order, stdout: null(), stderr: null() };
    let proc = Proc::default();
    let mut launched =
        Launcher::new(Path::new(HIDDEN), proc.clone()).prepare(&spec).unwrap().start().unwrap();
    let shim = launched.shim();
    let mut forked = None;
    eventually("its first process", || {
        forked = launched.reports.read().unwrap().into_iter().next();
        forked.is_some()
    });
    let Some(ShimReport::Forked { process }) = forked else { panic!("{forked:?}") };
    assert!(process.look(&proc).is_some());
    drop(launched);
    eventually("the end of both", || shim.look(&proc).or(process.look(&proc)).is_none());
    assert!(!folder.path().join("begun").exists());
}

#[test]
fn a_shim_ignores_signals_for_cosched_and_holds_nothing_open() {
    let mut program = Program::start(script("sleep 1000; :"), null());
    program.main();
    let (proc, shim) = (program.proc.clone(), program.launched.shim());
    // Besides the standard three: the socket, and what it waits with.
    let is_its_own =
        |target: &str| ["socket:", "anon_inode:"].iter().any(|k| target.starts_with(k));
    eventually("dropped outputs", || {
        let fds = proc.fds(shim.pid).unwrap();
        let (standard, others) = fds.split_at(3);
        standard.iter().all(|fd| fd.target == "/dev/null")
            && others.iter().all(|fd| is_its_own(&fd.target))
    });
    assert_eq!(fs::read_to_string(proc.folder(shim.pid).join("comm")).unwrap(), "shim\n");
    for signal in [Signal::HUP, Signal::INT, Signal::TERM, Signal::QUIT, Signal::TSTP] {
        shim.signal(&proc, signal).unwrap();
    }
    eventually("the shell and its child", || program.tree().members(&proc).len() == 2);
    assert_eq!(program.tree().signal(&proc, Signal::TERM, &[]), Ok(2));
    assert!(matches!(program.report(1), ShimReport::Exited { exit: Exit::Signal(15), .. }));
    program.shim_ends();
}

#[test]
fn without_cosched_a_program_goes_on_and_its_shim_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (go, done) = (folder.path().join("go"), folder.path().join("done"));
    let text = "sleep 1000 & while [ ! -e go ]; do sleep 0.01; done; echo $! > new; mv new done";
    let order = LaunchOrder { cwd: folder.path().to_owned(), ..script(text) };
    let proc = Proc::default();
    let spec = Spec { order, stdout: null(), stderr: null() };
    let mut launched =
        Launcher::new(Path::new(HIDDEN), proc.clone()).prepare(&spec).unwrap().start().unwrap();
    let shim = launched.shim();
    eventually("the program's processes", || {
        reports_of(&mut launched);
        proc.descendants(shim.pid).unwrap().len() >= 2
    });
    drop(launched);
    fs::write(&go, "").unwrap();
    eventually("the program's end", || done.exists());
    eventually("the shim's end", || shim.look(&proc).is_none());
    let orphan: i32 = fs::read_to_string(&done).unwrap().trim().parse().unwrap();
    let orphan = Process::find(&proc, orphan).unwrap();
    assert_ne!(orphan.look(&proc).unwrap().ppid, shim.pid);
    assert_eq!(orphan.signal(&proc, Signal::KILL), Ok(true));
}

/// Otherwise the program's stopped children would not be found when cosched's changes are undone.
#[test]
fn without_cosched_a_shim_waits_until_all_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::write(&log, "what is to be undone").unwrap();
    let proc = Proc::default();
    let spec = Spec { order: script("sleep 1000 & sleep 1000; :"), stdout: null(), stderr: null() };
    let mut prepared = Launcher::new(Path::new(HIDDEN), proc.clone()).prepare(&spec).unwrap();
    prepared.hold(fs::File::open(&log).unwrap());
    let mut launched = prepared.start().unwrap();
    let shim = launched.shim();
    eventually("the program's processes", || {
        reports_of(&mut launched);
        proc.descendants(shim.pid).unwrap().len() == 3
    });
    let find = |pid| Process::find(&proc, pid).unwrap();
    let main = find(proc.children(shim.pid).unwrap()[0]);
    let left = proc.children(main.pid).unwrap().into_iter().map(find).collect::<Vec<_>>();
    assert_eq!(left[0].signal(&proc, Signal::STOP), Ok(true));
    eventually("its stop", || left[0].look(&proc).unwrap().state == ProcState::Stopped);
    drop(launched);
    assert_eq!(main.signal(&proc, Signal::KILL), Ok(true));
    eventually("that it is reaped", || proc.stat(main.pid).is_err());
    // A shim that does not wait has ended by now.
    std::thread::sleep(Duration::from_millis(50));
    for process in &left {
        assert_eq!(process.look(&proc).map(|stat| stat.ppid), Some(shim.pid));
    }
    assert_eq!(left[0].look(&proc).unwrap().state, ProcState::Stopped);
    // Removing its name undoes nothing.
    fs::rename(&log, folder.path().join("renamed")).unwrap();
    assert_eq!(left[0].signal(&proc, Signal::CONT), Ok(true));
    eventually("that it goes on", || left[0].look(&proc).unwrap().state != ProcState::Stopped);
    assert!(shim.look(&proc).is_some());
    fs::write(folder.path().join("renamed"), " ").unwrap();
    eventually("the shim's end", || shim.look(&proc).is_none());
    for process in left {
        assert_eq!(process.signal(&proc, Signal::KILL), Ok(true), "it goes on");
    }
}

/// The shim stays for what its pipes still pass on.
#[test]
fn a_shim_without_cosched_leaves_no_ended_orphans() {
    let folder = tempfile::tempdir().unwrap();
    let text = "setsid sh -c 'until [ -e go ]; do sleep 0.01; done; \
        for i in 1 2 3; do (true &); done; touch done; exec sleep 1000' & exit 0";
    let labels = LineLabels { stdout: Some("[a] ".into()), ..LineLabels::default() };
    let order = LaunchOrder { cwd: folder.path().to_owned(), labels, ..script(text) };
    let proc = Proc::default();
    let spec = Spec { order, stdout: null(), stderr: null() };
    let mut launched =
        Launcher::new(Path::new(HIDDEN), proc.clone()).prepare(&spec).unwrap().start().unwrap();
    let shim = launched.shim();
    let is_exit = |report: &ShimReport| matches!(report, ShimReport::Exited { .. });
    eventually("the command's end", || reports_of(&mut launched).iter().any(is_exit));
    let daemon = Process::find(&proc, proc.children(shim.pid).unwrap()[0]).unwrap();
    drop(launched);
    // A shim that goes on as before has left its loop by now.
    std::thread::sleep(Duration::from_millis(50));
    fs::write(folder.path().join("go"), "").unwrap();
    eventually("the orphans", || folder.path().join("done").exists());
    eventually("their end", || proc.descendants(shim.pid).unwrap() == [daemon.pid]);
    assert_eq!(daemon.signal(&proc, Signal::KILL), Ok(true));
    eventually("the shim's end", || shim.look(&proc).is_none());
}

#[test]
fn a_killed_shim_shows_as_closed_reports_without_an_end() {
    let mut program = Program::start(script("sleep 1000; :"), null());
    let main = program.main();
    let (proc, shim) = (program.proc.clone(), program.launched.shim());
    shim.signal(&proc, Signal::KILL).unwrap();
    eventually("the end of reports", || {
        program.reports();
        program.launched.reports.closed()
    });
    assert_eq!(program.reports().len(), 1);
    let tree = Tree { shim: Some(shim), main: Some(main), ..Default::default() };
    assert!(tree.signal(&proc, Signal::KILL, &[]).unwrap() >= 1);
}
