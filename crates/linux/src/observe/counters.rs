//! Hardware counters: how many instructions a program executes, and how often it misses the
//! last-level cache.
//!
//! *Problem.* A policy that matches programs by their cache misses needs a figure for the whole
//! program: all its threads, and all processes that it ever starts, from its first instruction on.
//!
//! *Mechanism.* The kernel counts per thread, and lets what a thread starts inherit its counters
//! (see `event.rs` for the rules). A program lives below its [shim](crate::process::shim). The
//! counters are therefore opened on the shim before it gets its order, switched off; the program's
//! `exec` switches them on. Nothing of cosched is counted. Of the program, only what it starts
//! under another user's rights (setuid) is missed, since the kernel does not let us observe that.
//! Only user mode counts: that needs no permission where `perf_event_paranoid` is at most 2, and
//! it is the program's own use of the cache.
//!
//! A running program is counted from now on: each of its threads by counters of its own, which what
//! it starts later inherits. A thread that starts between the reading of the list and the counters
//! of its parent is missed.
//!
//! *What "last level" means* is the processor's and the kernel's choice. On x86 it is the kernel's
//! generic cache event: the last level on Intel's processors, the second level on AMD's since Zen,
//! with a last level that counts for all its cores together. Elsewhere the generic event often
//! means the first level, so the events of the last level are requested by name. On processors with
//! two kinds of cores the kernel counts on one kind, and the count is scaled up like that of
//! multiplexed events.
//!
//! *A missing figure* is left out, never zero: without counters (most virtual machines), without
//! permission, for events that this processor does not have. [`check`] says which.

mod event;
mod of_threads;
#[cfg(test)]
mod tests;

use std::io;

use cosched_core::{Counts, Quality};

pub use event::CounterEvent;
use event::{Counter, CounterReading};
pub(crate) use event::{Sampling, can_sample, ring_owner, sample_below, sample_thread};
pub(crate) use of_threads::ThreadMisses;

use crate::kernel::remedy::{ALLOW_EVENTS, as_typed};
use crate::process::tree::Process;

const TYPE_HARDWARE: u32 = 0;
const HARDWARE_CYCLES: u64 = 0;
const HARDWARE_INSTRUCTIONS: u64 = 1;

/// The events to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events {
    /// Instructions retired.
    pub instructions: CounterEvent,
    /// CPU cycles.
    pub cycles: CounterEvent,
    /// References to the last-level cache.
    pub llc_references: CounterEvent,
    /// References to the last-level cache that missed.
    pub llc_misses: CounterEvent,
}

impl Events {
    /// The events of this processor.
    pub const HARDWARE: Events = Events {
        instructions: CounterEvent { kind: TYPE_HARDWARE, config: HARDWARE_INSTRUCTIONS },
        cycles: CounterEvent { kind: TYPE_HARDWARE, config: HARDWARE_CYCLES },
        llc_references: LAST_LEVEL[0],
        llc_misses: LAST_LEVEL[1],
    };

    fn all(self) -> PerEvent<CounterEvent> {
        [self.instructions, self.cycles, self.llc_references, self.llc_misses]
    }
}

/// A value for each of the events, in the order of [`Events`].
type PerEvent<T> = [T; 4];

/// References and misses: the kernel's generic cache events.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
const LAST_LEVEL: [CounterEvent; 2] = [
    CounterEvent { kind: TYPE_HARDWARE, config: 2 },
    CounterEvent { kind: TYPE_HARDWARE, config: 3 },
];

/// References and misses: reads (operation 0) of the last-level cache (2), all (result 0) and
/// those that missed (1).
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
const LAST_LEVEL: [CounterEvent; 2] = [
    CounterEvent { kind: TYPE_CACHE, config: 2 },
    CounterEvent { kind: TYPE_CACHE, config: 2 | 1 << 16 },
];
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
const TYPE_CACHE: u32 = 3;

/// The counters of one program: for each event one for each thread that it was counted from, none
/// where it cannot be counted.
#[derive(Debug)]
pub struct Counters(PerEvent<Vec<Counter>>);

impl Counters {
    /// Counts the program that `shim` is going to start, with all its descendants. Has to be called
    /// before the shim gets its order. Events that cannot be counted are left out.
    pub fn below(shim: Process, events: Events) -> Counters {
        Counters(events.all().map(|event| Counter::below(event, shim).into_iter().collect()))
    }

    /// Counts a running program from now on: these threads, and all that they will start. Events
    /// that cannot be counted for all of them are left out.
    pub fn of(threads: &[i32], events: Events) -> Counters {
        let open = |event| {
            let counters = threads.iter().map(|thread| Counter::of(event, *thread));
            // A thread that has just ended no longer belongs to the program.
            let is_gone = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
            let counters = counters.filter(|counter| !counter.as_ref().is_err_and(is_gone));
            counters.collect::<io::Result<Vec<Counter>>>().unwrap_or_default()
        };
        Counters(events.all().map(open))
    }

    /// What was counted up to now, also of processes that have ended.
    pub fn read(&self) -> Counts {
        self.readings().since(Readings::default())
    }

    /// The present readings, as the end of an interval or the beginning of the next one.
    pub fn readings(&self) -> Readings {
        Readings(self.0.each_ref().map(|counters| {
            let readings = counters.iter().map(|counter| counter.read().ok());
            readings.reduce(|sum, one| Some(sum?.plus(one?))).flatten()
        }))
    }
}

/// The readings of a program's counters at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings(PerEvent<Option<CounterReading>>);

impl Readings {
    /// The counts from `before` to here. Multiplexed counters are scaled by their running time in
    /// this interval; a counter that did not run in it has no count.
    pub fn since(self, before: Readings) -> Counts {
        let mut quality = None;
        let [instructions, cycles, llc_references, llc_misses] = std::array::from_fn(|i| {
            let (count, good) = self.0[i]?.since(before.0[i].unwrap_or_default()).count()?;
            quality = quality.max(Some(good));
            Some(count)
        });
        let quality = quality.unwrap_or(Quality::Missing);
        Counts { instructions, cycles, llc_references, llc_misses, quality }
    }
}

/// Why cache misses cannot be counted here.
#[derive(Debug, thiserror::Error)]
pub enum CounterLack {
    /// There are no counters.
    #[error("this machine shows no hardware counters (a PMU)")]
    Hardware,
    /// This user may not use them.
    #[error("using the hardware counters is not permitted")]
    Permission,
    /// They are listed but do not work, as on some virtual machines.
    #[error("the instruction counter of this machine stands still")]
    StandsStill,
    /// Instructions are counted, misses are not.
    #[error("this machine counts instructions, but no misses of the last-level cache")]
    CacheEvents,
    /// Another error.
    #[error("the hardware counters cannot be used: {0}")]
    Other(#[source] io::Error),
}

impl CounterLack {
    /// How to get what is missing, where that is possible.
    pub fn remedy(&self) -> Option<String> {
        match self {
            CounterLack::Hardware | CounterLack::StandsStill | CounterLack::CacheEvents => {
                Some("on a virtual machine, its host has to pass the counters on".to_owned())
            }
            CounterLack::Permission => Some(as_typed(ALLOW_EVENTS)),
            CounterLack::Other(_) => None,
        }
    }
}

impl From<io::Error> for CounterLack {
    fn from(error: io::Error) -> CounterLack {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => CounterLack::Permission,
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => CounterLack::Hardware,
            _ => CounterLack::Other(error),
        }
    }
}

/// Tries for a moment whether instructions and cache misses of the calling thread can be counted.
///
/// # Errors
/// What is missing.
pub fn check(events: Events) -> Result<(), CounterLack> {
    let instructions = Counter::here(events.instructions)?;
    // A counter that gets no turn in this moment proves nothing.
    if matches!(instructions.read()?.count(), Some((0, _))) {
        return Err(CounterLack::StandsStill);
    }
    for event in [events.llc_references, events.llc_misses] {
        Counter::here(event).map_err(|error| match CounterLack::from(error) {
            CounterLack::Hardware => CounterLack::CacheEvents,
            other => other,
        })?;
    }
    Ok(())
}
