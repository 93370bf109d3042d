//! What is said of a choice: once, when it is another way than before or another reason.

use cosched_core::{Ground, Plan, Why};

use super::Auto;
use super::judgement::Verdict;

impl Auto {
    /// Says how programs are run from now on.
    pub(super) fn tell(&mut self, verdict: Verdict, plan: &mut Plan) {
        let Verdict { manner, ground, in_gangs, speedups } = verdict;
        if self.told.replace((manner, ground)) != Some((manner, ground)) {
            // Where runs alone have decided, it is only assumed what all do side by side.
            let is_assumed = matches!(ground, Ground::KnownToScale | Ground::KnownToScaleBadly);
            let seen = self.side_by_side.filter(|_| !is_assumed);
            let side_by_side = seen.map(|beside| beside.useful);
            let explored = self.budget.explored();
            let why = Why::Chosen { manner, ground, side_by_side, in_gangs, speedups, explored };
            plan.because(None, why);
        }
    }
}
