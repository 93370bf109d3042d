//! The ways to run, and which of them follows from a verdict.
//!
//! *Fewer threads.* Where malleable programs compete, what was judged is only whether *all* their threads are better in turns or
//! side by side. With as many threads as bring most ([`grants`](crate::grants)) they may be better still: programs that use their CPUs
//! fully lose nothing by fewer threads, and each thread less is one for which nobody waits; and those that leave
//! CPUs idle, or yield to each other, fill them with fewer. So gangs become gangs with chosen thread counts where any program can
//! have fewer, and tells of its progress: CPU time would not show if that were worse. Side by side becomes that only where all programs with several threads can, since the others would take turns in which
//! they are known to lose. Whether as much is done so is [looked at](super::phases) as in gangs, and if not, it is as if nobody could
//! have fewer until others come.

use std::collections::BTreeMap;

use cosched_core::{Ground, Manner, Nanos, Plan, Policy, World};

use super::judgement::Verdict;
use super::phases::{CHECK, LOOK, NEXT_LOOK, Phase};
use super::{Auto, Goal};
use crate::grants::Grants;
use crate::greedy;
use crate::kind::Options;
use crate::minwait::Minwait;
use crate::rounds::Rounds;
use crate::unmanaged::Unmanaged;

/// When gangs and fewer threads are looked at first, where quanta are short. That they do as much is only an assumption.
const FIRST_CHECK: Nanos = Nanos::from_millis(300);

impl Auto {
    /// Runs the programs by a verdict from now on.
    pub(super) fn follow(&mut self, verdict: Verdict, world: &World<'_>, plan: &mut Plan) {
        let could_win = !matches!(
            verdict.ground,
            Ground::OneCompetes | Ground::EnoughCpus | Ground::NobodyWide | Ground::CpusIdle
        );
        match verdict.manner {
            manner if could_win && !self.fewer_did_less && self.may_have_fewer(manner, world) => {
                self.give_fewer_threads(verdict, world, plan);
            }
            Manner::InGangs => self.make_gangs(verdict, world, plan),
            Manner::SideBySide | Manner::FewerThreads => {
                self.go_side_by_side(verdict, world, plan);
            }
        }
    }

    fn turns(&self) -> Options {
        let quantum = self.options.goal.quantum(self.options.quantum);
        Options { quantum, ..self.options.clone() }
    }

    pub(super) fn make_gangs(&mut self, verdict: Verdict, world: &World<'_>, plan: &mut Plan) {
        let options = self.turns();
        let policy: Box<dyn Policy + Send> = match self.options.goal {
            Goal::Fair => Box::new(Rounds::new(&options, greedy::cut, None)),
            _ => Box::new(Minwait::lending(&options)),
        };
        self.inner.change(policy, self.known(false, world), false);
        self.phase = Phase::InGangs;
        self.watch.want();
        self.verdict = Some(verdict);
        self.tell(verdict, plan);
        // When everybody has had a turn.
        let round = options.quantum * self.competing(world).count() as u64;
        self.look_in(round.clamp(FIRST_CHECK, CHECK), world);
    }

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
        self.tell(Verdict { manner: Manner::FewerThreads, ..verdict }, plan);
        self.look_in(FIRST_CHECK, world);
    }

    pub(super) fn go_side_by_side(&mut self, verdict: Verdict, world: &World<'_>, plan: &mut Plan) {
        self.leave_to_kernel(Phase::SideBySide);
        self.budget.pause(world.now);
        self.verdict = Some(verdict);
        self.tell(verdict, plan);
        let soon = self.line.waits() || self.somebody_tells(world);
        self.look_in(if soon { LOOK } else { NEXT_LOOK }, world);
    }

    /// Everybody runs as Linux likes.
    pub(super) fn leave_to_kernel(&mut self, phase: Phase) {
        self.inner.change(Box::new(Unmanaged::together()), BTreeMap::new(), false);
        self.phase = phase;
    }
}
