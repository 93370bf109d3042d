//! Signals go to real processes. The states of their threads are read from a made-up `/proc`, so
//! each moment of a freeze can be held.

use std::fs;
use std::io::Write;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tempfile::TempDir;

use super::*;
use crate::cgroup::{Dir, Version};

/// The number of a thread that no process has: the kernel gives out at most 2^22.
const SECOND: i32 = i32::MAX - 1;
const THIRD: i32 = i32::MAX;

/// Processes that sleep, and a made-up `/proc` for them.
struct Stage {
    root: TempDir,
    proc: Proc,
    children: Vec<Child>,
}

impl Stage {
    fn new() -> Stage {
        let root = tempfile::tempdir().unwrap();
        Stage { proc: Proc::new(root.path()), root, children: Vec::new() }
    }

    /// Starts a process; its only thread sleeps.
    fn start(&mut self) -> i32 {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        self.children.push(child);
        self.says(pid, pid, 'S');
        pid
    }

    /// Sets the state of a thread.
    fn says(&self, pid: i32, tid: i32, state: char) {
        let parent = self.proc.stat(pid).map_or(1, |stat| stat.ppid);
        self.says_of_child(parent, pid, tid, state);
    }

    fn says_of_child(&self, parent: i32, pid: i32, tid: i32, state: char) {
        let line = format!(
            "{tid} (x) {state} {parent} 1 1 0 0 0 0 0 0 0 1 2 0 0 20 0 2 0 77 0 0 {}",
            ["0"; 16].join(" ")
        );
        let folder = self.root.path().join(pid.to_string());
        fs::create_dir_all(folder.join(format!("task/{tid}"))).unwrap();
        fs::write(folder.join(format!("task/{tid}/stat")), &line).unwrap();
        if tid == pid {
            fs::write(folder.join("stat"), line).unwrap();
        }
        let children = folder.join(format!("task/{tid}/children"));
        if !children.exists() {
            fs::write(children, "").unwrap();
        }
    }

    /// Makes one process a child of the other.
    fn gives_birth(&self, parent: i32, child: i32) {
        let path = format!("{parent}/task/{parent}/children");
        fs::write(self.root.path().join(path), format!("{child} ")).unwrap();
        self.says_of_child(parent, child, child, 'S');
    }

    fn tree(&self, main: i32) -> Tree {
        Tree { main: Some(Process { pid: main, start_time: 77 }), ..Tree::default() }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until the kernel says that a process is stopped, or is not.
fn eventually_stopped(pid: i32, expected: bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while (Proc::default().stat(pid).unwrap().state == ProcState::Stopped) != expected {
        assert!(Instant::now() < until, "waited in vain: process {pid} stopped: {expected}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn by_signals() -> Freezer {
    Freezer::Signals(Stopper::default())
}

#[test]
fn a_freeze_by_signals_completes_with_the_last_stopped_thread() {
    let mut stage = Stage::new();
    let main = stage.start();
    stage.says(main, SECOND, 'R');
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.freeze(&tree, &stage.proc).unwrap();
    eventually_stopped(main, true);
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(false));
    stage.says(main, main, 'T');
    for not_stopped in ['R', 'S'] {
        stage.says(main, SECOND, not_stopped);
        assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(false), "{not_stopped}");
    }
    // A child of the second one, from before that one stopped.
    stage.says(main, THIRD, 'R');
    stage.says(main, SECOND, 'T');
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(false));
    stage.says(main, THIRD, 'T');
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(true));
}

#[test]
fn a_process_born_during_a_freeze_is_stopped_too() {
    let mut stage = Stage::new();
    let (main, born) = (stage.start(), stage.start());
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.freeze(&tree, &stage.proc).unwrap();
    stage.gives_birth(main, born);
    stage.says(main, main, 'T');
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(false));
    eventually_stopped(born, true);
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(false), "/proc says that it still sleeps");
    stage.says(born, born, 'T');
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(true));
    freezer.thaw(&stage.proc).unwrap();
    eventually_stopped(main, false);
    eventually_stopped(born, false);
}

#[test]
fn a_thread_that_cannot_run_counts_as_stopped() {
    for (state, is_complete) in [
        ('T', true),
        ('t', true),
        ('D', true),
        ('Z', true),
        ('X', true),
        ('R', false),
        ('S', false),
    ] {
        let mut stage = Stage::new();
        let main = stage.start();
        let (mut freezer, tree) = (by_signals(), stage.tree(main));
        stage.says(main, SECOND, state);
        freezer.freeze(&tree, &stage.proc).unwrap();
        stage.says(main, main, 'T');
        assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(is_complete), "{state}");
    }
}

#[test]
fn stops_by_others_are_seen_before_a_freeze_and_at_every_check() {
    let mut stage = Stage::new();
    let (main, child) = (stage.start(), stage.start());
    let of = |pid| Process { pid, start_time: 77 };
    stage.gives_birth(main, child);
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    for (state, others) in [('T', vec![of(child)]), ('S', Vec::new())] {
        stage.says(child, child, state);
        freezer.look_for_stops(&tree, &stage.proc);
        assert_eq!(freezer.stopped_by_others(), others, "{state}");
    }
    freezer.freeze(&tree, &stage.proc).unwrap();
    eventually_stopped(child, true);
    let born = stage.start();
    stage.gives_birth(child, born);
    [main, child, born].iter().for_each(|pid| stage.says(*pid, *pid, 'T'));
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(true));
    assert_eq!(freezer.stopped_by_others(), [of(born)]);
}

/// A process takes a signal only when it gets a CPU.
#[test]
fn a_stop_by_others_that_is_on_its_way_is_seen() {
    let mut stage = Stage::new();
    let (main, child) = (stage.start(), stage.start());
    stage.gives_birth(main, child);
    stage.says(child, child, 'R');
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.look_for_stops(&tree, &stage.proc);
    assert_eq!(freezer.stopped_by_others(), []);
    let status = stage.root.path().join(format!("{child}/status"));
    fs::write(status, "SigPnd:\t0000000000000000\nShdPnd:\t0000000000040000\n").unwrap();
    freezer.freeze(&tree, &stage.proc).unwrap();
    assert_eq!(freezer.stopped_by_others(), [Process { pid: child, start_time: 77 }]);
    eventually_stopped(main, true);
    eventually_stopped(child, false);
}

/// It takes the signal of another process while it is looked at: it is no longer about to stop, and
/// has stopped.
#[test]
fn a_stop_by_others_that_is_taken_meanwhile_is_seen() {
    let mut stage = Stage::new();
    let main = stage.start();
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.look_for_stops(&tree, &stage.proc);
    stage.says(main, main, 'R');
    // A read of this file waits for a write.
    let status = stage.root.path().join(format!("{main}/status"));
    assert!(Command::new("mkfifo").arg(&status).status().unwrap().success());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().write(true).open(&status).unwrap();
            stage.says(main, main, 'T');
            fs::remove_file(&status).unwrap();
            fs::write(&status, "SigPnd:\t0\nShdPnd:\t0\n").unwrap();
            file.write_all(b"SigPnd:\t0\nShdPnd:\t0\n").unwrap();
        });
        freezer.freeze(&tree, &stage.proc).unwrap();
    });
    assert_eq!(freezer.stopped_by_others().len(), 1);
    assert_ne!(Proc::default().stat(main).unwrap().state, ProcState::Stopped);
}

/// It would see every pause.
#[test]
fn a_process_that_catches_sigcont_is_left_out_while_it_waits() {
    let mut stage = Stage::new();
    let (main, child) = (stage.start(), stage.start());
    stage.gives_birth(main, child);
    let catches = |stage: &Stage, pid: i32| {
        let status = stage.root.path().join(format!("{pid}/status"));
        fs::write(status, "SigCgt:\t0000000000020000\n").unwrap();
    };
    catches(&stage, main);
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.freeze(&tree, &stage.proc).unwrap();
    eventually_stopped(child, true);
    stage.says(child, child, 'T');
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(true));
    assert_ne!(Proc::default().stat(main).unwrap().state, ProcState::Stopped);
    freezer.thaw(&stage.proc).unwrap();
    stage.says(child, child, 'S');
    // A parent of such a process waits, too.
    let above = stage.start();
    stage.gives_birth(above, main);
    catches(&stage, above);
    freezer.freeze(&stage.tree(above), &stage.proc).unwrap();
    freezer.thaw(&stage.proc).unwrap();

    let refused = Err(Refusal::CatchesContinue);
    stage.says(main, main, 'R');
    assert_eq!(freezer.freeze(&tree, &stage.proc), refused, "it computes itself");
    eventually_stopped(child, false);
    stage.says(main, main, 'S');
    catches(&stage, child);
    assert_eq!(freezer.freeze(&tree, &stage.proc), refused, "it waits for none that is stopped");
    let mut freezer = Freezer::of(None, true).unwrap();
    freezer.freeze(&tree, &stage.proc).unwrap();
    eventually_stopped(main, true);
}

/// Not even one that was born during the freeze.
#[test]
fn no_process_is_stopped_in_a_wait_that_ends_early() {
    let mut stage = Stage::new();
    let (main, child) = (stage.start(), stage.start());
    let folder = stage.root.path().join(child.to_string());
    fs::write(folder.join("status"), "SigIgn:\t0\nSigCgt:\t0\n").unwrap();
    let call = format!("{} 0x3 0x7ff 0x1 0xffffffff 0x0 0x8", libc::SYS_epoll_pwait);
    fs::write(folder.join(format!("task/{child}/syscall")), call).unwrap();
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.freeze(&tree, &stage.proc).unwrap();
    eventually_stopped(main, true);
    stage.says(main, main, 'T');
    stage.gives_birth(main, child);
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Err(Refusal::WaitsForEvents));
    eventually_stopped(main, false);
    assert_eq!(freezer.freeze(&tree, &stage.proc), Err(Refusal::WaitsForEvents));
    eventually_stopped(main, false);
    assert!(freezer.left_stopped().is_empty());
    assert_ne!(Proc::default().stat(child).unwrap().state, ProcState::Stopped);
    Freezer::of(None, true).unwrap().freeze(&tree, &stage.proc).unwrap();
    eventually_stopped(child, true);
}

#[test]
fn a_process_that_could_not_be_continued_is_tried_again() {
    let mut stage = Stage::new();
    let main = stage.start();
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.freeze(&tree, &stage.proc).unwrap();
    eventually_stopped(main, true);
    // A folder can be opened, and not be read as a file: whether this is the right process is
    // unknown.
    let stat = stage.proc.folder(main).join("stat");
    let spoil = || {
        fs::remove_file(&stat).unwrap();
        fs::create_dir(&stat).unwrap();
    };
    let mend = || {
        fs::remove_dir(&stat).unwrap();
        stage.says(main, main, 'T');
    };
    spoil();
    assert_eq!(freezer.thaw(&stage.proc), Err(Refusal::NotSupported));
    assert_eq!(freezer.thaw_rest(&stage.proc), Err(Refusal::NotSupported));
    assert_eq!(freezer.left_stopped(), [Process { pid: main, start_time: 77 }]);
    mend();
    assert_eq!(freezer.thaw_rest(&stage.proc), Ok(()));
    assert_eq!(freezer.left_stopped(), []);
    eventually_stopped(main, false);

    stage.says(main, main, 'S');
    freezer.freeze(&tree, &stage.proc).unwrap();
    spoil();
    assert_eq!(freezer.thaw(&stage.proc), Err(Refusal::NotSupported));
    mend();
    freezer.freeze(&tree, &stage.proc).unwrap();
    assert_eq!(freezer.stopped_by_others(), [], "cosched has stopped it");
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(true));
    freezer.thaw(&stage.proc).unwrap();
    eventually_stopped(main, false);
}

/// As `script` does, by its name or with a terminal of its own and under any name. Its parent was
/// stopped before the child is looked at, and is continued.
#[test]
fn no_child_of_a_process_that_stops_itself_is_stopped() {
    const TERMINAL: &str = "/dev/ptmx";
    const SIGNALS: &str = "anon_inode:[signalfd]";
    for (name, blocked, targets, is_refused) in [
        ("script", "0", ["/dev/null"; 2], true),
        ("renamed", "10000", [TERMINAL, SIGNALS], true),
        ("python3", "0", [TERMINAL, SIGNALS], false),
        ("make", "10000", [TERMINAL; 2], false),
        ("systemd", "10000", [SIGNALS; 2], false),
    ] {
        let mut stage = Stage::new();
        let (main, child) = (stage.start(), stage.start());
        stage.gives_birth(main, child);
        let folder = stage.proc.folder(main);
        fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
        fs::write(folder.join("status"), format!("SigBlk:\t{blocked}\n")).unwrap();
        fs::create_dir(folder.join("fd")).unwrap();
        for (number, target) in targets.iter().enumerate() {
            std::os::unix::fs::symlink(target, folder.join(format!("fd/{number}"))).unwrap();
        }
        let mut freezer = Freezer::of(None, true).unwrap();
        let expected = if is_refused { Err(Refusal::StopsItself) } else { Ok(()) };
        assert_eq!(freezer.freeze(&stage.tree(main), &stage.proc), expected, "{name}");
        [main, child].iter().for_each(|pid| eventually_stopped(*pid, !is_refused));
        // The kernel keeps for the parent that a child was continued.
        let continued = WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        let child = WaitId::Pid(Pid::from_raw(child).unwrap());
        assert!(waitid(child, continued).unwrap().is_none(), "{name}");
    }
}

#[test]
fn a_freeze_of_many_threads_keeps_few_files_open() {
    let mut stage = Stage::new();
    let main = stage.start();
    let threads: Vec<i32> = (0..40).map(|i| THIRD - i).collect();
    threads.iter().for_each(|tid| stage.says(main, *tid, 'R'));
    let (mut stopper, tree) = (Stopper::default(), stage.tree(main));
    stopper.freeze(&tree, &stage.proc).unwrap();
    stage.says(main, main, 'T');
    for tid in &threads {
        assert_eq!(stopper.is_frozen(&tree, &stage.proc), Ok(false));
        assert!((1..=MOST_READERS).contains(&stopper.stopped[0].pending.len()));
        stage.says(main, *tid, 'T');
    }
    assert_eq!(stopper.is_frozen(&tree, &stage.proc), Ok(true));
}

#[test]
fn a_process_whose_threads_cannot_be_listed_is_not_frozen() {
    let mut stage = Stage::new();
    let main = stage.start();
    let (mut freezer, tree) = (by_signals(), stage.tree(main));
    freezer.freeze(&tree, &stage.proc).unwrap();
    stage.says(main, main, 'T');
    let task = stage.proc.folder(main).join("task");
    fs::remove_dir_all(&task).unwrap();
    fs::write(&task, "no folder").unwrap();
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(false));
    fs::remove_file(&task).unwrap();
    stage.says(main, main, 'T');
    assert_eq!(freezer.is_frozen(&tree, &stage.proc), Ok(true));
}

#[test]
fn a_freeze_by_cgroup_completes_when_the_kernel_says_so() {
    for (version, answer, not_yet, done) in [
        (Version::V2, "cgroup.events", "populated 1\nfrozen 0\n", "populated 1\nfrozen 1\n"),
        (Version::V1, "freezer.state", "FREEZING\n", "FROZEN\n"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let answers = |text: &str| fs::write(root.path().join(answer), text).unwrap();
        fs::write(root.path().join("cgroup.freeze"), "0").unwrap();
        answers(not_yet);
        let switch = FreezeSwitch::open(&Dir::new(root.path(), version)).unwrap();
        let (mut freezer, tree, proc) = (Freezer::Cgroup(switch), Tree::default(), Proc::default());
        freezer.freeze(&tree, &proc).unwrap();
        answers(not_yet);
        assert_eq!(freezer.is_frozen(&tree, &proc), Ok(false), "{version:?}");
        answers(done);
        assert_eq!(freezer.is_frozen(&tree, &proc), Ok(true), "{version:?}");
    }
}
