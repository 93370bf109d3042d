//! Gangs that take turns: the common part of `gang`, `greedy`, `cgreedy`, `bandwidth` and
//! `adaptive-greedy`.
//!
//! A policy of this family cuts the units into gangs; that is a pure function ([`Cut`]). This
//! module decides which gang has its turn, and for how long. In the thesis the programs are fixed,
//! so the turn goes round a list of gangs (section 4.2). With programs that arrive and end while
//! the gangs run, the list changes at every moment, and a place in it means nothing.
//!
//! We therefore keep a queue of *programs*. A program joins it on arrival, and goes to its back
//! whenever its turn ends. At the end of a quantum the units are cut again, and **the turn goes to
//! the gang of the program that is foremost in the queue**. Programs that arrived together have
//! equal places; then the first gang in the order of the cut has the turn. All other programs are
//! frozen. While nothing changes, this equals going round the list. When something does change:
//!
//! - each quantum serves the foremost program of all, and newcomers queue behind the programs that
//!   are there. No program therefore waits more quanta than there were units in the queue when it
//!   joined, for any later arrivals and ends;
//! - without a change in the meantime a wait is one round; with one change it is at most the two
//!   rounds before and after it.
//!
//! A newcomer waits for its turn; if no program runs, it starts at once. If the last program of the
//! running gang ends, or the CPUs change, the next turn begins at once with a whole quantum. One
//! gang alone runs without end and without wake-ups; when something changes its turn is over.
//!
//! A policy that sets thread limits ([`thread_limits`](crate::gangs::thread_limits)) does so at the
//! beginning of each round, and whenever gangs are cut again. If it has only one gang, there are
//! quanta, too: each is a round.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{Cause, CpuSet, Nanos, Plan, Policy, ProgramId, Token, Why, World};

use crate::common::reasons::SharedReason;
use crate::common::unit::{Denied, Member, Placer, Sorted, Unit, only_settled, run_together};
use crate::gangs::quantum::{QuantumRule, Weights};
use crate::gangs::thread_limits::{ThreadLimits, only_learns};
use crate::kind::Options;

/// Units that run together: each with its position among the units, and the reason.
pub(crate) type Gang = Vec<(usize, Why)>;

/// Cuts units into gangs for this number of CPUs: every unit is in exactly one, and each gang fits.
pub(crate) type Cut = Box<dyn Fn(&[Unit], usize) -> Vec<Gang> + Send>;

/// Chooses the units that backfill a gang's free CPUs. The units with the longest wait until their
/// next turn come first.
pub(crate) type Fill = fn(&[(usize, &Unit)], usize) -> Gang;

/// The only wake-up of these policies.
const TURN_ENDS: Token = Token(0);

pub(crate) struct Rounds {
    cut: Cut,
    fill: Option<Fill>,
    places: Placer,
    quantum: QuantumRule,
    sorted: Sorted,
    denied: Denied,
    /// Decides on thread counts, if the policy does.
    thread_limits: Option<ThreadLimits>,
    /// The gangs, until the units change.
    cutting: Option<Cutting>,
    /// Each program's number in the queue; lower is further ahead.
    queue: BTreeMap<ProgramId, u64>,
    /// The latest number that was given.
    number: u64,
    turn: Option<GangTurn>,
    round: u64,
    /// The latest number when the round began.
    round_began: u64,
}

/// The present turn, and the world for which it was planned.
#[derive(Debug)]
struct GangTurn {
    gang: Vec<ProgramId>,
    /// The programs that were told to run: the gang, and those that backfill.
    running: BTreeSet<ProgramId>,
    ends: Nanos,
    /// The units for which an endless turn was planned: any other unit ends it.
    units: Option<Vec<Vec<Member>>>,
    cpus: CpuSet,
}

/// The gangs, and the one in turn.
struct Cutting {
    gangs: Vec<Gang>,
    weights: Weights,
    /// The gangs in the order of the queue when they were cut. A gang goes to the back after its
    /// turn, so this is the order of turns as long as nothing else changes.
    order: Vec<usize>,
    /// The place in this order of the gang in turn.
    turn: usize,
    /// For each program its gang's place in the order, and its own in the gang.
    places: BTreeMap<ProgramId, (usize, usize)>,
}

impl Cutting {
    fn new(gangs: Vec<Gang>, order: Vec<usize>, units: &[Unit]) -> Cutting {
        let weights = Weights::new(gangs.iter().map(|gang| weight(gang, units)).collect());
        let members = |place: usize| {
            let programs = gangs[order[place]].iter().flat_map(|(unit, _)| units[*unit].ids());
            programs.enumerate().map(move |(position, id)| (id, (place, position)))
        };
        let places = (0..order.len()).flat_map(members).collect();
        Cutting { weights, turn: 0, places, gangs, order }
    }

    /// The gang that has its turn after this many turns.
    fn ahead(&self, turns: usize) -> usize {
        self.order[(self.turn + turns) % self.order.len()]
    }

    fn gang(&self) -> usize {
        self.ahead(0)
    }
}

impl Rounds {
    pub(crate) fn new(
        options: &Options,
        cut: impl Fn(&[Unit], usize) -> Vec<Gang> + Send + 'static,
        fill: Option<Fill>,
    ) -> Rounds {
        Rounds {
            cut: Box::new(cut),
            fill,
            places: Placer::new(options.placement, options.params.gangs),
            quantum: QuantumRule::new(options.quantum, options.params.gangs),
            sorted: Sorted::default(),
            denied: Denied::default(),
            thread_limits: None,
            cutting: None,
            queue: BTreeMap::new(),
            number: 0,
            turn: None,
            round: 0,
            round_began: 0,
        }
    }

    /// These rounds, with decisions on thread counts.
    pub(crate) fn with_thread_limits(self, thread_limits: ThreadLimits) -> Rounds {
        Rounds { thread_limits: Some(thread_limits), ..self }
    }

    /// Adds newcomers to the queue, removes programs that are gone, and returns the newcomers.
    fn update_queue(&mut self, units: &[Unit]) -> Vec<ProgramId> {
        let mut present: Vec<ProgramId> = units.iter().flat_map(Unit::ids).collect();
        present.sort_unstable();
        let is_present = |id: &ProgramId| present.binary_search(id).is_ok();
        self.queue.retain(|id, _| is_present(id));
        if let Some(turn) = &mut self.turn {
            turn.gang.retain(is_present);
        }
        let new = present.iter().filter(|id| !self.queue.contains_key(id)).copied();
        let new: Vec<ProgramId> = new.collect();
        self.number += 1;
        self.queue.extend(new.iter().map(|id| (*id, self.number)));
        new
    }

    fn turn_is_over(
        &self,
        causes: &[Cause],
        world: &World<'_>,
        changed: bool,
        units: &[Unit],
    ) -> bool {
        let Some(turn) = &self.turn else { return true };
        world.now >= turn.ends
            || causes.contains(&Cause::Woke(TURN_ENDS))
            || turn.gang.is_empty()
            || turn.cpus != *world.cpus
            || (changed && turn.units.as_ref().is_some_and(|made_for| *made_for != shape(units)))
    }

    /// The number of the foremost program of a gang.
    fn foremost(&self, gang: &Gang, units: &[Unit]) -> u64 {
        let programs = gang.iter().flat_map(|(unit, _)| units[*unit].ids());
        programs.filter_map(|id| self.queue.get(&id)).min().copied().unwrap_or(u64::MAX)
    }

    /// Cuts the present gangs, and chooses the one in turn.
    fn cut(&mut self, units: &mut [Unit], world: &World<'_>, plan: &mut Plan) -> Cutting {
        let mut last = self.cutting.take();
        if let Some(last) = &mut last {
            last.turn = (last.turn + 1) % last.order.len().max(1);
        }
        let round_begins = last.as_ref().is_none_or(|last| last.turn == 0);
        let thread_limits = self.thread_limits.as_mut().filter(|_| round_begins);
        let resized =
            thread_limits.is_some_and(|thread_limits| thread_limits.decide(units, world, plan));
        if let Some(last) = last.filter(|_| !resized) {
            return last;
        }
        let gangs = (self.cut)(units, world.cpus.len());
        let mut order: Vec<usize> = (0..gangs.len()).collect();
        order.sort_by_cached_key(|&gang| self.foremost(&gangs[gang], units));
        Cutting::new(gangs, order, units)
    }

    fn next_turn(
        &mut self,
        units: &mut [Unit],
        newcomers: &[ProgramId],
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        let last = self.turn.take();
        if let Some(turn) = last.as_ref().filter(|turn| turn.ends <= world.now) {
            self.quantum.ended_late(world.now - turn.ends);
        }
        self.number += 1;
        for id in last.iter().flat_map(|turn| &turn.gang) {
            self.queue.entry(*id).and_modify(|number| *number = self.number);
        }
        let mut cutting = self.cut(units, world, plan);
        let units = &*units;

        let mut ends = Nanos::NEVER;
        if !cutting.gangs.is_empty() {
            let turn = cutting.gang();
            let length = self.quantum.length(&mut cutting.weights, turn, world.max_frozen, plan);
            let length = self.until_decided(length);
            ends = world.now + length;
            self.count_round(&cutting.gangs[turn], units);
            let (gang, gangs) = (turn as u16, cutting.gangs.len() as u16);
            plan.begin(cosched_core::Quantum { round: self.round, gang, gangs, length });
            let running = self.run_gang(&cutting, units, world, plan);
            let before = last.iter().flat_map(|turn| &turn.running).copied();
            let news = before.chain(newcomers.iter().copied()).chain(self.denied.take());
            freeze_others(&cutting, news.filter(|id| !running.contains(id)), plan);
            let members = cutting.gangs[turn].iter().flat_map(|(unit, _)| units[*unit].ids());
            self.turn = Some(GangTurn {
                gang: members.collect(),
                running,
                ends,
                units: (ends == Nanos::NEVER).then(|| shape(units)),
                cpus: *world.cpus,
            });
        }
        self.cutting = Some(cutting);
        if ends != Nanos::NEVER || last.is_some_and(|turn| turn.ends != Nanos::NEVER) {
            match &mut self.thread_limits {
                Some(thread_limits) => thread_limits.wake_at(ends, TURN_ENDS, world, plan),
                None => plan.wake_at(ends, TURN_ENDS),
            }
        }
    }

    /// Limits a turn without an end, where thread counts are to be decided on.
    fn until_decided(&self, length: Nanos) -> Nanos {
        match self
            .thread_limits
            .as_ref()
            .filter(|thread_limits| length == Nanos::NEVER && thread_limits.any())
        {
            Some(thread_limits) => thread_limits.quantum(),
            None => length,
        }
    }

    /// A round is over when the foremost program joined the queue after the round began.
    fn count_round(&mut self, gang: &Gang, units: &[Unit]) {
        if self.round == 0 || self.foremost(gang, units) > self.round_began {
            self.round += 1;
            self.round_began = self.number;
        }
    }

    /// Runs the gang in turn, and the units that backfill; returns the programs that run.
    fn run_gang(
        &mut self,
        cutting: &Cutting,
        units: &[Unit],
        world: &World<'_>,
        plan: &mut Plan,
    ) -> BTreeSet<ProgramId> {
        let mut running = cutting.gangs[cutting.gang()].clone();
        if let Some(fill) = self.fill {
            let taken: usize = running.iter().map(|(unit, _)| units[*unit].threads).sum();
            let longest_first = (1..cutting.order.len()).rev();
            let others = longest_first.flat_map(|turns| &cutting.gangs[cutting.ahead(turns)]);
            let others: Vec<(usize, &Unit)> =
                others.map(|(unit, _)| (*unit, &units[*unit])).collect();
            running.extend(fill(&others, world.cpus.len().saturating_sub(taken)));
        }
        let together = running.iter().map(|(unit, why)| (&units[*unit], why.clone())).collect();
        run_together(together, *world.cpus, &mut self.places, world, plan);
        running.iter().flat_map(|(unit, _)| units[*unit].ids()).collect()
    }

    /// Tells newcomers to wait until the running gang's quantum is over.
    fn hold(&self, newcomers: &[ProgramId], plan: &mut Plan) {
        let runs = |id| self.turn.as_ref().is_some_and(|turn| turn.gang.contains(id));
        let waiting = self.queue.keys().filter(|id| !runs(id)).count();
        // All newcomers arrived at this instant, so all other waiting programs are ahead.
        let ahead = waiting.saturating_sub(newcomers.len());
        for id in newcomers {
            plan.freeze(*id);
            plan.because(Some(*id), SharedReason::Queued { ahead: ahead as u16 });
        }
    }
}

impl Policy for Rounds {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if let Some(thread_limits) = &mut self.thread_limits {
            thread_limits.learn(causes, world);
        }
        if only_settled(causes) || (self.thread_limits.is_some() && only_learns(causes)) {
            return;
        }
        self.denied.update(causes);
        let changed = self.sorted.update(causes, world, plan);
        let mut sorted = std::mem::take(&mut self.sorted);
        let mut newcomers = Vec::new();
        if changed {
            self.places.retain(world);
            self.cutting = None;
            newcomers = self.update_queue(&sorted.units);
        }
        if self.turn_is_over(causes, world, changed, &sorted.units) {
            self.next_turn(&mut sorted.units, &newcomers, world, plan);
        } else {
            self.hold(&newcomers, plan);
        }
        self.sorted = sorted;
    }
}

/// Tells programs to wait that ran until now, arrived, or were thawed, in the order of their turns.
/// Programs that wait already are not told again.
fn freeze_others(cutting: &Cutting, others: impl Iterator<Item = ProgramId>, plan: &mut Plan) {
    let gangs = cutting.order.len();
    let turns = |place: usize| (place + gangs - cutting.turn) % gangs;
    let waits = others.filter_map(|id| {
        let (place, position) = *cutting.places.get(&id)?;
        Some(((turns(place), position), id))
    });
    for ((turns, _), id) in waits.collect::<BTreeMap<_, _>>() {
        plan.freeze(id);
        plan.because(Some(id), SharedReason::OtherGang { gang: cutting.ahead(turns) as u16 });
    }
}

/// The properties of units that a cut depends on.
fn shape(units: &[Unit]) -> Vec<Vec<Member>> {
    units.iter().map(|unit| unit.members.clone()).collect()
}

/// The weight of a gang's heaviest unit.
fn weight(gang: &Gang, units: &[Unit]) -> f64 {
    gang.iter().map(|(unit, _)| units[*unit].weight).fold(f64::MIN_POSITIVE, f64::max)
}

/// The units' positions with the larger number first; equals stay in the order of the workload.
pub(crate) fn descending(units: &[Unit], by: impl Fn(&Unit) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|&a, &b| by(&units[b]).total_cmp(&by(&units[a])));
    order
}

/// The candidates that fit into the free CPUs one after another: each is taken if it still fits.
pub(crate) fn first_fit<'a>(
    candidates: impl IntoIterator<Item = (usize, &'a Unit)>,
    mut free: usize,
) -> Vec<usize> {
    let fits = |(position, unit): (usize, &Unit)| {
        let fits = unit.threads <= free;
        free -= if fits { unit.threads } else { 0 };
        fits.then_some(position)
    };
    candidates.into_iter().filter_map(fits).collect()
}

#[cfg(test)]
mod tests;
