//! What is said of a choice: once, when it is another way than before or another reason.

use cosched_core::{Ground, Plan, Why, World};

use super::Auto;
use super::interval::Interval;
use super::judgement::Verdict;
use super::phases::Phase;

/// What others keep from them is told where it is this part of the CPUs.
const NOTABLE: f64 = 0.1;

impl Auto {
    /// Takes in how many CPUs others kept from them. Not in a trial or a look back: threads that just begin, or go on, may wait
    /// for each other beside idle CPUs, until the kernel has them apart.
    pub(super) fn see_others(&mut self, did: &Interval, world: &World<'_>) {
        if !matches!(self.phase, Phase::Trial { .. } | Phase::LooksBack) {
            let cpus = world.cpus.len();
            self.others = Some(did.taken(cpus)).filter(|taken| *taken >= NOTABLE * cpus as f64);
        }
    }

    /// Says how programs are run from now on.
    pub(super) fn tell(&mut self, verdict: Verdict, plan: &mut Plan) {
        let Verdict { manner, ground, in_gangs, speedups } = verdict;
        if self.told.replace((manner, ground)) != Some((manner, ground)) {
            // Where runs alone have decided, it is only assumed what all do side by side.
            let is_assumed = matches!(ground, Ground::KnownToScale | Ground::KnownToScaleBadly);
            let seen = self.side_by_side.filter(|_| !is_assumed);
            let side_by_side = seen.map(|beside| beside.useful);
            let others = self.others;
            let explored = self.budget.explored();
            let why =
                Why::Chosen { manner, ground, side_by_side, in_gangs, speedups, others, explored };
            plan.because(None, why);
        }
    }
}
