//! One comparison at a time in a folder.
//!
//! Two would overwrite each other's rounds and read each other's halves. The lock is the kernel's
//! (`flock`), on the folder itself: it leaves no file behind, and it is gone as soon as the process
//! is, however that ended. Helpers and programs do not inherit it.

use std::fs::File;
use std::path::Path;

use cosched_workload::shown_path;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::out::{self, Folder};
use crate::ui::failure::Failure;
use crate::ui::say;

/// Takes the folder, and makes it if it is not there. It is locked as long as it is held. Does not
/// wait if another process has it.
pub(super) fn take(folder: &Path) -> Result<Folder, Failure> {
    out::make(folder)?;
    let shown = shown_path(folder);
    let file = File::open(folder).map_err(|error| {
        Failure::Input(format!(
            "--out {shown}: the folder cannot be read: {error}; choose another folder"
        ))
    })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(Failure::Input(format!(
                "--out {shown}: another cosched is running a comparison there; wait for its end, \
                 or choose another folder"
            )));
        }
        Err(errno) => say(format_args!(
            "--out {shown}: the file system has no locks ({errno}); start no second \
             comparison there"
        )),
    }
    Ok(Folder::of(file, folder))
}
