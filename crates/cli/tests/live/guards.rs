//! Sentinels that fail, and others that cannot be started in their place. The run goes on, no
//! program is frozen for long, and a sentinel is on guard again as soon as that is possible.

use std::path::Path;
use std::time::{Duration, Instant};

use cosched_core::Refusal;
use cosched_linux::kernel::procfs::{Proc, ProcState, Stat};
use rustix::process::{Pid, Signal, kill_process};

use super::support::{Backend, Cosched, Ended, Ice, Place, User, eventually, program};

/// Longer than a sentinel may be missing while programs are frozen.
const A_WHILE: Duration = Duration::from_secs(3);
/// Longer than it takes until a sentinel that does not begin, and cannot be killed, is given up.
const UNTIL_GIVEN_UP: Duration = Duration::from_secs(6);

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

/// Runs with every freezer. Sends a signal to each sentinel, and for a while to each that is
/// started in its place, at once. Returns how the runs end.
fn with_sentinels_hit(signal: Signal) -> Vec<(Backend, Place, Ended)> {
    let places: Vec<_> = Backend::here().into_iter().map(|one| (one, Place::new())).collect();
    let runs: Vec<_> = places.iter().map(|(backend, place)| in_turns(place, *backend)).collect();
    let shims = places.iter().flat_map(|(_, place)| place.marked().named("shim"));
    let (mut known, began): (Vec<i32>, _) = (shims.map(|shim| shim.pid).collect(), Instant::now());
    while began.elapsed() < A_WHILE {
        let mut fresh: Vec<i32> = runs.iter().flat_map(children).collect();
        fresh.retain(|child| !known.contains(child));
        for child in fresh {
            known.push(child);
            let _ = kill_process(Pid::from_raw(child).unwrap(), signal);
        }
    }
    let ended = |((backend, place), cosched)| {
        let ended = goes_on(&place, cosched);
        (backend, place, ended)
    };
    places.into_iter().zip(runs).map(ended).collect()
}

/// Kills the sentinel, and does something to the one that is started in its place, at once. Returns
/// that one.
fn catch_next(place: &Place, cosched: &Cosched, then: impl Fn(Pid)) -> i32 {
    let marked = place.marked();
    let known = children(cosched);
    marked.named("csentinel").iter().for_each(|sentinel| marked.signal(*sentinel, Signal::KILL));
    let began = Instant::now();
    let fresh = loop {
        assert!(began.elapsed() < Duration::from_secs(60), "no other sentinel is started");
        if let Some(fresh) = children(cosched).into_iter().find(|child| !known.contains(child)) {
            break fresh;
        }
    };
    then(Pid::from_raw(fresh).unwrap());
    fresh
}

fn stop(process: Pid) {
    // It may have been quick.
    let _ = kill_process(process, Signal::STOP);
}

/// The run goes on to its end, and no program was frozen for long.
fn goes_on(place: &Place, cosched: Cosched) -> Ended {
    let marked = place.marked();
    eventually("a sentinel on guard", || {
        let guards = marked.named("csentinel");
        guards.iter().any(|guard| !marked.is_stopped(*guard))
    });
    // Those that were hit are replaced, and reaped. One that was stopped before it executed
    // anything waits until it is continued.
    let proc = Proc::default();
    let is_well = |pid: &i32| {
        let Ok(stat) = proc.stat(*pid) else { return true };
        if stat.state == ProcState::Stopped {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::CONT);
        }
        !stat.state.has_ended() && stat.state != ProcState::Stopped
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
    for (backend, place, ended) in with_sentinels_hit(Signal::STOP) {
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

/// A test that fails leaves no process behind.
#[test]
fn a_sentinel_that_a_test_has_stopped_does_not_outlive_it() {
    let place = Place::new();
    let cosched = in_turns(&place, Backend("signals"));
    let marked = place.marked();
    for sentinel in marked.named("csentinel") {
        marked.signal(sentinel, Signal::STOP);
        eventually("its stop", || marked.is_stopped(sentinel));
    }
    drop((cosched, place));
    assert_eq!(marked.all(), []);
}

#[test]
fn killed_sentinels_end_no_run() {
    for (_, place, ended) in with_sentinels_hit(Signal::KILL) {
        place.nothing_is_left_of(&ended);
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

#[test]
fn a_sentinel_that_is_stopped_while_it_starts_does_not_stay() {
    for backend in Backend::here() {
        let place = Place::new();
        let cosched = in_turns(&place, backend);
        catch_next(&place, &cosched, stop);
        place.write("go", "");
        place.nothing_is_left_of(&cosched.ended().with(0));
    }
}

#[test]
fn a_sentinel_that_was_stopped_while_it_started_is_continued() {
    for _ in 0..4 {
        let place = Place::new();
        let cosched = in_turns(&place, Backend("signals"));
        let fresh = catch_next(&place, &cosched, stop);
        let pid = cosched.pid();
        cosched.kill();
        // The signal takes effect only when the process gets a CPU.
        let is_stopped = |stat: Stat| stat.state == ProcState::Stopped;
        eventually("its stop", || Proc::default().stat(fresh).is_ok_and(is_stopped));
        let said = place.cosched(&["recover"]).ended().with(0).stdout;
        assert!(said.contains("A stopped sentinel continued"), "{said}");
        place.write("go", "");
        eventually("the end of every process", || place.marked().all().is_empty());
        place.no_trace_is_left_of(pid);
    }
}

/// It is a child of cosched that does not end, as an orphan of the killed shim would be.
#[test]
fn a_frozen_starting_sentinel_is_not_taken_for_a_program() {
    let Some(ice) = Ice::of(Backend("cgroup-v1")) else { return };
    let place = Place::new();
    let cosched = in_turns(&place, Backend("signals"));
    let shim = place.marked().named("shim")[0];
    place.marked().signal(shim, Signal::KILL);
    eventually("a word on it", || place.read("cosched.stderr").contains("takes its place"));
    catch_next(&place, &cosched, |fresh| {
        let line = format!("/proc/{}/cmdline", fresh.as_raw_nonzero());
        let is_executed = |line: Vec<u8>| line.ends_with(b"__sentinel\0");
        // It works soon afterwards.
        assert!((0..1_000_000).any(|_| std::fs::read(&line).is_ok_and(is_executed)));
        ice.freeze(fresh.as_raw_nonzero().get());
    });
    std::thread::sleep(UNTIL_GIVEN_UP);
    assert!(!place.has_noted("orphan"), "{:?}", place.undo_logs());
    drop(ice);
    place.nothing_is_left_of(&goes_on(&place, cosched));
}

#[test]
fn a_stopped_sentinel_is_replaced_while_no_program_runs() {
    let place = Place::new();
    let later = program("later", "threads = 1\nstart = \"1h\"", "echo done");
    let cosched = place.run(&[later], "--policy linux");
    let marked = place.marked();
    eventually("the sentinel", || marked.named("csentinel").len() == 1);
    let first = marked.named("csentinel")[0];
    marked.signal(first, Signal::STOP);
    eventually(
        "another sentinel",
        || matches!(marked.named("csentinel")[..], [other] if other != first),
    );
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended());
}
