//! Forking into a cgroup.
//!
//! A process that writes itself to `cgroup.procs` is *moved*. For a move the kernel keeps every
//! process of the machine from forking and ending, and first waits until no CPU is in the midst of
//! that. This takes 10 to 40 ms, in which no process makes or moves another cgroup either
//! ([measured](../../../docs/research/measurements.md)). A process that starts in the cgroup is not
//! moved (`CLONE_INTO_CGROUP`: Linux 5.7, version 2), and that takes no longer than a fork.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::process::Pid;

/// The flag of `clone3`; the C library's constant of that name is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of the fork continues. The child knows whether it is in the cgroup already.
pub(crate) enum Forked {
    Child { born_in: bool },
    Parent { child: Pid },
}

/// Forks. The child starts in the v2 cgroup with this folder, where the kernel can do that.
///
/// # Safety
/// The caller has a single thread: no lock is held by a thread that the child lacks.
pub(crate) unsafe fn into_cgroup(folder: Option<&Path>) -> io::Result<Forked> {
    let folder = folder.and_then(|folder| File::open(folder).ok());
    // SAFETY: the caller has a single thread.
    let born = folder.and_then(|folder| unsafe { clone_into(&folder) }.ok());
    let forked = match born {
        Some(pid) => pid,
        // SAFETY: the caller has a single thread.
        None => unsafe { libc::fork() },
    };
    match forked {
        ..0 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child { born_in: born.is_some() }),
        pid => Ok(Forked::Parent { child: Pid::from_raw(pid).ok_or(io::ErrorKind::Other)? }),
    }
}

/// The child's number; 0 in the child.
///
/// # Safety
/// The caller has a single thread.
unsafe fn clone_into(folder: &File) -> io::Result<i32> {
    // SAFETY: numbers only, for all of which 0 is valid: nothing is requested.
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.flags = CLONE_INTO_CGROUP;
    how.exit_signal = libc::SIGCHLD as u64;
    how.cgroup = folder.as_raw_fd() as u64;
    // SAFETY: `how` outlives the call and is as long as said. Nothing is shared with the child (no
    // CLONE_VM), which goes on with a copy of this stack.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const how, size_of_val(&how)) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as i32) }
}

/// Ends the child without the exit handlers, which run once, at the end of its parent.
pub(crate) fn end() -> ! {
    // SAFETY: this touches no memory.
    unsafe { libc::_exit(1) }
}
