//! Whether each thread of given programs is on a CPU: a table that these programs read in their own
//! memory.
//!
//! A barrier needs to know the states of the threads that it waits for at every turn of its loop. A
//! system call for each thread is therefore too much. Programs in the kernel write a word at every
//! switch and every wake-up of a member's thread (see `bpf/runstate.bpf.c`). The form of a word is
//! in [`cosched_page::ThreadTable`].
//!
//! Members' processes get a descriptor of the table and map it. The table is *frozen* before any
//! process has one: from then on only programs in the kernel write to it, whatever a process does
//! with its descriptor. Freezing needs no permission beyond those to load the table. A descriptor
//! that is read-only in itself needs CAP_SYS_ADMIN. The table holds the threads of all members, and
//! no others. Each member can see when the others' threads run, as every process can by `/proc`.
//!
//! Every context switch of the machine pays for it, if little (`examples/runstate_cost.rs`). The
//! programs are therefore attached only while there is a reader. They stay loaded for the next one.

#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd};

use cosched_page::ENTRIES;

pub use crate::kernel::bpf::Unavailable;
use crate::kernel::bpf::{self, BpfPrograms, Object};
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;

/// The object that clang made of `bpf/runstate.bpf.c`.
static OBJECT: Object = Object {
    code: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/runstate.bpf.o")),
    tracepoints: &[
        ("on_switch", "sched_switch"),
        ("on_wakeup", "sched_wakeup"),
        ("on_birth", "sched_wakeup_new"),
        ("on_fork", "sched_process_fork"),
        ("on_exec", "sched_process_exec"),
        ("on_exit", "sched_process_exit"),
    ],
};

const TABLE: &str = "threads";

/// The table and what writes it.
#[derive(Debug)]
pub struct RunStates {
    programs: BpfPrograms,
    proc: Proc,
}

impl RunStates {
    /// Makes a table, and loads the programs that write it; nothing is written yet. That takes some
    /// hundredths of a second.
    ///
    /// # Errors
    /// When the programs were not built, or this kernel or user does not allow them.
    pub fn load(proc: &Proc) -> Result<RunStates, Unavailable> {
        OBJECT.is_built()?;
        let table = bpf::words(ENTRIES as u32)?;
        bpf::freeze(table.as_fd())?;
        let programs = BpfPrograms::load(&OBJECT, proc, &[], Some((TABLE, table.as_fd())))?;
        Ok(RunStates { programs, proc: proc.clone() })
    }

    /// Begins to write changes to the table.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(&mut self) -> Result<(), Unavailable> {
        self.programs.attach()
    }

    /// Stops writing. Members stay members.
    pub fn rest(&mut self) {
        self.programs.detach();
    }

    /// Makes a process a member, with all that it will start: the states of their threads are
    /// written down, each from its next change on.
    ///
    /// # Errors
    /// When the process is gone, or cannot be a member.
    pub fn add(&self, process: i32) -> Result<(), FileError> {
        // The number of its thread is found when it is first seen.
        self.programs.join(&self.proc, process, [0, 0])
    }

    /// A descriptor of the table: it can be read and mapped, not written.
    pub fn table(&self) -> BorrowedFd<'_> {
        self.programs.map(TABLE).fd().as_fd()
    }
}
