//! Programs with barriers of the hook: while one of them runs, the states of their threads are
//! written down for them.
//!
//! The BPF program that writes the states is loaded before the run begins, since loading takes
//! long. It is attached only while such a program runs, since every context switch of the machine
//! pays for it.

use std::collections::BTreeSet;

use cosched_core::ProgramId;

use super::program::Live;
use super::{Job, Linux};
use crate::hook::HookServer;
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;
use crate::observe::runstate::{RunStates, Unavailable};
use crate::process::tree::Tree;

const LACKS: &str = "does not know at barriers which of its threads run";

/// What writes down the states of threads, or why it is unavailable.
pub(super) type States = Result<RunStates, Unavailable>;

/// Loads it, if one of these programs needs it.
pub(super) fn load(jobs: &[Job], proc: &Proc) -> Option<States> {
    let mut hooks = jobs.iter().filter_map(|job| job.hook.as_ref());
    hooks.any(|hook| hook.uses.barriers).then(|| RunStates::load(proc))
}

impl Linux {
    /// Why programs with barriers of the hook cannot know which of their threads run, as far as
    /// it is known; `None`: they can, or there are none.
    pub fn lacks_states(&self) -> Option<&Unavailable> {
        self.states.as_ref()?.as_ref().err()
    }

    /// Says once, for each program with barriers of the hook, what is missing.
    pub(super) fn tell_of_lacking_states(&self) {
        let Some(why) = self.lacks_states() else { return };
        for (slot, job) in self.jobs.iter().enumerate() {
            if job.hook.as_ref().is_some_and(|hook| hook.uses.barriers) {
                let text = format!("{LACKS}, and waits by time alone: {why}");
                self.note(ProgramId::first(slot as u16), text);
            }
        }
    }

    /// Gives a program's processes the table, if its barriers are the hook's, and begins to write
    /// down the states of its threads; both only once.
    pub(super) fn offer_states(&mut self, live: &mut Live) {
        let Some(hook_server) =
            live.hook_server.as_mut().filter(|hook_server| hook_server.uses().barriers)
        else {
            return;
        };
        let Some(Ok(states)) = &mut self.states else { return };
        if hook_server.offers() {
            return;
        }
        let table = watch(states, &live.tree, &self.proc)
            .and_then(|()| states.table().try_clone_to_owned().map_err(|error| error.to_string()));
        match table {
            Ok(table) => hook_server.offer(table, self.proc.clone()),
            Err(why) => self.note(live.id, format!("{LACKS}: {why}")),
        }
    }

    /// Publishes the barrier statistics of the programs, and whether they have reported progress.
    pub(super) fn tell_barrier_stats(&self) {
        for live in self.live.values() {
            if let Some(hook_server) = &live.hook_server {
                self.stats.tell(live.id.slot, hook_server.barrier_stats(), hook_server.reported());
            }
        }
    }

    /// Stops writing states once no program is left that needs them. (A program that is taken out
    /// of the live ones at the moment counts as gone.)
    pub(super) fn rest_states(&mut self) {
        let uses = |live: &Live| live.hook_server.as_ref().is_some_and(HookServer::offers);
        match &mut self.states {
            Some(Ok(states)) if !self.live.values().any(uses) => states.rest(),
            _ => {}
        }
    }
}

/// Makes a program's processes members, with all that they will start.
fn watch(states: &mut RunStates, tree: &Tree, proc: &Proc) -> Result<(), String> {
    states.begin().map_err(|error| error.to_string())?;
    let mut result = tree.shim.map_or(Ok(()), |shim| add(states, shim.pid));
    // If a process that is no member yet forks between two walks, the next walk finds its child.
    let mut added = BTreeSet::new();
    tree.until_stable(proc, |process| {
        let is_new = result.is_ok() && added.insert(process.pid);
        if is_new {
            result = add(states, process.pid);
        }
        is_new
    });
    result.map_err(|error| error.to_string())
}

/// Adds a process, if it is still there.
fn add(states: &RunStates, process: i32) -> Result<(), FileError> {
    match states.add(process) {
        Err(error) if error.is_gone() => Ok(()),
        other => other,
    }
}
