//! Sentinels that fail, and others that cannot be started in their place. The run goes on, no
//! program is frozen for long, and a sentinel is on guard again as soon as that is possible.

use std::path::Path;
use std::time::{Duration, Instant};

use cosched_core::Refusal;
use cosched_linux::kernel::procfs::{Proc, State};
use rustix::process::{Pid, Signal, kill_process};

use super::support::{Backend, Cosched, Ended, Place, User, eventually, program};

/// Longer than a sentinel may be missing while programs are frozen.
const A_WHILE: Duration = Duration::from_secs(3);

/// Two programs that take turns until there is a file `go`.
fn in_turns(place: &Place, backend: Backend) -> Cosched {
    let work = "while [ ! -e go ]; do sleep 0.01; done";
    let tables =
        ["a", "b"].map(|name| program(name, "threads = 1", &format!("echo > {name}; {work}")));
    let options = format!("--policy gang --quantum 20ms --max-frozen 30s --freezer {}", backend.0);
    let cosched = place.run(&tables, &options);
    eventually("the programs", || ["a", "b"].iter().all(|name| !place.read(name).is_empty()));
    cosched
}

fn children(cosched: &Cosched) -> Vec<i32> {
    Proc::default().children(cosched.pid()).unwrap_or_default()
}

fn name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Sends a signal to the sentinel, and for a while to each that is started in its place, at once.
fn hit_sentinels(place: &Place, cosched: &Cosched, signal: Signal) {
    let shims: Vec<i32> = place.marked().named("shim").iter().map(|shim| shim.pid).collect();
    let (mut known, began) = (shims, Instant::now());
    while began.elapsed() < A_WHILE {
        let mut fresh = children(cosched);
        fresh.retain(|child| !known.contains(child));
        for child in fresh {
            known.push(child);
            let _ = kill_process(Pid::from_raw(child).unwrap(), signal);
        }
    }
}

/// The run goes on to its end, and no program was frozen for long.
fn goes_on(place: &Place, cosched: Cosched) -> Ended {
    let marked = place.marked();
    eventually("a sentinel on guard", || {
        let guards = marked.named("csentinel");
        guards.iter().any(|guard| !marked.is_stopped(*guard))
    });
    // Those that were hit are replaced, and reaped. One that was stopped before it was a sentinel
    // cannot be told from a program's process, and waits until it is continued.
    let proc = Proc::default();
    let is_well = |pid: &i32| {
        let Ok(stat) = proc.stat(*pid) else { return true };
        if stat.state == State::Stopped && name(*pid) != "csentinel" {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::CONT);
        }
        !stat.state.has_ended() && stat.state != State::Stopped
    };
    eventually("the end of the others", || children(&cosched).iter().all(is_well));
    place.write("go", "");
    let ended = cosched.ended().with(0);
    for program in ended.result().programs {
        assert!(program.longest_frozen_seconds < 2.0, "{}", program.longest_frozen_seconds);
    }
    ended
}

#[test]
fn stopped_sentinels_hold_up_no_run() {
    for backend in Backend::here() {
        let place = Place::new();
        let cosched = in_turns(&place, backend);
        hit_sentinels(&place, &cosched, Signal::STOP);
        let ended = goes_on(&place, cosched);
        let unguarded = |why| why == Refusal::Unguarded;
        assert!(ended.result().deviations.iter().any(|one| unguarded(one.why)), "{backend:?}");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_sentinel_that_is_stopped_at_the_end_does_not_stay() {
    for backend in Backend::here() {
        let place = Place::new();
        let cosched = in_turns(&place, backend);
        for sentinel in place.marked().named("csentinel") {
            place.marked().signal(sentinel, Signal::STOP);
        }
        place.write("go", "");
        place.nothing_is_left_of(&cosched.ended().with(0));
    }
}

#[test]
fn killed_sentinels_end_no_run() {
    for backend in Backend::here() {
        let place = Place::new();
        let cosched = in_turns(&place, backend);
        hit_sentinels(&place, &cosched, Signal::KILL);
        place.nothing_is_left_of(&goes_on(&place, cosched));
    }
}

#[test]
fn a_run_goes_on_where_no_sentinel_can_be_started() {
    let place = Place::of(User::ordinary());
    let cosched = in_turns(&place, Backend("signals"));
    let limit = |processes: &str| {
        let pid = cosched.pid().to_string();
        let set = format!("--nproc={processes}:");
        let mut set_limit = place.user.command(Path::new("/usr/bin/prlimit"));
        let done = set_limit.args(["--pid", &pid, &set]).status().unwrap();
        assert!(done.success());
    };
    limit("1");
    for sentinel in place.marked().named("csentinel") {
        place.marked().signal(sentinel, Signal::KILL);
    }
    eventually("a word on it", || {
        place.read("cosched.stderr").contains("another sentinel could not be started")
    });
    limit("1000");
    eventually("a word on the next one", || {
        place.read("cosched.stderr").contains("another sentinel is on guard")
    });
    place.nothing_is_left_of(&goes_on(&place, cosched));
}
