//! The guard tries out whether what a policy would do to a program helps it, and keeps only what
//! was shown to help.
//!
//! *Idea.* A policy says what may be done to a program. For [`faithful`](super::faithful) these are
//! actuators that keep siblings from taking CPUs from each other, for
//! [`shuffling`](super::shuffling) a division of its threads among sockets. Whether one helps this
//! program in this phase is tried out, one after the other ([`Trial`]). What is faster than the
//! present setting replaces it. What is not faster is put back, and not tried again for a while,
//! which doubles each time. As rarely, the setting in force is compared with the original settings,
//! and the others with it. A new phase, which the policy reports, makes the next trials come soon
//! again.
//!
//! Trials cost time: for half of each a program has what may be worse for it, and counting and
//! changing slows it as well. After each trial, the program therefore has nine times as long
//! without one. There is one trial at a time for all programs: two at once would disturb each
//! other. While one runs, programs are not measured otherwise: samples in the middle of a moment
//! are a part of that moment.
//!
//! The guard decides; the policy carries out its [`Act`]s and gives the reasons.

mod progress;
mod trial;

use std::collections::{BTreeMap, VecDeque};

use cosched_core::{AtExpiry, Measure, Nanos, Plan, ProgramId, Token, Wake, World};

use super::params;
pub(crate) use trial::Lengths;
use trial::{Finding, Trial};

/// The wake-up for the moments of a trial.
pub(crate) const MOMENT: Token = Token(0);
/// The wake-up for the end of a program's pause.
const AGAIN: Token = Token(1);
/// What is to be done, or was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act<W> {
    /// The program has this setting from now on.
    Give(W),
    /// A trial of one setting against another begins.
    Try(W, W),
    /// A setting was tried, and is kept: progress with it over progress without.
    Keep(W, f64),
    /// A setting was tried, and the one of before is in force again: progress with it over progress
    /// without, and how long nothing is tried again.
    PutBack(W, f64, Nanos),
}

/// The setting of each program, and which program is tried next. `W` identifies settings; its
/// default is the original settings.
#[derive(Debug)]
pub(crate) struct Guard<W> {
    lengths: Lengths,
    params: params::GuardParams,
    programs: BTreeMap<ProgramId, Guarded<W>>,
    queue: VecDeque<ProgramId>,
    trial: Option<(Trial<W>, TrialStage)>,
    trials: u64,
    /// The acts for the policy, in this order.
    acts: Vec<(ProgramId, Act<W>)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Guarded<W> {
    /// The settings that may be tried, in this order.
    candidates: Vec<W>,
    in_force: W,
    to_try: VecDeque<W>,
    pause: Nanos,
    /// The time of the next trial.
    again: Nanos,
    /// The begin of its last trial, and the end of the time without trials after that.
    began: Nanos,
    in_peace_until: Nanos,
}

impl<W: Default> Guarded<W> {
    /// Nothing was tried; this is the first pause.
    fn new(pause: Nanos) -> Guarded<W> {
        Guarded {
            candidates: Vec::new(),
            in_force: W::default(),
            to_try: VecDeque::new(),
            pause,
            again: Nanos::NEVER,
            began: Nanos::ZERO,
            in_peace_until: Nanos::ZERO,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TrialStage {
    Settling,
    Measuring,
}

impl<W: Clone + PartialEq + Default> Guard<W> {
    pub(crate) fn new(lengths: Lengths, params: params::GuardParams) -> Guard<W> {
        let (programs, queue) = (BTreeMap::new(), VecDeque::new());
        Guard { lengths, params, programs, queue, trial: None, trials: 0, acts: Vec::new() }
    }

    pub(crate) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// The program in a trial.
    pub(crate) fn tries(&self) -> Option<ProgramId> {
        self.trial.as_ref().map(|(trial, _)| trial.program)
    }

    /// A program's setting outside of trials.
    pub(crate) fn in_force(&self, id: ProgramId) -> Option<&W> {
        self.programs.get(&id).map(|guarded| &guarded.in_force)
    }

    /// The acts for the policy since the last call.
    pub(crate) fn acts(&mut self) -> Vec<(ProgramId, Act<W>)> {
        std::mem::take(&mut self.acts)
    }

    /// These settings may be tried on a program in another phase; none: nothing can be gained.
    /// Returns its present setting.
    ///
    /// A setting also changes how the program's threads wait. Another phase after trials is
    /// therefore no reason for a trial at once. It only makes the next trials come soon.
    pub(crate) fn chosen(&mut self, id: ProgramId, candidates: Vec<W>, now: Nanos) -> W {
        let pause = self.params.first_pause;
        let guarded = self.programs.entry(id).or_insert_with(|| Guarded::new(pause));
        (guarded.candidates, guarded.pause) = (candidates, pause);
        let is_paused = guarded.again != Nanos::NEVER;
        if is_paused {
            guarded.again = guarded.again.min(now + pause);
        } else if !self.queue.contains(&id) && !guarded.candidates.is_empty() {
            guarded.to_try = guarded.candidates.iter().cloned().collect();
            self.queue.push_back(id);
        }
        let candidate = guarded.in_force.clone();
        self.give(id, candidate.clone());
        candidate
    }

    /// Of the settings to be tried next, these are known already.
    pub(crate) fn skip(&mut self, id: ProgramId, is_known: impl Fn(&W) -> bool) {
        if let Some(guarded) = self.programs.get_mut(&id) {
            guarded.to_try.retain(|candidate| !is_known(candidate));
        }
    }

    /// Gives a program this setting, without a trial.
    pub(crate) fn adopt(&mut self, id: ProgramId, candidate: W) {
        let pause = self.params.first_pause;
        let guarded = self.programs.entry(id).or_insert_with(|| Guarded::new(pause));
        guarded.in_force = candidate;
    }

    /// Other settings may be tried on a program in the present phase: they replace those that have
    /// not been tried yet.
    pub(crate) fn renew(&mut self, id: ProgramId, candidates: Vec<W>) {
        let pause = self.params.first_pause;
        let guarded = self.programs.entry(id).or_insert_with(|| Guarded::new(pause));
        let in_force = guarded.in_force.clone();
        if guarded.to_try.iter().any(|candidate| *candidate != in_force) {
            guarded.to_try.retain(|candidate| *candidate == in_force);
            guarded.to_try.extend(candidates.iter().cloned());
        } else if guarded.again == Nanos::NEVER
            && !candidates.is_empty()
            && !self.queue.contains(&id)
        {
            guarded.to_try = candidates.iter().cloned().collect();
            self.queue.push_back(id);
        }
        guarded.candidates = candidates;
    }

    /// A program has ended or was released.
    pub(crate) fn forget(&mut self, id: ProgramId, plan: &mut Plan) {
        self.programs.remove(&id);
        self.queue.retain(|queued| *queued != id);
        self.acts.retain(|(of, _)| *of != id);
        if self.trial.as_ref().is_some_and(|(trial, _)| trial.program == id) {
            self.end(plan);
        }
    }

    /// Nothing can be gained for a program any more, and it has the original settings. Nothing is
    /// tried until the policy chooses settings again. Its time without trials goes on, or a program
    /// with frequent changes would have a trial at each.
    pub(crate) fn dismiss(&mut self, id: ProgramId, plan: &mut Plan) {
        let peace = self.programs.get(&id).map(|guarded| guarded.in_peace_until);
        self.forget(id, plan);
        if let Some(in_peace_until) = peace {
            let new = Guarded::new(self.params.first_pause);
            self.programs.insert(id, Guarded { in_peace_until, ..new });
        }
    }

    /// Adds samples of a program in the middle of a moment to that moment.
    pub(crate) fn sampled(&mut self, id: ProgramId, world: &World<'_>) {
        if let Some((trial, TrialStage::Measuring)) = &mut self.trial {
            trial.heard(world.samples.iter().filter(|sample| sample.program == id));
        }
    }

    pub(crate) fn woke(&mut self, token: Token, world: &World<'_>, plan: &mut Plan) {
        if token == MOMENT {
            self.moment_over(world, plan);
        }
    }

    /// Goes on with the next program, if there is no trial.
    pub(crate) fn go_on(&mut self, world: &World<'_>, plan: &mut Plan) {
        self.enqueue_due(world.now);
        while self.trial.is_none() {
            let Some(id) = self.queue.front().copied() else { break };
            let Some(guarded) = self.programs.get_mut(&id) else { break };
            if guarded.to_try.is_empty() {
                self.queue.pop_front();
                self.rest(id, world.now);
            } else if guarded.in_peace_until > world.now {
                guarded.again = guarded.in_peace_until;
                self.queue.pop_front();
            } else if let Some(candidate) = guarded.to_try.pop_front() {
                self.begin(id, candidate, world, plan);
            }
        }
        let again = self.programs.values().map(|guarded| guarded.again).min();
        plan.wake_at(again.unwrap_or(Nanos::NEVER), AGAIN);
    }

    fn begin(&mut self, id: ProgramId, candidate: W, world: &World<'_>, plan: &mut Plan) {
        let Some(guarded) = self.programs.get_mut(&id) else { return };
        guarded.began = world.now;
        let against = guarded.in_force.clone();
        // The setting in force was not compared with the original settings before: now it is on
        // trial.
        let against = if candidate == against { W::default() } else { against };
        self.acts.push((id, Act::Try(candidate.clone(), against.clone())));
        let threads = world.program(id).map_or(0, |program| world.threads_of(program).len());
        let (lengths, params) = (self.lengths, self.params);
        let trial = Trial::new(id, self.trials, threads, lengths, params, candidate, against);
        self.trials += 1;
        self.observe(Nanos::NEVER, plan);
        self.give(id, trial.candidate().clone());
        self.trial = Some((trial, TrialStage::Settling));
        read_at(world.now + self.lengths.settle, plan);
    }

    fn moment_over(&mut self, world: &World<'_>, plan: &mut Plan) {
        let Some((trial, step)) = &mut self.trial else { return };
        if *step == TrialStage::Settling {
            *step = TrialStage::Measuring;
            trial.begin_moment();
            return read_at(world.now + trial.moment, plan);
        }
        let (id, was_candidates) = (trial.program, trial.is_candidates_turn());
        let finding = trial.measured(world.samples);
        let (kept, progress) = match finding {
            Finding::Open => {
                *step = TrialStage::Settling;
                let next =
                    (trial.is_candidates_turn() != was_candidates).then(|| trial.candidate());
                if let Some(next) = next.cloned() {
                    self.give(id, next);
                }
                return read_at(world.now + self.lengths.settle, plan);
            }
            Finding::Faster(progress) => (true, progress),
            Finding::NotFaster(progress) => (false, progress),
        };
        let (candidate, incumbent) = (trial.candidate.clone(), trial.incumbent.clone());
        if let Some(guarded) = self.programs.get_mut(&id) {
            guarded.in_force = if kept { candidate.clone() } else { incumbent };
            let lasted = world.now - guarded.began;
            guarded.in_peace_until = world.now + Nanos(self.params.peace * lasted.0);
            let act = match kept {
                true => Act::Keep(candidate, progress),
                false => Act::PutBack(candidate, progress, guarded.pause),
            };
            let candidate = guarded.in_force.clone();
            self.acts.push((id, act));
            self.give(id, candidate);
        }
        self.end(plan);
    }

    /// Ends trials for now.
    fn end(&mut self, plan: &mut Plan) {
        self.trial = None;
        self.observe(Nanos::ZERO, plan);
        plan.wake_at(Nanos::NEVER, MOMENT);
    }

    /// A program has tried all settings: it has none for a while.
    fn rest(&mut self, id: ProgramId, now: Nanos) {
        let Some(guarded) = self.programs.get_mut(&id) else { return };
        guarded.again = now + guarded.pause;
        guarded.pause = Nanos(guarded.pause.0 * 2).min(self.params.longest_pause);
    }

    fn enqueue_due(&mut self, now: Nanos) {
        for (id, guarded) in &mut self.programs {
            if guarded.again <= now {
                guarded.again = Nanos::NEVER;
                if !guarded.to_try.is_empty() {
                    // It only had time without trials.
                    self.queue.push_back(*id);
                    continue;
                }
                // The setting in force comes first, against the original settings. The others have
                // to be better than the result.
                let in_force = &guarded.in_force;
                let first = Some(in_force).filter(|candidate| **candidate != W::default());
                let others = guarded.candidates.iter().filter(|candidate| *candidate != in_force);
                let to_try: VecDeque<W> = first.into_iter().chain(others).cloned().collect();
                if !to_try.is_empty() {
                    guarded.to_try = to_try;
                    self.queue.push_back(*id);
                }
            }
        }
    }

    /// Begins to measure the progress of every program, or, with a period of zero, stops.
    fn observe(&self, period: Nanos, plan: &mut Plan) {
        for id in self.programs.keys() {
            plan.measure(*id, [Measure::UserTime], period);
        }
    }

    fn give(&mut self, id: ProgramId, candidate: W) {
        self.acts.push((id, Act::Give(candidate)));
    }
}

/// Requests a wake-up after everything that is observed has been read.
fn read_at(at: Nanos, plan: &mut Plan) {
    plan.wake.retain(|wake| wake.token != MOMENT);
    plan.wake.push(Wake { token: MOMENT, at, first: AtExpiry::Read });
}
