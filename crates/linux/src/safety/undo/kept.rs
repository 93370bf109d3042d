//! Logs that have lost their names and are held open by shims.
//!
//! Cleaners and session managers remove files and whole folders. If cosched and its sentinel are
//! killed after that, the shims of their programs still have the log. A log that was undone, or
//! replaced by a newer file, is emptied first, so that it is not mistaken for a lost one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::journal::Journal;
use super::log::{Log, LogError, is_in_use, owner};
use crate::kernel::procfs::Proc;
use crate::process::helper::Helper;

/// The suffix that the kernel adds to the name of a removed file.
pub(super) const REMOVED: &str = " (deleted)";

/// A log that a shim holds open.
#[derive(Debug)]
pub struct KeptLog {
    /// Where it was.
    pub path: PathBuf,
    file: File,
}

impl KeptLog {
    /// What is still to be undone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn journal(&self, proc: &Proc) -> io::Result<Journal> {
        Log::read(&self.file, proc)
    }

    /// Empties the log: everything is undone.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn forget(self) -> io::Result<()> {
        self.file.set_len(0)
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
    let inode = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let Some(expected) = inode(log) else { return false };
    let pids = proc.processes().unwrap_or_default().into_iter();
    let mut shims = pids.filter(|pid| Helper::Shim.may_be(*pid, proc));
    shims.any(|pid| {
        let descriptors = fs::read_dir(proc.folder(pid).join("fd")).into_iter().flatten().flatten();
        descriptors.into_iter().any(|descriptor| inode(&descriptor.path()) == Some(expected))
    })
}

/// The logs of this user that were in one of these folders, have lost their names, and belong to a
/// cosched that is gone, as far as shims hold them open.
pub fn kept_by_shims(folders: &[PathBuf], proc: &Proc) -> Vec<KeptLog> {
    let user = rustix::process::geteuid().as_raw();
    let is_shim = |pid: &i32| Helper::Shim.may_be(*pid, proc) && proc.user(*pid) == Some(user);
    let mut found: Vec<((u64, u64), KeptLog)> = Vec::new();
    for pid in proc.processes().unwrap_or_default().into_iter().filter(is_shim) {
        for descriptor in fs::read_dir(proc.folder(pid).join("fd")).into_iter().flatten().flatten()
        {
            let Some(path) = lost_log(&descriptor.path(), folders, proc) else { continue };
            let Some((inode, file)) = own_file(&descriptor.path(), user) else { continue };
            if found.iter().all(|(known, _)| *known != inode) {
                found.push((inode, KeptLog { path, file }));
            }
        }
    }
    found.into_iter().map(|(_, log)| log).collect()
}

/// The former path of the log behind this descriptor; `None`: it is no log, or one that still has
/// its name, or one of a cosched that is still there.
fn lost_log(descriptor: &Path, folders: &[PathBuf], proc: &Proc) -> Option<PathBuf> {
    let path = PathBuf::from(fs::read_link(descriptor).ok()?.to_str()?.strip_suffix(REMOVED)?);
    let is_ours = folders.iter().any(|folder| path.parent() == Some(folder));
    let is_gone = owner(&path)?.look(proc).is_none() && path.symlink_metadata().is_err();
    (is_ours && is_gone).then_some(path)
}

/// Opens the file behind a descriptor, if only this user can have written it. A program with other
/// permissions can have the name of a shim, and hold anything.
fn own_file(descriptor: &Path, user: u32) -> Option<((u64, u64), File)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(descriptor).ok()?;
    let found = file.metadata().ok()?;
    let is_own = found.is_file() && found.uid() == user && found.mode() & 0o022 == 0;
    let holds = found.nlink() == 0 && found.len() > 0;
    (is_own && holds && !is_in_use(&file)).then_some(((found.dev(), found.ino()), file))
}
