//! What waiting needs of the machine: the futex, the clock, and the table of what threads do.

use core::sync::atomic::AtomicU64;

use cosched_page::{ALL_ARRIVED, ARRIVED, BarrierTally, DONATE, Passage, RunState};

use super::protocol::Waiting;
use super::wait::Wait;
use super::wait_mode::Laggards;
use crate::{link, sys};

/// The machine that this runs on, and where a thread counts what it does, if anywhere.
pub(super) struct HostKernel(pub(super) Option<&'static BarrierTally>);

impl Waiting for HostKernel {
    /// One to three microseconds, by the processor: less than a system call or two.
    const CHECKS: u32 = 64;

    #[inline]
    fn pause(&self) {
        core::hint::spin_loop();
    }

    fn yield_cpu(&self) {
        sys::yield_cpu();
    }

    fn donate(&self, tid: u32) {
        sys::tell_scheduler(DONATE, tid.into());
    }

    fn tell_arrival(&self, of_all: bool, time: u64) {
        if link::is_directed() {
            sys::tell_scheduler(if of_all { ALL_ARRIVED } else { ARRIVED }, time);
        }
    }

    fn sleep(&self, word: &AtomicU64, seen: u32, at_most: Option<u64>) -> bool {
        sys::sleep_on(word, seen, at_most)
    }

    fn in_slot<T>(&self, sleep: impl FnOnce() -> T) -> Option<T> {
        match link::page() {
            Some(page) => page.in_slot(sleep),
            // Without cosched the load is not known, and spinning may be in vain.
            None => Some(sleep()),
        }
    }

    fn wake(&self, word: &AtomicU64) {
        sys::wake_all(word);
    }

    fn now(&self) -> u64 {
        sys::nanoseconds()
    }

    fn knowledge(&self) -> impl Fn(u32) -> Laggards {
        let table = link::threads();
        let is_directed = link::is_directed();
        let here = if link::is_grouped() { Laggards::NextHere } else { Laggards::QueuedHere };
        move |tid| {
            let Some(entry) = table.and_then(|table| table.entry(tid)) else {
                return Laggards::Unknown;
            };
            match entry.state {
                RunState::Unknown => Laggards::Unknown,
                RunState::Running => Laggards::Run,
                RunState::Blocked => Laggards::Blocked,
                RunState::Preempted | RunState::Woken if is_directed => Laggards::CanHave,
                RunState::Preempted | RunState::Woken if sys::is_here(entry.cpu) => here,
                RunState::Preempted => Laggards::QueuedElsewhere,
                RunState::Woken => Laggards::WokenElsewhere,
            }
        }
    }

    fn join(&self, tid: u32) {
        if let Some(entry) = link::threads().and_then(|table| table.entry(tid)) {
            link::moving(|| sys::go_to(entry.cpu.into()));
        }
    }

    fn spread(&self, siblings: impl Iterator<Item = u32>) -> bool {
        let Some(table) = link::threads() else { return false };
        let mut on = [0u8; 64];
        for entry in siblings.filter_map(|tid| table.entry(tid)) {
            if let Some(count) = on.get_mut(usize::from(entry.cpu)) {
                *count = count.saturating_add(1);
            }
        }
        link::moving(|| sys::go_where_fewer_are(&on))
    }

    #[inline]
    fn note(&self, how: Passage, wait: Wait) {
        let Some(tally) = self.0 else { return };
        tally.passed(how);
        if wait.is_long() {
            tally.waited(wait.spent, wait.knew);
        }
        if wait.is_timed() {
            tally.spun(wait.spun());
            if wait.is_first {
                tally.completed(wait.waited(), wait.length());
            }
        }
        if let Some(after_first) = wait.after_first {
            tally.arrived(after_first);
        }
    }

    #[inline]
    fn is_counted(&self) -> bool {
        self.0.is_some()
    }
}
