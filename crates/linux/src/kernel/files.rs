//! The kernel's small text files: read and written whole, with errors that name the path.
//!
//! Files of `/proc`, `/sys` and cgroups are written with one `write` and never
//! created or truncated: the kernel acts on each write, and a file that is not
//! there means a kernel that lacks the feature, not a file to make.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Nearly every file of the kernel that we read is shorter: one page.
const USUAL_SIZE: usize = 4096;

/// Why a kernel file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content is not what this kind of file holds.
    #[error("{} should hold {expected}, but holds '{found}'", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// The content, or the part that is wrong.
        found: String,
    },
}

impl FileError {
    /// Wraps the system's error for `path`.
    pub fn io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> FileError {
        FileError::Io { action, path: path.to_owned(), source: source.into() }
    }

    /// Says that the content of `path` is not as expected.
    pub(crate) fn malformed(path: &Path, expected: &'static str, found: &str) -> FileError {
        FileError::Malformed { path: path.to_owned(), expected, found: found.trim().to_owned() }
    }

    /// The system's error number, if the system refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            FileError::Io { source, .. } => source.raw_os_error(),
            FileError::Malformed { .. } => None,
        }
    }

    /// Whether the thing is not there (any more): a missing file, or a process that has ended. The
    /// kernel returns the first when a file of an ended process is opened, and the second when a
    /// file that was open before is read.
    pub fn is_gone(&self) -> bool {
        matches!(self.errno(), Some(libc::ENOENT | libc::ESRCH))
    }

    /// Whether permission is missing.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self.errno(), Some(libc::EACCES | libc::EPERM | libc::EROFS))
    }
}

/// Reads a whole file; bytes that are not UTF-8 (thread names may have any) become `U+FFFD`.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    read_bytes(path).map(text).map_err(|source| FileError::io("read", path, source))
}

fn text(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// The kernel reports a size of zero for its own files, so `fs::read` would begin with many small
/// reads.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_SIZE);
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of one line. The kernel returns such a line whole, so that no second read is needed
/// to find the end of the file.
pub(crate) fn read_line(path: &Path) -> Result<String, FileError> {
    let mut file = File::open(path).map_err(|error| FileError::io("read", path, error))?;
    let mut bytes = Vec::with_capacity(USUAL_SIZE);
    let mut buffer = [0; USUAL_SIZE];
    let is_whole = match file.read(&mut buffer) {
        Ok(count) => {
            bytes.extend(&buffer[..count]);
            count < USUAL_SIZE && bytes.ends_with(b"\n")
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
        Err(error) => return Err(FileError::io("read", path, error)),
    };
    if !is_whole {
        file.read_to_end(&mut bytes).map_err(|error| FileError::io("read", path, error))?;
    }
    Ok(text(bytes))
}

/// Reads a whole file; `None` if it is not there.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, FileError> {
    unless_gone(read(path))
}

/// `None` where the thing is not there (any more).
pub(crate) fn unless_gone<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a table that takes the kernel long to walk; an empty one if it is not there. The kernel
/// returns as many lines as fit into a page. To report that there are no more, it would walk the
/// whole table again. A read that leaves room for another line is therefore taken for the last one.
pub(crate) fn read_table(path: &Path) -> Result<String, FileError> {
    const PAGE: usize = 4096;
    const LONGEST_LINE: usize = 512;
    let error = |source| FileError::io("read", path, source);
    let opened = unless_gone(File::open(path).map_err(error))?;
    let Some(mut file) = opened else { return Ok(String::new()) };
    let (mut bytes, mut page) = (Vec::new(), [0; PAGE]);
    loop {
        match file.read(&mut page) {
            Ok(count) => {
                bytes.extend(&page[..count]);
                if count < PAGE - LONGEST_LINE {
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
            Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(error(source)),
        }
    }
}

/// Reads a file that holds one value; `None` if it is not there.
pub(crate) fn value_if_there<T: std::str::FromStr>(
    path: &Path,
    expected: &'static str,
) -> Result<Option<T>, FileError> {
    let parse =
        |text: String| text.trim().parse().map_err(|_| FileError::malformed(path, expected, &text));
    read_if_there(path)?.map(parse).transpose()
}

/// Writes `text` into an existing file with a single `write`.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| FileError::io("write", path, source))
}

/// The entries of a folder that are named `prefix` and a number, ascending.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Result<Vec<usize>, FileError> {
    let listed = |source| FileError::io("list", folder, source);
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(listed)? {
        let name = entry.map_err(listed)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
        numbers.extend(number.and_then(|number| number.parse::<usize>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_path_and_distinguish_missing_and_malformed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("level");
        let error = read(&path).unwrap_err();
        assert!(error.is_gone() && error.to_string().contains("level"));
        assert_eq!(value_if_there::<u32>(&path, "a level").unwrap(), None);

        fs::write(&path, "three\n").unwrap();
        let error = value_if_there::<u32>(&path, "a level").unwrap_err();
        assert!(!error.is_gone());
        assert!(error.to_string().ends_with("but holds 'three'"), "{error}");
    }

    #[test]
    fn writing_never_makes_a_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("cgroup.freeze");
        assert!(write(&path, "1").unwrap_err().is_gone());
        assert!(!path.exists());
    }

    #[test]
    fn a_line_is_read_to_its_end_however_long() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for line in ["", "1 2\n", "1 2", &"x".repeat(4095), &"y\n".repeat(2048), &"z".repeat(9000)]
        {
            fs::write(&file, line).unwrap();
            assert_eq!(read_line(file.path()).unwrap(), line);
        }
        assert!(read_line(Path::new("/proc/self/stat")).unwrap().ends_with('\n'));
        assert!(read_line(&file.path().join("no")).is_err());
    }

    #[test]
    fn a_long_table_is_read_to_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for length in [0, 100, 3600, 4000, 4096, 4097, 8192, 20_000] {
            let text: String = "0123456 9\n".chars().cycle().take(length).collect();
            fs::write(&file, &text).unwrap();
            assert_eq!(read_table(file.path()).unwrap(), text, "{length}");
        }
        // A file of the kernel's that does not end within its first pages.
        assert!(read_table(Path::new("/proc/kallsyms")).unwrap().len() > 100_000);
        assert_eq!(read_table(Path::new("/proc/no-such-table")).unwrap(), "");
    }

    #[test]
    fn numbered_entries_are_sorted_as_numbers() {
        let root = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpufreq", "cpu0"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        assert_eq!(numbered(root.path(), "cpu").unwrap(), [0, 2, 10]);
    }
}
