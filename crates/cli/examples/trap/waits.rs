//! Which waiting calls tell the program that it was stopped and continued, by EINTR?
//!
//! Every call waits in a thread of its own, for longer than a round of quanta, so that freezes fall
//! into it. No handler is installed for any signal; so by the manuals, none of the calls has a
//! reason to return early.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::thread;
use std::time::Duration;

/// How long each call waits if nothing interrupts it.
const MILLISECONDS: i32 = 300;
/// Shorter than a second, as every kind of time-out requires it.
static WAIT: libc::timespec =
    libc::timespec { tv_sec: 0, tv_nsec: MILLISECONDS as i64 * 1_000_000 };

type Call = fn() -> i64;
/// What returns -1 and sets `errno` if it does not go on.
const CALLS: [(&str, Call); 10] = [
    ("epoll_wait", epoll_wait),
    ("inotify", inotify),
    ("nanosleep", nanosleep),
    ("poll", poll),
    ("recv", recv),
    ("select", select),
    ("sem_timedwait", sem_timedwait),
    ("semtimedop", semtimedop),
    ("sigtimedwait", sigtimedwait),
    ("timerfd", timerfd),
];

/// Prints a line for each call: `EINTR`, or `goes on`.
pub(crate) fn all() {
    let waits = CALLS.map(|(name, call)| (name, thread::spawn(move || is_interrupted(call))));
    for (name, wait) in waits {
        println!("{name}: {}", if wait.join().unwrap() { "EINTR" } else { "goes on" });
    }
}

fn is_interrupted(call: Call) -> bool {
    call() == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}

fn epoll_wait() -> i64 {
    // SAFETY: the kernel writes at most one event into one that outlives the call.
    unsafe {
        let mut event: libc::epoll_event = zeroed();
        i64::from(libc::epoll_wait(libc::epoll_create1(0), &raw mut event, 1, MILLISECONDS))
    }
}

fn inotify() -> i64 {
    let folder = std::env::temp_dir().join(format!("trap-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let path = CString::new(folder.to_str().unwrap()).unwrap();
    // SAFETY: the path ends with a zero and outlives the call.
    let watch = unsafe {
        let watch = libc::inotify_init1(0);
        libc::inotify_add_watch(watch, path.as_ptr(), libc::IN_CREATE);
        watch
    };
    let file = folder.join("news");
    let news = thread::spawn(move || {
        thread::sleep(Duration::from_millis(MILLISECONDS as u64));
        File::create(file).unwrap();
    });
    let mut event = [0u8; 4096];
    // SAFETY: the buffer is as long as is said.
    let read = unsafe { libc::read(watch, event.as_mut_ptr().cast(), event.len()) } as i64;
    let error = io::Error::last_os_error().raw_os_error();
    news.join().unwrap();
    fs::remove_dir_all(folder).unwrap();
    // SAFETY: every thread has an `errno`; what was done since may have changed it.
    unsafe { *libc::__errno_location() = error.unwrap_or(0) };
    read
}

fn nanosleep() -> i64 {
    // Returns an error instead of setting it.
    // SAFETY: the time outlives the call, and the rest is not asked for.
    let error =
        unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const WAIT, null_mut()) };
    // SAFETY: every thread has an `errno`.
    unsafe { *libc::__errno_location() = error };
    if error == 0 { 0 } else { -1 }
}

fn poll() -> i64 {
    // SAFETY: no file is named, so none is read.
    i64::from(unsafe { libc::poll(null_mut(), 0, MILLISECONDS) })
}

fn recv() -> i64 {
    let time = libc::timeval { tv_sec: 0, tv_usec: i64::from(MILLISECONDS) * 1000 };
    let (mut pair, mut byte) = ([0; 2], [0u8; 1]);
    // SAFETY: what is read and written is as long as is said, and outlives the calls.
    unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr());
        let size = size_of::<libc::timeval>() as libc::socklen_t;
        let option = libc::SO_RCVTIMEO;
        libc::setsockopt(pair[0], libc::SOL_SOCKET, option, (&raw const time).cast(), size);
        libc::recv(pair[0], byte.as_mut_ptr().cast(), 1, 0) as i64
    }
}

fn select() -> i64 {
    // SAFETY: no set is named, and the time outlives the call.
    i64::from(unsafe {
        libc::pselect(0, null_mut(), null_mut(), null_mut(), &raw const WAIT, null())
    })
}

fn sem_timedwait() -> i64 {
    // SAFETY: the semaphore is initialised before it is used, and neither it nor the time moves
    // meanwhile.
    unsafe {
        let (mut semaphore, mut until): (libc::sem_t, libc::timespec) = (zeroed(), zeroed());
        libc::sem_init(&raw mut semaphore, 0, 0);
        libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut until);
        until.tv_sec += 1;
        i64::from(libc::sem_timedwait(&raw mut semaphore, &raw const until))
    }
}

fn semtimedop() -> i64 {
    let mut take = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
    // SAFETY: one operation is named, which outlives the call; the set is removed, so no other
    // process can have it.
    unsafe {
        let set = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
        let result = libc::syscall(libc::SYS_semtimedop, set, &raw mut take, 1, &raw const WAIT);
        let error = io::Error::last_os_error().raw_os_error();
        libc::semctl(set, 0, libc::IPC_RMID);
        *libc::__errno_location() = error.unwrap_or(0);
        result
    }
}

fn sigtimedwait() -> i64 {
    // SAFETY: the set is initialised before it is used; what came is not asked for.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, null_mut());
        i64::from(libc::sigtimedwait(&raw const set, null_mut(), &raw const WAIT))
    }
}

fn timerfd() -> i64 {
    let mut count = [0u8; 8];
    // SAFETY: the setting outlives the call, and the buffer is as long as is said.
    unsafe {
        let setting = libc::itimerspec { it_interval: zeroed(), it_value: WAIT };
        let timer = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
        libc::timerfd_settime(timer, 0, &raw const setting, null_mut());
        libc::read(timer, count.as_mut_ptr().cast(), count.len()) as i64
    }
}
