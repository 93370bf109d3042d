//! The programs that running instances of cosched have, according to their logs.
//!
//! A log has what its cosched still has to undo, and so names every program that it has. It is read
//! here from outside: before another cosched attaches to a process, and to make a cosched detach a
//! program.
//!
//! Root reads the logs of other users, too, and these users can write anything there. No more than
//! `MOST_OF_ANOTHER` bytes and `MOST_LOGS` logs of one of them are therefore read. Their logs are
//! believed only for a cosched and processes of the same user: no user can change the processes of
//! others.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cosched_core::ProgramId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::journal::Journal;
use super::lines::{LARGEST, length};
use super::log::{Log, LogError, open, owner};
use super::owed::Owed;
use super::place::{PlaceError, log_folders, own_uid};
use super::record::Record;
use crate::kernel::procfs::Proc;
use crate::process::tree::{Process, Tree};
use crate::safety::attachable::may_change_any;

/// How much of one other user's logs is read, in bytes.
const MOST_OF_ANOTHER: u64 = 4 << 20;
/// How many of these logs are read, and of programs in each.
const MOST_LOGS: usize = 20;
const MOST_PROGRAMS: usize = 100;
/// How long to wait for others that attach at the same time, which takes milliseconds.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// A program that a living cosched has.
#[derive(Clone, Debug)]
pub struct Held {
    /// The cosched.
    pub owner: Process,
    /// The log of that cosched.
    pub log: PathBuf,
    /// The program's name there.
    pub program: ProgramId,
    /// Where its processes are.
    tree: Tree,
    /// The user of the processes that it can have; `None`: any user.
    only_of: Option<u32>,
    /// How much of its log is read, in bytes.
    most: u64,
}

impl Held {
    /// Every program of every cosched; root finds those of all users.
    ///
    /// # Errors
    /// When the own folder of logs cannot be used.
    pub fn anywhere(proc: &Proc) -> Result<Vec<Held>, PlaceError> {
        let folders = log_folders()?;
        // One of another user's may vanish meanwhile.
        let all = |folder: &PathBuf| Held::all(folder, proc).unwrap_or_default();
        Ok(folders.iter().flat_map(all).collect())
    }

    /// Every program of every cosched that runs and keeps its log in this folder.
    ///
    /// # Errors
    /// When the folder cannot be listed. A log that cannot be read is skipped: it may have just
    /// been removed.
    pub fn all(folder: &Path, proc: &Proc) -> Result<Vec<Held>, LogError> {
        let user = fs::symlink_metadata(folder).map_or(u32::MAX, |found| found.uid());
        let is_own = user == own_uid();
        let (mut left, logs) = match is_own {
            true => (u64::MAX, usize::MAX),
            false => (MOST_OF_ANOTHER, MOST_LOGS),
        };
        let mut held = Vec::new();
        for log in Log::all(folder)?.into_iter().take(logs) {
            let lives = |owner: &Process| owner.look(proc).is_some();
            let Some(owner) = owner(&log).filter(lives) else { continue };
            if proc.user(owner.pid) != Some(user) {
                continue;
            }
            let Ok(file) = open(&log) else { continue };
            let size = length(&file);
            let most = left;
            left = left.saturating_sub(size);
            let Ok(journal) = Log::read_at_most(&file, most, proc) else { continue };
            let changes_any = user == 0 || may_change_any(proc, owner.pid);
            let most = if is_own { usize::MAX } else { MOST_PROGRAMS };
            let programs = Owed::of(&journal).programs.into_iter().take(most);
            held.extend(programs.map(|(program, owed)| Held {
                owner,
                log: log.clone(),
                program,
                tree: owed.tree,
                only_of: (!changes_any).then_some(user),
                most: if is_own { LARGEST } else { MOST_OF_ANOTHER },
            }));
        }
        Ok(held)
    }

    /// Its processes now.
    pub fn members(&self, proc: &Proc) -> Vec<Process> {
        let mut members = self.tree.members(proc);
        members
            .retain(|process| self.only_of.is_none_or(|user| proc.user(process.pid) == Some(user)));
        members
    }

    /// Whether a process with this number belongs to it.
    pub fn includes(&self, pid: i32, proc: &Proc) -> bool {
        self.members(proc).iter().any(|process| process.pid == pid)
    }

    /// The changes that its cosched has not undone yet; empty once the program is detached, or the
    /// log is removed.
    ///
    /// # Errors
    /// When the log cannot be read, or another user has made it too large.
    pub fn owed(&self, proc: &Proc) -> Result<Vec<Record>, LogError> {
        let read = open(&self.log).and_then(|file| Log::read_at_most(&file, self.most, proc));
        let error = |source| LogError { action: "read", path: self.log.clone(), source };
        let journal = match read.map_err(error) {
            Err(error) if error.is_gone() => Journal::default(),
            read => read?,
        };
        let is_its = |record: &&Record| record.program() == Some(self.program);
        Ok(journal.records().iter().filter(is_its).cloned().collect())
    }
}

/// Keeps other instances of cosched from attaching while one checks what is free and announces what
/// it takes: locks each folder of logs until what is returned is dropped. Another user may hold the
/// lock of the own folder for ever, so the wait is limited to a second.
#[must_use = "the folders are locked until this is dropped"]
pub(crate) fn lock_folders(folders: &[PathBuf]) -> Vec<File> {
    let until = Instant::now() + LONGEST_WAIT;
    let lock = |folder: &PathBuf| {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let file = File::options().read(true).custom_flags(flags).open(folder).ok()?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(file),
                Err(Errno::WOULDBLOCK) if Instant::now() <= until => std::thread::sleep(PAUSE),
                // Another process has it, or the file system has no locks.
                Err(_) => return None,
            }
        }
    };
    folders.iter().filter_map(lock).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::testkit::TestProcess;

    #[test]
    fn a_program_is_held_until_its_changes_are_undone() {
        let (folder, proc) = (tempfile::tempdir().unwrap(), Proc::default());
        let (child, program) = (TestProcess::idle(), ProgramId::first(3));
        let mut log = Log::create(folder.path(), &proc).unwrap();
        let (pid, process) = (child.pid(), child.process());
        log.note(Record::Main { program, process }).unwrap();
        std::fs::write(folder.path().join("2147483647-5-1.undo"), "").unwrap();
        let all = || Held::all(folder.path(), &proc).unwrap();
        let [held] = &all()[..] else { panic!("{:?}", all()) };
        assert!(held.includes(pid, &proc) && !held.includes(1, &proc));
        assert_eq!((held.owner.pid, held.program), (std::process::id() as i32, program));
        assert_eq!(held.owed(&proc).unwrap(), [Record::Main { program, process }]);
        // The log of another user, who has filled it meanwhile.
        let of_another = Held { most: 10, ..held.clone() };
        let too_large = of_another.owed(&proc).unwrap_err().to_string();
        assert!(too_large.contains("more than 10 bytes"), "{too_large}");
        log.note(Record::Gone { program }).unwrap();
        assert_eq!((held.owed(&proc).unwrap(), all().len()), (vec![], 0));
        log.delete().unwrap();
        assert_eq!(held.owed(&proc).unwrap(), []);
    }
}
