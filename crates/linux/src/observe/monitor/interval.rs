//! What happened between two readings of a [monitor](super), by thread and by program.
//!
//! *Lock contention* of a program is the part of its threads' time that they waited at locks: the
//! paper's "percentage of time application threads spend waiting for user locks,
//! condition-variables, etc." (section III-A), which `prstat` gave as the mean over the threads.
//! Two kinds of time are left out. A thread that slept at one place for the whole interval is
//! *idle*, such as a worker of a pool without work: it is counted, and its time left out. A thread
//! that was stopped neither waited nor ran.

use std::collections::BTreeMap;

use cosched_core::Nanos;

use super::{ACTIVITIES, LockWait, Preemptions, ThreadActivity, ThreadUse, Ticks, Transfers};

/// What a program did in an interval: the sum over its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramUse {
    /// Threads that lived in the interval.
    pub threads: usize,
    /// The number of these that slept at one place all the time.
    pub idle: usize,
    /// Time in each activity, by [`ThreadActivity`]'s number; without idle threads.
    pub time: [Nanos; ACTIVITIES],
    /// How often threads gave up a CPU.
    pub voluntary: u64,
    /// How often a CPU was taken away.
    pub involuntary: u64,
    /// The causes, where they are known.
    pub preemptions: Option<Preemptions>,
    /// How often a thread came to another CPU, where that is known.
    pub migrations: Option<u64>,
    /// How locks came to threads.
    pub transfers: Transfers,
    /// Whether it could not be seen what one of the threads slept for.
    pub hidden: bool,
}

impl ProgramUse {
    /// The part of its threads' time in this activity, 0 to 1; `None` if no thread did anything, or
    /// it could not be seen.
    pub fn share(&self, activity: ThreadActivity) -> Option<f64> {
        let is_asleep = activity.is_lock() || activity == ThreadActivity::Sleeping;
        if self.hidden && is_asleep {
            return None;
        }
        self.part(self.time[activity as usize])
    }

    /// The part of its threads' time that they waited at locks of any kind, 0 to 1.
    pub fn lock_contention(&self) -> Option<f64> {
        if self.hidden {
            return None;
        }
        self.part(
            ThreadActivity::AT_LOCKS.map(|activity| self.time[activity as usize]).into_iter().sum(),
        )
    }

    /// The part of all involuntary switches in which a thread of the program took the CPU from a
    /// sibling.
    pub fn sibling_preemption(&self) -> Option<f64> {
        let by_sibling = self.preemptions?.by_sibling;
        (self.involuntary > 0).then(|| by_sibling as f64 / self.involuntary as f64)
    }

    fn part(&self, time: Nanos) -> Option<f64> {
        let stopped = self.time[ThreadActivity::Stopped as usize];
        let all = self.time.iter().copied().sum::<Nanos>() - stopped;
        (all > Nanos::ZERO).then(|| time.as_secs_f64() / all.as_secs_f64())
    }
}

/// Cuts a monitor's readings, which count from the beginning, into intervals.
#[derive(Debug, Default)]
pub struct Intervals {
    last: BTreeMap<(i32, i32), ThreadUse>,
}

impl Intervals {
    /// What each thread did since the last call, in the order of `reading`. Times and counts are of
    /// the interval, and a thread with `is_idle` slept at one place all the time.
    pub fn next(&mut self, reading: &[ThreadUse], began: Nanos) -> Vec<Slice> {
        let mut next = BTreeMap::new();
        let mut slices = Vec::with_capacity(reading.len());
        for thread in reading {
            let name = (thread.process, thread.thread);
            let before = self.last.get(&name);
            let is_idle = slept(thread, before, began);
            slices.push(Slice { thread: since(thread, before), is_idle });
            if thread.now.is_some() {
                next.insert(name, *thread);
            }
        }
        self.last = next;
        slices
    }

    /// The threads that lived at the last call.
    pub fn known(&self) -> impl Iterator<Item = &ThreadUse> {
        self.last.values()
    }
}

/// What one thread did in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Times and counts are of the interval only.
    pub thread: ThreadUse,
    /// It slept at one place all the time.
    pub is_idle: bool,
}

/// The sums by program, ascending.
pub fn by_program(slices: &[Slice]) -> BTreeMap<u32, ProgramUse> {
    let mut programs = BTreeMap::<u32, ProgramUse>::new();
    for Slice { thread, is_idle } in slices {
        let program = programs.entry(thread.program).or_default();
        let first = program.threads == 0;
        program.threads += 1;
        program.idle += usize::from(*is_idle);
        program.hidden |= thread.hidden;
        if !is_idle {
            program.time.iter_mut().zip(thread.time).for_each(|(sum, time)| *sum += time);
        }
        program.voluntary += thread.voluntary;
        program.involuntary += thread.involuntary;
        let before = if first { Some(Preemptions::default()) } else { program.preemptions };
        program.preemptions = before.zip(thread.preemptions).map(|(sum, one)| Preemptions {
            expired: sum.expired + one.expired,
            by_sibling: sum.by_sibling + one.by_sibling,
        });
        program.transfers.all += thread.transfers.all;
        program.transfers.across += thread.transfers.across;
        let before = if first { Some(0) } else { program.migrations };
        program.migrations = before.zip(thread.migrations).map(|(sum, one)| sum + one);
    }
    programs
}

fn slept(thread: &ThreadUse, before: Option<&ThreadUse>, began: Nanos) -> bool {
    let asleep = thread.now.is_some_and(|now| {
        !matches!(now, ThreadActivity::Running | ThreadActivity::Runnable | ThreadActivity::Stopped)
    });
    asleep && !thread.hidden && before.is_some() && thread.since <= began
}

fn since(thread: &ThreadUse, before: Option<&ThreadUse>) -> ThreadUse {
    let Some(before) = before else { return *thread };
    let mut time = thread.time;
    // An estimate may be corrected downwards, and a number may belong to another thread meanwhile.
    time.iter_mut().zip(before.time).for_each(|(time, before)| *time = time.since(before));
    let less = u64::saturating_sub;
    ThreadUse {
        time,
        voluntary: less(thread.voluntary, before.voluntary),
        involuntary: less(thread.involuntary, before.involuntary),
        preemptions: thread.preemptions.zip(before.preemptions).map(|(now, before)| Preemptions {
            expired: less(now.expired, before.expired),
            by_sibling: less(now.by_sibling, before.by_sibling),
        }),
        migrations: thread.migrations.zip(before.migrations).map(|(now, before)| less(now, before)),
        transfers: Transfers {
            all: less(thread.transfers.all, before.transfers.all),
            across: less(thread.transfers.across, before.transfers.across),
        },
        locks: thread.locks.map(|lock| lock_since(lock, before)),
        ticks: Ticks {
            user: less(thread.ticks.user, before.ticks.user),
            kernel: less(thread.ticks.kernel, before.ticks.kernel),
        },
        ..*thread
    }
}

/// The wait at a lock since then, without what it took over.
fn lock_since(now: LockWait, before: &ThreadUse) -> LockWait {
    let known = before.locks.iter().find(|before| before.lock == now.lock);
    let counted = known.map_or(now.taken, |before| before.time.max(now.taken));
    LockWait { time: now.time.since(counted), taken: Nanos::ZERO, ..now }
}

#[cfg(test)]
mod tests {
    use super::ThreadActivity::{AtBarrier, AtCondition, AtMutex, Running, Sleeping};
    use super::*;

    const MS: u64 = 1_000_000;

    fn thread(
        thread: i32,
        now: ThreadActivity,
        since: u64,
        time: &[(ThreadActivity, u64)],
    ) -> ThreadUse {
        let mut use_ = ThreadUse {
            now: Some(now),
            since: Nanos(since * MS),
            involuntary: 10,
            preemptions: Some(Preemptions { expired: 1, by_sibling: 4 }),
            migrations: Some(3),
            ..ThreadUse::of_nothing(0, thread)
        };
        time.iter().for_each(|(activity, ms)| use_.time[*activity as usize] = Nanos(ms * MS));
        use_
    }

    #[test]
    fn contention_is_the_mean_over_threads_that_do_not_only_sleep() {
        let first = [
            thread(1, AtMutex, 950, &[(Running, 400), (AtMutex, 600)]),
            thread(2, AtBarrier, 900, &[(Running, 900), (AtBarrier, 100)]),
            thread(3, AtCondition, 5, &[(Running, 5), (AtCondition, 995)]),
        ];
        let second = [
            thread(1, Running, 1990, &[(Running, 600), (AtMutex, 1400)]),
            thread(2, AtBarrier, 1900, &[(Running, 1800), (AtBarrier, 200)]),
            thread(3, AtCondition, 5, &[(Running, 5), (AtCondition, 1995)]),
        ];
        let mut intervals = Intervals::default();
        intervals.next(&first, Nanos::ZERO);
        let slices = intervals.next(&second, Nanos(1000 * MS));
        let program = by_program(&slices)[&0];
        assert_eq!((program.threads, program.idle), (3, 1));
        // 800 ms and 100 ms of twice a second; the third thread is idle.
        assert!((program.lock_contention().unwrap() - 0.45).abs() < 1e-9);
        assert!((program.share(AtMutex).unwrap() - 0.4).abs() < 1e-9);
        assert_eq!(program.involuntary, 0, "counts are of the interval");
        assert_eq!(program.sibling_preemption(), None, "nothing was taken from a thread");
    }

    /// Sibling preemption is the share of sibling preemptions in all involuntary switches.
    #[test]
    fn sibling_preemption_is_unknown_if_one_thread_has_no_count() {
        let known = thread(1, Running, 0, &[(Running, 1)]);
        let slices =
            Intervals::default().next(&[known, ThreadUse { thread: 2, ..known }], Nanos::ZERO);
        assert_eq!(by_program(&slices)[&0].sibling_preemption(), Some(0.4));
        let unknown = ThreadUse { thread: 2, preemptions: None, migrations: None, ..known };
        let slices = Intervals::default().next(&[known, unknown], Nanos::ZERO);
        let program = by_program(&slices)[&0];
        assert_eq!((program.sibling_preemption(), program.migrations), (None, None));
    }

    #[test]
    fn a_reused_thread_number_does_not_count_backwards() {
        let first = thread(1, Running, 0, &[(Running, 10), (AtMutex, 5)]);
        let first = ThreadUse { voluntary: 9, ticks: Ticks { user: 7, kernel: 7 }, ..first };
        let later = ThreadUse {
            involuntary: 1,
            preemptions: Some(Preemptions::default()),
            migrations: Some(0),
            ..thread(1, Running, 0, &[(Running, 2)])
        };
        let mut intervals = Intervals::default();
        intervals.next(&[first], Nanos::ZERO);
        let slice = intervals.next(&[later], Nanos::ZERO)[0];
        assert_eq!((slice.thread.voluntary, slice.thread.involuntary), (0, 0));
        assert_eq!(slice.thread.preemptions, Some(Preemptions::default()));
    }

    #[test]
    fn unseen_time_is_no_share_and_makes_no_thread_idle() {
        let unseen = |time| ThreadUse {
            hidden: true,
            ..thread(1, Sleeping, 0, &[(Running, time), (Sleeping, time)])
        };
        let mut intervals = Intervals::default();
        intervals.next(&[unseen(10)], Nanos::ZERO);
        let slices = intervals.next(&[unseen(30)], Nanos(MS));
        let program = by_program(&slices)[&0];
        assert_eq!((program.idle, program.lock_contention()), (0, None));
        assert_eq!(program.share(AtMutex), None);
        assert_eq!(program.share(Running), Some(0.5));
    }

    #[test]
    fn a_thread_that_ended_counts_in_its_last_interval_only() {
        let alive = thread(1, Running, 0, &[(Running, 10)]);
        let ended = ThreadUse { now: None, ..thread(1, Running, 0, &[(Running, 15)]) };
        let mut intervals = Intervals::default();
        intervals.next(&[alive], Nanos::ZERO);
        let last = intervals.next(&[ended], Nanos::ZERO);
        assert_eq!(last[0].thread.in_activity(Running), Nanos(5 * MS));
        assert!(intervals.next(&[], Nanos::ZERO).is_empty());
    }
}
