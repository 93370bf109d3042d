//! Binding one program to CPUs and giving back what was found.
//!
//! Masks have many owners. cosched starts a program with the mask that it has itself. A thread
//! with another mask than that and the one that we gave last was bound by other software (taskset,
//! `OMP_PROC_BIND`, hwloc). Such a thread is only ever *narrowed* to what its own mask and ours
//! have in common. If that is nothing, it is left where it is and reported. Threads are born with
//! their creator's mask, so the list of threads is walked until a walk finds no new thread. A
//! single thread may be given CPUs of its own, of those of its program. What it starts is born with
//! them, too, and is put back with all others.
//!
//! Where all CPUs of a thread go offline, the kernel lets it run anywhere, also once they are back.
//! So whenever CPUs have gone or come, each thread is bound anew to its own CPUs
//! ([`Pinning::renew`]), whatever a policy makes of the CPUs there are.
//!
//! A thread of a program with cosched's library moves itself to another CPU by a mask that it has
//! for a moment ([`ThreadSource`]).
//!
//! A cpuset, where there is one, does all this in the kernel: it filters masks
//! instead of replacing them ([`own_cpuset`]).

mod apart;
mod own_cpuset;

use std::collections::{HashMap, HashSet};

use cosched_core::{CpuSet, MaskOwner, ProgramId, Refusal};

use crate::cgroup::Dir;
use crate::kernel::affinity::{self, AffinityError, VisibleMask};
use crate::kernel::procfs::Proc;
use crate::process::tree::{Process, Tree};
use crate::safety::undo::{Log, LogError, Record};
use apart::Apart;
use own_cpuset::OwnCpuset;

/// More walks than any program needs that does not start threads faster than they can be bound.
const MOST_WALKS: usize = 50;

#[derive(Debug)]
pub(crate) enum Pinning {
    Masks(Box<Masks>),
    Cpuset(OwnCpuset),
}

/// Where a program's threads are found.
#[derive(Clone, Copy)]
pub(crate) struct ThreadSource<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) proc: &'a Proc,
    /// How many moves of its own threads the program says that it has begun; `None`: one is under
    /// way.
    pub(crate) moves: &'a dyn Fn() -> Option<u32>,
}

impl ThreadSource<'_> {
    fn threads(&self) -> impl Iterator<Item = Process> {
        let proc = self.proc;
        self.tree.members(proc).into_iter().flat_map(move |process| {
            let tids = proc.threads(process.pid).unwrap_or_default().into_iter();
            tids.filter_map(move |tid| proc.thread_stat(process.pid, tid).ok()).map(Process::from)
        })
    }

    /// The mask of a thread. While the library in the program may be moving it, a mask of one CPU
    /// is not its own: only threads that may use every CPU are moved.
    fn seen(&self, tid: i32) -> Result<VisibleMask, AffinityError> {
        let before = (self.moves)();
        let seen = VisibleMask::of(tid)?;
        let is_its_own = seen.mask.len() > 1 || before.is_some() && before == (self.moves)();
        Ok(if is_its_own { seen } else { seen.freed() })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PinError {
    /// What the engine is told.
    #[error("{0:?}")]
    Refused(Refusal),
    /// The change could not be announced, so it was not made.
    #[error(transparent)]
    Log(#[from] LogError),
}

#[derive(Debug)]
pub(crate) struct Masks {
    program: ProgramId,
    /// The mask that the program was started with but for us.
    found: CpuSet,
    /// What we gave it last.
    last: CpuSet,
    /// Threads that were bound by other software: their own mask, and what we made of it.
    users: HashMap<Process, (CpuSet, CpuSet)>,
    apart: Apart,
}

impl Masks {
    /// For a program that is started with `first` where it would have had `found`.
    pub(crate) fn new(program: ProgramId, found: CpuSet, first: Option<CpuSet>) -> Masks {
        let last = first.unwrap_or(found);
        let (users, apart) = (HashMap::new(), Apart::default());
        Masks { program, found, last, users, apart }
    }

    /// Whether no thread was ever given a mask: each has its own.
    fn is_untouched(&self) -> bool {
        self.last == self.found && self.users.is_empty() && self.apart.is_new()
    }

    fn bind(
        &mut self,
        cpus: Option<CpuSet>,
        place: ThreadSource<'_>,
        log: &mut Log,
    ) -> Result<(), PinError> {
        let target = cpus.unwrap_or(self.found);
        if cpus.is_none() && self.is_untouched() {
            return Ok(());
        }
        if target != self.last {
            log.note(Record::Pinned { program: self.program, found: self.found, set: target })?;
        }
        let (mut visited, mut refused) = (HashSet::new(), None);
        for walk in 0..MOST_WALKS {
            let mut news = Vec::new();
            for thread in place.threads() {
                if visited.insert(thread) {
                    news.push((thread, place.seen(thread.pid).ok()));
                }
            }
            if news.is_empty() {
                break;
            }
            // No thread has the new mask from us before the first walk has ended.
            let given = if walk == 0 { self.last } else { target };
            let ours = [self.found, self.last, given];
            for (thread, before) in news {
                // Others were looked at since, and it may have bound itself meanwhile.
                let bound = outcome(place.seen(thread.pid)).and_then(|seen| match seen {
                    Some(seen) => {
                        let is_known = ours.iter().any(|mask| seen.shows(mask))
                            || self.apart.gave(thread.pid, &seen, &self.last);
                        let is_as_before = before.is_some_and(|before| seen.is_as(&before));
                        // A thread with its original CPUs was never bound, or was released: the
                        // kernel does that, too.
                        let is_free = seen.shows(&self.found);
                        let is_ours = is_free || is_as_before && is_known;
                        self.bind_thread(thread, (seen, is_ours), target, cpus.is_none(), log)
                    }
                    None => Ok(()),
                });
                match bound {
                    Ok(()) | Err(PinError::Refused(Refusal::NotSupported)) => {}
                    Err(PinError::Refused(why)) => refused = Some(why),
                    Err(error) => return Err(error),
                }
            }
        }
        self.last = target;
        refused.map_or(Ok(()), |why| Err(PinError::Refused(why)))
    }

    fn renew(&mut self, place: ThreadSource<'_>, log: &mut Log) -> Result<(), PinError> {
        let bound = Some(self.last).filter(|last| *last != self.found);
        match bound.is_some() || !self.apart.is_new() {
            true => self.bind(bound, place, log),
            false => Ok(()),
        }
    }

    fn bind_one(
        &mut self,
        thread: Process,
        cpus: Option<CpuSet>,
        place: ThreadSource<'_>,
        log: &mut Log,
    ) -> Result<(), PinError> {
        if cpus.is_none() && !self.apart.has_ruled(thread) {
            return Ok(());
        }
        if self.apart.is_new() {
            self.note_user_masks(place);
        }
        let Some(seen) = outcome(place.seen(thread.pid))? else { return Ok(()) };
        if !self.is_ours(thread.pid, &seen) {
            self.note_user_mask(thread, seen.mask, log)?;
            return Err(PinError::Refused(Refusal::ChangedByOther));
        }
        self.forget_user_mask(thread, log)?;
        self.apart.rule(thread, cpus);
        let new_mask = self.apart.target(thread.pid, &self.last);
        if new_mask == seen.mask {
            return Ok(());
        }
        if new_mask != self.last {
            self.apart.announce((self.program, self.found), thread, new_mask, log)?;
        }
        outcome(affinity::set(thread.pid, &new_mask))?;
        self.apart.forget_ended(|thread| thread.is_there(place.proc));
        for set in self.apart.forget_masks(&self.last) {
            log.note(Record::Unpinned { program: self.program, set })?;
        }
        Ok(())
    }

    /// Remembers that other software has bound a thread. The log records it for the process that
    /// reads the log.
    fn note_user_mask(
        &mut self,
        thread: Process,
        mask: CpuSet,
        log: &mut Log,
    ) -> Result<(), LogError> {
        self.apart.note_bound_by_others(thread, mask);
        log.note(Record::UserMask { program: self.program, thread, mask })
    }

    /// Takes back that other software has bound a thread, where that was remembered. The thread may
    /// get that very mask from us.
    fn forget_user_mask(&mut self, thread: Process, log: &mut Log) -> Result<(), LogError> {
        match self.apart.forget_bound_by_others(thread) {
            true => log.note(Record::UserMask { program: self.program, thread, mask: self.found }),
            false => Ok(()),
        }
    }

    /// Remembers which threads other software has bound, before any thread has such a mask from us.
    fn note_user_masks(&mut self, place: ThreadSource<'_>) {
        for thread in place.threads() {
            let seen = place.seen(thread.pid).ok();
            if let Some(seen) = seen.filter(|seen| !self.is_ours(thread.pid, seen)) {
                self.apart.note_bound_by_others(thread, seen.mask);
            }
        }
    }

    /// Takes back what single threads were given, also from threads to which no list of processes
    /// leads any more.
    fn forget_rules(&mut self, proc: &Proc) {
        let all = self.last;
        let is_bound = |(thread, expected): &(Process, CpuSet)| {
            let seen = thread.look(proc).and_then(|_| VisibleMask::of(thread.pid).ok());
            seen.is_some_and(|seen| seen.shows(expected))
        };
        let expected = |thread: Process| (thread, self.apart.target(thread.pid, &all));
        let bound: Vec<_> = self.apart.threads().map(expected).filter(is_bound).collect();
        self.apart.end();
        for (thread, _) in bound {
            // It may have ended just now. What cannot be put back is tried again by the process
            // that reads the log.
            let _ = affinity::set(thread.pid, &self.found);
        }
    }

    /// Whether a thread has this mask from us, or from the process that started the program.
    fn is_ours(&self, tid: i32, seen: &VisibleMask) -> bool {
        [self.found, self.last].iter().any(|mask| seen.shows(mask))
            || self.apart.gave(tid, seen, &self.last)
    }

    fn bind_thread(
        &mut self,
        thread: Process,
        (seen, is_ours): (VisibleMask, bool),
        target: CpuSet,
        release: bool,
        log: &mut Log,
    ) -> Result<(), PinError> {
        let own = match self.users.get(&thread) {
            Some((own, ours)) if seen.shows(ours) => Some(*own),
            _ if is_ours => None,
            _ => Some(seen.mask),
        };
        let new_mask = match own {
            None => self.apart.target(thread.pid, &target),
            Some(own) if release => own,
            Some(own) => own.intersection(&target),
        };
        if new_mask.is_empty() {
            return Err(PinError::Refused(Refusal::NoCpuLeft));
        }
        match own {
            Some(own) => {
                self.note_user_mask(thread, own, log)?;
                self.users.insert(thread, (own, new_mask));
            }
            None => self.forget_user_mask(thread, log)?,
        }
        if new_mask != seen.mask {
            if own.is_none() && new_mask != target {
                self.apart.announce((self.program, self.found), thread, new_mask, log)?;
            }
            outcome(affinity::set(thread.pid, &new_mask))?;
        }
        Ok(())
    }
}

impl Pinning {
    /// By the program's own cpuset, or by the masks of its threads if it has none. The program is
    /// started with the mask `first` where it would have had `found`.
    pub(crate) fn of(
        program: ProgramId,
        cpuset: Option<&Dir>,
        found: CpuSet,
        first: Option<CpuSet>,
    ) -> Pinning {
        match cpuset {
            Some(dir) => Pinning::Cpuset(OwnCpuset::new(dir.clone())),
            None => Pinning::Masks(Box::new(Masks::new(program, found, first))),
        }
    }

    /// Whether the program is bound, or may be.
    pub(crate) fn is_in_force(&self) -> bool {
        match self {
            Pinning::Masks(masks) => masks.last != masks.found,
            Pinning::Cpuset(_) => true,
        }
    }

    /// Binds every thread of the program to these CPUs; `None` gives back what was found. If
    /// some thread is not bound, the others are.
    pub(crate) fn bind(
        &mut self,
        cpus: Option<CpuSet>,
        everywhere: &CpuSet,
        nodes: Option<&[u16]>,
        place: ThreadSource<'_>,
        log: &mut Log,
    ) -> Result<(), PinError> {
        match self {
            Pinning::Masks(masks) => masks.bind(cpus, place, log),
            Pinning::Cpuset(cpuset) => {
                cpuset.bind(cpus, everywhere, nodes).map_err(PinError::Refused)
            }
        }
    }

    /// Gives one thread CPUs of its own, of those of its program, which hold until they are taken
    /// back by `None`. A thread that other software has bound is not bound here.
    pub(crate) fn bind_one(
        &mut self,
        thread: Process,
        cpus: Option<CpuSet>,
        place: ThreadSource<'_>,
        log: &mut Log,
    ) -> Result<(), PinError> {
        match self {
            Pinning::Masks(masks) => masks.bind_one(thread, cpus, place, log),
            Pinning::Cpuset(_) if cpus.is_none() => Ok(()),
            // Masks inside a cpuset would do; no caller requests both.
            Pinning::Cpuset(_) => Err(PinError::Refused(Refusal::NotSupported)),
        }
    }

    /// Binds all threads anew to what was given to them last: the kernel may have let them run
    /// anywhere. A thread with only offline CPUs keeps the mask that the kernel has given it.
    pub(crate) fn renew(&mut self, place: ThreadSource<'_>, log: &mut Log) -> Result<(), LogError> {
        let Pinning::Masks(masks) = self else { return Ok(()) };
        refusal(masks.renew(place, log)).map(drop)
    }

    pub(crate) fn forget_rules(&mut self, proc: &Proc) {
        if let Pinning::Masks(masks) = self {
            masks.forget_rules(proc);
        }
    }

    /// Which process decides on which CPUs a thread may run.
    pub(crate) fn owner(
        &mut self,
        tid: i32,
        place: ThreadSource<'_>,
        log: &mut Log,
    ) -> Result<MaskOwner, LogError> {
        let Pinning::Masks(masks) = self else { return Ok(MaskOwner::Cosched) };
        match place.seen(tid) {
            Ok(seen) if !masks.is_ours(tid, &seen) => {
                // A thread that has ended meanwhile has no owner.
                if let Ok(thread) = Process::find(place.proc, tid) {
                    masks.note_user_mask(thread, seen.mask, log)?;
                }
                Ok(MaskOwner::User)
            }
            _ => Ok(MaskOwner::Cosched),
        }
    }
}

/// Why something is not bound as requested, if it is not.
pub(crate) fn refusal(bound: Result<(), PinError>) -> Result<Option<Refusal>, LogError> {
    match bound {
        Ok(()) => Ok(None),
        Err(PinError::Refused(why)) => Ok(Some(why)),
        Err(PinError::Log(error)) => Err(error),
    }
}

/// A thread that has ended meanwhile is none of our concern.
fn outcome<T>(result: Result<T, AffinityError>) -> Result<Option<T>, PinError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(AffinityError::Gone(_)) => Ok(None),
        Err(AffinityError::NotPermitted(_)) => Err(PinError::Refused(Refusal::NotPermitted)),
        Err(AffinityError::NoCpuLeft(_)) => Err(PinError::Refused(Refusal::NoCpuLeft)),
        Err(_) => Err(PinError::Refused(Refusal::NotSupported)),
    }
}

#[cfg(test)]
mod tests;
