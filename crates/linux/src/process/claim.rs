//! A claim on a process: no other cosched takes the same one meanwhile.
//!
//! The undo log tells which processes a cosched has, but another cosched may keep its log in a
//! folder that no other one knows, or its log was removed. A claim is a lock on the process' own
//! file `/proc/PID/environ`, which is the same file for every cosched with this `/proc`. Only users
//! who may look into the process can open it, so others cannot claim it. Where it cannot be opened,
//! and in a container with a `/proc` of its own, only the log tells.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::tree::Process;
use crate::kernel::procfs::Proc;

/// A claim, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    _file: File,
}

/// Another cosched has the process.
#[derive(Debug)]
pub(crate) struct Taken;

impl Claim {
    /// Claims a process. `None` where that cannot be done.
    ///
    /// # Errors
    /// When another cosched has claimed it.
    pub(crate) fn take(process: Process, proc: &Proc) -> Result<Option<Claim>, Taken> {
        let Some(file) = open(process, proc) else { return Ok(None) };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Claim { _file: file })),
            Err(Errno::WOULDBLOCK) => Err(Taken),
            Err(_) => Ok(None),
        }
    }

    /// Whether a cosched has claimed a process.
    pub(crate) fn is_taken(process: Process, proc: &Proc) -> bool {
        let shared = FlockOperation::NonBlockingLockShared;
        open(process, proc).is_some_and(|file| flock(&file, shared) == Err(Errno::WOULDBLOCK))
    }
}

/// The claims on the processes of one program.
#[derive(Debug, Default)]
pub(crate) struct Claims(Vec<(Process, Claim)>);

impl Claims {
    /// Those on one process, which may be `None` where it cannot be claimed.
    pub(crate) fn of(process: Process, claim: Option<Claim>) -> Claims {
        Claims(claim.map(|claim| (process, claim)).into_iter().collect())
    }

    /// Claims a further process, where that can be done, and no other cosched has it.
    pub(crate) fn add(&mut self, process: Process, proc: &Proc) {
        if self.0.iter().all(|(claimed, _)| *claimed != process) {
            if let Ok(Some(claim)) = Claim::take(process, proc) {
                self.0.push((process, claim));
            }
        }
    }

    /// Drops that on a process which has ended.
    pub(crate) fn drop_of(&mut self, process: Process) {
        self.0.retain(|(claimed, _)| *claimed != process);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

fn open(process: Process, proc: &Proc) -> Option<File> {
    let file = File::open(proc.folder(process.pid).join("environ")).ok()?;
    // The number may have been given to another process.
    process.look(proc).is_some().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_claimed_once_at_a_time() {
        let proc = Proc::default();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let process = Process::find(&proc, child.id() as i32).unwrap();
        assert!(!Claim::is_taken(process, &proc));
        let claim = Claim::take(process, &proc).unwrap();
        assert!(claim.is_some() && Claim::is_taken(process, &proc));
        assert!(Claim::take(process, &proc).is_err());
        drop(claim);
        assert!(!Claim::is_taken(process, &proc));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(Claim::take(process, &proc).unwrap().is_none());
    }

    #[test]
    fn claims_on_several_processes_end_one_by_one() {
        let proc = Proc::default();
        let sleep = || std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut children = [sleep(), sleep()];
        let processes =
            [0, 1].map(|which| Process::find(&proc, children[which].id() as i32).unwrap());
        let mut claims = Claims::default();
        processes.iter().chain(&processes).for_each(|process| claims.add(*process, &proc));
        assert_eq!(claims.len(), 2);
        claims.drop_of(processes[0]);
        assert_eq!(processes.map(|process| Claim::is_taken(process, &proc)), [false, true]);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
