//! What is known of all programs together, and the decisions on the next quantum.
//!
//! *Source.* The FPS paper: what a quantum shows, sections 4.1 and 4.2; which program is trained
//! next, sections 4.3 to 4.5; how much training there may be, section 5. Ours: programs of one
//! group are one unit, and it is alone when only they run. The least progress and the least
//! coverage of any of them count, and the traffic of all. While programs that may not be frozen
//! run, no program is trained that would suffer from them. Without the machine's peak no traffic is
//! little or much, so only a program that runs alone has little interference. For a program without
//! counted work, a table of slowdowns predicts the speed with co-runners, if there is a
//! table and the program's traffic is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use cosched_core::estimates::Estimates;
use cosched_core::{Nanos, Program, ProgramId, World};

use super::FairOptions;
use super::colour;
use super::contention::{QuantumLoad, Thresholds};
use super::evidence::source;
use super::overhead::Overhead;
use super::params::Params;
use super::segment::Segment;
use super::selection::{EligibleUnit, UnitPair, select, select_mixed};
use super::stopped::{StopChanges, StoppedPrograms};
use super::tracked::{SegmentConditions, TrackedProgram, begin_region};
use super::training::{Runner, co_runners};
use crate::common::unit::Unit;
use crate::gangs::bandwidth::Slowdowns;
use crate::kind::Options;

/// The peak where it is not known. Any value will do, since no traffic is compared with it then.
const ANY_PEAK: f64 = 1.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrainingTarget {
    /// The position of its unit.
    pub(super) unit: usize,
    /// Whether it is trained for several quanta in sequence.
    pub(super) sequential: bool,
    /// Seconds until a phase of it is known; 0: a segment of any length is enough.
    pub(super) lacks: f64,
}

#[derive(Debug)]
pub(super) struct Knowledge {
    pub(super) options: FairOptions,
    slowdowns: Option<Arc<Slowdowns>>,
    thresholds: Thresholds,
    tracked: BTreeMap<ProgramId, TrackedProgram>,
    pub(super) stopped: StoppedPrograms,
    /// How many quanta two programs have shared, in all their runs; the lower id is first.
    shared_quanta: BTreeMap<(ProgramId, ProgramId), u32>,
    pub(super) overhead: Overhead,
    params: Params,
}

impl Knowledge {
    pub(super) fn new(options: &Options) -> Knowledge {
        let params = options.params.fair_progress;
        Knowledge {
            options: options.fair.clone(),
            slowdowns: options.slowdowns.clone(),
            thresholds: Thresholds::of_peak(options.fair.peak.unwrap_or(ANY_PEAK), params),
            tracked: BTreeMap::new(),
            stopped: StoppedPrograms::default(),
            shared_quanta: BTreeMap::new(),
            overhead: Overhead::default(),
            params,
        }
    }

    /// Adds a program that arrived: a concurrent region begins.
    pub(super) fn add(&mut self, id: ProgramId) {
        let least = self.least(&[]);
        begin_region(self.tracked.values_mut(), least);
        self.tracked.insert(id, TrackedProgram::new(self.params));
    }

    /// Handles a program that ended and runs once more. The last `seconds` before its end were in
    /// no measured quantum. It is the same program: it keeps its progress and what is known of it,
    /// and nothing changes for the others.
    pub(super) fn repeat(&mut self, id: ProgramId, seconds: f64, world: &World<'_>) {
        let Some(mut tracked) = self.tracked.remove(&id) else { return };
        tracked.begins_again(seconds, world.program(id.next()).map_or(1.0, weight));
        self.tracked.insert(id.next(), tracked);
    }

    /// The least progress of all programs except `but` and those that are stopped; infinite if none
    /// is left.
    fn least(&self, but: &[ProgramId]) -> f64 {
        let counts = |id: &ProgramId| !but.contains(id) && !self.stopped.is_stopped(*id);
        let counted = self.tracked.iter().filter(|(id, _)| counts(id));
        counted.map(|(_, tracked)| tracked.progress()).fold(f64::INFINITY, f64::min)
    }

    /// Records which programs another process has stopped, and which go on again; returns whether
    /// there is any.
    pub(super) fn notice_stops(&mut self, world: &World<'_>) -> bool {
        let change = self.stopped.update(world.programs);
        let StopChanges { stopped, continued } = &change;
        for program in stopped.iter().filter_map(|id| world.program(*id)) {
            let tracked = self.tracked.get_mut(&program.id);
            tracked.into_iter().for_each(|tracked| tracked.is_stopped(weight(program)));
        }
        let least = self.least(continued);
        // Without other programs, a program that goes on is behind none.
        for id in continued.iter().filter(|_| least.is_finite()) {
            let tracked = self.tracked.get_mut(id);
            tracked.into_iter().for_each(|tracked| tracked.comes_back(least));
        }
        change != StopChanges::default()
    }

    /// Removes a program; nothing changes for the others.
    pub(super) fn forget(&mut self, id: ProgramId) {
        self.tracked.remove(&id);
        let id = first_run(id);
        self.shared_quanta.retain(|(one, other), _| *one != id && *other != id);
    }

    /// Learns from the quantum that is over, in which `trained` were trained. `disturbed`: a
    /// program arrived or ended within it.
    pub(super) fn learn(
        &mut self,
        units: &[Unit],
        world: &World<'_>,
        disturbed: bool,
        trained: &[ProgramId],
    ) {
        let has_peak = self.options.peak.is_some();
        let cpus =
            |program: &Program| usize::from(program.thread_count).clamp(1, world.cpus.len().max(1));
        let segment = |program| {
            let whole = Segment::of(program, world, has_peak)?;
            let counted = match self.stopped.was_stopped(program.id) {
                true => whole.without_rest(cpus(program))?,
                false => whole,
            };
            Some((program, counted))
        };
        let segments: Vec<(&Program, Segment)> =
            world.programs.iter().filter_map(segment).collect();
        let present: Vec<ProgramId> = segments.iter().map(|(program, _)| program.id).collect();
        for (i, one) in present.iter().enumerate().filter(|_| self.options.by_corunners) {
            for other in &present[i + 1..] {
                *self.shared_quanta.entry((first_run(*one), first_run(*other))).or_default() += 1;
            }
        }
        let thresholds = self.thresholds;
        let traffic = |segment: &Segment| segment.traffic().unwrap_or(thresholds.unknown());
        // Programs of a unit are never apart: a program is alone if only members of its unit run
        // with it.
        let first = |unit: &Unit| unit.members[0].id;
        let unit_of: BTreeMap<ProgramId, ProgramId> =
            units.iter().flat_map(|unit| unit.ids().map(move |id| (id, first(unit)))).collect();
        let mut of_units: BTreeMap<ProgramId, f64> = BTreeMap::new();
        for (program, segment) in &segments {
            let unit = unit_of.get(&program.id).copied().unwrap_or(program.id);
            *of_units.entry(unit).or_default() += traffic(segment);
        }
        let load = QuantumLoad {
            system: segments.iter().map(|(_, segment)| traffic(segment)).sum(),
            intensive: of_units
                .values()
                .filter(|traffic| thresholds.is_intensive(**traffic))
                .count(),
            disturbed,
        };
        let mut useful = false;
        for (program, segment) in &segments {
            self.overhead.worked(segment.on_cpu);
            let predicted = segment.work().is_none().then(|| self.predicted(program, &segments));
            let Some(tracked) = self.tracked.get_mut(&program.id) else { continue };
            let cpus = cpus(program);
            let trained = trained.contains(&program.id);
            let criterion = thresholds.criterion(traffic(segment), load);
            let source = source(criterion, trained, tracked.sequence.is_on());
            let others = present.iter().filter(|id| **id != program.id).copied().map(first_run);
            let is_compared = self.options.by_corunners && !disturbed;
            let co_runners: Option<Vec<ProgramId>> = is_compared.then(|| others.collect());
            let weight = weight(program);
            let how =
                SegmentConditions { source, trained, co_runners: co_runners.as_deref(), weight };
            let learnt = tracked.learn(segment, how, cpus);
            let reported = self.options.optimal.then(|| segment.alone_as_reported(cpus));
            let predicted = predicted.flatten().map(|speed| segment.alone(speed, cpus));
            tracked.add_progress(reported.or(predicted).unwrap_or(learnt.alone), weight);
            tracked.counts_waits(segment, cpus);
            useful |= learnt.useful && trained;
        }
        for id in trained.iter().filter(|_| self.options.sequential) {
            if let Some(tracked) = self.tracked.get_mut(id) {
                tracked.sequence.trained(useful);
            }
        }
    }

    /// Adds training of these programs, for which so many CPUs were left idle. The first of them
    /// is charged.
    pub(super) fn trained(&mut self, members: &[ProgramId], idle: usize, seconds: f64) {
        self.overhead.trained(idle, seconds);
        let first = members.first().and_then(|first| self.tracked.get_mut(first));
        first.into_iter().for_each(|tracked| tracked.leaves_idle(idle as f64 * seconds));
    }

    /// What is estimated of a program's speed alone. The optimal policy estimates nothing.
    pub(super) fn estimates(&self, id: ProgramId) -> Option<Estimates> {
        self.tracked.get(&id).filter(|_| !self.options.optimal)?.estimates()
    }

    /// The speed of a program with these co-runners, relative to alone, as the table of slowdowns
    /// predicts.
    fn predicted(&self, program: &Program, all: &[(&Program, Segment)]) -> Option<f64> {
        let table = self.slowdowns.as_ref()?;
        let own = program.profile.memory_gigabytes_per_second?;
        let traffic =
            |other: &Program| other.profile.memory_gigabytes_per_second.unwrap_or(table.most());
        let others = all.iter().filter(|(other, _)| other.id != program.id);
        let others: Vec<f64> = others.map(|(other, _)| traffic(other)).collect();
        Some(1.0 / table.of(own, &others))
    }

    /// Combines a figure over the programs of a unit.
    fn of<T>(
        &self,
        unit: &Unit,
        tell: impl Fn(&TrackedProgram) -> T,
        join: impl Fn(T, T) -> T,
    ) -> Option<T> {
        unit.ids().filter_map(|id| self.tracked.get(&id)).map(tell).reduce(join)
    }

    /// Weighted progress: the least of the unit's programs.
    pub(super) fn progress(&self, unit: &Unit) -> f64 {
        self.of(unit, TrackedProgram::progress, f64::min).unwrap_or(0.0)
    }

    /// Its slowdown since it arrived: time over solo time. Of several programs, the largest
    /// slowdown counts. `None` as long as no work was done.
    pub(super) fn slowdown(&self, unit: &Unit, world: &World<'_>) -> Option<f64> {
        let of = |id: ProgramId| {
            let here = world.now.since(world.program(id)?.arrived).as_secs_f64();
            let alone = self.tracked.get(&id)?.alone();
            (alone > 0.0).then(|| (here / alone).max(1.0))
        };
        unit.ids().filter_map(of).reduce(f64::max)
    }

    /// The units that run in the next quantum.
    pub(super) fn select(
        &self,
        all: &[EligibleUnit<'_>],
        cpus: usize,
        length: Nanos,
        limit: Nanos,
    ) -> Vec<usize> {
        if !self.options.by_corunners {
            return select(all, cpus, length, limit);
        }
        let pair = |a: usize, b: usize| self.pair(all[a].unit, all[b].unit);
        select_mixed(all, cpus, length, limit, pair, self.params.enough_quanta)
    }

    /// What is known of two units running together.
    fn pair(&self, one: &Unit, other: &Unit) -> UnitPair {
        let shared_quanta = |one: ProgramId, other: ProgramId| {
            let (one, other) = (first_run(one.min(other)), first_run(one.max(other)));
            self.shared_quanta.get(&(one, other)).copied().unwrap_or_default()
        };
        let speed = |one: ProgramId, other: ProgramId| {
            self.tracked.get(&one).and_then(|tracked| tracked.relative_speed_with(first_run(other)))
        };
        let pairs: Vec<(ProgramId, ProgramId)> =
            one.ids().flat_map(|one| other.ids().map(move |other| (one, other))).collect();
        let both =
            |&(one, other): &(ProgramId, ProgramId)| Some(speed(one, other)? + speed(other, one)?);
        let sum: Option<f64> = pairs.iter().map(both).sum();
        UnitPair {
            shared_quanta: pairs
                .iter()
                .map(|(one, other)| shared_quanta(*one, *other))
                .max()
                .unwrap_or_default(),
            speed: sum.map(|sum| sum / pairs.len() as f64),
        }
    }

    /// Its traffic in its last quantum.
    pub(super) fn traffic(&self, unit: &Unit) -> f64 {
        self.of(unit, |tracked| tracked.traffic.unwrap_or(0.0), |a, b| a + b).unwrap_or(0.0)
    }

    /// The share of its quanta for which its speed alone is known.
    pub(super) fn coverage(&self, unit: &Unit) -> f64 {
        self.of(unit, TrackedProgram::coverage, f64::min).unwrap_or(0.0)
    }

    /// The traffic that it would have alone; where nothing is known, all of the peak.
    fn required(&self, unit: &Unit) -> f64 {
        let each = unit.members.iter();
        let required = each.map(|member| self.tracked.get(&member.id)?.required(member.threads));
        required.sum::<Option<f64>>().unwrap_or(self.thresholds.unknown())
    }

    /// The programs that run in every quantum, as co-runners of the trained unit.
    pub(super) fn always_there(&self, ids: &[ProgramId], world: &World<'_>) -> QuantumLoad {
        let unknown = self.thresholds.unknown();
        let traffic = |id: &ProgramId| {
            let tracked = self.tracked.get(id)?;
            let cpus = world.program(*id).map_or(1, |program| program.thread_count);
            tracked.required(cpus.into()).or(tracked.traffic)
        };
        let each: Vec<f64> = ids.iter().map(|id| traffic(id).unwrap_or(unknown)).collect();
        let is_intensive = |traffic: &&f64| self.thresholds.is_intensive(**traffic);
        QuantumLoad {
            system: each.iter().sum(),
            intensive: each.iter().filter(is_intensive).count(),
            disturbed: false,
        }
    }

    /// The unit to be trained next, of all on this number of CPUs, while the programs of `always`
    /// run all the time. If the training of a unit would exceed the limit before a phase is known,
    /// it is not chosen: all of the training would be wasted. A unit that would suffer even if only
    /// the programs of `always` run with it is not chosen either.
    pub(super) fn target(
        &self,
        units: &[Unit],
        cpus: usize,
        always: QuantumLoad,
    ) -> Option<TrainingTarget> {
        let any = |unit: &Unit, is: fn(&TrackedProgram) -> bool| {
            self.of(unit, is, |a, b| a || b).unwrap_or(false)
        };
        if self.options.optimal || !self.overhead.allows(self.options.training_limit) {
            return None;
        }
        let suffers_little = |unit: &Unit| {
            let own = self.required(unit);
            let (system, intensive) = (always.system + own, always.intensive + 1);
            let load = QuantumLoad { system, intensive, ..always };
            self.thresholds.criterion(own, load).is_some()
        };
        let goes_on = |unit: &Unit| any(unit, |t| t.sequence.is_on()) && suffers_little(unit);
        if let Some(goes_on) = units.iter().position(goes_on) {
            return Some(TrainingTarget { unit: goes_on, sequential: true, lacks: 0.0 });
        }
        let lacks = |unit: &Unit| {
            self.of(unit, TrackedProgram::lacks, f64::max).unwrap_or(0.0) / unit.threads as f64
        };
        let is_affordable = |unit: &Unit| {
            let idle = lacks(unit) * cpus.saturating_sub(unit.threads) as f64;
            idle == 0.0 || self.overhead.affords(idle, self.options.training_limit)
        };
        let is_candidate = |unit: &Unit| {
            any(unit, TrackedProgram::is_candidate) && is_affordable(unit) && suffers_little(unit)
        };
        let mut candidates = (0..units.len()).filter(|i| is_candidate(&units[*i]));
        let target = |unit| TrainingTarget { unit, sequential: false, lacks: lacks(&units[unit]) };
        if !self.options.distribution {
            return candidates.next().map(target);
        }
        let coverage = |i: usize| self.coverage(&units[i]);
        // Where it takes several quanta to know a phase, units without any training come before
        // units with some.
        let trained = |i: usize| self.of(&units[i], |tracked| tracked.trained, u32::max);
        let trained = |i: usize| trained(i).filter(|_| self.options.by_corunners);
        let least = candidates.min_by(|a, b| {
            coverage(*a).total_cmp(&coverage(*b)).then_with(|| trained(*a).cmp(&trained(*b)))
        });
        least.map(target)
    }

    /// The units that run for this long with the trained unit, and with the programs that always
    /// run. The target comes first.
    pub(super) fn around(
        &self,
        target: usize,
        units: &[Unit],
        length: Nanos,
        cpus: usize,
        always: QuantumLoad,
    ) -> Vec<usize> {
        let seconds = length.as_secs_f64();
        let progress: Vec<f64> = units.iter().map(|unit| self.progress(unit)).collect();
        let gain = |unit: &Unit| {
            self.of(unit, |tracked| tracked.gain(seconds), f64::max).unwrap_or(seconds)
                / unit.weight
        };
        let with_gain: Vec<(f64, f64)> =
            units.iter().zip(&progress).map(|(unit, progress)| (*progress, gain(unit))).collect();
        let black = colour::black(&with_gain);
        let runner = |i: usize| Runner {
            cpus: units[i].threads,
            required: self.required(&units[i]),
            black: black[i],
        };
        let mut others: Vec<usize> = (0..units.len()).filter(|i| *i != target).collect();
        others.sort_by(|a, b| progress[*a].total_cmp(&progress[*b]));
        let runners: Vec<Runner> = others.iter().copied().map(runner).collect();
        let given = runner(target);
        let given = Runner { required: given.required + always.system, ..given };
        let chosen = co_runners(given, &runners, cpus, self.thresholds);
        [target].into_iter().chain(chosen.into_iter().map(|i| others[i])).collect()
    }
}

/// All runs of a program are the same co-runner.
fn first_run(id: ProgramId) -> ProgramId {
    ProgramId::first(id.slot)
}

/// The divisor of a program's progress.
fn weight(program: &Program) -> f64 {
    program.weight.max(f64::MIN_POSITIVE)
}
