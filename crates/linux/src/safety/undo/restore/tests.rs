use std::io::Read;
use std::process::{Command, Stdio};

use cosched_core::ProgramId;

use super::*;
use crate::process::testkit::TestProcess;
use crate::safety::undo::Record;

/// Otherwise its log would be removed, and it would stay stopped.
#[test]
fn a_process_that_cannot_be_read_counts_as_not_restored() {
    let root = tempfile::tempdir().unwrap();
    let proc = Proc::new(root.path());
    let (program, process) = (ProgramId::first(0), Process { pid: i32::MAX, start_time: 77 });
    let shim = Process { pid: 0, start_time: 0 };
    let journal: Journal = [
        Record::Program { program, shim, stopped_by_signal: true },
        Record::Main { program, process },
    ]
    .into_iter()
    .collect();
    assert!(restore(&journal, &proc).failed.is_empty(), "it has ended");
    // A folder can be opened, and not be read as a file.
    std::fs::create_dir_all(proc.folder(process.pid).join("stat")).unwrap();
    for restored in [restore(&journal, &proc), thaw(&journal, &proc)] {
        assert!(matches!(restored.failed[..], [NotRestored::Unread(_)]), "{restored:?}");
    }
}

/// Otherwise the log would stay, and the run would end with an error.
#[test]
fn a_process_that_refuses_signals_and_runs_was_never_stopped() {
    let root = tempfile::tempdir().unwrap();
    let (process, proc) = (Process { pid: 7, start_time: 77 }, Proc::new(root.path()));
    let never = |state, refused: Errno| was_never_stopped(process, state, refused, &proc);
    assert!(never(ProcState::Sleeping, Errno::PERM));
    assert!(!never(ProcState::Stopped, Errno::PERM));
    assert!(!never(ProcState::Sleeping, Errno::NOMEM));
    // It changed its user while SIGSTOP was on its way.
    std::fs::create_dir_all(proc.folder(7)).unwrap();
    std::fs::write(proc.folder(7).join("status"), "ShdPnd:\t0000000000040000\n").unwrap();
    assert!(!never(ProcState::Running, Errno::PERM));
}

#[test]
fn a_process_that_runs_and_catches_sigcont_hears_none() {
    let proc = Proc::default();
    let mut shell = Command::new("sh")
        .args(["-c", "trap : CONT; echo; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It has its handler when it says something.
    shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let process = Process::find(&proc, shell.id() as i32).unwrap();
    let (others, mut continued) = (HashSet::new(), HashSet::new());
    let mut work = Work::begin(&mut continued, &proc);
    assert!(!work.resume(process, &others));
    assert!(work.continued.is_empty());
    process.signal(&proc, Signal::STOP).unwrap();
    assert!(work.resume(process, &others));
    assert!(work.end().failed.is_empty());
    drop(shell.stdin.take());
    shell.wait().unwrap();
}

/// A thread in uninterruptible sleep has still to take a stop that another one has taken.
#[test]
fn a_process_with_one_stopped_thread_may_be_stopped() {
    let root = tempfile::tempdir().unwrap();
    let (process, proc) = (Process { pid: 7, start_time: 77 }, Proc::new(root.path()));
    for (second, expected) in [('S', false), ('T', true)] {
        for (tid, state) in [(7, 'D'), (8, second)] {
            let task = proc.folder(7).join(format!("task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            let zeros = ["0"; 16].join(" ");
            let line =
                format!("{tid} (x) {state} 1 1 1 0 0 0 0 0 0 0 1 2 0 0 20 0 2 0 77 0 0 {zeros}");
            std::fs::write(task.join("stat"), line).unwrap();
        }
        assert_eq!(has_stopped_thread(process, &proc), expected, "{second}");
    }
}

/// Otherwise undoing would also end a stop by a parent that it has just continued.
#[test]
fn undoing_continues_children_first_and_each_process_once() {
    let proc = Proc::default();
    let mut shell = TestProcess::parent_of(1);
    let (main, tree) = (shell.process(), shell.tree());
    let (others, mut continued) = (HashSet::new(), HashSet::new());
    let mut work = Work::begin(&mut continued, &proc);
    let members = work.children_first(&tree);
    assert_eq!(members[1], main);
    let child = members[0];
    assert!(work.resume(child, &others));
    assert!(work.end().failed.is_empty());
    assert_eq!(child.signal(&proc, Signal::STOP), Ok(true));
    let is_stopped = || child.look(&proc).unwrap().state == ProcState::Stopped;
    while !is_stopped() {
        std::thread::yield_now();
    }
    let mut again = Work::begin(&mut continued, &proc);
    assert!(!again.resume(child, &others) && is_stopped());
    assert_eq!(tree.signal(&proc, Signal::KILL, &[]), Ok(2));
    shell.wait();
}

/// Otherwise undoing would last as long as a program starts one process after another.
#[test]
fn a_process_born_since_needs_no_further_round() {
    let (proc, others) = (Proc::default(), HashSet::new());
    let first = TestProcess::idle();
    let older = first.process();
    let mut continued = HashSet::new();
    let mut work = Work::begin(&mut continued, &proc);
    while ticks_since_boot() <= work.began {
        std::thread::yield_now();
    }
    let second = TestProcess::idle();
    let newborn = second.process();
    assert!(work.resume(older, &others), "its stop may not have taken effect yet");
    assert!(!work.resume(newborn, &others));
    assert!(work.continued.contains(&newborn), "it is continued nevertheless");
    assert!(!work.resume(older, &others), "it was continued before");
}
