//! System calls, as they may be made within a foreign program.
//!
//! They are made without the C library's functions of the same names, which are cancellation
//! points. A cancelled thread would leave a lock held, and a cancellation cannot pass through Rust.
//! The program may also have closed a descriptor (a daemon closes all that it does not know). The
//! number may belong to a file of the program's own by now, so [`Socket`] checks it before each
//! use.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::mem::{MaybeUninit, size_of, zeroed};
use core::ptr::null_mut;
use core::sync::atomic::AtomicU64;

use cosched_page::{Hello, Page, SIZE, ThreadTable};

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// No descriptor.
const NO_FILE: c_int = -1;

/// Restores `errno` when dropped.
pub(crate) struct Errno(c_int);

impl Errno {
    pub(crate) fn keep() -> Errno {
        // SAFETY: the C library's own place for this thread.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: the C library's own place for this thread.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// Milliseconds of the monotonic clock, some milliseconds old: it costs a few nanoseconds.
#[inline]
pub(crate) fn coarse_now() -> u64 {
    now_of(libc::CLOCK_MONOTONIC_COARSE)
}

/// Milliseconds of the monotonic clock.
pub(crate) fn now() -> u64 {
    now_of(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn nanoseconds() -> u64 {
    let time = time_of(libc::CLOCK_MONOTONIC);
    (time.tv_sec as u64).wrapping_mul(SECOND).wrapping_add(time.tv_nsec as u64)
}

#[inline]
fn now_of(clock: libc::clockid_t) -> u64 {
    let time = time_of(clock);
    (time.tv_sec as u64).wrapping_mul(1000).wrapping_add(time.tv_nsec as u64 / 1_000_000)
}

#[inline]
fn time_of(clock: libc::clockid_t) -> libc::timespec {
    // SAFETY: an all-zero timespec is one, and the call writes only it.
    unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(clock, &mut time);
        time
    }
}

/// How many CPUs the calling thread may run on.
pub(crate) fn cpus() -> c_int {
    let _errno = Errno::keep();
    // SAFETY: an all-zero set is one, and the call writes only it, within its size.
    let count = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) {
            0 => libc::CPU_COUNT(&set),
            _ => 0,
        }
    };
    count.max(1)
}

/// Writes a message to standard error at once.
pub(crate) fn complain(parts: &[&[u8]]) {
    for part in parts {
        // SAFETY: writes from memory that lives during the call.
        unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, part.as_ptr(), part.len()) };
    }
}

/// Yields to another thread, which may hold what is needed.
pub(crate) fn yield_cpu() {
    // SAFETY: takes no arguments.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// Yields, and tells cosched's scheduler in the kernel, if it is there, what that means.
pub(crate) fn tell_scheduler(call: u64, argument: u64) {
    // SAFETY: a kernel without that scheduler reads no arguments, and with it, both are numbers.
    unsafe { libc::syscall(libc::SYS_sched_yield, call, argument) };
}

/// The number of the calling thread.
#[cold]
pub(crate) fn tid() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Whether the calling thread is on this CPU.
pub(crate) fn is_here(cpu: u16) -> bool {
    // SAFETY: takes no arguments.
    unsafe { libc::sched_getcpu() == c_int::from(cpu) }
}

/// The CPUs that a thread may use, as many as a kernel may have.
type Mask = [u64; 128];

/// Goes to the CPU with the fewest of the counted threads, if it has two fewer than this one.
/// Returns whether it went.
pub(crate) fn go_where_fewer_are(on: &[u8; 64]) -> bool {
    // SAFETY: takes no arguments.
    let here = unsafe { libc::sched_getcpu() } as usize;
    let there = on.iter().enumerate().take(online() as usize).min_by_key(|(_, count)| **count);
    let (Some((least, others)), Some(siblings)) = (there, on.get(here)) else { return false };
    siblings.saturating_sub(*others) >= 2 && go_to(least)
}

/// Goes to a CPU, and may run anywhere from there on. Returns whether it went. cosched is told on
/// the page, since it may look at the mask meanwhile.
///
/// Only a thread that may use every CPU goes. The mask that is left, of every CPU, is then equal to
/// the original one, even if the cpuset changes.
pub(crate) fn go_to(cpu: usize) -> bool {
    const EVERY: Mask = [u64::MAX; 128];
    let _errno = Errno::keep();
    let count = |mask: Mask| mask.iter().map(|word| word.count_ones()).sum::<u32>();
    let mut only: Mask = [0; 128];
    let Some(word) = only.get_mut(cpu / 64).filter(|_| mask().map(count) == Some(online())) else {
        return false;
    };
    *word = 1 << (cpu % 64);
    set_mask(&only);
    // If another process or thread has bound it meanwhile, that binding stays.
    let is_there = mask() == Some(only);
    if is_there {
        set_mask(&EVERY);
    }
    is_there
}

/// How many CPUs are online.
fn online() -> u32 {
    // SAFETY: a plain number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) as u32 }
}

/// The mask of the calling thread.
fn mask() -> Option<Mask> {
    let mut mask: Mask = [0; 128];
    // SAFETY: the call writes a mask of this size, which lives during it.
    let length = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of::<Mask>(), mask.as_mut_ptr())
    };
    (length > 0).then_some(mask)
}

fn set_mask(mask: &Mask) {
    // SAFETY: the call reads a mask of this size, which lives during it.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of::<Mask>(), mask.as_ptr()) };
}

/// Sleeps until woken, or for so many nanoseconds, if the lower half of the word is still `seen`.
/// Returns whether it was woken.
pub(crate) fn sleep_on(word: &AtomicU64, seen: u32, at_most: Option<u64>) -> bool {
    let _errno = Errno::keep();
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let time = at_most.map(|nanoseconds| libc::timespec {
        tv_sec: (nanoseconds / SECOND) as libc::time_t,
        tv_nsec: (nanoseconds % SECOND) as libc::c_long,
    });
    let time = time.as_ref().map_or(core::ptr::null(), |time| &raw const *time);
    // SAFETY: four bytes, aligned, and a time or none: all live during the call, which reads them.
    unsafe { libc::syscall(libc::SYS_futex, lower_half(word), operation, seen, time) == 0 }
}

/// Wakes all threads that sleep on the word.
pub(crate) fn wake_all(word: &AtomicU64) {
    let _errno = Errno::keep();
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel takes the address as a name, and reads nothing there.
    unsafe { libc::syscall(libc::SYS_futex, lower_half(word), operation, c_int::MAX) };
}

const _: () = assert!(cfg!(target_endian = "little"), "the lower half of a word comes first");

fn lower_half(word: &AtomicU64) -> *mut u32 {
    word.as_ptr().cast()
}

/// A variable that can be trusted: none, where the program has more privileges than its user.
pub(crate) fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the C library declares it like this, but for a `const` in what it returns.
    unsafe extern "C" {
        fn secure_getenv(name: *const libc::c_char) -> *const libc::c_char;
    }
    // SAFETY: the name ends with a zero; what comes back is null or a text that does. A program
    // that changes its environment in another thread at this moment has undefined behaviour of its
    // own.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        if value.is_null() { None } else { Some(CStr::from_ptr(value).to_bytes()) }
    }
}

/// A connected socket: its descriptor, and which file that was.
#[derive(Clone, Copy)]
pub(crate) struct Socket {
    pub(crate) fd: c_int,
    pub(crate) inode: u64,
}

impl Socket {
    /// Connects to the abstract name, if the other end belongs to this user or to root.
    pub(crate) fn connect(name: &[u8]) -> Option<Socket> {
        // SAFETY: an all-zero address is one.
        let mut address: libc::sockaddr_un = unsafe { zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // After the zero byte that makes it abstract.
        let room = address.sun_path.get_mut(1..)?.get_mut(..name.len())?;
        for (to, from) in room.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        let length = size_of::<libc::sa_family_t>() + 1 + name.len();
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain numbers, and an address that lives during the call and is at least `length`
        // long.
        let fd = unsafe {
            let fd = libc::syscall(libc::SYS_socket, libc::AF_UNIX, kind, 0) as c_int;
            if fd < 0 {
                return None;
            }
            let fd = out_of_the_way(fd);
            if libc::syscall(libc::SYS_connect, fd, &raw const address, length) != 0
                || !is_trusted(fd)
            {
                close(fd);
                return None;
            }
            fd
        };
        Some(Socket { fd, inode: inode(fd)? })
    }

    /// Whether the descriptor is still this socket.
    fn is_ours(self) -> bool {
        inode(self.fd) == Some(self.inode)
    }

    /// Sends a byte to the other end. Returns whether that is still there.
    pub(crate) fn ring(self) -> bool {
        // SAFETY: one byte that lives during the call.
        self.is_ours()
            && unsafe {
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                let byte = [1u8];
                libc::syscall(
                    libc::SYS_sendto,
                    self.fd,
                    byte.as_ptr(),
                    1usize,
                    flags,
                    0usize,
                    0usize,
                ) == 1
                    || *libc::__errno_location() == libc::EAGAIN
            }
    }

    /// Waits until something can be read, for so many milliseconds, whatever signals arrive
    /// meanwhile. Returns whether the other end is still there.
    pub(crate) fn wait(self, milliseconds: u64) -> bool {
        let until = now().saturating_add(milliseconds);
        let mut left = milliseconds;
        while self.is_ours() {
            let mut poll =
                libc::pollfd { fd: self.fd, events: libc::POLLIN | libc::POLLRDHUP, revents: 0 };
            let time = libc::timespec {
                tv_sec: (left / 1000) as libc::time_t,
                tv_nsec: (left % 1000 * 1_000_000) as c_long,
            };
            // SAFETY: one entry and a time that live during the call; no mask.
            let (ready, interrupted) = unsafe {
                let ready = libc::syscall(
                    libc::SYS_ppoll,
                    &raw mut poll,
                    1usize,
                    &raw const time,
                    0usize,
                    0usize,
                );
                (ready >= 0, ready < 0 && *libc::__errno_location() == libc::EINTR)
            };
            left = until.saturating_sub(now());
            if interrupted && left > 0 {
                continue;
            }
            let gone = libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR | libc::POLLNVAL;
            return (ready || interrupted) && poll.revents & gone == 0;
        }
        false
    }

    /// Discards what can be read.
    pub(crate) fn drain(self) {
        let mut bytes = [0u8; 16];
        for _ in 0..16 {
            // SAFETY: a buffer of that size that lives during the call.
            let read = unsafe {
                let flags = libc::MSG_DONTWAIT;
                libc::syscall(
                    libc::SYS_recvfrom,
                    self.fd,
                    bytes.as_mut_ptr(),
                    bytes.len(),
                    flags,
                    0usize,
                    0usize,
                )
            };
            if read <= 0 {
                return;
            }
        }
    }

    /// Closes it, unless the descriptor is another file by now.
    pub(crate) fn close(self) {
        if self.is_ours() {
            close(self.fd);
        }
    }

    /// Receives the page that cosched sends first, and the table of threads, if one comes along.
    /// `None`: the message is not valid.
    pub(crate) fn page(self) -> Option<(&'static Page, Option<&'static ThreadTable>)> {
        const MOST: usize = 2;
        let mut message = [0u8; Hello::SIZE];
        // Room for both descriptors; the kernel closes any others that are sent.
        let mut control: MaybeUninit<[u64; 8]> = MaybeUninit::zeroed();
        // SAFETY: an all-zero header is one; all that it points to lives during the calls. The
        // kernel fills in the control messages, which are walked with the C library's macros within
        // the length that it gives.
        let (whole, [memory, table]) = unsafe {
            let mut part =
                libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
            let mut header: libc::msghdr = zeroed();
            header.msg_iov = &mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size_of::<[c_int; MOST]>() as u32) as _;
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            let length = libc::syscall(libc::SYS_recvmsg, self.fd, &raw mut header, flags);
            if length < 0 {
                return None;
            }
            let first = libc::CMSG_FIRSTHDR(&header);
            if first.is_null()
                || (*first).cmsg_level != libc::SOL_SOCKET
                || (*first).cmsg_type != libc::SCM_RIGHTS
            {
                return None;
            }
            let cut = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
            let length_of_all: usize = (*first).cmsg_len as _;
            let bytes = length_of_all.saturating_sub(libc::CMSG_LEN(0) as usize);
            let mut files = [NO_FILE; MOST];
            for (i, file) in files.iter_mut().enumerate().take(bytes / size_of::<c_int>()) {
                *file = libc::CMSG_DATA(first).cast::<c_int>().add(i).read_unaligned();
            }
            (length == Hello::SIZE as c_long && !cut, files)
        };
        let hello = Hello::read(&message).filter(|_| whole);
        let page = hello.and_then(|_| map(memory)).filter(|page| page.is_known());
        let needs_table = hello.is_some_and(|hello| hello.threads) && page.is_some();
        let threads = if needs_table { map_threads(table) } else { None };
        [memory, table].into_iter().filter(|file| *file != NO_FILE).for_each(close);
        Some((page?, threads))
    }
}

/// Maps the page, if its memory cannot be taken away again.
fn map(memory: c_int) -> Option<&'static Page> {
    // The memory is as long as the page and is sealed against getting shorter, so that every access
    // finds it. It is never unmapped, only covered with private memory (`cover`).
    // SAFETY: plain numbers; the memory stays, and it is all atomic words, of which every value is
    // valid, so others may write at the same time.
    unsafe {
        let seals = libc::syscall(libc::SYS_fcntl, memory, libc::F_GET_SEALS);
        if seals < 0
            || seals & c_long::from(libc::F_SEAL_SHRINK) == 0
            || status(memory)?.st_size < SIZE as i64
        {
            return None;
        }
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let address = libc::mmap(null_mut(), SIZE, rights, flags, memory, 0);
        if address == libc::MAP_FAILED { None } else { Some(&*address.cast::<Page>()) }
    }
}

/// Maps the table of threads, if its memory cannot be taken away again.
fn map_threads(table: c_int) -> Option<&'static ThreadTable> {
    // SAFETY: plain numbers. What has no type of file is no file that could be cut: an array of the
    // kernel's, which is as long as it is mapped, or it could not be. It stays mapped as the page
    // does, and is read by whole atomic words.
    unsafe {
        if status(table)?.st_mode & libc::S_IFMT != 0 {
            return None;
        }
        let (rights, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        let address = libc::mmap(null_mut(), ThreadTable::SIZE, rights, flags, table, 0);
        if address == libc::MAP_FAILED { None } else { Some(&*address.cast::<ThreadTable>()) }
    }
}

/// Replaces a page with private zeros: a thread that is just reading it finds that nothing holds.
pub(crate) fn cover(page: *const Page) {
    cover_with_zeros(page.cast(), SIZE);
}

/// Replaces the table of threads with private zeros: nothing is known of any thread.
pub(crate) fn cover_threads(table: *const ThreadTable) {
    cover_with_zeros(table.cast(), ThreadTable::SIZE);
}

fn cover_with_zeros(memory: *const c_void, size: usize) {
    let (rights, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
    );
    // SAFETY: it was mapped here with this size, and nothing else lies there.
    unsafe { libc::mmap(memory.cast_mut(), size, rights, flags, -1, 0) };
}

fn close(fd: c_int) {
    // SAFETY: a plain number.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Moves a descriptor up: low numbers are left to the program, which may rely on getting the next
/// ones.
fn out_of_the_way(fd: c_int) -> c_int {
    const HIGH: c_int = 700;
    // SAFETY: plain numbers.
    let high = unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, HIGH) } as c_int;
    if high < 0 {
        return fd;
    }
    close(fd);
    high
}

/// Whether the other end belongs to this user, or to root.
fn is_trusted(fd: c_int) -> bool {
    // SAFETY: all-zero credentials are some; the call writes at most as many bytes as it is told.
    unsafe {
        let mut peer: libc::ucred = zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let place = (&raw mut peer).cast::<c_void>();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut length) == 0
            && (peer.uid == 0 || peer.uid == libc::geteuid())
    }
}

fn inode(fd: c_int) -> Option<u64> {
    let status = status(fd)?;
    Some(status.st_ino).filter(|_| status.st_mode & libc::S_IFMT == libc::S_IFSOCK)
}

fn status(fd: c_int) -> Option<libc::stat> {
    // SAFETY: an all-zero status is one, and the call writes only it.
    unsafe {
        let mut status: libc::stat = zeroed();
        (libc::fstat(fd, &mut status) == 0).then_some(status)
    }
}
