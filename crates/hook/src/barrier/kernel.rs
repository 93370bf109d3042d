//! What waiting needs of the machine: the futex, the clock, and the table of what threads do.

use core::sync::atomic::AtomicU64;

use cosched_page::RunState;

use super::protocol::Waiting;
use super::way::Laggards;
use crate::{link, sys};

/// The machine that this runs on.
pub(super) struct Kernel;

impl Waiting for Kernel {
    /// One to three microseconds, by the processor: less than a system call or two.
    const LOOKS: u32 = 64;

    #[inline]
    fn pause(&self) {
        core::hint::spin_loop();
    }

    fn give_way(&self) {
        sys::give_way();
    }

    fn sleep(&self, word: &AtomicU64, seen: u32) -> bool {
        sys::sleep_on(word, seen)
    }

    fn wake(&self, word: &AtomicU64) {
        sys::wake_all(word);
    }

    fn now(&self) -> u64 {
        sys::nanoseconds()
    }

    fn knowledge(&self) -> impl Fn(u32) -> Laggards {
        let table = link::threads();
        move |tid| {
            let Some(entry) = table.and_then(|table| table.entry(tid)) else {
                return Laggards::Unknown;
            };
            match entry.state {
                RunState::Unknown => Laggards::Unknown,
                RunState::Running => Laggards::Run,
                RunState::Blocked => Laggards::Blocked,
                RunState::Runnable if sys::is_here(entry.cpu) => Laggards::QueuedHere,
                RunState::Runnable => Laggards::QueuedElsewhere,
            }
        }
    }
}
