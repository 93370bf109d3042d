//! Programs that are hard to schedule from outside, for the tests: each mode is a trap.
//!
//! | mode | what it does |
//! |---|---|
//! | `calls` | waits in system calls that must go on by themselves after a freeze |
//! | `waits` | waits in calls of which some tell that they were interrupted |
//! | `vfork` | is in uninterruptible sleep nearly all the time, until a child releases it |
//! | `pin CPU CPU` | binds itself to the CPU to which it is not bound; checks that it stays there |
//! | `threads N` | has so many threads, which sleep and wake |
//! | `births N` | has so many threads in four chains: each starts the next and ends |
//! | `locks N` | has so many threads that take one lock in turn, and others that come and go |
//! | `stages` | has a thread that computes, and three that wait for work most of the time |
//! | `trace` | traces a child of its own, as a debugger does |
//!
//! `locks` and `stages` end with status 7 when there is a file `stop`.

#![allow(clippy::unwrap_used)]

mod waits;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::exit;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

const SHORT: Duration = Duration::from_millis(4);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["calls"] => calls(),
        ["waits"] => waits::all(),
        ["vfork"] => vfork(),
        ["pin", one, other] => pin([one, other].map(|cpu| cpu.parse().unwrap())),
        ["threads", count] => threads(count.parse().unwrap()),
        ["births", count] => births(count.parse().unwrap()),
        ["locks", count] => locks(count.parse().unwrap()),
        ["sleeps", count] => sleeps(count.parse().unwrap()),
        ["stages"] => stages(),
        ["trace"] => trace(),
        _ => panic!(
            "usage: trap calls | waits | vfork | pin CPU CPU | threads N | births N | locks N \
                     | sleeps N | stages | trace"
        ),
    }
}

/// Every call is made as often as it takes for a freeze to fall into one; `std`'s own retries are
/// bypassed.
fn calls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..40 {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let lock = Arc::new(Mutex::new(0));
        let (guard, other) = (lock.lock().unwrap(), lock.clone());
        let waiter = thread::spawn(move || *other.lock().unwrap());
        let writer = thread::spawn(move || {
            thread::sleep(SHORT);
            (&theirs).write_all(&[1]).unwrap();
            thread::sleep(SHORT);
            (&theirs).write_all(&[2]).unwrap();
            thread::sleep(SHORT);
            TcpStream::connect(address).unwrap()
        });
        let mut byte = [0];
        must("read", rustix::io::read(&ours, &mut byte).map(drop));
        let mut polled = [rustix::event::PollFd::new(&ours, rustix::event::PollFlags::IN)];
        must("poll", rustix::event::poll(&mut polled, None).map(drop));
        ours.read_exact(&mut byte).unwrap();
        must("accept", rustix::net::accept(&listener).map(drop));
        drop(guard);
        waiter.join().unwrap();
        writer.join().unwrap();
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 4_000_000 };
        match rustix::thread::nanosleep(&pause) {
            rustix::thread::NanosleepRelativeResult::Ok => {}
            other => fail(&format!("nanosleep: {other:?}")),
        }
        io::stdout().write_all(b".").unwrap();
    }
}

fn must(call: &str, result: Result<(), Errno>) {
    if let Err(errno) = result {
        fail(&format!("{call}: {errno}"));
    }
}

fn fail(what: &str) -> ! {
    eprintln!("{what}");
    exit(1)
}

/// The parent of a vfork child waits in uninterruptible sleep until the child executes or ends.
fn vfork() {
    const STACK: usize = 64 * 1024;
    extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 15_000_000 };
        // SAFETY: a system call that reads one structure, which outlives it.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
        0
    }
    let mut stack = vec![0u8; STACK];
    for _ in 0..40 {
        // SAFETY: the child runs on a stack of its own, of which this is the (aligned) upper end,
        // touches nothing else of the shared memory, and has ended before the call returns.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(STACK).map_addr(|address| address & !15);
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            libc::clone(child, top.cast(), flags, std::ptr::null_mut())
        };
        assert!(pid > 0);
        // SAFETY: waits for the child of above; a null status is allowed.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
}

/// Binds itself, works, and tells whether it stayed there. A process that binds it to the very same
/// CPU at the same time could not know that this program is to be there. This program therefore
/// takes the other CPU.
fn pin([one, other]: [usize; 2]) {
    let [mut mask, mut rest] = [rustix::thread::CpuSet::new(); 2];
    mask.set(one);
    rest.set(other);
    let present = loop {
        let begun = Instant::now();
        let present = rustix::thread::sched_getaffinity(None).unwrap();
        // Bound anew while it was frozen in between? Then look again.
        if begun.elapsed() < SHORT {
            break present;
        }
    };
    if present == mask {
        std::mem::swap(&mut mask, &mut rest);
    }
    rustix::thread::sched_setaffinity(None, &mask).unwrap();
    for _ in 0..120 {
        spin(Duration::from_millis(2));
        assert!(rustix::thread::sched_getaffinity(None).unwrap() == mask, "moved");
    }
    println!("stayed");
}

fn threads(count: usize) {
    let all_there = Arc::new(Barrier::new(count + 1));
    let one = |_| {
        let all_there = all_there.clone();
        let body = move || {
            all_there.wait();
            for _ in 0..8 {
                thread::sleep(SHORT * 8);
            }
        };
        thread::Builder::new().stack_size(32 * 1024).spawn(body).unwrap()
    };
    let threads: Vec<_> = (0..count).map(one).collect();
    all_there.wait();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{count}");
}

/// A thread is always being born, so a process that looks for all threads never sees them all.
fn births(count: usize) {
    const CHAINS: usize = 4;
    fn live(left: usize, ended: Sender<usize>) {
        spin(Duration::from_micros(50));
        match left {
            0 => ended.send(1).unwrap(),
            _ => drop(thread::spawn(move || live(left - 1, ended))),
        }
    }
    let (ended, ends) = channel();
    for _ in 0..CHAINS {
        let ended = ended.clone();
        thread::spawn(move || live(count / CHAINS, ended));
    }
    drop(ended);
    println!("{}", ends.iter().sum::<usize>());
}

/// Threads wait for one another, and some are always being born.
fn locks(count: usize) {
    let lock = Arc::new(Mutex::new(0u64));
    for _ in 0..count {
        let lock = lock.clone();
        thread::spawn(move || {
            loop {
                let mut taken = lock.lock().unwrap();
                spin(Duration::from_micros(200));
                *taken += 1;
            }
        });
    }
    while !Path::new("stop").exists() {
        thread::spawn(|| spin(SHORT)).join().unwrap();
        thread::sleep(SHORT);
    }
    exit(7)
}

/// Threads that wait for time to pass.
fn sleeps(count: usize) {
    for _ in 0..count {
        thread::spawn(|| {
            loop {
                thread::sleep(SHORT);
            }
        });
    }
    while !Path::new("stop").exists() {
        thread::sleep(SHORT);
    }
    exit(7)
}

/// A pipeline with one stage that does nearly all of the work.
fn stages() {
    thread::spawn(|| {
        loop {
            spin(SHORT);
        }
    });
    let worker = |_| {
        let (hand_over, work) = channel::<()>();
        thread::spawn(move || work.iter().for_each(|()| spin(Duration::from_micros(100))));
        hand_over
    };
    let workers: Vec<Sender<()>> = (0..3).map(worker).collect();
    while !Path::new("stop").exists() {
        workers.iter().for_each(|worker| worker.send(()).unwrap());
        thread::sleep(SHORT);
    }
    exit(7)
}

/// Seizes a child, and continues it whenever it stops.
fn trace() {
    // SAFETY: the child makes only system calls that are allowed between fork and its end.
    match unsafe { libc::fork() } {
        0 => {
            spin(Duration::from_millis(300));
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(7) }
        }
        child => follow(child),
    }
}

fn follow(child: libc::pid_t) {
    let (no_address, no_data) = (0usize, 0usize);
    // SAFETY: requests without memory, of a child that is not waited for before its end.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, child, no_address, no_data) };
    assert_eq!(seized, 0, "{}", io::Error::last_os_error());
    loop {
        let mut status = 0;
        // SAFETY: the status is written to a variable that outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        if libc::WIFEXITED(status) {
            println!("traced {}", libc::WEXITSTATUS(status));
            return;
        }
        // A stop that belongs to a signal passes it on; a group stop is listened to until it ends.
        let group_stop = status >> 16 == libc::PTRACE_EVENT_STOP;
        let (request, signal) = match group_stop && libc::WSTOPSIG(status) != libc::SIGTRAP {
            true => (libc::PTRACE_LISTEN, 0),
            false if group_stop => (libc::PTRACE_CONT, 0),
            false => (libc::PTRACE_CONT, libc::WSTOPSIG(status)),
        };
        // SAFETY: a request without memory, of a child that has stopped.
        unsafe { libc::ptrace(request, child, no_address, signal as usize) };
    }
}

fn spin(time: Duration) {
    let until = std::time::Instant::now() + time;
    while std::time::Instant::now() < until {
        std::hint::spin_loop();
    }
}
