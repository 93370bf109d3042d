//! Which file code belongs to, where in that file, and the file's build ID.
//!
//! Everything is read from the memory of the process, so that it is right for files that were
//! replaced or removed since, and in containers with other files. A build ID is a note that the
//! linker has put into the first page of nearly every program and library: the same code has the
//! same one.

use std::fs::File;
use std::os::unix::fs::FileExt;

use cosched_core::SpinLoop;

use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::Proc;

/// The object of code in memory without a file.
const ANONYMOUS: &str = "[anonymous]";
/// A note of the type `NT_GNU_BUILD_ID` from `GNU`.
const BUILD_ID: [u8; 8] = [3, 0, 0, 0, b'G', b'N', b'U', 0];
/// So many bytes of a file's beginning are searched for its build ID.
const FIRST_PAGE: usize = 4096;
/// The lengths of build IDs, bytes: 20 is usual.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=32;

/// A process with memory that can be read.
#[derive(Debug)]
pub(super) struct ProcessMemory {
    file: File,
    pid: i32,
}

/// A part of a process' memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    from: u64,
    to: u64,
    is_code: bool,
    /// Where in the file it begins, bytes.
    offset: u64,
    /// Device and number of the file.
    file: String,
    /// The file's path; empty: there is none.
    path: String,
}

impl ProcessMemory {
    /// The memory of a process.
    ///
    /// # Errors
    /// When it has ended, or this user may not read it.
    pub(super) fn open(proc: &Proc, pid: i32) -> Result<ProcessMemory, FileError> {
        let path = proc.folder(pid).join("mem");
        let file = File::open(&path).map_err(|error| FileError::io("open", &path, error))?;
        Ok(ProcessMemory { file, pid })
    }

    /// Fills the buffer with what lies at an address; says whether it could.
    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, address).is_ok()
    }

    /// The places of some addresses. Addresses that are not mapped any more have none.
    pub(super) fn places(&self, proc: &Proc, addresses: &[u64]) -> Vec<(u64, SpinLoop)> {
        let mappings = self.mappings(proc);
        let place = |address: &u64| {
            let mapping = mappings.iter().find(|one| (one.from..one.to).contains(address))?;
            Some((*address, self.place(&mappings, mapping, *address)))
        };
        addresses.iter().filter_map(place).collect()
    }

    fn place(&self, mappings: &[Mapping], mapping: &Mapping, address: u64) -> SpinLoop {
        match mapping.object() {
            Some(object) => SpinLoop {
                object: object.to_owned(),
                build_id: self.build_id(mappings, &mapping.file),
                offset: address - mapping.from + mapping.offset,
            },
            None => SpinLoop { object: ANONYMOUS.to_owned(), build_id: None, offset: address },
        }
    }

    /// Where the known spin loops lie in this process. Only files of the same name are compared.
    pub(super) fn addresses(&self, proc: &Proc, known: &[SpinLoop]) -> Vec<(u64, SpinLoop)> {
        if known.is_empty() {
            return Vec::new();
        }
        let mappings = self.mappings(proc);
        let mut found = Vec::new();
        for mapping in mappings.iter().filter(|mapping| mapping.is_code) {
            let named = known.iter().filter(|one| Some(one.object.as_str()) == mapping.object());
            let inside = named.filter(|one| {
                one.build_id.is_some()
                    && (mapping.offset..mapping.offset + (mapping.to - mapping.from))
                        .contains(&one.offset)
            });
            let inside: Vec<&SpinLoop> = inside.collect();
            if inside.is_empty() {
                continue;
            }
            let build_id = self.build_id(&mappings, &mapping.file);
            let same = inside.into_iter().filter(|one| one.build_id == build_id);
            found.extend(
                same.map(|one| (mapping.from + (one.offset - mapping.offset), one.clone())),
            );
        }
        found
    }

    fn mappings(&self, proc: &Proc) -> Vec<Mapping> {
        let text = files::read(&proc.folder(self.pid).join("maps")).unwrap_or_default();
        text.lines().filter_map(Mapping::parse).collect()
    }

    /// The build ID of a file, from the mapping of its beginning.
    fn build_id(&self, mappings: &[Mapping], file: &str) -> Option<String> {
        let first = mappings.iter().find(|one| one.file == file && one.offset == 0)?;
        let mut page = [0; FIRST_PAGE];
        self.read(first.from, &mut page).then(|| build_id(&page)).flatten()
    }
}

impl Mapping {
    /// A line of `/proc/PID/maps`.
    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.splitn(6, ' ');
        let (from, to) = words.next()?.split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let is_code = words.next()?.contains('x');
        let offset = hex(words.next()?)?;
        let (device, inode) = (words.next()?, words.next()?);
        let path = words.next().unwrap_or_default().trim_start();
        Some(Mapping {
            from: hex(from)?,
            to: hex(to)?,
            is_code,
            offset,
            file: format!("{device} {inode}"),
            path: path.to_owned(),
        })
    }

    /// The name of its file without folders; `None`: it has no file.
    fn object(&self) -> Option<&str> {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        path.strip_prefix('/')?.rsplit('/').next()
    }
}

/// The build ID in the first page of a file.
fn build_id(page: &[u8]) -> Option<String> {
    if !page.starts_with(b"\x7fELF") {
        return None;
    }
    // A note: the sizes of its name (4) and its content, its type, its name, its content.
    let at = page.windows(BUILD_ID.len()).position(|bytes| bytes == BUILD_ID)?;
    let sizes = page[..at].last_chunk::<8>()?;
    let [name, content] = [&sizes[..4], &sizes[4..]]
        .map(|size| size.try_into().map_or(0, |size| u32::from_ne_bytes(size) as usize));
    if name != 4 || !LENGTHS.contains(&content) {
        return None;
    }
    let id = page[at + BUILD_ID.len()..].get(..content)?;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_their_file_and_where_it_begins() {
        let line = "7f12a0-7f12b0 r-xp 0001e000 fd:01 4711   /usr/lib/lib of x.so.1 (deleted)";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.from, mapping.to, mapping.offset), (0x7f_12a0, 0x7f_12b0, 0x1e000));
        assert!(mapping.is_code);
        assert_eq!(
            (mapping.file.as_str(), mapping.object()),
            ("fd:01 4711", Some("lib of x.so.1"))
        );
        for none in ["1000-2000 rwxp 00000000 00:00 0", "1000-2000 r-xp 0 00:00 0   [vdso]"] {
            assert_eq!(Mapping::parse(none).unwrap().object(), None);
        }
        assert_eq!(Mapping::parse("nonsense"), None);
    }

    #[test]
    fn a_build_id_is_found_in_the_first_page() {
        let mut page = b"\x7fELF and headers".to_vec();
        page.extend([4u32, 8, 3].into_iter().flat_map(u32::to_ne_bytes));
        page.extend(b"GNU\0\x01\x02\x03\x04\x05\x06\x07\xab");
        assert_eq!(build_id(&page).as_deref(), Some("01020304050607ab"));
        page.truncate(page.len() - 1);
        assert_eq!(build_id(&page), None, "it is cut off");
        assert_eq!(build_id(b"#!/bin/sh"), None);
    }

    #[test]
    fn a_place_in_this_process_is_found_again_by_its_build_id() {
        let (proc, pid) = (Proc::default(), std::process::id() as i32);
        let memory = ProcessMemory::open(&proc, pid).unwrap();
        let here = build_id as fn(&[u8]) -> Option<String> as usize as u64;
        let places = memory.places(&proc, &[here, 8]);
        let [(address, place)] = &places[..] else { panic!("{places:?}") };
        assert_eq!(*address, here);
        assert!(place.object.starts_with("cosched_linux"), "{place:?}");
        if place.build_id.is_none() {
            return;
        }
        assert_eq!(memory.addresses(&proc, std::slice::from_ref(place)), places);
        let other = SpinLoop { build_id: Some("00".into()), ..place.clone() };
        assert_eq!(memory.addresses(&proc, &[other]), []);
    }
}
