//! The mark of a run's cgroup: which undo log it is in, and whether its cosched lives.
//!
//! *Problem.* If the undo log was removed, and cosched and all its helpers were killed, nothing
//! leads to the cgroups of the run. Their names hold a process number, which may be in use again,
//! or be of a container that shares the cgroup trees.
//!
//! *Idea.* The kernel keeps the path of the log with the cgroup (an extended attribute: Linux 5.7).
//! A lock on the folder tells that cosched lives, in every container, whatever its number is there.
//! A cgroup has the mark only while it is locked, so one with a mark and without a lock is left
//! over.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, XattrFlags, fgetxattr, flock, fsetxattr, lgetxattr, lsetxattr};

use super::dir::Dir;
use crate::kernel::files::FileError;

const NAME: &str = "user.cosched";
/// The mark of a group that cosched made below that of a program. The program may make groups of
/// the same name.
const PART: &str = "user.cosched.part";
/// The longest path that the kernel takes.
const LONGEST: usize = 4096;

/// A run's cgroup that is marked as in use, until this is dropped.
#[derive(Debug)]
pub struct Mark {
    _folder: File,
}

impl Mark {
    /// The permissions of a folder that no other user can lock. Programs of other users still reach
    /// what is in it.
    pub const MODE: u32 = 0o711;

    /// Marks a cgroup as one of the run with this log. `None` where the kernel cannot, or where
    /// another process holds the folder: then only the log tells of the cgroup.
    pub fn set(dir: &Dir, log: &Path) -> Option<Mark> {
        let (folder, log) = (open(dir)?, std::path::absolute(log).ok()?);
        flock(&folder, FlockOperation::NonBlockingLockShared).ok()?;
        fsetxattr(&folder, NAME, log.as_os_str().as_bytes(), XattrFlags::empty()).ok()?;
        Some(Mark { _folder: folder })
    }

    /// The log of the cosched that has made this cgroup of this user and is gone, in whatever
    /// container.
    pub fn left(dir: &Dir, user: u32) -> Option<PathBuf> {
        let folder = open(dir)?;
        if folder.metadata().ok()?.uid() != user {
            return None;
        }
        let mut log = vec![0; LONGEST];
        let length = fgetxattr(&folder, NAME, &mut log[..]).ok()?;
        log.truncate(length);
        flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(PathBuf::from(OsString::from_vec(log)))
    }
}

/// Makes a group for some processes of a program, below that of the program.
pub(crate) fn make_part_of_program(home: &Dir, name: &str) -> Result<Dir, FileError> {
    let dir = home.create_child(name)?;
    match lsetxattr(dir.path(), PART, b"1", XattrFlags::empty()) {
        Ok(()) => Ok(dir),
        Err(errno) => {
            let _ = dir.remove();
            Err(FileError::io("mark cgroup", dir.path(), errno))
        }
    }
}

/// Whether cosched has made a cgroup below that of a program.
pub(crate) fn is_part_of_program(dir: &Dir) -> bool {
    lgetxattr(dir.path(), PART, &mut [0; 1][..]).is_ok()
}

fn open(dir: &Dir) -> Option<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags).open(dir.path()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::live;

    #[test]
    fn a_group_is_left_over_once_no_process_holds_its_mark() {
        let user = rustix::process::geteuid().as_raw();
        for scratch in [live::v2("mark"), live::v1("freezer", "mark")].into_iter().flatten() {
            let dir = scratch.dir();
            assert_eq!(Mark::left(dir, user), None);
            let Some(mark) = Mark::set(dir, Path::new("/run/1-2-3.undo")) else {
                eprintln!("skipped: this kernel keeps no marks of cgroups");
                continue;
            };
            assert_eq!(Mark::left(dir, user), None);
            drop(mark);
            assert_eq!(Mark::left(dir, user), Some("/run/1-2-3.undo".into()));
            assert_eq!(Mark::left(dir, user + 1), None);
        }
    }
}
