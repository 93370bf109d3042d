//! One performance event, as the kernel opens and reads it.
//!
//! A processor has a handful of counters. Where more events are requested, the kernel multiplexes
//! them, and says for how long each was requested (*enabled*) and for how long it really counted
//! (*running*). A count is scaled up by the ratio of the two. A counter that never ran says
//! nothing, and does not count as zero.
//!
//! The crate `perf-event2` can open and sample the same events without `unsafe` of ours, but its
//! reader of samples panics at a damaged record. It would bring five crates for two small modules.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use cosched_core::Quality;

use crate::process::tree::Process;

/// What to count, in the kernel's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterEvent {
    /// `type` of `struct perf_event_attr`: hardware, software, caches.
    pub kind: u32,
    /// `config` of `struct perf_event_attr`: which one of that type.
    pub config: u64,
}

/// The event at which the instruction pointer is sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    pub(crate) event: CounterEvent,
    /// The number of events between two samples.
    pub(crate) period: u64,
}

/// An event that is being counted, in user mode only; until it is dropped.
#[derive(Debug)]
pub(super) struct Counter(File);

impl Counter {
    /// Counts the calling thread from now on, without its children.
    pub(super) fn here(event: CounterEvent) -> io::Result<Counter> {
        open(event, 0, 0).map(Counter)
    }

    /// Counts what `parent` starts from now on, with all descendants: each from its `exec` on.
    ///
    /// The parent itself does not execute anything, so its own counter stays off. A child inherits
    /// it in that state, and it is switched on when the child executes its command. What the
    /// command then starts inherits a running counter.
    pub(super) fn below(event: CounterEvent, parent: Process) -> io::Result<Counter> {
        open(event, parent.pid, DISABLED | INHERIT | ENABLE_ON_EXEC).map(Counter)
    }

    /// Counts a running thread, and what it will start, from now on.
    pub(super) fn of(event: CounterEvent, thread: libc::pid_t) -> io::Result<Counter> {
        open(event, thread, INHERIT).map(Counter)
    }

    /// Counts a running thread from now on, without what it will start.
    pub(super) fn only(event: CounterEvent, thread: libc::pid_t) -> io::Result<Counter> {
        open(event, thread, 0).map(Counter)
    }

    /// The sum over all counted threads, also those that have ended.
    pub(super) fn read(&self) -> io::Result<CounterReading> {
        let mut words = [[0; 8]; 3];
        (&self.0).read_exact(words.as_flattened_mut())?;
        let [value, enabled, running] = words.map(u64::from_ne_bytes);
        Ok(CounterReading { value, enabled, running })
    }
}

/// The reading of a counter, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CounterReading {
    pub(super) value: u64,
    /// For how long it was enabled, ns over all threads.
    pub(super) enabled: u64,
    /// For how long it counted, ns over all threads.
    pub(super) running: u64,
}

impl CounterReading {
    /// The sum of both, as the kernel adds up a thread and those that it has started.
    pub(super) fn plus(self, other: CounterReading) -> CounterReading {
        CounterReading {
            value: self.value + other.value,
            enabled: self.enabled + other.enabled,
            running: self.running + other.running,
        }
    }

    pub(super) fn since(self, before: CounterReading) -> CounterReading {
        CounterReading {
            value: self.value.saturating_sub(before.value),
            enabled: self.enabled.saturating_sub(before.enabled),
            running: self.running.saturating_sub(before.running),
        }
    }

    /// The count of a single thread; one that did not run has counted nothing.
    pub(super) fn count_of_one(self) -> Option<u64> {
        if self.enabled == 0 { Some(0) } else { self.count().map(|(count, _)| count) }
    }

    /// The count for the whole time, and how far it can be trusted.
    pub(super) fn count(self) -> Option<(u64, Quality)> {
        if self.running == 0 {
            return None;
        }
        if self.running >= self.enabled {
            return Some((self.value, Quality::Exact));
        }
        let scaled = u128::from(self.value) * u128::from(self.enabled) / u128::from(self.running);
        Some((u64::try_from(scaled).ok()?, Quality::Scaled))
    }
}

/// The first version of the kernel's `struct perf_event_attr`.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const _: () = assert!(size_of::<PerfEventAttr>() == 64);
const TOTAL_TIME_ENABLED: u64 = 1 << 0;
const TOTAL_TIME_RUNNING: u64 = 1 << 1;
const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// Samples have the instruction pointer, and behind it the number of the event that took them.
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_ID: u64 = 1 << 6;
const ANY_CPU: i32 = -1;
/// An event of the kernel's own that never comes.
const NEVER: CounterEvent = CounterEvent { kind: 1, config: 9 };
/// `PERF_EVENT_IOC_SET_OUTPUT`, `PERF_EVENT_IOC_ID`.
const SET_OUTPUT: libc::Ioctl = libc::_IO(b'$' as u32, 5);
const NUMBER: libc::Ioctl = libc::_IOR::<*mut u64>(b'$' as u32, 7);

pub(crate) fn can_sample(sampling: Sampling) -> io::Result<()> {
    open_as(sampled(sampling, DISABLED), 0, ANY_CPU).map(drop)
}

/// Takes samples of what `parent` starts from now on, as [`Counter::below`] counts it, while it is
/// on this CPU. They go into the ring of another event of the same CPU, with the number that is
/// returned.
pub(crate) fn sample_below(
    sampling: Sampling,
    parent: Process,
    cpu: usize,
    ring: &File,
) -> io::Result<(u64, File)> {
    let attr = sampled(sampling, DISABLED | INHERIT | ENABLE_ON_EXEC);
    let sample_type = attr.sample_type | SAMPLE_ID;
    let event = open_as(PerfEventAttr { sample_type, ..attr }, parent.pid, number_of(cpu)?)?;
    let mut number = 0u64;
    // SAFETY: the first call takes a descriptor that is open meanwhile, and the second one writes a
    // word to where it may.
    let done = unsafe {
        libc::ioctl(event.as_raw_fd(), SET_OUTPUT, ring.as_raw_fd()) == 0
            && libc::ioctl(event.as_raw_fd(), NUMBER, &raw mut number) == 0
    };
    if done { Ok((number, event)) } else { Err(io::Error::last_os_error()) }
}

/// An event of the caller that never comes, for the sake of its ring: into it, all events of this
/// CPU may write.
pub(crate) fn ring_owner(cpu: usize) -> io::Result<File> {
    open_as(attr(NEVER, DISABLED), 0, number_of(cpu)?)
}

fn number_of(cpu: usize) -> io::Result<i32> {
    i32::try_from(cpu).map_err(io::Error::other)
}

/// Takes samples of one thread from now on, without what it will start.
pub(crate) fn sample_thread(sampling: Sampling, thread: libc::pid_t) -> io::Result<File> {
    open_as(sampled(sampling, 0), thread, ANY_CPU)
}

fn sampled(Sampling { event, period }: Sampling, flags: u64) -> PerfEventAttr {
    PerfEventAttr { sample_period: period, sample_type: SAMPLE_IP, ..attr(event, flags) }
}

fn attr(event: CounterEvent, flags: u64) -> PerfEventAttr {
    PerfEventAttr {
        kind: event.kind,
        size: size_of::<PerfEventAttr>() as u32,
        config: event.config,
        // Without samples in the kernel, no permission is needed for own programs, by default.
        flags: flags | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..PerfEventAttr::default()
    }
}

/// Opens an event that counts a thread; 0 means the caller.
fn open(event: CounterEvent, thread: libc::pid_t, flags: u64) -> io::Result<File> {
    let read_format = TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING;
    open_as(PerfEventAttr { read_format, ..attr(event, flags) }, thread, ANY_CPU)
}

fn open_as(attr: PerfEventAttr, thread: libc::pid_t, cpu: i32) -> io::Result<File> {
    // Inherited events cannot be read as a group on every kernel, so each stands alone.
    let no_group = -1;
    // SAFETY: the kernel reads the `size` bytes that the structure declares, which is its real
    // size, from a reference that outlives the call, and keeps no pointer to it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            thread,
            cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    let Ok(fd @ 0..) = i32::try_from(result) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the kernel has just opened this descriptor for us; nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}
