//! Being on time: how cosched itself is scheduled.
//!
//! A thread that wakes is let in when its claim is older than that of those who
//! run. Three things shape that claim, each measured with the example
//! `wake_lateness`: a *short slice* (needs no right) makes a small claim, which is granted
//! early; a *negative nice value* (needs a right) makes cosched's share large, so that the little
//! it runs never exceeds it, however many threads compete; real-time classes need more rights and gave
//! nothing beyond that. Nothing of it may be inherited by programs.

use cosched_core::Nanos;

use crate::sched_attr::{self, SHORTEST_SLICE, SchedAttr};
use crate::tree::Process;

const HIGHEST_PRIORITY: i32 = -20;

/// How cosched was scheduled before it made itself punctual; what it starts is scheduled so.
#[derive(Debug)]
pub(super) struct Punctual {
    found: Option<SchedAttr>,
}

impl Punctual {
    /// Makes the calling thread punctual, as far as it may.
    pub(super) fn begin() -> Punctual {
        let found = sched_attr::get(0).ok().filter(|attr| attr.policy.has_slices());
        if let Some(found) = found {
            let slice = SchedAttr { runtime: SHORTEST_SLICE, ..found.reset_on_fork() };
            // The first that is granted; without any, cosched is as punctual as everybody else.
            let _ = sched_attr::set(0, &SchedAttr { nice: HIGHEST_PRIORITY, ..slice })
                .or_else(|_| sched_attr::set(0, &slice));
        }
        // A slice that reads as a length was the kernel's choice if nobody chose it.
        Punctual { found: found.map(|attr| SchedAttr { runtime: Nanos::ZERO, ..attr }) }
    }

    /// Has a new shim, and so the program that it starts, scheduled as cosched was found.
    pub(super) fn spare(&self, shim: Process) {
        if let Some(found) = &self.found {
            // A shim that has ended meanwhile is noticed elsewhere.
            let _ = sched_attr::set(shim.pid, found);
        }
    }
}

impl Drop for Punctual {
    /// Several runs may follow one another in one process.
    fn drop(&mut self) {
        if let Some(found) = &self.found {
            let _ = sched_attr::set(0, found);
        }
    }
}
