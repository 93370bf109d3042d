//! Whether what a policy would do to a program helps it is tried out, and only what was shown to
//! help is kept.
//!
//! *Idea.* A policy says what may be done to a program: to [`faithful`](super::faithful) these are
//! ways to keep siblings from taking CPUs from each other, to [`shuffling`](super::shuffling) a
//! division of its threads among sockets. Whether one helps this program in this phase is tried
//! out, one after the other ([`Trial`]). What is faster than what the program has now takes its
//! place. What is not is put back, and not tried again for a while, which doubles each time; as
//! rarely, what is in force is held against nothing at all, and the others against it. A new phase
//! (the policy says when that is) brings the next trials near again.
//!
//! Trials cost: half of each a program has what may be worse for it, and being counted and changed
//! slows it as well. So after each it is left in peace for nine times as long. One trial at a time,
//! whatever programs there are: two at once would disturb each other. While one runs, programs are
//! not measured otherwise: what is read of them in the middle of a moment is a part of that.
//!
//! The guard decides, and the policy carries out and gives the reasons: it is told what to do as
//! [`Act`]s.

mod progress;
mod trial;

use std::collections::{BTreeMap, VecDeque};

use cosched_core::{AtExpiry, Measure, Nanos, Observe, Plan, ProgramId, Token, Wake, World};

pub(crate) use trial::Lengths;
use trial::{Finding, Trial};

/// The moments of a trial.
pub(crate) const MOMENT: Token = Token(0);
/// The pause of a program is over.
const AGAIN: Token = Token(1);
/// The first pause, and the longest.
const PAUSES: (Nanos, Nanos) = (Nanos::from_secs(10), Nanos::from_secs(160));
/// How long a program is left in peace after a trial, in lengths of the trial: trials take a tenth
/// of its time at most.
const PEACE: u64 = 9;
/// What is to be done, or has been found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act<W> {
    /// The program runs this way from now on.
    Give(W),
    /// A trial begins of one way against another.
    Try(W, W),
    /// A way was tried, and is kept: progress with it over progress without.
    Keep(W, f64),
    /// A way was tried, and the program is as before: the same, and how long nothing is tried
    /// again.
    PutBack(W, f64, Nanos),
}

/// Who runs which way, and who is to be tried next. `W` tells ways apart; its default is a program
/// as it was found.
#[derive(Debug)]
pub(crate) struct Guard<W> {
    lengths: Lengths,
    programs: BTreeMap<ProgramId, Guarded<W>>,
    queue: VecDeque<ProgramId>,
    trial: Option<(Trial<W>, Step)>,
    /// How many trials there were.
    trials: u64,
    /// What the policy is to do, in this order.
    acts: Vec<(ProgramId, Act<W>)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Guarded<W> {
    /// What may be tried, in this order.
    ways: Vec<W>,
    in_force: W,
    to_try: VecDeque<W>,
    pause: Nanos,
    /// When something is to be tried again.
    again: Nanos,
    /// When the trial began that it was in last, and until when it is left in peace after that.
    began: Nanos,
    in_peace_until: Nanos,
}

impl<W: Default> Default for Guarded<W> {
    fn default() -> Guarded<W> {
        Guarded {
            ways: Vec::new(),
            in_force: W::default(),
            to_try: VecDeque::new(),
            pause: PAUSES.0,
            again: Nanos::NEVER,
            began: Nanos::ZERO,
            in_peace_until: Nanos::ZERO,
        }
    }
}

/// Where a trial is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Settling,
    Measuring,
}

impl<W: Clone + PartialEq + Default> Guard<W> {
    pub(crate) fn new(lengths: Lengths) -> Guard<W> {
        let (programs, queue) = (BTreeMap::new(), VecDeque::new());
        Guard { lengths, programs, queue, trial: None, trials: 0, acts: Vec::new() }
    }

    /// Whether a trial runs.
    pub(crate) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Whose trial runs.
    pub(crate) fn tries(&self) -> Option<ProgramId> {
        self.trial.as_ref().map(|(trial, _)| trial.program)
    }

    /// What a program has but for trials.
    pub(crate) fn in_force(&self, id: ProgramId) -> Option<&W> {
        self.programs.get(&id).map(|guarded| &guarded.in_force)
    }

    /// What the policy is to do since it asked last.
    pub(crate) fn acts(&mut self) -> Vec<(ProgramId, Act<W>)> {
        std::mem::take(&mut self.acts)
    }

    /// Of a program in another phase these ways may be tried; none: nothing is to be won. Returns
    /// what it has.
    ///
    /// What it has changes how its threads wait, too: so another phase after trials is not yet a
    /// reason for one at once. It only sees to it that the next trials come soon.
    pub(crate) fn chosen(&mut self, id: ProgramId, ways: Vec<W>, now: Nanos) -> W {
        let guarded = self.programs.entry(id).or_default();
        (guarded.ways, guarded.pause) = (ways, PAUSES.0);
        let rests = guarded.again != Nanos::NEVER;
        if rests {
            guarded.again = guarded.again.min(now + PAUSES.0);
        } else if !self.queue.contains(&id) && !guarded.ways.is_empty() {
            guarded.to_try = guarded.ways.iter().cloned().collect();
            self.queue.push_back(id);
        }
        let way = guarded.in_force.clone();
        self.give(id, way.clone());
        way
    }

    /// Of the ways that are to be tried next, these are known already.
    pub(crate) fn skip(&mut self, id: ProgramId, is_known: impl Fn(&W) -> bool) {
        if let Some(guarded) = self.programs.get_mut(&id) {
            guarded.to_try.retain(|way| !is_known(way));
        }
    }

    /// A program has this, without a trial.
    pub(crate) fn adopt(&mut self, id: ProgramId, way: W) {
        self.programs.entry(id).or_default().in_force = way;
    }

    /// In the same phase other ways may be tried of a program: they take the place of those that
    /// have not been yet.
    pub(crate) fn renew(&mut self, id: ProgramId, ways: Vec<W>) {
        let guarded = self.programs.entry(id).or_default();
        let in_force = guarded.in_force.clone();
        if guarded.to_try.iter().any(|way| *way != in_force) {
            guarded.to_try.retain(|way| *way == in_force);
            guarded.to_try.extend(ways.iter().cloned());
        } else if guarded.again == Nanos::NEVER && !ways.is_empty() && !self.queue.contains(&id) {
            guarded.to_try = ways.iter().cloned().collect();
            self.queue.push_back(id);
        }
        guarded.ways = ways;
    }

    /// A program has ended or is no longer ours.
    pub(crate) fn forget(&mut self, id: ProgramId, plan: &mut Plan) {
        self.programs.remove(&id);
        self.queue.retain(|queued| *queued != id);
        self.acts.retain(|(of, _)| *of != id);
        if self.trial.as_ref().is_some_and(|(trial, _)| trial.program == id) {
            self.end(plan);
        }
    }

    /// Nothing is to be won of a program any more, and it has nothing: until something is chosen
    /// again nothing is tried. Its peace goes on, or what comes and goes would be tried each time.
    pub(crate) fn dismiss(&mut self, id: ProgramId, plan: &mut Plan) {
        let peace = self.programs.get(&id).map(|guarded| guarded.in_peace_until);
        self.forget(id, plan);
        if let Some(in_peace_until) = peace {
            self.programs.insert(id, Guarded { in_peace_until, ..Guarded::default() });
        }
    }

    /// A program was measured in the middle of a moment: that is a part of it.
    pub(crate) fn sampled(&mut self, id: ProgramId, world: &World<'_>) {
        if let Some((trial, Step::Measuring)) = &mut self.trial {
            trial.heard(world.samples.iter().filter(|sample| sample.program == id));
        }
    }

    /// A wake-up that this asked for.
    pub(crate) fn woke(&mut self, token: Token, world: &World<'_>, plan: &mut Plan) {
        if token == MOMENT {
            self.moment_over(world, plan);
        }
    }

    /// Goes on with the program that is next, where nothing is being tried.
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
        // What is in force was held against nothing before: then it is what has to prove itself.
        let against = if candidate == against { W::default() } else { against };
        self.acts.push((id, Act::Try(candidate.clone(), against.clone())));
        let threads = world.program(id).map_or(0, |program| world.threads_of(program).len());
        let trial = Trial::new(id, self.trials, threads, self.lengths, candidate, against);
        self.trials += 1;
        self.observe(Nanos::NEVER, plan);
        self.give(id, trial.way().clone());
        self.trial = Some((trial, Step::Settling));
        read_at(world.now + self.lengths.settle, plan);
    }

    fn moment_over(&mut self, world: &World<'_>, plan: &mut Plan) {
        let Some((trial, step)) = &mut self.trial else { return };
        if *step == Step::Settling {
            *step = Step::Measuring;
            trial.begin_moment();
            return read_at(world.now + trial.moment(), plan);
        }
        let (id, was_candidates) = (trial.program, trial.is_candidates_turn());
        let finding = trial.measured(world.samples);
        let (kept, progress) = match finding {
            Finding::Open => {
                *step = Step::Settling;
                let next = (trial.is_candidates_turn() != was_candidates).then(|| trial.way());
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
            guarded.in_peace_until = world.now + Nanos(PEACE * lasted.0);
            let act = match kept {
                true => Act::Keep(candidate, progress),
                false => Act::PutBack(candidate, progress, guarded.pause),
            };
            let way = guarded.in_force.clone();
            self.acts.push((id, act));
            self.give(id, way);
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
                // What is in force comes first, against nothing; the others have to beat what is
                // left of that.
                let in_force = &guarded.in_force;
                let first = Some(in_force).filter(|way| **way != W::default());
                let others = guarded.ways.iter().filter(|way| *way != in_force);
                let to_try: VecDeque<W> = first.into_iter().chain(others).cloned().collect();
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

    /// Lets a program run this way.
    fn give(&mut self, id: ProgramId, way: W) {
        self.acts.push((id, Act::Give(way)));
    }
}

/// Wants to be asked again once everything that is observed has been read.
fn read_at(at: Nanos, plan: &mut Plan) {
    plan.wake.retain(|wake| wake.token != MOMENT);
    plan.wake.push(Wake { token: MOMENT, at, first: AtExpiry::Read });
}
