//! What the machine counts of its programs, with software events in place of hardware's.

#![allow(clippy::unwrap_used)]

mod support;

use cosched_core::{
    Counts, Event as Told, Happening, Machine, Nanos, ProgramId, Quality, Settings, Step,
};
use cosched_linux::counters::{self, Event, Events};
use cosched_linux::ground::{FreezerRung, Wishes};
use cosched_linux::launch::Output;
use cosched_linux::machine::{Config, Job, Linux, Origin};
use cosched_linux::procfs::Proc;
use cosched_linux::topology::Sys;
use cosched_linux::usable::Usable;
use support::{HIDDEN, script};

const PROGRAM: ProgramId = ProgramId::first(0);
const PAGE_FAULTS: Event = Event { kind: 1, config: 2 };
const SOFTWARE: Events = Events {
    instructions: Event { kind: 1, config: 1 },
    llc_references: PAGE_FAULTS,
    llc_misses: PAGE_FAULTS,
};

/// Runs a shell script on the machine; what was counted.
fn counts(text: &str, count: Option<Events>) -> Counts {
    let folder = tempfile::tempdir().unwrap();
    let topology = Sys::default().topology().unwrap();
    let config = Config {
        executable: HIDDEN.into(),
        log_folder: folder.path().to_owned(),
        cpus: Usable::find(&topology, &Proc::default()).unwrap().cpus,
        topology,
        wishes: Wishes { freezer: Some(FreezerRung::Signals), pinning: None, shares: false },
        turns: true,
        count,
        jobs: vec![Job {
            origin: Origin::Started,
            order: script(text),
            stdout: Output::Stderr,
            stderr: Output::Inherit,
            freezable_for_sure: true,
            grouped_by_user: true,
        }],
        asks: None,
        notes: std::sync::mpsc::channel().0,
        roots: Default::default(),
    };
    let mut machine = Linux::new(config).unwrap();
    machine.submit(&[Step::Start(PROGRAM, Settings::default())]).unwrap();
    let mut told = Vec::new();
    let ended = |event: &Told| match event.what {
        Happening::Exited(_, _, usage) => Some(usage),
        _ => None,
    };
    let usage = loop {
        machine.wait(Nanos::NEVER, &mut told).unwrap();
        if let Some(usage) = told.drain(..).find_map(|event| ended(&event)) {
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
fn nothing_is_counted_unless_asked_for() {
    assert_eq!(counts(":", None), Counts::default());
}

#[test]
fn what_is_asked_for_and_not_there_is_missing() {
    let unknown = Event { kind: 9999, config: 0 };
    let events = Events { instructions: unknown, llc_references: unknown, llc_misses: unknown };
    assert_eq!(counts(":", Some(events)), Counts::default());
}
