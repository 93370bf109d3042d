//! Programs with barriers of the hook: while one of them runs, the states of their threads are
//! written down for them.
//!
//! The BPF program that writes the states is loaded before the run begins, since loading takes
//! long. It is attached only while such a program runs, since every context switch of the machine
//! pays for it.

use cosched_core::ProgramId;

use super::program::Live;
use super::{Job, Linux, each_process};
use crate::hook::HookServer;
use crate::kernel::files::unless_gone;
use crate::kernel::procfs::Proc;
use crate::observe::runstate::{RunStates, Unavailable};
use crate::process::tree::{Process, Tree};

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
        for (slot, job) in self.config.jobs.iter().enumerate() {
            if job.hook.as_ref().is_some_and(|hook| hook.uses.barriers) {
                let text = format!("{LACKS}, and waits by time alone: {why}");
                self.note(ProgramId::first(slot as u16), text);
            }
        }
    }

    /// Gives a program's processes the table, if its barriers are the hook's, and begins to write
    /// down the states of its threads; both only once.
    pub(super) fn offer_states(&mut self, live: &mut Live) {
        let needs = |server: &&mut HookServer| server.uses().barriers && !server.offers();
        let Some(hook_server) = live.hook_server.as_mut().filter(needs) else { return };
        let Some(Ok(states)) = &mut self.states else { return };
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
                self.config.stats.tell(
                    live.id.slot,
                    hook_server.barrier_stats(),
                    hook_server.reported(),
                );
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
    let add = |process: Process| unless_gone(states.add(process.pid)).map(drop);
    let added = tree.shim.map_or(Ok(()), add).and_then(|()| each_process(tree, proc, add));
    added.map_err(|error| error.to_string())
}
