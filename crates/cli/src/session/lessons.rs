//! What a run has shown of its programs is kept for the next one.

use cosched_core::result::RunResult;
use cosched_core::{Experience, Reason};
use cosched_policy::Kind;

use super::{Request, Session, say};
use crate::args::HowArgs;
use crate::store::{Division, Key, Store, StoreError};

impl Session {
    /// Keeps what the policy has tried out. That it cannot be kept is told, and no failure: the programs have run.
    pub(crate) fn learn(&self, request: &Request<'_>, result: &RunResult) {
        if !request.kind.measures() || request.how.measure.no_guard {
            return;
        }
        let known: Vec<Experience> =
            (0..request.profiles.len()).map(|slot| known(request, result, slot)).collect();
        if known.iter().all(|known| known.is_empty()) {
            return;
        }
        if let Err(error) = self.keep(request, &known) {
            say(format_args!("what was tried out is not kept for the next run: {error}"));
        }
    }

    fn keep(&self, request: &Request<'_>, known: &[Experience]) -> Result<(), StoreError> {
        let mut store = Store::open()?;
        let keys = self.keys(request);
        let division = self.division(request.how).filter(|_| request.kind.shuffles());
        // Programs that are the same in every respect share a lesson, which a run changes once.
        let learnt = |slot: &usize| !known[*slot].is_empty();
        let is_first =
            |slot: &usize| !(0..*slot).any(|other| learnt(&other) && keys[other] == keys[*slot]);
        (0..keys.len())
            .filter(|slot| learnt(slot) && is_first(slot))
            .try_for_each(|slot| store.learn(&keys, slot, division.as_ref(), known[slot]))
    }

    fn keys(&self, request: &Request<'_>) -> Vec<Key> {
        request.workload.programs.iter().map(|spec| self.key(spec, request.how)).collect()
    }

    /// How threads would be divided into groups; `None`: there is nothing to divide them between.
    pub(super) fn division(&self, how: &HowArgs) -> Option<Division> {
        let options = how.options(Kind::Shuffling).shuffling;
        let sockets = options.sockets.usable(&self.topology, &self.usable.cpus);
        (sockets.len() > 1).then(|| Division::new(&sockets, options.sort))
    }
}

/// What is known of a program after the run, of what its policy tries.
fn known(request: &Request<'_>, result: &RunResult, slot: usize) -> Experience {
    let recalled = match request.how.measure.afresh {
        true => Experience::default(),
        false => request.profiles[slot].experience,
    };
    let recalled = match request.kind.shuffles() {
        true => recalled.of_groups(),
        false => recalled.of_actuators(),
    };
    let own = |reason: &&Reason| reason.program.is_some_and(|id| usize::from(id.slot) == slot);
    let reasons = result.decisions.iter().flat_map(|decision| &decision.reasons);
    recalled.after(reasons.filter(own).map(|reason| reason.why))
}
