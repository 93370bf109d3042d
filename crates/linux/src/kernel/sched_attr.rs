//! How the kernel schedules a thread: `sched_getattr` and `sched_setattr`.
//!
//! Besides class, nice value and real-time priority, these calls carry the *slice*: how long a fair
//! thread may run before the kernel checks whether another should. Since Linux 6.12 it is set per
//! thread through the field `sched_runtime`, from 0.1 to 100 ms; zero means the kernel's own
//! choice. Older kernels accept the field for fair threads and ignore it, and newer ones clamp it
//! silently: callers keep within the range. [`default_slice`] finds out whether slices work by
//! setting one and reading it back.
//!
//! libc has the structure, but neither libc nor rustix wraps the two calls, hence the `unsafe`
//! below. It is the kernel's first version: utilisation clamps, which came later, stay untouched.

use cosched_core::Nanos;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::thread_in_words;

/// The shortest slice that the kernel grants.
pub const SHORTEST_SLICE: Nanos = Nanos::from_micros(100);
/// The longest slice that the kernel grants.
pub const LONGEST_SLICE: Nanos = Nanos::from_millis(100);

const RESET_ON_FORK: u64 = libc::SCHED_FLAG_RESET_ON_FORK as u64;

/// A scheduling class, by the kernel's numbers. The undo log has it in this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedPolicy {
    /// `SCHED_OTHER`: the fair class.
    Other,
    /// `SCHED_FIFO`: real-time, without a quantum.
    Fifo,
    /// `SCHED_RR`: real-time, round robin.
    RoundRobin,
    /// `SCHED_BATCH`: fair, does not preempt on wake-up.
    Batch,
    /// `SCHED_IDLE`: fair, with next to no weight.
    Idle,
    /// `SCHED_DEADLINE`.
    Deadline,
    /// `SCHED_EXT`: by a scheduler written in BPF; as `SCHED_OTHER` while none is loaded.
    Ext,
    /// A class that this list does not name.
    Numbered(u32),
}

impl SchedPolicy {
    fn of(number: u32) -> SchedPolicy {
        match number {
            0 => SchedPolicy::Other,
            1 => SchedPolicy::Fifo,
            2 => SchedPolicy::RoundRobin,
            3 => SchedPolicy::Batch,
            5 => SchedPolicy::Idle,
            6 => SchedPolicy::Deadline,
            7 => SchedPolicy::Ext,
            other => SchedPolicy::Numbered(other),
        }
    }

    fn number(self) -> u32 {
        match self {
            SchedPolicy::Other => 0,
            SchedPolicy::Fifo => 1,
            SchedPolicy::RoundRobin => 2,
            SchedPolicy::Batch => 3,
            SchedPolicy::Idle => 5,
            SchedPolicy::Deadline => 6,
            SchedPolicy::Ext => 7,
            SchedPolicy::Numbered(other) => other,
        }
    }

    /// Whether slices apply to threads of this class.
    pub fn has_slices(self) -> bool {
        matches!(
            self,
            SchedPolicy::Other | SchedPolicy::Batch | SchedPolicy::Idle | SchedPolicy::Ext
        )
    }
}

/// How a thread is scheduled. A value from [`get`] can be given to [`set`] to restore it. The
/// undo log has it in this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SchedAttr {
    /// The class.
    pub policy: SchedPolicy,
    /// The kernel's flags (1: children start in the default class).
    pub flags: u64,
    /// The nice value, -20 to 19; fair classes only.
    pub nice: i32,
    /// The priority, 1 to 99; real-time classes only.
    pub priority: u32,
    /// Fair classes: the slice, zero for the kernel's choice. Deadline: the runtime per period.
    pub runtime: Nanos,
    /// Deadline class only.
    pub deadline: Nanos,
    /// Deadline class only.
    pub period: Nanos,
}

impl SchedAttr {
    /// This scheduling, but not inherited: what the thread starts gets the kernel's choice of
    /// slice, and neither real-time priority nor a negative nice value
    /// (`SCHED_FLAG_RESET_ON_FORK`).
    pub fn reset_on_fork(self) -> SchedAttr {
        SchedAttr { flags: self.flags | RESET_ON_FORK, ..self }
    }

    /// This scheduling in the default class, with the kernel's choice of slice.
    pub fn in_default_class(self) -> SchedAttr {
        SchedAttr {
            policy: SchedPolicy::Other,
            priority: 0,
            runtime: Nanos::ZERO,
            deadline: Nanos::ZERO,
            period: Nanos::ZERO,
            ..self
        }
    }

    /// What the kernel will return for a thread with this scheduling: in the real-time classes
    /// neither nice value nor slice.
    pub fn shown(self) -> SchedAttr {
        match self.policy {
            SchedPolicy::Fifo | SchedPolicy::RoundRobin => {
                SchedAttr { nice: 0, runtime: Nanos::ZERO, ..self }
            }
            _ => self,
        }
    }

    /// The original settings of a thread that is scheduled like this, after these changes. Each
    /// change consists of the settings before it, and the [`shown`](SchedAttr::shown) ones after
    /// it; the latest comes last. Class, nice value and slice are treated one by one. Each is the
    /// original one, unless other software (often the thread itself) has changed just that since.
    pub fn original(
        self,
        changes: impl DoubleEndedIterator<Item = (SchedAttr, SchedAttr)> + Clone,
    ) -> SchedAttr {
        let source = |is_ours: fn(&SchedAttr, &SchedAttr) -> bool| {
            let ours = changes.clone().rev().find(|(_, given)| is_ours(given, &self));
            ours.map_or(self, |(found, _)| found)
        };
        let class = source(SchedAttr::has_class_of);
        SchedAttr {
            policy: class.policy,
            priority: class.priority,
            nice: source(|given, now| given.shares(now, given.nice == now.nice)).nice,
            runtime: source(|given, now| given.shares(now, given.runtime == now.runtime)).runtime,
            ..self
        }
    }

    fn has_class_of(&self, other: &SchedAttr) -> bool {
        (self.policy, self.priority) == (other.policy, other.priority)
    }

    /// A value that a class does not show is as it was when the thread entered that class.
    fn shares(&self, other: &SchedAttr, same: bool) -> bool {
        match (self.policy.has_slices(), other.policy.has_slices()) {
            (true, true) => same,
            (false, false) => self.has_class_of(other),
            _ => false,
        }
    }
}

/// Why a thread's scheduling could not be read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedError {
    /// The thread with this number has ended.
    #[error("thread {0} has ended")]
    Gone(i32),
    /// Permission to change the thread with this number is missing.
    #[error("not permitted: {}", not_permitted(*.0))]
    NotPermitted(i32),
    /// Another error.
    #[error("cannot {action} the scheduling of {}: {errno}", thread_in_words(*tid))]
    Other {
        /// What was tried, as a verb.
        action: &'static str,
        /// Which thread.
        tid: i32,
        /// The system's error.
        errno: Errno,
    },
}

/// What was not permitted; thread 0 is the caller, which belongs to no other user.
fn not_permitted(tid: i32) -> String {
    let rise = "takes CAP_SYS_NICE or a larger RLIMIT_NICE or RLIMIT_RTPRIO";
    match tid {
        0 => format!("raising the priority of a thread {rise}"),
        tid => format!(
            "changing the scheduling of thread {tid}, which belongs to another user or would get a \
             higher priority ({rise})"
        ),
    }
}

const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
const _: () = assert!(SIZE == 48);

/// How a thread is scheduled; thread 0 is the caller.
///
/// # Errors
/// When the thread has ended.
pub fn get(tid: i32) -> Result<SchedAttr, SchedError> {
    let mut raw = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `SIZE` bytes behind the pointer, which is the size of
    // the structure that is exclusively borrowed for the call; any bytes are valid in it.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut raw, SIZE, 0) };
    check("read", tid, result)?;
    Ok(SchedAttr {
        policy: SchedPolicy::of(raw.sched_policy),
        flags: raw.sched_flags,
        nice: raw.sched_nice,
        priority: raw.sched_priority,
        runtime: Nanos(raw.sched_runtime),
        deadline: Nanos(raw.sched_deadline),
        period: Nanos(raw.sched_period),
    })
}

/// Sets how a thread is scheduled; thread 0 is the caller.
///
/// # Errors
/// When the thread has ended, permission is missing, or the kernel finds the values impossible.
pub fn set(tid: i32, attr: &SchedAttr) -> Result<(), SchedError> {
    let raw = libc::sched_attr {
        size: SIZE,
        sched_policy: attr.policy.number(),
        sched_flags: attr.flags,
        sched_nice: attr.nice,
        sched_priority: attr.priority,
        sched_runtime: attr.runtime.0,
        sched_deadline: attr.deadline.0,
        sched_period: attr.period.0,
    };
    // SAFETY: the kernel reads the `size` bytes that the structure declares, which is its real
    // size, from a reference that outlives the call, and keeps no pointer to it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const raw, 0) };
    check("set", tid, result)
}

/// The slice that this kernel gives to threads without one of their own; `None` if it has no slices
/// per thread. A thread with this slice was never given one, and is restored by giving it `None`.
///
/// # Errors
/// When the kernel refuses to read or to set, which no kernel with these calls should.
pub fn default_slice() -> Result<Option<Nanos>, SchedError> {
    on_scratch_thread(|| {
        // The scratch thread inherits the caller's class, which may be one without slices.
        let default = get(0)?.in_default_class();
        set(0, &SchedAttr { runtime: SHORTEST_SLICE, ..default })?;
        if get(0)?.runtime != SHORTEST_SLICE {
            return Ok(None);
        }
        set(0, &default)?;
        Ok(Some(get(0)?.runtime))
    })
}

/// Tries something on a new thread that ends afterwards, so that there is nothing to restore.
pub(crate) fn on_scratch_thread<T: Send>(
    attempt: impl FnOnce() -> Result<T, SchedError> + Send,
) -> Result<T, SchedError> {
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, attempt);
        let errno = |error: std::io::Error| SchedError::Other {
            action: "try",
            tid: 0,
            errno: Errno::from_io_error(&error).unwrap_or(Errno::AGAIN),
        };
        match started.map_err(errno)?.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn check(action: &'static str, tid: i32, result: libc::c_long) -> Result<(), SchedError> {
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match Errno::from_io_error(&error).unwrap_or(Errno::INVAL) {
        Errno::SRCH => Err(SchedError::Gone(tid)),
        Errno::PERM | Errno::ACCESS => Err(SchedError::NotPermitted(tid)),
        errno => Err(SchedError::Other { action, tid, errno }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_name_a_thread_zero() {
        let (action, errno) = ("read", Errno::INVAL);
        for error in [SchedError::NotPermitted(0), SchedError::Other { action, tid: 0, errno }] {
            let text = error.to_string();
            assert!(!text.contains("thread 0") && !text.contains("another user"), "{text}");
        }
        assert!(SchedError::NotPermitted(7).to_string().contains("thread 7, which belongs to"));
    }

    /// Whether the test can go on; prints a message if not.
    fn slices_are_here() -> bool {
        let here = default_slice().unwrap().is_some();
        if !here {
            eprintln!("skipped: this kernel has no slices per thread (Linux 6.12 has)");
        }
        here
    }

    #[test]
    fn a_slice_is_read_back_inherited_and_taken_back() {
        if !slices_are_here() {
            return;
        }
        let default = default_slice().unwrap().unwrap();
        on_scratch_thread(|| {
            let found = get(0)?;
            let own = SchedAttr { runtime: Nanos::from_millis(7), ..found };
            set(0, &own)?;
            assert_eq!(get(0)?, own);
            assert_eq!(on_scratch_thread(|| get(0))?.runtime, Nanos::from_millis(7));
            set(0, &SchedAttr { runtime: Nanos::ZERO, ..found })?;
            assert_eq!(get(0)?.runtime, default);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_slice_that_is_reset_on_fork_is_not_inherited() {
        if !slices_are_here() {
            return;
        }
        let default = default_slice().unwrap().unwrap();
        on_scratch_thread(|| {
            let own = SchedAttr { runtime: Nanos::from_millis(7), ..get(0)? }.reset_on_fork();
            set(0, &own)?;
            assert_eq!(get(0)?, own);
            let inherited = on_scratch_thread(|| get(0))?;
            assert_eq!((inherited.runtime, inherited.flags), (default, 0));
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn asking_whether_slices_work_changes_nothing() {
        let before = get(0).unwrap();
        default_slice().unwrap();
        assert_eq!(get(0).unwrap(), before);
    }

    #[test]
    fn the_batch_class_can_be_entered_and_left_without_rights() {
        on_scratch_thread(|| {
            let found = get(0)?;
            set(0, &SchedAttr { policy: SchedPolicy::Batch, ..found })?;
            assert_eq!(get(0)?.policy, SchedPolicy::Batch);
            set(0, &found)?;
            assert_eq!(get(0)?, found);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_thread_that_is_not_there_is_gone() {
        assert_eq!(get(i32::MAX), Err(SchedError::Gone(i32::MAX)));
    }

    #[test]
    fn class_numbers_go_both_ways() {
        for number in 0..9 {
            assert_eq!(SchedPolicy::of(number).number(), number);
        }
    }
}
