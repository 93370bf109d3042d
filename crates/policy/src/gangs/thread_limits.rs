//! Thread limits of malleable programs: what `adaptive-greedy` and `adaptive-minwait` add to
//! `greedy` and `minwait`.
//!
//! *Problem.* A program requests threads at the beginning of each parallel region, mostly as many
//! as there are CPUs. Few programs use the last of them well. With co-runners, a CPU that helps one
//! of them little would help another one much. The fastest thread counts of a workload are
//! therefore rarely the requested ones.
//!
//! *Idea.* The policy that packs programs into quanta chooses their sizes first: the thread counts
//! with which all together make most progress ([`choice`]), by what is known of how each scales
//! ([`curve`]). Unknown programs are assumed to scale perfectly. Under that assumption, running as
//! many programs together as possible, each with few threads, loses nothing against taking turns
//! with all threads. Every program that scales worse than perfectly gains. There is therefore no
//! search before the first gain, and a program that gains nothing loses nothing.
//!
//! *Algorithm.* At each decision (of a round, or of a quantum)
//!
//! 1. a program's request is the largest one since the last decision. Requests in between are
//!    answered at once with the present limit, or less;
//! 2. progress per running time, measured since the last decision, is added to what is known of the
//!    count in force. The first measurement after a change does not count: regions that had begun
//!    keep their threads. A program is measured once it has run for ten quanta, until its count is
//!    known, and again after ten seconds;
//! 3. the best counts are chosen; the counts in force stay unless they are clearly worse;
//! 4. now and then one program has half or twice as many threads for a moment, if its speed with
//!    them is not known, or no longer. Such a *trial* lasts until it is measured, mostly for two of
//!    its turns. The next one begins after a hundred times that. All trials together therefore take
//!    1 % of the time, and cost half of that where everything scales perfectly.
//!
//! A program's runtime counts the CPUs of its mask when it is loaded, and never requests more than
//! that. A program is therefore not bound before its first request, or before it has run for as
//! long as loading takes. Until then it counts for one CPU, since a program has one thread before
//! its first region.
//!
//! Some programs with requests go on with one thread for long: libraries make requests while they
//! are loaded, and regions with a clause of their own ignore thread limits. A program is *light* if
//! it was found to use little more than one CPU of several. A light program counts for one CPU. It
//! is not bound either, so that it shows when it uses more. Its use is measured while there is
//! another program that could have the other CPUs.
//!
//! *Source.* Sections 4.2 and 4.3 of the thesis name adaptive schedulers, and the information that
//! programs give them. This choice of counts is ours.
//!
//! # `request-greedy` and `request-minwait`
//!
//! The adaptive schedulers as the thesis has them ([`LimitRule::Request`]). A program says how many
//! threads it requests before it enters another phase (4.3.2, `affhook_region_notify`). At each
//! round all gangs are cut again from the counts requested last, and every program is granted what
//! it requests. A request in between is answered with the limit in force, or less. Nothing is
//! measured, and nothing is tried. A program that is loading its runtimes counts for what it
//! requests, too.

mod choice;
mod curve;
mod reasons;

use std::collections::BTreeMap;

use cosched_core::{
    AtExpiry, Cause, Measure, Nanos, Plan, Program, ProgramId, Speedup, Token, Wake, World,
};

use super::params;
use crate::common::unit::Unit;
use crate::kind::Options;
use choice::LimitInput;
use curve::{Curve, SpeedUnit};
pub use reasons::LimitReason;

/// The measurements of progress.
const MEASURES: [Measure; 3] = [Measure::Progress, Measure::Counters, Measure::UserTime];

/// How many quanta a round has with units of these sizes on this number of CPUs.
pub(crate) type QuantaPerRound = fn(&[usize], usize) -> f64;

/// How thread limits follow from requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitRule {
    /// Nash's bargaining solution of all programs' progress.
    Product,
    /// Each program is granted what it requested last (section 4.2).
    Request,
}

#[derive(Debug)]
pub(crate) struct ThreadLimits {
    rule: LimitRule,
    turns: QuantaPerRound,
    quantum: Nanos,
    programs: BTreeMap<ProgramId, MalleableProgram>,
    trial: Option<LimitTrial>,
    /// When the next trial may begin; `None`: before the first decision.
    next_trial: Option<Nanos>,
    /// How many CPUs each program counted for at the last decision.
    sizes: Vec<(ProgramId, usize)>,
    params: params::ThreadLimitParams,
}

#[derive(Clone, Debug)]
struct MalleableProgram {
    /// The most threads that it requested since the last decision.
    requested: u16,
    /// Its last thread limit.
    allowed: Option<u16>,
    /// It has made no request yet and may still be loading its runtimes.
    loading: bool,
    /// It uses one CPU of those that it may use.
    light: bool,
    /// Whether it is being measured.
    observed: bool,
    /// The next reading belongs to the limit before this one, or to the time before it was
    /// measured.
    settling: bool,
    /// How long it had run at the last reading.
    ran: Nanos,
    /// Progress, and the running time in which it was made, while that time is too short.
    gathered: Option<(SpeedUnit, f64)>,
    over: Nanos,
    curve: Curve,
    alone: Option<Speedup>,
    /// How many readings in a row had no progress.
    silent: u8,
    /// When it was last in a trial.
    tried: Nanos,
}

/// A trial: one program has another count, to be measured.
#[derive(Clone, Copy, Debug)]
struct LimitTrial {
    program: ProgramId,
    threads: u16,
    before: u16,
    began: Nanos,
}

impl MalleableProgram {
    fn new(program: &Program, loaded: Nanos) -> MalleableProgram {
        MalleableProgram {
            requested: program.requested,
            allowed: None,
            loading: program.ran < loaded,
            light: false,
            observed: false,
            settling: false,
            ran: program.ran,
            gathered: None,
            over: Nanos::ZERO,
            curve: Curve::default(),
            alone: program.profile.speedup,
            silent: 0,
            tried: Nanos::ZERO,
        }
    }

    fn speed(&self, threads: u16) -> f64 {
        self.curve.speed(threads, self.alone.as_ref())
    }

    /// Its speed with this many threads, relative to all that it requests, if that is more than an
    /// assumption.
    fn relative(&self, threads: u16) -> Option<f64> {
        let read = |count| self.curve.read(count).is_some();
        let known = threads == self.requested
            || self.alone.is_some()
            || (read(threads) && read(self.requested));
        known.then(|| self.speed(threads) / self.speed(self.requested))
    }

    fn is_reading_due(&self, now: Nanos, params: &params::ThreadLimitParams) -> bool {
        let Some(allowed) = self.allowed else { return false };
        let is_fresh = |(readings, at): (f64, Nanos)| {
            readings >= params.enough && now.since(at) < params.stale
        };
        self.silent < params.silent && !self.curve.read(allowed).is_some_and(is_fresh)
    }
}

impl ThreadLimits {
    /// Thread limits for a policy with such rounds and quanta.
    pub(crate) fn new(rule: LimitRule, turns: QuantaPerRound, options: &Options) -> ThreadLimits {
        ThreadLimits {
            rule,
            turns,
            quantum: options.quantum,
            params: options.params.thread_limits,
            programs: BTreeMap::new(),
            trial: None,
            next_trial: None,
            sizes: Vec::new(),
        }
    }

    /// Whether there is anything to decide.
    pub(crate) fn any(&self) -> bool {
        !self.programs.is_empty()
    }

    /// The length of a quantum that no program waits for: after it, thread counts are decided
    /// again.
    pub(crate) fn quantum(&self) -> Nanos {
        self.quantum
    }

    /// Takes in arrivals, ends, requests and readings.
    pub(crate) fn learn(&mut self, causes: &[Cause], world: &World<'_>) {
        for cause in causes {
            match *cause {
                Cause::Arrived(id) => {
                    let Some(program) = world.program(id).filter(|p| p.malleable) else { continue };
                    self.programs.insert(id, MalleableProgram::new(program, self.params.loaded));
                }
                Cause::Exited(id, _) => {
                    self.programs.remove(&id);
                }
                Cause::Requested { program, threads, .. } => {
                    if let Some(known) = self.programs.get_mut(&program) {
                        known.requested = match self.rule {
                            LimitRule::Product => known.requested.max(threads),
                            LimitRule::Request => threads,
                        };
                        known.loading = false;
                    }
                }
                Cause::Sampled(id) => self.read(id, world),
                _ => {}
            }
        }
    }

    /// Takes in a reading. The first one after a change may be of the time before it.
    fn read(&mut self, id: ProgramId, world: &World<'_>) {
        let (quantum, params) = (self.quantum, self.params);
        let (Some(known), Some(program)) = (self.programs.get_mut(&id), world.program(id)) else {
            return;
        };
        let ran = program.ran.since(known.ran);
        known.ran = program.ran;
        let Some(allowed) = known.allowed.filter(|_| ran > Nanos::ZERO) else { return };
        if std::mem::take(&mut known.settling) {
            (known.gathered, known.over) = (None, Nanos::ZERO);
            return;
        }
        let whole =
            |sample: &&cosched_core::Sample| sample.program == id && sample.thread.is_none();
        let sample = world.samples.iter().find(whole);
        if let Some(sample) = sample.filter(|one| one.on_cpu > Nanos::ZERO && ran * 2 >= quantum) {
            let used = sample.on_cpu.as_secs_f64() / ran.as_secs_f64();
            known.light = allowed > 1 && used < params.light;
        }
        let progress = sample.and_then(curve::progress);
        known.silent = match progress.is_some() {
            true => 0,
            false => known.silent.saturating_add(1).min(params.silent),
        };
        let Some((unit, amount)) = progress else { return };
        known.gathered = match known.gathered {
            Some((before, sum)) if before == unit => Some((unit, sum + amount)),
            _ => {
                known.over = Nanos::ZERO;
                Some((unit, amount))
            }
        };
        known.over += ran;
        // Times in ticks are too coarse for a short while.
        if known.over * 2 < quantum {
            return;
        }
        let threads = allowed.min(known.requested);
        if let Some(gathered) = known.gathered.take() {
            known.curve.learn(threads, gathered, known.over, world.now, &params);
        }
        known.over = Nanos::ZERO;
    }

    /// Gives units their present sizes, and newcomers a share that leaves others theirs. A program
    /// without a request, or with one thread in use, has one thread.
    pub(crate) fn fit(&self, units: &mut [Unit], cpus: usize) {
        let even = (cpus / units.len().max(1)).max(1) as u16;
        for unit in units {
            for member in &mut unit.members {
                if let Some(known) = self.programs.get(&member.id) {
                    let first = match self.rule {
                        LimitRule::Product => even.min(known.requested),
                        LimitRule::Request => known.requested,
                    };
                    let allowed = known.allowed.unwrap_or(first);
                    let allowed = allowed.min(u16::try_from(cpus).unwrap_or(u16::MAX)).max(1);
                    let unbound = known.loading || known.light;
                    let one = unbound && self.rule == LimitRule::Product;
                    member.threads = if one { 1 } else { usize::from(allowed) };
                    (member.thread_limit, member.unbound) = (Some(allowed), unbound);
                }
            }
            let sum: usize = unit.members.iter().map(|member| member.threads).sum();
            unit.threads = sum.min(cpus.max(1));
        }
    }

    /// Decides on the thread limit of each program, and gives the units their sizes. Returns
    /// whether any size differs from the last decision.
    pub(crate) fn decide(
        &mut self,
        units: &mut [Unit],
        world: &World<'_>,
        plan: &mut Plan,
    ) -> bool {
        let cpus = world.cpus.len();
        let members =
            || units.iter().enumerate().flat_map(|(u, unit)| unit.ids().map(move |id| (u, id)));
        let slots: Vec<(usize, ProgramId)> =
            members().filter(|(_, id)| self.programs.contains_key(id)).collect();
        if slots.is_empty() {
            return false;
        }
        let programs = members().count();
        let limit = u16::try_from(cpus).unwrap_or(u16::MAX).max(1);
        let most = slots.iter().map(|(_, id)| self.programs[id].requested.clamp(1, limit));
        let most: Vec<u16> = most.collect();
        if self.rule == LimitRule::Request {
            for ((_, id), threads) in slots.iter().zip(most) {
                self.limit(*id, threads, [None; 2], world, plan);
            }
            return self.resize(units, cpus);
        }
        let now: Option<Vec<u16>> = slots.iter().map(|(_, id)| self.standing(*id)).collect();
        let before = self.trial;
        let is_tried = self.trial_goes_on(world.now);
        let known: Vec<&MalleableProgram> =
            slots.iter().map(|(_, id)| &self.programs[id]).collect();

        let fixed: Vec<usize> = units.iter().map(|unit| self.fixed(unit)).collect();
        let turns = |counts: &[u16]| {
            let mut sizes = fixed.clone();
            for (((u, _), known), n) in slots.iter().zip(&known).zip(counts) {
                sizes[*u] += if known.light { 1 } else { usize::from(*n) };
            }
            sizes.iter_mut().for_each(|size| *size = (*size).min(cpus.max(1)));
            (self.turns)(&sizes, cpus).max(1.0)
        };
        let speed = |i: usize, threads: u16| known[i].speed(threads);
        let (speed, turns, params) = (&speed, &turns, &self.params);
        let choice = LimitInput { most: &most, cpus, speed, turns, programs, params };
        let mut chosen = choice.best(now.as_deref());

        let trial =
            if is_tried { self.trial } else { self.new_trial(&slots, &most, &chosen, world.now) };
        if let Some(trial) = trial {
            let tried = slots.iter().position(|(_, id)| *id == trial.program);
            tried.into_iter().for_each(|i| chosen[i] = trial.threads);
        }
        // Both limits are reported, even where the count of a trial stays.
        let news = if is_tried { [None; 2] } else { [before, trial] };
        self.trial = trial;
        for ((_, id), threads) in slots.iter().zip(chosen) {
            self.limit(*id, threads, news, world, plan);
        }
        self.resize(units, cpus)
    }

    /// Gives the units the sizes that were decided on. Returns whether any has changed.
    fn resize(&mut self, units: &mut [Unit], cpus: usize) -> bool {
        self.fit(units, cpus);
        let members = units.iter().flat_map(|unit| &unit.members);
        let sizes = members.map(|member| (member.id, member.threads)).collect();
        let before = std::mem::replace(&mut self.sizes, sizes);
        before != self.sizes
    }

    /// The threads of a unit's programs with counts that cannot be chosen.
    fn fixed(&self, unit: &Unit) -> usize {
        let fixed = unit.members.iter().filter(|member| !self.programs.contains_key(&member.id));
        fixed.map(|member| member.threads).sum()
    }

    /// A program's limit, or the one before its trial.
    fn standing(&self, id: ProgramId) -> Option<u16> {
        let trial = self.trial.filter(|trial| trial.program == id).map(|trial| trial.before);
        trial.or(self.programs.get(&id)?.allowed)
    }

    /// Ends the trial if it is measured, or cannot be any more. Returns whether one is under way.
    fn trial_goes_on(&mut self, now: Nanos) -> bool {
        let Some(LimitTrial { program, threads, began, .. }) = self.trial else { return false };
        let took = now.since(began);
        let goes_on = self.programs.get_mut(&program).is_some_and(|known| {
            let is_read = known.curve.read(threads).is_some_and(|(_, at)| at > began);
            let goes_on = !is_read
                && known.requested >= threads
                && took < self.quantum * self.params.longest_trial;
            known.tried = now;
            goes_on
        });
        if !goes_on {
            self.trial = None;
            self.next_trial = Some(now + took * self.params.pause);
        }
        goes_on
    }

    /// Begins another trial, if it is time for one and there is something to try.
    fn new_trial(
        &mut self,
        slots: &[(usize, ProgramId)],
        most: &[u16],
        chosen: &[u16],
        now: Nanos,
    ) -> Option<LimitTrial> {
        let params::ThreadLimitParams { of_a_trial, pause, fresh, .. } = self.params;
        let next = *self.next_trial.get_or_insert(now + self.quantum * (of_a_trial * pause));
        if now < next {
            return None;
        }
        let trials = slots.iter().zip(most).zip(chosen).filter_map(|(((_, id), most), threads)| {
            let known = &self.programs[id];
            let settled = known.allowed == Some(*threads) && known.curve.read(*threads).is_some();
            let counts = [threads / 2, threads.saturating_mul(2).min(*most)];
            let others = counts.into_iter().filter(|n| *n > 0 && n != threads);
            let other =
                others.filter(|n| !known.curve.is_fresh(*n, now, fresh)).find(|_| settled)?;
            let trial = LimitTrial { program: *id, threads: other, before: *threads, began: now };
            Some((known.tried, trial))
        });
        trials.min_by_key(|(tried, trial)| (*tried, trial.program)).map(|(_, trial)| trial)
    }

    fn limit(
        &mut self,
        id: ProgramId,
        threads: u16,
        [ended, begun]: [Option<LimitTrial>; 2],
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        let Some(known) = self.programs.get_mut(&id) else { return };
        let is_its = |trial: Option<LimitTrial>| trial.is_some_and(|trial| trial.program == id);
        let changed = known.allowed.replace(threads) != Some(threads);
        known.settling |= changed;
        known.light &= threads > 1;
        let requested = known.requested;
        if is_its(begun) {
            plan.aside(id, LimitReason::TriesThreads { threads, requested });
        } else if changed || is_its(ended) {
            let speed = known.relative(threads);
            plan.aside(id, LimitReason::LimitsThreads { threads, requested, speed });
        }
        let Some(program) = world.program(id) else { return };
        known.requested = program.requested;
        known.loading &= program.ran < self.params.loaded;
    }

    /// Requests a wake-up with the measurements that are needed. No program is measured for any
    /// other purpose.
    pub(crate) fn wake_at(&mut self, at: Nanos, token: Token, world: &World<'_>, plan: &mut Plan) {
        let (trial, mut reads) = (self.trial.map(|trial| trial.program), false);
        let params = self.params;
        let with_co_runners = (2..=params.few).contains(&world.programs.len());
        let unmeasured = match with_co_runners {
            true => params.unmeasured_with_co_runners,
            false => params.unmeasured,
        };
        for (id, known) in &mut self.programs {
            let Some(program) = world.program(*id) else { continue };
            let is_light = known.light && with_co_runners;
            let observes =
                trial == Some(*id) || is_light || known.is_reading_due(world.now, &params);
            let observes = observes
                && self.rule == LimitRule::Product
                && program.ran >= self.quantum * unmeasured;
            if observes != known.observed {
                known.observed = observes;
                known.settling |= observes;
                known.ran = program.ran;
                let period = if observes { Nanos::NEVER } else { Nanos::ZERO };
                plan.measure(*id, MEASURES, period);
            }
            reads |= observes;
        }
        let first = if reads { AtExpiry::Read } else { AtExpiry::Nothing };
        plan.wake.push(Wake { token, at, first });
    }
}

/// Whether the causes are only directives in effect, requests and readings: nothing has to be
/// decided before the next quantum.
pub(crate) fn only_learns(causes: &[Cause]) -> bool {
    let learns = |cause: &Cause| {
        matches!(cause, Cause::Settled { .. } | Cause::Requested { .. } | Cause::Sampled(_))
    };
    causes.iter().all(learns)
}

#[cfg(test)]
mod tests;
