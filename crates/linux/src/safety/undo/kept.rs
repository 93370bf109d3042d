//! Logs that are held open by shims, wherever they are or were.
//!
//! Cleaners and session managers remove files and whole folders, and a run may have had another
//! `XDG_RUNTIME_DIR`. If cosched and its sentinel are killed then, the shims of their programs
//! still have the log, whatever its name is by then. A log that was undone is marked, so that it is
//! not mistaken for a lost one.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::forgotten::{DAMAGED, forget};
use super::journal::Journal;
use super::lines::{first_records, has_lines};
use super::log::{Log, LogError, is_in_use, owner};
use super::namespace;
use super::place::{is_own_folder, own_uid};
use super::record::Record;
use crate::kernel::procfs::Proc;
use crate::process::helper::{self, Helper};

/// The suffix that the kernel adds to the name of a removed file.
const REMOVED: &str = " (deleted)";

/// A log of a cosched that is gone, which another process holds open.
#[derive(Debug)]
pub struct KeptLog {
    /// Where it is, or was.
    pub path: PathBuf,
    pub(crate) file: File,
    /// Further lines, where they can be read.
    pub(crate) memory: Option<File>,
}

impl KeptLog {
    /// What is still to be undone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self, proc: &Proc) -> io::Result<Journal> {
        match &self.memory {
            Some(memory) => Log::read_both(&self.file, memory, proc),
            None => Log::read(&self.file, proc),
        }
    }

    /// Writes the part that is only in memory into the file, since memory ends with the sentinel.
    pub(crate) fn keep_memory(&self) -> io::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        // A full disk may have left half a line.
        (&self.file).write_all(&[b"\n", &Log::lines_in(memory)?[..]].concat())
    }

    /// Marks the log, and removes what is left of its name: everything is undone.
    ///
    /// # Errors
    /// When it cannot be written, or its name cannot be removed.
    pub fn forget(&self) -> Result<(), LogError> {
        forget(&self.path, &self.file)
    }

    /// Keeps a damaged log, as [`Log::set_aside`] does.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn set_aside(&self) -> Result<Option<PathBuf>, LogError> {
        Log::set_aside(&self.path, &self.file)
    }
}

/// What is still to be undone according to the log of a cosched that is gone. One that is empty
/// counts as damaged if a shim holds it open: a log has lines before the first program is started.
///
/// # Errors
/// When the file cannot be read.
pub fn load_left(log: &Path, proc: &Proc) -> Result<Journal, LogError> {
    let mut journal = Log::load(log, proc)?;
    let is_empty = || log.metadata().is_ok_and(|found| found.len() == 0);
    if journal.records().is_empty() && is_empty() && is_held_by_a_shim(log, proc) {
        journal.count_damaged();
    }
    Ok(journal)
}

fn is_held_by_a_shim(log: &Path, proc: &Proc) -> bool {
    let inode = |path: &Path| path.metadata().ok().map(|found| inode(&found));
    let Some(expected) = inode(log) else { return false };
    shims(proc).any(|pid| {
        descriptors(pid, proc).any(|(_, descriptor)| inode(&descriptor) == Some(expected))
    })
}

/// Whether this user has helpers. Without any, no shim and no sentinel has to be looked for.
pub fn has_helpers(proc: &Proc) -> bool {
    helper::are_there(own_uid(), proc)
}

/// The folders in which logs are, or were, that this user's shims hold open.
pub fn folders_of_shims(proc: &Proc) -> Vec<PathBuf> {
    // What is listed in such a folder is looked at before it is believed.
    let held = held_by_shims(proc).filter(|(path, file)| owner(path).is_some() || is_log(file));
    let mut folders: Vec<PathBuf> =
        held.filter_map(|(path, _)| path.parent().map(Path::to_owned)).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// The logs of this user that belong to a cosched that is gone, and cannot be found by their names,
/// as far as shims hold them open: their names were removed or changed, or their folders cannot be
/// listed, or others may write there.
pub fn kept_by_shims(proc: &Proc) -> Vec<KeptLog> {
    let mut found: Vec<((u64, u64), KeptLog)> = Vec::new();
    for (path, file) in held_by_shims(proc).filter(|(_, file)| is_log(file)) {
        let lives = owner(&path).is_some_and(|owner| owner.look(proc).is_some());
        let is_left = !lives && !is_in_use(&file) && !namespace::is_elsewhere(&file, proc);
        if !is_left || is_found_by_name(&path, &file) {
            continue;
        }
        let Some(inode) = file.metadata().ok().filter(has_lines).map(|found| inode(&found)) else {
            continue;
        };
        if found.iter().all(|(known, _)| *known != inode) {
            found.push((inode, KeptLog { path, file, memory: None }));
        }
    }
    found.into_iter().map(|(_, log)| log).collect()
}

/// The path of an open file as the kernel shows it, without what it adds when the name is removed.
pub(super) fn shown_path(shown: PathBuf) -> PathBuf {
    let shown = shown.into_os_string().into_vec();
    let path = shown.strip_suffix(REMOVED.as_bytes()).unwrap_or(&shown);
    PathBuf::from(OsStr::from_bytes(path))
}

fn inode(found: &fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// The shims of this user.
fn shims(proc: &Proc) -> impl Iterator<Item = i32> {
    Helper::Shim.all_of(own_uid(), proc)
}

/// The files of this user that its shims hold open, with their last paths.
fn held_by_shims(proc: &Proc) -> impl Iterator<Item = (PathBuf, File)> {
    let held = shims(proc).flat_map(move |pid| descriptors(pid, proc));
    held.filter_map(|(target, by)| Some((shown_path(target), own_file(&by, own_uid())?)))
}

/// Whether an open file is a log by its content: its name proves nothing.
pub(super) fn is_log(file: &File) -> bool {
    let is_first = |one: &Record| matches!(one, Record::Boot { .. } | Record::PidNamespace { .. });
    first_records(file).iter().any(is_first)
}

/// Whether this very log is found by its name, or was set aside under it.
fn is_found_by_name(path: &Path, file: &File) -> bool {
    let is_listed = |folder: &Path| {
        path.extension().is_some_and(|extension| extension == DAMAGED)
            || Log::all(folder).is_ok_and(|logs| logs.iter().any(|log| log == path))
    };
    let is_own = || path.parent().is_some_and(|folder| is_own_folder(folder) && is_listed(folder));
    is_named(path, file) && is_own()
}

/// Whether this very file has this name.
pub(super) fn is_named(path: &Path, file: &File) -> bool {
    let own = file.metadata().map(|found| inode(&found)).ok();
    path.symlink_metadata().is_ok_and(|named| own == Some(inode(&named)))
}

/// What a process holds open, and by which descriptor.
pub(super) fn descriptors(pid: i32, proc: &Proc) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let entries = fs::read_dir(proc.folder(pid).join("fd"));
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter_map(|path| Some((fs::read_link(&path).ok()?, path)))
}

/// Opens the file behind a descriptor, if only this user can have written it. A program with other
/// permissions can have the name of a shim, and hold anything.
pub(super) fn own_file(descriptor: &Path, user: u32) -> Option<File> {
    let is_own =
        |found: &fs::Metadata| found.is_file() && found.uid() == user && found.mode() & 0o022 == 0;
    // Before it is opened: at the end of a pipe that would be noticed.
    fs::metadata(descriptor).ok().filter(is_own)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(descriptor).ok()?;
    file.metadata().ok().filter(is_own)?;
    Some(file)
}
