//! Being on time: how cosched itself is scheduled.
//!
//! A waking thread gets the CPU when its claim is older than that of the running threads. Three
//! things shape that claim, each measured with the example `wake_lateness`. A *short slice* (needs
//! no permission) makes a small claim, which is granted early. A *negative nice value* (needs a
//! permission) makes cosched's share large. The little that cosched runs then never exceeds its
//! share, however many threads compete. Real-time classes need more permissions and brought no
//! further improvement for *waking*.
//!
//! Staying on the CPU is another matter. The first thread that a thaw wakes, or a worker of the
//! kernel, takes the CPU from cosched, whatever its slice, and keeps it until the next tick: the
//! second program of the gang then starts milliseconds late. Where it may, cosched is therefore a
//! real-time thread while it freezes or thaws several programs, and only then: a real-time thread
//! that *waits* for a freeze was later, not earlier.
//!
//! Programs must not inherit any of it.

use cosched_core::{Nanos, Step};

use crate::kernel::sched_attr::{self, SHORTEST_SLICE, SchedAttr, SchedPolicy};
use crate::process::tree::Process;

const HIGHEST_PRIORITY: i32 = -20;
const LOWEST_REAL_TIME: u32 = 1;

/// How cosched was originally scheduled, and how it is now.
#[derive(Debug, Default)]
pub(super) struct Punctual {
    /// The scheduling of what it starts.
    found: Option<SchedAttr>,
    own: Option<SchedAttr>,
    /// The scheduling while it must not be interrupted.
    undisturbed: Option<SchedAttr>,
}

impl Punctual {
    /// Makes the calling thread punctual, as far as it may.
    pub(super) fn begin() -> Punctual {
        let Some(found) = sched_attr::get(0).ok().filter(|attr| attr.policy.has_slices()) else {
            return Punctual::default();
        };
        let granted = |attr: &SchedAttr| sched_attr::set(0, attr).is_ok();
        let slice = SchedAttr { runtime: SHORTEST_SLICE, ..found.reset_on_fork() };
        let real_time = SchedAttr {
            policy: SchedPolicy::Fifo,
            priority: LOWEST_REAL_TIME,
            nice: 0,
            ..slice.in_default_class()
        };
        let undisturbed = Some(real_time).filter(granted);
        // The first that is granted; without any, cosched is as punctual as any other thread.
        let own = [SchedAttr { nice: HIGHEST_PRIORITY, ..slice }, slice].into_iter().find(granted);
        // A slice that reads as a length was the kernel's choice if no user chose it.
        let found = SchedAttr { runtime: Nanos::ZERO, ..found };
        Punctual { found: Some(found), own, undisturbed }
    }

    /// Keeps the CPU while several programs are frozen or thawed, until the returned value is
    /// dropped.
    pub(super) fn undisturbed(&self, steps: &[Step]) -> Option<Undisturbed> {
        let switches = steps.iter().filter(|step| matches!(step, Step::Freeze(_) | Step::Thaw(_)));
        let (own, undisturbed) = self.own.zip(self.undisturbed)?;
        let granted = switches.count() > 1 && sched_attr::set(0, &undisturbed).is_ok();
        granted.then_some(Undisturbed { own })
    }

    /// The original scheduling of cosched, which what it starts gets; `None`: it has changed
    /// nothing.
    pub(super) fn found(&self) -> Option<SchedAttr> {
        self.found
    }

    /// Gives a new shim, and so the program that it starts, cosched's original scheduling.
    pub(super) fn spare(&self, shim: Process) {
        if let Some(found) = &self.found {
            // A shim that has ended meanwhile is noticed elsewhere.
            let _ = sched_attr::set(shim.pid, found);
        }
    }
}

/// The calling thread keeps its CPU as long as this lives.
#[derive(Debug)]
pub(super) struct Undisturbed {
    own: SchedAttr,
}

impl Drop for Undisturbed {
    /// A thread may always return to the fair class.
    fn drop(&mut self) {
        let _ = sched_attr::set(0, &self.own);
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
