//! `fair-progress`: programs of equal weight suffer the same slowdown.
//!
//! *Problem.* Programs that get equal time do not make equal progress. A program that needs the
//! memory bus or the cache is slowed down by its co-runners, and a program that needs neither is
//! not. A program's progress alone cannot be seen while others run.
//!
//! *Idea.* Estimate it from quanta with little interference, for all quanta of the same phase. Sum
//! up for each program the solo time that its work was worth, and give the next quantum to the
//! programs with the least. Where nothing is known of a phase, make a short quantum with little
//! interference (*training*), as often as is allowed. That limit trades fairness against
//! throughput.
//!
//! *Algorithm.* At each quantum's end every program is frozen, so that all measurements belong to
//! that quantum alone. For each program that ran, its [`segment`] is examined. Is it one of [low
//! contention](contention)? Which [phase](phases) is it of, by its [block vector](vector)? What is
//! it worth alone ([`tracked`])? Then one of two things follows. Either there is a
//! [training](training) quantum for the candidate of which least is known, with the co-runners
//! that [colours](colour) allow. This requires that the [overhead] is within its limit, and
//! training is [in sequence](sequence) where [prediction](predictor) does not work. Or the programs
//! with the smallest progress [run](selection). [Traffic](mapping) decides on their CPUs.
//!
//! *Source.* The paper on fair-progress scheduling (FPS), without its I/O, which it leaves open.
//! Each module names its section, and what is ours. Ours here:
//!
//! - while all programs fit, there are no quanta, and nothing is measured. A program that arrives
//!   when there is no room begins with a pause, so that its first quantum is clean;
//! - CPUs that become free within a quantum go at once to the programs with the least progress (not
//!   during training). What is then measured counts as low contention only by the first criterion;
//! - programs of one group are one unit: the least progress of any counts;
//! - programs that another process [stops](stopped) neither gain progress by the stop nor fall
//!   behind;
//! - another run of a repeated program goes on with the progress of the one before;
//! - there is no training while it would keep a program frozen for too long;
//! - work may be in ticks, where instructions are not counted ([`segment`]). Speeds are kept [by
//!   co-runners](co_runners), where traffic is not known.

mod account;
mod co_runners;
mod colour;
mod contention;
mod evidence;
mod knowledge;
mod mapping;
pub(crate) mod options;
mod overhead;
pub(crate) mod params;
mod phases;
mod predictor;
mod present;
mod reasons;
mod segment;
mod selection;
mod sequence;
mod stopped;
mod tracked;
mod training;
mod vector;

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{
    AtExpiry, Cause, CpuSet, Measure, Nanos, Output, Plan, Policy, ProgramId, Settings, Token,
    UserCommand, Wake, World,
};

use crate::common::reasons::{ReasonSet, SharedReason};
use crate::common::unit::{Denied, Placer, Sorted, Unit, divided, only_settled, settings};
use crate::descriptor::{Descriptor, Learns, OF_GANGS, OptionGroup};
use crate::gangs::greedy;
use crate::gangs::placement::Placement;
use crate::gangs::quantum::{QuantumRule, Weights};
use crate::kind::Options;
use knowledge::{Knowledge, TrainingTarget};
use mapping::{MappedProgram, places};
pub use options::FairOptions;
use params::Params;
use present::{Present, RunningUnit, Trained};
pub use reasons::FairReason;
use selection::{EligibleUnit, select};

/// The only wake-up of this policy.
const QUANTUM_ENDS: Token = Token(0);
/// What is read of each program at this wake-up.
const MEASURES: [Measure; 3] = [Measure::CpuTime, Measure::Counters, Measure::Progress];

/// The paper on fair-progress scheduling.
pub(crate) const FAIR_PROGRESS: Descriptor = Descriptor {
    learns: Learns::SoloSpeeds,
    reasons: &[ReasonSet::of::<FairReason>()],
    options: &[OF_GANGS, &[OptionGroup::Slowdowns, OptionGroup::Equality]],
    params: &["gangs", "fair-progress"],
    ..Descriptor::of_gangs(
        "fair-progress",
        "taking turns; the programs with the least progress run, compared with a solo run",
        |options| Ok(Box::new(FairProgress::new(options))),
    )
};

#[derive(Debug)]
pub(crate) struct FairProgress {
    known: Knowledge,
    placement: Placement,
    places: Placer,
    quantum: QuantumRule,
    sorted: Sorted,
    denied: Denied,
    /// The CPU assignment of the programs that run.
    assignments: Vec<RunningUnit>,
    /// The programs that were told to wait, and whether each waits for the training of another one.
    waiting: BTreeMap<ProgramId, bool>,
    /// The CPUs of the CPU assignment.
    cpus: CpuSet,
    present: Present,
    quanta: u64,
    params: Params,
}

impl FairProgress {
    pub(crate) fn new(options: &Options) -> FairProgress {
        FairProgress {
            known: Knowledge::new(options),
            placement: options.placement,
            places: Placer::new(options.placement, options.params.gangs),
            quantum: QuantumRule::new(options.quantum, options.params.gangs),
            sorted: Sorted::default(),
            denied: Denied::default(),
            assignments: Vec::new(),
            waiting: BTreeMap::new(),
            cpus: CpuSet::EMPTY,
            present: Present::NONE,
            quanta: 0,
            params: options.params.fair_progress,
        }
    }

    fn arrivals_and_ends(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let comes_again = |id: ProgramId| causes.contains(&Cause::Arrived(id.next()));
        let was_there = |id: ProgramId| {
            let is_before =
                |cause: &Cause| matches!(cause, Cause::Exited(before, _) if before.next() == id);
            causes.iter().any(is_before)
        };
        for cause in causes {
            match *cause {
                Cause::Arrived(id) => {
                    if !was_there(id) {
                        self.known.add(id);
                    }
                    let phases = self.known.options.phases.then_some(Measure::InstructionPointers);
                    let alone = self.known.options.optimal.then_some(Measure::Alone);
                    let measures = MEASURES.into_iter().chain(phases).chain(alone);
                    plan.measure(id, measures, Nanos::NEVER);
                }
                Cause::Exited(id, _) if comes_again(id) => {
                    self.known.repeat(id, self.unmeasured(id, world.now), world);
                }
                Cause::Exited(id, _) | Cause::Commanded(UserCommand::Detach(id)) => {
                    self.known.forget(id);
                }
                _ => {}
            }
        }
    }

    /// How many seconds of the present quantum a program has run that has just ended.
    fn unmeasured(&self, id: ProgramId, now: Nanos) -> f64 {
        let assignment =
            self.assignments.iter().find(|assignment| assignment.members.contains(&id));
        let is_quantum = self.present.ends != Nanos::NEVER && !self.present.opens;
        assignment
            .filter(|_| is_quantum)
            .map_or(0.0, |assignment| now.since(assignment.since).as_secs_f64())
    }

    /// Frees the CPUs of programs that are gone.
    fn forget_the_gone(&mut self, units: &[Unit], now: Nanos) {
        let present: BTreeSet<ProgramId> = units.iter().flat_map(Unit::ids).collect();
        let is_there = |id: &ProgramId| present.contains(id);
        self.present.disturbed |= self.assigned().iter().any(|id| !is_there(id));
        self.assignments.retain(|assignment| assignment.members.iter().any(is_there));
        self.waiting.retain(|id, _| is_there(id));
        let target = self.present.trained.as_ref();
        if target.is_some_and(|trained| !trained.members.iter().all(is_there)) {
            self.end_training(now);
        }
    }

    fn assigned(&self) -> BTreeSet<ProgramId> {
        self.assignments.iter().flat_map(|assignment| &assignment.members).copied().collect()
    }

    /// Ends the training that is under way, if any, and returns the programs that were trained.
    fn end_training(&mut self, now: Nanos) -> Vec<ProgramId> {
        let Some(trained) = self.present.trained.take() else { return Vec::new() };
        let seconds = (now - self.present.began).as_secs_f64();
        self.known.trained(&trained.members, trained.idle, seconds);
        trained.members
    }

    /// Begins a quantum, and chooses the programs that run in it.
    fn begin(&mut self, sorted: &Sorted, clean: bool, world: &World<'_>, plan: &mut Plan) {
        let units = &sorted.units[..];
        if self.present.ends <= world.now && !self.present.opens {
            self.quantum.ended_late(world.now - self.present.ends);
        }
        self.end_training(world.now);
        self.assignments.clear();
        self.cpus = *world.cpus;
        let sizes: Vec<usize> = units.iter().map(|unit| unit.threads).collect();
        let turns = greedy::turns(&sizes, world.cpus.len()) as usize;
        let mut weights = Weights::new(vec![1.0; turns + 1]);
        let whole = self.quantum.length(&mut weights, 0, world.max_frozen, plan);
        let limit = self.quantum.longest_wait(turns, world.max_frozen);
        let waited = |unit: &Unit| unit.waiting(world);
        let part = (whole / self.params.part).max(self.quantum.shortest());
        let always = self.known.always_there(&sorted.unfreezable, world);
        let target = self.known.target(units, world.cpus.len(), always).map(|target| {
            let is_long = target.sequential || target.lacks > part.as_secs_f64();
            (target, if is_long { whole } else { part })
        });
        let in_time =
            |length: Nanos| units.iter().all(|unit| waited(unit) + length + whole <= limit);
        let (chosen, length, trained) = match target.filter(|(_, length)| in_time(*length)) {
            Some((TrainingTarget { unit, sequential, .. }, length)) => {
                let chosen = self.known.around(unit, units, length, world.cpus.len(), always);
                (chosen, length, Some(sequential))
            }
            None => {
                let progress = |unit| EligibleUnit {
                    unit,
                    progress: self.known.progress(unit),
                    waited: waited(unit),
                };
                let all: Vec<EligibleUnit<'_>> = units.iter().map(progress).collect();
                (self.known.select(&all, world.cpus.len(), whole, limit), whole, None)
            }
        };
        let taken: usize = chosen.iter().map(|i| units[*i].threads).sum();
        let idle = world.cpus.len().saturating_sub(taken);
        let gang: Vec<(&Unit, FairReason)> = chosen
            .iter()
            .enumerate()
            .map(|(position, i)| match (position, trained) {
                (0, Some(sequential)) => {
                    (&units[*i], FairReason::Trained { sequential, idle: idle as u16 })
                }
                (_, Some(_)) => (&units[*i], FairReason::WithTrained),
                (_, None) => (&units[*i], self.least_progress(&units[*i], world)),
            })
            .collect();
        self.present = Present {
            began: world.now,
            ends: world.now + length,
            trained: trained
                .and(gang.first())
                .map(|(unit, _)| Trained { members: unit.ids().collect(), idle }),
            disturbed: !clean,
            opens: false,
        };
        self.assign(&gang, trained.map(|_| 0), world, plan);
        self.quanta += 1;
        plan.begin(cosched_core::Quantum { round: self.quanta, gang: 0, gangs: 1, length });
        self.wake(plan);
    }

    fn least_progress(&self, unit: &Unit, world: &World<'_>) -> FairReason {
        FairReason::LeastProgress {
            progress: span(self.known.progress(unit)),
            coverage: self.known.coverage(unit),
            slowdown: self.known.slowdown(unit, world),
        }
    }

    fn wake(&self, plan: &mut Plan) {
        let first = AtExpiry::FreezeAndRead;
        plan.wake.push(Wake { token: QUANTUM_ENDS, at: self.present.ends, first });
    }

    fn assign(
        &mut self,
        gang: &[(&Unit, FairReason)],
        trained: Option<usize>,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        let free = self.free(world);
        let member = |(unit, _): &(&Unit, FairReason)| MappedProgram {
            cpus: unit.threads,
            traffic: self.known.traffic(unit),
            last: unit.last_cpus(world),
        };
        let members: Vec<MappedProgram> = gang.iter().map(member).collect();
        let World { cpus, topology, .. } = world;
        let found = places(&members, cpus, free, trained, self.placement, topology);
        for ((unit, why), cpus) in gang.iter().zip(found) {
            // The topology lacks some of the CPUs: better unplaced than not run.
            let cpus = cpus.unwrap_or(*world.cpus);
            for (member, cpus) in divided(unit, cpus, &mut self.places, world) {
                plan.run(
                    member.id,
                    Settings { thread_limit: member.thread_limit, ..settings(cpus, world) },
                );
                tell(member.id, *why, plan);
                self.waiting.remove(&member.id);
            }
            let members = unit.ids().collect();
            self.assignments.push(RunningUnit {
                members,
                cpus,
                requested: unit.threads,
                since: world.now,
            });
        }
    }

    /// CPUs that are assigned to no program.
    fn free(&self, world: &World<'_>) -> CpuSet {
        let given = self.assignments.iter();
        given.fold(*world.cpus, |free, assignment| free.difference(&assignment.cpus))
    }

    /// Units without CPUs.
    fn standing<'a>(&self, units: &'a [Unit]) -> Vec<&'a Unit> {
        let assigned = self.assigned();
        units.iter().filter(|unit| !unit.ids().any(|id| assigned.contains(&id))).collect()
    }

    /// Gives free CPUs to the programs with the least progress.
    fn fill(&mut self, units: &[Unit], world: &World<'_>, plan: &mut Plan) {
        let free = self.free(world);
        if free.is_empty() || self.present.trained.is_some() {
            return;
        }
        let standing = self.standing(units);
        let waits =
            |unit| EligibleUnit { unit, progress: self.known.progress(unit), waited: Nanos::ZERO };
        let all: Vec<EligibleUnit<'_>> = standing.iter().copied().map(waits).collect();
        let chosen = select(&all, free.len(), Nanos::ZERO, Nanos::NEVER);
        let gang: Vec<(&Unit, FairReason)> = chosen
            .iter()
            .map(|i| (standing[*i], self.least_progress(standing[*i], world)))
            .collect();
        self.present.disturbed |= !gang.is_empty();
        self.assign(&gang, None, world, plan);
    }

    /// Tells units without CPUs to wait, and gives the reason again where it has changed.
    fn hold(&mut self, anew: bool, units: &[Unit], world: &World<'_>, plan: &mut Plan) {
        let denied = if anew { self.denied.take() } else { BTreeSet::new() };
        let for_training = self.present.trained.is_some();
        let mut ahead = self.assigned().len();
        for unit in self.standing(units) {
            let progress = self.known.progress(unit);
            let why = match for_training {
                true => Some(FairReason::AwaitsTraining),
                // A unit that has made no progress is not ahead of any other.
                false if progress <= 0.0 => None,
                false => Some(FairReason::MoreProgress {
                    progress: span(progress),
                    slowdown: self.known.slowdown(unit, world),
                }),
            };
            let queued = SharedReason::Queued { ahead: ahead as u16 };
            ahead += if progress <= 0.0 { unit.members.len() } else { 0 };
            for id in unit.ids() {
                let last_sent = self.waiting.insert(id, for_training);
                let freezes = last_sent.is_none() || denied.contains(&id);
                if freezes {
                    plan.freeze(id);
                }
                if freezes || last_sent != Some(for_training) {
                    match why {
                        Some(why) => tell(id, why, plan),
                        None => plan.because(Some(id), queued),
                    }
                }
            }
        }
    }

    /// All programs fit: nothing has to be decided until another program arrives.
    fn let_all_run(&mut self, units: &[Unit], world: &World<'_>, plan: &mut Plan) {
        self.end_training(world.now);
        if self.present.ends != Nanos::NEVER {
            plan.wake_at(Nanos::NEVER, QUANTUM_ENDS);
        }
        self.present = Present::NONE;
        self.cpus = *world.cpus;
        let standing = self.standing(units);
        let gang: Vec<(&Unit, FairReason)> =
            standing.into_iter().map(|unit| (unit, self.least_progress(unit, world))).collect();
        self.assign(&gang, None, world, plan);
    }

    /// Whether programs of one group are apart.
    fn is_torn(&self, units: &[Unit]) -> bool {
        let assigned = self.assigned();
        units.iter().any(|unit| {
            let there = unit.ids().filter(|id| assigned.contains(id)).count();
            there != 0 && there != unit.members.len()
        })
    }

    /// Whether every program with CPUs requests as many as when it got them.
    fn assignments_hold(&self, units: &[Unit]) -> bool {
        let unit_of = |id: &ProgramId| units.iter().find(|unit| unit.ids().any(|own| own == *id));
        self.assignments.iter().all(|assignment| {
            let unit = assignment.members.first().and_then(unit_of);
            unit.is_none_or(|unit| unit.threads == assignment.requested)
        })
    }
}

/// Gives a reason about a program, and what it says as an output.
fn tell(id: ProgramId, why: FairReason, plan: &mut Plan) {
    plan.because(Some(id), why);
    if let Some(output) = why.output() {
        plan.output(id, output);
    }
}

impl Policy for FairProgress {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if only_settled(causes) {
            return;
        }
        self.present.disturbed |= self.known.notice_stops(world);
        self.arrivals_and_ends(causes, world, plan);
        let mut sorted = std::mem::take(&mut self.sorted);
        self.denied.update(causes);
        if sorted.update(causes, world, plan) {
            self.forget_the_gone(&sorted.units, world.now);
            self.places.retain(world);
        }
        let units = &sorted.units;
        let is_over = causes.contains(&Cause::Woke(QUANTUM_ENDS));
        if is_over {
            if !self.present.opens {
                let trained = self.end_training(world.now);
                self.known.learn(units, world, self.present.disturbed, &trained);
                for id in world.programs.iter().map(|program| program.id) {
                    let estimates = self.known.estimates(id).map(Output::Estimated);
                    estimates.into_iter().for_each(|estimates| plan.output(id, estimates));
                }
            }
            self.known.stopped.begin_quantum();
        }
        let is_other =
            self.cpus != *world.cpus || self.is_torn(units) || !self.assignments_hold(units);
        if is_other {
            self.present.disturbed |= !self.assignments.is_empty();
            self.assignments.clear();
        }
        let requested: usize = units.iter().map(|unit| unit.threads).sum();
        if requested <= world.cpus.len() {
            self.let_all_run(units, world, plan);
        } else if is_over || self.assignments.is_empty() {
            let clean = is_over || !self.present.disturbed;
            self.begin(&sorted, clean, world, plan);
            self.hold(true, units, world, plan);
        } else if self.present.ends == Nanos::NEVER {
            self.present = Present { ends: world.now + Nanos(1), opens: true, ..Present::NONE };
            self.wake(plan);
            self.hold(false, units, world, plan);
        } else {
            self.fill(units, world, plan);
            self.hold(false, units, world, plan);
        }
        self.sorted = sorted;
    }
}

fn span(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests;
