//! Threads whose CPUs are not simply those of their program.
//!
//! A policy may give single threads CPUs of their own, of those of the program. What such a thread
//! starts is born with the same mask. That mask therefore counts as ours, also on a thread that no
//! policy has named. But other software may have bound a thread to just these CPUs, before or
//! since. A thread that was met with a mask of other software is remembered with it. A thread that
//! was given one mask and has another is bound by other software, too.

use std::collections::HashMap;

use cosched_core::{CpuSet, ProgramId};

use crate::affinity::Seen;
use crate::tree::Process;
use crate::undo::{Log, LogError, Record};

/// Of one program, by the numbers of threads.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Threads that were given CPUs of their own, and which.
    ruled: HashMap<i32, (Process, CpuSet)>,
    /// All masks that came of that.
    given: Vec<CpuSet>,
    /// Threads that other software has bound, and to what.
    strangers: HashMap<i32, (Process, CpuSet)>,
}

impl Apart {
    /// Whether no thread was given anything yet.
    pub(super) fn is_new(&self) -> bool {
        self.given.is_empty()
    }

    /// A thread gets CPUs of its own, or has none any more.
    pub(super) fn rule(&mut self, thread: Process, cpus: Option<CpuSet>) {
        match cpus {
            Some(own) => self.ruled.insert(thread.pid, (thread, own)),
            None => self.ruled.remove(&thread.pid),
        };
    }

    /// The threads that were given CPUs of their own.
    pub(super) fn threads(&self) -> impl Iterator<Item = Process> {
        self.ruled.values().map(|(thread, _)| *thread)
    }

    /// None of them is any more.
    pub(super) fn end(&mut self) {
        self.ruled.clear();
    }

    /// Other software has bound a thread to these CPUs.
    pub(super) fn meets(&mut self, thread: Process, mask: CpuSet) {
        self.ruled.remove(&thread.pid);
        self.strangers.insert(thread.pid, (thread, mask));
    }

    /// Other software does not bind a thread any more; whether it did.
    pub(super) fn is_let_go(&mut self, thread: Process) -> bool {
        self.strangers.remove(&thread.pid).is_some()
    }

    /// The CPUs of a thread that no other software has bound, where those of its program are these.
    pub(super) fn target(&self, tid: i32, all: &CpuSet) -> CpuSet {
        let own = self.ruled.get(&tid).map(|(_, own)| own.intersection(all));
        own.filter(|own| !own.is_empty()).unwrap_or(*all)
    }

    /// Whether a thread has this mask because it, or who started it, was given CPUs of its own;
    /// those of its program are these.
    pub(super) fn gave(&self, tid: i32, seen: &Seen, all: &CpuSet) -> bool {
        if self.strangers.get(&tid).is_some_and(|(_, mask)| *mask == seen.mask) {
            return false;
        }
        match self.ruled.contains_key(&tid) {
            true => seen.shows(&self.target(tid, all)),
            false => self.given.iter().any(|given| seen.shows(given)),
        }
    }

    /// Writes down that a thread is to have a mask apart from its program's, in which `found` was
    /// found.
    pub(super) fn announce(
        &mut self,
        (program, found): (ProgramId, CpuSet),
        thread: Process,
        set: CpuSet,
        log: &mut Log,
    ) -> Result<(), LogError> {
        // Whose mask is the same by chance is not to be put back for that.
        for (thread, mask) in self.strangers.values() {
            log.note(Record::UserMask { program, thread: *thread, mask: *mask })?;
        }
        log.note(Record::Pinned { program, found, set })?;
        // By its name, since it may outlive the process that leads to it.
        log.note(Record::UserMask { program, thread, mask: found })?;
        if !self.given.contains(&set) {
            self.given.push(set);
        }
        Ok(())
    }
}
