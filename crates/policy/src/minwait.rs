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
//! - while every program runs there are no quanta, and no wake-ups;
//! - optionally (used by [`auto`](crate::auto)), a gang's free CPUs are [backfilled](loan);
//! - optionally (used by the goal `fair`), the programs with the largest [slowdown](slowed) come
//!   first.
//!
//! # `adaptive-minwait`
//!
//! Like `minwait`, with thread counts of malleable programs that are chosen at every quantum
//! ([`grants`](crate::grants)). There are no rounds; serving every program once takes about as many
//! quanta as all counts together fill the machine, at least one. A program that arrives within a
//! quantum has an even share until the next one. While every program runs, there are quanta as
//! well, since requests may change.

mod ahead;
mod loan;
mod slowed;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cosched_core::{
    AtExpiry, Cause, CpuSet, Nanos, Plan, Policy, ProgramId, Token, Wake, Why, World,
};

use crate::grants::{Grants, only_learns};
use crate::kind::Options;
use crate::quantum::{Quantum, Weights};
use crate::rounds::first_fit;
use crate::unit::{Denied, Places, Seat, Sorted, Unfreezable, Unit, only_settled, run_together};
pub(crate) use ahead::{Share, shares};
use loan::Loan;
use slowed::Slowed;

/// The only wake-up of this policy.
const QUANTUM_ENDS: Token = Token(0);

/// The policy `minwait`.
#[derive(Debug)]
pub(crate) struct Minwait {
    places: Places,
    quantum: Quantum,
    sorted: Sorted,
    unfreezable: Unfreezable,
    denied: Denied,
    /// Decides on thread counts, if the policy does.
    grants: Option<Grants>,
    /// Backfills free CPUs, if the policy does.
    loan: Option<Loan>,
    /// The slowdowns of programs, if they decide on the order.
    slowed: Option<Slowed>,
    /// The CPU assignment of this quantum.
    seats: Vec<Seat>,
    /// The programs that were told to wait.
    waiting: BTreeSet<ProgramId>,
    /// The CPUs that the quantum was made for.
    cpus: CpuSet,
    ends: Nanos,
    quanta: u64,
}

impl Minwait {
    pub(crate) fn new(options: &Options) -> Minwait {
        Minwait {
            places: Places::new(options.placement),
            quantum: Quantum::new(options.quantum),
            sorted: Sorted::default(),
            unfreezable: Unfreezable::default(),
            denied: Denied::default(),
            grants: None,
            loan: None,
            slowed: None,
            seats: Vec::new(),
            waiting: BTreeSet::new(),
            cpus: CpuSet::EMPTY,
            ends: Nanos::NEVER,
            quanta: 0,
        }
    }

    /// A policy that also decides on thread counts.
    pub(crate) fn adaptive(options: &Options) -> Minwait {
        let grants = Some(Grants::new(turns, options.quantum));
        Minwait { grants, ..Minwait::new(options) }
    }

    /// A policy that backfills a gang's free CPUs, and spreads memory-bound programs.
    pub(crate) fn lending(options: &Options) -> Minwait {
        let places = Places::spreading_misses(options.placement);
        Minwait { places, loan: Some(Loan::default()), ..Minwait::new(options) }
    }

    /// A policy in which the programs with the largest slowdown come first.
    pub(crate) fn fair(options: &Options) -> Minwait {
        Minwait { slowed: Some(Slowed::default()), ..Minwait::new(options) }
    }

    /// Whether there are thread counts to decide on.
    fn decides(&self) -> bool {
        self.grants.as_ref().is_some_and(Grants::any)
    }

    fn seated(&self) -> BTreeSet<ProgramId> {
        self.seats.iter().flat_map(|seat| &seat.members).copied().collect()
    }

    /// Frees the CPUs of programs that are gone.
    fn forget_the_gone(&mut self, units: &[Unit]) {
        let present: BTreeSet<ProgramId> = units.iter().flat_map(Unit::ids).collect();
        self.seats.retain(|seat| seat.members.iter().any(|id| present.contains(id)));
        self.waiting.retain(|id| present.contains(id));
    }

    /// Whether a new gang has to be made.
    fn quantum_is_over(&self, causes: &[Cause], world: &World<'_>, units: &[Unit]) -> bool {
        let seated = self.seated();
        let torn = |unit: &Unit| {
            let mut seated = unit.ids().map(|id| seated.contains(&id));
            let first = seated.next();
            seated.any(|other| first != Some(other))
        };
        world.now >= self.ends
            || causes.contains(&Cause::Woke(QUANTUM_ENDS))
            || self.seats.is_empty()
            || self.cpus != *world.cpus
            || units.iter().any(torn)
    }

    /// CPUs that are assigned to no program.
    fn free(&self, world: &World<'_>) -> CpuSet {
        self.seats.iter().fold(*world.cpus, |free, seat| free.difference(&seat.cpus))
    }

    /// How long a unit has waited for CPUs.
    fn waited(&self, unit: &Unit, world: &World<'_>) -> Nanos {
        self.loan.as_ref().map_or_else(|| unit.waiting(world), |loan| loan.waiting(unit, world))
    }

    /// Assigns the free CPUs to the units that have waited longest.
    fn seat(&mut self, units: &[Unit], length: Nanos, world: &World<'_>, plan: &mut Plan) {
        let free = self.free(world);
        if free.is_empty() {
            return;
        }
        let seated = self.seated();
        let waits = units.iter().filter(|unit| !unit.ids().any(|id| seated.contains(&id)));
        let waits =
            waits.map(|unit| Waits { unit, since: self.waited(unit, world), slowdown: None });
        let mut queue: Vec<Waits<'_>> = waits.collect();
        queue.sort_by_key(|waits| Reverse(waits.since));
        let limit = self.quantum.longest_wait(units.len().saturating_sub(1), world.max_frozen);
        if !is_pressing(&queue, length, limit) {
            if let Some(slowed) = &self.slowed {
                slowed.judge(&mut queue, world);
            }
            queue.sort_by(|a, b| b.urgency().total_cmp(&a.urgency()));
        }
        let chosen = first_fit(queue.iter().map(|waits| waits.unit).enumerate(), free.len());
        let because = |waits: &Waits<'_>| match waits.slowdown {
            Some(slowdown) => {
                Why::SlowedMost { slowdown: Some(slowdown).filter(|slowdown| slowdown.is_finite()) }
            }
            None => Why::WaitedLongest { waited: waits.since },
        };
        let gang = chosen.into_iter().map(|i| (queue[i].unit, because(&queue[i]))).collect();
        self.seats.extend(run_together(gang, free, &mut self.places, world, plan));
    }

    /// Backfills the CPUs that are left, if the policy does.
    fn lend(&mut self, units: &[Unit], world: &World<'_>, plan: &mut Plan) {
        let (seated, free) = (self.seated(), self.free(world));
        if let Some(loan) = &mut self.loan {
            loan.update(&seated, units);
            let others = units.iter().filter(|unit| !unit.ids().any(|id| seated.contains(&id)));
            loan.lend(&others.collect::<Vec<_>>(), &free, world, plan);
        }
    }

    /// Whether a program runs on backfilled CPUs.
    fn borrows(&self, id: ProgramId) -> bool {
        self.loan.as_ref().is_some_and(|loan| loan.has(id))
    }

    /// Tells units without CPUs to wait.
    fn hold(&mut self, anew: bool, units: &[Unit], world: &World<'_>, plan: &mut Plan) {
        let taken: usize = self.seats.iter().map(|seat| seat.cpus.len()).sum();
        let free = world.cpus.len().saturating_sub(taken) as u16;
        let seated = self.seated();
        let denied = if anew { self.denied.take() } else { BTreeSet::new() };
        for id in units.iter().flat_map(Unit::ids) {
            if seated.contains(&id) || self.borrows(id) {
                self.waiting.remove(&id);
            } else if self.waiting.insert(id) || denied.contains(&id) {
                plan.freeze(id);
                plan.because(Some(id), Why::DoesNotFit { free });
            }
        }
    }

    /// Sets the quantum's end. It has one as long as a program waits for it.
    fn time(&mut self, anew: bool, length: Nanos, world: &World<'_>, plan: &mut Plan) {
        let (before, now) = (self.ends, world.now);
        let nobody_waits = self.waiting.is_empty() && self.loan.as_ref().is_none_or(Loan::is_empty);
        if nobody_waits && (self.seats.is_empty() || !self.decides()) {
            self.ends = Nanos::NEVER;
        } else if anew || before == Nanos::NEVER {
            self.ends = now + length;
        }
        if !self.seats.is_empty() && (anew || (before == Nanos::NEVER && self.ends != before)) {
            self.quanta += 1;
            let is_open = self.ends == Nanos::NEVER;
            let length = if is_open { Nanos::NEVER } else { self.ends.since(now) };
            plan.because(None, Why::Quantum { round: self.quanta, gang: 0, gangs: 1, length });
        }
        if self.ends != before {
            match &mut self.grants {
                Some(grants) => grants.wake_at(self.ends, QUANTUM_ENDS, world, plan),
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
        if let Some(grants) = &mut self.grants {
            grants.learn(causes, world);
        }
        if only_settled(causes) || (self.grants.is_some() && only_learns(causes)) {
            return;
        }
        if let Some(slowed) = &mut self.slowed {
            slowed.learn(causes, world, plan);
        }
        let mut sorted = std::mem::take(&mut self.sorted);
        self.denied.update(causes);
        if sorted.update(causes, world) {
            self.unfreezable.run(&sorted.unfreezable, plan);
            self.forget_the_gone(&sorted.units);
            self.places.retain(world);
        }
        let anew = self.quantum_is_over(causes, world, &sorted.units);
        if anew {
            if self.ends <= world.now {
                self.quantum.ended_late(world.now - self.ends);
            }
            self.seats.clear();
            self.loan.iter_mut().for_each(Loan::end);
            self.cpus = *world.cpus;
        }
        if let Some(grants) = &mut self.grants {
            match anew {
                true => _ = grants.decide(&mut sorted.units, world, plan),
                false => grants.fit(&mut sorted.units, world.cpus.len()),
            }
        }
        let units = &sorted.units;
        let mut weights = Weights::new(vec![1.0; units.len()]);
        let length = self.quantum.length(&mut weights, 0, world.max_frozen, plan);
        let length = match &self.grants {
            Some(grants) if length == Nanos::NEVER => grants.quantum(),
            _ => length,
        };
        self.seat(units, length, world, plan);
        self.lend(units, world, plan);
        self.hold(anew, units, world, plan);
        self.time(anew, length, world, plan);
        self.sorted = sorted;
    }
}

/// How many quanta it takes to serve every program once.
pub(crate) fn turns(sizes: &[usize], cpus: usize) -> f64 {
    sizes.iter().sum::<usize>() as f64 / cpus.max(1) as f64
}

/// A unit that waits.
struct Waits<'a> {
    unit: &'a Unit,
    since: Nanos,
    /// Its slowdown, if that decides.
    slowdown: Option<f64>,
}

impl Waits<'_> {
    /// The first unit is that with the highest weighted waiting time, or weighted slowdown.
    fn urgency(&self) -> f64 {
        self.slowdown.unwrap_or(self.since.0 as f64) * self.unit.weight
    }
}

/// Whether weights have to be ignored for a quantum, so that every unit is served in time: the
/// units of `queue`, longest waits first, may be served one by one, each for a quantum.
fn is_pressing(queue: &[Waits<'_>], length: Nanos, limit: Nanos) -> bool {
    let quanta = 1u64..;
    queue.iter().zip(quanta).any(|(waits, quanta)| waits.since + length * quanta > limit)
}

#[cfg(test)]
mod tests;
