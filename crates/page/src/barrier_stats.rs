//! What the threads of a program did at barriers of cosched's library, as they count it themselves.
//!
//! Each thread counts on cache lines of its own, so that no thread waits for another. Where a
//! program has more threads than there are tallies, some share one, and lose nothing but time. A
//! barrier that is passed adds one to one number. Only a thread that had to wait for longer than
//! its first checks adds times, too, which it knows by then, and a few of the others.
//!
//! ```text
//! first line: how often this thread
//!   came last            (so the sum over all lines is how many barriers there were)
//!   spun briefly         some checks, without a clock
//!   spun                 for longer, to the end
//!   yielded              let others run between checks, to the end
//!   slept
//!   knew                 in a wait beyond the first checks: what the late threads did
//!   nanoseconds          that it waited after the first checks
//!   saw                  barriers of the runtime's own, as the first of its team
//! second line: nanoseconds
//!   that it spun, T_WS
//!   of latency, T'_BL, of the rounds at which it arrived first; and of the longest
//!   from a round's first arrival to its own, T_cpt, of some rounds
//! and of how many rounds that is
//! ```
//!
//! T_WS, T'_BL and T_cpt are those of the paper on Tidon, section 2.3, equations 2, 5, and 4 (6
//! where threads donate).

use core::ops::Add;
use core::sync::atomic::{AtomicU64, Ordering};

/// How many threads have a tally of their own.
pub const LINES: usize = 32;

/// How a thread has passed a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It came last.
    Last,
    /// Within its first checks.
    SpunBriefly,
    /// After spinning for longer.
    Spun,
    /// After yielding to other threads.
    Yielded,
    /// After sleeping.
    Slept,
}

/// What a thread counts.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct BarrierTally {
    passages: [AtomicU64; 5],
    knew: AtomicU64,
    nanoseconds: AtomicU64,
    seen: AtomicU64,
    spun: AtomicU64,
    latency: AtomicU64,
    longest: AtomicU64,
    completion: AtomicU64,
    timed: AtomicU64,
}

impl BarrierTally {
    /// A thread has passed.
    #[inline]
    pub fn passed(&self, how: Passage) {
        if let Some(count) = self.passages.get(how as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds how long the thread had waited after its first checks, and whether it knew what the
    /// laggards did.
    pub fn waited(&self, nanoseconds: u64, knew: bool) {
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.knew.fetch_add(knew.into(), Ordering::Relaxed);
    }

    /// Adds how long the thread has spun.
    pub fn spun(&self, nanoseconds: u64) {
        self.spun.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Adds the latency of a round at which the thread arrived first. `longest` is how long it was
    /// at least: the latency of a round may stand for several.
    pub fn completed(&self, latency: u64, longest: u64) {
        self.latency.fetch_add(latency, Ordering::Relaxed);
        self.longest.fetch_max(longest, Ordering::Relaxed);
    }

    /// Adds how long after the first thread of a round the thread arrived.
    pub fn arrived(&self, after_first: u64) {
        self.completion.fetch_add(after_first, Ordering::Relaxed);
        self.timed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a barrier of the thread's runtime, for which there are no other counts.
    #[inline]
    pub fn saw(&self) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts of this thread.
    pub(crate) fn read(&self) -> BarrierCounts {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let [barriers, spun_briefly, spun, yielded, slept] = self.passages.each_ref().map(read);
        let [knew, nanoseconds, seen] = [&self.knew, &self.nanoseconds, &self.seen].map(read);
        let [spun_nanoseconds, latency, longest] =
            [&self.spun, &self.latency, &self.longest].map(read);
        let [completion, timed] = [&self.completion, &self.timed].map(read);
        BarrierCounts {
            barriers,
            spun_briefly,
            spun,
            yielded,
            slept,
            knew,
            nanoseconds,
            spun_nanoseconds,
            latency,
            longest,
            completion,
            timed,
            seen,
        }
    }
}

/// The counts of several threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BarrierCounts {
    /// Barriers that were passed.
    pub barriers: u64,
    /// Waits that ended within the first checks.
    pub spun_briefly: u64,
    /// Waits that took longer, and in which the thread spun.
    pub spun: u64,
    /// Waits in which it yielded to others.
    pub yielded: u64,
    /// Waits in which it slept.
    pub slept: u64,
    /// The number of the longer waits in which it knew what the laggards did.
    pub knew: u64,
    /// The total time of the longer waits, ns.
    pub nanoseconds: u64,
    /// The time in which threads spun, in waits of any length, ns.
    pub spun_nanoseconds: u64,
    /// From the first arrival of a round to its completion, summed over the rounds, ns.
    pub latency: u64,
    /// The longest of these latencies, ns.
    pub longest: u64,
    /// From the first arrival of a round to a thread's own, summed over the timed ones, ns.
    pub completion: u64,
    /// How many of the arrivals are timed.
    pub timed: u64,
    /// Barriers of a runtime's own that were passed, where it reports them.
    pub seen: u64,
}

/// The counts of two threads, or processes. A program's counts may be a lie, of any size.
impl Add for BarrierCounts {
    type Output = BarrierCounts;

    fn add(self, other: BarrierCounts) -> BarrierCounts {
        let sum = u64::saturating_add;
        BarrierCounts {
            barriers: sum(self.barriers, other.barriers),
            spun_briefly: sum(self.spun_briefly, other.spun_briefly),
            spun: sum(self.spun, other.spun),
            yielded: sum(self.yielded, other.yielded),
            slept: sum(self.slept, other.slept),
            knew: sum(self.knew, other.knew),
            nanoseconds: sum(self.nanoseconds, other.nanoseconds),
            spun_nanoseconds: sum(self.spun_nanoseconds, other.spun_nanoseconds),
            latency: sum(self.latency, other.latency),
            longest: self.longest.max(other.longest),
            completion: sum(self.completion, other.completion),
            timed: sum(self.timed, other.timed),
            seen: sum(self.seen, other.seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_counted_once_and_long_waits_are_added_up() {
        let tally = BarrierTally::default();
        for (times, how) in [
            (1, Passage::Last),
            (2, Passage::SpunBriefly),
            (3, Passage::Spun),
            (4, Passage::Yielded),
            (5, Passage::Slept),
        ] {
            (0..times).for_each(|_| tally.passed(how));
        }
        tally.waited(70, true);
        tally.waited(30, false);
        let (barriers, spun_briefly, spun, yielded, slept) = (1, 2, 3, 4, 5);
        tally.saw();
        let (knew, nanoseconds, seen) = (1, 100, 1);
        let times = BarrierCounts { knew, nanoseconds, seen, ..BarrierCounts::default() };
        let expected = BarrierCounts { barriers, spun_briefly, spun, yielded, slept, ..times };
        assert_eq!(tally.read(), expected);
        let lie = BarrierCounts { barriers: u64::MAX, ..BarrierCounts::default() };
        assert_eq!(tally.read() + lie, BarrierCounts { barriers: u64::MAX, ..expected });
    }

    /// Rounds of 40 and 10 ns; then one of 20 ns that stands for three.
    #[test]
    fn latencies_are_summed_and_the_longest_is_kept() {
        let tally = BarrierTally::default();
        tally.completed(40, 40);
        tally.completed(10, 10);
        tally.spun(7);
        let times = |spun_nanoseconds, latency, longest| BarrierCounts {
            spun_nanoseconds,
            latency,
            longest,
            ..BarrierCounts::default()
        };
        assert_eq!(tally.read(), times(7, 50, 40));
        let other = BarrierTally::default();
        other.completed(60, 20);
        other.spun(5);
        assert_eq!(tally.read() + other.read(), times(12, 110, 40));
    }

    #[test]
    fn timed_arrivals_are_counted() {
        let tallies = [(); 2].map(|()| BarrierTally::default());
        [0, 30].iter().for_each(|after| tallies[0].arrived(*after));
        tallies[1].arrived(12);
        let [first, second] = tallies.each_ref().map(BarrierTally::read);
        assert_eq!((first.completion, first.timed), (30, 2));
        let expected = BarrierCounts { completion: 42, timed: 3, ..BarrierCounts::default() };
        assert_eq!(first + second, expected);
    }

    /// What every wait writes is on the first of them.
    #[test]
    fn a_tally_has_two_cache_lines_of_its_own() {
        assert_eq!((size_of::<BarrierTally>(), align_of::<BarrierTally>()), (128, 128));
        assert!(core::mem::offset_of!(BarrierTally, spun) >= 64);
    }
}
