//! A box into which another thread puts what users ask of a run, and a bell that wakes the
//! scheduling thread for it.
//!
//! Asking never waits, and nothing is answered here: the [undo log](crate::undo) shows when a
//! request is done. The bell is an eventfd, so the scheduling thread sleeps on as long as nothing
//! is asked.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};

/// More than users ask for at once; what comes beyond is dropped.
const MOST: usize = 1024;

/// What users ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Let go of the program that this process belongs to.
    Detach(i32),
}

/// The box.
#[derive(Debug)]
pub struct Asks {
    waiting: Mutex<VecDeque<Ask>>,
    bell: OwnedFd,
}

impl Asks {
    /// An empty one.
    ///
    /// # Errors
    /// When no further file can be had.
    pub fn new() -> io::Result<Asks> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Asks { waiting: Mutex::new(VecDeque::new()), bell })
    }

    /// Puts something in.
    pub fn put(&self, ask: Ask) {
        if let Ok(mut waiting) = self.waiting.lock() {
            if waiting.len() < MOST {
                waiting.push_back(ask);
            }
        }
        // It can only be refused while it rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Takes everything out, and stops the bell.
    pub fn take(&self) -> Vec<Ask> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        self.waiting.lock().map(|mut waiting| waiting.drain(..).collect()).unwrap_or_default()
    }
}

/// Readable while something is in it.
impl AsFd for Asks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_once_and_in_order() {
        let asks = Asks::new().unwrap();
        asks.put(Ask::Detach(1));
        asks.put(Ask::Detach(2));
        assert_eq!(asks.take(), [Ask::Detach(1), Ask::Detach(2)]);
        assert_eq!(asks.take(), []);
    }
}
