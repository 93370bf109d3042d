//! What is known of the programs, and which of them compete for CPUs.
//!
//! Programs are kept by position in the workload: a repeated program is the same one again.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{Nanos, Program, ProgramId, ProgramState, World};

use super::interval::SampledInterval;
use super::judgement::{Alone, Rival};
use super::params::Params;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntervalMode {
    Together,
    Alone,
    InTurns,
}

#[derive(Clone, Copy, Debug, Default)]
struct KnownProgram {
    /// It hardly uses CPUs.
    idles: bool,
    /// The CPU time that it has used, seconds.
    cpu_time: f64,
    alone: Option<Alone>,
}

#[derive(Debug)]
pub(super) struct Programs {
    known: BTreeMap<u16, KnownProgram>,
    params: Params,
}

impl Programs {
    pub(super) fn new(params: Params) -> Programs {
        Programs { known: BTreeMap::new(), params }
    }

    fn known(&self, program: &Program) -> KnownProgram {
        self.known.get(&program.id.slot).copied().unwrap_or_default()
    }

    /// Learns from an interval. A program that ran for less than `least` of it shows too little.
    pub(super) fn learn(
        &mut self,
        did: &SampledInterval,
        ran: IntervalMode,
        least: Nanos,
        world: &World<'_>,
    ) {
        let cpus = world.cpus.len();
        let threads: usize = present(world).map(|program| asked(program, world)).sum();
        let share = cpus as f64 / threads.max(1) as f64;
        let Params { idles, idles_together, wakes, .. } = self.params;
        let idle = match ran {
            IntervalMode::Together => idles.min(idles_together * share),
            IntervalMode::Alone | IntervalMode::InTurns => idles,
        };
        for (id, did) in &did.0 {
            let known = self.known.entry(id.slot).or_default();
            known.cpu_time += did.on_cpu;
            if did.running < least.as_secs_f64() {
                continue;
            }
            let stays = ran == IntervalMode::InTurns && known.idles;
            known.idles = did.width() < if stays { wakes * idle } else { idle };
            if ran == IntervalMode::Alone {
                known.alone = Some(Alone { width: did.width(), rate: did.rate(cpus) });
            }
        }
    }

    pub(super) fn competing<'a>(&'a self, world: &World<'a>) -> impl Iterator<Item = &'a Program> {
        present(world).filter(|program| !self.known(program).idles)
    }

    /// The programs that compete for CPUs and may be frozen.
    pub(super) fn rivals(&self, world: &World<'_>) -> Vec<Rival> {
        let rival = |program: &Program| Rival {
            threads: asked(program, world),
            alone: self.known(program).alone,
        };
        self.competing(world).filter(|program| program.freezable).map(rival).collect()
    }

    /// The positions of programs that hardly use CPUs.
    pub(super) fn idle(&self, world: &World<'_>) -> BTreeSet<u16> {
        let idle = present(world).filter(|program| self.known(program).idles);
        idle.map(|program| program.id.slot).collect()
    }

    /// Whether a program at this position has been measured.
    pub(super) fn knows(&self, id: ProgramId) -> bool {
        self.known.contains_key(&id.slot)
    }

    /// Whether any program has run alone.
    pub(super) fn is_any_probed(&self, world: &World<'_>) -> bool {
        present(world).any(|program| self.known(program).alone.is_some())
    }

    /// Whether two competing programs have done more than start. Where many programs request few
    /// CPUs, one that is going to sleep is ready to run for long before it sleeps.
    pub(super) fn are_loaded(&self, world: &World<'_>) -> bool {
        let least = self.params.loaded.as_secs_f64();
        let loaded = |program: &&Program| self.known(program).cpu_time >= least;
        self.competing(world).filter(loaded).count() > 1
    }
}

/// The programs that may use CPUs.
pub(super) fn present<'a>(world: &World<'a>) -> impl Iterator<Item = &'a Program> {
    world.programs.iter().filter(|program| program.state != ProgramState::StoppedByOther)
}

/// How many CPUs a program requests, 1 to all.
pub(super) fn asked(program: &Program, world: &World<'_>) -> usize {
    usize::from(program.thread_count).clamp(1, world.cpus.len().max(1))
}
