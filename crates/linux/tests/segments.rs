//! What a policy that compares quanta gets for each: for how long a program ran in it, and where in
//! its code it was.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use cosched_core::{
    Arena, Event, Happening, Machine, Measure, Nanos, Observe, ProgramId, Sample, Settings, Signal,
    Step,
};
use cosched_linux::machine::Linux;
use cosched_linux::observe::pointers::SampleClock;
use support::{alone, script};

const PROGRAM: ProgramId = ProgramId::first(0);

/// A machine on which a program computes without end, and what it is observed for.
fn computing(folder: &Path) -> (Linux, Vec<Observe>) {
    let mut machine = alone::machine(folder, alone::job(script("while :; do :; done")), None);
    let observe = |measure| Observe { program: Some(PROGRAM), measure, period: Nanos::NEVER };
    let what = [Measure::CpuTime, Measure::InstructionPointers].map(observe).to_vec();
    let steps = what.iter().map(|observe| Step::Observe(*observe));
    let start = Step::Start(PROGRAM, Settings::default());
    machine.submit(&steps.chain([start]).collect::<Vec<_>>()).unwrap();
    until(&mut machine, |happening| matches!(happening, Happening::Started(_)));
    (machine, what)
}

fn until(machine: &mut Linux, is_it: impl Fn(Happening) -> bool) {
    let mut events: Vec<Event> = Vec::new();
    while !events.drain(..).any(|event| is_it(event.what)) {
        machine.wait(Nanos::NEVER, &mut events).unwrap();
    }
}

/// Lets some time go by.
fn pass(machine: &mut Linux) {
    let until = machine.now() + Nanos::from_millis(20);
    while machine.now() < until {
        machine.wait(until, &mut Vec::new()).unwrap();
    }
}

fn read(machine: &mut Linux, what: &[Observe], arena: &mut Arena) -> Sample {
    machine.read(what, arena).unwrap();
    *arena.samples.iter().find(|sample| sample.thread.is_none()).unwrap()
}

fn end(mut machine: Linux) {
    machine.submit(&[Step::Signal(PROGRAM, Signal::Kill)]).unwrap();
    until(&mut machine, |happening| matches!(happening, Happening::Exited(..)));
    machine.close().unwrap();
}

#[test]
fn frozen_time_and_running_time_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let (mut machine, what) = computing(folder.path());
    let mut arena = Arena::default();
    pass(&mut machine);
    assert_eq!(read(&mut machine, &what, &mut arena).frozen, Nanos::ZERO);
    machine.submit(&[Step::Freeze(PROGRAM)]).unwrap();
    until(&mut machine, |happening| matches!(happening, Happening::Froze(_)));
    read(&mut machine, &what, &mut arena);
    pass(&mut machine);
    let still = read(&mut machine, &what, &mut arena);
    assert_eq!(still.frozen, still.to - still.from);
    pass(&mut machine);
    machine.submit(&[Step::Thaw(PROGRAM)]).unwrap();
    pass(&mut machine);
    let both = read(&mut machine, &what, &mut arena);
    let twenty = Nanos::from_millis(20);
    assert!(both.frozen >= twenty && both.to - both.from - both.frozen >= twenty, "{both:?}");
    end(machine);
}

#[test]
fn where_a_program_computes_is_counted_since_the_last_read() {
    if SampleClock::here().is_none() {
        eprintln!("skipped: the instruction pointer cannot be sampled here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut machine, what) = computing(folder.path());
    let mut arena = Arena::default();
    let mut seen = 0;
    while seen < 50 {
        pass(&mut machine);
        read(&mut machine, &what, &mut arena);
        assert!(arena.ips.iter().all(|bin| bin.program == PROGRAM && bin.count > 0));
        seen += arena.ips.iter().map(|bin| bin.count).sum::<u32>();
    }
    end(machine);
}
