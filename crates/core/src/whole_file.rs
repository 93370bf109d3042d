//! Files that are written whole or not at all: a reader never finds half a file.
//!
//! The content goes into a new file beside it, which then takes the name. No link is followed, neither
//! under the name nor under that of the new file: in a folder that others may write to, a link could lead
//! to any file of the user.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file; one of that name is replaced, also if it is a link.
///
/// # Errors
/// When the folder or the file cannot be written.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = part(path);
    // What a crash has left, or a link that somebody has put there.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&part)?;
    let written = file.write_all(content).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // If even that fails, what went wrong first is what the user has to know.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Where the content is before the file gets its name.
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
    fn no_link_is_followed_and_what_a_crash_has_left_is_in_nobodys_way() {
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
