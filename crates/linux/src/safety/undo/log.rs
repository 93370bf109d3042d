//! The write-ahead log: a file with one record per line.
//!
//! A line is stored by the kernel as soon as `write` returns, which is safe enough: it survives
//! cosched in any case, and a crash of the machine leaves nothing to undo. A log that has grown
//! [repeats](super::lines) its valid records, without those of ended threads, and gives the rest
//! back. It stays the same file: the sentinel and all shims hold that open, and it may have lost
//! its name.
//!
//! A disk may be full, or fail. Further lines then go into memory that cosched shares with its
//! sentinel, until the log can repeat its records. The sentinel therefore knows all of them. They
//! are lost only if it is killed together with cosched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use rustix::io::Errno;

use super::forgotten::forget;
use super::journal::Journal;
use super::lines::{LARGEST, boot_id, bytes, content, give_back, line, read_journal, repetition};
use super::namespace;
use super::record::Record;
use crate::kernel::procfs::Proc;
use crate::process::tree::Process;

/// The size, in bytes, from which a log repeats its valid records.
const LARGE: u64 = 1 << 20;
/// The start of the lines in memory; before them is the [heartbeat](crate::safety::heartbeat).
const FIRST_LINE: u64 = 4096;
/// Another try at a file comes after this many bytes of lines in memory.
const WORTH_A_TRY: u64 = 4096;

/// What was tried if there is no log yet.
const BEGIN: &str = "begin";

/// Why the log cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the undo log {}: {source}{}", path.display(), self.remedy())]
pub struct LogError {
    pub(super) action: &'static str,
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

impl LogError {
    /// Whether there is no room for it: that may change at any moment.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    fn remedy(&self) -> &'static str {
        let refused = [libc::EROFS, libc::EACCES, libc::EPERM, libc::ENOENT, libc::ENOTDIR];
        match self.source.raw_os_error() {
            Some(errno) if self.action == BEGIN && refused.contains(&errno) => {
                "; set XDG_RUNTIME_DIR to a folder of your own"
            }
            _ => "",
        }
    }

    /// Whether the file was removed.
    pub fn is_gone(&self) -> bool {
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        is_missing(&self.source) && self.path.symlink_metadata().is_err_and(|e| is_missing(&e))
    }
}

/// A log that is being written. Dropping it leaves the file; [`Log::delete`] ends it.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// Lines that the file did not take, from [`FIRST_LINE`] on.
    memory: File,
    /// The length of these lines, in bytes.
    spilled: u64,
    /// The length of these lines when they did not fit into the file, in bytes.
    tried: u64,
    /// Why the file refused a line, until it is read.
    refusal: Option<io::Error>,
    /// The length of the file, in bytes.
    size: u64,
    /// How much of its beginning was given back, in bytes.
    given_back: u64,
    /// The length of what it last repeated, in bytes.
    least: u64,
    /// The length without what was given back from which it repeats its records, in bytes, provided
    /// that it has at least doubled.
    large: u64,
    journal: Journal,
    proc: Proc,
}

impl Log {
    /// Begins a log of this process; an earlier one that could not be undone stays.
    ///
    /// # Errors
    /// When the file cannot be made in `folder`, normally [`log_folder`](super::log_folder).
    pub fn create(folder: &Path, proc: &Proc) -> Result<Log, LogError> {
        let pid = std::process::id() as i32;
        let error = |source| LogError { action: BEGIN, path: folder.to_owned(), source };
        let owner = Process::find(proc, pid).map_err(|e| error(io::Error::other(e)))?;
        let id = boot_id(proc).map_err(error)?;
        let memory = memfd_create("undo", MemfdFlags::CLOEXEC).map_err(|e| error(e.into()))?;
        let (path, file) = begin(folder, owner).map_err(error)?;
        let mut log = Log {
            path,
            file,
            memory: memory.into(),
            spilled: 0,
            tried: 0,
            refusal: None,
            size: 0,
            given_back: 0,
            least: 0,
            large: LARGE,
            journal: Journal::default(),
            proc: proc.clone(),
        };
        let namespaces = namespace::own(proc);
        let mut begun = [Some(Record::Boot { id }), namespaces].into_iter().flatten();
        if let Err(error) = begun.try_for_each(|record| log.note(record)) {
            // The first error is the one that the user has to know.
            let _ = log.delete();
            return Err(error);
        }
        Ok(log)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself: a process that holds it can [read](Log::read) it when its name is removed.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The file for a shim. It is opened again: a lock holds as long as any process has the
    /// descriptor that was locked.
    pub(crate) fn unlocked(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// The memory that is shared with the sentinel.
    pub(crate) fn memory(&self) -> io::Result<File> {
        self.memory.try_clone()
    }

    /// Why the file takes no more lines, if this has happened since the last call.
    pub(crate) fn refusal(&mut self) -> Option<LogError> {
        self.refusal.take().map(|source| self.error("write", source))
    }

    fn error(&self, action: &'static str, source: io::Error) -> LogError {
        LogError { action, path: self.path.clone(), source }
    }

    /// Whether all of it is in the file, where others can read it.
    pub(crate) fn is_whole(&self) -> bool {
        self.spilled == 0
    }

    /// What is still to be undone.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Announces a change; it may be made once this has returned. An announcement that is still
    /// valid costs next to nothing.
    ///
    /// # Errors
    /// When there is no memory for it either. The change must not be made then.
    pub fn note(&mut self, record: Record) -> Result<(), LogError> {
        if !self.journal.is_news(&record) {
            return Ok(());
        }
        let line = line(&record).map_err(|error| self.error("write", error.into()))?;
        self.append(line.as_bytes()).map_err(|error| self.error("write", error))?;
        self.journal.add(record);
        let is_long = self.size - self.given_back > self.large.max(2 * self.least);
        let is_worth_a_try = self.spilled > WORTH_A_TRY.max(2 * self.tried);
        if (is_long || is_worth_a_try) && self.repeat().is_err() {
            // It is as good as before, only longer: the disk is full.
            self.large = self.large.max(2 * (self.size - self.given_back));
            self.tried = self.spilled;
        }
        Ok(())
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        // Later lines must not be read earlier: once a line is in memory, all further ones are.
        if self.spilled == 0 {
            match self.file.write_all(line) {
                Ok(()) => {
                    self.size += line.len() as u64;
                    return Ok(());
                }
                Err(refusal) => {
                    // Half a line must not spoil the next one.
                    let _ = self.file.set_len(self.size);
                    self.refusal = Some(refusal);
                }
            }
        }
        self.memory.write_all_at(line, FIRST_LINE + self.spilled)?;
        self.spilled += line.len() as u64;
        Ok(())
    }

    /// Marks and removes the file: everything is undone.
    ///
    /// # Errors
    /// When the file cannot be removed. A file that is gone already is no error.
    pub fn delete(self) -> Result<(), LogError> {
        forget(&self.path, &self.file)
    }

    /// What is still to be undone according to a log. Lines that cannot be read are
    /// [counted](Journal::damaged_lines). A log of an earlier boot has nothing to undo.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load(path: &Path, proc: &Proc) -> Result<Journal, LogError> {
        let error = |source| LogError { action: "read", path: path.to_owned(), source };
        Log::read(&open(path).map_err(error)?, proc).map_err(error)
    }

    /// What is still to be undone according to an open file and the memory that belongs to it.
    pub(crate) fn read_both(file: &File, memory: &File, proc: &Proc) -> io::Result<Journal> {
        // In this order: lines that are moved into the file meanwhile are then read twice, which
        // does no harm.
        let later = Log::lines_in(memory)?;
        read_journal(file, &[content(file, LARGEST)?, later], proc)
    }

    /// The lines that are only in memory.
    pub(crate) fn lines_in(memory: &File) -> io::Result<Vec<u8>> {
        bytes(memory, FIRST_LINE, u64::MAX)
    }

    /// What is still to be undone according to an open file only.
    pub(crate) fn read(file: &File, proc: &Proc) -> io::Result<Journal> {
        Log::read_at_most(file, LARGEST, proc)
    }

    /// What is still to be undone according to a file that should not exceed so many bytes.
    pub(super) fn read_at_most(file: &File, most: u64, proc: &Proc) -> io::Result<Journal> {
        read_journal(file, &[content(file, most)?], proc)
    }

    /// The logs in a folder that neither a cosched nor a sentinel uses any more, also in a
    /// container that shares the folder.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn leftovers(folder: &Path, proc: &Proc) -> Result<Vec<PathBuf>, LogError> {
        Ok(Log::left(folder, proc)?.filter(|log| !is_elsewhere(log, proc)).collect())
    }

    /// Such logs that can be undone in another container alone: their processes have other numbers
    /// here.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn left_elsewhere(folder: &Path, proc: &Proc) -> Result<Vec<PathBuf>, LogError> {
        Ok(Log::left(folder, proc)?.filter(|log| is_elsewhere(log, proc)).collect())
    }

    fn left(folder: &Path, proc: &Proc) -> Result<impl Iterator<Item = PathBuf>, LogError> {
        let is_free = |path: &PathBuf| match open(path) {
            Ok(file) => !is_in_use(&file),
            // The user must learn that the log cannot be read.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        };
        let gone = move |path: &PathBuf| {
            owner(path).is_some_and(|owner| owner.look(proc).is_none()) && is_free(path)
        };
        Ok(Log::all(folder)?.into_iter().filter(gone))
    }

    /// The logs in a folder, by name.
    pub(super) fn all(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
        let error = |source| LogError { action: "look for", path: folder.to_owned(), source };
        let mut logs = Vec::new();
        let entries = match fs::read_dir(folder) {
            Err(removed) if removed.kind() == io::ErrorKind::NotFound => return Ok(logs),
            entries => entries.map_err(error)?,
        };
        for entry in entries {
            let path = entry.map_err(error)?.path();
            if owner(&path).is_some() {
                logs.push(path);
            }
        }
        logs.sort();
        Ok(logs)
    }

    /// Repeats all valid records at the end, and gives back what comes before them.
    fn repeat(&mut self) -> io::Result<()> {
        let proc = &self.proc;
        self.journal.forget_ended(|thread| thread.is_there(proc));
        let text = repetition(self.journal.records())?;
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        let before = self.size;
        (self.size, self.least) = (before + text.len() as u64, text.len() as u64);
        if give_back(&self.file, before) {
            self.given_back = before;
        } else {
            // Not every file system can.
            self.begin_anew(text.as_bytes())?;
        }
        self.forget_memory();
        Ok(())
    }

    /// Has only these lines in the file. They are in memory meanwhile.
    fn begin_anew(&mut self, lines: &[u8]) -> io::Result<()> {
        self.memory.set_len(FIRST_LINE)?;
        if let Err(error) = self.memory.write_all_at(lines, FIRST_LINE) {
            // The file still has all of them.
            self.forget_memory();
            return Err(error);
        }
        self.spilled = lines.len() as u64;
        self.file.set_len(0)?;
        (self.size, self.given_back) = (0, 0);
        if let Err(error) = self.file.write_all(lines) {
            let _ = self.file.set_len(0);
            self.refusal = Some(error.kind().into());
            return Err(error);
        }
        self.size = lines.len() as u64;
        Ok(())
    }

    /// Empties the memory: its lines are in the file. Reading them once more does no harm.
    fn forget_memory(&mut self) {
        if self.memory.set_len(FIRST_LINE).is_ok() {
            (self.spilled, self.tried) = (0, 0);
        }
    }
}

fn is_elsewhere(log: &Path, proc: &Proc) -> bool {
    open(log).is_ok_and(|file| namespace::is_elsewhere(&file, proc))
}

/// Opens a log to read it. In another user's folder anything may have taken its place: no link is
/// followed, and the other end of a pipe is not waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file")),
    }
}

/// Marks the log as in use. The lock is on the open file, which cosched shares with its sentinel:
/// the kernel releases it when both are gone, whatever other processes can see of them.
fn lock(file: &File) {
    // Where a file system has no locks, only the owner's number shows that.
    let _ = flock(file, FlockOperation::NonBlockingLockShared);
}

pub(super) fn is_in_use(file: &File) -> bool {
    let is_locked = flock(file, FlockOperation::NonBlockingLockExclusive);
    if is_locked.is_ok() {
        let _ = flock(file, FlockOperation::Unlock);
    }
    is_locked == Err(Errno::WOULDBLOCK)
}

/// Creates the first log of its owner that does not exist yet.
fn begin(folder: &Path, owner: Process) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_APPEND);
    for number in 1.. {
        let path = folder.join(format!("{}-{}-{number}.undo", owner.pid, owner.start_time));
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => {
                let file = other?;
                lock(&file);
                return Ok((path, file));
            }
        }
    }
    unreachable!("a folder cannot hold a file for every number")
}

/// The cosched that a log belongs to, by its name.
pub(crate) fn owner(path: &Path) -> Option<Process> {
    let name = path.file_name()?.to_str()?.strip_suffix(".undo")?;
    let [pid, start_time, _number] = name.split('-').collect::<Vec<_>>()[..] else { return None };
    Some(Process { pid: pid.parse().ok()?, start_time: start_time.parse().ok()? })
}

#[cfg(test)]
mod tests;
