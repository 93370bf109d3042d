//! What the kernel needs besides the file of a command: the interpreter of a script, the loader of
//! a program.
//!
//! Without it the kernel answers "No such file or directory" although the file is there, and only
//! when the program is started. A script names its interpreter in its first line (`#!`); a
//! dynamically linked program names its loader in a header (`PT_INTERP` of the ELF format). A file
//! that cannot be read, or is neither, is left to the kernel.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The kernel looks no further for the end of the first line.
const LINE: usize = 256;
/// Far more program headers than a linker makes.
const MAX_HEADERS: u64 = 256;
/// The type of the program header that names a loader.
const PT_INTERP: u64 = 3;
/// What this machine runs by itself (`e_machine`). Another machine's programs may be run by an
/// emulator, which finds their loader elsewhere.
const NATIVE: &[u64] = if cfg!(target_arch = "x86_64") {
    &[62, 3]
} else if cfg!(target_arch = "aarch64") {
    &[183]
} else {
    &[]
};

/// What a command's file needs in order to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// The interpreter of a script, as written.
    Interpreter(PathBuf),
    /// The loader of a dynamically linked program.
    Loader(PathBuf),
}

/// What a file needs, if it can be told.
pub(super) fn needs(file: &Path) -> Option<Needs> {
    let file = File::open(file).ok()?;
    let mut start = [0; LINE];
    let length = file.read_at(&mut start, 0).ok()?;
    let start = &start[..length];
    match start.strip_prefix(b"#!") {
        Some(line) => interpreter(line).map(Needs::Interpreter),
        None if start.starts_with(b"\x7fELF") => loader(&file, start).map(Needs::Loader),
        None => None,
    }
}

/// The first word of a script's first line.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = line.split(|byte| *byte == b'\n').next()?;
    let word = line.split(is_blank).find(|word| !word.is_empty())?;
    // A line that does not end within what was read may have been cut in the middle of the word.
    let whole = line.len() < LINE - 2 || line.iter().skip_while(|b| is_blank(b)).any(is_blank);
    whole.then(|| PathBuf::from(OsStr::from_bytes(word)))
}

/// Where the fields of an ELF file are, which depends on the width of its addresses.
struct Layout {
    width: usize,
    headers_at: usize,
    header_size_at: usize,
    offset_at: u64,
    size_at: u64,
}

const NARROW: Layout =
    Layout { width: 4, headers_at: 28, header_size_at: 42, offset_at: 4, size_at: 16 };
const WIDE: Layout =
    Layout { width: 8, headers_at: 32, header_size_at: 54, offset_at: 8, size_at: 32 };

fn loader(file: &File, start: &[u8]) -> Option<PathBuf> {
    let layout = match start.get(4)? {
        1 => NARROW,
        _ => WIDE,
    };
    if !NATIVE.contains(&number(start.get(18..20)?)) {
        return None;
    }
    let headers = number(start.get(layout.headers_at..layout.headers_at + layout.width)?);
    let header_size = number(start.get(layout.header_size_at..layout.header_size_at + 2)?);
    let count = number(start.get(layout.header_size_at + 2..layout.header_size_at + 4)?);
    let read = |at: u64, length: usize| -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    };
    for header in 0..count.min(MAX_HEADERS) {
        let at = headers.checked_add(header * header_size)?;
        if number(&read(at, 4)?) != PT_INTERP {
            continue;
        }
        let offset = number(&read(at.checked_add(layout.offset_at)?, layout.width)?);
        let size = number(&read(at.checked_add(layout.size_at)?, layout.width)?);
        let path = read(offset, usize::try_from(size).ok().filter(|size| *size <= 4096)?)?;
        let path = path.split(|byte| *byte == 0).next()?;
        return Some(PathBuf::from(OsStr::from_bytes(path)));
    }
    None
}

/// Little endian, as every machine in [`NATIVE`] writes it.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs_of(content: &[u8]) -> Option<Needs> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        needs(file.path())
    }

    #[test]
    fn a_script_needs_what_its_first_line_names() {
        let interpreter = |path: &str| Some(Needs::Interpreter(path.into()));
        assert_eq!(needs_of(b"#!/bin/sh\necho"), interpreter("/bin/sh"));
        assert_eq!(needs_of(b"#! \t/usr/bin/env python3"), interpreter("/usr/bin/env"));
        assert_eq!(needs_of(b"#!/bin/sh\r\n"), interpreter("/bin/sh\r"));
        assert_eq!(needs_of(b"#!\n/bin/sh"), None);
        assert_eq!(needs_of(&[b"#!/", &[b'x'; 300][..]].concat()), None);
        assert_eq!(needs_of(b"echo"), None);
    }

    #[test]
    fn a_program_needs_the_loader_that_its_header_names() {
        let Some(Needs::Loader(loader)) = needs(&std::env::current_exe().unwrap()) else {
            eprintln!("skipped: this test is linked statically, or for a machine without a check");
            return;
        };
        assert!(loader.exists(), "{}", loader.display());
    }

    #[test]
    fn damaged_headers_are_left_to_the_kernel() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in [4, 5, 20, 40, 63, 64, 100] {
            assert_eq!(needs_of(&own[..length]), None, "{length} bytes");
        }
        let mut wild = own[..128].to_vec();
        wild[32..40].fill(0xff);
        assert_eq!(needs_of(&wild), None);
    }
}
