//! Programs with replaced barriers check themselves: POSIX' and OpenMP's, under every wait mode.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cosched_page::BarrierCounts;
use support::{Host, Workshop, command, eventually, good, library};

/// Every wait mode, and how many threads still finish in time with spinning on two CPUs.
const WAIT_MODES: [(&str, &str); 6] = [
    ("donate", "4"),
    ("block", "4"),
    ("spin-then-block", "4"),
    ("yield", "4"),
    ("spin", "2"),
    ("load-control", "4"),
];

/// A library that counts the barriers of the runtimes.
fn counter(workshop: &Workshop) -> PathBuf {
    workshop.compile("gcc", "passes.c", "passes.so", &["-shared", "-fPIC"]).unwrap()
}

/// Runs a program that must not take minutes, with these libraries before its own.
fn ended(program: &Path, arguments: &[&str], preload: &[&Path], wait_mode: Option<&str>) -> Output {
    let preload: Vec<_> = preload.iter().map(|library| library.to_str().unwrap()).collect();
    let mut command = command(Path::new("timeout"), &["300", "env"], None);
    command.env_remove("COSCHED_HOOK").env_remove("COSCHED_BARRIER_MODE");
    command.env("OMP_CANCELLATION", "true").arg(format!("LD_PRELOAD={}", preload.join(":")));
    if let Some(wait_mode) = wait_mode {
        command.arg(format!("COSCHED_BARRIER_MODE={wait_mode}"));
    }
    command.arg(program).args(arguments).output().unwrap()
}

#[track_caller]
fn run(program: &Path, arguments: &[&str], between: &Path, wait_mode: Option<&str>) {
    good(ended(program, arguments, &[&library(), between], wait_mode));
}

fn waits(workshop: &Workshop) -> PathBuf {
    workshop.compile("gcc", "waits.c", "waits", &["-pthread", "-Wall", "-Werror"]).unwrap()
}

#[test]
fn no_thread_passes_a_posix_barrier_before_all_have_arrived() {
    let workshop = Workshop::new();
    let (program, counter) = (waits(&workshop), counter(&workshop));
    for (wait_mode, threads) in WAIT_MODES {
        for (kind, rounds) in
            [("plain", "300"), ("signals", "300"), ("exits", "3"), ("twos", "50"), ("forks", "50")]
        {
            eprintln!("{wait_mode} {kind}");
            run(&program, &[kind, threads, rounds, "0"], &counter, Some(wait_mode));
        }
    }
}

#[test]
fn a_barrier_may_be_freed_once_a_thread_has_passed() {
    let workshop = Workshop::new();
    let (program, counter) = (waits(&workshop), counter(&workshop));
    for (wait_mode, threads) in WAIT_MODES {
        run(&program, &["destroyed", threads, "300", "0"], &counter, Some(wait_mode));
    }
}

#[test]
fn unknown_barriers_stay_the_c_librarys() {
    let workshop = Workshop::new();
    let (program, counter) = (waits(&workshop), counter(&workshop));
    run(&program, &["others", "3", "20"], &counter, Some("donate"));
}

#[test]
fn without_cosched_barriers_are_the_c_librarys() {
    let workshop = Workshop::new();
    let (program, counter) = (waits(&workshop), counter(&workshop));
    run(&program, &["plain", "3", "20", "120"], &counter, None);
}

/// With a hook server but without a table: nothing is known of any thread.
#[test]
fn barriers_are_replaced_only_where_cosched_says_so() {
    let workshop = Workshop::new();
    let (program, counter) = (waits(&workshop), counter(&workshop));
    let preload = format!("{}:{}", library().display(), counter.display());
    let hosts = [(Host::donating(), "0"), (Host::with_limit(2), "120")];
    for (host, passed) in hosts {
        let mut command = command(&program, &["plain", "3", "20", passed], Some(&host));
        good(command.env("LD_PRELOAD", &preload).output().unwrap());
    }
}

/// 100 threads: some share a cache line, and some have no slot.
#[test]
fn cosched_gets_barrier_statistics_with_every_wait_mode() {
    let workshop = Workshop::new();
    let program = waits(&workshop);
    for (threads, wait_mode) in
        [("3", None), ("100", None), ("3", Some("block")), ("3", Some("yield"))]
    {
        let host = Host::donating();
        let mut command = command(&program, &["plain", threads, "20"], Some(&host));
        command.env_remove("COSCHED_BARRIER_MODE");
        if let Some(wait_mode) = wait_mode {
            command.env("COSCHED_BARRIER_MODE", wait_mode);
        }
        good(command.output().unwrap());
        let waits = 40 * (threads.parse::<u64>().unwrap() - 1);
        let counts = |stats: BarrierCounts| {
            (stats.barriers, stats.spun_briefly + stats.spun + stats.yielded + stats.slept)
        };
        eventually("all is told", || counts(host.stats()) == (40, waits));
        let stats = host.stats();
        assert_eq!(stats.knew, 0, "there is no table");
        if wait_mode == Some("block") {
            assert_eq!((stats.spun, stats.yielded), (0, 0), "{stats:?}");
            assert!(stats.slept > 0, "{stats:?}");
            assert!(0 < stats.longest && stats.longest <= stats.latency, "{stats:?}");
        }
        if wait_mode == Some("yield") {
            assert_eq!((stats.spun, stats.slept), (0, 0), "{stats:?}");
            assert!(stats.nanoseconds > 0, "{stats:?}");
        }
    }
}

/// Section VI of the paper on faithful scheduling, on its rival: blocking controls the number of
/// runnable threads, and all others spin.
#[test]
fn under_load_control_waiters_sleep_only_in_slots() {
    let workshop = Workshop::new();
    let program = waits(&workshop);
    for slots in [0, 1, 100] {
        let host = Host::with_slots(slots);
        let mut command = command(&program, &["plain", "2", "20"], Some(&host));
        command.env("COSCHED_BARRIER_MODE", "load-control");
        good(command.output().unwrap());
        eventually("all is told", || host.stats().barriers == 40);
        let stats = host.stats();
        assert_eq!(stats.slept > 0, slots > 0, "{slots}: {stats:?}");
    }
}

#[test]
fn barriers_go_on_when_cosched_is_gone() {
    let workshop = Workshop::new();
    let program = waits(&workshop);
    let host = Host::donating();
    let mut command = command(&program, &["tells", "4", "5000"], Some(&host));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "made\n");
    drop(host);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ten_thousand_rounds_with_random_delays_lose_no_wake_up() {
    let workshop = Workshop::new();
    let (program, counter) = (waits(&workshop), counter(&workshop));
    for (wait_mode, threads) in WAIT_MODES {
        // A thread that spins while another is stopped keeps the other one's CPU.
        let rounds = if wait_mode == "spin" { "500" } else { "10000" };
        eprintln!("{wait_mode}");
        run(&program, &["stress", threads, rounds, "0"], &counter, Some(wait_mode));
    }
}

/// The runtime of gcc's thread sanitizer; `None`, with a message: it does not work here.
fn sanitizer(program: &Path) -> Option<PathBuf> {
    let found = Command::new("gcc").arg("-print-file-name=libtsan.so").output().ok()?;
    let found = PathBuf::from(String::from_utf8(found.stdout).ok()?.trim());
    let output = ended(program, &["plain", "2", "2"], &[], None);
    if found.is_absolute() && output.status.success() {
        return Some(found);
    }
    eprintln!(
        "skipped: ThreadSanitizer does not work here: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    None
}

/// The sanitizer has its own `pthread_barrier_wait`. It notes which threads come and go, and calls
/// the next one: ours, if the sanitizer comes first. If ours let a thread pass too early, that
/// thread would read what, as far as the sanitizer knows, no thread has written yet.
#[test]
fn the_thread_sanitizer_finds_no_race_at_our_barrier() {
    let workshop = Workshop::new();
    let with = ["-pthread", "-fsanitize=thread"];
    let program = workshop.compile("gcc", "waits.c", "sanitized", &with).unwrap();
    let Some(sanitizer) = sanitizer(&program) else { return };
    let counter = counter(&workshop);
    let preload = [&*sanitizer, &library(), &counter];
    for kind in ["plain", "exits", "signals"] {
        good(ended(&program, &[kind, "3", "20", "0"], &preload, Some("donate")));
    }
    let output = ended(&program, &["race", "2", "1"], &preload, Some("donate"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("data race"), "{said}");
}

/// Runs the program with every kind of barrier, and checks whether barriers are replaced to its
/// end.
fn openmp(program: &Path, counter: &Path) {
    for (wait_mode, threads) in WAIT_MODES {
        for (kind, rounds, ours) in [
            ("barriers", "200", Some("1")),
            ("loops", "30", Some("1")),
            ("shares", "50", Some("1")),
            ("regions", "50", None),
            ("nested", "10", None),
            ("tasks", "20", Some("0")),
            ("cancels", "20", Some("0")),
            ("forks", "50", Some("1")),
        ] {
            eprintln!("{wait_mode} {kind}");
            let arguments: Vec<&str> = [kind, threads, rounds].into_iter().chain(ours).collect();
            run(program, &arguments, counter, Some(wait_mode));
        }
    }
}

#[test]
fn every_kind_of_barrier_of_gccs_openmp_keeps_its_meaning() {
    let workshop = Workshop::new();
    let Some(program) = workshop.openmp("barriers.c", &[]) else { return };
    openmp(&program, &counter(&workshop));
}

#[test]
fn barriers_of_openmp_in_fortran_keep_their_meaning() {
    let workshop = Workshop::new();
    let Some(program) = workshop.compile("gfortran", "barriers.f90", "program", &["-fopenmp"])
    else {
        return;
    };
    run(&program, &[], &counter(&workshop), Some("donate"));
}

#[test]
fn every_kind_of_barrier_of_llvms_openmp_keeps_its_meaning() {
    let workshop = Workshop::new();
    let Some(program) = workshop.llvm("barriers.c") else { return };
    openmp(&program, &counter(&workshop));
}
