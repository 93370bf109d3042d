//! Programs whose barriers are the hook's: while one of them runs, the states of their threads are written down for them.
//!
//! Loading what writes them takes longer than programs should start later. Where somebody has asked for these barriers, it is
//! done before the run begins. Where a policy has chosen them, nobody is to pay for what may gain nothing: programs are given a
//! table in which nothing stands, and go by time alone. What writes it is loaded in the background, once processes have come
//! to their doors and the run has lasted for [`PATIENCE`]. Runs that are over before have paid nothing.
//!
//! It is attached when there is such a program, and detached when the last one has ended or was let go: until then every
//! context switch of the machine pays for it.
//!
//! Barriers that nobody has asked for are the hook's only while their program shares its CPUs: not in a gang, which has its CPUs
//! for itself, nor once it is the last one. The first to start is not alone for long.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use cosched_core::{Nanos, ProgramId};

use super::program::Live;
use super::{Job, Linux};
use crate::background;
use crate::files::FileError;
use crate::hook::{Door, Hook};
use crate::procfs::Proc;
use crate::runstate::{RunStates, Table, Unavailable};
use crate::tree::Tree;

const LACKS: &str = "does not know at barriers which of its threads run";

/// How long a run lasts before it is worth it to load what nobody has asked for: sixty times as long as that takes of a CPU
/// (`docs/auto.md`).
const PATIENCE: Nanos = Nanos::from_secs(4);
/// How many files what writes the states holds open: its programs, where these are attached, maps and types.
const FILES: usize = 24;

/// The states of threads, where programs have a use for them.
#[derive(Debug)]
pub(super) enum States {
    /// They cannot be had.
    Lacking(Unavailable),
    /// Nothing writes them yet.
    Empty(Arc<Table>),
    /// What writes them is being loaded.
    Loading(Arc<Table>, Receiver<Result<RunStates, Unavailable>>),
    /// They can be written down.
    There(RunStates),
}

impl From<Result<RunStates, Unavailable>> for States {
    fn from(loaded: Result<RunStates, Unavailable>) -> States {
        loaded.map_or_else(States::Lacking, States::There)
    }
}

impl States {
    /// What these programs have a use for; `None`: nothing.
    pub(super) fn of(jobs: &[Job], proc: &Proc) -> Option<States> {
        let hooks = jobs.iter().filter_map(|job| job.hook.as_ref());
        let users: Vec<&Hook> = hooks.filter(|hook| hook.uses.barriers).collect();
        let table =
            || Table::new().map_or_else(States::Lacking, |table| States::Empty(table.into()));
        match users.iter().all(|hook| hook.uses.chosen) {
            true => (!users.is_empty()).then(table),
            false => Some(RunStates::load(proc).into()),
        }
    }

    /// How many more files it may open.
    pub(super) fn files_to_come(&self) -> usize {
        if let States::Empty(_) = self { FILES } else { 0 }
    }

    /// What programs are given, a descriptor of it.
    fn table(&self) -> Option<io::Result<OwnedFd>> {
        let table = match self {
            States::Lacking(_) => return None,
            States::Empty(table) | States::Loading(table, _) => table.as_fd(),
            States::There(states) => states.table(),
        };
        Some(table.try_clone_to_owned())
    }

    /// The same after it was seen to what writes them; `now` is the time of the run.
    fn seen_to(self, now: Nanos, proc: &Proc) -> States {
        match self {
            States::Empty(table) if now >= PATIENCE => load(table, proc.clone()),
            States::Loading(table, loaded) => match loaded.try_recv() {
                Ok(loaded) => loaded.into(),
                Err(_) => States::Loading(table, loaded),
            },
            other => other,
        }
    }
}

/// Begins to load what writes a table, and to attach it, for which the kernel makes its caller wait: programs that take turns
/// would wait, too. (A thread does not inherit what makes cosched punctual.)
fn load(table: Arc<Table>, proc: Proc) -> States {
    let (sender, loaded) = channel();
    let written = table.clone();
    let work = move || {
        let loaded =
            RunStates::of(&written, &proc).and_then(|mut states| states.begin().map(|()| states));
        // Whoever listens may have gone by now.
        let _ = sender.send(loaded);
    };
    match background::spawn("states", work) {
        Ok(_) => States::Loading(table, loaded),
        Err(error) => States::Lacking(error.into()),
    }
}

impl Linux {
    /// Why programs whose barriers are the hook's cannot know which of their threads run, as far as that was found out;
    /// `None`: they can, or there are none.
    pub fn lacks_states(&self) -> Option<&Unavailable> {
        match &self.states {
            Some(States::Lacking(why)) => Some(why),
            _ => None,
        }
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

    /// From now on a program's processes get the table, if its barriers are the hook's, and the states of its threads are
    /// written down, where that can be done; both if it is not so already.
    pub(super) fn offer_states(&mut self, live: &mut Live) {
        let Some(door) = live.door.as_mut().filter(|door| door.uses().barriers) else { return };
        let Some(states) = &mut self.states else { return };
        let watched = match states {
            States::There(states) if !live.is_watched => watch(states, &live.tree, &self.proc),
            _ => Ok(()),
        };
        live.is_watched |= watched.is_ok() && matches!(states, States::There(_));
        let table = states.table().filter(|_| watched.is_ok() && !door.offers());
        match watched.and(table.transpose().map_err(|error| error.to_string())) {
            Ok(table) => table.into_iter().for_each(|table| door.offer(table)),
            Err(why) => self.note(live.id, format!("{LACKS}: {why}")),
        }
    }

    /// Sees to what writes down the states of threads, for programs that have been given a table.
    pub(super) fn see_to_states(&mut self) {
        let Some(states) = self.states.take() else { return };
        self.states = Some(states.seen_to(self.clock.now(), &self.proc));
        let is_unseen =
            |live: &&Live| !live.is_watched && live.door.as_ref().is_some_and(Door::offers);
        let unseen: Vec<ProgramId> =
            self.live.values().filter(is_unseen).map(|live| live.id).collect();
        for id in unseen {
            self.with(id, Linux::offer_states);
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

    /// Tells what the programs' threads have done at barriers by now, and whether they told of progress.
    pub(super) fn tell_meetings(&self) {
        for live in self.live.values() {
            if let Some(door) = &live.door {
                self.met.tell(live.id.slot, door.meetings(), door.told());
            }
        }
    }

    /// Nothing is written down any more once no program is left that has a use for it. (Whoever is taken out of the live
    /// ones at the moment counts as gone.)
    pub(super) fn rest_states(&mut self) {
        let uses = |live: &Live| live.door.as_ref().is_some_and(Door::offers);
        match &mut self.states {
            Some(States::There(states)) if !self.live.values().any(uses) => states.rest(),
            _ => {}
        }
    }
}

/// Makes a program's processes members, and all that they will start.
fn watch(states: &mut RunStates, tree: &Tree, proc: &Proc) -> Result<(), String> {
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
    result.map_err(|error| error.to_string())
}

/// Adds a process, if it is still there.
fn add(states: &RunStates, process: i32) -> Result<(), FileError> {
    match states.add(process) {
        Err(error) if error.is_gone() => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::hook::Uses;
    use crate::launch::{Order, Output};
    use crate::machine::Origin;

    /// A program whose barriers are the hook's, by choice or since somebody asked.
    fn job(chosen: bool) -> Job {
        let uses = Uses { threads: false, barriers: true, progress: false, chosen };
        Job {
            origin: Origin::Started,
            order: Order::default(),
            stdout: Output::Inherit,
            stderr: Output::Inherit,
            freezable_for_sure: false,
            grouped_by_user: false,
            hook: Some(Hook { library: "/nowhere".into(), uses }),
        }
    }

    #[test]
    fn what_nobody_asked_for_is_loaded_once_it_is_worth_it_and_what_somebody_did_at_once() {
        let proc = Proc::default();
        assert!(States::of(&[Job { hook: None, ..job(true) }], &proc).is_none());
        let first = States::of(&[job(true)], &proc).unwrap();
        if let States::Lacking(why) = first {
            return eprintln!("skipped: {why}");
        }
        let just_before = PATIENCE - Nanos::from_millis(1);
        let waits = first.seen_to(just_before, &proc);
        assert!(matches!(waits, States::Empty(_)) && waits.files_to_come() > 0);
        let mut loads = waits.seen_to(PATIENCE, &proc);
        assert!(matches!(loads, States::Loading(..)) && loads.table().is_some());
        let until = Instant::now() + Duration::from_secs(60);
        while matches!(loads, States::Loading(..)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
            loads = loads.seen_to(PATIENCE, &proc);
        }
        if let States::Lacking(why) = loads {
            return eprintln!("skipped: {why}");
        }
        assert!(matches!(loads, States::There(_)), "{loads:?}");
        assert!(matches!(States::of(&[job(true), job(false)], &proc), Some(States::There(_))));
    }
}
