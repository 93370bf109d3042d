//! `minwait`: the program that has waited longest runs, with all others that still fit.
//!
//! *Problem.* Gangs that are fixed for a round leave CPUs idle that a program of another gang could
//! use, and in a long round every program waits long.
//!
//! *Idea.* There are no rounds. At every quantum's end a new gang is made from the programs that
//! have waited longest since they last ran, as Linux' fair scheduler does with threads. Small
//! programs fit into every gap and run nearly always.
//!
//! *Algorithm.* The programs are sorted by their waiting time, longest first (equal ones in the
//! order of the workload). From the top, each is taken if it fits into the CPUs that are left.
//! Programs that do not fit are skipped, and the search ends with the list. Programs that ran just
//! now have waited for nothing: they come last, and run on if there is room. The program that has
//! waited longest is therefore always served, and no program waits more quanta than there are other
//! programs.
//!
//! *Source.* Section 4.2.4, listing 4.3. Ours:
//!
//! - a weight multiplies the waiting time: with twice the weight, a program is as urgent after half
//!   the time. The weights are ignored as soon as a program would be frozen for too long if those
//!   that have waited longer came first, one by one. They count again once no program would be;
//! - when a program ends or arrives within a quantum, free CPUs go at once to the programs that
//!   wait, longest first. Programs that run are not disturbed, and the quantum ends as planned. If
//!   no program runs, a new quantum begins;
//! - for [`turns`](crate::gangs::turns) and [`auto`](crate::auto), a weight does not multiply the
//!   waiting time, but the length of a turn. Programs then share time by weight. Otherwise two
//!   programs would take turns of equal length whatever their weights, since the one that waits is
//!   always next;
//! - while every program runs there are no quanta, and no wake-ups;
//! - optionally (used by [`auto`](crate::auto)), a gang's free CPUs are [backfilled](backfill);
//! - optionally (used by the goal `fair`), the programs with the largest [slowdown](slowed) come
//!   first. Weights then decide nothing.
//!
//! # `adaptive-minwait`
//!
//! Like `minwait`, with thread counts of malleable programs that are chosen at every quantum
//! ([`thread_limits`](crate::gangs::thread_limits)). There are no rounds; serving every program
//! once takes about as many quanta as all counts together fill the machine, at least one. A program
//! that arrives within a quantum has an even share until the next one. While every program runs,
//! there are quanta as well, since requests may change.
//!
//! # `request-minwait`
//!
//! The thesis' adaptive scheduler: as `adaptive-minwait`, but each program is granted the thread
//! count that it requested last. `minwait` has no rounds, so every quantum is one.

mod ahead;
mod backfill;
mod reasons;
mod slowed;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cosched_core::{AtExpiry, Cause, CpuSet, Nanos, Plan, Policy, ProgramId, Token, Wake, World};

use crate::common::reasons::ReasonSet;
use crate::common::unit::{Assignment, Denied, Placer, Sorted, Unit, only_settled, run_together};
use crate::descriptor::Descriptor;
use crate::gangs::quantum::{QuantumRule, Weights};
use crate::gangs::rounds::first_fit;
use crate::gangs::thread_limits::{LimitReason, LimitRule, ThreadLimits, only_learns};
use crate::kind::Options;
pub(crate) use ahead::{Share, shares};
use backfill::Backfill;
pub use reasons::MinwaitReason;
use slowed::Slowed;

/// The only wake-up of this policy.
const QUANTUM_ENDS: Token = Token(0);

/// Section 4.2.4.
pub(crate) const MINWAIT: Descriptor = Descriptor {
    round: Some(turns),
    gang_count: Some(gang_count),
    reasons: &[ReasonSet::of::<MinwaitReason>()],
    ..Descriptor::of_gangs(
        "minwait",
        "taking turns; the programs that have waited longest run, as many as fit",
        |options| Ok(Box::new(Minwait::new(options))),
    )
};

/// Sections 4.2 and 4.3; the algorithm is ours.
pub(crate) const ADAPTIVE_MINWAIT: Descriptor = Descriptor {
    limits_threads: true,
    reasons: &[ReasonSet::of::<MinwaitReason>(), ReasonSet::of::<LimitReason>()],
    params: &["gangs", "thread-limits"],
    ..Descriptor::of_gangs(
        "adaptive-minwait",
        "minwait, and chooses the thread counts of malleable programs in every turn",
        |options| Ok(Box::new(Minwait::adaptive(LimitRule::Product, options))),
    )
};

/// Section 4.2: an adaptive scheduler.
pub(crate) const REQUEST_MINWAIT: Descriptor = Descriptor {
    limits_threads: true,
    reasons: &[ReasonSet::of::<MinwaitReason>(), ReasonSet::of::<LimitReason>()],
    params: &["gangs", "thread-limits"],
    ..Descriptor::of_gangs(
        "request-minwait",
        "minwait, with the thread counts that malleable programs request in every turn",
        |options| Ok(Box::new(Minwait::adaptive(LimitRule::Request, options))),
    )
};

#[derive(Debug)]
pub(crate) struct Minwait {
    places: Placer,
    quantum: QuantumRule,
    sorted: Sorted,
    denied: Denied,
    /// Decides on thread counts, if the policy does.
    thread_limits: Option<ThreadLimits>,
    /// Backfills free CPUs, if the policy does.
    backfill: Option<Backfill>,
    /// The slowdowns of programs, if they decide on the order.
    slowed: Option<Slowed>,
    weighed: Weighed,
    /// The CPU assignment of this quantum.
    assignments: Vec<Assignment>,
    /// The programs that were told to wait.
    waiting: BTreeSet<ProgramId>,
    /// The CPUs that the quantum was made for.
    cpus: CpuSet,
    ends: Nanos,
    quanta: u64,
}

/// What a program's weight multiplies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Weighed {
    /// The time that it has waited.
    Waits,
    /// The length of its turns.
    Turns,
}

impl Minwait {
    pub(crate) fn new(options: &Options) -> Minwait {
        Minwait {
            places: Placer::new(options.placement, options.params.gangs),
            quantum: QuantumRule::new(options.quantum, options.params.gangs),
            sorted: Sorted::default(),
            denied: Denied::default(),
            thread_limits: None,
            backfill: None,
            slowed: None,
            weighed: Weighed::Waits,
            assignments: Vec::new(),
            waiting: BTreeSet::new(),
            cpus: CpuSet::EMPTY,
            ends: Nanos::NEVER,
            quanta: 0,
        }
    }

    /// A policy that also decides on thread counts.
    pub(crate) fn adaptive(rule: LimitRule, options: &Options) -> Minwait {
        let thread_limits = Some(ThreadLimits::new(rule, turns, options));
        Minwait { thread_limits, ..Minwait::new(options) }
    }

    /// A policy that backfills a gang's free CPUs, and spreads memory-bound programs.
    pub(crate) fn lending(options: &Options) -> Minwait {
        let sharing = Minwait::sharing(options);
        let places = sharing.places.spreading_misses(options.params.common.many_misses);
        Minwait { places, backfill: Some(Backfill::default()), ..sharing }
    }

    /// A policy in which programs share time by weight.
    pub(crate) fn sharing(options: &Options) -> Minwait {
        Minwait { weighed: Weighed::Turns, ..Minwait::new(options) }
    }

    /// A policy in which the programs with the largest slowdown come first.
    pub(crate) fn fair(options: &Options) -> Minwait {
        let slowed = Some(Slowed::new(options.params.gangs));
        Minwait { slowed, ..Minwait::new(options) }
    }

    /// Whether there are thread counts to decide on.
    fn decides(&self) -> bool {
        self.thread_limits.as_ref().is_some_and(ThreadLimits::any)
    }

    fn assigned(&self) -> BTreeSet<ProgramId> {
        self.assignments.iter().flat_map(|assignment| &assignment.members).copied().collect()
    }

    /// The heaviest of the units that have CPUs.
    fn heaviest(&self, units: &[Unit]) -> Option<usize> {
        let assigned = self.assigned();
        let has_cpus = |(_, unit): &(usize, &Unit)| unit.ids().any(|id| assigned.contains(&id));
        let running = units.iter().enumerate().filter(has_cpus);
        let heaviest = running.max_by(|(_, a), (_, b)| a.weight.total_cmp(&b.weight));
        heaviest.map(|(unit, _)| unit)
    }

    /// Frees the CPUs of programs that are gone.
    fn forget_the_gone(&mut self, units: &[Unit]) {
        let present: BTreeSet<ProgramId> = units.iter().flat_map(Unit::ids).collect();
        self.assignments
            .retain(|assignment| assignment.members.iter().any(|id| present.contains(id)));
        self.waiting.retain(|id| present.contains(id));
    }

    /// Whether a new gang has to be made.
    fn quantum_is_over(&self, causes: &[Cause], world: &World<'_>, units: &[Unit]) -> bool {
        let assigned = self.assigned();
        let torn = |unit: &Unit| {
            let mut assigned = unit.ids().map(|id| assigned.contains(&id));
            let first = assigned.next();
            assigned.any(|other| first != Some(other))
        };
        world.now >= self.ends
            || causes.contains(&Cause::Woke(QUANTUM_ENDS))
            || self.assignments.is_empty()
            || self.cpus != *world.cpus
            || units.iter().any(torn)
    }

    /// CPUs that are assigned to no program.
    fn free(&self, world: &World<'_>) -> CpuSet {
        self.assignments
            .iter()
            .fold(*world.cpus, |free, assignment| free.difference(&assignment.cpus))
    }

    /// How long a unit has waited for CPUs.
    fn waited(&self, unit: &Unit, world: &World<'_>) -> Nanos {
        self.backfill
            .as_ref()
            .map_or_else(|| unit.waiting(world), |backfill| backfill.waiting(unit, world))
    }

    /// The units that wait for CPUs, in the order of their turns, and whether it is an order by
    /// urgency: weights and slowdowns do not count where a unit would wait too long.
    fn ranked<'a>(
        &self,
        units: &'a [Unit],
        length: Nanos,
        world: &World<'_>,
    ) -> (Vec<WaitingUnit<'a>>, bool) {
        let assigned = self.assigned();
        let waits = units.iter().filter(|unit| !unit.ids().any(|id| assigned.contains(&id)));
        let waits =
            waits.map(|unit| WaitingUnit { unit, since: self.waited(unit, world), slowdown: None });
        let mut queue: Vec<WaitingUnit<'_>> = waits.collect();
        queue.sort_by_key(|waits| Reverse(waits.since));
        let by_quantum = self.quantum.longest_wait(units.len().saturating_sub(1), world.max_frozen);
        let by_rounds = self.slowed.as_ref().map(|slowed| slowed.longest_wait(length, units.len()));
        let limit = by_rounds.map_or(by_quantum, |by_rounds| by_quantum.min(by_rounds));
        let by_urgency = self.weighed == Weighed::Waits && !is_pressing(&queue, length, limit);
        if by_urgency {
            if let Some(slowed) = &self.slowed {
                slowed.judge(&mut queue, world);
            }
            queue.sort_by(|a, b| b.urgency().total_cmp(&a.urgency()));
        }
        (queue, by_urgency)
    }

    /// Assigns the free CPUs to the units that come first.
    fn assign(&mut self, units: &[Unit], length: Nanos, world: &World<'_>, plan: &mut Plan) {
        let free = self.free(world);
        if free.is_empty() {
            return;
        }
        let (queue, by_urgency) = self.ranked(units, length, world);
        let chosen = first_fit(queue.iter().map(|waits| waits.unit).enumerate(), free.len());
        let by_weight = by_urgency && self.slowed.is_none();
        let because = |waits: &WaitingUnit<'_>| match waits.slowdown {
            Some(slowdown) => {
                let slowdown = Some(slowdown).filter(|slowdown| slowdown.is_finite());
                MinwaitReason::SlowedMost { slowdown }
            }
            None => MinwaitReason::WaitedLongest {
                waited: waits.since,
                weight: Some(waits.unit.weight).filter(|weight| by_weight && *weight != 1.0),
            },
        };
        let gang = chosen.into_iter().map(|i| (queue[i].unit, because(&queue[i]).into())).collect();
        self.assignments.extend(run_together(gang, free, &mut self.places, world, plan));
    }

    /// Backfills the CPUs that are left, if the policy does.
    fn backfill(&mut self, units: &[Unit], world: &World<'_>, plan: &mut Plan) {
        let (assigned, free) = (self.assigned(), self.free(world));
        if let Some(backfill) = &mut self.backfill {
            backfill.update(&assigned, units);
            let others = units.iter().filter(|unit| !unit.ids().any(|id| assigned.contains(&id)));
            backfill.assign(&others.collect::<Vec<_>>(), &free, world, plan);
        }
    }

    /// Whether a program runs on backfilled CPUs.
    fn borrows(&self, id: ProgramId) -> bool {
        self.backfill.as_ref().is_some_and(|backfill| backfill.has(id))
    }

    /// Tells units without CPUs to wait.
    fn hold(&mut self, anew: bool, units: &[Unit], world: &World<'_>, plan: &mut Plan) {
        let taken: usize = self.assignments.iter().map(|assignment| assignment.cpus.len()).sum();
        let free = world.cpus.len().saturating_sub(taken) as u16;
        let assigned = self.assigned();
        let denied = if anew { self.denied.take() } else { BTreeSet::new() };
        for id in units.iter().flat_map(Unit::ids) {
            if assigned.contains(&id) || self.borrows(id) {
                self.waiting.remove(&id);
            } else if self.waiting.insert(id) || denied.contains(&id) {
                plan.freeze(id);
                plan.because(Some(id), MinwaitReason::DoesNotFit { free });
            }
        }
    }

    /// Sets the quantum's end. It has one as long as a program waits for it.
    fn time(&mut self, anew: bool, length: Nanos, world: &World<'_>, plan: &mut Plan) {
        let (before, now) = (self.ends, world.now);
        let none_waits =
            self.waiting.is_empty() && self.backfill.as_ref().is_none_or(Backfill::is_empty);
        if none_waits && (self.assignments.is_empty() || !self.decides()) {
            self.ends = Nanos::NEVER;
        } else if anew || before == Nanos::NEVER {
            self.ends = now + length;
        }
        if !self.assignments.is_empty() && (anew || (before == Nanos::NEVER && self.ends != before))
        {
            self.quanta += 1;
            let is_open = self.ends == Nanos::NEVER;
            let length = if is_open { Nanos::NEVER } else { self.ends.since(now) };
            plan.begin(cosched_core::Quantum { round: self.quanta, gang: 0, gangs: 1, length });
        }
        if self.ends != before {
            match &mut self.thread_limits {
                Some(thread_limits) => thread_limits.wake_at(self.ends, QUANTUM_ENDS, world, plan),
                None if self.slowed.is_some() => {
                    plan.wake.push(Wake {
                        token: QUANTUM_ENDS,
                        at: self.ends,
                        first: AtExpiry::Read,
                    });
                }
                None => plan.wake_at(self.ends, QUANTUM_ENDS),
            }
        }
    }
}

impl Policy for Minwait {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if let Some(thread_limits) = &mut self.thread_limits {
            thread_limits.learn(causes, world);
        }
        if only_settled(causes) || (self.thread_limits.is_some() && only_learns(causes)) {
            return;
        }
        if let Some(slowed) = &mut self.slowed {
            slowed.learn(causes, world, plan);
        }
        let mut sorted = std::mem::take(&mut self.sorted);
        self.denied.update(causes);
        if sorted.update(causes, world, plan) {
            self.forget_the_gone(&sorted.units);
            self.places.retain(world);
        }
        let anew = self.quantum_is_over(causes, world, &sorted.units);
        if anew {
            if self.ends <= world.now {
                self.quantum.ended_late(world.now - self.ends);
            }
            self.assignments.clear();
            self.backfill.iter_mut().for_each(Backfill::end);
            self.cpus = *world.cpus;
        }
        if let Some(thread_limits) = &mut self.thread_limits {
            match anew {
                true => _ = thread_limits.decide(&mut sorted.units, world, plan),
                false => thread_limits.fit(&mut sorted.units, world.cpus.len()),
            }
        }
        let units = &sorted.units;
        let mut weights = Weights::new(match self.weighed {
            Weighed::Waits => vec![1.0; units.len()],
            Weighed::Turns => units.iter().map(|unit| unit.weight).collect(),
        });
        let length = self.quantum.length(&mut weights, 0, world.max_frozen, plan);
        let length = match &self.thread_limits {
            Some(thread_limits) if length == Nanos::NEVER => thread_limits.quantum(),
            _ => length,
        };
        self.assign(units, length, world, plan);
        self.backfill(units, world, plan);
        self.hold(anew, units, world, plan);
        let length = match self.heaviest(units) {
            Some(turn) if self.weighed == Weighed::Turns => {
                self.quantum.length(&mut weights, turn, world.max_frozen, plan)
            }
            _ => length,
        };
        self.time(anew, length, world, plan);
        self.sorted = sorted;
    }
}

/// How many quanta it takes to serve every program once.
pub(crate) fn turns(sizes: &[usize], cpus: usize) -> f64 {
    sizes.iter().sum::<usize>() as f64 / cpus.max(1) as f64
}

/// Each program may have a quantum of its own, unless all run at once.
fn gang_count(sizes: &[usize], cpus: usize) -> usize {
    if turns(sizes, cpus) > 1.0 { sizes.len() } else { 1 }
}

struct WaitingUnit<'a> {
    unit: &'a Unit,
    since: Nanos,
    /// Its slowdown, if that decides.
    slowdown: Option<f64>,
}

impl WaitingUnit<'_> {
    /// The first unit is that with the largest slowdown, or the largest weighted waiting time.
    fn urgency(&self) -> f64 {
        self.slowdown.unwrap_or(self.since.0 as f64 * self.unit.weight)
    }
}

/// Whether weights have to be ignored for a quantum, so that every unit is served in time: the
/// units of `queue`, longest waits first, may be served one by one, each for a quantum.
fn is_pressing(queue: &[WaitingUnit<'_>], length: Nanos, limit: Nanos) -> bool {
    let quanta = 1u64..;
    queue.iter().zip(quanta).any(|(waits, quanta)| waits.since + length * quanta > limit)
}

#[cfg(test)]
mod tests;
