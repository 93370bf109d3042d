//! Programs of threads for tests of schedulers. The first argument says which:
//!
//! - `rounds THREADS HEAVY LIGHT SECONDS`: threads compute and wait for each other at a POSIX
//!   barrier. HEAVY and LIGHT are the steps of the first thread and of each other one in a round.
//! - `spin THREADS SECONDS`: threads compute.
//! - `stretches SECONDS`: two threads bound to the first CPU compute; the rounds are the
//!   microseconds for which one of them keeps that CPU.
//! - `stages SECONDS`: as `stretches`, but one of the two waits at a lock most of the time. Both
//!   stretches are said, first that of the thread that computes.
//! - `bound CPUS SECONDS`: a thread bound to each of the first CPUs computes; the rounds are the
//!   milliseconds of CPU time of the thread that had least.
//! - `strangers SECONDS`: a thread computes, and asks all the time for its CPU to go to threads of
//!   other programs of this name.
//! - `headless SECONDS`: the first thread ends, another one computes.
//! - `burst COUNT`: so many threads begin and end, four at a time.
//! - `leaves SECONDS`: a thread gives itself the class SCHED_BATCH, and computes.
//!
//! At the end each says how many rounds it made, and the class of its last thread.

#![allow(clippy::unwrap_used)]

use std::cell::{Cell, UnsafeCell};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// After so long a scheduler has what it is going to change.
const SETTLED: Duration = Duration::from_millis(500);

/// For how much CPU time a thread of a pipeline works on something, and for how long it then waits
/// for the next.
const WORKS: Duration = Duration::from_millis(70);
const WAITS: Duration = Duration::from_millis(450);

/// A thread that had no CPU time for so long has lost its CPU to threads that compute. Before its
/// next turn come three others, of 0.5 ms or more each. What cosched itself needs is shorter.
const AWAY: Duration = Duration::from_micros(1200);

struct Barrier(UnsafeCell<MaybeUninit<libc::pthread_barrier_t>>);

// SAFETY: this is what such a barrier is for.
unsafe impl Sync for Barrier {}

impl Barrier {
    /// Made for the rest of the process, so that it never moves.
    fn new(threads: u64) -> &'static Barrier {
        let barrier = Box::leak(Box::new(Barrier(UnsafeCell::new(MaybeUninit::uninit()))));
        let threads = threads.try_into().unwrap();
        // SAFETY: the memory is there, and no other thread knows of it yet.
        let made =
            unsafe { libc::pthread_barrier_init(barrier.0.get().cast(), ptr::null(), threads) };
        assert_eq!(made, 0);
        barrier
    }

    /// Whether the caller is the one thread that is told so.
    fn wait(&self) -> bool {
        // SAFETY: `new` made it.
        let result = unsafe { libc::pthread_barrier_wait(self.0.get().cast()) };
        result == libc::PTHREAD_BARRIER_SERIAL_THREAD
    }
}

fn compute(steps: u64) {
    (0..steps).for_each(|step| _ = black_box(step));
}

fn spin(until: Instant) {
    while Instant::now() < until {
        compute(1000);
    }
}

/// The CPU time of the calling thread.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// Works; returns for how long the calling thread keeps a CPU: half of its CPU time is in stretches
/// of at least so many microseconds. The first half of the time does not count.
fn stretch(until: Instant, work: impl Fn()) -> u64 {
    let begins = Instant::now() + (until - Instant::now()) / 2;
    while Instant::now() < begins {
        work();
    }
    let (mut used, mut seen, mut stretches) = (cpu_time(), begins, Vec::new());
    let mut came = used;
    while seen < until {
        work();
        let (now, using) = (Instant::now(), cpu_time());
        if (now - seen).saturating_sub(using - used) > AWAY {
            stretches.push(using - came);
            came = using;
        }
        (seen, used) = (now, using);
    }
    stretches.push(used - came);
    stretches.sort();
    let half = stretches.iter().sum::<Duration>() / 2;
    let mut total = Duration::ZERO;
    let shorter = stretches.iter().take_while(|stretch| {
        total += **stretch;
        total < half
    });
    stretches[shorter.count()].as_micros() as u64
}

/// What a thread of a pipeline does: it works on one thing after the other, and waits in between.
fn stage() -> impl Fn() {
    let came = Cell::new(cpu_time());
    move || {
        compute(100);
        if cpu_time() - came.get() > WORKS {
            // This is a futex call, as a wait for a lock is.
            thread::park_timeout(WAITS);
            came.set(cpu_time());
        }
    }
}

/// Has `threads` threads do it, this one among them, which is the first.
fn with_threads(threads: u64, act: impl Fn(bool) + Sync) {
    thread::scope(|scope| {
        (1..threads).for_each(|_| _ = scope.spawn(|| act(false)));
        act(true);
    });
}

fn rounds(threads: u64, heavy: u64, light: u64, end: Instant) -> u64 {
    let barrier = Barrier::new(threads);
    let (over, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    with_threads(threads, |first| {
        while !over.load(Relaxed) {
            compute(if first { heavy } else { light });
            if barrier.wait() {
                rounds.fetch_add(1, Relaxed);
                over.store(Instant::now() >= end, Relaxed);
            }
            // All see the same answer.
            barrier.wait();
        }
    });
    rounds.load(Relaxed)
}

/// Binds the calling thread.
fn bind_to(cpu: u64) {
    // SAFETY: a set of CPUs is a number without rules, and only this thread's mask is set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
    }
}

/// Computes on this CPU alone; returns the CPU time of the calling thread, milliseconds.
fn spin_on(cpu: u64, until: Instant) -> u64 {
    bind_to(cpu);
    spin(until);
    cpu_time().as_millis() as u64
}

/// The first threads of all other processes with the name of this one.
fn strangers() -> Vec<u32> {
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let folders = std::fs::read_dir("/proc").unwrap();
    let numbers =
        folders.filter_map(|folder| folder.unwrap().file_name().to_str()?.parse::<u32>().ok());
    let is_stranger = |pid: &u32| {
        *pid != std::process::id()
            && std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == name)
    };
    numbers.filter(is_stranger).collect()
}

/// Ends the calling thread, and not the process.
fn end_thread() {
    // SAFETY: no destructor of this thread is needed by another one.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// The class of the calling thread.
fn class() -> i32 {
    // SAFETY: takes a number.
    unsafe { libc::sched_getscheduler(0) }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (what, numbers) = words.split_first().unwrap();
    let numbers: Vec<u64> = numbers.iter().map(|word| word.parse().unwrap()).collect();
    let after = |seconds: u64| Instant::now() + Duration::from_secs(seconds);
    let mut made = 0;
    match (what.as_str(), &numbers[..]) {
        ("rounds", &[threads, heavy, light, seconds]) => {
            made = rounds(threads, heavy, light, after(seconds));
        }
        ("spin", &[threads, seconds]) => with_threads(threads, |_| spin(after(seconds))),
        ("stretches", &[seconds]) => {
            let until = after(seconds);
            bind_to(0);
            let other = thread::spawn(move || spin(until));
            made = stretch(until, || compute(100));
            other.join().unwrap();
        }
        ("stages", &[seconds]) => {
            let until = after(seconds);
            bind_to(0);
            let other = thread::spawn(move || stretch(until, stage()));
            let computes = stretch(until, || compute(100));
            println!("stretches {computes} {}", other.join().unwrap());
        }
        ("bound", &[cpus, seconds]) => {
            let until = after(seconds);
            let threads: Vec<_> =
                (0..cpus).map(|cpu| thread::spawn(move || spin_on(cpu, until))).collect();
            made = threads.into_iter().map(|thread| thread.join().unwrap()).min().unwrap();
        }
        ("strangers", &[seconds]) => {
            thread::sleep(SETTLED);
            let (until, strangers) = (after(seconds), strangers());
            while Instant::now() < until {
                compute(1000);
                for stranger in &strangers {
                    // SAFETY: a kernel that does not know the arguments ignores them.
                    unsafe {
                        libc::syscall(libc::SYS_sched_yield, cosched_page::DONATE, *stranger)
                    };
                }
            }
            made = strangers.len() as u64;
        }
        ("headless", &[seconds]) => {
            thread::sleep(SETTLED);
            let until = after(seconds);
            thread::spawn(move || {
                spin(until);
                println!("rounds 0 class {}", class());
                std::process::exit(0);
            });
            end_thread();
        }
        ("burst", &[count]) => (0..count / 4).for_each(|_| with_threads(4, |_| compute(1000))),
        ("leaves", &[seconds]) => {
            thread::sleep(SETTLED);
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: reads a structure that outlives the call.
            assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &none) }, 0);
            spin(after(seconds));
        }
        _ => panic!("see the beginning of this file for what may be typed"),
    }
    println!("rounds {made} class {}", class());
}
