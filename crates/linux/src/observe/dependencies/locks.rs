//! Programs that wait for each other's file lock.
//!
//! A program that holds a lock and has no turn delays the next one that needs the lock, even in its
//! turn.
//!
//! A lock of an open file description names no process. A lock of a process that has ended, while
//! others that inherited the file keep it (`exec 9>file; flock 9` in a shell), names one that does
//! not exist. The open files of processes show which of them have such locks, and the system calls
//! of threads which wait for one. Not seen: a lock of an ended process, in a container with process
//! numbers of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::events::calls;
use super::{FileId, SharedKey};
use crate::kernel::file_locks::{self, FileLock};
use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::Proc;

/// What marks the line of a lock that an open file has, in `/proc/PID/fdinfo/FD`.
const LOCK: &str = "lock:";

/// The first locked byte, and the last one; `None`: to the end.
type Range = (u64, Option<u64>);

/// The file locks for which a process waits.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ContendedLocks {
    /// The files with a lock that a process holds or waits for, by process, and whether it waits.
    of_process: BTreeMap<i32, BTreeMap<FileId, bool>>,
    /// The files with a lock of which not all holders and waiters are known, and what is locked.
    of_unknown: BTreeMap<FileId, BTreeSet<Range>>,
}

impl ContendedLocks {
    /// All of them; none where the caller may not read the list.
    pub(crate) fn read(proc: &Proc) -> Result<ContendedLocks, FileError> {
        let exists = |pid| match proc.stat(pid) {
            Ok(stat) => !stat.has_ended(),
            Err(error) => !error.is_gone(),
        };
        Ok(ContendedLocks::among(&file_locks::all(proc)?, exists))
    }

    fn among(locks: &[FileLock], exists: impl Fn(i32) -> bool) -> ContendedLocks {
        let waited_for: BTreeSet<u64> =
            locks.iter().filter(|lock| lock.waits).map(|lock| lock.number).collect();
        let mut found = ContendedLocks::default();
        for lock in locks.iter().filter(|lock| waited_for.contains(&lock.number)) {
            let file = file_id(lock);
            match lock.pid.filter(|pid| exists(*pid)) {
                Some(pid) => {
                    let files = found.of_process.entry(pid).or_default();
                    *files.entry(file).or_default() |= lock.waits;
                }
                None => {
                    let ranges = found.of_unknown.entry(file).or_default();
                    ranges.extend((!lock.waits).then_some(lock.range));
                }
            }
        }
        found
    }

    pub(crate) fn are_none(&self) -> bool {
        self.of_process.is_empty() && self.of_unknown.is_empty()
    }

    /// The locked files that a process shares, and whether it waits for the lock.
    pub(crate) fn shared_by(&self, pid: i32, proc: &Proc) -> Vec<(SharedKey, bool)> {
        let named = self.of_process.get(&pid).into_iter().flatten();
        let named = named.map(|(file, waits)| (*file, *waits));
        let all = named.chain(self.unknown_of(pid, proc));
        all.map(|(file, waits)| (SharedKey::LockedFile(file), waits)).collect()
    }

    /// The same for the locks with unknown holders or waiters.
    fn unknown_of(&self, pid: i32, proc: &Proc) -> Vec<(FileId, bool)> {
        if self.of_unknown.is_empty() {
            return Vec::new();
        }
        let awaited: Vec<i32> = calls(proc, pid).filter_map(|call| awaited_file(&call)).collect();
        let open = proc.fds(pid).unwrap_or_default();
        let named = open.into_iter().filter(|fd| fd.target.starts_with('/'));
        let uses = named.flat_map(|fd| {
            let info = proc.folder(pid).join(format!("fdinfo/{}", fd.number));
            let info = files::read(&info).unwrap_or_default();
            let waits = awaited.contains(&fd.number).then(|| inode(&info)).flatten();
            let is_held = |file, ranges: &BTreeSet<Range>| {
                held(&info).any(|(held, range)| held == file && ranges.contains(&range))
            };
            let uses = self.of_unknown.iter().filter_map(move |(file, ranges)| {
                match waits == Some(file.inode) {
                    true => Some((*file, true)),
                    false => is_held(*file, ranges).then_some((*file, false)),
                }
            });
            uses.collect::<Vec<_>>()
        });
        uses.collect()
    }
}

fn file_id(lock: &FileLock) -> FileId {
    let (device, inode) = lock.file;
    FileId { device, inode }
}

/// The files of the locks in a file of `fdinfo`, and what is locked.
fn held(info: &str) -> impl Iterator<Item = (FileId, Range)> {
    let locks = info.lines().filter_map(|line| line.strip_prefix(LOCK));
    locks.flat_map(file_locks::listed).map(|lock| (file_id(&lock), lock.range))
}

fn inode(info: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse().ok()
}

/// The descriptor with which a thread waits for a lock of the open file description, in a line of
/// `/proc/PID/syscall`.
fn awaited_file(call: &str) -> Option<i32> {
    let mut words = call.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    // The kernel takes the lower halves.
    let (file, command) = (argument()? as i32, argument()? as i32);
    (number == libc::SYS_fcntl && command == libc::F_OFD_SETLKW).then_some(file)
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
        let uses = [(20, file, false), (30, file, true), (31, file, true), (60, inherited, true)];
        let expected = ContendedLocks {
            of_process: uses.map(|(pid, file, waits)| (pid, [(file, waits)].into())).into(),
            of_unknown: [nameless, inherited].map(|file| (file, [(0, None)].into())).into(),
        };
        let found = ContendedLocks::among(&file_locks::listed(LIST), |pid| pid != ended);
        assert_eq!(found, expected);
        assert_eq!(file_locks::listed("no lock at all\n"), []);
    }

    /// Waits until one of these holds a lock for which the other waits.
    fn eventually_tied(one: u32, other: u32) -> ContendedLocks {
        let proc = Proc::default();
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let found = ContendedLocks::read(&proc).unwrap();
            let [one, other] = [one, other].map(|pid| {
                let children = proc.children(pid as i32).unwrap();
                let both = children.into_iter().chain([pid as i32]);
                both.flat_map(|pid| found.shared_by(pid, &proc)).collect::<Vec<_>>()
            });
            let is_tied = |(key, waits): &(SharedKey, bool)| other.contains(&(*key, !waits));
            if one.iter().any(is_tied) {
                return found;
            }
            assert!(Instant::now() < until, "they are not listed: {found:?} {one:?} {other:?}");
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
    }

    /// One of two processes has the lock, the other waits for it, and a third only has the file.
    #[test]
    fn processes_with_a_lock_that_names_none_of_them_are_tied() {
        const OF_DESCRIPTION: &str = "\
import fcntl, struct, sys
lock = struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0)
file = open(sys.argv[1], 'w')
fcntl.fcntl(file, 38, lock)
sys.stdin.read()";
        let python = ["python3", "-S", "-c", OF_DESCRIPTION];
        // The command `flock` of one shell has ended when it reads; that of the other one waits.
        let shell = ["sh", "-c", "exec 9>\"$0\"; flock 9; read line; exit 0"];
        for command in [&python[..], &shell[..]] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let start = |words: &[&str]| {
                let mut command_line = Command::new(words[0]);
                command_line.args(&words[1..]).arg(file.path()).stdin(Stdio::piped());
                command_line.spawn().unwrap()
            };
            let mut all = [command, command, &["sh", "-c", "exec 9<\"$0\"; read line; exit 0"]];
            let mut all = all.each_mut().map(|words| start(words));
            let found = eventually_tied(all[0].id(), all[1].id());
            assert_eq!(found.shared_by(all[2].id() as i32, &Proc::default()), []);
            all.iter_mut().for_each(|process| drop(process.stdin.take()));
            let mut ends = all.iter_mut().map(|process| process.wait().unwrap());
            assert!(ends.all(|status| status.success()), "{command:?}");
        }
    }
}
