//! The ways to run, and which of them follows from a verdict.

use std::collections::BTreeMap;

use cosched_core::{Ground, Manner, Plan, Policy, World};

use super::judgement::Verdict;
use super::phases::{CHECK, FIRST_CHECK, LOOK, NEXT_LOOK, Phase};
use super::{Auto, Goal};
use crate::greedy;
use crate::kind::Options;
use crate::minwait::Minwait;
use crate::rounds::Rounds;
use crate::unmanaged::Unmanaged;

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
            Manner::SideBySide | Manner::OneAfterAnother | Manner::FewerThreads => {
                self.go_side_by_side(verdict, world, plan);
            }
        }
    }

    pub(super) fn turns(&self) -> Options {
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
        self.tell(verdict, world, plan);
        // When everybody has had a turn.
        let round = options.quantum * self.competing(world).count() as u64;
        self.look_in(round.clamp(FIRST_CHECK, CHECK), world);
    }

    pub(super) fn go_side_by_side(&mut self, verdict: Verdict, world: &World<'_>, plan: &mut Plan) {
        self.follows_trial = matches!(self.phase, Phase::Trial { .. });
        self.leave_to_kernel(Phase::SideBySide);
        self.budget.pause(world.now);
        self.verdict = Some(verdict);
        self.tell(verdict, world, plan);
        let soon = self.line.waits() || self.somebody_tells(world);
        self.look_in(if soon { LOOK } else { NEXT_LOOK }, world);
    }

    /// Everybody runs as Linux likes.
    pub(super) fn leave_to_kernel(&mut self, phase: Phase) {
        self.inner.change(Box::new(Unmanaged::together()), BTreeMap::new(), false);
        self.phase = phase;
    }
}
