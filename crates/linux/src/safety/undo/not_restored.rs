//! What could not be undone, and the command that does it.
//!
//! A program may have become another user's since it was changed, as `sudo` does. Then this user
//! can neither continue nor bind it any more, however often it is tried.

use cosched_core::CpuSet;
use rustix::io::Errno;

use crate::kernel::affinity::AffinityError;
use crate::kernel::files::FileError;
use crate::kernel::remedy::as_typed;
use crate::kernel::sched_attr::SchedError;
use crate::process::tree::Process;

/// Something that could not be undone.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    /// A cgroup.
    #[error("a cgroup is left: {0}")]
    Cgroup(#[from] FileError),
    /// A thread's CPUs.
    #[error("the CPUs of a thread are not restored: {0}")]
    Mask(#[from] AffinityError),
    /// The CPUs of a thread that became another user's.
    #[error(
        "thread {} is another user's by now, and keeps the CPUs that cosched gave it; `{}` \
         restores them", thread.pid, as_typed(&format!("sudo taskset -cp {found} {}", thread.pid))
    )]
    OthersMask {
        /// Which.
        thread: Process,
        /// The CPUs that it had.
        found: Box<CpuSet>,
    },
    /// A thread's scheduling.
    #[error("the scheduling of a thread is not restored: {0}")]
    Attr(#[from] SchedError),
    /// A process that may be stopped.
    #[error("cannot continue {process}: {errno}")]
    Stopped {
        /// Which.
        process: Process,
        /// What the kernel said.
        errno: Errno,
    },
    /// A stopped process that became another user's.
    #[error(
        "{process} is another user's by now, and stays stopped; `{}` continues it",
        as_typed(&format!("sudo kill -CONT {}", process.pid))
    )]
    OthersStopped {
        /// Which.
        process: Process,
    },
    /// A process that cannot be read, or a list of processes.
    #[error("a process may be left stopped or changed: {0}")]
    Unread(FileError),
}

impl NotRestored {
    /// A process that this user could not continue.
    pub(super) fn stopped(process: Process, errno: Errno) -> NotRestored {
        match errno {
            Errno::PERM => NotRestored::OthersStopped { process },
            errno => NotRestored::Stopped { process, errno },
        }
    }

    /// A thread that did not get its CPUs back.
    pub(super) fn mask(thread: Process, found: CpuSet, error: AffinityError) -> NotRestored {
        match error {
            AffinityError::NotPermitted(_) => {
                NotRestored::OthersMask { thread, found: Box::new(found) }
            }
            error => NotRestored::Mask(error),
        }
    }

    /// Whether only root can undo it: trying again does not help.
    pub fn is_for_root(&self) -> bool {
        matches!(self, NotRestored::OthersMask { .. } | NotRestored::OthersStopped { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_root_can_undo_is_said_with_the_command() {
        let one = Process { pid: 4711, start_time: 1 };
        let stopped = NotRestored::stopped(one, Errno::PERM);
        let found = "0-3".parse().unwrap();
        let bound = NotRestored::mask(one, found, AffinityError::NotPermitted(4711));
        for (left, command) in [(stopped, "kill -CONT 4711"), (bound, "taskset -cp 0-3 4711")] {
            assert!(left.to_string().contains(&as_typed(&format!("`sudo {command}`"))), "{left}");
            assert!(left.is_for_root());
        }
        let again = NotRestored::stopped(one, Errno::NOMEM);
        let gone = NotRestored::mask(one, found, AffinityError::NoCpuLeft(4711));
        assert!(!again.is_for_root() && !gone.is_for_root());
    }
}
