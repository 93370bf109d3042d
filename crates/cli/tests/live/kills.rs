//! Violence: `cosched` and its helpers are killed or stopped, at any moment, and no program suffers
//! from it.
//!
//! `COSCHED_KILLS` says how often cosched is killed with each backend of freezing.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use rustix::process::Signal;
use serde_json::Value;

use super::support::{Backend, Cosched, Locker, Place, User, cgroups_named, eventually, program};

const SPIN: &str = "while :; do :; done";
/// The latest moment at which cosched is killed, where it starts fast.
const LATEST: Duration = Duration::from_millis(300);
/// How long it may take until everything is restored: a bound for a machine that is busy with other
/// things.
const BOUND: Duration = Duration::from_secs(10);

pub(super) fn kills() -> u64 {
    std::env::var("COSCHED_KILLS").map_or(12, |text| text.parse().unwrap())
}

/// Programs that are frozen, bound and thawed all the time.
fn busy() -> [String; 3] {
    [
        program("a", "threads = 1", &format!("sleep 1000 & echo $$ > a; {SPIN}")),
        program("b", "threads = 1", "echo $$ > b; while :; do (:); done"),
        program("c", "threads = 2", &format!("echo $$ > c; {SPIN}")),
    ]
}

pub(super) fn start(place: &Place, backend: Backend) -> Cosched {
    start_with(place, backend, "")
}

pub(super) fn start_with(place: &Place, backend: Backend, options: &str) -> Cosched {
    // With one CPU, there is no third program.
    let cpus = affinity::get(0).unwrap().len();
    let programs = &busy()[..if cpus < 2 { 2 } else { 3 }];
    let freezer = backend.0;
    place.run(programs, &format!("--policy greedy --quantum 5ms --freezer {freezer} {options}"))
}

/// The latest moment on this machine: by then all programs have started, also where it is emulated.
fn latest() -> Duration {
    static LATEST_HERE: OnceLock<Duration> = OnceLock::new();
    *LATEST_HERE.get_or_init(|| {
        let place = Place::new();
        let began = Instant::now();
        let cosched = start(&place, Backend("signals"));
        all_started(&place);
        let started = began.elapsed();
        let pid = cosched.pid();
        cosched.kill();
        restored(&place, pid);
        place.marked().end();
        LATEST.max(2 * started)
    })
}

/// Moments spread over the time in which cosched prepares, starts programs and switches between
/// them.
pub(super) fn moment(kill: u64) -> Duration {
    // Multiples of the golden ratio spread any number of moments evenly, in an order without
    // pattern.
    latest().mul_f64((kill as f64 * 0.618_033_988_749).fract())
}

/// What is not as it was before cosched came; nothing if all is well.
pub(super) fn wrongs(place: &Place, cosched: i32) -> Vec<String> {
    let (marked, found) = (place.marked(), affinity::get(0).unwrap());
    let mut wrongs = Vec::new();
    for process in marked.programs() {
        if marked.is_held(process) {
            wrongs.push(format!("{process} is frozen"));
        }
        if marked.cpus(process).is_some_and(|cpus| cpus != found) {
            wrongs.push(format!("{process} is pinned"));
        }
    }
    for name in [format!("cosched-{cosched}"), format!("cosched-probe-{cosched}")] {
        wrongs.extend(cgroups_named(&name).iter().map(|dir| format!("{} is left", dir.display())));
    }
    // One that has just been forked may become a sentinel.
    for name in ["csentinel", "exe", "cosched"] {
        wrongs.extend(marked.named(name).iter().map(|process| format!("{process} is left")));
    }
    wrongs
}

/// Waits until all is well, and says how long that took.
pub(super) fn restored(place: &Place, cosched: i32) -> Duration {
    let since = Instant::now();
    loop {
        let wrongs = wrongs(place, cosched);
        if wrongs.is_empty() {
            return since.elapsed();
        }
        assert!(since.elapsed() < BOUND, "not restored: {wrongs:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The programs' first processes, as they have written them down.
pub(super) fn firsts(place: &Place) -> Vec<Process> {
    let pids = ["a", "b", "c"].map(|name| place.read(name).trim().parse::<i32>().ok());
    let programs = place.marked().programs();
    let lives = |pid: i32| programs.iter().copied().find(|process| process.pid == pid);
    pids.into_iter()
        .flatten()
        .map(|pid| lives(pid).expect("the program has not survived"))
        .collect()
}

/// A log that is left, because no process was on guard yet, owes nothing.
pub(super) fn recovers_nothing(place: &Place) {
    let ended = place.cosched(&["recover", "--json"]).ended().with(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    for undone in report["undone"].as_array().unwrap() {
        for (what, count) in undone.as_object().unwrap().iter().filter(|(_, v)| v.is_number()) {
            assert_eq!(count, 0, "{what}");
        }
    }
}

#[test]
fn the_sentinel_needs_no_file() {
    for backend in Backend::here() {
        for removed in ["its log", "the folder"] {
            let place = Place::new();
            let cosched = start(&place, backend);
            let pid = cosched.pid();
            let held = |place: &Place| {
                let marked = place.marked();
                firsts(place).into_iter().any(|process| marked.is_held(process))
            };
            eventually("a frozen program", || held(&place));
            match removed {
                "its log" => place.undo_logs().iter().for_each(|log| fs::remove_file(log).unwrap()),
                _ => fs::remove_dir_all(place.path("run")).unwrap(),
            }
            eventually("a frozen program", || held(&place));
            cosched.kill();
            restored(&place, pid);
            place.marked().end();
        }
    }
}

fn killed_at_random_moments(backend: Backend) {
    if !backend.is_here() {
        return;
    }
    let (mut times, mut started) = (Vec::new(), 0);
    for kill in 0..kills() {
        let place = Place::new();
        let cosched = start(&place, backend);
        let pid = cosched.pid();
        std::thread::sleep(moment(kill));
        cosched.kill();
        times.push(restored(&place, pid));
        let survivors = firsts(&place);
        let marked = place.marked();
        let before: Vec<u64> = survivors.iter().map(|process| marked.ticks(*process)).collect();
        for (process, before) in survivors.iter().zip(before) {
            eventually("a program's going on", || marked.ticks(*process) > before);
        }
        started += survivors.len();
        recovers_nothing(&place);
        place.no_trace_is_left_of(pid);
    }
    times.sort_unstable();
    let (half, worst) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!(
        "{}: {} kills, {started} programs alive, restored after {half:?} (p50), {worst:?} (max)",
        backend.0,
        times.len()
    );
    assert!(started > 0, "no program was ever started");
}

#[test]
fn killed_cosched_leaves_v2_cgroups_restored() {
    killed_at_random_moments(Backend("cgroup-v2"));
}

#[test]
fn killed_cosched_leaves_v1_cgroups_restored() {
    killed_at_random_moments(Backend("cgroup-v1"));
}

#[test]
fn killed_cosched_leaves_no_program_stopped_by_signals() {
    killed_at_random_moments(Backend("signals"));
}

/// No program is frozen under these policies, so cosched has stopped none.
#[test]
fn a_program_stopped_by_others_stays_so_after_a_kill() {
    for policy in ["linux", "turns"] {
        let place = Place::new();
        if policy == "turns" && !super::turns::caller_has_groups() {
            continue;
        }
        let cosched = place.run(&busy()[..2], &format!("--policy {policy}"));
        eventually("the programs", || firsts(&place).len() == 2);
        let (marked, stopped) = (place.marked(), firsts(&place)[0]);
        marked.signal(stopped, Signal::STOP);
        eventually("its stop", || marked.is_stopped(stopped));
        cosched.kill();
        eventually("the sentinel's end", || marked.named("csentinel").is_empty());
        assert!(marked.is_stopped(stopped), "{policy}: it was continued");
        recovers_nothing(&place);
        assert!(marked.is_stopped(stopped), "{policy}: `recover` has continued it");
        marked.end();
    }
}

/// How a program comes to be scheduled by a cosched that is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Subcommand {
    Run,
    Exec,
    Attach,
}

impl Subcommand {
    fn start(self, place: &Place) -> (Cosched, Option<Locker>) {
        let (found, trap) =
            ((self == Subcommand::Attach).then(|| Locker::start(place)), place.trap());
        let pid = found.as_ref().map_or(String::new(), |locker| locker.process.pid.to_string());
        let command = match self {
            Subcommand::Run => "run",
            Subcommand::Exec => "exec",
            Subcommand::Attach => "attach",
        };
        let mut arguments =
            vec![command, "--interval", "10ms", "--no-guard", "--actuators", "batch-slice"];
        if self == Subcommand::Run {
            arguments.extend(["--policy", "faithful"]);
        }
        match self {
            Subcommand::Attach => arguments.push(&pid),
            _ => {
                arguments.extend(["--", trap.to_str().unwrap()]);
                arguments.extend(Locker::ARGUMENTS);
            }
        }
        (place.cosched(&arguments), found)
    }
}

/// Threads have a slice and a class from us, are always being born, and get back what was found:
/// from the sentinel, or where that is killed with cosched, from `recover`.
fn scheduling_is_put_back(subcommand: Subcommand, user: &User) {
    if !Locker::can_be_changed() {
        return;
    }
    let (mut times, mut changed) = (Vec::new(), 0);
    for kill in 0..kills() {
        let place = Place::of(user.clone());
        let (cosched, found) = subcommand.start(&place);
        let pid = cosched.pid();
        // Every other one dies while it prepares, the rest when it has changed the program.
        let locker = if kill % 2 == 0 {
            std::thread::sleep(moment(kill));
            found
        } else {
            let locker = found.unwrap_or_else(|| Locker::in_place(&place));
            eventually("a slice", || locker.is_changed());
            changed += 1;
            std::thread::sleep(moment(kill) / 10);
            Some(locker)
        };
        let with_its_sentinel = kill % 3 == 2;
        let marked = place.marked();
        let sentinels = if with_its_sentinel { marked.named("csentinel") } else { Vec::new() };
        cosched.kill();
        for sentinel in sentinels {
            let _ = sentinel.signal(&Proc::default(), Signal::KILL);
        }
        if with_its_sentinel {
            place.cosched(&["recover"]).ended().with(0);
        }
        let since = Instant::now();
        let started = !place.marked().named("trap").is_empty();
        let locker = locker.or_else(|| started.then(|| Locker::in_place(&place)));
        if let Some(locker) = locker {
            while !locker.has_original_settings() {
                assert!(since.elapsed() < BOUND, "not put back: {:?}", locker.attrs());
                std::thread::sleep(Duration::from_millis(1));
            }
            times.push(since.elapsed());
            locker.goes_on(&place);
            let status = locker.stop(&place);
            assert!(subcommand != Subcommand::Attach || status == Some(7), "{status:?}");
        }
        // A shim may have started it since.
        assert!(place.marked().end());
        recovers_nothing(&place);
        place.no_trace_is_left_of(pid);
    }
    times.sort_unstable();
    assert!(changed > 0 || kills() < 2, "no program was ever changed");
    let (half, worst) = (times.get(times.len() / 2), times.last());
    eprintln!(
        "{subcommand:?}: {} kills, {changed} after a change, put back after {half:?} (p50), \
         {worst:?} (max)",
        kills()
    );
}

#[test]
fn killed_run_leaves_classes_and_slices_restored() {
    scheduling_is_put_back(Subcommand::Run, &User::Caller);
}

#[test]
fn killed_exec_leaves_the_program_restored() {
    scheduling_is_put_back(Subcommand::Exec, &User::Caller);
}

#[test]
fn killed_attach_leaves_programs_restored() {
    scheduling_is_put_back(Subcommand::Attach, &User::Caller);
}

#[test]
fn killed_attach_of_an_ordinary_user_restores_programs() {
    scheduling_is_put_back(Subcommand::Attach, &User::ordinary());
}

/// Waits until all three programs have started.
pub(super) fn all_started(place: &Place) {
    let expected = if affinity::get(0).unwrap().len() < 2 { 2 } else { 3 };
    eventually("the programs", || {
        ["a", "b", "c"].iter().filter(|name| !place.read(name).is_empty()).count() == expected
    });
}

/// The next sentinel is on guard.
#[test]
fn killed_and_stopped_sentinels_are_replaced() {
    let signals = [Signal::KILL, Signal::STOP];
    for (backend, signal) in
        Backend::here().into_iter().flat_map(|backend| signals.map(|it| (backend, it)))
    {
        let place = Place::new();
        let cosched = start(&place, backend);
        all_started(&place);
        let marked = place.marked();
        let [first] = marked.named("csentinel")[..] else { panic!("{:?}", marked.all()) };
        marked.signal(first, signal);
        eventually(
            "another sentinel",
            || matches!(marked.named("csentinel")[..], [second] if second != first),
        );
        let pid = cosched.pid();
        cosched.kill();
        restored(&place, pid);
        firsts(&place);
        // Also where cosched was killed before the next one was on guard.
        assert_eq!(place.sockets(), Vec::<PathBuf>::new());
        place.no_trace_is_left_of(pid);
    }
}

#[test]
fn ctrl_z_does_not_stop_cosched() {
    let place = Place::new();
    let cosched =
        place.run(&[program("a", "", "while [ ! -e go ]; do sleep 0.01; done")], "--policy gang");
    eventually("the program", || !place.marked().programs().is_empty());
    cosched.signal(Signal::TSTP);
    place.write("go", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}
