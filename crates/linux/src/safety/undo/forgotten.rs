//! The end of a log: it is marked and removed once all is undone, and a damaged one is kept.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::kept::{is_named, shown_path};
use super::lines::{is_marked, mark_undone};
use super::log::{Log, LogError, open};
use super::place::is_own_folder;
use crate::kernel::procfs::Proc;

/// The extension of a damaged log that was set aside.
pub(super) const DAMAGED: &str = "undo-damaged";

impl Log {
    /// Marks and removes the log of a cosched that is gone, after it was undone.
    ///
    /// # Errors
    /// When the file cannot be removed. A file that is gone already is no error.
    pub fn delete_at(path: &Path) -> Result<(), LogError> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        match options.open(path) {
            Ok(file) => forget(path, &file),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(LogError { action: "open", path: path.to_owned(), source }),
        }
    }

    /// Removes a log of which everything is undone, if it can. Returns whether it is one.
    pub fn remove_if_undone(path: &Path) -> bool {
        let is_marked = path.symlink_metadata().is_ok_and(|found| is_marked(&found));
        if is_marked {
            // The folder may be one in which nothing can be removed.
            let _ = fs::remove_file(path);
        }
        is_marked
    }

    /// Keeps a damaged log, so that it is not read again: under another name in a folder of this
    /// user, and as it is elsewhere. Returns its path; `None`: no name is left to keep it under.
    ///
    /// # Errors
    /// When the file cannot be renamed.
    pub fn set_aside(path: &Path, file: &File) -> Result<Option<PathBuf>, LogError> {
        if file.metadata().is_ok_and(|found| found.nlink() == 0) {
            return Ok(None);
        }
        if !is_named(path, file) || !path.parent().is_some_and(is_own_folder) {
            return Ok(Some(path.to_owned()));
        }
        let aside = path.with_extension(DAMAGED);
        match fs::rename(path, &aside) {
            // Another process has done it.
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(LogError { action: "rename", path: path.to_owned(), source })
            }
            _ => Ok(Some(aside)),
        }
    }

    /// Keeps the damaged log of this name, as [`Log::set_aside`] does.
    ///
    /// # Errors
    /// When the file cannot be opened or renamed.
    pub fn set_aside_at(path: &Path) -> Result<Option<PathBuf>, LogError> {
        let error = |source| LogError { action: "open", path: path.to_owned(), source };
        Log::set_aside(path, &open(path).map_err(error)?)
    }
}

/// Whether nothing more will be undone after the log that this process holds open: it is marked, or
/// was set aside. The lines of an empty one may be in its sentinel's memory; if that is lost, or a
/// damaged one could not be set aside, a shim waits until its processes end.
pub(crate) fn is_done_with(file: &File, proc: &Proc) -> bool {
    let descriptor =
        proc.folder(std::process::id() as i32).join(format!("fd/{}", file.as_raw_fd()));
    let is_aside = |path: PathBuf| shown_path(path).extension().is_some_and(|it| it == DAMAGED);
    file.metadata().is_ok_and(|found| is_marked(&found))
        || fs::read_link(descriptor).is_ok_and(is_aside)
}

/// Marks an open log: everything is undone. Removes its name, too, where no other user can have put
/// another file in its place. A name that is gone already is no error.
pub(crate) fn forget(path: &Path, file: &File) -> Result<(), LogError> {
    let error = |action, source| LogError { action, path: path.to_owned(), source };
    let found = file.metadata().map_err(|source| error("look at", source))?;
    let marked = match found.is_file() && !is_marked(&found) {
        true => mark_undone(file).map_err(|source| error("mark", source)),
        false => Ok(()),
    };
    let removed = match is_named(path, file) && path.parent().is_some_and(is_own_folder) {
        true => fs::remove_file(path),
        false => Ok(()),
    };
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(error("remove", source)),
        _ => marked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shim that waits for all to be undone sees of the log.
    #[test]
    fn a_log_is_done_with_once_it_is_marked_or_set_aside() {
        let (proc, folder) = (Proc::default(), tempfile::tempdir().unwrap());
        let held = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            (File::options().read(true).write(true).open(&path).unwrap(), path)
        };
        for text in ["{}\n", ""] {
            let (file, path) = held("5-8-1.undo", text);
            assert!(!is_done_with(&file, &proc), "{text:?}");
            forget(&path, &file).unwrap();
            assert!(is_done_with(&file, &proc), "{text:?}");
        }
        let (file, path) = held("5-8-2.undo", "damaged\n");
        let aside = Log::set_aside(&path, &file).unwrap().unwrap();
        assert!(is_done_with(&file, &proc));
        fs::remove_file(aside).unwrap();
        assert!(is_done_with(&file, &proc));
        let (file, path) = held("5-8-3.undo", "{}\n");
        fs::remove_file(path).unwrap();
        assert!(!is_done_with(&file, &proc), "shims lead to it");
    }
}
