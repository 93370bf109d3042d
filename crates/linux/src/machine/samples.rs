//! The readings of a monitor, as the samples that policies see.

use cosched_core::{Counts, LockShare, Nanos, Quality, Sample, ThreadId};

use crate::observe::monitor::interval::{ProgramUse, Slice};
use crate::observe::monitor::{ThreadActivity, ThreadUse, Ticks};

pub(super) fn of_thread(sample: Sample, thread: &ThreadUse) -> Sample {
    Sample {
        on_cpu: thread.in_activity(ThreadActivity::Running),
        frozen: thread.in_activity(ThreadActivity::Stopped),
        run_delay: Some(thread.in_activity(ThreadActivity::Runnable)),
        lock_wait: Some(thread.at_locks()).filter(|_| !thread.hidden),
        voluntary_switches: Some(thread.voluntary),
        involuntary_switches: Some(thread.involuntary),
        quality: quality(thread.preemptions.is_some()),
        ..sample
    }
}

/// The locks that a thread waited for in an interval, where they are known. Locks of different
/// processes are different ones: an address has 57 bits at most, and the rest distinguishes
/// processes as far as necessary.
pub(super) fn of_locks(name: ThreadId, thread: &ThreadUse) -> impl Iterator<Item = LockShare> {
    let process = (thread.process as u64) << 57;
    let waited = thread.locks.into_iter().filter(|lock| lock.time > Nanos::ZERO);
    waited.map(move |lock| LockShare { thread: name, lock: lock.lock ^ process, wait: lock.time })
}

/// What a program did, by its threads. `ticks` says whether it was counted where its CPU time goes.
pub(super) fn of_program(
    sample: Sample,
    slices: &[Slice],
    whole: &ProgramUse,
    ticks: bool,
) -> Sample {
    let sum = |activity: ThreadActivity| {
        slices.iter().map(|slice| slice.thread.in_activity(activity)).sum::<Nanos>()
    };
    let frozen = slices.iter().map(|slice| slice.thread.in_activity(ThreadActivity::Stopped)).max();
    let on_cpu = sum(ThreadActivity::Running);
    Sample {
        on_cpu,
        user_time: ticks.then(|| Nanos((on_cpu.0 as f64 * user_part(slices)) as u64)),
        // Or stopped by another process, which is no time to run either.
        frozen: sample.frozen.max(frozen.unwrap_or_default()),
        run_delay: Some(sum(ThreadActivity::Runnable)),
        lock_wait: Some(slices.iter().map(|slice| slice.thread.at_locks()).sum::<Nanos>())
            .filter(|_| !whole.hidden),
        voluntary_switches: Some(whole.voluntary),
        involuntary_switches: Some(whole.involuntary),
        quality: quality(whole.preemptions.is_some()),
        ..sample
    }
}

/// The part of the CPU time outside the kernel; all of it where a program ran too briefly for a
/// tick.
fn user_part(slices: &[Slice]) -> f64 {
    let sum =
        |ticks: fn(Ticks) -> u64| slices.iter().map(|slice| ticks(slice.thread.ticks)).sum::<u64>();
    let (user, kernel) = (sum(|ticks| ticks.user), sum(|ticks| ticks.kernel));
    if user + kernel == 0 { 1.0 } else { user as f64 / (user + kernel) as f64 }
}

/// Without BPF, times at locks are estimates.
fn quality(exact: bool) -> Quality {
    if exact { Quality::Exact } else { Quality::Scaled }
}

pub(super) fn with_counts(sample: Sample, counts: Counts) -> Sample {
    let Counts { instructions, cycles, llc_references, llc_misses, .. } = counts;
    Sample { instructions, cycles, llc_references, llc_misses, ..sample }
}

#[cfg(test)]
mod tests {
    use cosched_core::ProgramId;

    use super::*;

    fn ran(nanos: u64) -> ThreadUse {
        let now = Some(ThreadActivity::Running);
        let mut thread = ThreadUse { now, ..ThreadUse::of_nothing(0, 5) };
        thread.time[ThreadActivity::Running as usize] = Nanos(nanos);
        thread
    }

    /// A program without counted ticks has no progress.
    #[test]
    fn a_run_shorter_than_a_tick_is_progress_if_ticks_are_counted() {
        let slices = [Slice { thread: ran(1000), is_idle: false }];
        let empty = Sample::empty(ProgramId::first(0), Nanos::ZERO, Nanos(5000));
        let user = |ticks| of_program(empty, &slices, &ProgramUse::default(), ticks).user_time;
        assert_eq!((user(true), user(false)), (Some(Nanos(1000)), None));
    }
}
