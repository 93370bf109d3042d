//! The counters' code with the kernel's software events, which every machine has.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use super::*;

/// CPU time, ns.
const TASK_CLOCK: CounterEvent = CounterEvent { kind: 1, config: 1 };
/// Pages that a thread touched for the first time.
const PAGE_FAULTS: CounterEvent = CounterEvent { kind: 1, config: 2 };
pub(super) const UNKNOWN: CounterEvent = CounterEvent { kind: 9999, config: 0 };
pub(super) const SOFTWARE: Events = Events {
    instructions: TASK_CLOCK,
    cycles: TASK_CLOCK,
    llc_references: UNKNOWN,
    llc_misses: PAGE_FAULTS,
};

/// Far more than a process touches while it starts.
pub(super) const PAGES: usize = 8192;

/// Touches [`PAGES`] pages of its own; allocates nothing, so it may run between fork and exec.
pub(super) fn touch() {
    let length = PAGES * 4096;
    // SAFETY: the mapping is new and private; it is written only within its length, and unmapped
    // when nothing refers to it any more.
    unsafe {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        assert_eq!(libc::madvise(pages, length, libc::MADV_NOHUGEPAGE), 0);
        for page in 0..PAGES {
            pages.cast::<u8>().add(page * 4096).write_volatile(1);
        }
        assert_eq!(libc::munmap(pages, length), 0);
    }
}

#[test]
#[ignore = "the program that other tests count"]
fn touches_pages_in_two_threads() {
    touch();
    std::thread::spawn(touch).join().unwrap();
}

/// Counts what this thread will start; `None`, with the reason, where nothing may be counted.
pub(super) fn counters() -> Option<Counters> {
    if let Err(lack) = check(Events { llc_references: TASK_CLOCK, ..SOFTWARE }) {
        eprintln!("skipped: {lack}");
        return None;
    }
    let pid = rustix::thread::gettid().as_raw_nonzero().get();
    Some(Counters::below(Process { pid, start_time: 0 }, SOFTWARE))
}

fn pages(counters: &Counters) -> usize {
    counters.read().llc_misses.unwrap() as usize
}

#[test]
fn all_of_a_program_is_counted_but_not_the_starting_thread() {
    let Some(counters) = counters() else { return };
    touch();
    let mut program = Command::new("/bin/sh");
    program.args(["-c", r#""$@" & wait; ("$@" &); exec "$@""#, "sh"]);
    program.arg(std::env::current_exe().unwrap());
    program.args([
        "--exact",
        "observe::counters::tests::touches_pages_in_two_threads",
        "--ignored",
    ]);
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    // All processes write there, so it ends with the last of them.
    child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    assert!(child.wait().unwrap().success());
    let two_threads_of_three = 6 * PAGES;
    let pages = pages(&counters);
    assert!((two_threads_of_three..two_threads_of_three + PAGES).contains(&pages), "{pages}");
    assert_eq!(counters.read().quality, Quality::Exact);
    assert!(counters.read().instructions.unwrap() > 0);
}

#[test]
fn nothing_is_counted_before_the_command_is_executed() {
    let Some(counters) = counters() else { return };
    let mut command = Command::new("/bin/true");
    // SAFETY: `touch` calls the kernel only, and takes no lock.
    unsafe {
        command.pre_exec(|| {
            touch();
            Ok(())
        });
    }
    assert!(command.status().unwrap().success());
    assert!((1..PAGES).contains(&pages(&counters)));
}

#[test]
fn a_command_that_cannot_be_executed_has_no_counts() {
    let Some(counters) = counters() else { return };
    assert!(Command::new("/not/there").status().is_err());
    assert_eq!(counters.read(), Counts::default());
}

#[test]
fn a_running_program_is_counted_from_now_with_new_threads() {
    if counters().is_none() {
        return;
    }
    let ((tell, tids), (order, orders)) = (mpsc::channel(), mpsc::channel::<()>());
    let program = thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        touch();
        for () in orders {
            touch();
            thread::spawn(touch).join().unwrap();
            tell.send(0).unwrap();
        }
    });
    let tid = tids.recv().unwrap();
    // Not before it has touched its own pages: after that it sleeps.
    while !asleep(tid) {
        thread::yield_now();
    }
    let gone = i32::MAX;
    let counters = Counters::of(&[tid, gone], SOFTWARE);
    let before = counters.readings();
    assert_eq!(before.since(Readings::default()).llc_misses, None, "it has not run");
    order.send(()).unwrap();
    tids.recv().unwrap();
    let after = counters.readings();
    let pages = after.since(before).llc_misses.unwrap() as usize;
    assert!((2 * PAGES..3 * PAGES).contains(&pages), "{pages}");
    assert_eq!(counters.readings().since(after).llc_misses.unwrap_or(0) as usize / PAGES, 0);
    assert_eq!(after.since(before).llc_references, None);
    drop(order);
    program.join().unwrap();
}

/// Whether a thread of this process sleeps.
fn asleep(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('S')
}

#[test]
fn an_event_unknown_to_the_machine_is_left_out() {
    let Some(counters) = counters() else { return };
    assert!(Command::new("/bin/true").status().unwrap().success());
    let counts = counters.read();
    assert!(counts.instructions.is_some() && counts.llc_misses.is_some());
    assert_eq!(counts.llc_references, None);
    assert_eq!(counts.misses_per_kilo_instruction(), None);
}

#[test]
fn missing_events_are_reported() {
    if counters().is_none() {
        return;
    }
    let events = |instructions, llc_misses| Events {
        instructions,
        llc_misses,
        llc_references: PAGE_FAULTS,
        ..SOFTWARE
    };
    assert!(check(events(TASK_CLOCK, PAGE_FAULTS)).is_ok());
    assert!(matches!(check(events(UNKNOWN, PAGE_FAULTS)), Err(CounterLack::Hardware)));
    assert!(matches!(check(events(TASK_CLOCK, UNKNOWN)), Err(CounterLack::CacheEvents)));
    // The kernel's event that never counts anything.
    let dummy = CounterEvent { kind: 1, config: 9 };
    assert!(matches!(check(events(dummy, PAGE_FAULTS)), Err(CounterLack::StandsStill)));
}

#[test]
fn errors_of_the_kernel_are_distinguished() {
    let lack = |errno| CounterLack::from(io::Error::from_raw_os_error(errno));
    assert!(lack(libc::EACCES).remedy().unwrap().contains("perf_event_paranoid"));
    assert!(matches!(lack(libc::EOPNOTSUPP), CounterLack::Hardware));
    assert!(matches!(lack(libc::ENOSYS), CounterLack::Other(_)));
}

#[test]
fn multiplexed_counters_are_scaled_and_unused_ones_missing() {
    let count = |value, enabled, running| CounterReading { value, enabled, running }.count();
    assert_eq!(count(700, 5000, 5000), Some((700, Quality::Exact)));
    assert_eq!(count(700, 5000, 1000), Some((3500, Quality::Scaled)));
    assert_eq!(count(0, 5000, 1000), Some((0, Quality::Scaled)));
    assert_eq!(count(0, 5000, 0), None);
    assert_eq!(count(0, 0, 0), None);
    let reading = |value, enabled, running| CounterReading { value, enabled, running };
    // For an interval: scaled by what it counted in that interval only.
    let interval = reading(1000, 4000, 3000).since(reading(400, 2000, 2000));
    assert_eq!(interval.count(), Some((1200, Quality::Scaled)));
    // For two threads: one that slept adds nothing.
    assert_eq!(reading(700, 50, 50).plus(reading(0, 0, 0)).count(), Some((700, Quality::Exact)));
    // A day of 64 CPUs does not overflow on the way.
    let day = 64 * 86_400 * 1_000_000_000;
    assert_eq!(count(1 << 60, day, day / 4), Some((1 << 62, Quality::Scaled)));
}
