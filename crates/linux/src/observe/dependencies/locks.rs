//! Programs that wait for each other's file lock.
//!
//! A program that holds a lock and has no turn delays the next one that needs the lock, even in its
//! turn.
//!
//! A lock of an open file description names no process. A lock of a process that has ended, while
//! others that inherited the file keep it (`exec 9>file; flock 9` in a shell), names one that does
//! not exist. Such a lock ties all programs that have the file open, while one waits for it.

use std::collections::{BTreeMap, BTreeSet};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::{FileId, SharedKey, file_id};
use crate::kernel::file_locks::{self, FileLock};
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;

/// The file locks for which a process waits.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ContendedLocks {
    /// The files whose locks a process holds or waits for, by process.
    of_process: BTreeMap<i32, BTreeSet<FileId>>,
    /// The files with a lock of which not all holders and waiters are known.
    of_unknown: BTreeSet<FileId>,
}

impl ContendedLocks {
    /// All of them; none where the caller may not read the list.
    pub(crate) fn read(proc: &Proc) -> Result<ContendedLocks, FileError> {
        let exists = |pid| proc.stat(pid).is_ok_and(|stat| !stat.has_ended());
        Ok(ContendedLocks::among(&file_locks::all(proc)?, exists))
    }

    fn among(locks: &[FileLock], exists: impl Fn(i32) -> bool) -> ContendedLocks {
        let waited_for: BTreeSet<u64> =
            locks.iter().filter(|lock| lock.waits).map(|lock| lock.number).collect();
        let mut found = ContendedLocks::default();
        for lock in locks.iter().filter(|lock| waited_for.contains(&lock.number)) {
            let (device, inode) = lock.file;
            let file = FileId { device, inode };
            match lock.pid.filter(|pid| exists(*pid)) {
                Some(pid) => found.of_process.entry(pid).or_default().insert(file),
                None => found.of_unknown.insert(file),
            };
        }
        found
    }

    pub(crate) fn are_none(&self) -> bool {
        self.of_process.is_empty() && self.of_unknown.is_empty()
    }

    /// What a process shares by those that it holds or waits for.
    pub(crate) fn shared_by(&self, pid: i32, proc: &Proc) -> BTreeSet<SharedKey> {
        let named = self.of_process.get(&pid).into_iter().flatten().copied();
        named.chain(self.unknown_in(pid, proc)).map(SharedKey::LockedFile).collect()
    }

    /// The files that a process has open, of those with unknown holders or waiters.
    fn unknown_in(&self, pid: i32, proc: &Proc) -> Vec<FileId> {
        if self.of_unknown.is_empty() {
            return Vec::new();
        }
        let open = proc.fds(pid).unwrap_or_default();
        let files = open.iter().filter(|fd| fd.target.starts_with('/')).filter_map(|fd| {
            let link = proc.folder(pid).join(format!("fd/{}", fd.number));
            // No file server is asked, since it might not answer.
            statx(CWD, &link, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()
        });
        files.map(|file| file_id(&file)).filter(|file| self.of_unknown.contains(file)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio, id};
    use std::time::{Duration, Instant};

    use rustix::fs::{FlockOperation, flock, makedev};

    use super::*;

    const LIST: &str = "\
        1: POSIX  ADVISORY  WRITE 10 08:01:7 0 EOF\n\
        2: FLOCK  ADVISORY  WRITE 20 fd:1a:8 0 EOF\n\
        2: -> FLOCK  ADVISORY  WRITE 30 fd:1a:8 0 EOF\n\
        2: -> FLOCK  ADVISORY  READ  31 fd:1a:8 0 EOF\n\
        3: OFDLCK ADVISORY  WRITE -1 08:01:9 0 EOF\n\
        3: -> OFDLCK ADVISORY  WRITE -1 08:01:9 0 EOF\n\
        4: LEASE  ACTIVE    READ  20 08:01:10 0 EOF\n\
        5: POSIX  ADVISORY  WRITE 40 fd:1a:8 0 9\n\
        6: FLOCK  ADVISORY  WRITE 50 08:01:11 0 EOF\n\
        6: -> FLOCK  ADVISORY  WRITE 60 08:01:11 0 EOF\n";

    #[test]
    fn a_lock_that_others_wait_for_ties_all_of_them() {
        let file = FileId { device: makedev(0xfd, 0x1a), inode: 8 };
        let (device, ended) = (makedev(8, 1), 50);
        let [nameless, inherited] = [9, 11].map(|inode| FileId { device, inode });
        let of_process = [20, 30, 31].map(|pid| (pid, BTreeSet::from([file])));
        let expected = ContendedLocks {
            of_process: of_process.into_iter().chain([(60, [inherited].into())]).collect(),
            of_unknown: [nameless, inherited].into(),
        };
        let found = ContendedLocks::among(&file_locks::listed(LIST), |pid| pid != ended);
        assert_eq!(found, expected);
        assert_eq!(file_locks::listed("no lock at all\n"), []);
    }

    fn are_tied(one: u32, other: u32) -> bool {
        let proc = Proc::default();
        let found = ContendedLocks::read(&proc).unwrap();
        let shared = found.shared_by(one as i32, &proc);
        !shared.is_disjoint(&found.shared_by(other as i32, &proc))
    }

    fn eventually_tied(one: u32, other: u32) {
        let until = Instant::now() + Duration::from_secs(10);
        while !are_tied(one, other) {
            assert!(Instant::now() < until, "they are not listed");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_that_waits_for_a_lock_of_this_one_is_listed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        let mut waiting = Command::new("flock").arg(file.path()).arg("true").spawn().unwrap();
        eventually_tied(id(), waiting.id());
        flock(&file, FlockOperation::Unlock).unwrap();
        assert!(waiting.wait().unwrap().success());
        assert!(!are_tied(id(), waiting.id()));
    }

    #[test]
    fn processes_with_a_lock_that_names_none_of_them_are_tied() {
        const OF_DESCRIPTION: &str = "\
import fcntl, struct, sys
lock = struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0)
file = open(sys.argv[1], 'w')
fcntl.fcntl(file, 38, lock)
sys.stdin.read()";
        let python = ["python3", "-S", "-c", OF_DESCRIPTION];
        // The command `flock` has ended when the shell computes on.
        let shell = ["sh", "-c", "exec 9>\"$0\"; flock 9; read line; exit 0"];
        for command in [&python[..], &shell[..]] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut both = [(), ()].map(|()| {
                let mut command_line = Command::new(command[0]);
                command_line.args(&command[1..]).arg(file.path()).stdin(Stdio::piped());
                command_line.spawn().unwrap()
            });
            let [one, other] = [both[0].id(), both[1].id()];
            eventually_tied(one, other);
            // The one that holds the lock ends first.
            both.iter_mut().for_each(|process| drop(process.stdin.take()));
            let mut ends = both.iter_mut().map(|process| process.wait().unwrap());
            assert!(ends.all(|status| status.success()), "{command:?}");
            assert!(!are_tied(one, other));
        }
    }
}
