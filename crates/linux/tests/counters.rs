//! The counts of the machine for its programs, with software events in place of hardware's.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use cosched_core::{
    Arena, Counts, Event, Happening, Machine, Measure, Nanos, Observe, ProgramId, Quality,
    Settings, Step,
};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::machine::{Job, Linux, Origin};
use cosched_linux::observe::counters::{self, CounterEvent, Events};
use cosched_linux::process::tree::Process;
use support::{alone, script};

const PROGRAM: ProgramId = ProgramId::first(0);
const PAGE_FAULTS: CounterEvent = CounterEvent { kind: 1, config: 2 };
const SOFTWARE: Events = Events {
    instructions: CounterEvent { kind: 1, config: 1 },
    cycles: CounterEvent { kind: 1, config: 1 },
    llc_references: PAGE_FAULTS,
    llc_misses: PAGE_FAULTS,
};

/// A machine for one program.
fn machine(folder: &Path, origin: Origin, text: &str, count: Option<Events>) -> Linux {
    alone::machine(folder, Job { origin, ..alone::job(script(text)) }, count)
}

/// Runs a shell script on the machine. Returns the counts.
fn counts(text: &str, count: Option<Events>) -> Counts {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = machine(folder.path(), Origin::Started, text, count);
    machine.submit(&[Step::Start(PROGRAM, Settings::default())]).unwrap();
    let mut events = Vec::new();
    let ended = |event: &Event| match event.what {
        Happening::Exited(_, _, usage) => Some(usage),
        _ => None,
    };
    let usage = loop {
        machine.wait(Nanos::NEVER, &mut events).unwrap();
        if let Some(usage) = events.drain(..).find_map(|event| ended(&event)) {
            break usage;
        }
    };
    machine.close().unwrap();
    usage.counts
}

#[test]
fn a_program_is_counted_with_its_children_and_background_jobs() {
    if let Err(lack) = counters::check(SOFTWARE) {
        eprintln!("skipped: {lack}");
        return;
    }
    let alone = counts(":", Some(SOFTWARE));
    assert_eq!(alone.quality, Quality::Exact);
    assert!(alone.instructions.unwrap() > 0);
    let children = "/bin/sh -c :; /bin/sh -c :; /bin/sh -c :";
    // The command ends before its background job, which is part of the program.
    let many = counts(&format!("({children}; {children}) &"), Some(SOFTWARE));
    assert!(many.llc_misses.unwrap() > 3 * alone.llc_misses.unwrap(), "{many:?} {alone:?}");
}

#[test]
fn a_running_program_is_counted_from_the_request() {
    if let Err(lack) = counters::check(SOFTWARE) {
        eprintln!("skipped: {lack}");
        return;
    }
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "while read line; do /bin/sh -c :; /bin/sh -c :; echo done; done"]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let process = Process::find(&Proc::default(), shell.id() as i32).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut machine = machine(folder.path(), Origin::Running(process), "", Some(SOFTWARE));
    let observe =
        Observe { program: Some(PROGRAM), measure: Measure::Counters, period: Nanos::from_secs(1) };
    machine.submit(&[Step::Observe(observe)]).unwrap();
    let (mut input, mut output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    let mut faults = || {
        let mut arena = Arena::default();
        machine.read(&[observe], &mut arena).unwrap();
        let whole = arena.samples.iter().find(|sample| sample.thread.is_none()).unwrap();
        whole.llc_misses
    };
    faults();
    input.write_all(b"go on\n").unwrap();
    output.read_exact(&mut [0; 5]).unwrap();
    assert!(faults().unwrap() > 50, "two shells were started");
    assert!(faults().unwrap_or(0) < 50, "and no more of them");
    drop(input);
    assert!(shell.wait().unwrap().success());
    machine.close().unwrap();
}

/// A shell that computes uses most of the CPU time. One that reads long texts uses most pages.
#[test]
fn each_thread_of_a_program_has_its_own_count() {
    if let Err(lack) = counters::check(SOFTWARE) {
        eprintln!("skipped: {lack}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "while :; do :; done & while :; do x=$(printf %2000000s); done & wait";
    let mut machine = machine(folder.path(), Origin::Started, text, Some(SOFTWARE));
    let period = Nanos::from_millis(100);
    let observe = [Measure::Threads, Measure::CpuTime, Measure::ThreadMisses]
        .map(|measure| Observe { program: Some(PROGRAM), measure, period });
    machine.submit(&observe.map(Step::Observe)).unwrap();
    machine.submit(&[Step::Start(PROGRAM, Settings::default())]).unwrap();
    let mut arena = Arena::default();
    let mut events = Vec::new();
    let told = (0..300).any(|_| {
        let soon = machine.now() + Nanos::from_millis(200);
        machine.wait(soon, &mut events).unwrap();
        machine.read(&observe, &mut arena).unwrap();
        let of_threads = arena.samples.iter().filter(|sample| sample.thread.is_some());
        let known: Vec<_> = of_threads.filter(|sample| sample.llc_misses.is_some()).collect();
        let busiest = known.iter().max_by_key(|sample| sample.on_cpu);
        let misses = known.iter().filter_map(|sample| sample.llc_misses).max();
        let (Some(busiest), Some(most)) = (busiest, misses) else { return false };
        busiest.on_cpu > Nanos::from_millis(50)
            && most > 200
            && busiest.llc_misses.is_some_and(|own| own < most / 20)
    });
    machine.submit(&[Step::Signal(PROGRAM, cosched_core::Signal::Kill)]).unwrap();
    machine.close().unwrap();
    assert!(told, "{:?}", arena.samples);
}

#[test]
fn nothing_is_counted_without_a_request() {
    assert_eq!(counts(":", None), Counts::default());
}

#[test]
fn requested_events_that_do_not_exist_are_missing() {
    let unknown = CounterEvent { kind: 9999, config: 0 };
    let events = Events {
        instructions: unknown,
        cycles: unknown,
        llc_references: unknown,
        llc_misses: unknown,
    };
    assert_eq!(counts(":", Some(events)), Counts::default());
}
