//! Stands in for the `cosched` command in tests: it becomes a helper, or a host that makes changes
//! to a program, prints them, and waits to be killed.
//!
//! `cosched-hidden host BACKEND FOLDER`, with the freezer: `signal`, `v2` or `v1`. A line of JSON
//! has what was done; `null` means that this machine does not allow it.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use cosched_core::{CpuSet, ProgramId};
use cosched_linux::cgroup::{Dir, FreezeSwitch, Hierarchies};
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SchedAttr, SchedPolicy};
use cosched_linux::process::helper;
use cosched_linux::process::launch::{LaunchOrder, Launched, Launcher, OutputTo, ShimReport, Spec};
use cosched_linux::process::tree::{Process, Tree};
use cosched_linux::safety::sentinel::Sentinel;
use cosched_linux::safety::undo::{CgroupKind, Log, Record};
use rustix::process::Signal;

const PROGRAM: ProgramId = ProgramId::first(0);

fn main() {
    cosched_linux::helpers::become_one_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, backend, folder] = arguments.as_slice() else {
        panic!("usage: host BACKEND FOLDER")
    };
    assert_eq!(mode, "host");
    host(backend, Path::new(folder));
    loop {
        std::thread::park();
    }
}

fn host(backend: &str, folder: &Path) {
    let proc = Proc::default();
    let mut log = Log::create(folder, &proc).unwrap();
    let sentinel = Sentinel::spawn(Path::new(helper::OWN_EXECUTABLE), &log).unwrap();
    let Ok(cgroup) = make_cgroup(backend, &mut log, &proc) else {
        sentinel.goodbye(&Proc::default());
        log.delete().unwrap();
        println!("null");
        std::process::exit(0);
    };
    let (launched, main) = start(backend == "signal", cgroup.as_ref(), &mut log, &proc);
    let tree = Tree { shim: Some(launched.shim()), main: Some(main), ..Tree::default() };
    // Stopped by another process before cosched does anything.
    let bystander = tree.members(&proc).into_iter().find(|process| *process != main).unwrap();
    if backend == "signal" {
        bystander.signal(&proc, Signal::STOP).unwrap();
        log.note(Record::StoppedByOther { process: bystander }).unwrap();
    }
    let cpus = pin(&tree, &mut log, &proc);
    schedule(main, &mut log);
    match &cgroup {
        None => drop(tree.signal(&proc, Signal::STOP, &[]).unwrap()),
        Some(dir) => {
            let switch = FreezeSwitch::open(dir).unwrap();
            switch.freeze().unwrap();
            while !switch.is_frozen().unwrap() {
                std::thread::yield_now();
            }
        }
    }
    println!(
        "{}",
        serde_json::json!({
            "shim": launched.shim(), "main": main, "bystander": bystander, "cpus": cpus,
            "cgroup": cgroup.as_ref().map(Dir::path), "log": log.path(),
        })
    );
    // Neither may be dropped: that would be cosched's end.
    std::mem::forget((sentinel, launched));
}

fn make_cgroup(backend: &str, log: &mut Log, proc: &Proc) -> Result<Option<Dir>, ()> {
    let trees = Hierarchies::find(proc).unwrap();
    let (tree, kind) = match backend {
        "v2" => (trees.v2(), CgroupKind::V2),
        "v1" => (trees.v1("freezer"), CgroupKind::V1Freezer),
        _ => return Ok(None),
    };
    let origin = &tree.ok_or(())?.own;
    let name = format!("cosched-life-{}", std::process::id());
    let dir = origin.child(&name).path().to_owned();
    log.note(Record::CgroupDir { kind, dir, origin: origin.path().to_owned() }).unwrap();
    origin.create_child(&name).map(Some).map_err(drop)
}

/// Starts a program with a process that spins and one that sleeps.
fn start(
    stopped_by_signal: bool,
    cgroup: Option<&Dir>,
    log: &mut Log,
    proc: &Proc,
) -> (Launched, Process) {
    let script = "sleep 1000 & while :; do :; done";
    let order = LaunchOrder {
        executable: "/bin/sh".into(),
        argv: ["sh", "-c", script].map(String::from).to_vec(),
        env: std::env::vars_os().collect(),
        cwd: "/".into(),
        cgroups: cgroup.map(|dir| dir.path().join("cgroup.procs")).into_iter().collect(),
        ..LaunchOrder::default()
    };
    let outputs = || OutputTo::File { path: "/dev/null".into(), append: true };
    let spec = Spec { order, stdout: outputs(), stderr: outputs() };
    let launcher = Launcher::new(Path::new(helper::OWN_EXECUTABLE), proc.clone());
    let prepared = launcher.prepare(&spec).unwrap();
    log.note(Record::Program { program: PROGRAM, shim: prepared.shim(), stopped_by_signal })
        .unwrap();
    let mut launched = prepared.start().unwrap();
    let main = loop {
        match launched.reports.read().unwrap().first() {
            Some(ShimReport::Forked { .. }) => launched.is_known(),
            Some(ShimReport::Started { process, .. }) => break *process,
            Some(other) => panic!("{other:?}"),
            None => std::thread::yield_now(),
        }
    };
    log.note(Record::Main { program: PROGRAM, process: main }).unwrap();
    let sleeps = |pid: &i32| {
        std::fs::read_to_string(proc.folder(*pid).join("comm")).is_ok_and(|comm| comm == "sleep\n")
    };
    while !proc.descendants(launched.shim().pid).unwrap().iter().any(sleeps) {
        std::thread::yield_now();
    }
    (launched, main)
}

/// Binds every thread to the first of its CPUs. Returns the original CPUs.
fn pin(tree: &Tree, log: &mut Log, proc: &Proc) -> CpuSet {
    let found = affinity::get(0).unwrap();
    let set = found.iter().take(1).collect();
    log.note(Record::Pinned { program: PROGRAM, found, set }).unwrap();
    for process in tree.members(proc) {
        affinity::set(process.pid, &set).unwrap();
    }
    found
}

fn schedule(thread: Process, log: &mut Log) {
    let present = sched_attr::get(thread.pid).unwrap();
    // The slice reads as the default; see `Record::Attr`.
    let found = SchedAttr { runtime: cosched_core::Nanos::ZERO, ..present };
    let set = SchedAttr { policy: SchedPolicy::Batch, ..present };
    log.note(Record::Attr { program: PROGRAM, thread, found, set }).unwrap();
    sched_attr::set(thread.pid, &set).unwrap();
}
