//! Files that are written whole or not at all: a reader never finds half a file.
//!
//! The content goes into a new file in the same folder, which then takes the name. No link is
//! followed, neither under the name nor under that of the new file: in a folder that others may
//! write to, a link could lead to any file of the user. The folder itself could become such a link,
//! so results of runs replace nothing ([`create`]).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file. An existing file or link of that name is replaced.
///
/// # Errors
/// When the folder or the file cannot be written.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, |part| fs::rename(part, path))
}

/// Writes a file where there is none, or only a link.
///
/// # Errors
/// When there is a file, or the folder or the file cannot be written.
pub fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.is_symlink() {
        // A link holds nothing that could be lost.
        fs::remove_file(path)?;
    }
    put(path, content, |part| match fs::hard_link(part, path) {
        // A second name that cannot be removed does no harm.
        Ok(()) => Ok(_ = fs::remove_file(part)),
        // Not every file system has hard links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !is_there(path) => {
            fs::rename(part, path)
        }
        Err(error) => Err(error),
    })
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn put(
    path: &Path,
    content: &[u8],
    give_the_name: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let part = part(path);
    // A leftover of a crash, or a link that another process has put there.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&part)?;
    let written = file.write_all(content).and_then(|()| give_the_name(&part));
    if written.is_err() {
        // If even that fails, the user still has to know the first error.
        let _ = fs::remove_file(&part);
    }
    written
}

/// The name that the content has before the file gets its name.
pub fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_existing_file_is_not_replaced_by_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("run.json"), folder.path().join("link"));
        create(&file, b"one").unwrap();
        assert_eq!(create(&file, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        symlink(&file, &link).unwrap();
        create(&link, b"two").unwrap();
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(&link).unwrap()),
            (b"one".into(), b"two".into())
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    /// A temporary file that a crash left behind does not keep the next file from being written.
    #[test]
    fn links_are_not_followed_and_crash_leftovers_do_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let (file, foreign) = (folder.path().join("run.json"), folder.path().join("foreign"));
        fs::write(&foreign, "precious").unwrap();
        symlink(&foreign, &file).unwrap();
        symlink(&foreign, part(&file)).unwrap();
        write(&file, b"one").unwrap();
        fs::write(part(&file), "half").unwrap();
        write(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read(&foreign).unwrap(), b"precious");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
