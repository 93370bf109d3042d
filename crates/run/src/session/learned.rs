//! What a run has shown of its programs is kept for the next one.

use cosched_core::{Learned, Learning, SpinLoop};
use cosched_policy::{Kind, Learns};
use cosched_workload::Workload;

use super::here::Session;
use super::request::{Ran, Request};
use crate::how::How;
use crate::store::{Division, Key, Store, StoreError};

impl Session {
    /// Keeps what the policy has tried out, and the spin loops that were found. What cannot be kept
    /// is told, and no failure: the programs have run.
    pub fn learn(&self, request: &Request<'_>, ran: &Ran) {
        if let Err(error) = keep_spin_loops(request, ran) {
            request
                .extras
                .talk
                .tell(format_args!("spin loops are not kept for the next run: {error}"));
        }
        self.learn_from_trials(request, ran);
    }

    fn learn_from_trials(&self, request: &Request<'_>, ran: &Ran) {
        if !request.kind.measures() || request.how.measure.no_guard {
            return;
        }
        let outcomes: Vec<Option<LearnedOutcome>> =
            ran.learning.iter().zip(0..).map(|(own, slot)| outcome(request, own, slot)).collect();
        if outcomes.iter().all(Option::is_none) {
            return;
        }
        if let Err(error) = self.keep(request, &outcomes) {
            request
                .extras
                .talk
                .tell(format_args!("what was tried out is not kept for the next run: {error}"));
        }
    }

    fn keep(
        &self,
        request: &Request<'_>,
        outcomes: &[Option<LearnedOutcome>],
    ) -> Result<(), StoreError> {
        let mut store = Store::open()?;
        let keys = self.keys_in_hand(request.workload, request.how);
        let division = self.division(request.how).filter(|_| request.kind.learns(Learns::Groups));
        // Programs that are the same in every respect share a learned setting, which a run changes
        // once. A program that learnt something comes first.
        let mut kept: Vec<&Key> = Vec::new();
        for is_new in [true, false] {
            for (slot, outcome) in outcomes.iter().enumerate() {
                let Some(outcome) = outcome.as_ref().filter(|outcome| outcome.is_new == is_new)
                else {
                    continue;
                };
                if !kept.contains(&&keys[slot]) {
                    kept.push(&keys[slot]);
                    store.learn(&keys, slot, division.as_ref(), outcome.known, is_new)?;
                }
            }
        }
        Ok(())
    }

    /// The programs, as policies have them in hand.
    pub(super) fn keys_in_hand(&self, workload: &Workload, how: &How) -> Vec<Key> {
        let key = |spec| self.key(spec, how).in_hand(spec, how.barrier(spec));
        workload.programs.iter().map(key).collect()
    }

    /// How threads would be divided into groups; `None`: there is nothing to divide them between.
    pub(super) fn division(&self, how: &How) -> Option<Division> {
        let options = how.options(Kind::Shuffling).shuffling;
        let sockets = options.sockets.usable(&self.topology, &self.usable.cpus);
        (sockets.len() > 1).then(|| Division::new(&sockets, options.sort))
    }
}

/// Keeps the spin loops of a run that were not known.
fn keep_spin_loops(request: &Request<'_>, ran: &Ran) -> Result<(), StoreError> {
    let spinning = ran.result.programs.iter().filter_map(|program| program.spinning.as_ref());
    let found = spinning.flat_map(|spinning| &spinning.loops).map(|one| one.place.clone());
    let is_new = |one: &SpinLoop| one.build_id.is_some() && !request.spin_loops.contains(one);
    let found: Vec<SpinLoop> = found.filter(is_new).collect();
    match found.is_empty() {
        true => Ok(()),
        false => Store::open()?.learn_spin_loops(&found),
    }
}

/// What a run has shown of a program.
struct LearnedOutcome {
    known: Learned,
    /// By trials of its own; else it went by what was known.
    is_new: bool,
}

/// Of what its policy tries. `None`: what was known, if anything, is as it was.
fn outcome(request: &Request<'_>, learning: &Learning, slot: usize) -> Option<LearnedOutcome> {
    let earlier = match request.how.measure.relearn {
        true => Learned::default(),
        false => request.profiles[slot].learned,
    };
    let earlier = match request.kind.learns(Learns::Groups) {
        true => earlier.of_groups(),
        false => earlier.of_actuators(),
    };
    if !earlier.is_empty() && !learning.recalled {
        return None;
    }
    let known = earlier.and(learning.shown);
    (!known.is_empty()).then_some(LearnedOutcome { known, is_new: !learning.shown.is_empty() })
}
