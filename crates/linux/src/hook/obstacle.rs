//! Whether the library can go into a program, as far as the program's file tells.
//!
//! *Problem.* Who asks for the library answers for what becomes of the program. Where nobody has asked, and cosched gives it
//! since it expects to gain by it, no program may end, fail or err by that.
//!
//! *Idea.* It is the dynamic linker that preloads. A program that names the linker by which cosched itself runs is of the same
//! architecture and C library, so the library that was built with cosched goes into it. Statically linked ones name none. Those
//! of an emulator, of another C library, or of packages that bring their own, name another: some of these linkers end the
//! program when a library that is preloaded does not fit. Set-user-ID programs take no library anyway.
//!
//! Two kinds of programs name the right linker and must be spared all the same. Those that were built with a *sanitizer* insist on
//! being the first library, or would see barriers that they know nothing of. Those that *offload* to a device have tasks that no
//! entry tells of, for which barriers of the runtime wait and those of the library would not. They are known by the
//! libraries that they need, and by the symbols that they share with libraries.
//!
//! *What it cannot tell:* what a library does that the program opens, and what programs the program starts.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::read::{FileKind, ReadCache, ReadRef, Result};
use object::{Endianness, SectionIndex};

type Header = FileHeader64<Endianness>;

/// Where the kernel keeps rights that a file gives to whoever runs it.
const CAPABILITIES: &str = "security.capability";
/// How the names of sanitizers' libraries begin, gcc's and clang's.
const SANITIZERS: [&str; 6] =
    ["libasan.", "libtsan.", "liblsan.", "libhwasan.", "libubsan.", "libclang_rt."];
/// How symbols begin that only programs with a sanitizer in them have.
const SANITIZED: [&str; 5] =
    ["__asan_init", "__tsan_init", "__msan_init", "__hwasan_init", "__lsan_init"];
/// The same of offloading: gcc's OpenMP and OpenACC, and LLVM's.
const OFFLOADING: [&str; 4] = ["GOMP_target", "GOMP_offload_register", "GOACC_", "__tgt_"];

/// Why the library cannot go into a program, or should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Nothing is preloaded.
    #[error("it is linked statically")]
    Static,
    /// The library is not for it.
    #[error("it is of another architecture or C library than cosched")]
    Foreign,
    /// Nothing is preloaded that the user names.
    #[error("it has more rights than its user (set-user-ID, set-group-ID or capabilities)")]
    Privileged,
    /// It has to be loaded first.
    #[error("it was built with a sanitizer, which has to be loaded first")]
    Sanitizer,
    /// It has tasks that the library does not see.
    #[error("it offloads to a device, for whose tasks only its own barriers wait")]
    Offloads,
    /// It is no program, is damaged, or this user may not read it.
    #[error("its file cannot be read as a program")]
    Unreadable,
}

/// What stands in the way of the library in this program; `own` is the executable of cosched.
pub fn obstacle(program: &Path, own: &Path) -> Option<Obstacle> {
    let Ok(file) = File::open(program) else { return Some(Obstacle::Unreadable) };
    let Ok(found) = file.metadata() else { return Some(Obstacle::Unreadable) };
    let gives_rights = found.mode() & (libc::S_ISUID | libc::S_ISGID) != 0;
    if gives_rights || rustix::fs::getxattr_query(program, CAPABILITIES).is_ok() {
        return Some(Obstacle::Privileged);
    }
    let file = ReadCache::new(file);
    in_file(&file, loader_of(own).as_deref()).unwrap_or(Some(Obstacle::Unreadable))
}

/// Whether a library of this name, or path, is a sanitizer's.
pub fn is_sanitizer(library: &OsStr) -> bool {
    let name = Path::new(library).file_name().unwrap_or_default();
    begins(name.as_bytes(), &SANITIZERS)
}

/// The dynamic linker that a program names.
fn loader_of(program: &Path) -> Option<PathBuf> {
    let file = ReadCache::new(File::open(program).ok()?);
    loader(&file).ok()?
}

fn in_file<'d>(file: impl ReadRef<'d>, own_loader: Option<&Path>) -> Result<Option<Obstacle>> {
    match FileKind::parse(file)? {
        FileKind::Elf64 => {}
        FileKind::Elf32 => return Ok(Some(Obstacle::Foreign)),
        _ => return Ok(Some(Obstacle::Unreadable)),
    }
    let Some(loader) = loader(file)? else { return Ok(Some(Obstacle::Static)) };
    if !own_loader.is_some_and(|own| is_same(own, &loader)) {
        return Ok(Some(Obstacle::Foreign));
    }
    let header = Header::parse(file)?;
    let sections = Sections { all: header.sections(header.endian()?, file)?, header, file };
    let sanitized = sections.some_library(|name| is_sanitizer(OsStr::from_bytes(name)))?
        || sections.some_symbol(|name| begins(name, &SANITIZED))?;
    if sanitized {
        return Ok(Some(Obstacle::Sanitizer));
    }
    let offloads = sections.some_symbol(|name| begins(name, &OFFLOADING))?;
    Ok(offloads.then_some(Obstacle::Offloads))
}

/// The loader that stands in the program's header; `None`: it is linked statically.
fn loader<'d>(file: impl ReadRef<'d>) -> Result<Option<PathBuf>> {
    let header = Header::parse(file)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, file)? {
        if let Some(path) = segment.interpreter(endian, file)? {
            return Ok(Some(OsStr::from_bytes(path).into()));
        }
    }
    Ok(None)
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|o| o == one))
}

fn begins(name: &[u8], beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
}

/// The tables of a program in which names stand. One that was stripped of them has none.
struct Sections<'d, R: ReadRef<'d>> {
    all: SectionTable<'d, Header, R>,
    header: &'d Header,
    file: R,
}

impl<'d, R: ReadRef<'d>> Sections<'d, R> {
    /// Whether it needs such a library.
    fn some_library(&self, is_one: impl Fn(&[u8]) -> bool) -> Result<bool> {
        let endian = self.header.endian()?;
        let Some((entries, strings)) = self.all.dynamic(endian, self.file)? else {
            return Ok(false);
        };
        let strings = self.text(strings)?;
        let mut needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED));
        Ok(needed.any(|entry| is_one(at(strings, entry.d_val(endian)))))
    }

    /// Whether it shares such a symbol with libraries, its own or one of theirs.
    fn some_symbol(&self, is_one: impl Fn(&[u8]) -> bool) -> Result<bool> {
        let endian = self.header.endian()?;
        let symbols = self.all.symbols(endian, self.file, elf::SHT_DYNSYM)?;
        let strings = self.text(symbols.string_section())?;
        Ok(symbols.iter().any(|symbol| is_one(at(strings, symbol.st_name(endian).into()))))
    }

    /// A table of strings as a whole: reading them one by one takes a system call for each.
    fn text(&self, section: SectionIndex) -> Result<&'d [u8]> {
        self.all.section(section)?.data(self.header.endian()?, self.file)
    }
}

/// The string that begins there; empty where there is none.
fn at(strings: &[u8], offset: u64) -> &[u8] {
    let rest = usize::try_from(offset).ok().and_then(|offset| strings.get(offset..));
    rest.and_then(|rest| rest.split(|byte| *byte == 0).next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in the way of this test's own executable after a change of its bytes.
    fn after(change: impl FnOnce(&mut Vec<u8>)) -> Option<Obstacle> {
        let own = std::env::current_exe().unwrap();
        let mut bytes = std::fs::read(&own).unwrap();
        change(&mut bytes);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        obstacle(file.path(), &own)
    }

    /// Puts a text in the place of the first longer one that ends with a zero.
    fn replace(bytes: &mut [u8], old: &str, new: &str) {
        assert!(new.len() <= old.len());
        let old = [old.as_bytes(), &[0]].concat();
        let place = bytes.windows(old.len()).position(|window| window == old).unwrap();
        bytes[place..place + old.len()].fill(0);
        bytes[place..place + new.len()].copy_from_slice(new.as_bytes());
    }

    fn loader_here() -> String {
        loader_of(&std::env::current_exe().unwrap()).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_program_like_cosched_itself_takes_it() {
        assert_eq!(after(|_| {}), None);
    }

    #[test]
    fn one_for_another_loader_or_for_narrower_addresses_does_not() {
        let loader = loader_here();
        let other = after(|bytes| replace(bytes, &loader, "/lib/ld-musl.so.1"));
        assert_eq!(other, Some(Obstacle::Foreign));
        assert_eq!(after(|bytes| bytes[4] = elf::ELFCLASS32), Some(Obstacle::Foreign));
    }

    #[test]
    fn one_without_a_loader_does_not() {
        let own = after(|bytes| {
            let endian = Endianness::default();
            let header = Header::parse(&bytes[..]).unwrap();
            let headers = header.program_headers(endian, &bytes[..]).unwrap();
            let place = headers.iter().position(|one| one.p_type(endian) == elf::PT_INTERP);
            let at = header.e_phoff(endian) as usize
                + place.unwrap() * usize::from(header.e_phentsize(endian));
            bytes[at..at + 4].fill(0);
        });
        assert_eq!(own, Some(Obstacle::Static));
    }

    #[test]
    fn one_with_a_sanitizer_does_not_be_it_a_library_or_inside() {
        let library = after(|bytes| replace(bytes, "libgcc_s.so.1", "libasan.so.8"));
        assert_eq!(library, Some(Obstacle::Sanitizer));
        let inside = after(|bytes| replace(bytes, "__cxa_finalize", "__asan_init"));
        assert_eq!(inside, Some(Obstacle::Sanitizer));
        assert!(is_sanitizer(OsStr::new("/usr/lib/libtsan.so.2")));
        assert!(!is_sanitizer(OsStr::new("/opt/libasan.d/libm.so.6")));
    }

    #[test]
    fn one_that_offloads_does_not() {
        let offloads = after(|bytes| replace(bytes, "__cxa_finalize", "__tgt_target"));
        assert_eq!(offloads, Some(Obstacle::Offloads));
    }

    #[test]
    fn what_is_no_program_or_only_the_beginning_of_one_does_not() {
        for length in [0, 3, 4, 16, 63, 64, 500] {
            let found = after(|bytes| bytes.truncate(length));
            assert_eq!(found, Some(Obstacle::Unreadable), "{length} bytes");
        }
        let text = after(|bytes| *bytes = b"echo no first line names what this is for".to_vec());
        assert_eq!(text, Some(Obstacle::Unreadable));
        let own = std::env::current_exe().unwrap();
        assert_eq!(obstacle(Path::new("/nowhere"), &own), Some(Obstacle::Unreadable));
    }

    #[test]
    fn one_with_more_rights_than_its_user_does_not() {
        use std::os::unix::fs::PermissionsExt;
        let own = std::env::current_exe().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(&own, file.path()).unwrap();
        let give = |mode| {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            obstacle(file.path(), &own)
        };
        assert_eq!(give(0o4755), Some(Obstacle::Privileged));
        assert_eq!(give(0o755), None);
    }
}
