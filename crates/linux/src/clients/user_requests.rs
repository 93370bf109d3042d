//! A box into which another thread puts what users request of a run, and an eventfd (the bell) that
//! wakes the scheduling thread for it.
//!
//! A request never waits, and is not answered here: the [undo log](crate::safety::undo) shows when
//! it is done. The scheduling thread sleeps as long as there is no request.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};

/// More than users request at once; any further request is dropped.
const MOST: usize = 1024;

/// The box with requests to detach programs, each named by one of its processes.
#[derive(Debug)]
pub struct UserRequests {
    waiting: Mutex<Vec<i32>>,
    bell: OwnedFd,
}

impl UserRequests {
    /// An empty box.
    ///
    /// # Errors
    /// When the process cannot open another file.
    pub fn new() -> io::Result<UserRequests> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(UserRequests { waiting: Mutex::default(), bell })
    }

    /// Adds a request to detach the program that this process belongs to.
    pub fn put(&self, process: i32) {
        if let Ok(mut waiting) = self.waiting.lock() {
            if waiting.len() < MOST {
                waiting.push(process);
            }
        }
        // The write can only fail while the bell rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Takes all requests out, and stops the bell.
    pub fn take(&self) -> Vec<i32> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        self.waiting.lock().map(|mut waiting| std::mem::take(&mut *waiting)).unwrap_or_default()
    }
}

/// Readable while there is a request.
impl AsFd for UserRequests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_once_and_in_order() {
        let user_requests = UserRequests::new().unwrap();
        user_requests.put(1);
        user_requests.put(2);
        assert_eq!(user_requests.take(), [1, 2]);
        assert!(user_requests.take().is_empty());
    }
}
