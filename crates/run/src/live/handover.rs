//! A place for one snapshot, between the scheduling thread and the background.
//!
//! Only the newest snapshot is of use, so there is a place for one and no queue. The scheduling
//! thread never waits: while the other one has its hands in the place, for the time of a move, a
//! snapshot is dropped, and the bell (an eventfd) rings without waiting.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use cosched_results::live::Snapshot;
use rustix::event::{EventfdFlags, eventfd};

/// The place, and what both sides tell one another.
#[derive(Debug)]
pub(super) struct Handover {
    newest: Mutex<Option<Snapshot>>,
    requested: AtomicBool,
    over: AtomicBool,
    bell: OwnedFd,
}

impl Handover {
    pub(super) fn new() -> io::Result<Handover> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Handover {
            newest: Mutex::new(None),
            requested: AtomicBool::new(false),
            over: AtomicBool::new(false),
            bell,
        })
    }

    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Puts a snapshot in place of the last one.
    pub(super) fn offer(&self, snapshot: Snapshot) {
        if let Ok(mut newest) = self.newest.try_lock() {
            *newest = Some(snapshot);
        }
        self.ring();
    }

    /// Ends the other side's work.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.ring();
    }

    /// Says whether snapshots are requested from now on.
    pub(super) fn request(&self, requested: bool) {
        self.requested.store(requested, Ordering::Relaxed);
    }

    /// What has come since the last time, after the bell.
    pub(super) fn take(&self) -> Option<Snapshot> {
        // How often it rang does not matter, nor whether it did.
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        self.newest.lock().ok()?.take()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// What becomes readable when it rings.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn ring(&self) {
        // It can only be refused while it rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}
