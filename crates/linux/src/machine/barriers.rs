//! Programs whose barriers are the hook's: while one of them runs, the states of their threads are written down for them.
//!
//! What writes them is loaded before the run begins, since it takes longer than programs should start later. It is
//! attached when the first such program starts, and detached when the last one has ended or was let go: until then every
//! context switch of the machine pays for it.
//!
//! Barriers that nobody has asked for are the hook's only while their program shares its CPUs: not in a gang, which has its CPUs
//! for itself, nor once it is the last one. The first to start is not alone for long.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use cosched_core::ProgramId;

use super::program::Live;
use super::{Job, Linux};
use crate::files::FileError;
use crate::hook::{Door, Hook};
use crate::procfs::Proc;
use crate::runstate::{RunStates, Unavailable};
use crate::tree::Tree;

const LACKS: &str = "does not know at barriers which of its threads run";

/// The states of threads, if a program has a use for them.
pub(super) type States = Option<Result<RunStates, Unavailable>>;

/// What these programs have a use for.
pub(super) fn states_for(jobs: &[Job], proc: &Proc) -> States {
    let has_use = |job: &Job| job.hook.as_ref().is_some_and(|hook| hook.uses.barriers);
    jobs.iter().any(has_use).then(|| RunStates::load(proc))
}

impl Linux {
    /// Why programs whose barriers are the hook's cannot know which of their threads run; `None`: they can, or there are
    /// none.
    pub fn lacks_states(&self) -> Option<&Unavailable> {
        self.states.as_ref().and_then(|states| states.as_ref().err())
    }

    /// Tells each program whose barriers are the hook's, as somebody asked, what they lack, once.
    pub(super) fn tell_of_lacking_states(&self) {
        let Some(why) = self.lacks_states() else { return };
        for (slot, job) in self.jobs.iter().enumerate() {
            let asks = |hook: &Hook| hook.uses.barriers && !hook.uses.chosen;
            if job.hook.as_ref().is_some_and(asks) {
                let text = format!("{LACKS}, and waits by time alone: {why}");
                self.note(ProgramId::first(slot as u16), text);
            }
        }
    }

    /// From now on the states of a program's threads are written down, and its processes get the table, if its barriers are
    /// the hook's and that is not so already.
    pub(super) fn offer_states(&mut self, live: &mut Live) {
        let Some(door) = live.door.as_mut().filter(|door| door.uses().barriers && !door.offers())
        else {
            return;
        };
        let Some(Ok(states)) = &mut self.states else { return };
        match watch(states, &live.tree, &self.proc) {
            Ok(table) => door.offer(table),
            Err(why) => {
                self.note(live.id, format!("{LACKS}: {why}"));
            }
        }
    }

    /// A program has come: nobody has the machine for itself.
    pub(super) fn share_with_new(&mut self) {
        self.one_is_left = false;
        self.tell_who_shares();
    }

    /// A program has gone.
    pub(super) fn share_without_gone(&mut self) {
        self.one_is_left = self.live.len() == 1;
        self.tell_who_shares();
    }

    fn tell_who_shares(&mut self) {
        for live in self.live.values_mut() {
            live.share(self.one_is_left);
        }
    }

    /// Tells what the programs' threads have done at barriers by now.
    pub(super) fn tell_meetings(&self) {
        for live in self.live.values() {
            if let Some(door) = &live.door {
                self.met.tell(live.id.slot, door.meetings());
            }
        }
    }

    /// Nothing is written down any more once no program is left that has a use for it. (Whoever is taken out of the live
    /// ones at the moment counts as gone.)
    pub(super) fn rest_states(&mut self) {
        let uses = |live: &Live| live.door.as_ref().is_some_and(Door::offers);
        if let Some(Ok(states)) = self.states.as_mut().filter(|_| !self.live.values().any(uses)) {
            states.rest();
        }
    }
}

/// Makes a program's processes members, and all that they will start.
fn watch(states: &mut RunStates, tree: &Tree, proc: &Proc) -> Result<OwnedFd, String> {
    states.begin().map_err(|error| error.to_string())?;
    let mut result = tree.shim.map_or(Ok(()), |shim| add(states, shim.pid));
    // Whoever is forked between two walks by a process that is no member yet is found by the next one.
    let mut told = BTreeSet::new();
    tree.until_stable(proc, |process| {
        let is_new = result.is_ok() && told.insert(process.pid);
        if is_new {
            result = add(states, process.pid);
        }
        is_new
    });
    result.map_err(|error| error.to_string())?;
    states.table().try_clone_to_owned().map_err(|error| error.to_string())
}

/// Adds a process, if it is still there.
fn add(states: &RunStates, process: i32) -> Result<(), FileError> {
    match states.add(process) {
        Err(error) if error.is_gone() => Ok(()),
        other => other,
    }
}
