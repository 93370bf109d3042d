//! The exact source: programs in the kernel that see every context switch (described in
//! `bpf/monitor.bpf.c`).

use std::io;
use std::os::fd::AsFd;

use aya::maps::{Array, MapError, Queue};
use aya::programs::ProgramError;
use aya::programs::perf_event::{
    PerfEvent, PerfEventLinkId, PerfEventScope, PerfTypeId, SamplePolicy, perf_sw_ids,
};
use aya::util::online_cpus;
use cosched_core::CpuSet;

use super::ThreadUse;
use super::record::{RECORDS, Records};
use super::unseen::UnseenThreads;
pub use crate::kernel::bpf::Unavailable;
use crate::kernel::bpf::{BpfPrograms, Object};
use crate::kernel::clock;
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;

/// What clang made of `bpf/monitor.bpf.c`.
static OBJECT: Object = Object {
    code: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/monitor.bpf.o")),
    tracepoints: &[
        ("on_switch", "sched_switch"),
        ("on_wakeup", "sched_wakeup"),
        ("on_birth", "sched_wakeup_new"),
        ("on_fork", "sched_process_fork"),
        ("on_exit", "sched_process_exit"),
    ],
};

/// The program that counts ticks, and the nanoseconds between two of them. The period is not in
/// step with anything else, and not shorter, since a tick of 1 ms slows programs that compete for
/// locks by a tenth (docs/research/measurements.md).
const ON_TICK: &str = "on_tick";
const TICK: u64 = 1_953_000;

/// The slot of a process that has no record of threads yet; `NOT_YET` in `bpf/monitor.h`.
const NOT_YET: u32 = 0xffff_fffe;

/// The programs in the kernel, running.
#[derive(Debug)]
pub struct KernelMonitor {
    programs: BpfPrograms,
    records: Records,
    proc: Proc,
    /// For each record, when the last reported thread ended.
    reported: Vec<u64>,
    unseen: UnseenThreads,
    /// A clock on each CPU, while ticks are counted.
    clocks: Vec<PerfEventLinkId>,
}

impl KernelMonitor {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// When they were not built, or this kernel or user does not allow them.
    pub fn open(proc: &Proc) -> Result<KernelMonitor, Unavailable> {
        KernelMonitor::with_room(proc, RECORDS)
    }

    /// Loads and attaches the programs, with room for so many threads at once.
    pub(super) fn with_room(proc: &Proc, threads: usize) -> Result<KernelMonitor, Unavailable> {
        let room = threads.min(RECORDS) as u32;
        let mut programs = BpfPrograms::load(&OBJECT, proc, &[("room", room)], None)?;
        programs.attach()?;
        clock_program(&mut programs)?.load()?;
        let records =
            Records::map(programs.map("records").fd().as_fd()).map_err(io::Error::from)?;
        let reported = vec![0; RECORDS];
        let (proc, unseen, clocks) = (proc.clone(), UnseenThreads::default(), Vec::new());
        Ok(KernelMonitor { programs, records, proc, reported, unseen, clocks })
    }

    pub(super) fn count_ticks(&mut self, enabled: bool) -> Result<(), Unavailable> {
        let program = clock_program(&mut self.programs)?;
        for clock in self.clocks.drain(..) {
            program.detach(clock)?;
        }
        let cpus = online_cpus().map_err(|(_, error)| error)?;
        for cpu in cpus.into_iter().filter(|_| enabled) {
            let clock = perf_sw_ids::PERF_COUNT_SW_CPU_CLOCK as u64;
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            let every = SamplePolicy::Period(TICK);
            let link = program.attach(PerfTypeId::Software, clock, scope, every, false)?;
            self.clocks.push(link);
        }
        Ok(())
    }

    pub(super) fn count_transfers(&mut self, groups: &[CpuSet]) -> Result<(), Unavailable> {
        let map = self.programs.loaded_mut().map_mut("groups").expect("it is in the object");
        let mut numbers = Array::<_, u32>::try_from(map)?;
        for cpu in 0..numbers.len() {
            let of = groups.iter().position(|group| group.contains(cpu as usize));
            numbers.set(cpu, of.unwrap_or(groups.len()) as u32, 0)?;
        }
        self.programs.attach_also("on_waking", "sched_waking")
    }

    pub(super) fn tell_locks_apart(&mut self) -> Result<(), Unavailable> {
        let map = self.programs.loaded_mut().map_mut("wanted").expect("it is in the object");
        Ok(Array::<_, u32>::try_from(map)?.set(0, 1, 0)?)
    }

    pub(super) fn add(&mut self, program: u32, process: i32) -> Result<(), FileError> {
        self.programs.join(&self.proc, process, [program, NOT_YET])?;
        self.unseen.add(program, process, &self.proc)
    }

    pub(super) fn forget(&mut self, program: u32) {
        self.unseen.forget(program);
    }

    pub(super) fn read(&mut self, into: &mut Vec<ThreadUse>) -> Result<(), FileError> {
        let failed = |error: MapError| {
            FileError::io("read the records of", self.proc.root(), io::Error::other(error))
        };
        let now = clock::monotonic();
        for slot in 0..self.counts().map_err(failed)?.used.min(RECORDS as u32) {
            let record = self.records.get(slot as usize);
            // A record that is being made has no thread yet.
            if record.thread == 0 || !record.has_ended() {
                into.extend((record.thread != 0).then(|| record.reported(now)));
                continue;
            }
            let reported = &mut self.reported[slot as usize];
            if *reported != record.since {
                *reported = record.since;
                into.push(record.reported(now));
                let map =
                    self.programs.loaded_mut().map_mut("returned").expect("it is in the object");
                let mut returned: Queue<_, u32> = map.try_into().map_err(failed)?;
                returned.push(slot, 0).map_err(failed)?;
            }
        }
        self.unseen.report(into, self.lost() > 0, &self.proc);
        Ok(())
    }

    pub(super) fn lost(&self) -> u64 {
        self.counts().map_or(0, |counts| counts.lost)
    }

    fn counts(&self) -> Result<MonitorCounts, MapError> {
        let map = self.programs.loaded().map("counts").expect("it is in the object");
        Array::<_, MonitorCounts>::try_from(map)?.get(&0, 0)
    }
}

/// `struct counts` of `bpf/monitor.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct MonitorCounts {
    used: u32,
    unused: u32,
    lost: u64,
}

// SAFETY: numbers without gaps between them.
unsafe impl aya::Pod for MonitorCounts {}

fn clock_program(programs: &mut BpfPrograms) -> Result<&mut PerfEvent, ProgramError> {
    programs.loaded_mut().program_mut(ON_TICK).expect("it is in the object").try_into()
}
