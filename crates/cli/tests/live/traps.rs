//! Programs that are hard to schedule from outside: with every freezer they come to their ends, as
//! they would alone. cosched reports what it cannot do with them.

use cosched_core::Refusal;
use cosched_results::result::RunResult;

use super::support::{Backend, Place, program, skip};

/// The co-runner of each trap: it takes the CPUs often, so that the trap is frozen often.
const OTHER: &str = "i=0; while [ ! -e stop ] && [ $i -lt 400000 ]; do i=$((i+1)); done";

fn everything() -> usize {
    cosched_linux::kernel::affinity::get(0).unwrap().len()
}

/// Runs a trap in gangs with another program. It succeeds, and nothing is left of it.
fn trapped(backend: Backend, arguments: &str) -> (Place, RunResult) {
    let other = program("other", &format!("threads = {}", everything()), OTHER);
    trapped_beside(&[other], everything(), "gang", backend, arguments)
}

/// Runs the trap with so many threads, with co-runners, under a policy with its options.
fn trapped_beside(
    others: &[String],
    threads: usize,
    policy: &str,
    backend: Backend,
    arguments: &str,
) -> (Place, RunResult) {
    let place = Place::new();
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_cosched"));
    let trap = built.with_file_name("examples").join("trap");
    assert!(trap.exists(), "it is an example of this package: cargo build --examples makes it");
    let script = format!("{} {arguments} && touch stop", trap.display());
    // Whatever it holds: one of them listens.
    let keys = format!("threads = {threads}\nfreezable = true");
    let tables: Vec<String> =
        [program("trap", &keys, &script)].iter().chain(others).cloned().collect();
    let options = format!("--policy {policy} --quantum 10ms --freezer {}", backend.0);
    let ended = place.run(&tables, &options).ended();
    // Shown where the test fails.
    eprint!("{}", place.read("out/trap.stderr"));
    let ended = ended.with(0);
    let result = ended.result();
    place.nothing_is_left_of(&ended);
    (place, result)
}

/// The trap that binds itself to one of two CPUs; to the only one, where there is one.
fn pin() -> String {
    let cpus = cosched_linux::kernel::affinity::get(0).unwrap();
    let (first, last) = (cpus.iter().next().unwrap(), cpus.iter().last().unwrap());
    format!("pin {last} {first}")
}

fn turns(result: &RunResult) -> usize {
    result.programs[0].timeline.len()
}

fn refusals(result: &RunResult) -> Vec<Refusal> {
    result.deviations.iter().filter(|d| d.program.slot == 0).map(|d| d.why).collect()
}

#[test]
fn waiting_calls_continue_after_a_freeze() {
    for backend in Backend::here() {
        let (place, result) = trapped(backend, "calls");
        assert_eq!(place.read("out/trap.stdout"), ".".repeat(40), "{backend:?}");
        assert!(turns(&result) > 3, "{backend:?}");
    }
}

/// The table is in docs/safety.md.
#[test]
fn calls_that_return_early_after_a_freeze_are_documented() {
    for backend in Backend::here() {
        let (place, result) = trapped(backend, "waits");
        let wakes = backend.0 != "cgroup-v1";
        let documented = [
            ("epoll_wait", true),
            ("inotify", false),
            ("nanosleep", false),
            ("poll", false),
            ("recv", wakes),
            ("select", false),
            ("sem_timedwait", false),
            ("semtimedop", true),
            ("sigtimedwait", wakes),
            ("timerfd", false),
        ]
        .map(|(call, is_interrupted)| {
            format!("{call}: {}\n", if is_interrupted { "EINTR" } else { "goes on" })
        });
        assert_eq!(place.read("out/trap.stdout"), documented.concat(), "{backend:?}");
        assert!(turns(&result) > 3, "{backend:?}");
    }
}

#[test]
fn a_program_in_uninterruptible_sleep_still_takes_turns() {
    for backend in Backend::here() {
        let (_, result) = trapped(backend, "vfork");
        // A thread in uninterruptible sleep does not run: it may count as frozen, or its freeze may
        // come late.
        assert!(refusals(&result).iter().all(|why| late(*why)), "{backend:?} {result:?}");
        assert!(turns(&result) > 1, "{backend:?}");
    }
}

fn late(why: Refusal) -> bool {
    matches!(why, Refusal::TimedOut | Refusal::FrozenTooLong)
}

#[test]
fn a_program_that_binds_itself_keeps_its_mask() {
    let pin = pin();
    for backend in Backend::here() {
        let (place, result) = trapped(backend, &pin);
        assert_eq!(place.read("out/trap.stdout"), "stayed\n", "{backend:?}");
        assert!(turns(&result) > 1, "{backend:?}");
    }
}

/// One thread each, one program more than CPUs: the program that waited longest chooses first, so
/// CPUs change hands.
#[test]
fn a_program_that_binds_itself_is_not_moved_for_its_turn() {
    let cpus = everything();
    if cpus < 2 {
        return skip("with one CPU there is nowhere else");
    }
    let pin = pin();
    let others: Vec<String> =
        (0..cpus).map(|n| program(&format!("other{n}"), "threads = 1", OTHER)).collect();
    let policy = "minwait --pinning affinity";
    for backend in Backend::here() {
        // The waiting times decide which program gets which CPUs: in up to 8 of 10 runs, they are
        // those that the program has already.
        let was_to_be_elsewhere = || {
            let (place, result) = trapped_beside(&others, 1, policy, backend, &pin);
            assert_eq!(place.read("out/trap.stdout"), "stayed\n", "{backend:?}");
            refusals(&result).contains(&Refusal::NoCpuLeft)
        };
        assert!((0..60).any(|_| was_to_be_elsewhere()), "{backend:?}");
    }
}

#[test]
fn a_program_with_thousands_of_threads_takes_turns() {
    for backend in Backend::here() {
        let (place, result) = trapped(backend, "threads 2000");
        assert_eq!(place.read("out/trap.stdout"), "2000\n", "{backend:?}");
        assert!(turns(&result) > 1, "{backend:?}");
    }
}

#[test]
fn threads_that_are_born_during_a_freeze_are_frozen_too() {
    for backend in Backend::here() {
        let (place, result) = trapped(backend, "births 4000");
        assert_eq!(place.read("out/trap.stdout"), "4\n", "{backend:?}");
        assert!(turns(&result) > 3, "{backend:?}");
        // A freeze that misses a thread is never confirmed.
        assert!(refusals(&result).iter().all(|why| late(*why)), "{backend:?} {result:?}");
    }
}

#[test]
fn a_traced_program_ends_and_its_tracer_sees_how() {
    for backend in Backend::here() {
        let (place, result) = trapped(backend, "trace");
        assert_eq!(place.read("out/trap.stdout"), "traced 7\n", "{backend:?}");
        let refusals = refusals(&result);
        assert!(refusals.iter().all(|why| late(*why) || *why == Refusal::Traced), "{refusals:?}");
        // It is not frozen once its tracing is seen.
        assert!(refusals.contains(&Refusal::Traced), "{backend:?} {refusals:?}");
    }
}
