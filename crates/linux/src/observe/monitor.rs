//! What the threads of programs do: run, wait for a CPU, wait for each other, sleep.
//!
//! *Problem.* Faithful scheduling (section III) needs each second which part of their time a
//! program's threads wait for locks; thread shuffling needs it for each thread. The kernel keeps no
//! such account.
//!
//! *Sources,* one file each. The best that this machine and user allow is used ([`Monitor::open`]):
//!
//! - [`kernel`]: programs in the kernel (BPF) see every context switch of the observed threads.
//!   Everything is exact, and it is known which thread took which CPU.
//! - [`sampled`]: `/proc` has exact CPU times, run delays and switches. The system call in which a
//!   thread sleeps is sampled, and times at locks are estimated from the samples.
//!
//! *What a lock is.* To the kernel, every wait for another thread is a sleep in the futex call:
//! mutexes, condition variables, barriers, and idle workers of a thread pool. The arguments
//! distinguish them as far as possible ([`ThreadActivity`]). The paper counts "user locks,
//! condition-variables, etc." alike. A thread that slept at the same place during the whole
//! interval is idle, not held up; [`ThreadUse::since`] shows that.

pub mod interval;
pub mod kernel;
#[cfg(test)]
mod lock_tests;
mod record;
pub mod sampled;
#[cfg(test)]
mod tests;
mod unseen;

use cosched_core::{CpuSet, Nanos};

use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;

/// How many threads can be observed at once in the kernel, including those that ended since the
/// last reading.
pub const ROOM: usize = record::RECORDS;

/// The activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum ThreadActivity {
    /// It sleeps, for something that is no lock: a file, a timer, another process.
    Sleeping = 0,
    /// It is on a CPU.
    Running = 1,
    /// It is ready to run and has no CPU.
    Runnable = 2,
    /// It waits at a mutex.
    AtMutex = 3,
    /// It waits at a condition variable, a semaphore, a read-write lock, or for a thread's end.
    AtCondition = 4,
    /// It waits by a plain futex call: at a barrier, or by a runtime's own means.
    AtBarrier = 5,
    /// It is frozen, or stopped by a signal.
    Stopped = 6,
}

/// How many activities there are.
pub const ACTIVITIES: usize = 7;

impl ThreadActivity {
    /// All, in the order of their numbers.
    pub const ALL: [ThreadActivity; ACTIVITIES] = [
        ThreadActivity::Sleeping,
        ThreadActivity::Running,
        ThreadActivity::Runnable,
        ThreadActivity::AtMutex,
        ThreadActivity::AtCondition,
        ThreadActivity::AtBarrier,
        ThreadActivity::Stopped,
    ];

    /// The waits for another thread.
    pub(super) const AT_LOCKS: [ThreadActivity; 3] =
        [ThreadActivity::AtMutex, ThreadActivity::AtCondition, ThreadActivity::AtBarrier];

    /// Whether it is a wait for another thread.
    pub(super) fn is_lock(self) -> bool {
        ThreadActivity::AT_LOCKS.contains(&self)
    }
}

/// The causes of involuntary switches; known only in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preemptions {
    /// The slice was used up.
    pub expired: u64,
    /// Before that, a thread of the same program got the CPU ("backstabbing", section II of the
    /// paper).
    pub by_sibling: u64,
}

/// How often a clock that ticks while user time is requested found the thread running outside the
/// kernel, and inside. Only their ratio is meaningful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Outside.
    pub user: u64,
    /// Inside.
    pub kernel: u64,
}

/// How often a thread was woken at a lock by a thread of its program, and came to a CPU. The lock
/// has then probably come from that thread's CPU. Counted while a caller requests it
/// ([`Monitor::count_transfers`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// From any CPU.
    pub all: u64,
    /// From a CPU of another group.
    pub across: u64,
}

/// The length of the windows in which arrivals at locks are reported.
pub const WINDOW: Nanos = Nanos::from_millis(100);

/// The first time in a window that a thread came to a lock and had to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockArrival {
    /// Number of the window: the time at its beginning over [`WINDOW`].
    pub window: u64,
    /// The time, on the clock of [`crate::kernel::clock`].
    pub at: Nanos,
}

/// How many locks are distinguished for each thread; known only in the kernel.
pub const LOCKS: usize = 4;

/// How long a thread waited at a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWait {
    /// Its address in the process; 0: none.
    pub lock: u64,
    /// How long.
    pub time: Nanos,
    /// The part of it that was taken over from a lock that was forgotten for this one.
    pub taken: Nanos,
}

/// What a thread has done since it was first seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// Number of its program, as it was given to [`Monitor::add`].
    pub program: u32,
    /// Its process.
    pub process: i32,
    /// The thread's number.
    pub thread: i32,
    /// Its present activity; `None` once it has ended.
    pub now: Option<ThreadActivity>,
    /// The CPU that it ran on last, where that is known.
    pub cpu: Option<u16>,
    /// Since when, on the clock of [`crate::kernel::clock`]; the time since is already in `time`.
    pub since: Nanos,
    /// Time in each activity, by [`ThreadActivity`]'s number.
    pub time: [Nanos; ACTIVITIES],
    /// How often it gave up its CPU.
    pub voluntary: u64,
    /// How often the CPU was taken away.
    pub involuntary: u64,
    /// The causes, where they are known.
    pub preemptions: Option<Preemptions>,
    /// How often it came to another CPU, where that is known.
    pub migrations: Option<u64>,
    /// Where its CPU time went.
    pub ticks: Ticks,
    /// How locks came to it.
    pub transfers: Transfers,
    /// When it came to locks in the latest windows.
    pub arrivals: [LockArrival; 2],
    /// The locks that it waited for, in no order; reported while a caller requests it
    /// ([`Monitor::tell_locks_apart`]).
    pub locks: [LockWait; LOCKS],
    /// Whether it could not be seen what it slept for; then all time asleep is in
    /// [`ThreadActivity::Sleeping`].
    pub hidden: bool,
}

impl ThreadUse {
    /// A thread that has done nothing and has ended: the basis of others, in tests.
    pub fn of_nothing(program: u32, thread: i32) -> ThreadUse {
        ThreadUse { program, process: 1, thread, ..ThreadUse::default() }
    }

    /// Time in one activity.
    pub fn in_activity(&self, activity: ThreadActivity) -> Nanos {
        self.time[activity as usize]
    }

    /// Time at locks of every kind.
    pub fn at_locks(&self) -> Nanos {
        ThreadActivity::AT_LOCKS.into_iter().map(|activity| self.in_activity(activity)).sum()
    }
}

/// The best available source.
#[derive(Debug)]
pub enum Monitor {
    /// Exact values.
    Kernel(kernel::KernelMonitor),
    /// Estimated values.
    Sampled(sampled::Sampled),
}

impl Monitor {
    /// Opens the source in the kernel where that is possible, else the sampled one, with the
    /// reason.
    pub fn open(proc: &Proc) -> (Monitor, Option<kernel::Unavailable>) {
        match kernel::KernelMonitor::open(proc) {
            Ok(kernel) => (Monitor::Kernel(kernel), None),
            Err(why) => (Monitor::sampled(proc), Some(why)),
        }
    }

    /// The sampled source, whatever else is available.
    pub fn sampled(proc: &Proc) -> Monitor {
        Monitor::Sampled(sampled::Sampled::new(proc.clone()))
    }

    /// Observes a process from now on: its threads, and all that it will start. `program` is a
    /// number for processes that belong together.
    ///
    /// # Errors
    /// When the process is gone, or may not be observed.
    pub fn add(&mut self, program: u32, process: i32) -> Result<(), FileError> {
        match self {
            Monitor::Kernel(kernel) => kernel.add(program, process),
            Monitor::Sampled(sampled) => sampled.add(program, process),
        }
    }

    /// Stops observing a program. (In the kernel its threads stay members until they end, or
    /// cosched does.)
    pub fn forget(&mut self, program: u32) {
        match self {
            Monitor::Kernel(kernel) => kernel.forget(program),
            Monitor::Sampled(sampled) => sampled.forget(program),
        }
    }

    /// Counts from now on where CPU time goes, or no longer. It costs a thousand short
    /// interruptions a second on each CPU.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    pub fn count_ticks(&mut self, enabled: bool) -> Result<(), kernel::Unavailable> {
        match self {
            Monitor::Kernel(kernel) => kernel.count_ticks(enabled),
            Monitor::Sampled(sampled) => {
                sampled.ticks = enabled;
                Ok(())
            }
        }
    }

    /// Counts lock transfers from now on. Those from a CPU of one group to a CPU of another are
    /// also counted separately. CPUs without a group form one of their own.
    ///
    /// # Errors
    /// Where there is no BPF, or it may not do that.
    pub fn count_transfers(&mut self, groups: &[CpuSet]) -> Result<(), kernel::Unavailable> {
        match self {
            Monitor::Kernel(kernel) => kernel.count_transfers(groups),
            Monitor::Sampled(_) => Err(kernel::Unavailable::Refused(
                "/proc does not show which thread wakes which".into(),
            )),
        }
    }

    /// Reports from now on for which locks threads wait ([`ThreadUse::locks`]). The sampled source
    /// cannot see them.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    pub fn tell_locks_apart(&mut self) -> Result<(), kernel::Unavailable> {
        match self {
            Monitor::Kernel(kernel) => kernel.tell_locks_apart(),
            Monitor::Sampled(_) => Ok(()),
        }
    }

    /// How many threads could not be observed so far, since there were too many at once ([`ROOM`]).
    pub fn lost(&self) -> u64 {
        match self {
            Monitor::Kernel(kernel) => kernel.lost(),
            Monitor::Sampled(_) => 0,
        }
    }

    /// How often [`Monitor::look`] is to be called; `None`: never.
    pub fn looks_every(&self) -> Option<Nanos> {
        match self {
            Monitor::Kernel(_) => None,
            Monitor::Sampled(sampled) => Some(sampled.period()),
        }
    }

    /// Takes one sample.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn look(&mut self) -> Result<(), FileError> {
        match self {
            Monitor::Kernel(_) => Ok(()),
            Monitor::Sampled(sampled) => sampled.look(),
        }
    }

    /// What every thread has done since it was first seen. Threads that have ended are reported for
    /// the last time.
    ///
    /// # Errors
    /// When the source fails.
    pub fn read(&mut self, into: &mut Vec<ThreadUse>) -> Result<(), FileError> {
        into.clear();
        match self {
            Monitor::Kernel(kernel) => kernel.read(into),
            Monitor::Sampled(sampled) => sampled.read(into),
        }?;
        into.sort_unstable_by_key(|thread| (thread.program, thread.process, thread.thread));
        Ok(())
    }
}
