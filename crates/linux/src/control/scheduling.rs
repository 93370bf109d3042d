//! Giving all threads of a program one class, nice value and slice, and restoring the original
//! settings.
//!
//! The original settings of a thread may be the user's own (`nice`, `chrt`), so only the requested
//! ones are replaced. A thread in a class without slices (real-time, deadline) is unchanged, and
//! that is reported. A thread in the idle class stays in it. Class, nice value and slice are
//! restored one by one. What the thread itself, or other software, has changed meanwhile stays.
//!
//! Threads are born with their creator's scheduling, so later ones have theirs from their first
//! instruction on. A thread with settings of cosched's that cosched did not set itself therefore
//! has them from its creator. Only what a creator starts that has asked for the opposite
//! (`SCHED_RESET_ON_FORK`) is born with the kernel's slice. It is given its own when it is first
//! seen. The list of threads is walked until a walk finds no new thread. Each change is in the undo
//! log before it is made.
//!
//! Single threads can have slices of their own. What they start gets their program's when it is
//! seen.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use cosched_core::{Aspect, Class, Nanos, ProgramId, Refusal, Settings};

use rustix::process::{Resource, getrlimit};

use crate::kernel::procfs::Proc;
use crate::kernel::sched_attr::{
    self, LONGEST_SLICE, SHORTEST_SLICE, SchedAttr, SchedError, SchedPolicy, default_slice,
};
use crate::process::tree::{Process, Tree};
use crate::safety::attachable::may_change_any;
use crate::safety::undo::{Log, LogError, Record};

/// The range of nice values.
const LEAST_NICE: i32 = -20;
const NICEST: i32 = 19;

#[derive(Debug)]
pub(crate) struct Scheduling {
    program: ProgramId,
    /// The class of threads for which none is requested, if not the original one: that of the
    /// scheduler in the kernel, which has slices of its own.
    usual_class: Option<SchedPolicy>,
    /// The slice that means "the kernel's choice"; `None` where the kernel has no slices per
    /// thread.
    default_slice: Option<Nanos>,
    /// The lowest nice value that may be restored.
    least_nice: i32,
    /// Threads that existed before any change, and those that cosched changed: the original
    /// settings, and the last ones set.
    threads: HashMap<Process, (SchedAttr, SchedAttr)>,
    /// All changes: the settings that were replaced, and those that were set.
    given: Vec<(SchedAttr, SchedAttr)>,
    /// What was asked for last.
    settings: Settings,
    /// The threads with slices of their own.
    slices: HashMap<Process, Nanos>,
}

impl Scheduling {
    pub(crate) fn new(program: ProgramId, proc: &Proc) -> Scheduling {
        // A kernel that reports no slice has no slices.
        let default_slice = default_slice().ok().flatten();
        let least_nice = least_nice(proc);
        Scheduling {
            program,
            usual_class: None,
            default_slice,
            least_nice,
            threads: HashMap::new(),
            given: Vec::new(),
            settings: Settings::default(),
            slices: HashMap::new(),
        }
    }

    /// Notes the slice that a thread is to have instead of its program's; `None`: no other one.
    /// The next [`Scheduling::apply`] sets it, unless the scheduler in the kernel has the thread.
    /// Returns the one that was noted before.
    pub(crate) fn note_slice(&mut self, thread: Process, slice: Option<Nanos>) -> Option<Nanos> {
        match slice {
            Some(slice) => self.slices.insert(thread, slice),
            None => self.slices.remove(&thread),
        }
    }

    /// No thread is to have a slice of its own any more.
    pub(crate) fn forget_slices(&mut self) {
        self.slices.clear();
    }

    /// What was asked for last.
    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    /// From the next change on, has threads scheduled by the scheduler in the kernel, or not.
    pub(crate) fn schedule_by_ext(&mut self, by_ext: bool) {
        self.usual_class = by_ext.then_some(SchedPolicy::Ext);
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.given.is_empty() && self.slices.is_empty()
    }

    /// Sets the requested ones of class, nice value and slice for every thread, and restores the
    /// others. Returns what is impossible, each thing at most once; threads get what is possible.
    /// When the log cannot be written, nothing more is changed.
    pub(crate) fn apply(
        &mut self,
        settings: &Settings,
        tree: &Tree,
        proc: &Proc,
        log: &mut Log,
    ) -> Result<Vec<(Aspect, Refusal)>, LogError> {
        self.settings = *settings;
        let (requested, mut refused) = self.possible(settings);
        self.slices.retain(|thread, _| thread.look(proc).is_some());
        let changes_anything = requested.changes_anything() || !self.slices.is_empty();
        if changes_anything && self.given.is_empty() {
            self.take_stock(tree, proc);
        }
        let mut visited = HashSet::new();
        tree.threads_until_stable(proc, |thread| {
            visited.insert(thread);
            self.apply_to(thread, requested, log, &mut refused)
        })?;
        // No tree leads to threads of a program after its first process has ended, nor to what they
        // have started since.
        let known: Vec<Process> = self.threads.keys().copied().collect();
        for thread in known {
            if visited.contains(&thread) {
                continue;
            }
            if thread.look(proc).is_none() {
                self.threads.remove(&thread);
                continue;
            }
            for sibling in siblings(thread, proc) {
                if visited.insert(sibling) {
                    self.apply_to(sibling, requested, log, &mut refused)?;
                }
            }
        }
        Ok(refused)
    }

    /// Notes how all threads are scheduled before any of them is changed: a thread may have chosen
    /// itself what the others are going to be given.
    fn take_stock(&mut self, tree: &Tree, proc: &Proc) {
        let Ok(()) = tree.threads_until_stable::<Infallible>(proc, |thread| {
            if let Ok(present) = sched_attr::get(thread.pid) {
                let found = self.as_chosen(present);
                self.threads.entry(thread).or_insert((found, found));
            }
            Ok(())
        });
    }

    fn apply_to(
        &mut self,
        thread: Process,
        requested: Requested,
        log: &mut Log,
        refused: &mut Vec<(Aspect, Refusal)>,
    ) -> Result<(), LogError> {
        let Ok(present) = sched_attr::get(thread.pid) else { return Ok(()) };
        let requested = self.requested_of(thread, requested, refused);
        let present = self.as_chosen(present);
        let found = self.found(thread, present);
        if requested.changes_anything() && !found.policy.has_slices() {
            note(refused, requested.aspect(), Refusal::RealTime);
        }
        let nicer = requested.steps > 0;
        if nicer && found.nice < self.least_nice {
            note(refused, Aspect::Nice, Refusal::NotPermitted);
        }
        let target = requested.on(found, self.least_nice);
        let shown = self.as_chosen(target.shown());
        let changes = shown != present;
        // A thread that has already what the others are given keeps it, and that has to be known
        // afterwards.
        if changes || (requested.changes_anything() && found == present) {
            let set = self.as_read(shown);
            log.note(Record::Attr { program: self.program, thread, found, set })?;
        }
        if !changes {
            return Ok(());
        }
        match sched_attr::set(thread.pid, &target) {
            Ok(()) => self.remember(thread, found, shown),
            Err(SchedError::Gone(_)) => {}
            Err(error) => note(refused, requested.aspect(), refusal(error)),
        }
        Ok(())
    }

    fn remember(&mut self, thread: Process, found: SchedAttr, given: SchedAttr) {
        self.threads.insert(thread, (found, given));
        if !self.given.contains(&(found, given)) {
            self.given.push((found, given));
        }
    }

    /// The part of the request that is possible here, and the part that is not.
    fn possible(&self, settings: &Settings) -> (Requested, Vec<(Aspect, Refusal)>) {
        let mut refused = Vec::new();
        let class = match settings.class {
            // Within a program of that scheduler, no thread preempts another. It has slices and
            // weights of its own.
            None | Some(Class::Fair | Class::Batch) if self.usual_class.is_some() => {
                let class = self.usual_class.map(|class| (class, 0));
                return (Requested { class, slice: None, steps: 0 }, refused);
            }
            None => None,
            Some(Class::Fair) => Some((SchedPolicy::Other, 0)),
            Some(Class::Batch) => Some((SchedPolicy::Batch, 0)),
            Some(Class::RoundRobin(priority)) => {
                Some((SchedPolicy::RoundRobin, u32::from(priority)))
            }
            Some(Class::FixedPriority(_)) => {
                refused.push((Aspect::Class, Refusal::NotSupported));
                None
            }
        };
        let slice = self.slice_here(settings.slice, &mut refused);
        (Requested { class, slice, steps: settings.nice.unwrap_or(0).into() }, refused)
    }

    /// What is requested of a thread that may have a slice of its own.
    fn requested_of(
        &self,
        thread: Process,
        requested: Requested,
        refused: &mut Vec<(Aspect, Refusal)>,
    ) -> Requested {
        match self.slices.get(&thread).filter(|_| self.usual_class.is_none()) {
            Some(own) => Requested { slice: self.slice_here(Some(*own), refused), ..requested },
            None => requested,
        }
    }

    /// The slice that this kernel grants for a requested one.
    fn slice_here(
        &self,
        requested: Option<Nanos>,
        refused: &mut Vec<(Aspect, Refusal)>,
    ) -> Option<Nanos> {
        let requested = requested?;
        if self.default_slice.is_none() {
            note(refused, Aspect::Slice, Refusal::NotSupported);
            return None;
        }
        let granted = requested.clamp(SHORTEST_SLICE, LONGEST_SLICE);
        if granted != requested {
            note(refused, Aspect::Slice, Refusal::OutOfRange);
        }
        Some(granted)
    }

    /// A slice that reads as the kernel's choice was not chosen by a user, and is restored as such.
    fn as_chosen(&self, attr: SchedAttr) -> SchedAttr {
        let is_default = Some(attr.runtime) == self.default_slice && attr.policy.has_slices();
        if is_default { SchedAttr { runtime: Nanos::ZERO, ..attr } } else { attr }
    }

    /// What the kernel will return for these settings.
    fn as_read(&self, attr: SchedAttr) -> SchedAttr {
        let is_default = attr.runtime == Nanos::ZERO && attr.policy.has_slices();
        let runtime = self.default_slice.filter(|_| is_default).unwrap_or(attr.runtime);
        SchedAttr { runtime, ..attr }
    }

    /// How a thread would be scheduled without cosched.
    fn found(&self, thread: Process, present: SchedAttr) -> SchedAttr {
        if let Some(change) = self.threads.get(&thread) {
            // A setting that other software has changed since stays.
            return present.original(std::iter::once(*change));
        }
        let inherited = self.given.iter().find(|(_, given)| *given == present);
        let changes = self.given.iter().copied();
        inherited.map_or_else(|| present.original(changes), |(found, _)| *found)
    }
}

/// The threads of the process that a thread belongs to.
fn siblings(thread: Process, proc: &Proc) -> Vec<Process> {
    let tids = proc.threads(thread.pid).unwrap_or_default();
    let stats = tids.into_iter().filter_map(|tid| proc.thread_stat(thread.pid, tid).ok());
    stats.map(Process::from).collect()
}

/// The lowest nice value that this process may set (`RLIMIT_NICE`). Lower values may be raised, but
/// never restored.
fn least_nice(proc: &Proc) -> i32 {
    if may_change_any(proc, std::process::id() as i32) {
        return LEAST_NICE;
    }
    // The limit counts from 20 downwards: 40 means -20.
    let limit = getrlimit(Resource::Nice).current.unwrap_or(u64::MAX).min(40);
    20 - limit as i32
}

/// The settings to replace.
#[derive(Clone, Copy, Debug)]
struct Requested {
    class: Option<(SchedPolicy, u32)>,
    slice: Option<Nanos>,
    /// To add to the nice value.
    steps: i32,
}

impl Requested {
    fn on(self, found: SchedAttr, least_nice: i32) -> SchedAttr {
        if !found.policy.has_slices() {
            return found;
        }
        // A thread in the idle class would be raised above others by any other class.
        let class = self.class.filter(|_| found.policy != SchedPolicy::Idle);
        let (policy, priority) = class.unwrap_or((found.policy, found.priority));
        let runtime = self.slice.filter(|_| policy.has_slices()).unwrap_or(found.runtime);
        // No thread gets a higher nice value for ever.
        let steps = if found.nice < least_nice { self.steps.min(0) } else { self.steps };
        SchedAttr { policy, priority, runtime, nice: (found.nice + steps).min(NICEST), ..found }
    }

    fn changes_anything(self) -> bool {
        self.class.is_some() || self.slice.is_some() || self.steps != 0
    }

    /// The aspect for which a permission is most likely missing.
    fn aspect(self) -> Aspect {
        match self.class {
            Some((SchedPolicy::RoundRobin, _)) => Aspect::Class,
            _ if self.steps != 0 => Aspect::Nice,
            Some(_) => Aspect::Class,
            None => Aspect::Slice,
        }
    }
}

fn note(refused: &mut Vec<(Aspect, Refusal)>, aspect: Aspect, why: Refusal) {
    if !refused.contains(&(aspect, why)) {
        refused.push((aspect, why));
    }
}

fn refusal(error: SchedError) -> Refusal {
    match error {
        SchedError::NotPermitted(_) => Refusal::NotPermitted,
        _ => Refusal::NotSupported,
    }
}

#[cfg(test)]
mod tests;
