//! The CPU time of processes, by the clocks that the kernel keeps for each.
//!
//! *Problem.* A policy that needs the speed of a program needs its CPU time outside the kernel, a
//! few times in some ten seconds. `/proc` has times in hundredths of a second. The [monitor in the
//! kernel](crate::observe::monitor) takes 0.1 s of CPU time to load, and a little at every switch
//! from then on.
//!
//! *Idea.* Each process has three clocks that every process may read, and that include its threads
//! that have ended. One counts, to the nanosecond, what the scheduler gave it. The other two count
//! at the ticks of the kernel: all ticks, and those at which the process was outside the kernel.
//! The first clock is the used time, and the ratio of the other two is the part outside. The last
//! time of a process that ended between two samples is missed. A process that starts between two
//! samples counts from its start.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use cosched_core::Nanos;

use crate::process::tree::Process;

/// Nanoseconds on the clocks of a process, by the kernel's numbers: all ticks, those outside the
/// kernel, and what the scheduler gave it.
type Clocks = [u64; 3];

/// The CPU time of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Computed {
    /// CPU time.
    pub(crate) all: Nanos,
    /// The part of it outside the kernel.
    pub(crate) outside: Nanos,
}

/// Tracks the processes of one program.
#[derive(Debug, Default)]
pub(crate) struct CpuClocks(BTreeMap<Process, Clocks>);

impl CpuClocks {
    /// What a program with these processes has computed since the last sample.
    pub(crate) fn next(&mut self, members: &[Process]) -> Computed {
        let read = |process: &Process| Some((*process, read(process.pid)?));
        let now: BTreeMap<Process, Clocks> = members.iter().filter_map(read).collect();
        let before = |process| self.0.get(process).copied().unwrap_or_default();
        let [ticks, outside, all]: Clocks = std::array::from_fn(|kind| {
            let grown =
                |(process, now): (_, &Clocks)| now[kind].saturating_sub(before(process)[kind]);
            now.iter().map(grown).sum()
        });
        // A process that ran too briefly for a tick counts as computing all the time.
        // The clocks are read one after another, and a tick may come in between.
        let share = if ticks == 0 { 1.0 } else { (outside as f64 / ticks as f64).min(1.0) };
        self.0 = now;
        Computed { all: Nanos(all), outside: Nanos((all as f64 * share) as u64) }
    }
}

/// `None`: there is no such process any more.
fn read(pid: i32) -> Option<Clocks> {
    let mut clocks = Clocks::default();
    for (kind, clock) in (0..).zip(&mut clocks) {
        // The number of such a clock contains the process number, inverted, in front of the kind.
        let id = (!pid << 3) | kind;
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the call writes one time; it is read only if the call succeeded.
        let time = unsafe {
            match libc::clock_gettime(id, time.as_mut_ptr()) {
                0 => time.assume_init(),
                _ => return None,
            }
        };
        *clock = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    }
    Some(clocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::procfs::Proc;
    use crate::process::testkit::TestProcess;

    #[test]
    fn cpu_time_is_counted_once_and_a_sleeper_has_none() {
        let (mut busy, idle) = (TestProcess::shell("while :; do :; done"), TestProcess::idle());
        let (busy_one, idle_one) = (busy.process(), idle.process());
        let (mut of_busy, mut of_idle) = (CpuClocks::default(), CpuClocks::default());
        of_idle.next(&[idle_one]);
        of_busy.next(&[busy_one]);
        // A loop of a shell's own is outside the kernel, but ticks may find it elsewhere for a
        // while.
        let mut sum = Computed::default();
        while sum.outside < Nanos::from_millis(50) {
            let more = of_busy.next(&[busy_one]);
            assert!(more.outside <= more.all, "{more:?}");
            sum.all += more.all;
            sum.outside += more.outside;
            assert!(sum.all < Nanos::from_secs(60), "{sum:?}");
        }
        // `sleep` may not have been asleep yet at the first sample.
        of_idle.next(&[idle_one]);
        assert_eq!(of_idle.next(&[idle_one]).all, Nanos::ZERO);
        busy.end();
        assert_eq!(of_busy.next(&[busy_one]), Computed::default());
    }

    #[test]
    fn a_process_started_between_samples_counts_from_its_start() {
        let me = Process::find(&Proc::default(), std::process::id() as i32).unwrap();
        let mut clocks = CpuClocks::default();
        clocks.next(&[]);
        let used = clocks.next(&[me]).all;
        assert!(used > Nanos::ZERO);
        assert!(clocks.next(&[me]).all < used + Nanos::from_secs(1));
    }
}
