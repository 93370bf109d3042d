//! The barrier statistics of each program, and whether the program has reported progress. The
//! machine writes them for any code that needs them.
//!
//! Threads count on the pages of their processes ([`cosched_page::BarrierTally`]). The machine adds
//! that up once a second, and when a program ends. Code that has a [`StatsOfRun`] of the run reads
//! it, while the run lasts and afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use cosched_core::{BarrierStats, BarrierTimes};
use cosched_page::BarrierCounts as Counted;

use crate::hook::Reported;

/// The statistics of each program by slot.
#[derive(Clone, Debug, Default)]
pub struct StatsOfRun(Arc<[Mutex<ProgramBarriers>]>);

#[derive(Clone, Copy, Debug, Default)]
struct ProgramBarriers {
    /// In finished runs, and in the present one.
    past: Counted,
    present: Counted,
    /// Whether it ever reported progress.
    has_reported: bool,
}

impl StatsOfRun {
    /// For so many programs; no thread has been at a barrier yet.
    pub fn new(slots: usize) -> StatsOfRun {
        StatsOfRun((0..slots).map(|_| Mutex::default()).collect())
    }

    /// Sets the statistics and the reported progress of the program's present run.
    pub(crate) fn tell(&self, slot: u16, now: Counted, reported: Reported) {
        self.change(slot, |known| {
            known.present = now;
            known.has_reported |= reported != Reported::default();
        });
    }

    /// Ends its present run.
    pub(crate) fn end(&self, slot: u16) {
        self.change(slot, |known| known.past = known.past + std::mem::take(&mut known.present));
    }

    fn change(&self, slot: u16, change: impl FnOnce(&mut ProgramBarriers)) {
        if let Some(known) = self.0.get(usize::from(slot)) {
            change(&mut known.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The barrier statistics of the program in this slot; `None`: there are none.
    pub fn of(&self, slot: usize) -> Option<BarrierStats> {
        let ProgramBarriers { past, present, .. } = self.known(slot)?;
        let all = Counted { seen: 0, ..past + present };
        (all != Counted::default()).then(|| BarrierStats {
            barriers: all.barriers,
            spun_briefly: all.spun_briefly,
            spun: all.spun,
            yielded: all.yielded,
            slept: all.slept,
            knew: all.knew,
            waited_seconds: seconds(all.nanoseconds),
            times: Some(BarrierTimes {
                spun_seconds: seconds(all.spun_nanoseconds),
                latency_seconds: seconds(all.latency),
                longest_latency_seconds: seconds(all.longest),
                completion_seconds: completion(&all),
            }),
        })
    }

    /// Whether the program in this slot ever reported progress.
    pub fn has_reported_progress(&self, slot: usize) -> bool {
        self.known(slot).is_some_and(|known| known.has_reported)
    }

    fn known(&self, slot: usize) -> Option<ProgramBarriers> {
        Some(*self.0.get(slot)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// From the first arrival of a round to each thread's own, over all of them: some are timed.
fn completion(all: &Counted) -> Option<f64> {
    let passages = [all.barriers, all.spun_briefly, all.spun, all.yielded, all.slept];
    let passages: f64 = passages.iter().map(|count| *count as f64).sum();
    let mean = all.completion as f64 / all.timed as f64;
    (all.timed > 0).then(|| (mean * passages / 1e3).round() / 1e6)
}

/// Whole microseconds, in seconds.
fn seconds(nanoseconds: u64) -> f64 {
    (nanoseconds / 1000) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_runs_add_up_with_the_present_one() {
        let (stats, barriers) =
            (StatsOfRun::new(2), |barriers| Counted { barriers, ..Counted::default() });
        assert_eq!(stats.of(0), None);
        stats.tell(0, barriers(5), Reported::default());
        stats.tell(0, barriers(7), Reported::default());
        assert_eq!(stats.of(0).unwrap().barriers, 7);
        stats.end(0);
        stats.tell(0, barriers(1), Reported::default());
        assert_eq!(stats.of(0).unwrap().barriers, 8);
        stats.tell(9, barriers(1), Reported::default());
        assert_eq!((stats.of(1), stats.of(9)), (None, None));
    }

    #[test]
    fn latencies_of_runs_are_summed_and_the_longest_is_kept() {
        let stats = StatsOfRun::new(1);
        let run = |latency, longest, spun_nanoseconds| Counted {
            barriers: 2,
            latency,
            longest,
            spun_nanoseconds,
            slept: 2,
            completion: latency,
            timed: 1,
            ..Counted::default()
        };
        stats.tell(0, run(3_000_000, 2_000_000, 500_000), Reported::default());
        stats.end(0);
        stats.tell(0, run(1_000_000, 600_000, 250_000), Reported::default());
        let found = stats.of(0).unwrap();
        let times = BarrierTimes {
            spun_seconds: 0.000_75,
            latency_seconds: 0.004,
            longest_latency_seconds: 0.002,
            completion_seconds: Some(0.016),
        };
        assert_eq!((found.times, found.mean_latency_seconds()), (Some(times), Some(0.001)));
    }

    #[test]
    fn progress_reported_in_one_run_is_remembered_in_later_ones() {
        let stats = StatsOfRun::new(2);
        let nothing = (Counted::default(), Reported::default());
        stats.tell(0, nothing.0, nothing.1);
        assert!(!stats.has_reported_progress(0));
        stats.tell(0, nothing.0, Reported { passages: 1, ..Reported::default() });
        stats.end(0);
        stats.tell(0, nothing.0, nothing.1);
        let reported = [0, 1, 9].map(|slot| stats.has_reported_progress(slot));
        assert_eq!(reported, [true, false, false]);
    }
}
