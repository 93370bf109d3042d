//! The lines of the undo log.

use std::path::{Path, PathBuf};

use cosched_core::{CpuSet, ProgramId};
use serde::{Deserialize, Serialize};

use crate::cgroup::Version;
use crate::kernel::sched_attr::SchedAttr;
use crate::process::tree::Process;

/// A change that is about to be made, with the original setting, or news about a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// The machine was booted under this id; the first line of every log.
    Boot {
        /// From `/proc/sys/kernel/random/boot_id`.
        id: String,
    },
    /// The PID namespace of all numbers that follow; the second line of every log.
    PidNamespace {
        /// Its inode, from `/proc/self/ns/pid`.
        inode: u64,
        /// That of the time namespace of all start times, where the kernel has any.
        #[serde(default)]
        time: Option<u64>,
    },
    /// A cgroup is made. Undo: thaw everything in it, move the processes to `origin`, remove it.
    CgroupDir {
        /// Its hierarchy.
        kind: CgroupKind,
        /// Its folder.
        dir: PathBuf,
        /// The cgroup that its processes came from.
        origin: PathBuf,
    },
    /// A cgroup that cosched made was removed again.
    CgroupRemoved {
        /// Its folder.
        dir: PathBuf,
    },
    /// A v2 cgroup enables controllers. Undo: disables them.
    Controllers {
        /// Its folder.
        dir: PathBuf,
        /// Those that it did not enable before.
        added: Vec<String>,
    },
    /// A program begins, or is frozen by signals for the first time.
    Program {
        /// The program's id.
        program: ProgramId,
        /// The process with the subtree in which it lives.
        shim: Process,
        /// Whether it is frozen by SIGSTOP. Undo: SIGCONT to all its processes. Programs that are
        /// never frozen, or by cgroup, get none: what another process stopped there stays stopped.
        stopped_by_signal: bool,
    },
    /// The program's first process is known.
    Main {
        /// The program.
        program: ProgramId,
        /// Its first process.
        process: Process,
    },
    /// The parent of a process of a program has ended, so the process is not below the program's
    /// first one.
    Orphan {
        /// The program.
        program: ProgramId,
        /// The process.
        process: Process,
    },
    /// All threads of a program are bound to other CPUs. Undo: threads with this mask get the
    /// original one.
    Pinned {
        /// The program.
        program: ProgramId,
        /// The mask of its threads when they were first bound.
        found: CpuSet,
        /// The new mask.
        set: CpuSet,
    },
    /// No thread of a program has this mask from cosched any more.
    Unpinned {
        /// The program.
        program: ProgramId,
        /// The mask of earlier [`Record::Pinned`].
        set: CpuSet,
    },
    /// A thread is bound apart from its program. Either it has a mask of its own, and gets those of
    /// the program's CPUs that are in its mask; or it is given CPUs of its own (in a
    /// [`Record::Pinned`] besides this). Undo: this very mask; of several for the same thread, the
    /// last one.
    UserMask {
        /// Its program.
        program: ProgramId,
        /// The thread.
        thread: Process,
        /// Its own mask, or the original one of the program.
        mask: CpuSet,
    },
    /// A thread is scheduled differently. Undo: the original scheduling, for it and for threads
    /// that inherited it.
    Attr {
        /// Its program.
        program: ProgramId,
        /// The thread.
        thread: Process,
        /// The original scheduling. A slice that is the kernel's default has to be zero here:
        /// written back as a number it would count as chosen.
        found: SchedAttr,
        /// The new scheduling.
        set: SchedAttr,
    },
    /// Threads are moved to other CPUs by temporary masks. Undo: the original masks, for them and
    /// for threads that they start in that moment.
    MovesApart {
        /// The threads and their new masks; and the threads that set such a mask themselves, which
        /// keep it.
        moves: Vec<Move>,
    },
    /// All moved threads have their original masks.
    MovedApart,
    /// Other software has stopped a process: undo must not continue it.
    StoppedByOther {
        /// Which.
        process: Process,
    },
    /// Other software has continued a stopped process.
    ContinuedByOther {
        /// Which.
        process: Process,
    },
    /// Nothing of the program is left.
    Gone {
        /// Which.
        program: ProgramId,
    },
}

/// A thread that is moved to another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Move {
    /// Its program.
    pub program: ProgramId,
    /// The thread.
    pub thread: Process,
    /// Its mask before.
    pub found: CpuSet,
    /// Its temporary mask.
    pub set: CpuSet,
}

/// A cgroup hierarchy that cosched uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupKind {
    /// The hierarchy of version 2.
    V2,
    /// Version 1, freezer.
    V1Freezer,
    /// Version 1, cpuset.
    V1Cpuset,
    /// Version 1, cpu.
    V1Cpu,
}

impl CgroupKind {
    /// The generation of the interface.
    pub fn version(self) -> Version {
        match self {
            CgroupKind::V2 => Version::V2,
            CgroupKind::V1Freezer | CgroupKind::V1Cpuset | CgroupKind::V1Cpu => Version::V1,
        }
    }
}

impl Record {
    pub(super) fn is_cgroup(&self, folder: &Path) -> bool {
        matches!(self, Record::CgroupDir { dir, .. } if dir == folder)
    }

    /// The program that the record is about, if it is about one.
    pub fn program(&self) -> Option<ProgramId> {
        match self {
            Record::Program { program, .. }
            | Record::Main { program, .. }
            | Record::Orphan { program, .. }
            | Record::Pinned { program, .. }
            | Record::Unpinned { program, .. }
            | Record::UserMask { program, .. }
            | Record::Attr { program, .. }
            | Record::Gone { program } => Some(*program),
            Record::Boot { .. }
            | Record::PidNamespace { .. }
            | Record::CgroupDir { .. }
            | Record::CgroupRemoved { .. }
            | Record::Controllers { .. }
            | Record::MovesApart { .. }
            | Record::MovedApart
            | Record::StoppedByOther { .. }
            | Record::ContinuedByOther { .. } => None,
        }
    }
}
