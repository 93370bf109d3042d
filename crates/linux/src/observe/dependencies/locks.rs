//! Programs that wait for each other's file lock.
//!
//! A program that holds a lock and has no turn delays the next one that needs the lock, even in its
//! turn.
//!
//! Limits: a lock of an open file description names no process. A lock of a process that has ended,
//! while others that inherited the file keep it (`exec 9>file; flock 9` in a shell), names a
//! process that does not exist. Neither lock is seen.

use std::collections::{BTreeMap, BTreeSet};

use super::{FileId, SharedKey};
use crate::kernel::file_locks::{self, FileLock};
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;

/// The file locks for which a process waits: by process, the locks that it holds or waits for.
/// Empty where the caller may not read the list.
pub(crate) fn contended_locks(
    proc: &Proc,
) -> Result<BTreeMap<i32, BTreeSet<SharedKey>>, FileError> {
    Ok(contended(&file_locks::all(proc)?))
}

fn contended(locks: &[FileLock]) -> BTreeMap<i32, BTreeSet<SharedKey>> {
    let waited_for: BTreeSet<u64> =
        locks.iter().filter(|lock| lock.waits).map(|lock| lock.number).collect();
    let mut found = BTreeMap::<i32, BTreeSet<SharedKey>>::new();
    for lock in locks.iter().filter(|lock| waited_for.contains(&lock.number)) {
        let (device, inode) = lock.file;
        let file = SharedKey::LockedFile(FileId { device, inode });
        found.entry(lock.pid).or_default().insert(file);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};
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
        5: POSIX  ADVISORY  WRITE 40 fd:1a:8 0 9\n";

    #[test]
    fn a_lock_that_others_wait_for_ties_all_of_them() {
        let file = FileId { device: makedev(0xfd, 0x1a), inode: 8 };
        let tied = BTreeSet::from([SharedKey::LockedFile(file)]);
        let expected = [20, 30, 31].map(|pid| (pid, tied.clone()));
        assert_eq!(contended(&file_locks::listed(LIST)), expected.into());
        assert_eq!(file_locks::listed("no lock at all\n"), []);
    }

    #[test]
    fn a_process_that_waits_for_a_lock_of_this_one_is_listed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        let mut waiting = Command::new("flock").arg(file.path()).arg("true").spawn().unwrap();
        let (own, other) = (id() as i32, waiting.id() as i32);
        let are_tied = || {
            let tied = contended_locks(&Proc::default()).unwrap();
            tied.contains_key(&own) && tied.get(&own) == tied.get(&other)
        };
        let until = Instant::now() + Duration::from_secs(10);
        while !are_tied() {
            assert!(Instant::now() < until, "it is not listed");
            std::thread::yield_now();
        }
        flock(&file, FlockOperation::Unlock).unwrap();
        assert!(waiting.wait().unwrap().success());
        assert!(!are_tied());
    }
}
