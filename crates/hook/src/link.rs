//! The connection to cosched: one page and one socket of this process, and what a region costs.
//!
//! A region that requests as many threads as the last one reads only the page and the coarse clock.
//! Only a region that requests *more* than before needs cosched's answer, and waits for
//! [`PATIENCE`] at most; then the last limit holds. The request is lowered, without waiting, once
//! no region has requested more for [`FALLS`]. A program that alternates between many and few
//! threads therefore sends one request, and cosched still learns when its large regions are over.
//! A region of one thread waits for nothing. It lowers the request only if its thread made the
//! larger one: others compute beside a large region, and need no thread more. That a program has
//! no other regions is believed after [`SERIAL`].
//!
//! cosched is gone when its heartbeat is stale, or when the socket, which is checked every
//! [`LOOK`], is closed. From then on every region gets its request. The first connection of a
//! process is its last.
//!
//! A child made by `fork` drops both, and gets its own at its first request. A child of a bare
//! `clone`, of which the C library knows nothing, keeps its parent's: it reads the same limits.

use core::ptr::{self, null_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
};
use std::thread_local;

use cosched_page::{BarrierTally, Page, ThreadRequest, ThreadTable};

use crate::sys::{self, Errno, Socket};

/// How long a region waits for an answer, milliseconds.
const PATIENCE: u64 = 5;
/// How long a new connection waits for its page, milliseconds.
const WELCOME: u64 = 1000;
/// For how long regions have to request less before the request is lowered, milliseconds.
const FALLS: u64 = 10;
/// For how long the first regions have to request one thread before cosched hears of it,
/// milliseconds.
const SERIAL: u64 = 1000;
/// How often to check whether the socket is closed, milliseconds.
const LOOK: u64 = 100;

/// How often to try to enter the gate. A thread is in it for microseconds.
const TRIES: u32 = 10_000;

const NEW: u8 = 0;
const BUSY: u8 = 1;
const ON: u8 = 2;
const OFF: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(NEW);
static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());
/// What threads do, where cosched has the kernel write it down. It stays mapped for ever.
static TABLE: AtomicPtr<ThreadTable> = AtomicPtr::new(null_mut());
static FD: AtomicI32 = AtomicI32::new(-1);
static INODE: AtomicU64 = AtomicU64::new(0);
/// Held by the thread that uses the socket.
static IN_USE: AtomicBool = AtomicBool::new(false);
/// The thread that makes a socket, or forks, by its number; 0: none. While a socket is made, the
/// process does not fork: its child would have a socket without knowing it.
static GATE: AtomicU32 = AtomicU32::new(0);
/// Whether the C library calls this library at a fork.
static WATCHES_FORKS: AtomicBool = AtomicBool::new(false);

static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The last request, in threads.
static REQUESTED: AtomicU32 = AtomicU32::new(0);
/// When and by which thread a region last requested as many, and the largest request since.
static REACHED: AtomicU64 = AtomicU64::new(0);
static REACHED_BY: AtomicUsize = AtomicUsize::new(0);
static MOST_SINCE: AtomicU32 = AtomicU32::new(0);
static LOOKED: AtomicU64 = AtomicU64::new(0);

/// Whether regions may get less than they request, as far as that is known without a request to
/// cosched.
#[inline]
pub(crate) fn may_bind() -> bool {
    STATE.load(Relaxed) != OFF
}

/// The page, where cosched is there.
pub(crate) fn page() -> Option<&'static Page> {
    let page = connected()?;
    let now = sys::coarse_now();
    (page.is_fresh(now) && is_open(now)).then_some(page)
}

/// What the threads of this process do, where it is written down, as long as it can be trusted.
/// Does not connect.
#[inline]
pub(crate) fn threads() -> Option<&'static ThreadTable> {
    if STATE.load(Acquire) != ON {
        return None;
    }
    // SAFETY: both stay mapped for ever, and are set before `ON` is (`sys::cover`).
    let (page, table) = unsafe { (PAGE.load(Relaxed).as_ref()?, TABLE.load(Relaxed).as_ref()?) };
    page.believes_threads(sys::coarse_now()).then_some(table)
}

/// Where a thread counts what it does at barriers, by the order in which threads came. `None`:
/// cosched was never there. Does not connect.
#[inline]
pub(crate) fn tally(thread: usize) -> Option<&'static BarrierTally> {
    if STATE.load(Acquire) != ON {
        return None;
    }
    // SAFETY: the page stays mapped for ever, and is set before `ON` is (`sys::cover`).
    unsafe { PAGE.load(Relaxed).as_ref() }.and_then(|page| page.tally(thread))
}

/// Runs `f`, which moves this thread to another CPU, and says on the page that it does, if cosched
/// was ever there.
pub(crate) fn moving(f: impl FnOnce() -> bool) -> bool {
    match connected() {
        Some(page) => page.moving(f),
        None => f(),
    }
}

/// Whether cosched says that this library replaces the barriers of this program.
pub(crate) fn donates() -> bool {
    page().is_some_and(|page| page.rule().donate)
}

/// Whether cosched says that this program has a CPU group of its own.
#[inline]
pub(crate) fn is_grouped() -> bool {
    connected().is_some_and(|page| page.rule().grouped)
}

/// Whether a thread can name the one that gets its CPU.
pub(crate) fn is_directed() -> bool {
    connected().is_some_and(|page| page.rule().directed)
}

/// The program has begun a region, or all of its threads have passed a barrier: counted where
/// cosched requests it.
#[inline]
pub(crate) fn passes() {
    if let Some(page) = counting() {
        page.pass();
    }
}

/// Where regions and barriers are counted, if cosched requests it.
#[inline]
fn counting() -> Option<&'static Page> {
    connected().filter(|page| page.rule().counts)
}

/// Whether cosched requests that regions and barriers are counted.
#[inline]
pub(crate) fn counts() -> bool {
    counting().is_some()
}

/// How many threads a region gets that requests `requested`.
#[inline]
pub(crate) fn region(requested: i32) -> i32 {
    if requested < 1 {
        return requested;
    }
    let Some(page) = connected() else { return requested };
    let now = sys::coarse_now();
    if !page.is_fresh(now) || !is_open(now) || !page.rule().managed {
        return requested;
    }
    let threads = u32::from(u16::try_from(requested).unwrap_or(u16::MAX));
    let last = REQUESTED.load(Relaxed);
    if threads == last {
        REACHED.store(now, Relaxed);
        REACHED_BY.store(me(), Relaxed);
        MOST_SINCE.store(0, Relaxed);
    } else if threads == 1 && last == 0 && !has_lasted(now) {
        // Another thread may have begun a larger one before there was a connection.
    } else if threads > last {
        // One that gets what it requests in any case does not wait for the answer.
        send_request(page, threads, threads > 1);
    } else if threads > 1 || REACHED_BY.load(Relaxed) == me() {
        let most = MOST_SINCE.fetch_max(threads, Relaxed).max(threads);
        if now.wrapping_sub(REACHED.load(Relaxed)) > FALLS {
            send_request(page, most, false);
        }
    }
    page.rule().bound(requested)
}

/// Whether all regions so far have requested one thread, for so long that a request may say it.
fn has_lasted(now: u64) -> bool {
    let first = REACHED.compare_exchange(0, now, Relaxed, Relaxed).err();
    first.is_some_and(|first| now.wrapping_sub(first) > SERIAL)
}

/// This thread: an address of its own.
fn me() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.try_with(|here| ptr::from_ref(here).addr()).unwrap_or(0)
}

#[inline]
fn connected() -> Option<&'static Page> {
    match STATE.load(Acquire) {
        // SAFETY: `ON` is set after the page, which stays mapped for ever (`sys::cover`).
        ON => unsafe { PAGE.load(Relaxed).as_ref() },
        NEW => connect(),
        _ => None,
    }
}

#[cold]
fn connect() -> Option<&'static Page> {
    // A thread that comes meanwhile gets its request.
    STATE.compare_exchange(NEW, BUSY, Acquire, Relaxed).ok()?;
    let _errno = Errno::keep();
    let page = open();
    STATE.store(if page.is_some() { ON } else { OFF }, Release);
    page
}

/// From now on a child of a fork drops what is its parent's. Returns whether that could be
/// arranged.
pub(crate) fn watch_forks() -> bool {
    // SAFETY: the function stays where it is as long as this library does, and the C library
    // forgets it with that.
    WATCHES_FORKS.swap(true, Relaxed)
        || unsafe {
            libc::pthread_atfork(Some(before_a_fork), Some(after_a_fork), Some(in_child)) == 0
        }
}

/// Waits for a short time until no other thread is in the gate. Returns whether this thread is in
/// it now.
fn enter_gate() -> bool {
    let own = sys::tid();
    for _ in 0..TRIES {
        if GATE.compare_exchange(0, own, Acquire, Relaxed).is_ok() {
            return true;
        }
        sys::yield_cpu();
    }
    false
}

/// Leaves the gate. A thread that is not in it changes nothing.
fn leave_gate() {
    let _ = GATE.compare_exchange(sys::tid(), 0, Release, Relaxed);
}

/// In the parent, before a fork.
///
/// # Safety
/// Any thread may call it at any time: it uses only system calls and atomic words. It is `unsafe`
/// because `pthread_atfork` takes functions of this type.
unsafe extern "C" fn before_a_fork() {
    let _errno = Errno::keep();
    // A child that is made nevertheless has at worst a socket that it never uses.
    let _ = enter_gate();
}

/// In the parent, after a fork.
///
/// # Safety
/// Any thread may call it at any time: it uses only system calls and atomic words. It is `unsafe`
/// because `pthread_atfork` takes functions of this type.
unsafe extern "C" fn after_a_fork() {
    let _errno = Errno::keep();
    leave_gate();
}

fn open() -> Option<&'static Page> {
    let name = sys::variable(c"COSCHED_HOOK").filter(|name| !name.is_empty())?;
    watch_forks().then_some(())?;
    enter_gate().then_some(())?;
    let socket = Socket::connect(name);
    if let Some(socket) = socket {
        FD.store(socket.fd, Relaxed);
        INODE.store(socket.inode, Relaxed);
    }
    leave_gate();
    let socket = socket?;
    let welcome = if socket.wait(WELCOME) { socket.page() } else { None };
    let Some((page, table)) = welcome else {
        FD.store(-1, Relaxed);
        socket.close();
        return None;
    };
    LOOKED.store(sys::coarse_now(), Relaxed);
    REQUESTED.store(0, Relaxed);
    TABLE.store(table.map_or(null_mut(), |table| (&raw const *table).cast_mut()), Release);
    PAGE.store(&raw const *page as *mut Page, Release);
    Some(page)
}

/// The right to use the socket, as long as this lives.
struct InUse(Socket);

impl InUse {
    /// `None`: another thread uses it.
    fn begin() -> Option<InUse> {
        IN_USE.compare_exchange(false, true, Acquire, Relaxed).ok()?;
        Some(InUse(Socket { fd: FD.load(Relaxed), inode: INODE.load(Relaxed) }))
    }

    /// Notes that cosched is gone, for ever.
    fn hang_up(&self) {
        STATE.store(OFF, Release);
        self.0.close();
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        IN_USE.store(false, Release);
    }
}

/// Whether the socket was open at the last check, which is now if it is time.
#[inline]
fn is_open(now: u64) -> bool {
    now.wrapping_sub(LOOKED.load(Relaxed)) < LOOK || look(now)
}

#[cold]
fn look(now: u64) -> bool {
    let _errno = Errno::keep();
    let Some(socket) = InUse::begin() else { return true };
    LOOKED.store(now, Relaxed);
    let open = STATE.load(Relaxed) == ON && socket.0.wait(0);
    if !open {
        socket.hang_up();
    }
    open
}

#[cold]
fn send_request(page: &Page, threads: u32, blocked: bool) {
    let _errno = Errno::keep();
    // Another thread sends a request just now: the present limit is good enough for this region.
    let Some(socket) = InUse::begin() else { return };
    if STATE.load(Relaxed) != ON {
        return;
    }
    socket.0.drain();
    let number = NUMBER.fetch_add(1, Relaxed).wrapping_add(1);
    page.set_request(ThreadRequest { number, threads: threads as u16, blocked });
    REQUESTED.store(threads, Relaxed);
    MOST_SINCE.store(0, Relaxed);
    REACHED.store(sys::coarse_now(), Relaxed);
    REACHED_BY.store(me(), Relaxed);
    if !socket.0.ring() {
        return socket.hang_up();
    }
    let until = sys::now().saturating_add(PATIENCE);
    while blocked && page.answered() != number {
        let left = until.saturating_sub(sys::now());
        if left == 0 {
            return;
        }
        if !socket.0.wait(left) {
            return socket.hang_up();
        }
        // The answer may belong to an earlier request.
        if page.answered() != number {
            socket.0.drain();
        }
    }
}

/// In the child of a fork: drops what was the parent's, with only system calls and atomic words.
///
/// # Safety
/// It has to run in the child of a fork: its only thread calls it. `pthread_atfork` sees to that.
unsafe extern "C" fn in_child() {
    let _errno = Errno::keep();
    drop_all();
    crate::blas::in_child();
    crate::barrier::in_child();
    IN_USE.store(false, Relaxed);
    GATE.store(0, Relaxed);
    STATE.store(NEW, Release);
}

fn drop_all() {
    let fd = FD.swap(-1, Relaxed);
    if fd >= 0 {
        Socket { fd, inode: INODE.load(Relaxed) }.close();
    }
    let page = PAGE.swap(null_mut(), Relaxed);
    if page.is_null() {
        return;
    }
    sys::cover(page);
    let table = TABLE.swap(null_mut(), Relaxed);
    if !table.is_null() {
        sys::cover_threads(table);
    }
}

/// When the library is unloaded, or the process ends.
///
/// # Safety
/// Any thread may call it at any time: pages are covered and not unmapped, so threads that still
/// read them find memory.
unsafe extern "C" fn at_the_end() {
    STATE.store(OFF, Release);
    drop_all();
}

// SAFETY: the dynamic linker calls each address in this section, without arguments.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_THE_END: unsafe extern "C" fn() = at_the_end;
