//! On which CPUs a thread may run: `sched_setaffinity` and `sched_getaffinity`.
//!
//! The kernel intersects the mask that is set with the thread's cpuset and remembers only the
//! result, so a mask should be read back where it matters. CPUs that are offline are missing in
//! what is read ([`VisibleMask`]). Nothing here intersects or saves masks: which masks are narrowed
//! is decided in `control::pinning`.

mod seen;

use cosched_core::{CpuSet, MAX_CPUS};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread;

pub use seen::VisibleMask;

use super::thread_in_words;

/// Why a thread's CPUs could not be read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    /// The thread with this number has ended.
    #[error("thread {0} has ended")]
    Gone(i32),
    /// The thread with this number belongs to another user.
    #[error(
        "thread {0} belongs to another user; its CPUs may be set by that user or with \
         CAP_SYS_NICE"
    )]
    NotPermitted(i32),
    /// None of the requested CPUs is online and in the cpuset of the thread with this number.
    #[error(
        "thread {0} may run on none of the wanted CPUs: they are offline or outside its cpuset"
    )]
    NoCpuLeft(i32),
    /// The kernel's masks are longer than [`CpuSet`].
    #[error("this kernel has more than the {MAX_CPUS} CPUs that cosched supports")]
    TooManyCpus,
    /// Another error.
    #[error("cannot {action} the CPUs of {}: {errno}", thread_in_words(*tid))]
    Other {
        /// What was tried, as a verb.
        action: &'static str,
        /// Which thread.
        tid: i32,
        /// The system's error.
        errno: Errno,
    },
}

impl From<AffinityError> for std::io::Error {
    /// The system's own error, for callers that use those.
    fn from(error: AffinityError) -> std::io::Error {
        let errno = match error {
            AffinityError::Gone(_) => Errno::SRCH,
            AffinityError::NotPermitted(_) => Errno::PERM,
            AffinityError::NoCpuLeft(_) | AffinityError::TooManyCpus => Errno::INVAL,
            AffinityError::Other { errno, .. } => errno,
        };
        errno.into()
    }
}

/// The CPUs on which a thread may run; thread 0 is the caller.
///
/// # Errors
/// When the thread has ended, or the machine has more CPUs than [`CpuSet`] holds.
pub fn get(tid: i32) -> Result<CpuSet, AffinityError> {
    match thread::sched_getaffinity(Pid::from_raw(tid)) {
        Ok(mask) => Ok((0..MAX_CPUS).filter(|cpu| mask.is_set(*cpu)).collect()),
        Err(Errno::SRCH) => Err(AffinityError::Gone(tid)),
        Err(Errno::INVAL) => Err(AffinityError::TooManyCpus),
        Err(errno) => Err(AffinityError::Other { action: "read", tid, errno }),
    }
}

/// Lets a thread run on these CPUs only; thread 0 is the caller.
///
/// # Errors
/// When the thread has ended or belongs to another user, or when none of the CPUs is allowed to it.
pub fn set(tid: i32, cpus: &CpuSet) -> Result<(), AffinityError> {
    let mut mask = thread::CpuSet::new();
    cpus.iter().for_each(|cpu| mask.set(cpu));
    match thread::sched_setaffinity(Pid::from_raw(tid), &mask) {
        Ok(()) => Ok(()),
        Err(Errno::SRCH) => Err(AffinityError::Gone(tid)),
        Err(Errno::PERM) => Err(AffinityError::NotPermitted(tid)),
        Err(Errno::INVAL) => Err(AffinityError::NoCpuLeft(tid)),
        Err(errno) => Err(AffinityError::Other { action: "set", tid, errno }),
    }
}

/// rustix' masks and [`CpuSet`] hold the same CPUs.
const _: () = assert!(thread::CpuSet::MAX_CPU == MAX_CPUS);

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger than any thread number: the kernel gives out at most 2^22.
    const GONE: i32 = i32::MAX;

    #[test]
    fn what_is_set_is_read_back() {
        // A thread of its own, so that no other test runs under the narrowed mask.
        std::thread::spawn(|| {
            let all = get(0).unwrap();
            let one: CpuSet = all.iter().take(1).collect();
            set(0, &one).unwrap();
            assert_eq!(get(0).unwrap(), one);
            set(0, &all).unwrap();
            assert_eq!(get(0).unwrap(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn no_cpu_at_all_is_refused_and_changes_nothing() {
        let before = get(0).unwrap();
        let refused = set(0, &CpuSet::EMPTY);
        assert_eq!(refused, Err(AffinityError::NoCpuLeft(0)));
        assert_eq!(get(0).unwrap(), before);
    }

    #[test]
    fn a_thread_that_is_not_there_is_gone() {
        assert_eq!(get(GONE), Err(AffinityError::Gone(GONE)));
        assert_eq!(set(GONE, &CpuSet::first(1)), Err(AffinityError::Gone(GONE)));
    }
}
