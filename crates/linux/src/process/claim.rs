//! A claim on a process: no other cosched takes the same one meanwhile.
//!
//! The undo log tells which processes a cosched has, but another cosched may keep its log in a
//! folder that no other one knows, or its log was removed. A claim is a lock on the process' own
//! file `/proc/PID/environ`, which is the same file for every cosched with this `/proc`. Only users
//! with access to the process can open it, so others cannot claim it. Where it cannot be opened,
//! and in a container with a `/proc` of its own, only the log tells.
//!
//! What a killed shim leaves comes below its cosched, also what is born later. That cosched then
//! claims its children, except for those that it releases: programs that were detached from it, and
//! children that its process had before.
//!
//! A program can lock its own file and then get other permissions (a set-uid file). So a lock is
//! believed only of the process' user, and of root.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::tree::Process;
use crate::kernel::file_locks;
use crate::kernel::procfs::Proc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// It, with all below it.
    Tree,
    /// Its children that are not released, with all below them.
    Children,
    /// It is no such child.
    Release,
}

impl Of {
    /// The file of the process that is locked.
    fn file(self) -> &'static str {
        match self {
            Of::Tree => "environ",
            Of::Children => "auxv",
            Of::Release => "maps",
        }
    }
}

/// A claim, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    _file: File,
}

/// Another cosched has the process.
#[derive(Debug)]
pub(crate) struct Taken;

impl Claim {
    /// Claims a process, unless another cosched has. `None` where that cannot be done.
    pub(crate) fn take(of: Of, process: Process, proc: &Proc) -> Result<Option<Claim>, Taken> {
        let Some(file) = open(of, process, proc) else { return Ok(None) };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Claim { _file: file })),
            Err(Errno::WOULDBLOCK) if is_believed(&file, process, proc) => Err(Taken),
            Err(_) => Ok(None),
        }
    }

    pub(crate) fn is_taken(of: Of, process: Process, proc: &Proc) -> bool {
        let shared = FlockOperation::NonBlockingLockShared;
        open(of, process, proc).is_some_and(|file| {
            flock(&file, shared) == Err(Errno::WOULDBLOCK) && is_believed(&file, process, proc)
        })
    }

    /// Whether a cosched has claimed a child by claiming its parent.
    pub(crate) fn is_taken_by_parent(child: Process, parent: Process, proc: &Proc) -> bool {
        // In this order: a cosched that ends meanwhile gives up the claim on its children first.
        !Claim::is_taken(Of::Release, child, proc) && Claim::is_taken(Of::Children, parent, proc)
    }
}

/// Whether a lock can be a claim: the process that holds it may have claimed this one. Where the
/// kernel does not tell which one that is, it can.
fn is_believed(file: &File, process: Process, proc: &Proc) -> bool {
    let (Ok(found), user) = (file.metadata(), proc.user(process.pid)) else { return true };
    let locks = file_locks::all(proc).unwrap_or_default();
    let mut holders = locks
        .iter()
        .filter(|lock| !lock.waits && lock.file == (found.dev(), found.ino()))
        .filter_map(|lock| lock.pid)
        .peekable();
    let may_claim = |holder: i32| [user, Some(0)].contains(&proc.user(holder));
    holders.peek().is_none() || holders.any(may_claim)
}

fn open(of: Of, process: Process, proc: &Proc) -> Option<File> {
    let file = File::open(proc.folder(process.pid).join(of.file())).ok()?;
    // The number may have been given to another process.
    process.look(proc).is_some().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::testkit::TestProcess;

    #[test]
    fn a_process_is_claimed_once_at_a_time() {
        let (proc, mut child) = (Proc::default(), TestProcess::idle());
        let process = child.process();
        assert!(!Claim::is_taken(Of::Tree, process, &proc));
        let claim = Claim::take(Of::Tree, process, &proc).unwrap();
        assert!(claim.is_some() && Claim::is_taken(Of::Tree, process, &proc));
        assert!(Claim::take(Of::Tree, process, &proc).is_err());
        drop(claim);
        assert!(!Claim::is_taken(Of::Tree, process, &proc));
        child.end();
        assert!(Claim::take(Of::Tree, process, &proc).unwrap().is_none());
    }

    #[test]
    fn children_are_claimed_with_their_parent_unless_released() {
        let (proc, child) = (Proc::default(), TestProcess::idle());
        let process = child.process();
        let own = Process::find(&proc, std::process::id() as i32).unwrap();
        let is_taken = || Claim::is_taken_by_parent(process, own, &proc);
        assert!(!is_taken());
        let claim = Claim::take(Of::Children, own, &proc).unwrap();
        assert!(claim.is_some() && is_taken() && !Claim::is_taken(Of::Tree, own, &proc));
        let release = Claim::take(Of::Release, process, &proc).unwrap();
        assert!(!is_taken());
        drop(release);
        assert!(is_taken());
        drop(claim);
        assert!(!is_taken());
    }

    #[test]
    fn a_released_child_is_free_also_while_claims_are_given_up() {
        let (proc, child) = (Proc::default(), TestProcess::idle());
        let process = child.process();
        for _ in 0..100 {
            let claim = Claim::take(Of::Children, process, &proc).unwrap();
            let release = Claim::take(Of::Release, process, &proc).unwrap();
            std::thread::scope(|scope| {
                let giving_up = scope.spawn(|| {
                    drop(claim);
                    drop(release);
                });
                while !giving_up.is_finished() {
                    assert!(!Claim::is_taken_by_parent(process, process, &proc));
                }
            });
        }
    }

    #[test]
    fn a_lock_that_no_cosched_can_hold_is_not_believed() {
        let (proc, child) = (Proc::default(), TestProcess::idle());
        let process = child.process();
        // The process that takes it ends, and the shell keeps it.
        let script = "exec 9<\"$0\"; flock 9; read line";
        let environ = proc.folder(process.pid).join("environ");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script]).arg(&environ).stdin(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let locked = || {
            let file = File::open(&environ).unwrap();
            flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
        };
        while !locked()
            || file_locks::all(&proc).unwrap().iter().any(|lock| {
                lock.file.1 == std::fs::metadata(&environ).unwrap().ino()
                    && lock.pid.is_some_and(|pid| proc.stat(pid).is_ok_and(|it| !it.has_ended()))
            })
        {
            std::thread::yield_now();
        }
        assert!(!Claim::is_taken(Of::Tree, process, &proc));
        assert!(Claim::take(Of::Tree, process, &proc).unwrap().is_none());
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
