//! Fewer threads, in the place of gangs or of side by side.
//!
//! *Idea.* Where malleable programs compete, what was judged is only whether *all* their threads are better in turns or
//! side by side. With as many threads as bring most ([`grants`](crate::grants)) they may be better still: programs that use their CPUs
//! fully lose nothing by fewer threads, and each thread less is one for which nobody waits; and those that leave
//! CPUs idle, or yield to each other, fill them with fewer. So gangs become gangs with chosen thread counts where any program can
//! have fewer, and tells of its progress: CPU time would not show if that were worse. Side by side becomes that only where all programs with several threads can, since the others would take turns in which
//! they are known to lose. Whether as much is done so is looked at as in gangs, and if not, it is as if nobody could
//! have fewer until others come.

use cosched_core::{Ground, Manner, Plan, Policy, World};

use super::interval::Interval;
use super::judgement::{Verdict, speedup_in_turns};
use super::phases::{CHECK, FIRST_CHECK, Phase};
use super::progress::Bounds;
use super::seen::Seen;
use super::{Auto, Goal};
use crate::grants::Grants;
use crate::greedy;
use crate::kind::Options;
use crate::minwait::Minwait;
use crate::rounds::Rounds;

impl Auto {
    pub(super) fn give_fewer_threads(
        &mut self,
        verdict: Verdict,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        let turns = self.turns();
        // That they do as much is only an assumption, and is to be seen soon.
        let options = Options { quantum: turns.quantum.min(FIRST_CHECK / 3), ..turns };
        let policy: Box<dyn Policy + Send> = match self.options.goal {
            Goal::Fair => {
                let grants = Grants::new(greedy::turns, options.quantum);
                Box::new(Rounds::new(&options, greedy::cut, None).granting(grants))
            }
            _ => Box::new(Minwait::adaptive(&options)),
        };
        self.inner.change(policy, self.known(true, world), true);
        self.phase = Phase::FewerThreads;
        self.watch.want();
        self.fewer_did_more = false;
        self.verdict = Some(verdict);
        self.tell(Verdict { manner: Manner::FewerThreads, ..verdict }, world, plan);
        self.look_in(FIRST_CHECK, world);
    }

    /// Fewer threads have to do as much as all of them side by side; and in the place of gangs, which fill the CPUs, they have to
    /// be seen to come as far as these would, since threads that spin outside of regions look as busy as others. What their progress has shown once, CPU time does not
    /// deny later.
    pub(super) fn looked_at_fewer_threads(
        &mut self,
        did: &Interval,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        if self.disturbed {
            return self.look_in(CHECK, world);
        }
        let worth = self.options.goal.worth().min(1.0);
        let with_all = self.speedup_with_all(world);
        let with_fewer = self.speedup_with_fewer(world);
        let told = with_all.zip(with_fewer).and_then(|(all, fewer)| match () {
            () if fewer.least >= worth * all.most => Some(true),
            () if fewer.most < worth * all.least => Some(false),
            () => None,
        });
        self.fewer_did_more |= told == Some(true);
        let instead_of_gangs = self.verdict.is_some_and(|one| one.manner == Manner::InGangs);
        let most_lost = self.options.goal.most_lost_by_fewer_threads();
        let by_cpu_time = || !instead_of_gangs && self.is_as_much(did, most_lost, world);
        if told.unwrap_or_else(|| self.fewer_did_more || by_cpu_time()) {
            if self.somebody_woke(world) {
                let verdict = self.verdict.unwrap_or(Verdict::UNSEEN);
                return self.give_fewer_threads(verdict, world, plan);
            }
            return self.look_in(CHECK, world);
        }
        self.pay(did, None, world);
        self.fewer_did_less = true;
        let manner = self.verdict.map_or(Manner::SideBySide, |verdict| verdict.manner);
        let in_gangs = Some(did.useful(world.cpus.len()));
        let verdict = Verdict { in_gangs, ..Verdict::new(manner, Ground::FewerDidLess) };
        self.follow(verdict, world, plan);
    }

    /// The weighted speedup with all threads: side by side, or where turns were judged to be better, what these would
    /// bring if that is more.
    fn speedup_with_all(&self, world: &World<'_>) -> Option<Bounds> {
        let beside = self.speedup_side_by_side(world);
        if self.verdict.is_none_or(|verdict| verdict.manner != Manner::InGangs) {
            return beside;
        }
        let in_turns = speedup_in_turns(&self.shares(&self.rivals(Seen::alone, world), world));
        let Bounds { least, most } = beside.unwrap_or_default();
        Some(Bounds { least: least.max(in_turns), most: most.max(in_turns) })
    }
}
