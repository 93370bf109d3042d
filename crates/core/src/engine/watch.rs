//! What an observer of a run gets, for progress displays, live views and logs.
//!
//! Observers run on the scheduling thread, between two waits: they must be quick and never block.
//!
//! Heartbeats are for observers that show figures. While an observer looks, they come on time.
//! Otherwise they come when the engine is awake anyway. The engine wakes up for one only where
//! nothing else happens, since waking takes a CPU from a program. (An observer that looked only
//! when the engine is awake anyway would always show the same gang where rounds and heartbeats have
//! the same length.)

use super::Engine;
use super::ledger::Account;
use super::outcome::{NotStarted, Outcome, ProgramOutcome, Totals};
use crate::id::ProgramId;
use crate::machine::{Event, Machine};
use crate::plan::Plan;
use crate::policy::{Policy, World};
use crate::program::Program;
use crate::time::Nanos;

/// An observer of a run.
pub trait Watch {
    /// A policy decided.
    fn decided(&mut self, world: &World<'_>, plan: &Plan) {
        let _ = (world, plan);
    }
    /// Something happened on the machine.
    fn happened(&mut self, event: &Event) {
        let _ = event;
    }
    /// A program will not be started, since another one did not end as it should.
    fn not_started(&mut self, program: ProgramId, why: &NotStarted) {
        let _ = (program, why);
    }
    /// A heartbeat passed ([`Limits::heartbeat`](super::Limits)).
    fn beat(&mut self, beat: &Beat<'_>) {
        let _ = beat;
    }
    /// Whether this observer waits for the next heartbeat.
    fn looks(&self) -> bool {
        false
    }
}

/// An observer that ignores everything.
impl Watch for () {}

/// Two observers that are called one after the other.
impl<A: Watch + ?Sized, B: Watch + ?Sized> Watch for (&mut A, &mut B) {
    fn decided(&mut self, world: &World<'_>, plan: &Plan) {
        self.0.decided(world, plan);
        self.1.decided(world, plan);
    }

    fn happened(&mut self, event: &Event) {
        self.0.happened(event);
        self.1.happened(event);
    }

    fn not_started(&mut self, program: ProgramId, why: &NotStarted) {
        self.0.not_started(program, why);
        self.1.not_started(program, why);
    }

    fn beat(&mut self, beat: &Beat<'_>) {
        self.0.beat(beat);
        self.1.beat(beat);
    }

    fn looks(&self) -> bool {
        self.0.looks() || self.1.looks()
    }
}

/// The state of a run at a heartbeat.
#[derive(Clone, Copy, Debug)]
pub struct Beat<'a> {
    /// What policies see; running times are up to date.
    pub world: World<'a>,
    /// The outcome of the run so far, without the programs.
    pub outcome: &'a Outcome,
    accounts: &'a [Account],
    /// In ascending order.
    expected: &'a [u16],
}

impl Beat<'_> {
    /// The program at this position of the workload, if it is in the world.
    pub fn program(&self, slot: u16) -> Option<&Program> {
        let programs = self.world.programs;
        programs.binary_search_by_key(&slot, |program| program.id.slot).ok().map(|i| &programs[i])
    }

    /// Whether the program at this position of the workload has not come yet, and may still come.
    pub fn expects(&self, slot: u16) -> bool {
        self.expected.binary_search(&slot).is_ok()
    }

    /// Sums over all runs of the program at this position of the workload.
    pub fn totals(&self, slot: u16) -> Totals {
        self.accounts[usize::from(slot)].totals(self.program(slot), self.world.now)
    }

    /// The account of the program at this position of the workload, without spans that have not
    /// ended.
    pub fn account(&self, slot: u16) -> &ProgramOutcome {
        &self.accounts[usize::from(slot)].outcome
    }
}

impl<M: Machine, P: Policy> Engine<M, P> {
    /// Sends the state of the run to the observer, if a heartbeat is due.
    pub(super) fn beat_if_due(&mut self, watch: &mut dyn Watch) {
        if self.now < self.next_beat {
            return;
        }
        self.next_beat = self.now + self.setup.limits.heartbeat;
        self.refresh();
        self.count_shares(self.now);
        watch.beat(&Beat {
            world: super::world(
                self.now,
                self.max_frozen,
                &self.setup,
                &self.programs,
                &self.arena,
            ),
            outcome: &self.outcome,
            accounts: &self.accounts,
            expected: &self.expected,
        });
    }

    /// When a heartbeat is worth waking up for.
    pub(super) fn beat_deadline(&self, watch: &dyn Watch) -> Nanos {
        let patience = if watch.looks() { Nanos::ZERO } else { self.setup.limits.heartbeat };
        self.next_beat + patience
    }
}
