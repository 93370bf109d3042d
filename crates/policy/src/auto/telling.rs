//! What is said of a choice: once, when it is another way than before or another reason.

use cosched_core::{Ground, Manner, Plan, Why, World};

use super::Auto;
use super::interval::Interval;
use super::judgement::{Verdict, is_settled};
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
    pub(super) fn tell(&mut self, verdict: Verdict, world: &World<'_>, plan: &mut Plan) {
        let Verdict { in_gangs, speedups, .. } = verdict;
        let (manner, ground) = self.seen_from_outside(verdict, world);
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

    /// A verdict is on those that could take turns. Whoever waits for its start and whoever may not be frozen is there, too.
    fn seen_from_outside(&self, verdict: Verdict, world: &World<'_>) -> (Manner, Ground) {
        let Verdict { manner, ground, .. } = verdict;
        let is_by_counts =
            matches!(ground, Ground::OneCompetes | Ground::EnoughCpus | Ground::NobodyWide);
        match self.with_unfreezable(world).filter(|_| is_by_counts) {
            _ if manner == Manner::SideBySide && self.line.waits() => {
                (Manner::OneAfterAnother, Ground::ForThroughput)
            }
            Some(all) => {
                let for_all = is_settled(&all, world.cpus.len());
                (manner, for_all.unwrap_or(Ground::FewFreezable))
            }
            None => (manner, ground),
        }
    }
}
