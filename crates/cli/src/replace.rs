//! Files that may replace an earlier one of their kind, and nothing else.
//!
//! *Problem.* A page, a plot or a trace is written again and again under one name. A slip of the finger on the command
//! line names something else: a workload, the very result that is looked at.
//!
//! *Idea.* What is there is read, and known by its content whether cosched made it; a name or an ending proves nothing.
//! The new file is written beside it and takes its name when it is complete, so that nobody ever finds half a file.
//! Links are followed first: a link to an earlier file is kept and leads to the new one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use cosched_core::workload::shown_path;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A kind of file that cosched makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// The command that makes it.
    pub(crate) made_by: &'static str,
    /// Its option that names another place.
    pub(crate) option: &'static str,
    /// Whether a file that begins like this is of this kind.
    pub(crate) is_one: fn(&[u8]) -> bool,
}

/// So much of a file tells its kind.
const BEGINNING: u64 = 4096;

/// Writes a file, but over nothing of another kind.
pub(crate) fn replace(file: &Path, content: &[u8], kind: Kind) -> Result<(), Failure> {
    if holds_nothing(file) {
        return File::options()
            .write(true)
            .open(file)
            .and_then(|mut open| open.write_all(content))
            .map_err(|error| refused(file, kind, &error));
    }
    write(&target(file, kind)?, content).map_err(|error| refused(file, kind, &error))
}

/// Checks that a file can be written later, before the work of hours that is to go into it.
pub(crate) fn check(file: &Path, kind: Kind) -> Result<(), Failure> {
    if holds_nothing(file) {
        return Ok(());
    }
    part(&target(file, kind)?).map(drop).map_err(|error| refused(file, kind, &error))
}

/// A pipe or a terminal holds nothing that could be lost.
fn holds_nothing(file: &Path) -> bool {
    fs::metadata(file)
        .is_ok_and(|found| found.file_type().is_char_device() || found.file_type().is_fifo())
}

/// Where it is to be written, behind links.
fn target(file: &Path, kind: Kind) -> Result<PathBuf, Failure> {
    match file.symlink_metadata() {
        Err(_) => Ok(file.to_owned()),
        Ok(_) if is_of(file, kind) => {
            file.canonicalize().map_err(|error| refused(file, kind, &error))
        }
        Ok(_) => Err(Failure::Input(format!(
            "{}: is there and was not made by `{}`; choose another place with {}, or move it away",
            shown_path(file),
            kind.made_by,
            kind.option
        ))),
    }
}

fn refused(file: &Path, kind: Kind, error: &io::Error) -> Failure {
    Failure::unwritable(file, error, &format!("choose another place with {}", kind.option))
}

fn is_of(file: &Path, kind: Kind) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|open| open.take(BEGINNING).read_to_end(&mut beginning));
    read.is_ok() && (kind.is_one)(&beginning)
}

fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut part = part(file)?;
    // By the file itself: the user knows nothing of the name that it has for now, and is not to be told it.
    part.as_file_mut().write_all(content)?;
    part.persist(file).map_err(|refused| refused.error)?;
    Ok(())
}

/// A file beside it, to take its name later.
fn part(file: &Path) -> io::Result<NamedTempFile> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    // As any new file: for all, less what the user's mask takes away.
    tempfile::Builder::new().make_in(&folder, |path| File::create_new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        made_by: "cosched test",
        option: "--place",
        is_one: |beginning| beginning.starts_with(b"ours"),
    };

    #[test]
    fn an_earlier_file_is_replaced_also_behind_a_link_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        replace(&file, b"ours 1", KIND).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"ours 2", KIND).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"ours 2");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        replace(Path::new("/dev/null"), b"gone", KIND).unwrap();
    }

    #[test]
    fn anything_else_is_refused_also_behind_a_link_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("notes"), folder.path().join("link"));
        let nowhere = folder.path().join("nowhere");
        fs::write(&file, "precious").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink("gone", &nowhere).unwrap();
        for place in [&file, &link, &nowhere, &folder.path().to_owned()] {
            let refusal = replace(place, b"ours", KIND).unwrap_err();
            let Failure::Input(refusal) = refusal else { panic!("{refusal:?}") };
            assert!(
                refusal
                    .contains("was not made by `cosched test`; choose another place with --place"),
                "{refusal}"
            );
        }
        assert_eq!(fs::read(&file).unwrap(), b"precious");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
