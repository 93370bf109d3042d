//! Files that may replace an earlier one of their kind, and nothing else.
//!
//! *Problem.* A page, a plot or a trace is written again and again under one name. A slip of the
//! finger on the command line names something else: a workload, the very result that is looked at.
//!
//! *Idea.* The existing file is read, and its content tells whether cosched made it; a name or an
//! ending proves nothing. The new file is written beside it and takes its name when it is complete,
//! so that no process ever finds half a file. A link is refused: in a folder that others may write
//! to, it could lead to any file of the user.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cosched_workload::input::is_descriptor;
use cosched_workload::shown_path;
use rustix::fs::{Access, OFlags, access};
use tempfile::NamedTempFile;

use crate::ui::failure::Failure;

/// A kind of file that cosched makes.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// The command that makes it.
    pub made_by: &'static str,
    /// Its option that names another place.
    pub option: &'static str,
    /// Whether a file that begins like this is of this kind.
    pub is_one: fn(&[u8]) -> bool,
}

/// Links that only the system makes, and devices.
const STREAMS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/null"];
/// So much of a file tells its kind.
const BEGINNING: u64 = 4096;

/// Writes a file, but over nothing of another kind.
///
/// # Errors
/// When there is a file of another kind, or the system refuses.
pub fn replace(file: &Path, content: &[u8], kind: FileKind) -> Result<(), Failure> {
    let written = match is_stream(file) {
        true => open_stream(file).and_then(|mut stream| stream.write_all(content)),
        false => check_kind(file, kind).map(|()| write(file, content))?,
    };
    written.map_err(|error| refused(file, kind, &error))
}

/// Checks that a file can be written later, before the work of hours that is to go into it. A pipe
/// is not opened: its reader would take the close for the end.
///
/// # Errors
/// When there is a file of another kind, or nothing can be written there.
pub fn check(file: &Path, kind: FileKind) -> Result<(), Failure> {
    let checked = match is_stream(file) {
        true => access(file, Access::WRITE_OK).map_err(io::Error::from),
        false => check_kind(file, kind).map(|()| part(file).map(drop))?,
    };
    checked.map_err(|error| refused(file, kind, &error))
}

/// Whether it is a pipe or a terminal, which hold nothing that could be lost.
fn is_stream(file: &Path) -> bool {
    let found = if is_followed(file) { fs::metadata(file) } else { fs::symlink_metadata(file) };
    found.is_ok_and(|found| is_of_stream(&found))
}

fn open_stream(file: &Path) -> io::Result<File> {
    let flags = if is_followed(file) { OFlags::empty() } else { OFlags::NOFOLLOW };
    let open = File::options().write(true).custom_flags(flags.bits() as i32).open(file)?;
    match is_of_stream(&open.metadata()?) {
        true => Ok(open),
        false => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

fn is_of_stream(found: &Metadata) -> bool {
    found.file_type().is_char_device() || found.file_type().is_fifo()
}

/// No link is followed but those of the system, such as `/dev/stdout`.
fn is_followed(file: &Path) -> bool {
    STREAMS.iter().any(|name| file == Path::new(name)) || is_descriptor(file)
}

/// Checks that nothing is there but an earlier file of this kind.
fn check_kind(file: &Path, kind: FileKind) -> Result<(), Failure> {
    let what = match file.symlink_metadata() {
        Err(_) => return Ok(()),
        Ok(found) if found.is_symlink() => {
            "is a symbolic link, which cosched does not follow".to_owned()
        }
        Ok(_) if is_of(file, kind) => return Ok(()),
        Ok(_) => format!("exists and was not made by `{}`", kind.made_by),
    };
    Err(Failure::Input(format!(
        "{}: {what}; choose another place with {}, or move it away",
        shown_path(file),
        kind.option
    )))
}

fn refused(file: &Path, kind: FileKind, error: &io::Error) -> Failure {
    Failure::unwritable(file, error, &format!("choose another place with {}", kind.option))
}

fn is_of(file: &Path, kind: FileKind) -> bool {
    let mut beginning = Vec::new();
    // A pipe may have taken the name meanwhile.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let open = File::options().read(true).custom_flags(flags).open(file);
    let read = open.and_then(|open| match open.metadata()?.is_file() {
        true => open.take(BEGINNING).read_to_end(&mut beginning),
        false => Err(io::ErrorKind::InvalidInput.into()),
    });
    read.is_ok() && (kind.is_one)(&beginning)
}

fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut part = part(file)?;
    // By the file itself: the user knows nothing of the name that it has for now, and is not to be
    // told it.
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
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    const KIND: FileKind = FileKind {
        made_by: "cosched test",
        option: "--place",
        is_one: |beginning| beginning.starts_with(b"ours"),
    };

    #[test]
    fn an_earlier_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        replace(&file, b"ours 1", KIND).unwrap();
        replace(&file, b"ours 2", KIND).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"ours 2");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        replace(Path::new("/dev/null"), b"gone", KIND).unwrap();
    }

    /// The reader sees one writer only, with the whole content.
    #[test]
    fn a_pipe_is_checked_without_being_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(!is_of(&pipe, KIND));
        let (ends, read) = std::sync::mpsc::channel();
        let from = pipe.clone();
        std::thread::spawn(move || ends.send(fs::read(from).unwrap()));
        check(&pipe, KIND).unwrap();
        let (done, over) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(replace(&pipe, b"ours", KIND).is_ok()));
        let patience = std::time::Duration::from_secs(20);
        assert_eq!(over.recv_timeout(patience), Ok(true));
        assert_eq!(read.recv_timeout(patience).as_deref(), Ok(&b"ours"[..]));
    }

    #[test]
    fn anything_else_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name| folder.path().join(name);
        let [notes, ours, link, nowhere, null] =
            ["notes", "ours", "link", "nowhere", "null"].map(place);
        fs::write(&notes, "precious").unwrap();
        replace(&ours, b"ours 1", KIND).unwrap();
        for (name, to) in [(&link, "ours"), (&nowhere, "gone"), (&null, "/dev/null")] {
            std::os::unix::fs::symlink(to, name).unwrap();
        }
        let other = "was not made by `cosched test`; choose another place with --place";
        let followed =
            "is a symbolic link, which cosched does not follow; choose another place with --place";
        let folder_itself = folder.path().to_owned();
        let places = [
            (&notes, other),
            (&folder_itself, other),
            (&link, followed),
            (&nowhere, followed),
            (&null, followed),
        ];
        for (place, why) in places {
            let refusal = replace(place, b"ours 2", KIND).unwrap_err();
            let Failure::Input(refusal) = refusal else { panic!("{refusal:?}") };
            assert!(refusal.contains(why), "{refusal}");
        }
        assert_eq!(fs::read(&notes).unwrap(), b"precious");
        assert_eq!(fs::read(&ours).unwrap(), b"ours 1");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    }
}
