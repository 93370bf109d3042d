//! Programs that have not come yet: when each comes, and which never do.
//!
//! A program comes at its start time, and not before the programs that it waits for have ended. It
//! *arrives* then, like any other: policies need to know nothing of what it waited for. Where it
//! turns out that what it waits for cannot happen any more, it never comes, and neither do the
//! programs that wait for its success.

use super::Engine;
use super::outcome::{Missing, NotStarted};
use super::setup::Predecessor;
use super::watch::Watch;
use crate::id::ProgramId;
use crate::machine::Machine;
use crate::policy::Policy;
use crate::time::Nanos;

/// What is known of the time at which a program comes.
enum Arrival {
    At(Nanos),
    /// A program that it waits for has not ended yet.
    Open,
    Never(NotStarted),
}

impl<M: Machine, P: Policy> Engine<M, P> {
    /// Programs arrive when their time has come.
    pub(super) fn admit_arrivals(&mut self, watch: &mut dyn Watch) {
        if self.closing.is_some() {
            return;
        }
        // A program that never comes may decide about others.
        let mut settled = self.expected.is_empty();
        while !settled {
            settled = true;
            for slot in std::mem::take(&mut self.expected) {
                match self.arrival(slot) {
                    Arrival::At(at) if at <= self.now => self.arrive(ProgramId::first(slot), at),
                    Arrival::Never(why) => {
                        self.accounts[usize::from(slot)].never_comes(why);
                        watch.not_started(ProgramId::first(slot), &why);
                        settled = false;
                    }
                    Arrival::At(_) | Arrival::Open => self.expected.push(slot),
                }
            }
        }
    }

    /// When the next program comes, as far as that is known.
    pub(super) fn next_arrival(&self) -> Option<Nanos> {
        let known = |slot: &u16| match self.arrival(*slot) {
            Arrival::At(at) => Some(at),
            Arrival::Open | Arrival::Never(_) => None,
        };
        self.expected.iter().filter_map(known).min()
    }

    fn arrival(&self, slot: u16) -> Arrival {
        let entry = &self.setup.programs[usize::from(slot)];
        let (mut at, mut is_open) = (entry.arrives, false);
        for wait in &entry.after {
            match self.awaited(wait) {
                Arrival::At(ended) => at = at.max(ended),
                Arrival::Open => is_open = true,
                never => return never,
            }
        }
        if is_open { Arrival::Open } else { Arrival::At(at) }
    }

    /// When a program has ended as another one that waits for it needs it.
    fn awaited(&self, wait: &Predecessor) -> Arrival {
        let account = &self.accounts[usize::from(wait.slot)];
        let never = |at, why| Arrival::Never(NotStarted { at, program: wait.slot, why });
        match (account.outcome.not_started, account.outcome.done) {
            (Some(before), _) if wait.any_exit => Arrival::At(before.at),
            (Some(before), _) => never(before.at, Missing::NotStarted),
            (None, Some(done)) if wait.any_exit || account.succeeded() => Arrival::At(done),
            (None, Some(done)) => never(done, Missing::Failed),
            (None, None) => match account.detached() {
                Some(at) => never(at, Missing::Detached),
                None => Arrival::Open,
            },
        }
    }

    /// The run ends before some programs have come: notes what those still waited for that wait for
    /// others.
    pub(super) fn give_up_arrivals(&mut self) {
        let at = self.now;
        for slot in std::mem::take(&mut self.expected) {
            let after = &self.setup.programs[usize::from(slot)].after;
            let open = after.iter().find(|wait| !matches!(self.awaited(wait), Arrival::At(_)));
            if let Some(program) = open.map(|wait| wait.slot) {
                let why = NotStarted { at, program, why: Missing::Interrupted };
                self.accounts[usize::from(slot)].never_comes(why);
            }
        }
    }
}
