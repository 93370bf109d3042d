//! What a program's threads get: the actuator that was shown to help, or nothing.
//!
//! *Idea.* The table says how long a slice would be right; whether a slice, or another way to keep siblings from taking
//! CPUs from each other, helps this program in this phase is tried out, one way after the other ([`Trial`]). What is
//! faster than what the program has now takes its place. What is not is put back, and not tried again for a
//! while, which doubles each time; as rarely, what is in force is held against nothing at all, and the others against it. A
//! new phase (another quantum decision) brings the next trials near again.
//!
//! Trials cost: half of each a program has what may be worse for it, and being counted and changed slows it as well. So after
//! each it is left in peace for nine times as long. One trial at a time, whatever programs there are: two at once would
//! disturb each other. While one runs, programs are not measured otherwise: what is read of them in the middle of a
//! moment is a part of that.
//!
//! What earlier runs of the program have tried ([`Experience`]) is not tried again at first: their answer is taken, and only held
//! against nothing as late as any other.

use std::collections::{BTreeMap, VecDeque};

use cosched_core::{
    Actuator, AtExpiry, Class, Experience, Measure, Nanos, Observe, Plan, ProgramId, Token, Wake,
    Why, World,
};

use super::trial::{Finding, SETTLE, Trial};

/// The moments of a trial.
pub(super) const MOMENT: Token = Token(0);
/// Somebody's pause is over.
const AGAIN: Token = Token(1);
/// The first pause, and the longest.
const PAUSES: (Nanos, Nanos) = (Nanos::from_secs(10), Nanos::from_secs(160));
/// How long a program is left in peace after a trial, in lengths of the trial: trials take a tenth of its time at most.
const PEACE: u64 = 9;
/// Above this scaling factor (the last row of table I) a program hardly waits for locks or memory: nothing is to be won.
const NOTHING_TO_WIN: f64 = 0.90;

/// Who has which actuator, and who is to be tried next.
#[derive(Debug)]
pub(super) struct Guard {
    /// What may be tried, in this order.
    candidates: Vec<Actuator>,
    usual: Option<Class>,
    programs: BTreeMap<ProgramId, Guarded>,
    /// What is known of programs that have ended, by slot: the next ones there run the same.
    ended: BTreeMap<u16, Experience>,
    queue: VecDeque<ProgramId>,
    trial: Option<(Trial, Step)>,
    /// How many trials there were.
    trials: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Guarded {
    slice: Nanos,
    factor: f64,
    known: Experience,
    to_try: VecDeque<Actuator>,
    pause: Nanos,
    /// When something is to be tried again.
    again: Nanos,
    /// When the trial began that it was in last, and until when it is left in peace after that.
    began: Nanos,
    in_peace_until: Nanos,
}

/// Where a trial is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Settling,
    Measuring,
}

impl Guard {
    pub(super) fn new(candidates: &[Actuator], usual: Option<Class>) -> Guard {
        let candidates = candidates.iter().copied().filter(|way| *way != Actuator::None).collect();
        let (programs, ended, queue) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Guard { candidates, usual, programs, ended, queue, trial: None, trials: 0 }
    }

    /// Whether a trial runs.
    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// A program was given this slice by the table, at this scaling factor. Returns what it has.
    ///
    /// What it has changes how its threads wait, too: so a new choice after trials is not yet a new phase. It only sees to
    /// it that the next trials come soon. `recalled` is what earlier runs have shown.
    pub(super) fn chosen(
        &mut self,
        id: ProgramId,
        slice: Nanos,
        factor: f64,
        recalled: Experience,
        now: Nanos,
        plan: &mut Plan,
    ) -> Actuator {
        let guarded = self.programs.entry(id).or_insert(Guarded {
            slice,
            factor,
            known: Experience::default(),
            to_try: VecDeque::new(),
            pause: PAUSES.0,
            again: Nanos::NEVER,
            began: Nanos::ZERO,
            in_peace_until: Nanos::ZERO,
        });
        (guarded.slice, guarded.factor, guarded.pause) = (slice, factor, PAUSES.0);
        let rests = guarded.again != Nanos::NEVER;
        if rests {
            guarded.again = guarded.again.min(now + PAUSES.0);
        } else if !self.queue.contains(&id) && factor <= NOTHING_TO_WIN {
            let recalled = self.ended.get(&id.slot).copied().unwrap_or(recalled);
            if guarded.known.is_empty() && !recalled.is_empty() {
                guarded.known = recalled;
                plan.because(Some(id), Why::Recalled { actuator: recalled.in_force() });
            }
            let is_new = |way: &Actuator| !guarded.known.has_tried(*way);
            guarded.to_try = self.candidates.iter().copied().filter(is_new).collect();
            self.queue.push_back(id);
        }
        let way = guarded.known.in_force();
        self.give(id, way, plan);
        way
    }

    /// A program has ended or is no longer ours.
    pub(super) fn forget(&mut self, id: ProgramId, plan: &mut Plan) {
        let known = self.programs.remove(&id).map(|guarded| guarded.known);
        self.ended.extend(known.filter(|known| !known.is_empty()).map(|known| (id.slot, known)));
        self.queue.retain(|queued| *queued != id);
        if self.trial.as_ref().is_some_and(|(trial, _)| trial.program == id) {
            self.end(plan);
        }
    }

    /// A program was measured in the middle of a moment: that is a part of it.
    pub(super) fn sampled(&mut self, id: ProgramId, world: &World<'_>) {
        if let Some((trial, Step::Measuring)) = &mut self.trial {
            trial.heard(world.samples.iter().filter(|sample| sample.program == id));
        }
    }

    /// A wake-up that this asked for.
    pub(super) fn woke(&mut self, token: Token, world: &World<'_>, plan: &mut Plan) {
        if token == MOMENT {
            self.moment_over(world, plan);
        }
    }

    /// Goes on with whoever is next, where nothing is being tried.
    pub(super) fn go_on(&mut self, world: &World<'_>, plan: &mut Plan) {
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

    fn begin(&mut self, id: ProgramId, candidate: Actuator, world: &World<'_>, plan: &mut Plan) {
        let Some(guarded) = self.programs.get_mut(&id) else { return };
        guarded.began = world.now;
        let against = guarded.known.in_force();
        // What is in force was held against nothing before: then it is what has to prove itself.
        let against = if candidate == against { Actuator::None } else { against };
        let threads = world.program(id).map_or(0, |program| world.threads_of(program).len());
        let trial = Trial::new(id, self.trials, threads, candidate, against);
        self.trials += 1;
        plan.because(Some(id), Why::Tried { actuator: candidate, against });
        self.observe(Nanos::NEVER, plan);
        self.give(id, trial.actuator(), plan);
        self.trial = Some((trial, Step::Settling));
        read_at(world.now + SETTLE, plan);
    }

    fn moment_over(&mut self, world: &World<'_>, plan: &mut Plan) {
        let Some((trial, step)) = &mut self.trial else { return };
        if *step == Step::Settling {
            *step = Step::Measuring;
            trial.begin_moment();
            return read_at(world.now + trial.moment(), plan);
        }
        let (id, before) = (trial.program, trial.actuator());
        let finding = trial.measured(world.samples);
        let (candidate, incumbent, next) = (trial.candidate, trial.incumbent, trial.actuator());
        let progress = match finding {
            Finding::Open => {
                *step = Step::Settling;
                if next != before {
                    self.give(id, next, plan);
                }
                return read_at(world.now + SETTLE, plan);
            }
            Finding::Faster(progress) | Finding::NotFaster(progress) => progress,
        };
        let kept = matches!(finding, Finding::Faster(_));
        if let Some(guarded) = self.programs.get_mut(&id) {
            guarded.known = guarded.known.with(candidate, if kept { candidate } else { incumbent });
            let lasted = world.now - guarded.began;
            guarded.in_peace_until = world.now + Nanos(PEACE * lasted.0);
            let why = if kept {
                Why::Kept { actuator: candidate, progress }
            } else {
                Why::PutBack { actuator: candidate, progress, pause: guarded.pause }
            };
            plan.because(Some(id), why);
            let way = guarded.known.in_force();
            self.give(id, way, plan);
        }
        self.end(plan);
    }

    /// Nothing is tried any more for now.
    fn end(&mut self, plan: &mut Plan) {
        self.trial = None;
        self.observe(Nanos::ZERO, plan);
        plan.wake_at(Nanos::NEVER, MOMENT);
    }

    /// A program has tried all: it is left alone for a while.
    fn rest(&mut self, id: ProgramId, now: Nanos) {
        let Some(guarded) = self.programs.get_mut(&id) else { return };
        guarded.again = now + guarded.pause;
        guarded.pause = Nanos(guarded.pause.0 * 2).min(PAUSES.1);
    }

    fn enqueue_due(&mut self, now: Nanos) {
        for (id, guarded) in &mut self.programs {
            if guarded.again <= now {
                guarded.again = Nanos::NEVER;
                if !guarded.to_try.is_empty() {
                    // It was only left in peace.
                    self.queue.push_back(*id);
                    continue;
                }
                // What is in force comes first, against nothing; the others have to beat what is left of that.
                let in_force = guarded.known.in_force();
                let mut to_try: VecDeque<Actuator> =
                    Some(in_force).into_iter().filter(|way| *way != Actuator::None).collect();
                if guarded.factor <= NOTHING_TO_WIN {
                    to_try.extend(self.candidates.iter().filter(|way| **way != in_force));
                }
                if !to_try.is_empty() {
                    guarded.to_try = to_try;
                    self.queue.push_back(*id);
                }
            }
        }
    }

    /// What everybody's progress is told by, from now on or, with zero, no longer.
    fn observe(&self, period: Nanos, plan: &mut Plan) {
        let programs = self.programs.keys();
        plan.observe.extend(programs.map(|id| Observe {
            program: Some(*id),
            measure: Measure::UserTime,
            period,
        }));
    }

    /// Lets a program run with an actuator.
    fn give(&self, id: ProgramId, way: Actuator, plan: &mut Plan) {
        let Some(guarded) = self.programs.get(&id) else { return };
        plan.programs.retain(|(planned, _)| *planned != id);
        plan.run(id, way.settings(guarded.slice, self.usual));
    }
}

/// Wants to be asked again once everything that is observed has been read.
fn read_at(at: Nanos, plan: &mut Plan) {
    plan.wake.retain(|wake| wake.token != MOMENT);
    plan.wake.push(Wake { token: MOMENT, at, first: AtExpiry::Read });
}
