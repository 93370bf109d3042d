//! Threads that come later: a machine gives them what their program has when it first sees them.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use cosched_core::{Arena, Class, Machine, Measure, Nanos, Observe, ProgramId, Settings, Step};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SchedPolicy, default_slice};
use cosched_linux::process::tree::Process;
use rustix::process::Signal;
use support::{alone, eventually, script};

const PROGRAM: ProgramId = ProgramId::first(0);
const SLICE: Nanos = Nanos::from_millis(20);

/// The first process keeps its slice from what it starts (`SCHED_RESET_ON_FORK`).
#[test]
fn a_newcomer_without_the_slice_gets_it_at_the_next_sample() {
    if default_slice().unwrap().is_none() {
        eprintln!("skipped: this kernel has no slices per thread (Linux 6.12 has)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let text = "trap : USR1; echo $$ > FILE; while :; do sleep 1000 & wait; done";
    let text = text.replace("FILE", file.to_str().unwrap());
    let mut machine = alone::machine(folder.path(), alone::job(script(&text)), None);
    let period = Nanos::from_millis(100);
    let observe = Observe { program: Some(PROGRAM), measure: Measure::Threads, period };
    let start = [Step::Observe(observe), Step::Start(PROGRAM, Settings::default())];
    machine.submit(&start).unwrap();
    let (mut arena, mut events) = (Arena::default(), Vec::new());
    let mut read = |machine: &mut cosched_linux::machine::Linux| {
        let soon = machine.now() + Nanos::from_millis(5);
        machine.wait(soon, &mut events).unwrap();
        machine.read(&[observe], &mut arena).unwrap();
        arena.threads.len()
    };
    eventually("two threads", || read(&mut machine) == 2);
    let pid: i32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    let main = Process::find(&Proc::default(), pid).unwrap();
    sched_attr::set(pid, &sched_attr::get(pid).unwrap().reset_on_fork()).unwrap();
    let settings =
        Settings { class: Some(Class::Batch), slice: Some(SLICE), ..Settings::default() };
    machine.submit(&[Step::Apply(PROGRAM, settings, 1)]).unwrap();
    let first = Proc::default().children(pid).unwrap();
    let newcomer = || {
        let all = Proc::default().children(pid).unwrap();
        all.into_iter().find(|child| !first.contains(child))
    };
    eventually("a newcomer", || {
        let _ = main.signal(&Proc::default(), Signal::USR1);
        newcomer().is_some()
    });
    let attr = || sched_attr::get(newcomer().unwrap()).unwrap();
    assert_ne!(attr().runtime, SLICE, "it was born without");
    eventually("its slice", || {
        read(&mut machine);
        attr().runtime == SLICE
    });
    assert_eq!(attr().policy, SchedPolicy::Batch);
    machine.submit(&[Step::Signal(PROGRAM, cosched_core::Signal::Kill)]).unwrap();
    machine.close().unwrap();
}
