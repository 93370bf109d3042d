//! Threads that wait behind each other on one CPU, and when to leave it.
//!
//! Problem. A thread that sleeps so that a laggard may have its CPU is woken by that laggard. The
//! kernel wakes a thread where it slept if all CPUs are in use. Two threads of a program can
//! therefore come to share a CPU and hand it to each other at every barrier, for as long as the
//! program lasts. No thread waits for a CPU elsewhere, so the kernel balances nothing. Each barrier
//! then costs two turns on that CPU and a wake-up.
//!
//! Idea. A thread that repeatedly finds a laggard queued behind itself goes to another CPU that has
//! fewer siblings. Balance scheduling (Sukwong and Kim, 2011) places threads like that. After the
//! move, the kernel is free to move the thread again. Together with many other threads it is better
//! to stay: both threads then have a turn when one of them has. The barrier therefore measures how
//! long a round takes while they share a CPU, and how long while they are apart. Where rounds are
//! longer apart, a thread that waits for a preempted laggard goes to its CPU. The next try comes
//! after twice as many barriers.

use super::atomic::AtomicU64;
use super::atomic::Ordering::Relaxed;

/// How often a laggard is found behind its waiter before a thread moves, where moving has paid, and
/// where it never did. Chosen: a move takes some microseconds, less than one of so many wake-ups,
/// and a try lasts for [`TRY`] rounds.
pub(crate) const FEW: u64 = 16;
const MANY: u64 = 1 << 17;
/// The minimum duration of a try, in previous rounds.
pub(crate) const TRY: u64 = 1 << 10;

/// How the threads of a barrier are placed. Threads may overwrite each other's figures: all of it
/// is a guess, and nothing depends on it.
pub(crate) struct BarrierPlacement {
    /// How often a laggard was found behind its waiter since a thread moved.
    behind: AtomicU64,
    /// How often a laggard has to be found before a thread moves; 0: [`FEW`].
    most: AtomicU64,
    /// Since when the placement is as it is: the round, and the time, ns.
    round: AtomicU64,
    time: AtomicU64,
    /// How long a round took while the threads shared a CPU, ns; 0: they share it now.
    together: AtomicU64,
}

impl BarrierPlacement {
    pub(crate) const fn new() -> BarrierPlacement {
        BarrierPlacement {
            behind: AtomicU64::new(0),
            most: AtomicU64::new(0),
            round: AtomicU64::new(0),
            time: AtomicU64::new(0),
            together: AtomicU64::new(0),
        }
    }

    /// A laggard is behind its waiter in this round. If it is time, the waiter goes elsewhere by
    /// `go`, which returns whether it went; this is returned.
    pub(crate) fn behind(&self, round: u64, now: u64, go: impl FnOnce() -> bool) -> bool {
        let behind = self.behind.fetch_add(1, Relaxed) + 1;
        if behind == 1 {
            self.stand(round, now, 0);
        }
        let most = self.most.load(Relaxed).max(FEW);
        if behind < most {
            return false;
        }
        self.behind.store(0, Relaxed);
        let (rounds, time) = self.so_far(round, now);
        let gone = go();
        if gone {
            self.stand(round, now, (time / rounds.max(1)).max(1));
        } else {
            self.later();
        }
        gone
    }

    /// A laggard was preempted on another CPU than its waiter's in this round. Returns whether the
    /// two should share a CPU.
    pub(crate) fn is_worse(&self, round: u64, now: u64) -> bool {
        let together = self.together.load(Relaxed);
        let (rounds, time) = self.so_far(round, now);
        if together == 0 || time < TRY.saturating_mul(together) {
            return false;
        }
        if time <= rounds.saturating_mul(together) {
            self.most.store(FEW, Relaxed);
            self.stand(round, now, together);
            return false;
        }
        self.later();
        self.stand(round, now, 0);
        true
    }

    fn stand(&self, round: u64, now: u64, together: u64) {
        self.round.store(round, Relaxed);
        self.time.store(now, Relaxed);
        self.together.store(together, Relaxed);
    }

    /// How many rounds there were with the present placement, and how long they took.
    fn so_far(&self, round: u64, now: u64) -> (u64, u64) {
        let (from, since) = (self.round.load(Relaxed), self.time.load(Relaxed));
        (round.saturating_sub(from), now.saturating_sub(since))
    }

    fn later(&self) {
        self.most.store((2 * self.most.load(Relaxed).max(FEW)).min(MANY), Relaxed);
    }
}
