//! Why the machine fails.

use std::io;

use crate::control::ext::loader::ExtError;
use crate::control::run_cgroups::RunCgroupsError;
use crate::kernel::affinity::AffinityError;
use crate::kernel::files::FileError;
use crate::kernel::open_files::TooFewFiles;
use crate::process::helper::HelperError;
use crate::safety::attachable::Unattachable;
use crate::safety::undo::LogError;

/// Why the machine failed, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The kernel refused something that always works.
    #[error("cannot wait for events: {0}")]
    Poll(#[from] io::Error),
    /// The undo log cannot be written: nothing may be changed any more.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A helper process cannot be started.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The cgroups are unavailable.
    #[error(transparent)]
    RunCgroups(#[from] RunCgroupsError),
    /// A file of the kernel cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The programs cannot be scheduled by a scheduler in the kernel.
    #[error(transparent)]
    Ext(#[from] ExtError),
    /// The programs need more open files than are allowed.
    #[error(transparent)]
    Files(#[from] TooFewFiles),
    /// cosched's own CPUs cannot be read.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// A process that was to be attached has been taken meanwhile.
    #[error("process {pid}: {}", Unattachable::Held { cosched: *cosched })]
    Held {
        /// Which process.
        pid: i32,
        /// The cosched that has it.
        cosched: i32,
    },
    /// A process that was to be attached belongs to a cosched that keeps its log elsewhere.
    #[error(
        "process {pid}: another cosched schedules it, an ancestor or a descendant of it; end that \
         cosched, or detach it there, first"
    )]
    Claimed {
        /// Which process.
        pid: i32,
    },
}
