//! The write-ahead log: a file with one record per line.
//!
//! A line is in the kernel's hands as soon as `write` returns, and that is as
//! safe as it must be: it survives cosched in any case, and a crash of the machine leaves
//! nothing to undo. A last line without an end announces a change that was not made. A log that
//! has grown is rewritten with what is still in force, and without what is owed to threads that have ended, into a new file
//! that replaces it at once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Book, Record};
use crate::procfs::Proc;
use crate::tree::Process;

/// The size, in bytes, from which a log is rewritten.
const LARGE: u64 = 1 << 20;

/// Why the log cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the undo log {}: {source}", path.display())]
pub struct LogError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// A log that is being written. Dropping it leaves the file; [`Log::delete`] ends it.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// It is in another file since [`Log::has_moved`] was asked last.
    moved: bool,
    size: u64,
    /// Its size after it was last rewritten.
    least: u64,
    /// The size from which it is rewritten, if it has doubled at least.
    large: u64,
    book: Book,
    proc: Proc,
}

impl Log {
    /// Begins a log of this process; an earlier one that could not be undone stays.
    ///
    /// # Errors
    /// When the file cannot be made in `folder`, normally [`log_folder`](super::log_folder).
    pub fn create(folder: &Path, proc: &Proc) -> Result<Log, LogError> {
        let pid = std::process::id() as i32;
        let error = |source| LogError { action: "begin", path: folder.to_owned(), source };
        let owner = Process::find(proc, pid).map_err(|e| error(io::Error::other(e)))?;
        let id = boot_id(proc).map_err(error)?;
        let (path, file) = begin(folder, owner).map_err(error)?;
        let (book, proc) = (Book::default(), proc.clone());
        let (moved, size, least) = (false, 0, 0);
        let mut log = Log { path, file, moved, size, least, large: LARGE, book, proc };
        log.note(Record::Boot { id })?;
        Ok(log)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself: who holds it can [read](Log::read) it when its name is gone.
    ///
    /// # Errors
    /// When this process may open no more files.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Whether it is in another file since this was asked last.
    pub fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// What is still to be undone.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// Announces a change; it may be made once this has returned. An announcement that is in force
    /// already costs next to nothing.
    ///
    /// # Errors
    /// When it cannot be written, for example because the disk is full. The change must not be
    /// made then.
    pub fn note(&mut self, record: Record) -> Result<(), LogError> {
        if !self.book.is_news(&record) {
            return Ok(());
        }
        let error = |source| LogError { action: "write", path: self.path.clone(), source };
        let line = line(&record).map_err(|e| error(e.into()))?;
        if let Err(source) = self.file.write_all(line.as_bytes()) {
            // Half a line must not spoil the next one.
            let _ = self.file.set_len(self.size);
            return Err(error(source));
        }
        self.size += line.len() as u64;
        self.book.add(record);
        if self.size > self.large.max(2 * self.least) && self.rewrite().is_err() {
            // It is as good as before, only longer: the disk is full, or somebody has removed the folder.
            self.large = 2 * self.size;
        }
        Ok(())
    }

    /// Removes the file: everything is undone.
    ///
    /// # Errors
    /// When the file cannot be removed; that it is gone already is none.
    pub fn delete(self) -> Result<(), LogError> {
        Log::delete_at(&self.path)
    }

    /// Removes the log of a cosched that is gone, after it was undone.
    ///
    /// # Errors
    /// When the file cannot be removed; that it is gone already is none.
    pub fn delete_at(path: &Path) -> Result<(), LogError> {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(LogError { action: "remove", path: path.to_owned(), source })
            }
            _ => Ok(()),
        }
    }

    /// What is still to be undone according to a log. Lines that cannot be read are passed over:
    /// the last one may be torn. A log of an earlier boot has nothing to undo.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load(path: &Path, proc: &Proc) -> Result<Book, LogError> {
        let error = |source| LogError { action: "read", path: path.to_owned(), source };
        Log::read(&File::open(path).map_err(error)?, proc).map_err(error)
    }

    /// The same of a file that is open. Where it was read before does not matter.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(file: &File, proc: &Proc) -> io::Result<Book> {
        let (mut lines, mut part) = (Vec::new(), [0; 1 << 16]);
        loop {
            match file.read_at(&mut part, lines.len() as u64) {
                Ok(0) => break,
                Ok(count) => lines.extend(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let lines = lines.split(|byte| *byte == b'\n');
        let book: Book = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let now = Record::Boot { id: boot_id(proc)? };
        Ok(if book.is_news(&now) { Book::default() } else { book })
    }

    /// The logs in a folder whose cosched is no longer there, and left work behind. That of a dying
    /// one is among them while its sentinel is at work; both may undo it.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn leftovers(folder: &Path, proc: &Proc) -> Result<Vec<PathBuf>, LogError> {
        let gone = |path: &PathBuf| owner(path).is_some_and(|owner| owner.look(proc).is_none());
        Ok(Log::all(folder)?.into_iter().filter(gone).collect())
    }

    /// The logs in a folder, by name.
    pub(super) fn all(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
        let error = |source| LogError { action: "look for", path: folder.to_owned(), source };
        let mut logs = Vec::new();
        for entry in fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if owner(&path).is_some() {
                logs.push(path);
            }
        }
        logs.sort();
        Ok(logs)
    }

    fn rewrite(&mut self) -> Result<(), LogError> {
        let proc = &self.proc;
        self.book.forget_ended(|thread| thread.look(proc).is_some());
        let error = |source| LogError { action: "rewrite", path: self.path.clone(), source };
        let fresh = self.path.with_extension("undo-new");
        let text: String = self
            .book
            .records()
            .iter()
            .map(line)
            .collect::<Result<_, _>>()
            .map_err(|e| error(e.into()))?;
        let mut file = for_appending().create(true).truncate(true).open(&fresh).map_err(error)?;
        file.write_all(text.as_bytes())
            .and_then(|()| fs::rename(&fresh, &self.path))
            .map_err(error)?;
        (self.file, self.size, self.least) = (file, text.len() as u64, text.len() as u64);
        self.moved = true;
        Ok(())
    }
}

/// A record as a line of the log; fails only for a cgroup whose path is not UTF-8.
fn line(record: &Record) -> serde_json::Result<String> {
    let mut line = serde_json::to_string(record)?;
    line.push('\n');
    Ok(line)
}

/// The first log of its owner that is not there yet.
fn begin(folder: &Path, owner: Process) -> io::Result<(PathBuf, File)> {
    for number in 1.. {
        let path = folder.join(format!("{}-{}-{number}.undo", owner.pid, owner.start_time));
        match for_appending().create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (path, file)),
        }
    }
    unreachable!("a folder cannot hold a file for every number")
}

fn for_appending() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_APPEND);
    options
}

fn boot_id(proc: &Proc) -> io::Result<String> {
    let path = proc.root().join("sys/kernel/random/boot_id");
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

/// Whose log it is, from its name.
pub(super) fn owner(path: &Path) -> Option<Process> {
    let name = path.file_name()?.to_str()?.strip_suffix(".undo")?;
    let [pid, start_time, _number] = name.split('-').collect::<Vec<_>>()[..] else { return None };
    Some(Process { pid: pid.parse().ok()?, start_time: start_time.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use cosched_core::{CpuSet, Nanos, ProgramId};

    use super::*;
    use crate::sched_attr::{SchedAttr, SchedPolicy};

    const P: ProgramId = ProgramId::first(0);

    fn log() -> (tempfile::TempDir, Log) {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::create(folder.path(), &Proc::default()).unwrap();
        (folder, log)
    }

    fn load(log: &Log) -> Vec<Record> {
        Log::load(log.path(), &Proc::default()).unwrap().records()[1..].to_vec()
    }

    fn pinned(start: usize) -> Record {
        Record::Pinned { program: P, found: CpuSet::first(8), set: [start].into_iter().collect() }
    }

    fn an_attr() -> Record {
        let runtime = Nanos::from_millis(3);
        let found = SchedAttr {
            policy: SchedPolicy::Numbered(7),
            flags: 1,
            nice: -5,
            priority: 0,
            runtime,
            deadline: Nanos::ZERO,
            period: Nanos::ZERO,
        };
        let set = SchedAttr { policy: SchedPolicy::RoundRobin, ..found };
        Record::Attr { program: P, thread: Process { pid: 3, start_time: 4 }, found, set }
    }

    #[test]
    fn what_is_noted_is_loaded_also_while_the_log_is_open() {
        let (_folder, mut log) = log();
        let records = [
            pinned(1),
            an_attr(),
            Record::StoppedByOther { process: Process { pid: 9, start_time: 9 } },
        ];
        for record in &records {
            log.note(record.clone()).unwrap();
        }
        assert_eq!(load(&log), records);
    }

    #[test]
    fn a_later_log_of_the_same_process_leaves_the_earlier_one_alone() {
        let (folder, mut first) = log();
        first.note(pinned(1)).unwrap();
        let second = Log::create(folder.path(), &Proc::default()).unwrap();
        assert_ne!(first.path(), second.path());
        assert_eq!((load(&first), load(&second)), (vec![pinned(1)], vec![]));
    }

    #[test]
    fn a_torn_last_line_is_passed_over() {
        let (_folder, mut log) = log();
        log.note(pinned(1)).unwrap();
        log.note(pinned(2)).unwrap();
        let whole = fs::metadata(log.path()).unwrap().len();
        for cut in 1..20 {
            log.file.set_len(whole - 1 - cut).unwrap();
            assert_eq!(load(&log), [pinned(1)], "cut by {cut}");
        }
    }

    #[test]
    fn a_large_log_is_rewritten_with_what_is_in_force() {
        let (folder, mut log) = log();
        log.large = 2000;
        log.note(an_attr()).unwrap();
        for cpu in 0..100 {
            log.note(pinned(cpu)).unwrap();
            log.note(Record::Gone { program: P }).unwrap();
        }
        log.note(pinned(3)).unwrap();
        assert_eq!(load(&log), [pinned(3)]);
        assert!(log.has_moved() && !log.has_moved());
        assert!(fs::metadata(log.path()).unwrap().len() < 2500);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_noted_is_read_from_the_open_file_when_its_folder_is_gone() {
        let (folder, mut log) = log();
        log.large = 1000;
        let file = log.file().unwrap();
        folder.close().unwrap();
        for cpu in 0..50 {
            log.note(pinned(cpu)).unwrap();
        }
        // It cannot be rewritten, and goes on.
        assert!(!log.has_moved() && log.size > 2000);
        assert_eq!(Log::read(&file, &Proc::default()).unwrap().records(), log.book().records());
    }

    #[test]
    fn threads_that_come_and_go_do_not_make_the_log_grow() {
        let (_folder, mut log) = log();
        log.large = 4000;
        let Record::Attr { program, found, set, .. } = an_attr() else { unreachable!() };
        let of = |thread| Record::Attr { program, thread, found, set };
        let alive = Process::find(&Proc::default(), std::process::id() as i32).unwrap();
        log.note(of(alive)).unwrap();
        for number in 0..1000 {
            log.note(of(Process { pid: i32::MAX - number, start_time: 1 })).unwrap();
        }
        let size = fs::metadata(log.path()).unwrap().len();
        assert!(size < 6000, "{size} bytes");
        let left = load(&log);
        assert!(left.contains(&of(alive)) && left.len() < 30, "{} records", left.len());
        assert!(log.book().records().len() < 30);
    }

    #[test]
    fn only_logs_of_those_that_are_gone_are_left_over() {
        let (folder, log) = log();
        let of_nobody = folder.path().join("2147483647-5-1.undo");
        let of_an_earlier_one = folder.path().join(format!("{}-1-1.undo", std::process::id()));
        for path in [&of_nobody, &of_an_earlier_one, &folder.path().join("notes.txt")] {
            fs::write(path, "").unwrap();
        }
        let left = Log::leftovers(folder.path(), &Proc::default()).unwrap();
        assert!(!left.contains(&log.path().to_owned()));
        assert!(left.contains(&of_nobody) && left.contains(&of_an_earlier_one) && left.len() == 2);
    }

    #[test]
    fn nothing_is_to_be_undone_after_a_reboot() {
        let (folder, mut log) = log();
        log.note(pinned(1)).unwrap();
        let text = fs::read_to_string(log.path()).unwrap();
        let old = folder.path().join("1-1-1.undo");
        let boot = boot_id(&Proc::default()).unwrap();
        fs::write(&old, text.replace(&boot, "another")).unwrap();
        assert_eq!(Log::load(&old, &Proc::default()).unwrap().records(), []);
    }
}
