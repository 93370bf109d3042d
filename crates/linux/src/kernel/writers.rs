//! Which processes write to files of a folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::files;
use super::procfs::{Fd, Proc, status_field};

/// Some files of a folder, with the device and inode of each.
pub type Files = BTreeMap<OsString, (u64, u64)>;

/// The processes that have one of these files open for writing, ascending, as far as the caller may
/// see that.
pub fn writers(proc: &Proc, files: &Files) -> Vec<i32> {
    let writes = |pid: &i32| {
        let process = proc.folder(*pid);
        let fds = proc.fds(*pid).unwrap_or_default();
        fds.iter().any(|fd| is_one(&process, fd, files) && is_for_writing(&process, fd))
    };
    proc.processes().unwrap_or_default().into_iter().filter(writes).collect()
}

/// Names are compared first: to look at a file on a network that is down takes forever.
fn is_one(process: &Path, fd: &Fd, files: &Files) -> bool {
    let named = Path::new(&fd.target).file_name().and_then(|name| files.get(name));
    let found = || fs::metadata(process.join(format!("fd/{}", fd.number))).ok();
    named.is_some_and(|id| found().is_some_and(|found| (found.dev(), found.ino()) == *id))
}

/// By its flags, of which the last octal digit has the access mode: 0 is reading.
fn is_for_writing(process: &Path, fd: &Fd) -> bool {
    let text = files::read_if_there(&process.join(format!("fdinfo/{}", fd.number)));
    let flags = text.ok().flatten();
    let flags = flags.and_then(|text| i32::from_str_radix(status_field(&text, "flags")?, 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};

    use super::*;

    #[test]
    fn a_file_open_for_writing_has_a_writer_and_one_read_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let (path, own) = (folder.path().join("a.stdout"), std::process::id() as i32);
        let file = File::create(&path).unwrap();
        let found = file.metadata().unwrap();
        let files = Files::from([("a.stdout".into(), (found.dev(), found.ino()))]);
        let writers = || writers(&Proc::default(), &files);
        assert!(writers().contains(&own));
        drop(file);
        let _reads = File::open(&path).unwrap();
        assert!(!writers().contains(&own));
        let _appends = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(writers().contains(&own));
        let other = Files::from([("a.stdout".into(), (found.dev(), 1))]);
        assert!(super::writers(&Proc::default(), &other).is_empty(), "another file of this name");
    }
}
