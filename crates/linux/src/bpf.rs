//! Programs for the kernel (BPF): compiled with this crate, loaded when somebody wants what they tell.
//!
//! They run at tracepoints while they are attached, and go when the value that holds them does, also when cosched is killed:
//! the kernel holds them for nobody else. Whose threads they look at is decided by membership, a value in the storage of a
//! process' first thread. It is written by pidfd, so no number of a process is ever compared, whatever PID namespaces
//! there are; what the process forks later inherits it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use aya::maps::{Map, MapData, MapError};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::files::FileError;
use crate::procfs::Proc;

/// Why programs for the kernel cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// There was no clang when cosched was built.
    #[error(
        "cosched was built without its programs for the kernel (remedy: install clang and libbpf-dev, and build again)"
    )]
    NotBuilt,
    /// A right or a part of the kernel is missing.
    #[error("the kernel does not take the programs: {0} (`cosched doctor` tells what is missing)")]
    Refused(String),
}

impl From<EbpfError> for Unavailable {
    fn from(error: EbpfError) -> Unavailable {
        Unavailable::Refused(causes(&error))
    }
}

impl From<ProgramError> for Unavailable {
    fn from(error: ProgramError) -> Unavailable {
        Unavailable::Refused(causes(&error))
    }
}

impl From<MapError> for Unavailable {
    fn from(error: MapError) -> Unavailable {
        Unavailable::Refused(causes(&error))
    }
}

impl From<io::Error> for Unavailable {
    fn from(error: io::Error) -> Unavailable {
        Unavailable::Refused(error.to_string())
    }
}

/// An error and what caused it, without the verifier's log.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.lines().next().unwrap_or_default().to_owned()
}

/// What clang made of one source, and what it is for.
#[derive(Debug)]
pub(crate) struct Object {
    /// Empty where there was no clang.
    pub(crate) code: &'static [u8],
    /// Each program and the tracepoint that it is for.
    pub(crate) tracepoints: &'static [(&'static str, &'static str)],
}

/// The programs of one object, in the kernel.
#[derive(Debug)]
pub(crate) struct Programs {
    loaded: Ebpf,
    tracepoints: &'static [(&'static str, &'static str)],
    /// Where they are attached: all of them, or none.
    links: Vec<BtfTracePointLinkId>,
}

impl Programs {
    /// Loads them; nothing runs yet. They number threads as `proc` does.
    ///
    /// # Errors
    /// When they were not built, or this kernel or user may not have them.
    pub(crate) fn load(
        object: &Object,
        proc: &Proc,
        constants: &[(&str, u32)],
    ) -> Result<Programs, Unavailable> {
        if object.code.is_empty() {
            return Err(Unavailable::NotBuilt);
        }
        let namespace = fs::metadata(proc.root().join("self/ns/pid"))?.ino() as u32;
        let mut loader = EbpfLoader::new();
        loader.allow_unsupported_maps().set_global("namespace_inode", &namespace, true);
        for (name, value) in constants {
            loader.set_global(name, value, true);
        }
        let mut loaded = loader.load(object.code)?;
        let types = Btf::from_sys_fs().map_err(|error| Unavailable::Refused(causes(&error)))?;
        for (name, tracepoint) in object.tracepoints {
            at_tracepoint(&mut loaded, name)?.load(tracepoint, &types)?;
        }
        Ok(Programs { loaded, tracepoints: object.tracepoints, links: Vec::new() })
    }

    /// From now on they run, if they did not before.
    ///
    /// # Errors
    /// When the kernel refuses one; then none runs.
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

    /// From now on another one runs as well, until this value is dropped.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub(crate) fn attach_also(&mut self, name: &str, tracepoint: &str) -> Result<(), Unavailable> {
        let types = Btf::from_sys_fs().map_err(|error| Unavailable::Refused(causes(&error)))?;
        let program = at_tracepoint(&mut self.loaded, name)?;
        program.load(tracepoint, &types)?;
        program.attach()?;
        Ok(())
    }

    /// None of them runs any more.
    pub(crate) fn detach(&mut self) {
        for ((name, _), link) in self.tracepoints.iter().zip(self.links.drain(..)) {
            // Only a link that is not there is refused.
            let _ = at_tracepoint(&mut self.loaded, name).and_then(|at| at.detach(link));
        }
    }

    /// The whole object, for what has no tracepoint.
    pub(crate) fn loaded(&self) -> &Ebpf {
        &self.loaded
    }

    /// The same, to change it.
    pub(crate) fn loaded_mut(&mut self) -> &mut Ebpf {
        &mut self.loaded
    }

    /// What lies behind a map's name.
    pub(crate) fn map(&self, name: &str) -> &MapData {
        match self.loaded.map(name) {
            // The library has no type for the storage of tasks.
            Some(Map::Array(data) | Map::Unsupported(data)) => data,
            _ => unreachable!("{name} is in the object, and of one of these kinds"),
        }
    }

    /// Makes a process a member, and all that it will start; this is kept with it.
    ///
    /// # Errors
    /// When the process is gone, or may not be one.
    pub(crate) fn join(&self, proc: &Proc, process: i32, kept: [u32; 2]) -> Result<(), FileError> {
        let path = || proc.folder(process);
        let gone = || FileError::io("watch", &path(), io::Error::from_raw_os_error(libc::ESRCH));
        let pid = Pid::from_raw(process).ok_or_else(gone)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| FileError::io("watch", &path(), error))?;
        store(self.map("members").fd().as_fd(), pidfd.as_fd(), kept)
            .map_err(|error| FileError::io("watch", &path(), error))
    }
}

fn at_tracepoint<'a>(
    loaded: &'a mut Ebpf,
    name: &str,
) -> Result<&'a mut BtfTracePoint, ProgramError> {
    loaded.program_mut(name).expect("it is in the object").try_into()
}

/// Writes a value into the storage of the task that a pidfd stands for.
fn store(storage: BorrowedFd<'_>, pidfd: BorrowedFd<'_>, value: [u32; 2]) -> io::Result<()> {
    const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
    /// The part of `union bpf_attr` that this command reads.
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
    // SAFETY: the kernel reads `update`, a key of four bytes and a value of eight, all of which outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_MAP_UPDATE_ELEM, &raw const update, size_of::<Update>())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From now on nobody but programs in the kernel writes to a map: neither by the system call nor through memory, whoever has
/// a descriptor of it. There must be no memory by which it can be written yet.
pub(crate) fn freeze(map: BorrowedFd<'_>) -> io::Result<()> {
    const BPF_MAP_FREEZE: libc::c_int = 22;
    let map = map.as_raw_fd();
    // SAFETY: the part of `union bpf_attr` that this command reads is a descriptor, which outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_MAP_FREEZE, &raw const map, size_of_val(&map)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
