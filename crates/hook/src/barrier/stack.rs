//! Threads that wait behind each other on one CPU, and when to leave it.
//!
//! Problem. A thread that sleeps so that a laggard may have its CPU is woken by that laggard. The
//! kernel wakes a thread where it slept if all CPUs are in use. Two threads of a program can
//! therefore come to share a CPU and to hand it to each other at every barrier, for as long as the
//! program lasts. No thread ever waits for a CPU elsewhere, so nothing is balanced. Each barrier
//! then costs two turns on that CPU and a wake-up.
//!
//! Idea. A thread that finds a laggard queued behind itself again and again goes to another CPU
//! that has fewer siblings. Threads stand like that under balance scheduling (Sukwong and Kim,
//! 2011). From there on the kernel does with them what it likes. Together with many other threads
//! it is better to stay: then both have a turn when one of them has. The barrier therefore measures
//! how long a round takes while they stand behind each other, and how long while they are apart.
//! Where rounds are longer apart, a thread that waits for a preempted laggard goes to it, and the
//! next try comes after twice as many meetings.

use super::atomic::AtomicU64;
use super::atomic::Ordering::Relaxed;

/// How often a laggard is found behind its waiter before a thread moves, where that has paid, and
/// where it never did. Chosen: a move takes some microseconds, less than one of so many wake-ups;
/// and a try lasts for [`TRY`] rounds.
pub(crate) const FEW: u64 = 16;
const MANY: u64 = 1 << 17;
/// For how long a try lasts at least: as long as so many rounds took before.
pub(crate) const TRY: u64 = 1 << 10;

/// How the threads of a barrier stand. Threads may write over each other: all of it is a guess, and
/// nothing depends on it.
pub(crate) struct Stack {
    /// How often a laggard was found behind its waiter since a thread moved.
    behind: AtomicU64,
    /// How often before a thread moves; 0: [`FEW`].
    most: AtomicU64,
    /// Since when the threads stand as they do: the round, and the time, ns.
    round: AtomicU64,
    time: AtomicU64,
    /// How long a round took while they stood behind each other, ns; 0: they do.
    together: AtomicU64,
}

impl Stack {
    pub(crate) const fn new() -> Stack {
        Stack {
            behind: AtomicU64::new(0),
            most: AtomicU64::new(0),
            round: AtomicU64::new(0),
            time: AtomicU64::new(0),
            together: AtomicU64::new(0),
        }
    }

    /// A laggard is behind the thread that waits for it in this round. That goes elsewhere by `go`
    /// if it is time, which says whether it did; tells the same.
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

    /// A laggard was preempted on another CPU than that of the thread that waits for it in this
    /// round. Whether they had better be on one.
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

    /// How many rounds there were since the threads stand as they do, and how long they took.
    fn so_far(&self, round: u64, now: u64) -> (u64, u64) {
        let (from, since) = (self.round.load(Relaxed), self.time.load(Relaxed));
        (round.saturating_sub(from), now.saturating_sub(since))
    }

    fn later(&self) {
        self.most.store((2 * self.most.load(Relaxed).max(FEW)).min(MANY), Relaxed);
    }
}
