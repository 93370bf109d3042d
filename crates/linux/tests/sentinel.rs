//! What is left of cosched's changes when it is killed: nothing, with every freezer.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use cosched_core::{CpuSet, ProgramId};
use cosched_linux::cgroup::Hierarchies;
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::{Proc, ProcState};
use cosched_linux::kernel::sched_attr::{self, SchedPolicy};
use cosched_linux::process::launch;
use cosched_linux::process::tree::{Process, Tree};
use cosched_linux::safety::sentinel::{Sentinel, SentinelNews};
use cosched_linux::safety::undo::{Journal, Log, Record, restore};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open};
use serde::Deserialize;
use support::{HIDDEN, Program, eventually, script};

/// The user id of `nobody`, which owns nothing.
const OTHER_USER: u32 = 65534;

/// What the host has done.
#[derive(Deserialize)]
struct Done {
    shim: Process,
    main: Process,
    bystander: Process,
    cpus: CpuSet,
    cgroup: Option<PathBuf>,
    log: PathBuf,
}

impl Drop for Done {
    fn drop(&mut self) {
        let tree = Tree { shim: Some(self.shim), main: Some(self.main), ..Tree::default() };
        let _ = tree.signal(&Proc::default(), Signal::KILL, &[]);
    }
}

/// A stand-in for cosched that makes changes; killed when dropped.
struct Host(Child);

impl Host {
    fn command(executable: &Path, backend: &str, folder: &Path) -> Command {
        let mut command = Command::new(executable);
        command.args(["host", backend]).arg(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    fn start(backend: &str, folder: &Path) -> Host {
        Host(Host::command(Path::new(HIDDEN), backend, folder).spawn().unwrap())
    }

    /// Waits for the changes; `None`, with a message, where it may not make them.
    fn changes(&mut self) -> Option<Done> {
        let mut line = String::new();
        let stdout: ChildStdout = self.0.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let done: Option<Done> = serde_json::from_str(&line).unwrap();
        if done.is_none() {
            eprintln!("skipped: no such cgroup can be made here");
        }
        done
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn state(process: Process) -> Option<ProcState> {
    process.look(&Proc::default()).map(|stat| stat.state)
}

fn is_frozen(done: &Done) -> bool {
    match &done.cgroup {
        None => state(done.main) == Some(ProcState::Stopped),
        Some(dir) => ["cgroup.events", "freezer.state"].iter().any(|file| {
            let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
            text.lines().any(|line| line == "frozen 1" || line == "FROZEN")
        }),
    }
}

/// Kills the host and checks that all original settings are restored.
fn everything_is_restored(mut host: Host, backend: &str) {
    let Some(done) = host.changes() else { return };
    let proc = Proc::default();
    // SIGSTOP is sent by now, but may not have taken effect.
    eventually("the freeze", || is_frozen(&done));
    assert!(done.log.exists());
    assert_eq!(affinity::get(done.main.pid).unwrap().len(), 1);
    assert_eq!(sched_attr::get(done.main.pid).unwrap().policy, SchedPolicy::Batch);
    let journal = Log::load(&done.log, &proc).unwrap();

    drop(host);
    eventually("the log's end", || !done.log.exists());
    // The program spins again.
    eventually("the program's going on", || state(done.main) == Some(ProcState::Running));
    for process in [done.main, done.bystander] {
        assert_eq!(affinity::get(process.pid).unwrap(), done.cpus);
        assert_eq!(sched_attr::get(process.pid).unwrap().policy, SchedPolicy::Other);
    }
    if backend == "signal" {
        eventually("the stop by another process", || {
            state(done.bystander) == Some(ProcState::Stopped)
        });
    }
    assert!(done.cgroup.as_ref().is_none_or(|dir| !dir.exists()));

    nothing_is_owed(&journal, &proc);
}

/// Carries out a log and finds nothing to do.
fn nothing_is_owed(journal: &Journal, proc: &Proc) {
    let done = restore(journal, proc);
    let counts =
        [done.continued, done.masks, done.attrs, done.moved, done.cgroups, done.failed.len()];
    assert_eq!(counts, [0; 6], "{done:?} for {journal:?}");
}

#[test]
fn a_frozen_program_is_restored_unless_others_stopped_it() {
    let folder = tempfile::tempdir().unwrap();
    everything_is_restored(Host::start("signal", folder.path()), "signal");
}

#[test]
fn a_program_in_a_frozen_v2_cgroup_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    everything_is_restored(Host::start("v2", folder.path()), "v2");
}

#[test]
fn a_program_in_a_frozen_v1_cgroup_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    everything_is_restored(Host::start("v1", folder.path()), "v1");
}

#[test]
fn no_rights_are_needed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: the other tests run without rights already");
        return;
    }
    // The build folder may be closed to that user, so the executable comes along.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let executable = folder.path().join("hidden");
    // By another process: one that this one forks meanwhile would have the copy open for writing.
    assert!(Command::new("cp").args([Path::new(HIDDEN), &executable]).status().unwrap().success());
    chown(folder.path(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    chown(&executable, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    let mut command = Host::command(&executable, "signal", folder.path());
    everything_is_restored(
        Host(command.uid(OTHER_USER).gid(OTHER_USER).spawn().unwrap()),
        "signal",
    );
}

/// A process that cosched was starting, and that is held up, has copies of all of its files.
#[test]
fn an_open_copy_of_coscheds_socket_delays_no_undoing() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start("signal", folder.path());
    let done = host.changes().unwrap();
    let pid = host.0.id() as i32;
    let handle = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    let open = Proc::default().fds(pid).unwrap();
    let sockets = open.iter().filter(|fd| fd.target.starts_with("socket:"));
    let copies = sockets.map(|fd| pidfd_getfd(&handle, fd.number, PidfdGetfdFlags::empty()));
    let copies: Vec<_> = copies.map(Result::unwrap).collect();
    assert!(copies.len() >= 2, "{open:?}");
    drop(host);
    eventually("the log's end", || !done.log.exists());
    drop(copies);
}

#[test]
fn the_sentinel_survives_a_killed_cgroup_and_leaves_none() {
    let proc = Proc::default();
    let trees = Hierarchies::find(&proc).unwrap();
    let name = format!("cosched-test-killed-{}", std::process::id());
    let Some(Ok(dir)) = trees.v2().map(|tree| tree.own.create_child(&name)) else {
        eprintln!("skipped: no v2 cgroup can be made here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let inside = "echo 0 > \"$1/cgroup.procs\" && exec \"$0\" host signal \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", inside, HIDDEN]).arg(dir.path()).arg(folder.path());
    let mut host = Host(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let done = host.changes().unwrap();
    let name = |pid: &i32| fs::read_to_string(proc.folder(*pid).join("comm")).unwrap();
    let guards = proc.children(host.0.id() as i32).unwrap();
    let guard = guards.into_iter().find(|pid| name(pid) == "csentinel\n").unwrap();
    let place = dir.path().with_file_name(format!("csentinel-{guard}"));
    assert_eq!(fs::read_to_string(place.join("cgroup.procs")).unwrap(), format!("{guard}\n"));

    dir.write("cgroup.kill", "1").unwrap();
    eventually("the log's end", || !done.log.exists());
    eventually("the end of the sentinel's place", || !place.exists());
    drop(host);
    eventually("the end of the killed cgroup", || dir.remove().is_ok());
}

#[test]
fn programs_are_restored_whenever_cosched_is_killed() {
    let proc = Proc::default();
    for moment in 0..24 {
        let folder = tempfile::tempdir().unwrap();
        let backend = ["signal", "v2", "v1"][moment % 3];
        let marked = Marked(format!("COSCHED_TEST_MARK={}", folder.path().display()));
        let mut command = Host::command(Path::new(HIDDEN), backend, folder.path());
        let host = Host(command.env("COSCHED_TEST_MARK", folder.path()).spawn().unwrap());
        let cgroup_name = format!("cosched-life-{}", host.0.id());
        std::thread::sleep(Duration::from_micros(moment as u64 * 700));
        drop(host);

        // A helper carries the executable's name until it has given itself its own.
        let helpers = ["cosched-hidden", "exe", "csentinel"];
        eventually("the sentinel's end", || {
            helpers.iter().all(|name| marked.named(name).is_empty())
        });
        // A log may be left by a host that died before the sentinel was ready, or after it had
        // ended.
        for log in Log::leftovers(folder.path(), &proc).unwrap() {
            nothing_is_owed(&Log::load(&log, &proc).unwrap(), &proc);
        }
        for shell in marked.named("sh") {
            assert_ne!(state(shell), Some(ProcState::Stopped), "{backend} at moment {moment}");
            assert_eq!(affinity::get(shell.pid), affinity::get(0), "{backend} at moment {moment}");
            assert_eq!(sched_attr::get(shell.pid).unwrap().policy, SchedPolicy::Other);
        }
        let cgroups = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"];
        assert!(cgroups.iter().all(|tree| !Path::new(tree).join(&cgroup_name).exists()));
    }
}

/// The processes that inherited this part of an environment; killed when dropped.
struct Marked(String);

impl Marked {
    fn all(&self) -> Vec<Process> {
        let proc = Proc::default();
        let has_mark = |pid: &i32| {
            let environment = fs::read(proc.folder(*pid).join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == self.0.as_bytes())
        };
        let found = proc.processes().unwrap().into_iter().filter(has_mark);
        let found = found.filter_map(|pid| Process::find(&proc, pid).ok());
        found.filter(|process| process.look(&proc).is_some()).collect()
    }

    fn named(&self, name: &str) -> Vec<Process> {
        let comm = |process: &Process| {
            fs::read_to_string(Proc::default().folder(process.pid).join("comm")).unwrap_or_default()
        };
        self.all().into_iter().filter(|process| comm(process).trim_end() == name).collect()
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        // A helper that is killed may leave a process behind that it was about to start.
        while !self.all().is_empty() {
            for process in self.all() {
                let _ = process.signal(&Proc::default(), Signal::KILL);
            }
        }
    }
}

#[test]
fn after_a_goodbye_nothing_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let proc = Proc::default();
    let mut program = Program::start(script("sleep 1000; :"), launch::OutputTo::Inherit);
    let main = program.main();
    let mut log = Log::create(folder.path(), &proc).unwrap();
    let sentinel = Sentinel::spawn(Path::new(HIDDEN), &log).unwrap();
    let id = ProgramId::first(0);
    log.note(Record::Program {
        program: id,
        shim: program.launched.shim(),
        stopped_by_signal: true,
    })
    .unwrap();
    main.signal(&proc, Signal::STOP).unwrap();
    eventually("the stop", || state(main) == Some(ProcState::Stopped));
    sentinel.goodbye(&Proc::default());
    assert_eq!(state(main), Some(ProcState::Stopped));
    assert!(log.path().exists());
    assert_eq!(restore(log.journal(), &proc).continued, 1);
    log.delete().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_sentinel_survives_signals_and_its_death_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let proc = Proc::default();
    let log = Log::create(folder.path(), &proc).unwrap();
    let mut sentinel = Sentinel::spawn(Path::new(HIDDEN), &log).unwrap();
    let pid = sentinel.pid();
    let process = Process::find(&proc, pid).unwrap();

    let of = |file: &str| fs::read_to_string(proc.folder(pid).join(file)).unwrap();
    assert_eq!(of("comm"), "csentinel\n");
    let line = of("cmdline");
    assert!(!line.contains("cosched"), "{line}");
    assert_eq!(proc.stat(pid).unwrap().session, pid);
    assert_eq!(fs::read_link(proc.folder(pid).join("cwd")).unwrap(), Path::new("/"));
    let fds = proc.fds(pid).unwrap();
    let path = log.path().to_str().unwrap();
    let is_expected = |target: &str| {
        let starts = ["socket", "/memfd:undo"];
        ["/dev/null", path].contains(&target)
            || starts.iter().any(|start| target.starts_with(start))
    };
    assert!(fds.iter().all(|fd| is_expected(&fd.target)), "{fds:?}");
    assert_eq!(fds.iter().filter(|fd| fd.target == path).count(), 1);

    for signal in [Signal::HUP, Signal::INT, Signal::TERM, Signal::QUIT, Signal::PIPE] {
        process.signal(&proc, signal).unwrap();
    }
    assert_eq!(sentinel.hear().unwrap(), SentinelNews::default());
    process.signal(&proc, Signal::KILL).unwrap();
    poll(&mut [PollFd::new(&sentinel, PollFlags::IN)], None).unwrap();
    assert!(sentinel.hear().unwrap().has_ended);
    log.delete().unwrap();
}
