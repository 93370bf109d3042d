//! The memory that cosched and the scheduler in the kernel share, as `bpf/scheduler.h` has it.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use cosched_core::Nanos;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::ExtCounts;

/// How many programs the scheduler can have. The first is for threads that have put themselves
/// into its class.
pub(super) const PROGRAMS: usize = 256;

/// The number of the program in a slot of the run.
pub(super) fn number(slot: u16) -> usize {
    usize::from(slot) + 1
}

/// `struct control`.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct SharedControl {
    programs: AtomicU64,
    turns_until: AtomicU64,
    stopped: AtomicU64,
}

impl SharedControl {
    pub(super) fn use_programs(&self, count: usize) {
        self.programs.store(count as u64, Relaxed);
    }

    pub(super) fn turns_are_valid_until(&self, until: Nanos) {
        self.turns_until.store(until.0, Relaxed);
    }

    /// Why the kernel has ended the scheduler: `enum scx_exit_kind`.
    pub(super) fn why_stopped(&self) -> Option<&'static str> {
        match self.stopped.load(Relaxed) {
            0 => None,
            1026 => Some("a thread waited for a CPU for too long"),
            64..=66 => Some("it was removed"),
            67 => Some("a user ended it by SysRq"),
            _ => Some("the kernel has found an error in it"),
        }
    }
}

/// `struct program`.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct SharedProgram {
    slice: AtomicU64,
    weight: AtomicU32,
    fills: AtomicU32,
    used: AtomicU64,
    donations: AtomicU64,
    handed_over: AtomicU64,
    followed: AtomicU64,
    exact: AtomicU64,
    starts: AtomicU64,
    vtime: [AtomicU64; 2],
    waits: AtomicU64,
}

const _: () = assert!(size_of::<SharedProgram>() == 88 && size_of::<SharedControl>() == 24);

impl SharedProgram {
    pub(super) fn set_slice(&self, slice: Nanos) {
        self.slice.store(slice.0, Relaxed);
    }

    pub(super) fn set_weight(&self, weight: u32) {
        self.weight.store(weight, Relaxed);
    }

    pub(super) fn set_fills(&self, fills: bool) {
        self.fills.store(fills.into(), Relaxed);
    }

    pub(super) fn counts(&self) -> ExtCounts {
        ExtCounts {
            used: Nanos(self.used.load(Relaxed)),
            starts: self.starts.load(Relaxed),
            donations: self.donations.load(Relaxed),
            handed_over: self.handed_over.load(Relaxed),
            followed: self.exact.load(Relaxed),
        }
    }
}

/// An array of the kernel, mapped into this process.
#[derive(Debug)]
pub(super) struct Mapped<T> {
    first: NonNull<T>,
    entries: usize,
}

// SAFETY: the memory belongs to this value, and its fields are atomic.
unsafe impl<T: Sync> Send for Mapped<T> {}

impl<T> Mapped<T> {
    /// Maps so many entries.
    pub(super) fn new(array: BorrowedFd<'_>, entries: usize) -> io::Result<Mapped<T>> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let length = entries * size_of::<T>();
        // SAFETY: a new mapping at a place of the kernel's choice; no other memory is touched.
        let memory =
            unsafe { mmap(std::ptr::null_mut(), length, rights, MapFlags::SHARED, array, 0) }?;
        let first = NonNull::new(memory.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Mapped { first, entries })
    }

    pub(super) fn at(&self, entry: usize) -> &T {
        assert!(entry < self.entries, "there is no entry {entry}");
        // SAFETY: inside the mapping, which is page-aligned and lives as long as this value. The
        // kernel's programs change the fields meanwhile, which is why these are atomic.
        unsafe { self.first.add(entry).as_ref() }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: this very mapping, and nothing refers to it any more.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), self.entries * size_of::<T>()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}
