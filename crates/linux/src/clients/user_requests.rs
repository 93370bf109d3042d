//! A box into which another thread puts what users request of a run, and an eventfd (the bell) that
//! wakes the scheduling thread for it.
//!
//! A request never waits, and is not answered here: the [undo log](crate::safety::undo) shows when
//! it is done. The scheduling thread sleeps as long as there is no request.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};

/// More than users request at once; any further request is dropped.
const MOST: usize = 1024;

/// What users request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserRequest {
    /// Detach the program that this process belongs to.
    Detach(i32),
}

/// The box with requests.
#[derive(Debug)]
pub struct UserRequests {
    waiting: Mutex<VecDeque<UserRequest>>,
    bell: OwnedFd,
}

impl UserRequests {
    /// An empty box.
    ///
    /// # Errors
    /// When the process cannot open another file.
    pub fn new() -> io::Result<UserRequests> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(UserRequests { waiting: Mutex::new(VecDeque::new()), bell })
    }

    /// Adds a request.
    pub fn put(&self, request: UserRequest) {
        if let Ok(mut waiting) = self.waiting.lock() {
            if waiting.len() < MOST {
                waiting.push_back(request);
            }
        }
        // The write can only fail while the bell rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Takes all requests out, and stops the bell.
    pub fn take(&self) -> Vec<UserRequest> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        self.waiting.lock().map(|mut waiting| waiting.drain(..).collect()).unwrap_or_default()
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
        user_requests.put(UserRequest::Detach(1));
        user_requests.put(UserRequest::Detach(2));
        assert_eq!(user_requests.take(), [UserRequest::Detach(1), UserRequest::Detach(2)]);
        assert_eq!(user_requests.take(), []);
    }
}
