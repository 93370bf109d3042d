//! `faithful`: all threads of a program have one priority, and a slice by their waits for locks and
//! memory.
//!
//! *Problem.* A scheduler that ranks threads by their recent use of CPUs lets threads of a program
//! take CPUs from their own siblings, often from the one that holds the lock for which the others
//! wait. The preempted thread is ranked again, and takes a CPU again: *backstabbing* (section II).
//!
//! *Idea.* Siblings are equals: one class, one slice. The program as a whole determines how long
//! the slice is. Threads that mostly compute get short slices, so that no thread waits long for a
//! CPU. Threads that wait for locks or memory get long slices, so that the thread that has the lock
//! gets done ([`quanta`]).
//!
//! *Algorithm* (algorithm 1). A program starts as it would without cosched. When it has made its
//! threads, it has one more interval to prepare itself. Then its scaling factor is measured in each
//! interval, and the table gives its slice. A new slice is chosen only when the factor has moved by
//! more than [`RANGE`]. Only then is the reference factor replaced, so slow drifts add up.
//!
//! *Source.* The paper on faithful scheduling, sections III-A to III-D, eq. 1, table I, algorithm
//! 1. Ours:
//!
//! - *lock contention* is the share of the threads' time that they waited for locks. The paper
//!   takes the mean over the threads from `prstat`, which is equal where all live through the
//!   interval. Threads that did not run at all do not count: idle workers of a pool delay no
//!   thread;
//! - where cache references cannot be counted, the miss ratio of the program's profile counts, or
//!   else lock contention alone; the reason says so;
//! - a program that never has a second thread is left to the kernel;
//! - what is done is not Solaris' fixed-priority class, which Linux lacks, but one of several
//!   [`Actuator`]s. A [`guard`](crate::common::guard) finds out which helps, if any (`--no-guard`:
//!   the first one, always);
//! - learned settings of a program, from this run or earlier ones ([`Learned`]), are not tried
//!   again at first: they are applied, and compared with nothing only later;
//! - with the guard, and unless the user has fixed it, the [interval](Params::first) until the
//!   first decision is shorter than the later ones;
//! - the threads of a pipeline can have a slice for each of its [`stages`], if the user allows it;
//! - programs with weights share the CPUs by [`weights`].

pub(crate) mod options;
pub(crate) mod params;
mod quanta;
mod reasons;
mod stages;
mod weights;

use std::collections::BTreeMap;

use cosched_core::{
    Actuator, Cause, Counts, Directive, Learned, Measure, Nanos, Output, Plan, Policy, ProgramId,
    ProgramState, Sample, SchedulingChange, Settings, TrialResult, UserCommand, World,
    scaling_factor, to_nine_digits,
};

use crate::common::guard::{self, Act, Guard, Lengths};
use crate::common::reasons::{ReasonSet, SharedReason};
use crate::descriptor::{Descriptor, Learns, OptionGroup};
use crate::params::Params as AllParams;
pub use options::FaithfulOptions;
use params::Params;
pub use quanta::{Quanta, QuantaError};
pub use reasons::{FaithfulReason, at_locks};
use stages::{StageSlices, ThreadShares};

/// How far the scaling factor may move before a new slice is chosen: the width of a row of table I.
pub const RANGE: f64 = Params::DEFAULT.range;
/// Above this scaling factor a program hardly waits for locks or memory: nothing can be gained.
pub const NOTHING_TO_WIN: f64 = Params::DEFAULT.nothing_to_win;

/// The measurements for the scaling factor.
const MEASURES: [Measure; 3] = [Measure::LockWait, Measure::CpuTime, Measure::Counters];

/// The paper on faithful scheduling.
pub(crate) const FAITHFUL: Descriptor = Descriptor {
    attaches: true,
    weights: true,
    learns: Learns::Slices,
    reasons: &[ReasonSet::of::<FaithfulReason>()],
    options: &[&[OptionGroup::Measuring, OptionGroup::Slices]],
    params: &["faithful", "guard"],
    ..Descriptor::without_gangs(
        "faithful",
        "everything at once; the threads of a program are treated alike, and slices suit its locks \
         and misses",
        |options| Ok(Box::new(Faithful::new(options.faithful.clone(), &options.params))),
    )
};

#[derive(Debug)]
pub(crate) struct Faithful {
    options: FaithfulOptions,
    params: Params,
    programs: BTreeMap<ProgramId, MeasuredProgram>,
    guard: Option<Guard<Actuator>>,
    /// What is known of programs that have ended, by slot: the next ones there are the same.
    ended: BTreeMap<u16, Learned>,
    /// What was planned last for each program, without its weight.
    planned: BTreeMap<ProgramId, Settings>,
    /// The slices of the stages of each measured program.
    stages: BTreeMap<ProgramId, StageSlices>,
    /// The actuator that each program was given last.
    given: BTreeMap<ProgramId, Actuator>,
}

/// A program, and how often it is measured.
#[derive(Clone, Copy, Debug)]
struct MeasuredProgram {
    stage: Stage,
    interval: Nanos,
    /// How often its threads are counted while it has none beside its first.
    look: Nanos,
    /// Its learned setting.
    known: Learned,
}

/// A program's stage in algorithm 1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// It has not made its threads yet.
    Alone,
    /// It has made its threads, and prepares itself: the first interval does not count.
    Preparing,
    /// It is measured; no slice was chosen yet.
    Unknown,
    /// Its slice was chosen, at this scaling factor.
    Chosen { factor: f64, slice: Nanos },
}

impl Faithful {
    pub(crate) fn new(options: FaithfulOptions, params: &AllParams) -> Faithful {
        let Params { settle, moment, .. } = params.faithful;
        let lengths = Lengths { settle, moment };
        let guard = options.guard.then(|| Guard::new(lengths, params.guard));
        let (programs, ended, planned, stages, given) = Default::default();
        let params = params.faithful;
        Faithful { options, params, programs, guard, ended, planned, stages, given }
    }

    fn arrived(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let Some(program) = world.program(id) else { return };
        // An attached program keeps its settings for now.
        if program.state == ProgramState::New {
            plan.run(id, Settings::default());
            plan.because(Some(id), SharedReason::LeftToKernel);
            plan.output(id, Output::Scheduled(SchedulingChange::Original));
        }
        let Params { first, usual, .. } = self.params;
        let unless_fixed = if self.options.guard { first } else { usual };
        let interval = self.options.interval.unwrap_or(unless_fixed);
        let (stage, known, look) = (Stage::Alone, Learned::default(), Nanos::ZERO);
        self.programs.insert(id, MeasuredProgram { stage, interval, look, known });
        self.count_threads(id, world, plan);
    }

    /// Once a program has threads, it is measured. Until then it is looked at often: the paper's
    /// daemon sleeps "while program hasn't create its worker threads" (algorithm 1), for a time
    /// that it does not say. Here it is a part of the program's age, from [`Params::look`] to
    /// [`Params::latest`], so that workers are noticed late by no more than that, and a program
    /// that never makes any costs next to nothing. Many such programs share the looks of one.
    fn count_threads(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let Some(program) = world.program(id) else { return };
        let looked_at = self.programs.values().filter(|t| t.stage == Stage::Alone).count();
        let Some(tracked) = self.programs.get_mut(&id).filter(|t| t.stage == Stage::Alone) else {
            return;
        };
        if world.threads_of(program).len() > 1 {
            tracked.stage = Stage::Preparing;
            plan.measure(id, MEASURES, tracked.interval);
            plan.measure(id, [Measure::Threads], tracked.interval);
            return;
        }
        let Params { look, late, latest, .. } = self.params;
        let age = world.now.since(program.arrived);
        let least = look * looked_at as u64;
        let part = Nanos((age.0 as f64 * late) as u64);
        let next = part.min(latest).max(least).min(tracked.interval);
        if std::mem::replace(&mut tracked.look, next) != next {
            plan.measure(id, [Measure::Threads], next);
        }
    }

    fn sampled(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let Some(tracked) = self.programs.get_mut(&id) else { return };
        let before = match tracked.stage {
            Stage::Alone => return,
            Stage::Preparing => {
                tracked.stage = Stage::Unknown;
                return;
            }
            Stage::Unknown => None,
            Stage::Chosen { factor, .. } => Some(factor),
        };
        let Some(found) = IntervalShares::of(world, id, self.options.io_waits) else { return };
        let factor = found.scaling_factor();
        let range = self.params.range;
        let stages = self.stages.entry(id).or_default();
        let of_thread = |sample| shares(sample, self.options.io_waits);
        let threads: Vec<_> = active_threads(world, id).filter_map(of_thread).collect();
        stages.retain(|thread| world.thread(thread).is_some());
        stages.update(&threads, found.miss_ratio, &self.options.quanta, range);
        let is_pipeline = stages.range().is_some();
        let is_new = before.is_none_or(|before| to_nine_digits(factor - before).abs() > range);
        if !is_new {
            return;
        }
        let later = self.options.interval.unwrap_or(self.params.usual);
        if std::mem::replace(&mut tracked.interval, later) != later {
            plan.measure(id, [Measure::Threads], later);
            plan.measure(id, MEASURES, later);
        }
        let slice = self.options.quanta.slice(factor);
        tracked.stage = Stage::Chosen { factor, slice };
        let given = match &mut self.guard {
            Some(guard) => {
                let hope = factor <= self.params.nothing_to_win;
                let actuators = self.options.actuators.iter().filter(|_| hope).copied();
                let is_of_use = |actuator: &Actuator| match actuator {
                    Actuator::None => false,
                    Actuator::BatchStages => is_pipeline,
                    _ => true,
                };
                let actuators: Vec<_> = actuators.filter(is_of_use).collect();
                let recalled = recalled(&self.ended, &self.options, world, id)
                    .filter(|_| hope && tracked.known.is_empty());
                if let Some(recalled) = recalled {
                    tracked.known = recalled;
                    guard.adopt(id, recalled.in_force());
                    let actuator = recalled.in_force();
                    tell(id, FaithfulReason::Recalled { actuator }, plan);
                    plan.output(id, Output::Recalled);
                }
                let given = guard.chosen(id, actuators, world.now);
                if recalled.is_some() {
                    guard.skip(id, |actuator| tracked.known.has_tried(*actuator));
                }
                given
            }
            None => {
                let actuator = self.options.actuators.first().copied().unwrap_or(Actuator::None);
                plan.run(id, actuator.settings(slice, self.options.class));
                self.given.insert(id, actuator);
                actuator
            }
        };
        tell(id, FaithfulReason::Given { actuator: given }, plan);
        let IntervalShares { lock_contention, miss_ratio, profiled, io_wait } = found;
        let slice = FaithfulReason::Slice { slice, lock_contention, miss_ratio, profiled, io_wait };
        tell(id, slice, plan);
    }

    fn gone(&mut self, id: ProgramId, plan: &mut Plan) {
        let known = self.programs.remove(&id).map(|tracked| tracked.known);
        self.ended.extend(known.filter(|known| !known.is_empty()).map(|known| (id.slot, known)));
        self.planned.remove(&id);
        self.stages.remove(&id);
        self.given.remove(&id);
        if let Some(guard) = &mut self.guard {
            guard.forget(id, plan);
        }
    }

    /// Carries out the guard's acts, and gives the reasons.
    fn obey_guard(&mut self, plan: &mut Plan) {
        for (id, act) in self.guard.as_mut().map(Guard::acts).unwrap_or_default() {
            if let (Act::Keep(actuator, _) | Act::PutBack(actuator, ..), Some(tracked)) =
                (&act, self.programs.get_mut(&id))
            {
                let in_force = self.guard.as_ref().and_then(|guard| guard.in_force(id).copied());
                let (tried, in_force) = (*actuator, in_force.unwrap_or_default());
                let result = TrialResult::Actuator { tried, in_force };
                tracked.known = tracked.known.after(result);
                plan.output(id, Output::TrialEnded(result));
            }
            let stage = self.programs.get(&id).map(|tracked| tracked.stage);
            let why = match act {
                Act::Give(actuator) => {
                    if let Some(Stage::Chosen { slice, .. }) = stage {
                        plan.programs.retain(|(planned, _)| *planned != id);
                        plan.run(id, actuator.settings(slice, self.options.class));
                        self.given.insert(id, actuator);
                    }
                    continue;
                }
                Act::Try(actuator, against) => FaithfulReason::Tried { actuator, against },
                Act::Keep(actuator, progress) => FaithfulReason::Kept { actuator, progress },
                Act::PutBack(actuator, progress, pause) => {
                    FaithfulReason::PutBack { actuator, progress, pause }
                }
            };
            tell(id, why, plan);
        }
    }

    /// Gives the threads of pipelines the slices of their stages, where these are in force.
    fn give_stages(&mut self, world: &World<'_>, plan: &mut Plan) {
        for (id, stages) in &mut self.stages {
            stages.retain(|thread| world.thread(thread).is_some());
            let is_in_force = self.given.get(id) == Some(&Actuator::BatchStages);
            if let (true, Some((shortest, longest))) =
                (stages.settle(is_in_force, plan), stages.range())
            {
                if is_in_force {
                    plan.aside(*id, FaithfulReason::Stages { shortest, longest });
                }
            }
        }
    }

    /// Adds nice values for weights to the plan, and to earlier directives where the nice values
    /// have changed.
    fn weigh(&mut self, world: &World<'_>, plan: &mut Plan) {
        let nice = weights::nice_values(world.programs);
        for (id, directive) in &plan.programs {
            if let Directive::Run(settings) = directive {
                self.planned.insert(*id, *settings);
            }
        }
        for (program, nice) in world.programs.iter().zip(nice) {
            let Some(planned) = self.planned.get_mut(&program.id) else { continue };
            let has_changed = planned.nice != nice;
            planned.nice = nice;
            let in_plan = plan.programs.iter_mut().find(|(id, _)| *id == program.id);
            match in_plan {
                Some((_, Directive::Run(settings))) => *settings = *planned,
                None if has_changed => plan.run(program.id, *planned),
                _ => {}
            }
        }
    }
}

/// Gives a reason about a program, and what it says as an output.
fn tell(id: ProgramId, why: FaithfulReason, plan: &mut Plan) {
    plan.because(Some(id), why);
    why.scheduling().into_iter().for_each(|change| plan.output(id, Output::Scheduled(change)));
}

/// What is known of a program before anything was tried on it. Actuators that are not allowed now
/// do not count: earlier runs may have been allowed more.
fn recalled(
    ended: &BTreeMap<u16, Learned>,
    options: &FaithfulOptions,
    world: &World<'_>,
    id: ProgramId,
) -> Option<Learned> {
    let of_earlier_runs = world.program(id).filter(|_| !options.relearn);
    let earlier = || of_earlier_runs.map(|program| program.profile.learned.of_actuators());
    let allowed = [Actuator::None].iter().chain(&options.actuators);
    let is_allowed =
        |known: &Learned| allowed.clone().any(|actuator| *actuator == known.in_force());
    let known = ended.get(&id.slot).copied().or_else(earlier);
    known.filter(|known| !known.is_empty() && is_allowed(known))
}

impl Policy for Faithful {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        // Samples during a trial are of its moments, and not of an interval.
        let is_trying = self.guard.as_ref().is_some_and(Guard::is_trying);
        let is_moment_over = causes.contains(&Cause::Woke(guard::MOMENT));
        for cause in causes {
            match *cause {
                Cause::Arrived(id) => self.arrived(id, world, plan),
                Cause::ThreadsChanged(id) => self.count_threads(id, world, plan),
                Cause::Sampled(id) => {
                    match &mut self.guard {
                        Some(guard) if is_trying && !is_moment_over => guard.sampled(id, world),
                        Some(_) if is_trying => {}
                        _ => self.sampled(id, world, plan),
                    }
                    self.count_threads(id, world, plan);
                }
                Cause::Exited(id, _) | Cause::Commanded(UserCommand::Detach(id)) => {
                    self.gone(id, plan)
                }
                Cause::Woke(token) => {
                    if let Some(guard) = &mut self.guard {
                        guard.woke(token, world, plan);
                    }
                }
                _ => {}
            }
        }
        if let Some(guard) = &mut self.guard {
            guard.go_on(world, plan);
        }
        self.obey_guard(plan);
        self.give_stages(world, plan);
        self.weigh(world, plan);
    }
}

/// What an interval has shown of a program; shares, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IntervalShares {
    /// Share of its threads' time that they waited for locks.
    lock_contention: f64,
    /// Share of references to the last-level cache that missed, where it is known.
    miss_ratio: Option<f64>,
    /// Whether the miss ratio is that of solo runs, because nothing could be counted.
    profiled: bool,
    /// Share of its threads' time asleep for anything but locks, where that counts.
    io_wait: Option<f64>,
}

impl IntervalShares {
    /// What an interval has shown; `None` while no active thread has been seen.
    ///
    /// The paper extends to programs with much input and output "by considering how much time
    /// threads utilizing CPU, IO characteristics" (section V-E2). A thread that neither ran nor
    /// waited for a CPU or a lock slept for a file, a socket, a timer or another process. What of
    /// these it was, no kernel tells without tracing, so all of it counts (`io_waits`).
    fn of(world: &World<'_>, id: ProgramId, io_waits: bool) -> Option<IntervalShares> {
        let (mut waited, mut slept, mut all) = (0.0, 0.0, 0.0);
        for thread in active_threads(world, id) {
            if let Some(wait) = thread.lock_wait {
                waited += wait.as_secs_f64();
                slept += asleep(thread, wait).as_secs_f64();
                all += lived(thread).as_secs_f64();
            }
        }
        let mut own = world.samples.iter().filter(|sample| sample.program == id);
        let whole = own.find(|sample| sample.thread.is_none());
        let counted = whole.and_then(counted);
        let known = world.program(id).and_then(|program| program.profile.miss_ratio);
        (all > 0.0).then(|| IntervalShares {
            lock_contention: (waited / all).min(1.0),
            miss_ratio: counted.map_or(known, |counts| counts.miss_ratio()),
            profiled: counted.is_none() && known.is_some(),
            io_wait: io_waits.then(|| (slept / all).min(1.0)),
        })
    }

    /// Equation 1.
    fn scaling_factor(self) -> f64 {
        scaling_factor(self.lock_contention, self.miss_ratio, self.io_wait)
    }
}

/// The samples of a program's threads that ran or were ready to.
fn active_threads<'a>(world: &World<'a>, id: ProgramId) -> impl Iterator<Item = &'a Sample> {
    let samples: &'a [Sample] = world.samples;
    let of_threads = samples.iter().filter(move |s| s.program == id && s.thread.is_some());
    of_threads.filter(|sample| {
        sample.on_cpu > Nanos::ZERO || sample.run_delay.unwrap_or_default() > Nanos::ZERO
    })
}

/// The time that a thread was there and not frozen.
fn lived(thread: &Sample) -> Nanos {
    (thread.to - thread.from).since(thread.frozen)
}

/// The time that a thread slept for anything but locks.
fn asleep(thread: &Sample, at_locks: Nanos) -> Nanos {
    lived(thread).since(at_locks + thread.on_cpu + thread.run_delay.unwrap_or_default())
}

/// What an interval has shown of a thread, where its waits are known.
fn shares(sample: &Sample, io_waits: bool) -> Option<ThreadShares> {
    let (id, wait, lived) = (sample.thread?, sample.lock_wait?, lived(sample));
    let share = |time: Nanos| (time.as_secs_f64() / lived.as_secs_f64()).min(1.0);
    (lived > Nanos::ZERO).then(|| ThreadShares {
        id,
        at_locks: share(wait),
        asleep: io_waits.then(|| share(asleep(sample, wait))),
    })
}

/// Counts of the last-level cache, if there are any.
fn counted(sample: &Sample) -> Option<Counts> {
    let Sample { instructions, cycles, llc_references, llc_misses, quality, .. } = *sample;
    llc_references.and(llc_misses)?;
    Some(Counts { instructions, cycles, llc_references, llc_misses, quality })
}

#[cfg(test)]
mod guard_tests;
#[cfg(test)]
mod tests;
