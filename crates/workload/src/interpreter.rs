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

use object::elf::{EM_386, EM_AARCH64, EM_X86_64, FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache};

/// The kernel looks no further for the end of the first line.
const LINE: usize = 256;
/// The kernel takes no longer path.
const LONGEST_PATH: u64 = 4096;
/// What this machine runs by itself (`e_machine`). Another machine's programs may be run by an
/// emulator, which finds their loader elsewhere.
const NATIVE: &[u16] = if cfg!(target_arch = "x86_64") {
    &[EM_X86_64, EM_386]
} else if cfg!(target_arch = "aarch64") {
    &[EM_AARCH64]
} else {
    &[]
};

/// What a command's file needs in order to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequiredFile {
    /// The interpreter of a script, as written.
    Interpreter(PathBuf),
    /// The loader of a dynamically linked program.
    Loader(PathBuf),
    /// A program of this machine that names no loader: it is statically linked.
    Nothing,
}

/// What a file needs, if it can be told.
pub(super) fn needs(file: &Path) -> Option<RequiredFile> {
    let file = File::open(file).ok()?;
    let mut start = [0; LINE];
    let length = file.read_at(&mut start, 0).ok()?;
    let start = &start[..length];
    if let Some(line) = start.strip_prefix(b"#!") {
        return interpreter(line).map(RequiredFile::Interpreter);
    }
    let (kind, file) = (FileKind::parse(start).ok()?, ReadCache::new(file));
    match kind {
        FileKind::Elf32 => loader::<FileHeader32<Endianness>>(&file),
        FileKind::Elf64 => loader::<FileHeader64<Endianness>>(&file),
        _ => None,
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

/// The loader that the headers of a program of this machine name.
fn loader<H: FileHeader>(file: &ReadCache<File>) -> Option<RequiredFile> {
    let header = H::parse(file).ok()?;
    let endian = header.endian().ok()?;
    if !NATIVE.contains(&header.e_machine(endian)) {
        return None;
    }
    let headers = header.program_headers(endian, file).ok()?;
    let Some(names) = headers.iter().find(|one| one.p_type(endian) == PT_INTERP) else {
        return Some(RequiredFile::Nothing);
    };
    let length: u64 = names.p_filesz(endian).into();
    if length > LONGEST_PATH {
        return None;
    }
    let path = names.interpreter(endian, file).ok().flatten()?;
    Some(RequiredFile::Loader(PathBuf::from(OsStr::from_bytes(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs_of(content: &[u8]) -> Option<RequiredFile> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        needs(file.path())
    }

    #[test]
    fn a_script_needs_what_its_first_line_names() {
        let interpreter = |path: &str| Some(RequiredFile::Interpreter(path.into()));
        assert_eq!(needs_of(b"#!/bin/sh\necho"), interpreter("/bin/sh"));
        assert_eq!(needs_of(b"#! \t/usr/bin/env python3"), interpreter("/usr/bin/env"));
        assert_eq!(needs_of(b"#!/bin/sh\r\n"), interpreter("/bin/sh\r"));
        assert_eq!(needs_of(b"#!\n/bin/sh"), None);
        assert_eq!(needs_of(&[b"#!/", &[b'x'; 300][..]].concat()), None);
        assert_eq!(needs_of(b"echo"), None);
    }

    #[test]
    fn this_test_has_a_loader_unless_it_is_linked_statically() {
        let is_static_itself = cfg!(target_feature = "crt-static");
        let own = needs(&std::env::current_exe().unwrap());
        assert_eq!(own == Some(RequiredFile::Nothing), is_static_itself);
        assert_eq!(["/etc/passwd", "/"].map(|path| needs(Path::new(path))), [None, None]);
    }

    /// A header of 64 bytes without parts, and so without a loader.
    #[test]
    fn a_program_of_this_machine_without_a_loader_is_static() {
        let is_static_with = |machine: u16, length: usize| {
            let mut header = [0; 64];
            header[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
            header[16..18].copy_from_slice(&2u16.to_le_bytes());
            header[18..20].copy_from_slice(&machine.to_le_bytes());
            header[20] = 1;
            header[52] = 64;
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &header[..length]).unwrap();
            needs(file.path()) == Some(RequiredFile::Nothing)
        };
        for native in NATIVE {
            assert!(is_static_with(*native, 64), "{native}");
            assert!(!is_static_with(*native, 40), "cut off");
        }
        assert!(!is_static_with(0xffff, 64), "of another machine");
    }

    #[test]
    fn a_program_needs_the_loader_that_its_header_names() {
        let Some(RequiredFile::Loader(loader)) = needs(&std::env::current_exe().unwrap()) else {
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
        // A part of 56 bytes begins with its type, of which 3 names the loader; its size is at 32.
        let mut long = own.clone();
        let parts = 64..64 + 56 * usize::from(own[56]);
        for part in long[parts].chunks_mut(56).filter(|part| part[0] == 3) {
            part[32..40].copy_from_slice(&(LONGEST_PATH + 1).to_le_bytes());
        }
        assert!(!matches!(needs_of(&long), Some(RequiredFile::Loader(_))), "a long path");
    }
}
