//! The file that says, as long as a run lasts, that its folder is cosched's.
//!
//! A killed run leaves outputs, but no result by which `--force` could recognise them. Therefore a
//! run first writes its programs' names into this file, and removes the file after the result is
//! saved. A lock on the file distinguishes a run in progress from a killed one.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

pub(super) use cosched_results::result::RUN_IN_PROGRESS as NAME;
use cosched_workload::ProgramSpec;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, openat};
use rustix::io::Errno;

use super::{Folder, RESULT, refused};
use crate::ui::failure::Failure;

/// For a user who finds the file.
const FIRST_LINE: &str =
    "cosched runs these programs, or was killed; `cosched run --force` replaces their outputs:";
/// Why a folder is refused in which another run is in progress.
pub(super) const TAKEN: &str = "another cosched is running programs there; choose another folder";
/// Why a folder is refused in which another run may be in progress.
pub(super) const MAY_BE_TAKEN: &str = "\
    a run is in progress there, or was killed, and the file system has no locks, which would tell: \
    choose another folder, or remove the run's files if no run is in progress";
/// Why a folder is refused that got a result after it was looked at.
const HAS_ENDED: &str = "another run has just ended there; choose another folder";
/// The names of the most programs fit.
const MAX_BYTES: u64 = 1 << 20;
pub(super) const FLAGS: OFlags = OFlags::from_bits_retain(
    OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits() | OFlags::CLOEXEC.bits(),
);

/// The file of a run in progress.
#[derive(Debug)]
pub(crate) struct RunMark {
    path: PathBuf,
    _locked: File,
}

impl RunMark {
    /// Marks a folder. `None` if the file cannot be written: a run does not depend on it.
    ///
    /// # Errors
    /// When another cosched runs programs into the folder, or has done so since it was looked at.
    pub(crate) fn set(
        folder: &Folder,
        programs: &[ProgramSpec],
    ) -> Result<Option<RunMark>, Failure> {
        let path = folder.place(Path::new(NAME));
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | FLAGS;
        let (file, is_new) = match open(&path, new, Mode::from_raw_mode(0o600)) {
            Ok(file) => (file, true),
            Err(Errno::EXIST) => match open(&path, OFlags::RDWR | FLAGS, Mode::empty()) {
                Ok(file) => (file, false),
                Err(_) => return Ok(None),
            },
            Err(_) => return Ok(None),
        };
        match lock(&file) {
            Err(Errno::WOULDBLOCK) => return Err(refused(&folder.shown, TAKEN)),
            Err(_) if !is_new => return Err(refused(&folder.shown, MAY_BE_TAKEN)),
            _ => {}
        }
        let mut file = File::from(file);
        if folder.place(Path::new(RESULT)).symlink_metadata().is_ok() {
            if is_new {
                RunMark { path, _locked: file }.remove();
            }
            return Err(refused(&folder.shown, HAS_ENDED));
        }
        // Another file may have got this name meanwhile.
        if !is_new_or_ours(&mut file) {
            return Ok(None);
        }
        let names: String = programs.iter().map(|spec| format!("{}\n", spec.name)).collect();
        let text = format!("{FIRST_LINE}\n{names}");
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        let mark = RunMark { path, _locked: file };
        if written.is_err() {
            mark.remove();
            return Ok(None);
        }
        Ok(Some(mark))
    }

    /// Removes the file: the result says what the folder is, or nothing is there.
    pub(crate) fn remove(&self) {
        // One that stays does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Why the folder is another run's, which has marked it and may not have ended.
pub(super) fn in_progress(folder: &File) -> Option<&'static str> {
    match lock(openat(folder, NAME, OFlags::RDONLY | FLAGS, Mode::empty()).ok()?) {
        Ok(()) => None,
        Err(Errno::WOULDBLOCK) => Some(TAKEN),
        Err(_) => Some(MAY_BE_TAKEN),
    }
}

/// The programs of a killed run with outputs in the folder.
pub(super) fn programs(folder: &File) -> Option<Vec<String>> {
    let file = openat(folder, NAME, OFlags::RDONLY | FLAGS, Mode::empty()).ok()?;
    // In a folder of all users, another one could name files that are none of ours.
    if fstat(&file).is_ok_and(|found| found.st_uid != rustix::process::geteuid().as_raw()) {
        return None;
    }
    let mut text = String::new();
    let read = File::from(file).take(MAX_BYTES).read_to_string(&mut text);
    let mut lines = text.lines().map(str::to_owned);
    let is_ours = read.is_ok() && lines.next().is_some_and(|line| line == FIRST_LINE);
    is_ours.then(|| lines.collect())
}

/// Whether a file is empty and has this name alone, or is left of a killed run.
fn is_new_or_ours(file: &mut File) -> bool {
    let Ok(found) = fstat(&file) else { return false };
    let is_own = found.st_uid == rustix::process::geteuid().as_raw() && found.st_nlink == 1;
    let mut begin = String::new();
    let mut is_ours = || {
        let read = file.take(FIRST_LINE.len() as u64).read_to_string(&mut begin);
        let back = file.seek(SeekFrom::Start(0));
        read.is_ok() && back.is_ok() && begin == FIRST_LINE
    };
    is_own && (found.st_size == 0 || is_ours())
}

/// Locks a file or folder. It is `WOULDBLOCK` if another process has done so; any other error is
/// of a file system without locks, as some over a network are.
pub(super) fn lock(file: impl AsFd) -> Result<(), Errno> {
    #[cfg(test)]
    if HAS_NO_LOCKS.get() {
        return Err(Errno::NOLCK);
    }
    flock(file, FlockOperation::NonBlockingLockExclusive)
}

#[cfg(test)]
thread_local! {
    /// Whether this thread's test is on a file system without locks.
    pub(super) static HAS_NO_LOCKS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Leaves the file as a killed run of this program does.
#[cfg(test)]
pub(super) fn leave(out: &Path, program: &str) {
    std::fs::write(out.join(NAME), format!("{FIRST_LINE}\n{program}\n")).unwrap();
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_result_that_came_meanwhile_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        fs::write(place.path().join(RESULT), "").unwrap();
        let refused = RunMark::set(&folder, &[]).unwrap_err();
        assert!(refused.text().contains(HAS_ENDED), "{refused:?}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "the result");
    }

    #[test]
    fn without_locks_a_mark_that_came_meanwhile_is_not_taken() {
        HAS_NO_LOCKS.set(true);
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let mark = RunMark::set(&folder, &[]).unwrap().unwrap();
        let refused = RunMark::set(&folder, &[]).unwrap_err();
        assert!(refused.text().contains(MAY_BE_TAKEN), "{refused:?}");
        mark.remove();
        assert!(RunMark::set(&folder, &[]).unwrap().is_some());
    }

    #[test]
    fn files_that_got_the_name_meanwhile_are_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let (out, other) = (place.path().join("out"), place.path().join("other"));
        fs::create_dir(&out).unwrap();
        let marked = || {
            let folder = Folder::open(&out).unwrap();
            RunMark::set(&folder, &[]).unwrap().map(|mark| mark.remove()).is_some()
        };
        for (content, is_linked) in [("precious", false), ("precious", true), ("", true)] {
            fs::write(&other, content).unwrap();
            match is_linked {
                true => fs::hard_link(&other, out.join(NAME)).unwrap(),
                false => fs::write(out.join(NAME), content).unwrap(),
            }
            assert!(!marked(), "{content:?}, {is_linked}");
            assert_eq!(fs::read_to_string(out.join(NAME)).unwrap(), content);
            fs::remove_file(out.join(NAME)).unwrap();
        }
        fs::write(out.join(NAME), format!("{FIRST_LINE}\nleft\n")).unwrap();
        assert!(marked() && !out.join(NAME).exists(), "it was left of a killed run");
    }
}
