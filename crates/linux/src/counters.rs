//! Hardware counters: how many instructions a program executes, and how often it misses the
//! last-level cache.
//!
//! *Problem.* A policy that matches programs by their cache misses needs a figure for the whole
//! program: all its threads, and all processes that it ever starts, from its first instruction on.
//!
//! *Mechanism.* The kernel counts per thread, and lets what a thread starts inherit its counters
//! (`event.rs` tells the rules). A program lives below its [shim](crate::shim). So the counters
//! are opened on the shim before it gets its order, switched off; the program's `exec` switches
//! them on. Nothing of cosched is counted, and of the program nothing is missed but what it starts
//! under another user's rights (setuid), which the kernel does not let us watch. Only user mode
//! counts: that needs no right where `perf_event_paranoid` is at most 2, and it is the program's
//! own use of the cache.
//!
//! *What "last level" means* is the processor's and the kernel's choice. On x86 it is the kernel's
//! generic cache event: the last level on Intel's processors, the second level on AMD's since Zen,
//! whose last level counts for all its cores together. Elsewhere the generic event often means the
//! first level, so the events of the last level are asked for by name. On processors with two
//! kinds of cores the kernel counts on one kind, and the count is scaled up like that of events
//! that take turns.
//!
//! *What is not there* is left out, never zero: without counters (most virtual machines), without
//! permission, for events that this processor does not have. [`check`] tells which.

mod event;
#[cfg(test)]
mod tests;

use std::io;

use cosched_core::{Counts, Quality};

pub use event::Event;
use event::{Counter, Reading};

use crate::tree::Process;

const TYPE_HARDWARE: u32 = 0;
const HARDWARE_INSTRUCTIONS: u64 = 1;

/// The events from which misses per instruction come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events {
    /// Instructions retired.
    pub instructions: Event,
    /// References to the last-level cache.
    pub llc_references: Event,
    /// References to it that missed.
    pub llc_misses: Event,
}

impl Events {
    /// Those of this processor.
    pub const HARDWARE: Events = Events {
        instructions: Event { kind: TYPE_HARDWARE, config: HARDWARE_INSTRUCTIONS },
        llc_references: LAST_LEVEL[0],
        llc_misses: LAST_LEVEL[1],
    };
}

/// References and misses: the kernel's generic cache events.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
const LAST_LEVEL: [Event; 2] =
    [Event { kind: TYPE_HARDWARE, config: 2 }, Event { kind: TYPE_HARDWARE, config: 3 }];

/// References and misses: reads (operation 0) of the last-level cache (2), all (result 0) and
/// those that missed (1).
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
const LAST_LEVEL: [Event; 2] =
    [Event { kind: TYPE_CACHE, config: 2 }, Event { kind: TYPE_CACHE, config: 2 | 1 << 16 }];
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
const TYPE_CACHE: u32 = 3;

/// The counters of one program.
#[derive(Debug)]
pub struct Counters {
    instructions: Option<Counter>,
    llc_references: Option<Counter>,
    llc_misses: Option<Counter>,
}

impl Counters {
    /// Counts the program that `shim` is going to start, with all its descendants. Has to be
    /// called before the shim gets its order. What cannot be counted stays out.
    pub fn below(shim: Process, events: Events) -> Counters {
        let open = |event| Counter::below(event, shim).ok();
        Counters {
            instructions: open(events.instructions),
            llc_references: open(events.llc_references),
            llc_misses: open(events.llc_misses),
        }
    }

    /// What was counted up to now, also of processes that have ended.
    pub fn read(&self) -> Counts {
        let mut quality = None;
        let mut read = |counter: &Option<Counter>| {
            let (count, good) = counter.as_ref()?.read().ok().and_then(Reading::count)?;
            quality = quality.max(Some(good));
            Some(count)
        };
        Counts {
            instructions: read(&self.instructions),
            llc_references: read(&self.llc_references),
            llc_misses: read(&self.llc_misses),
            quality: quality.unwrap_or(Quality::Missing),
        }
    }
}

/// Why cache misses cannot be counted here.
#[derive(Debug, thiserror::Error)]
pub enum Lack {
    /// No counters at all.
    #[error("this machine shows no hardware counters (a PMU)")]
    Hardware,
    /// Not for this user.
    #[error("using the hardware counters is not permitted")]
    Permission,
    /// They are shown and do not work, as on some virtual machines.
    #[error("the instruction counter of this machine stands still")]
    StandsStill,
    /// Instructions are counted, misses are not.
    #[error("this machine counts instructions, but no misses of the last-level cache")]
    CacheEvents,
    /// Something else.
    #[error("the hardware counters cannot be used: {0}")]
    Other(#[source] io::Error),
}

impl Lack {
    /// How to get what is missing, where it can be had.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Lack::Hardware | Lack::StandsStill | Lack::CacheEvents => {
                Some("on a virtual machine, its host has to pass the counters on")
            }
            Lack::Permission => Some("sudo sysctl kernel.perf_event_paranoid=2"),
            Lack::Other(_) => None,
        }
    }
}

impl From<io::Error> for Lack {
    fn from(error: io::Error) -> Lack {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Lack::Permission,
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => Lack::Hardware,
            _ => Lack::Other(error),
        }
    }
}

/// Tries for a moment whether instructions and cache misses of the calling thread can be counted.
///
/// # Errors
/// What is missing.
pub fn check(events: Events) -> Result<(), Lack> {
    let instructions = Counter::here(events.instructions)?;
    // One that gets no turn in this moment proves nothing.
    if matches!(instructions.read()?.count(), Some((0, _))) {
        return Err(Lack::StandsStill);
    }
    for event in [events.llc_references, events.llc_misses] {
        Counter::here(event).map_err(|error| match Lack::from(error) {
            Lack::Hardware => Lack::CacheEvents,
            other => other,
        })?;
    }
    Ok(())
}
