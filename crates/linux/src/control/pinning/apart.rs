//! Threads with other CPUs than their program's.
//!
//! A policy may give single threads CPUs of their own, among those of the program. What such a
//! thread starts is born with the same mask. That mask therefore counts as cosched's, also on a
//! thread that no policy has named. But other software may have bound a thread to just these CPUs,
//! before or since. A thread that was found with a mask of other software is remembered with it. A
//! thread that was given one mask and has another is bound by other software, too.

use std::collections::HashMap;

use cosched_core::{CpuSet, ProgramId};

use crate::kernel::affinity::VisibleMask;
use crate::process::tree::Process;
use crate::safety::undo::{Log, LogError, Record};

/// The threads of one program, by number.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Threads that were given CPUs of their own, with these CPUs.
    ruled: HashMap<i32, (Process, CpuSet)>,
    /// All masks that were given or inherited.
    given: Vec<CpuSet>,
    /// Threads that other software has bound, with their masks.
    bound_by_others: HashMap<i32, (Process, CpuSet)>,
}

impl Apart {
    pub(super) fn is_new(&self) -> bool {
        self.given.is_empty()
    }

    pub(super) fn rule(&mut self, thread: Process, cpus: Option<CpuSet>) {
        match cpus {
            Some(own) => self.ruled.insert(thread.pid, (thread, own)),
            None => self.ruled.remove(&thread.pid),
        };
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = Process> {
        self.ruled.values().map(|(thread, _)| *thread)
    }

    pub(super) fn end(&mut self) {
        self.ruled.clear();
    }

    pub(super) fn note_bound_by_others(&mut self, thread: Process, mask: CpuSet) {
        self.ruled.remove(&thread.pid);
        self.bound_by_others.insert(thread.pid, (thread, mask));
    }

    /// Notes that other software does not bind a thread any more. Returns whether it did.
    pub(super) fn forget_bound_by_others(&mut self, thread: Process) -> bool {
        self.bound_by_others.remove(&thread.pid).is_some()
    }

    /// The CPUs for a thread that no other software has bound, in a program with the CPUs `all`.
    pub(super) fn target(&self, tid: i32, all: &CpuSet) -> CpuSet {
        let own = self.ruled.get(&tid).map(|(_, own)| own.intersection(all));
        own.filter(|own| !own.is_empty()).unwrap_or(*all)
    }

    /// Whether a thread has this mask because it, or its creator, was given CPUs of its own, in a
    /// program with the CPUs `all`.
    pub(super) fn gave(&self, tid: i32, seen: &VisibleMask, all: &CpuSet) -> bool {
        if self.bound_by_others.get(&tid).is_some_and(|(_, mask)| *mask == seen.mask) {
            return false;
        }
        match self.ruled.contains_key(&tid) {
            true => seen.shows(&self.target(tid, all)),
            false => self.given.iter().any(|given| seen.shows(given)),
        }
    }

    /// Writes down that a thread is to have a mask apart from its program's, with its original mask
    /// `found`.
    pub(super) fn announce(
        &mut self,
        (program, found): (ProgramId, CpuSet),
        thread: Process,
        set: CpuSet,
        log: &mut Log,
    ) -> Result<(), LogError> {
        // A thread that has the same mask by chance must not be restored because of that.
        for (thread, mask) in self.bound_by_others.values() {
            log.note(Record::UserMask { program, thread: *thread, mask: *mask })?;
        }
        log.note(Record::Pinned { program, found, set })?;
        // With its number, since it may outlive the process that leads to it.
        log.note(Record::UserMask { program, thread, mask: found })?;
        if !self.given.contains(&set) {
            self.given.push(set);
        }
        Ok(())
    }
}
