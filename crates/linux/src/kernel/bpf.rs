//! Programs for the kernel (BPF): compiled with this crate, loaded when a caller needs their data.
//!
//! They run at tracepoints while they are attached. They are removed when the value that holds them
//! is dropped, and when cosched is killed: nothing else keeps them in the kernel. They observe only
//! the threads of members. A member has a value in the storage of its first thread. The value is
//! written by pidfd, so process numbers are never compared, whatever PID namespaces there are. What
//! the process forks later inherits it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use aya::maps::{Map, MapData, MapError};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::kernel::files::FileError;
use crate::kernel::procfs::{Proc, Stat};
use crate::kernel::remedy::{GRANT_CAPABILITIES, as_typed};

/// Why BPF programs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// There was no clang when cosched was built.
    #[error(
        "cosched was built without its BPF programs (remedy: install clang and libbpf-dev, and \
         build again)"
    )]
    NotBuilt,
    /// A permission is missing.
    #[error(
        "this user may not use BPF programs (remedy: {}; `cosched doctor` shows what else is \
         missing)",
        as_typed(GRANT_CAPABILITIES)
    )]
    NotPermitted,
    /// A part of the kernel is missing, or it failed.
    #[error("the kernel refuses BPF programs: {0} (`cosched doctor` tells what is missing)")]
    Refused(String),
}

impl From<EbpfError> for Unavailable {
    fn from(error: EbpfError) -> Unavailable {
        refused(&error)
    }
}

impl From<ProgramError> for Unavailable {
    fn from(error: ProgramError) -> Unavailable {
        refused(&error)
    }
}

impl From<MapError> for Unavailable {
    fn from(error: MapError) -> Unavailable {
        refused(&error)
    }
}

impl From<io::Error> for Unavailable {
    fn from(error: io::Error) -> Unavailable {
        refused(&error)
    }
}

/// An error with the causes that it does not name itself, without the verifier's log.
fn refused(error: &(dyn std::error::Error + 'static)) -> Unavailable {
    let mut text = error.to_string();
    let mut cause = Some(error);
    while let Some(inner) = cause {
        let io = inner.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::PermissionDenied) {
            return Unavailable::NotPermitted;
        }
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    Unavailable::Refused(text.lines().next().unwrap_or_default().to_owned())
}

/// The object that clang made of one source, and its tracepoints.
#[derive(Debug)]
pub(crate) struct Object {
    /// Empty where there was no clang.
    pub(crate) code: &'static [u8],
    pub(crate) tracepoints: &'static [(&'static str, &'static str)],
}

impl Object {
    /// Checks that the object was built: there was a clang.
    pub(crate) fn is_built(&self) -> Result<(), Unavailable> {
        if self.code.is_empty() { Err(Unavailable::NotBuilt) } else { Ok(()) }
    }
}

/// The programs of one object, in the kernel.
#[derive(Debug)]
pub(crate) struct BpfPrograms {
    loaded: Ebpf,
    tracepoints: &'static [(&'static str, &'static str)],
    /// Where they are attached: all of them, or none.
    links: Vec<BtfTracePointLinkId>,
}

impl BpfPrograms {
    /// Loads the programs; nothing runs yet. They number threads as `proc` does. An existing map
    /// may stand for the object's own one of a name; both have to have one layout.
    pub(crate) fn load(
        object: &Object,
        proc: &Proc,
        constants: &[(&str, u32)],
        existing: Option<(&str, BorrowedFd<'_>)>,
    ) -> Result<BpfPrograms, Unavailable> {
        object.is_built()?;
        let namespace = fs::metadata(proc.root().join("self/ns/pid"))?.ino() as u32;
        let mut loader = EbpfLoader::new();
        loader.allow_unsupported_maps().set_global("namespace_inode", &namespace, true);
        for (name, value) in constants {
            loader.set_global(name, value, true);
        }
        let loaded = loader.load(object.code)?;
        let mut programs =
            BpfPrograms { loaded, tracepoints: object.tracepoints, links: Vec::new() };
        if let Some((name, map)) = existing {
            stand_for(programs.map(name).fd().as_fd(), map)?;
        }
        let types = Btf::from_sys_fs().map_err(|error| refused(&error))?;
        for (name, tracepoint) in object.tracepoints {
            at_tracepoint(&mut programs.loaded, name)?.load(tracepoint, &types)?;
        }
        Ok(programs)
    }

    /// Attaches the programs, unless they are attached. If the kernel refuses one, none is.
    pub(crate) fn attach(&mut self) -> Result<(), Unavailable> {
        if !self.links.is_empty() {
            return Ok(());
        }
        for (name, _) in self.tracepoints {
            match at_tracepoint(&mut self.loaded, name).and_then(BtfTracePoint::attach) {
                Ok(link) => self.links.push(link),
                Err(error) => {
                    self.detach();
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Attaches another one as well, until this value is dropped.
    pub(crate) fn attach_also(&mut self, name: &str, tracepoint: &str) -> Result<(), Unavailable> {
        let types = Btf::from_sys_fs().map_err(|error| refused(&error))?;
        let program = at_tracepoint(&mut self.loaded, name)?;
        program.load(tracepoint, &types)?;
        program.attach()?;
        Ok(())
    }

    pub(crate) fn detach(&mut self) {
        for ((name, _), link) in self.tracepoints.iter().zip(self.links.drain(..)) {
            // Only a missing link is refused.
            let _ = at_tracepoint(&mut self.loaded, name).and_then(|at| at.detach(link));
        }
    }

    pub(crate) fn loaded(&self) -> &Ebpf {
        &self.loaded
    }

    pub(crate) fn loaded_mut(&mut self) -> &mut Ebpf {
        &mut self.loaded
    }

    pub(crate) fn map(&self, name: &str) -> &MapData {
        match self.loaded.map(name) {
            // The library has no type for the storage of tasks.
            Some(Map::Array(data) | Map::Unsupported(data)) => data,
            _ => unreachable!("{name} is in the object, and of one of these kinds"),
        }
    }

    /// Makes a process a member, with all that it will start; `kept` is stored with it.
    pub(crate) fn join(&self, proc: &Proc, process: i32, kept: [u32; 2]) -> Result<(), FileError> {
        join(self.map("members").fd().as_fd(), proc, process, &kept)
    }
}

/// Makes a process a member by a storage of tasks; `kept` is all that is stored with it.
pub(crate) fn join(
    members: BorrowedFd<'_>,
    proc: &Proc,
    process: i32,
    kept: &[u32],
) -> Result<(), FileError> {
    let pidfd = Pid::from_raw(process).ok_or(Errno::SRCH);
    let pidfd = pidfd.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let joined = pidfd.map_err(io::Error::from).and_then(|it| store(members, it.as_fd(), kept));
    joined.map_err(|error| FileError::io("watch", &proc.folder(process), error))
}

/// Stores a number for one thread of a process, in a storage of tasks. It ends with the thread, and
/// what the thread starts does not inherit it.
pub(crate) fn keep_for_thread(
    storage: BorrowedFd<'_>,
    proc: &Proc,
    process: i32,
    thread: Stat,
    value: u32,
) -> Result<(), FileError> {
    let failed = |error: io::Error| FileError::io("change", &proc.folder(process), error);
    let number = Pid::from_raw(thread.pid).ok_or(Errno::SRCH);
    let pidfd = number.and_then(|number| pidfd_open(number, OF_THREAD));
    let pidfd = pidfd.map_err(|error| failed(error.into()))?;
    // Checked after opening: if it has the number now, the descriptor belongs to it.
    if proc.thread_stat(process, thread.pid)?.start_time != thread.start_time {
        return Err(failed(Errno::SRCH.into()));
    }
    store(storage, pidfd.as_fd(), &[value]).map_err(failed)
}

/// `PIDFD_THREAD` (Linux 6.9), which the library does not name.
const OF_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

fn at_tracepoint<'a>(
    loaded: &'a mut Ebpf,
    name: &str,
) -> Result<&'a mut BtfTracePoint, ProgramError> {
    loaded.program_mut(name).expect("it is in the object").try_into()
}

/// Writes a value, as long as the storage's values are, into the storage of the task that a pidfd
/// stands for.
fn store(storage: BorrowedFd<'_>, pidfd: BorrowedFd<'_>, value: &[u32]) -> io::Result<()> {
    const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
    #[repr(C)]
    struct Update {
        map: u32,
        unused: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let key = pidfd.as_raw_fd();
    let update = Update {
        map: storage.as_raw_fd() as u32,
        unused: 0,
        key: &raw const key as u64,
        value: value.as_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads a key of four bytes and the value, which outlive the call.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &update) }.map(drop)
}

/// A command of the system call, with the part of `union bpf_attr` that it reads.
///
/// # Safety
/// The part is a beginning of that union, `repr(C)` and without padding. What its addresses refer
/// to has to be as the command needs it, and the command writes nothing into the part itself.
unsafe fn bpf<T>(command: libc::c_int, part: &T) -> io::Result<i32> {
    // SAFETY: the kernel reads `part`, which outlives the call; the rest is as the caller promises.
    match unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *part, size_of::<T>()) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result as i32),
    }
}

/// Makes the descriptor of a map of the library refer to another map. Programs that are loaded
/// later know a map only by the number of its descriptor, and the library has no way to be given a
/// map.
fn stand_for(own: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the number stays one of a map that is open, and nothing of the map that it stood for
    // is in use yet.
    let result = unsafe { libc::dup3(other.as_raw_fd(), own.as_raw_fd(), libc::O_CLOEXEC) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a map of so many words of eight bytes, which processes can map into their memory.
pub(crate) fn words(entries: u32) -> io::Result<OwnedFd> {
    const BPF_MAP_CREATE: libc::c_int = 0;
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    const BPF_F_MMAPABLE: u32 = 1 << 10;
    #[repr(C)]
    struct Create {
        kind: u32,
        key_size: u32,
        value_size: u32,
        entries: u32,
        flags: u32,
    }
    let create = Create {
        kind: BPF_MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: 8,
        entries,
        flags: BPF_F_MMAPABLE,
    };
    // SAFETY: there are no addresses in it. The returned descriptor has no other owner.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(BPF_MAP_CREATE, &create)?)) }
}

/// Lets only programs in the kernel write to a map from now on. A process with a descriptor of it
/// can write neither by the system call nor through memory. There must be no writable mapping of it
/// yet.
pub(crate) fn freeze(map: BorrowedFd<'_>) -> io::Result<()> {
    const BPF_MAP_FREEZE: libc::c_int = 22;
    // SAFETY: this command reads a descriptor, and no address.
    unsafe { bpf(BPF_MAP_FREEZE, &map.as_raw_fd()) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_called_bpf() {
        assert!(Unavailable::NotBuilt.to_string().contains("without its BPF programs"));
        let refused = Unavailable::from(io::Error::from_raw_os_error(libc::E2BIG)).to_string();
        assert!(refused.starts_with("the kernel refuses BPF programs: Argument list"), "{refused}");
    }

    #[test]
    fn a_missing_permission_is_one_sentence_with_a_remedy() {
        let from = |errno| {
            let (name, code) = ("wanted".to_owned(), -1);
            let io_error = io::Error::from_raw_os_error(errno);
            let error = MapError::CreateError { name, code, io_error };
            Unavailable::from(EbpfError::MapError(error)).to_string()
        };
        let said = from(libc::EPERM);
        assert!(said.starts_with("this user may not use BPF programs (remedy: "), "{said}");
        assert!(said.contains(",cap_bpf,") && !said.contains("sudo sudo"), "{said}");
        let said = from(libc::E2BIG);
        assert_eq!(said.matches("failed to create map").count(), 1, "{said}");
        assert_eq!(said.matches("Argument list too long").count(), 1, "{said}");
    }
}
