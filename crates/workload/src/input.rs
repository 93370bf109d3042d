//! Files that users name, to be read.
//!
//! *Problem.* A user can name any file by mistake. A pipe that no process writes to never begins,
//! and a device such as `/dev/zero` never ends. A program that just reads such a file hangs, or
//! fills the memory.
//!
//! *Idea.* Only regular files are read, and only up to a size that no such file needs. A file that
//! a shell hands over open (standard input, `<(command)`) is a pipe on purpose. It is read too, up
//! to the same size.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest text that people have written, bytes.
const MOST_TEXT: u64 = 16 << 20;
/// The kernel's error for symbolic links that lead on without an end (`ErrorKind` has no stable
/// name for it).
const ELOOP: i32 = 40;
/// The flag of `open` by which no read waits, as x86, Arm, POWER and RISC-V have it.
const O_NONBLOCK: i32 = 0o4000;

/// What stands in place of a file's name in what is said of standard input.
pub const STANDARD_INPUT: &str = "standard input";

/// Opens a file to be read.
///
/// # Errors
/// When it cannot be opened, or is a pipe, a socket or a device that no shell handed over.
pub fn open(path: &Path) -> io::Result<impl Read> {
    if is_handed_over(path) {
        return File::open(path).map(Prompt);
    }
    let check = |found: Metadata| match found.is_file() || found.is_dir() {
        // The read that follows refuses a folder, in the system's words.
        true => Ok(()),
        false => Err(no_file()),
    };
    fs::metadata(path).and_then(check)?;
    // A pipe may have taken the name meanwhile.
    let open = File::options().read(true).custom_flags(O_NONBLOCK).open(path)?;
    open.metadata().and_then(check)?;
    Ok(Prompt(open))
}

/// An open file that fails instead of waiting, as `/proc/kmsg` would.
struct Prompt(File);

impl Read for Prompt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let waits = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        self.0.read(buffer).map_err(|error| if waits(&error) { no_file() } else { error })
    }
}

fn no_file() -> io::Error {
    io::Error::other("it is a pipe, a socket or a device, and no file")
}

/// Reads a whole file.
///
/// # Errors
/// Those of [`open`]; when it cannot be read, or has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it is larger than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

/// Reads a whole file of text that people write: a description, a table.
///
/// # Errors
/// Those of [`read`]; when it is no UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, MOST_TEXT)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// Whether a shell opened this file.
pub fn is_handed_over(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || is_descriptor(path)
}

/// Whether it is an open file of this process, by its number; not what is below an open folder.
pub fn is_descriptor(path: &Path) -> bool {
    let numbers = ["/dev/fd", "/proc/self/fd"].map(|folder| path.strip_prefix(folder));
    let mut numbers = numbers.into_iter().flatten().filter_map(Path::to_str);
    numbers.any(|number| number.parse::<u32>().is_ok())
}

/// The remedy for a file that could not be read. `name` says how to name the right one.
pub fn remedy<'a>(error: &io::Error, name: &'a str) -> &'a str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "check its permissions, and those of its folders",
        _ if is_loop(error) => "it is a loop of symbolic links: correct the links",
        _ => name,
    }
}

/// Whether a path could not be followed because symbolic links on it lead back to themselves.
pub fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ELOOP)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn pipes_and_devices_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listens = UnixListener::bind(&socket).unwrap();
        for path in [&socket, Path::new("/dev/zero"), Path::new("/dev/null")] {
            let refusal = read(path, 1 << 20).unwrap_err().to_string();
            assert!(refusal.contains("a device, and no file"), "{refusal}");
        }
        // It waits for the kernel's next message; only root may open it.
        let waits = read(Path::new("/proc/kmsg"), 1 << 30).unwrap_err();
        assert!(
            ["device", "denied", "permitted"].iter().any(|why| waits.to_string().contains(why))
        );
        assert_eq!(read(folder.path(), 9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_file_is_read_up_to_a_size() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        File::create(&file).unwrap().set_len(1 << 20).unwrap();
        assert_eq!(read(&file, 1 << 20).unwrap().len(), 1 << 20);
        File::options().write(true).open(&file).unwrap().set_len((1 << 20) + 1).unwrap();
        let refusal = read(&file, 1 << 20).unwrap_err().to_string();
        assert_eq!(refusal, "it is larger than 1 MiB");
    }

    #[test]
    fn a_text_is_read_from_a_file_in_utf_8_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "über").unwrap();
        assert_eq!(text(&file).unwrap(), "über");
        fs::write(&file, b"\xff").unwrap();
        assert_eq!(text(&file).unwrap_err().to_string(), "it is no text in UTF-8");
        assert!(text(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device"));
    }

    #[test]
    fn only_files_that_a_shell_opened_may_be_pipes() {
        for path in ["/dev/stdin", "/dev/fd/63", "/proc/self/fd/0"] {
            assert!(is_handed_over(Path::new(path)), "{path}");
        }
        for path in ["/dev/zero", "/dev/fdx", "stdin", "/proc/self/fd", "/proc/self/fd/3/plan"] {
            assert!(!is_handed_over(Path::new(path)), "{path}");
        }
    }
}
