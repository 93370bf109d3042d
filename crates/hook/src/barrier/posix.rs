//! `pthread_barrier_wait`, for barriers that were made while this library replaces barriers.
//!
//! A `pthread_barrier_t` has 32 bytes, of which glibc uses 20. glibc makes it in any case, so that
//! it stays valid. The last eight bytes then say which barrier of the pool stands for it, and the
//! pool knows the address of that barrier. Bytes that only look like a mark, or a copied barrier,
//! are therefore not mistaken for one. These are left to glibc: barriers shared among processes,
//! barriers that were made before or elsewhere, barriers without a free place in the pool, and all
//! barriers where cosched says so.
//!
//! glibc has several versions of each name, with one function behind all versions in any release.
//! The linker's next one is therefore right for every caller.

use core::ffi::{c_int, c_uint};
use core::mem::{offset_of, size_of, transmute};
use core::num::NonZeroU64;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::{pthread_barrier_t, pthread_barrierattr_t};

use super::pool;
use super::protocol::Passed;
use crate::link;
use crate::runtime::OneFunction;
use crate::sys::Errno;

/// A barrier of glibc, as far as it matters here.
#[repr(C)]
struct GlibcBarrier {
    glibcs: [u32; 6],
    ours: AtomicU64,
}

const _: () = assert!(size_of::<GlibcBarrier>() == size_of::<pthread_barrier_t>());
const _: () = assert!(offset_of!(GlibcBarrier, ours) >= 20 && pool::PLACES <= 256);

/// The upper bytes of the mark. The lowest byte is the number of the barrier in the pool.
const MARK: u64 = u64::from_le_bytes(*b"\0cosched");

const LIBRARY: &[u8] = b"libpthread";

/// The word of a barrier that says which barrier of the pool stands for it.
///
/// # Safety
/// The pointer has to be that of a barrier.
unsafe fn mark<'a>(barrier: *mut pthread_barrier_t) -> &'a AtomicU64 {
    // SAFETY: as large and as aligned as this shape; every value of an atomic word is valid.
    unsafe { &(*barrier.cast::<GlibcBarrier>()).ours }
}

/// The barrier of the pool that stands for this one, and how many threads wait there.
///
/// # Safety
/// The pointer has to be that of a barrier.
#[inline]
unsafe fn ours(barrier: *mut pthread_barrier_t) -> Option<(usize, NonZeroU64)> {
    // SAFETY: as the caller promises.
    let number = unsafe { mark(barrier) }.load(Acquire).wrapping_sub(MARK);
    let number = usize::try_from(number).ok().filter(|number| *number < pool::PLACES)?;
    Some((number, pool::expected(number, barrier as usize)?))
}

/// Replaces a barrier that was just made, where that is possible.
///
/// # Safety
/// The pointer has to be that of a barrier, with its attributes or none.
unsafe fn adopt(
    barrier: *mut pthread_barrier_t,
    attributes: *const pthread_barrierattr_t,
    count: c_uint,
) {
    let _errno = Errno::keep();
    let owner = barrier as usize;
    // An earlier barrier in this memory was never destroyed.
    if let Some(number) = pool::owned_by(owner) {
        pool::give_back(number);
    }
    // SAFETY: as the caller promises.
    let is_private = unsafe { attributes.is_null() || !is_shared(attributes) };
    if !is_private || !super::are_ours() {
        return;
    }
    let Some(number) = pool::take(owner) else { return };
    pool::expect(number, count);
    // SAFETY: as the caller promises.
    unsafe { mark(barrier) }.store(MARK | number as u64, Release);
}

/// Whether the attributes make a barrier that several processes share.
///
/// # Safety
/// The pointer has to be that of attributes.
unsafe fn is_shared(attributes: *const pthread_barrierattr_t) -> bool {
    let mut shared: c_int = 0;
    // SAFETY: as the caller promises; the call writes one number.
    let failed = unsafe { libc::pthread_barrierattr_getpshared(attributes, &mut shared) };
    failed != 0 || shared != libc::PTHREAD_PROCESS_PRIVATE
}

/// Makes a barrier as the C library does, then replaces it where that is possible.
///
/// # Safety
/// As POSIX has it: `barrier` is memory for a barrier that no thread uses meanwhile, and
/// `attributes` is null or points to attributes that were initialized.
// SAFETY: the name and the types are those of POSIX; the C library makes every barrier.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_barrier_init(
    barrier: *mut pthread_barrier_t,
    attributes: *const pthread_barrierattr_t,
    count: c_uint,
) -> c_int {
    static REAL: OneFunction = OneFunction::named("pthread_barrier_init\0");
    // SAFETY: only a type; it is what POSIX declares for this name.
    type Init =
        unsafe extern "C" fn(*mut pthread_barrier_t, *const pthread_barrierattr_t, c_uint) -> c_int;
    // SAFETY: `called` returns the C library's own function of this name or ends the program. It
    // gets the arguments that were meant for it. Where it did not fail, `barrier` is a barrier.
    unsafe {
        let failed = transmute::<usize, Init>(REAL.called(LIBRARY))(barrier, attributes, count);
        if failed == 0 {
            adopt(barrier, attributes, count);
        }
        failed
    }
}

/// Waits at the barrier of the pool that stands for this one, or else at the C library's.
///
/// # Safety
/// As POSIX has it: `barrier` was initialized, and is not destroyed while threads wait there.
// SAFETY: the name and the types are those of POSIX; what is not ours is passed on.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int {
    static REAL: OneFunction = OneFunction::named("pthread_barrier_wait\0");
    // SAFETY: only a type; it is what POSIX declares for this name.
    type WaitFunction = unsafe extern "C" fn(*mut pthread_barrier_t) -> c_int;
    // SAFETY: a program passes a barrier, so its memory may be read. `called` returns the C
    // library's own function of this name, which gets what was meant for it.
    unsafe {
        match ours(barrier) {
            Some((number, count)) => match pool::pass(number, count) {
                Passed::Last => libc::PTHREAD_BARRIER_SERIAL_THREAD,
                Passed::All | Passed::Shut => 0,
            },
            None => {
                let passed = transmute::<usize, WaitFunction>(REAL.called(LIBRARY))(barrier);
                if passed == libc::PTHREAD_BARRIER_SERIAL_THREAD {
                    link::passes();
                }
                passed
            }
        }
    }
}

/// Frees the barrier of the pool that stands for this one, if any, and destroys this one.
///
/// # Safety
/// As POSIX has it: `barrier` was initialized, and no thread waits there.
// SAFETY: the name and the types are those of POSIX; the C library destroys every barrier.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int {
    static REAL: OneFunction = OneFunction::named("pthread_barrier_destroy\0");
    // SAFETY: only a type; it is what POSIX declares for this name.
    type Destroy = unsafe extern "C" fn(*mut pthread_barrier_t) -> c_int;
    // SAFETY: a program passes a barrier, so its memory may be read and written. `called` returns
    // the C library's own function of this name, which gets what was meant for it.
    unsafe {
        if let Some((number, _)) = ours(barrier) {
            mark(barrier).store(0, Relaxed);
            pool::give_back(number);
        }
        transmute::<usize, Destroy>(REAL.called(LIBRARY))(barrier)
    }
}
