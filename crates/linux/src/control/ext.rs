//! The scheduler in the kernel (sched_ext), for the programs of one run.
//!
//! A stock kernel has no directed yield, and its slices end at ticks. `bpf/scheduler.bpf.c`
//! schedules the threads of class `SCHED_EXT` instead of the kernel: a queue per program, shares by
//! weight, slices that end on time, and a CPU that is handed to a named thread.
//!
//! Loading it takes libraries that cosched does without, and possibly permissions that it lacks.
//! Therefore a process of its own does that, `cosched-ext` ([`loader`]), and hands out the
//! descriptors of the maps that both sides share (`shared`). The kernel removes the scheduler
//! when that process ends. The threads then keep their class by name only, and the kernel schedules
//! them as ordinary ones until the undo log gives the original class back.
//!
//! Turns by weight need a word again and again (`ExtScheduler::renew`): without it, the scheduler
//! treats all programs alike. A cosched that is stuck or stopped therefore holds no program back.

pub mod loader;
mod shared;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use cosched_core::{Nanos, Turn};

use crate::kernel::bpf;
use crate::kernel::files::FileError;
use crate::kernel::procfs::{Proc, Stat};
use loader::{ExtError, Loader};
use shared::{Mapped, SharedControl, SharedProgram};

/// What schedules the threads of the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SchedulerBackend {
    /// The kernel's own scheduler.
    #[default]
    Kernel,
    /// cosched's, in the kernel.
    Ext,
}

impl SchedulerBackend {
    /// The name that users see.
    pub fn name(self) -> &'static str {
        match self {
            SchedulerBackend::Kernel => "kernel",
            SchedulerBackend::Ext => "ext",
        }
    }
}

/// The weight of a program that has no other one.
const DEFAULT_WEIGHT: u32 = 100;

/// The slices that it grants.
const SHORTEST_SLICE: Nanos = Nanos::from_micros(100);
const LONGEST_SLICE: Nanos = Nanos::from_millis(1000);

/// How many programs it can have.
const MOST_PROGRAMS: usize = shared::PROGRAMS - 1;

/// For how long turns are valid after a word that they are.
const VALID: Nanos = Nanos::from_millis(500);

/// How often to say that turns are valid.
pub(crate) const RENEW_EVERY: Nanos = Nanos::from_millis(200);

/// What the threads of a program have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtCounts {
    /// CPU time.
    pub used: Nanos,
    /// How often a thread came to a CPU.
    pub starts: u64,
    /// How often a thread asked for another one to have its CPU.
    pub donations: u64,
    /// How often that thread was queued, and was put next.
    pub handed_over: u64,
    /// How often it came next indeed, with what was left of the slice.
    pub followed: u64,
}

/// The scheduler, as long as it is loaded. Dropping it unloads it.
#[derive(Debug)]
pub struct ExtScheduler {
    loader: Loader,
    control: Mapped<SharedControl>,
    programs: Mapped<SharedProgram>,
    members: OwnedFd,
    slices: OwnedFd,
}

impl ExtScheduler {
    /// Loads it, by this executable (`cosched-ext`), for so many programs.
    ///
    /// # Errors
    /// When there are too many, there is no such executable, or the kernel or this user's
    /// permissions do not allow it.
    pub fn load(executable: &Path, programs: usize) -> Result<ExtScheduler, ExtError> {
        if programs > MOST_PROGRAMS {
            return Err(ExtError::TooMany { programs, most: MOST_PROGRAMS });
        }
        let loaded = loader::load(executable)?;
        let mapped = |error: io::Error| ExtError::Refused(error.to_string());
        let scheduler = ExtScheduler {
            control: Mapped::new(loaded.control.as_fd(), 1).map_err(mapped)?,
            programs: Mapped::new(loaded.programs.as_fd(), shared::PROGRAMS).map_err(mapped)?,
            members: loaded.members,
            slices: loaded.slices,
            loader: loaded.loader,
        };
        scheduler.control.at(0).use_programs(shared::number(programs as u16));
        Ok(scheduler)
    }

    /// The process that holds it.
    pub(crate) fn loader(&self) -> i32 {
        self.loader.pid()
    }

    /// Makes a process one of the program in a slot, with all that it will start.
    pub(crate) fn join(&self, proc: &Proc, process: i32, slot: u16) -> Result<(), FileError> {
        let member = [shared::number(slot) as u32, 0, 0, 0, 0, 0];
        bpf::join(self.members.as_fd(), proc, process, &member)
    }

    /// Sets the slice of a program's threads; `None`: the scheduler's own. Returns whether it
    /// grants that.
    pub(crate) fn set_slice(&self, slot: u16, slice: Option<Nanos>) -> bool {
        let granted = granted(slice);
        self.program(slot).set_slice(granted.unwrap_or_default());
        granted == slice
    }

    /// Sets the slice of one thread of a process; `None`: that of its program. It ends with the
    /// thread. Returns whether it grants that.
    pub(crate) fn set_slice_of(
        &self,
        proc: &Proc,
        process: i32,
        thread: Stat,
        slice: Option<Nanos>,
    ) -> Result<bool, FileError> {
        let granted = granted(slice);
        let nanoseconds = granted.unwrap_or_default().0 as u32;
        bpf::keep_for_thread(self.slices.as_fd(), proc, process, thread, nanoseconds)?;
        Ok(granted == slice)
    }

    /// Gives a program the share of a nice value, relative to that of the others: each step is
    /// worth a quarter more or less, as the kernel has it.
    pub(crate) fn set_nice(&self, slot: u16, nice: i8) {
        let weight = f64::from(DEFAULT_WEIGHT) * 0.8_f64.powi(nice.into());
        self.program(slot).set_weight(weight.round().max(1.0) as u32);
    }

    /// Gives a program its part in turns by weight.
    pub(crate) fn set_turn(&self, slot: u16, turn: Option<Turn>) {
        self.program(slot).set_fills(turn == Some(Turn::Filler));
    }

    /// Says that turns are valid, as of this time of the kernel's monotonic clock.
    pub(crate) fn renew(&self, now: Nanos) {
        self.control.at(0).turns_are_valid_until(now + VALID);
    }

    /// Why the kernel has ended it, if it has. If its process has ended, the channel says so.
    pub(crate) fn why_ended(&self) -> Option<&'static str> {
        self.control.at(0).why_stopped()
    }

    /// What the threads of a program have done so far.
    pub fn counts(&self, slot: u16) -> ExtCounts {
        self.program(slot).counts()
    }

    fn program(&self, slot: u16) -> &SharedProgram {
        self.programs.at(shared::number(slot))
    }
}

/// The slice that it grants for a requested one.
fn granted(slice: Option<Nanos>) -> Option<Nanos> {
    slice.map(|slice| slice.clamp(SHORTEST_SLICE, LONGEST_SLICE))
}

/// Readable (for epoll) when its process has ended.
impl AsFd for ExtScheduler {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.loader.as_fd()
    }
}
