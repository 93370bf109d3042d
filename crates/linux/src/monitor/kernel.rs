//! The exact source: programs in the kernel that look at context switches (`bpf/monitor.bpf.c` tells how).
//!
//! They are loaded when the first program is to be watched and go when this value does, also when cosched is killed: the
//! kernel holds them for nobody else. A process becomes a member by its pidfd; what it forks later inherits that.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use aya::maps::{Array, Map, MapData, MapError, Queue};
use aya::programs::perf_event::{
    PerfEvent, PerfEventLinkId, PerfEventScope, PerfTypeId, SamplePolicy, perf_sw_ids,
};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::util::online_cpus;
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::ThreadUse;
use super::record::{RECORDS, Records};
use crate::clock;
use crate::files::FileError;
use crate::procfs::Proc;

/// What clang made of `bpf/monitor.bpf.c`; empty where there was no clang.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/monitor.bpf.o"));

/// Each program and the tracepoint that it is for.
const PROGRAMS: [(&str, &str); 5] = [
    ("on_switch", "sched_switch"),
    ("on_wakeup", "sched_wakeup"),
    ("on_birth", "sched_wakeup_new"),
    ("on_fork", "sched_process_fork"),
    ("on_exit", "sched_process_exit"),
];

/// The program that counts ticks, and nanoseconds between two of them: not in step with anything else, and no more often, since
/// a tick of 1 ms slows programs that fight for locks by a tenth (docs/measurements.md).
const ON_TICK: &str = "on_tick";
const TICK: u64 = 1_953_000;

/// The slot of a process whose threads have no record yet; `NOT_YET` in `bpf/monitor.h`.
const NOT_YET: u32 = 0xffff_fffe;

/// Why the kernel's part cannot be used.
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

/// The programs in the kernel, running.
#[derive(Debug)]
pub struct Kernel {
    loaded: Ebpf,
    records: Records,
    proc: Proc,
    /// For each record, when the thread ended that was told last.
    told: Vec<u64>,
    /// A clock on each CPU, while ticks are counted.
    clocks: Vec<PerfEventLinkId>,
}

impl Kernel {
    /// Loads and starts them.
    ///
    /// # Errors
    /// When they were not built, or this kernel or user may not have them.
    pub fn open(proc: &Proc) -> Result<Kernel, Unavailable> {
        Kernel::with_room(proc, RECORDS)
    }

    /// The same, with room for so many threads at once.
    pub(super) fn with_room(proc: &Proc, threads: usize) -> Result<Kernel, Unavailable> {
        if OBJECT.is_empty() {
            return Err(Unavailable::NotBuilt);
        }
        let namespace = fs::metadata(proc.root().join("self/ns/pid"))
            .map_err(|error| Unavailable::Refused(error.to_string()))?;
        let (inode, room) = (namespace.ino() as u32, threads.min(RECORDS) as u32);
        let mut loaded = EbpfLoader::new()
            .allow_unsupported_maps()
            .set_global("namespace_inode", &inode, true)
            .set_global("room", &room, true)
            .load(OBJECT)?;
        let types = Btf::from_sys_fs().map_err(|error| Unavailable::Refused(causes(&error)))?;
        for (name, tracepoint) in PROGRAMS {
            let program: &mut BtfTracePoint =
                loaded.program_mut(name).expect("it is in the object").try_into()?;
            program.load(tracepoint, &types)?;
            program.attach()?;
        }
        clock_program(&mut loaded)?.load()?;
        let records = Records::map(map(&loaded, "records").fd().as_fd())
            .map_err(|error| Unavailable::Refused(error.to_string()))?;
        Ok(Kernel {
            loaded,
            records,
            proc: proc.clone(),
            told: vec![0; RECORDS],
            clocks: Vec::new(),
        })
    }

    pub(super) fn count_ticks(&mut self, wanted: bool) -> Result<(), Unavailable> {
        let program = clock_program(&mut self.loaded)?;
        for clock in self.clocks.drain(..) {
            program.detach(clock)?;
        }
        let cpus = online_cpus().map_err(|(_, error)| Unavailable::Refused(error.to_string()))?;
        for cpu in cpus.into_iter().filter(|_| wanted) {
            let clock = perf_sw_ids::PERF_COUNT_SW_CPU_CLOCK as u64;
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            let every = SamplePolicy::Period(TICK);
            let link = program.attach(PerfTypeId::Software, clock, scope, every, false)?;
            self.clocks.push(link);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, program: u32, process: i32) -> Result<(), FileError> {
        let path = || self.proc.folder(process);
        let gone = || FileError::io("watch", &path(), io::Error::from_raw_os_error(libc::ESRCH));
        let pid = Pid::from_raw(process).ok_or_else(gone)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| FileError::io("watch", &path(), error))?;
        let members = map(&self.loaded, "members").fd().as_fd();
        store(members, pidfd.as_fd(), [program, NOT_YET])
            .map_err(|error| FileError::io("watch", &path(), error))
    }

    pub(super) fn read(&mut self, into: &mut Vec<ThreadUse>) -> Result<(), FileError> {
        let failed = |error: MapError| {
            FileError::io("read the records of", self.proc.root(), io::Error::other(error))
        };
        let now = clock::monotonic();
        for slot in 0..self.counts().map_err(failed)?.used.min(RECORDS as u32) {
            let record = self.records.get(slot as usize);
            // One that is being made has no thread yet.
            if record.thread == 0 || !record.has_ended() {
                into.extend((record.thread != 0).then(|| record.told(now)));
                continue;
            }
            let told = &mut self.told[slot as usize];
            if *told != record.since {
                *told = record.since;
                into.push(record.told(now));
                let map = self.loaded.map_mut("returned").expect("it is in the object");
                let mut returned: Queue<_, u32> = map.try_into().map_err(failed)?;
                returned.push(slot, 0).map_err(failed)?;
            }
        }
        Ok(())
    }

    pub(super) fn lost(&self) -> u64 {
        self.counts().map_or(0, |counts| counts.lost)
    }

    fn counts(&self) -> Result<Counts, MapError> {
        let map = self.loaded.map("counts").expect("it is in the object");
        Array::<_, Counts>::try_from(map)?.get(&0, 0)
    }
}

/// `struct counts` of `bpf/monitor.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Counts {
    used: u32,
    unused: u32,
    lost: u64,
}

// SAFETY: numbers without gaps between them.
unsafe impl aya::Pod for Counts {}

fn clock_program(loaded: &mut Ebpf) -> Result<&mut PerfEvent, ProgramError> {
    loaded.program_mut(ON_TICK).expect("it is in the object").try_into()
}

fn map<'a>(loaded: &'a Ebpf, name: &str) -> &'a MapData {
    match loaded.map(name) {
        // The library has no type for the storage of tasks.
        Some(Map::Array(data) | Map::Unsupported(data)) => data,
        _ => unreachable!("{name} is in the object, and of one of these kinds"),
    }
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
