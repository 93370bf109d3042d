//! Threads with other CPUs than their program's.
//!
//! A policy may give single threads CPUs of their own, among those of the program. What such a
//! thread starts is born with the same mask. That mask therefore counts as cosched's, also on a
//! thread that no policy has named. But other software may have bound a thread to just these CPUs,
//! before or since. A thread that was found with a mask of other software is remembered with it. A
//! thread that was given one mask and has another is bound by other software, too. So is a thread
//! with a mask that no thread of the program has, or had in the latest rounds: its creator cannot
//! have given it that. The kernel does not tell which thread is the creator. A thread that binds
//! itself to the very CPUs of a sibling is therefore taken for its child.

use std::collections::{HashMap, VecDeque};

use cosched_core::{CpuSet, ProgramId};

use crate::kernel::affinity::VisibleMask;
use crate::process::tree::Process;
use crate::safety::undo::{Log, LogError, Record};

/// How many masks of each thread count as ones that a child may have inherited. A child is seen in
/// the round after its birth.
const ROUNDS: usize = 4;
/// So many ended threads cost nothing.
const FEW: usize = 64;

/// The threads of one program, by number.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Threads that were given CPUs of their own, with these CPUs.
    ruled: HashMap<i32, (Process, CpuSet)>,
    /// The masks that were given last, the latest at the end.
    given: VecDeque<CpuSet>,
    /// Threads that other software has bound, with their masks.
    bound_by_others: HashMap<i32, (Process, CpuSet)>,
    /// How many of them were alive when that was last looked at.
    living: usize,
}

impl Apart {
    pub(super) fn is_new(&self) -> bool {
        self.given.is_empty()
    }

    pub(super) fn rule(&mut self, thread: Process, cpus: Option<CpuSet>) {
        let before = match cpus {
            Some(own) => self.ruled.insert(thread.pid, (thread, own)),
            None => self.ruled.remove(&thread.pid),
        };
        if let Some((_, mask)) = before {
            self.note_given(mask);
        }
    }

    fn note_given(&mut self, mask: CpuSet) {
        self.given.retain(|given| *given != mask);
        self.given.push_back(mask);
    }

    /// Forgets masks that no thread can have any more, and returns them. The program's own mask,
    /// `all`, is none of them.
    pub(super) fn forget_masks(&mut self, all: &CpuSet) -> Vec<CpuSet> {
        let most = ROUNDS * (self.ruled.len() + 1);
        let mut excess = self.given.len().saturating_sub(most);
        let may_have =
            |mask: &CpuSet| mask == all || self.ruled.values().any(|(_, own)| mask.is_subset(own));
        let (mut forgotten, mut kept) = (Vec::new(), VecDeque::new());
        for mask in self.given.drain(..) {
            if excess > 0 && !may_have(&mask) {
                excess -= 1;
                forgotten.push(mask);
            } else {
                kept.push_back(mask);
            }
        }
        self.given = kept;
        forgotten
    }

    /// Forgets threads that have ended, once there may be as many as others. What they have started
    /// may have their masks.
    pub(super) fn forget_ended(&mut self, lives: impl Fn(Process) -> bool) {
        if self.ruled.len() + self.bound_by_others.len() < 2 * self.living + FEW {
            return;
        }
        self.bound_by_others.retain(|_, (thread, _)| lives(*thread));
        let mut ended = Vec::new();
        self.ruled.retain(|_, (thread, mask)| {
            let stays = lives(*thread);
            if !stays {
                ended.push(*mask);
            }
            stays
        });
        ended.into_iter().for_each(|mask| self.note_given(mask));
        self.living = self.ruled.len() + self.bound_by_others.len();
    }

    /// Whether a thread was given CPUs of its own.
    pub(super) fn has_ruled(&self, thread: Process) -> bool {
        self.ruled.get(&thread.pid).is_some_and(|(ruled, _)| *ruled == thread)
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = Process> {
        self.ruled.values().map(|(thread, _)| *thread)
    }

    pub(super) fn end(&mut self) {
        self.given.extend(self.ruled.drain().map(|(_, (_, mask))| mask));
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
            false => {
                let present = self.ruled.keys().map(|tid| self.target(*tid, all));
                present.chain(self.given.iter().copied()).any(|given| seen.shows(&given))
            }
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
        self.note_given(set);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(pid: i32) -> Process {
        Process { pid, start_time: 1 }
    }

    /// Two threads, each with one CPU after the other, as `balance` gives them.
    #[test]
    fn a_child_has_no_mask_of_long_ago() {
        let all = CpuSet::first(64);
        let one = |cpu: usize| [cpu].into_iter().collect::<CpuSet>();
        let mut apart = Apart::default();
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), &Default::default()).unwrap();
        for cpu in 0..40 {
            for (pid, mask) in [(1, one(cpu)), (2, one(63 - cpu % 2))] {
                apart.rule(thread(pid), Some(mask));
                apart.announce((ProgramId::first(0), all), thread(pid), mask, &mut log).unwrap();
                apart.forget_masks(&one(0));
            }
        }
        let gave = |apart: &Apart, cpu| apart.gave(9, &VisibleMask::whole(one(cpu)), &all);
        assert_eq!([39, 38, 63, 62].map(|cpu| gave(&apart, cpu)), [true; 4]);
        assert_eq!([3, 20, 50].map(|cpu| gave(&apart, cpu)), [false; 3], "it bound itself");
        assert!(apart.given.len() <= 3 * ROUNDS, "{:?}", apart.given);
        assert!(apart.given.contains(&one(0)), "the program's own");
        apart.end();
        assert_eq!([39, 63].map(|cpu| gave(&apart, cpu)), [true; 2], "children are released");
    }

    #[test]
    fn ended_threads_are_forgotten_and_their_masks_known() {
        let mask = CpuSet::first(1);
        let mut apart = Apart::default();
        for pid in 0..FEW as i32 {
            apart.rule(thread(pid), Some(mask));
            apart.note_bound_by_others(thread(1000 + pid), mask);
        }
        apart.forget_ended(|thread| thread.pid < 2);
        assert_eq!((apart.threads().count(), apart.bound_by_others.len()), (2, 0));
        assert!(apart.gave(9, &VisibleMask::whole(mask), &CpuSet::first(2)));
    }
}
