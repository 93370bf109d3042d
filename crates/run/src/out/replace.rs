//! `--force`: the output folder of an earlier run makes room for a new one.
//!
//! Only what cosched writes is removed, and only from a folder that holds nothing else: `run.json`,
//! the two outputs of each program that it names, and what `report` and `trace` make beside it. A
//! killed run has no `run.json`, but a [file](super::mark) with its programs' names. Outputs that a
//! process still writes are left alone.
//!
//! The folder is held open from the first look to the last file, and no link is followed: neither
//! the folder nor a file in it may be one.
//!
//! Two commands at once must not both look before either removes: the second would remove outputs
//! of the first one's programs. Therefore a lock on the folder is taken before the first look. The
//! lock is the kernel's, and is gone as soon as the process is. Its holder keeps it for the whole
//! run, since a folder may not take the [file](super::mark) that marks a run in progress.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cosched_core::format::list;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::writers::{Files, writers};
use cosched_results::result::{MAX_BYTES, RunResult};
use cosched_results::whole_file;
use cosched_workload::input;
use cosched_workload::{shown, shown_path};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat, unlinkat};
use rustix::io::Errno;

use super::{RESULT, make, mark, output, own_path, refused};
use crate::ui::failure::Failure;
use crate::ui::say;

/// What `report` and `trace` make beside the result.
const MADE_BESIDE: [&str; 2] = [super::REPORT, super::TRACE];
/// Their first bytes have cosched's name.
const FIRST_BYTES: u64 = 4096;
/// The most processes that a message names.
const MOST_NAMED: usize = 8;

/// A folder that no other `--force` looks at as long as this is held.
#[derive(Debug)]
pub(crate) struct TakenFolder(File);

/// Removes the files of an earlier run, if there are any. Makes the folder, if it is not there. The
/// caller holds the claim until its own run has ended.
///
/// # Errors
/// When the folder is a link, is another run's, holds anything that no run has written, or has
/// outputs that processes still write. Nothing is removed then.
pub(crate) fn replace(out: &Path) -> Result<TakenFolder, Failure> {
    let TakenFolder(folder) = claim(out)?;
    let files = files(out, &folder)?;
    // The file that says which run made the folder goes last: without it, the folder would be
    // refused the next time.
    let tells_the_run = |file: &&OsString| *file == RESULT || *file == mark::NAME;
    let (result, outputs): (Vec<_>, Vec<_>) = files.iter().partition(tells_the_run);
    check_complete(out, &folder, &outputs)?;
    for file in outputs.into_iter().chain(result) {
        unlinkat(&folder, file, AtFlags::empty()).map_err(|error| {
            // Without locks, another command may remove the same files. The first one that finds
            // a file gone gives up, so one of them goes on.
            if error == Errno::NOENT {
                return refused(out, mark::TAKEN);
            }
            let (file, error) = (shown(&file.to_string_lossy()), io::Error::from(error));
            refused(out, &format!("{file} cannot be removed: {error}; choose another folder"))
        })?;
    }
    Ok(TakenFolder(folder))
}

/// Takes the folder, unless another run has it.
fn claim(out: &Path) -> Result<TakenFolder, Failure> {
    // With a slash at its end, a link would be followed.
    let name: PathBuf = out.components().collect();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match open(&name, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            make(out)?;
            open(&name, flags, Mode::empty())
        }
        opened => opened,
    };
    let folder = match opened {
        Ok(folder) => File::from(folder),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(refused(
                out,
                "it is a link, or no folder: --force removes nothing there; name the folder itself",
            ));
        }
        Err(error) => return Err(refused(out, &io::Error::from(error).to_string())),
    };
    let locked = mark::lock(&folder);
    let taken = (locked == Err(Errno::WOULDBLOCK)).then_some(mark::TAKEN);
    if let Some(why) = taken.or_else(|| mark::in_progress(&folder)) {
        return Err(refused(out, why));
    }
    if let Err(errno) = locked {
        say(format_args!(
            "--out {}: the file system has no locks ({errno}); start no second run there",
            shown_path(out)
        ));
    }
    Ok(TakenFolder(folder))
}

/// The files in the folder, all of which a run wrote.
fn files(out: &Path, folder: &File) -> Result<BTreeSet<OsString>, Failure> {
    let unreadable = |error: io::Error| refused(out, &error.to_string());
    let entries = fs::read_dir(own_path(folder)).map_err(unreadable)?;
    let found = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let found: BTreeSet<OsString> = found.collect::<io::Result<_>>().map_err(unreadable)?;
    if found.is_empty() {
        return Ok(found);
    }
    let written = written(folder).map_err(|why| {
        let what =
            format!("--force replaces only what a run wrote, and {why}; choose another folder");
        refused(out, &what)
    })?;
    let is_file = |name: &OsString| {
        let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file())
    };
    let is_ours = |name: &OsString| {
        let made_beside = MADE_BESIDE.iter().any(|made| name == made);
        written.contains(name) && is_file(name) && (!made_beside || names_cosched(folder, name))
    };
    match found.iter().find(|name| !is_ours(name)) {
        None => Ok(found),
        Some(other) => Err(refused(
            out,
            &format!(
                "--force replaces only what a run wrote, and {} is something else: move it away, \
                 or choose another folder",
                shown(&other.to_string_lossy())
            ),
        )),
    }
}

/// Refuses outputs that a process still writes, as programs of a killed cosched do: what they write
/// would be lost.
fn check_complete(out: &Path, folder: &File, outputs: &[&OsString]) -> Result<(), Failure> {
    let file = |name: &&OsString| {
        let found = statat(folder, *name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(((*name).clone(), (found.st_dev, found.st_ino)))
    };
    let outputs: Files = outputs.iter().filter_map(file).collect();
    if outputs.is_empty() {
        return Ok(());
    }
    let writers = writers(&Proc::own().map_err(Failure::input)?, &outputs);
    if writers.is_empty() {
        return Ok(());
    }
    let (some, rest) = writers.split_at(writers.len().min(MOST_NAMED));
    let mut named: Vec<String> = some.iter().map(i32::to_string).collect();
    let kill = named.join(" ");
    named.extend((!rest.is_empty()).then(|| format!("{} more", rest.len())));
    let (who, them) = match writers.len() {
        1 => (format!("process {kill} still writes"), "it"),
        _ => (format!("processes {} still write", list(&named)), "them"),
    };
    Err(refused(
        out,
        &format!(
            "{who} outputs there, which --force would remove: wait for {them}, end {them} (`kill \
             {kill}`), or choose another folder"
        ),
    ))
}

/// Whether a file says at its beginning that cosched made it.
fn names_cosched(folder: &File, name: &OsString) -> bool {
    let flags = OFlags::RDONLY | mark::FLAGS;
    let opened = openat(folder, name, flags, Mode::empty()).map(File::from);
    let mut first = Vec::new();
    let is_read = opened.is_ok_and(|file| file.take(FIRST_BYTES).read_to_end(&mut first).is_ok());
    is_read && first.windows(7).any(|word| word == b"cosched")
}

/// The names of the files that cosched wrote there; or why they are not known.
fn written(folder: &File) -> Result<BTreeSet<OsString>, String> {
    let outputs = programs(folder)?.into_iter().flat_map(|program| {
        ["stdout", "stderr"].map(|stream| output(Path::new(""), &program, stream))
    });
    let part = whole_file::part(Path::new(RESULT)).into_os_string();
    let beside = [RESULT, mark::NAME].iter().chain(&MADE_BESIDE).map(OsString::from);
    Ok(outputs.map(PathBuf::into_os_string).chain(beside).chain([part]).collect())
}

/// The programs of the run, by its result, or by the mark of one that was killed.
fn programs(folder: &File) -> Result<Vec<String>, String> {
    let file = match openat(folder, RESULT, OFlags::RDONLY | mark::FLAGS, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => {
            return mark::programs(folder).ok_or_else(|| format!("there is no {RESULT}"));
        }
        Err(error) => return Err(format!("{RESULT} cannot be read: {}", io::Error::from(error))),
    };
    let unreadable = |error: io::Error| format!("{RESULT} cannot be read: {error}");
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(format!("{RESULT} is no file"));
    }
    let text = input::read(&own_path(&file), MAX_BYTES).map_err(unreadable)?;
    let result = RunResult::read(&text, Path::new(RESULT));
    let result = result.map_err(|_| format!("{RESULT} is no result of a run"))?;
    Ok(result.programs.into_iter().map(|program| program.name).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Barrier;
    use std::thread;

    use tempfile::TempDir;

    use super::super::Folder;
    use super::super::mark::RunMark;
    use super::*;

    const OUTPUT: &str = "a.stdout";

    /// A folder as a killed run of the program `a` leaves it.
    fn left_by_a_killed_run() -> TempDir {
        let place = tempfile::tempdir().unwrap();
        mark::leave(place.path(), "a");
        fs::write(place.path().join(OUTPUT), "old").unwrap();
        place
    }

    #[test]
    fn nothing_is_removed_while_another_force_has_the_folder() {
        let place = left_by_a_killed_run();
        let held = claim(place.path()).unwrap();
        let refused = replace(place.path()).unwrap_err();
        assert!(matches!(refused, Failure::Input(_)), "{refused:?}");
        assert!(refused.text().contains(mark::TAKEN), "{refused:?}");
        assert_eq!(fs::read_to_string(place.path().join(OUTPUT)).unwrap(), "old");
        drop(held);
        replace(place.path()).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_locks_no_run_is_replaced_that_may_go_on() {
        mark::HAS_NO_LOCKS.set(true);
        let place = left_by_a_killed_run();
        let refused = replace(place.path()).unwrap_err();
        assert!(refused.text().contains(mark::MAY_BE_TAKEN), "{refused:?}");
        assert!(place.path().join(OUTPUT).exists());
        let empty = tempfile::tempdir().unwrap();
        replace(empty.path()).unwrap();
    }

    /// The result is saved before the mark is removed.
    #[test]
    fn nothing_is_removed_between_a_result_and_the_end() {
        let place = left_by_a_killed_run();
        let folder = Folder::open(place.path()).unwrap();
        let _mark = RunMark::set(&folder, &[]).unwrap().unwrap();
        fs::write(place.path().join(RESULT), "").unwrap();
        let refused = replace(place.path()).unwrap_err();
        assert!(refused.text().contains(mark::TAKEN), "{refused:?}");
        assert!(place.path().join(OUTPUT).exists());
    }

    #[test]
    fn of_many_at_once_one_has_the_folder() {
        const MANY: usize = 8;
        let place = left_by_a_killed_run();
        let (begin, end) = (Barrier::new(MANY), Barrier::new(MANY));
        let one = || {
            begin.wait();
            let claim = replace(place.path());
            end.wait();
            claim.is_ok()
        };
        let won = thread::scope(|scope| {
            let all: Vec<_> = (0..MANY).map(|_| scope.spawn(one)).collect();
            all.into_iter().filter_map(|one| one.join().unwrap().then_some(())).count()
        });
        assert_eq!(won, 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_made_and_claimed() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("b/c");
        let _held = replace(&out).unwrap();
        assert!(replace(&out).unwrap_err().text().contains(mark::TAKEN));
    }
}
