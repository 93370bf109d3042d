//! The records that the programs in the kernel write, read through shared memory.
//!
//! Each record has a version that is odd while it is being written. A reader that finds it odd, or
//! changed after it has read, reads again. No lock, no system call: reading a thousand threads
//! takes some tens of microseconds.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use cosched_core::Nanos;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{
    ACTIVITIES, LOCKS, LockArrival, LockWait, Preemptions, ThreadActivity, ThreadUse, Ticks,
    Transfers,
};

/// As many as `RECORDS` in `bpf/monitor.h`.
pub(super) const RECORDS: usize = 32768;
/// What stands for "ended" among the activities' numbers.
const ENDED: u32 = ACTIVITIES as u32;
/// A record that is still being written after this many reads is reported as it is.
const PATIENCE: usize = 1000;

/// `struct record` of `bpf/monitor.h`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct MonitorRecord {
    pub(super) version: u32,
    pub(super) program: u32,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) state: u32,
    pub(super) cpu: u32,
    pub(super) since: u64,
    pub(super) lock: u64,
    pub(super) time: [u64; ACTIVITIES],
    pub(super) waits: [u64; ACTIVITIES],
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) expired: u64,
    pub(super) by_sibling: u64,
    pub(super) migrations: u64,
    pub(super) user_ticks: u64,
    pub(super) kernel_ticks: u64,
    pub(super) waker: u32,
    pub(super) unused: u32,
    pub(super) transfers: u64,
    pub(super) across: u64,
    pub(super) arrivals: [[u64; 2]; 2],
    pub(super) locks: [[u64; 3]; LOCKS],
}

impl MonitorRecord {
    pub(super) fn has_ended(&self) -> bool {
        self.state == ENDED
    }

    /// The locks, with the present wait.
    fn locks(&self, now: u64) -> [LockWait; LOCKS] {
        let mut locks = self.locks.map(|[lock, time, taken]| LockWait {
            lock,
            time: Nanos(time),
            taken: Nanos(taken),
        });
        let waits = ThreadActivity::ALL.get(self.state as usize).is_some_and(|now| now.is_lock());
        if let Some(own) = locks.iter_mut().find(|own| waits && own.lock == self.lock) {
            own.time += Nanos(now.saturating_sub(self.since));
        }
        locks
    }

    /// In the form of every source, at time `now` (nanoseconds of the kernel's monotonic clock).
    pub(super) fn reported(&self, now: u64) -> ThreadUse {
        let mut time = self.time.map(Nanos);
        let activity = ThreadActivity::ALL.get(self.state as usize).copied();
        if let Some(activity) = activity {
            time[activity as usize] += Nanos(now.saturating_sub(self.since));
        }
        ThreadUse {
            program: self.program,
            process: self.process as i32,
            thread: self.thread as i32,
            now: activity,
            cpu: u16::try_from(self.cpu).ok(),
            since: Nanos(self.since),
            time,
            voluntary: self.voluntary,
            involuntary: self.involuntary,
            preemptions: Some(Preemptions { expired: self.expired, by_sibling: self.by_sibling }),
            migrations: Some(self.migrations),
            ticks: Ticks { user: self.user_ticks, kernel: self.kernel_ticks },
            transfers: Transfers { all: self.transfers, across: self.across },
            arrivals: self.arrivals.map(|[window, at]| LockArrival { window, at: Nanos(at) }),
            locks: self.locks(now),
            hidden: false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Records {
    first: NonNull<MonitorRecord>,
}

// SAFETY: the memory is only read, and belongs to this value.
unsafe impl Send for Records {}

impl Records {
    /// Maps the array behind a descriptor.
    pub(super) fn map(array: BorrowedFd<'_>) -> rustix::io::Result<Records> {
        let length = RECORDS * size_of::<MonitorRecord>();
        // SAFETY: a new mapping at a place of the kernel's choice; no other memory is touched.
        let memory = unsafe {
            mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, array, 0)
        }?;
        let first = NonNull::new(memory.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Records { first })
    }

    /// One record, whole.
    pub(super) fn get(&self, slot: usize) -> MonitorRecord {
        assert!(slot < RECORDS, "there is no record {slot}");
        // SAFETY: inside the mapping, which is page-aligned and as long as all records.
        let shared = unsafe { self.first.add(slot) };
        // SAFETY: the version is the first field; the kernel writes it atomically.
        let version = unsafe { AtomicU32::from_ptr(shared.cast::<u32>().as_ptr()) };
        let mut record = MonitorRecord::default();
        for _ in 0..PATIENCE {
            let before = version.load(Ordering::Acquire);
            // SAFETY: as above; that it may change meanwhile is what the version tells.
            record = unsafe { shared.read_volatile() };
            fence(Ordering::Acquire);
            if before % 2 == 0 && version.load(Ordering::Relaxed) == before {
                break;
            }
            std::hint::spin_loop();
        }
        record
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // SAFETY: this very mapping, and nothing refers to it any more.
        let unmapped =
            unsafe { munmap(self.first.as_ptr().cast(), RECORDS * size_of::<MonitorRecord>()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}
