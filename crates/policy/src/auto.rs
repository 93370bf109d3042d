//! `auto`: chooses between side by side, gangs, and one after another, by what it sees.
//!
//! *Problem.* Which policy is best depends on the programs, and most people do not know theirs in these terms. What they would
//! do without cosched is `a & b & wait`, or one after another; what is chosen for them must not be worse than the better of these.
//!
//! *Idea.* Begin as Linux does, which costs nothing. Look whether anything can be won: only where several programs compete
//! for CPUs, and some of them have several threads. Only then see for a moment what each does alone
//! ([`judgement`] tells what follows, and why). Go on looking: what was chosen may be wrong later.
//!
//! ```text
//!             CPUs are short, several compete            alone they fill the CPUs
//!  side by side ───────────────────────────▶ trial ──────────────────────────────▶ in gangs
//!       ▲   ▲                                  │                                     │
//!       │   └──────────────────────────────────┘                                     │
//!       │      alone they leave CPUs idle                                            │
//!       └────────────────────────────────────────────────────────────────────────────┘
//!              nobody competes any more, or they do less than they did side by side
//! ```
//!
//! *Algorithm.* 1. [Whoever comes](line) starts: everybody at once, or with the goal `throughput` as long as CPUs are idle. 2. After
//! [`LOOK`], and from then on whenever it is time, CPU times of that interval are read. Who [hardly runs](IDLES) is never
//! frozen, and counts for nothing. With at most one program left, threads for which there are CPUs, or CPUs that are
//! [not short](SHORT), nothing is done. 3. A trial: each program runs alone for a moment, [`TRIAL`] in all where that goes. It tells how
//! many CPUs each uses, and how many it keeps busy outside the kernel. 4. Gangs are made by the CPUs that programs use, not by those
//! that they ask for: by `minwait`, for the goal `fair` by `greedy`. Each [`CHECK`] it is looked whether as much is done as side by
//! side; if not, gangs are made anew by what was seen, and if these are the same, all run side by side again.
//!
//! *Bounds.* A trial costs what it leaves undone of what is done side by side. After one, there is none before its cost is a
//! [20th](BUDGET) of the run so far, nor before a pause that doubles each time; other programs make it short again. Only the
//! first, of [`TRIAL`], is not bound by that: in a run of less than 2.4 s it may cost more than 5 %.
//!
//! *Profiles.* Programs that are known to scale well, by times alone with several thread counts, take turns at once.
//!
//! *What it composes:* [`unmanaged`](crate::unmanaged), [`gang`](crate::gang) for trials, [`minwait`](crate::minwait),
//! [`greedy`](crate::greedy); each [sees](inner) what is known of programs, and does what it always does.
//!
//! Ours; none of the papers chooses between policies.

mod goal;
mod inner;
mod interval;
mod judgement;
mod line;

use std::collections::BTreeMap;

use cosched_core::{
    AtExpiry, Cause, Ground, Manner, Measure, Nanos, Observe, Plan, Policy, Program, ProgramId,
    ProgramState, Token, Wake, Why, World,
};

use crate::kind::Options;
use crate::minwait::Minwait;
use crate::rounds::Rounds;
use crate::unit::only_settled;
use crate::unmanaged::Unmanaged;
use crate::{gang, greedy};
pub use goal::Goal;
use inner::{Inner, Known};
use interval::Interval;
use judgement::{Rival, Verdict, is_settled, judge};
use line::{Line, Room};

/// The wake-up at which everything is read; those of other policies have small numbers.
const LOOKS: Token = Token(100);
/// What is read of each program, at the wake-ups for that only.
const MEASURES: [Measure; 2] = [Measure::UserTime, Measure::CpuTime];
/// How long programs run before they are looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// How soon after somebody came or went an interval begins that has nothing of before.
const SOON: Nanos = Nanos::from_millis(10);
/// How long it is until the next look where CPUs are idle.
const NEXT_LOOK: Nanos = Nanos::from_millis(500);
/// How long a trial takes, if that gives everybody a moment within [`MOMENT`].
const TRIAL: Nanos = Nanos::from_millis(120);
/// The shortest moment of one program alone, and the longest.
const MOMENT: (Nanos, Nanos) = (Nanos::from_millis(5), Nanos::from_millis(30));
/// How often gangs are looked at.
const CHECK: Nanos = Nanos::from_secs(1);
/// The first pause between trials, and the longest.
const PAUSES: (Nanos, Nanos) = (Nanos::from_secs(2), Nanos::from_secs(64));
/// A run lasts so many times as long as its trials have cost, before there is another one.
const BUDGET: u64 = 20;
/// Whoever uses less than this of a CPU competes with nobody; and less than this part of what a thread has if all compete.
const IDLES: (f64, f64) = (0.2, 0.25);
/// CPUs are short where so many threads wait for one, as part of the CPUs that there are,
const SHORT: f64 = 0.1;
/// and if that is not known, where this part of them is used.
const BUSY: f64 = 0.9;
/// Whoever uses less than this part of the threads that it asks for is narrower than it says.
const NARROW: f64 = 0.6;
/// What a thread brings on average, of what the first brings, where a program scales well.
const SCALES: f64 = 0.9;

/// What was seen of the program at a position of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    /// It hardly uses CPUs.
    idles: bool,
    /// How many CPUs it used while it had all of them, and how many of these outside the kernel.
    alone: Option<(f64, f64)>,
}

impl Seen {
    /// How many CPUs it uses alone, where these are much fewer than it asks for.
    fn narrow(&self, asked: usize) -> Option<usize> {
        let (width, _) = self.alone.filter(|(width, _)| *width < NARROW * asked as f64)?;
        // A little more than a whole number is noise.
        Some(((width - 0.25).ceil().max(1.0) as usize).min(asked))
    }

    /// By what it did alone.
    fn alone(&self, asked: usize) -> Rival {
        let threads = self.narrow(asked).unwrap_or(asked);
        Rival { threads, rate: self.alone.map_or(threads as f64, |(_, rate)| rate) }
    }

    /// By what it asks for. What it did side by side tells nothing here: threads that wait for a sibling without a CPU may
    /// sleep, so that a wide program looks narrow just where it suffers most.
    fn beside(&self, asked: usize) -> Rival {
        Rival { threads: asked, rate: asked as f64 }
    }
}

/// Where it is in the picture above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SideBySide,
    Trial { moment: Nanos },
    InGangs,
}

/// The policy that needs no name.
pub(crate) struct Auto {
    options: Options,
    line: Line,
    seen: BTreeMap<u16, Seen>,
    inner: Inner,
    phase: Phase,
    /// CPUs busy outside the kernel while all ran side by side, when that was last looked at.
    side_by_side: Option<f64>,
    began: Option<Nanos>,
    looked_at: Nanos,
    look_at: Nanos,
    /// The wake-up that was asked for last.
    asked_for: Nanos,
    /// Somebody came or went since the last look.
    disturbed: bool,
    /// What trials have cost, and gangs that were none too good: time of the whole machine.
    explored: Nanos,
    pause: Nanos,
    next_trial: Nanos,
    told: Option<(Manner, Ground)>,
}

impl Auto {
    pub(crate) fn new(options: &Options) -> Auto {
        Auto {
            options: options.clone(),
            line: Line::new(options.goal != Goal::Throughput),
            seen: BTreeMap::new(),
            inner: Inner::new(Unmanaged::together()),
            phase: Phase::SideBySide,
            side_by_side: None,
            began: None,
            looked_at: Nanos::ZERO,
            look_at: Nanos::NEVER,
            asked_for: Nanos::NEVER,
            disturbed: false,
            explored: Nanos::ZERO,
            pause: PAUSES.0,
            next_trial: Nanos::ZERO,
            told: None,
        }
    }

    /// Those that could take turns.
    fn candidates<'a>(&'a self, world: &World<'a>) -> impl Iterator<Item = &'a Program> {
        world.programs.iter().filter(move |p| {
            let is_left_alone =
                matches!(p.state, ProgramState::StoppedByOther | ProgramState::Exiting);
            self.line.has(p.id) && p.freezable && !is_left_alone
        })
    }

    fn seen(&self, program: &Program) -> Seen {
        self.seen.get(&program.id.slot).copied().unwrap_or_default()
    }

    /// Those that compete for CPUs, as they were seen.
    fn rivals(&self, by: fn(&Seen, usize) -> Rival, world: &World<'_>) -> Vec<Rival> {
        let competing = self.candidates(world).filter(|p| !self.seen(p).idles);
        competing.map(|p| by(&self.seen(p), asked(p, world))).collect()
    }

    /// The same by what all ask for, as if nothing had been seen.
    fn in_the_dark(&self, world: &World<'_>) -> Vec<Rival> {
        self.candidates(world).map(|p| Seen::default().beside(asked(p, world))).collect()
    }

    /// Takes in how wide programs are, and who competes.
    fn learn(&mut self, did: &Interval, world: &World<'_>) {
        let least = match self.phase {
            Phase::Trial { moment } => moment / 2,
            _ => MOMENT.1,
        };
        let threads: usize = self.in_the_dark(world).iter().map(|rival| rival.threads).sum();
        let share = world.cpus.len() as f64 / threads.max(1) as f64;
        let idles = match self.phase {
            Phase::SideBySide => IDLES.0.min(IDLES.1 * share),
            _ => IDLES.0,
        };
        for (id, did) in did.0.iter().filter(|(_, did)| did.running >= least.as_secs_f64()) {
            let seen = self.seen.entry(id.slot).or_default();
            seen.idles = did.width() < idles;
            if self.phase != Phase::SideBySide {
                seen.alone = Some((did.width(), did.rate(world.cpus.len())));
            }
        }
    }

    /// CPUs for those who wait for their start.
    fn room(&self, did: &Interval, world: &World<'_>) -> Room {
        let (cpus, programs) = (world.cpus.len() as f64, did.0.len());
        let idle = cpus - did.useful(world.cpus.len());
        let is_idle = idle >= (cpus * (1.0 - BUSY)).max(0.5) && !is_short(did, world);
        if self.phase != Phase::SideBySide || self.disturbed || programs == 0 || !is_idle {
            return Room::default();
        }
        let each = (did.used() / programs as f64).max(1.0);
        Room { idle, programs: ((idle / each) as usize).max(1) }
    }

    fn looked(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        let ids: Vec<ProgramId> = self.candidates(world).map(|p| p.id).collect();
        let own = did.of_those(|id| ids.contains(&id));
        self.learn(&own, world);
        match self.phase {
            Phase::SideBySide => self.looked_side_by_side(is_short(did, world), &own, world, plan),
            Phase::Trial { .. } => self.end_trial(&own, world, plan),
            Phase::InGangs => self.looked_at_gangs(&own, world, plan),
        }
    }

    /// CPUs are short or not, and this is what those did that could take turns.
    fn looked_side_by_side(
        &mut self,
        is_short: bool,
        did: &Interval,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        if self.disturbed {
            return self.look_in(LOOK, world);
        }
        self.side_by_side = Some(did.useful(world.cpus.len()));
        let soon = if self.line.waits() { LOOK } else { NEXT_LOOK };
        let settled = is_settled(&self.rivals(Seen::beside, world), world.cpus.len());
        if let Some(ground) = settled.or((!is_short).then_some(Ground::CpusIdle)) {
            self.tell(Manner::SideBySide, ground, None, plan);
            self.look_in(soon, world);
        } else if world.now < self.next_trial {
            self.look_at = self.next_trial;
            if self.line.waits() {
                self.look_in(LOOK, world);
            }
        } else {
            self.begin_trial(world, plan);
        }
    }

    fn begin_trial(&mut self, world: &World<'_>, plan: &mut Plan) {
        let moments = self.rivals(Seen::beside, world).len() as u64;
        let moment = (TRIAL / moments.max(1)).clamp(MOMENT.0, MOMENT.1);
        self.phase = Phase::Trial { moment };
        let options = Options { quantum: moment, ..self.options.clone() };
        let known =
            |p: &Program| Known { idles: self.seen(p).idles, threads: None, unweighted: true };
        let known = self.candidates(world).map(|p| (p.id, known(p))).collect();
        self.inner = Inner::new(Rounds::new(&options, gang::cut, None)).knowing(known);
        plan.because(None, Why::LooksAtEach { moment, moments: moments as u16 });
        self.look_in(moment * moments, world);
    }

    fn end_trial(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        self.pay(did, world);
        let rivals = self.rivals(Seen::alone, world);
        let reference = self.side_by_side.unwrap_or_default();
        let most_lost = self.options.goal.most_lost();
        let verdict = match self.candidates(world).any(|p| self.seen(p).alone.is_some()) {
            true => judge(&rivals, world.cpus.len(), reference, most_lost),
            false => Verdict::UNSEEN,
        };
        match verdict.manner {
            Manner::InGangs => self.make_gangs(verdict, world, plan),
            Manner::SideBySide => self.go_side_by_side(verdict, world, plan),
        }
    }

    fn looked_at_gangs(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        let reference = self.side_by_side.unwrap_or_default();
        let most_lost = self.options.goal.most_lost();
        let is_as_much = did.useful(world.cpus.len()) >= (1.0 - most_lost) * reference;
        if self.disturbed || (is_as_much && !self.somebody_woke(world)) {
            return self.look_in(CHECK, world);
        }
        let verdict =
            judge(&self.rivals(Seen::alone, world), world.cpus.len(), reference, most_lost);
        let is_new = self.known(world) != *self.inner.known();
        match verdict.manner {
            Manner::InGangs if is_new => self.make_gangs(verdict, world, plan),
            // What was expected did not come.
            _ => {
                self.pay(did, world);
                let ground = match verdict.ground {
                    Ground::GangsFill => Ground::GangsIdle,
                    other => other,
                };
                let in_gangs = Some(did.useful(world.cpus.len()));
                let verdict = Verdict { manner: Manner::SideBySide, ground, in_gangs };
                self.go_side_by_side(verdict, world, plan);
            }
        }
    }

    /// Whether somebody competes now who was taken not to.
    fn somebody_woke(&self, world: &World<'_>) -> bool {
        let was_idle = |p: &Program| self.inner.known().get(&p.id).is_some_and(|known| known.idles);
        self.candidates(world).any(|p| was_idle(p) && !self.seen(p).idles)
    }

    /// What the gangs of now are to know of programs.
    fn known(&self, world: &World<'_>) -> BTreeMap<ProgramId, Known> {
        let known = |p: &Program| {
            let seen = self.seen(p);
            let threads = seen.narrow(asked(p, world)).map(|threads| threads as u16);
            (p.id, Known { idles: seen.idles, threads, unweighted: false })
        };
        self.candidates(world).map(known).collect()
    }

    fn make_gangs(&mut self, verdict: Verdict, world: &World<'_>, plan: &mut Plan) {
        let quantum = self.options.goal.quantum(self.options.quantum);
        let options = Options { quantum, ..self.options.clone() };
        let inner = match self.options.goal {
            Goal::Fair => Inner::new(Rounds::new(&options, greedy::cut, None)),
            _ => Inner::new(Minwait::new(&options)),
        };
        self.inner = inner.knowing(self.known(world));
        self.phase = Phase::InGangs;
        self.tell(verdict.manner, verdict.ground, verdict.in_gangs, plan);
        self.look_in(CHECK, world);
    }

    fn go_side_by_side(&mut self, verdict: Verdict, world: &World<'_>, plan: &mut Plan) {
        self.inner = Inner::new(Unmanaged::together());
        self.phase = Phase::SideBySide;
        self.next_trial = self.affordable().max(world.now + self.pause);
        self.pause = (self.pause * 2).min(PAUSES.1);
        self.tell(Manner::SideBySide, verdict.ground, verdict.in_gangs, plan);
        self.look_in(if self.line.waits() { LOOK } else { NEXT_LOOK }, world);
    }

    /// An interval has cost what was not done in it of what is done side by side.
    fn pay(&mut self, did: &Interval, world: &World<'_>) {
        let length = did.0.values().map(|did| did.seconds).fold(0.0, f64::max);
        let reference = self.side_by_side.filter(|rate| *rate > 0.0);
        let lost = reference
            .map_or(0.0, |rate| (1.0 - did.useful(world.cpus.len()) / rate).clamp(0.0, 1.0));
        self.explored += Nanos((length * lost * 1e9) as u64);
    }

    /// From when on trials have cost little enough of the run.
    fn affordable(&self) -> Nanos {
        self.began.unwrap_or_default() + self.explored * BUDGET
    }

    /// Somebody came or went.
    fn mix_changed(&mut self, world: &World<'_>, plan: &mut Plan) {
        let cpus = world.cpus.len();
        if let Some(ground) = is_settled(&self.in_the_dark(world), cpus) {
            if self.phase != Phase::SideBySide {
                self.inner = Inner::new(Unmanaged::together());
                self.phase = Phase::SideBySide;
            }
            self.tell(Manner::SideBySide, ground, None, plan);
            self.look_at = Nanos::NEVER;
            if self.line.waits() {
                self.look_in(LOOK, world);
            }
            return;
        }
        (self.pause, self.next_trial) =
            (PAUSES.0, self.next_trial.min(self.affordable().max(world.now)));
        if self.phase != Phase::SideBySide {
            return;
        }
        if self.told.is_none() && self.all_scale(world) {
            self.side_by_side = Some(cpus as f64);
            let ground = Ground::KnownToScale;
            return self.make_gangs(
                Verdict { manner: Manner::InGangs, ground, in_gangs: None },
                world,
                plan,
            );
        }
        if self.told.is_none() {
            self.tell(Manner::SideBySide, Ground::Begins, None, plan);
        }
        let next = if self.disturbed { SOON } else { LOOK };
        self.look_at = self.look_at.min(world.now + next);
    }

    /// Whether it is known of all that they use their CPUs well.
    fn all_scale(&self, world: &World<'_>) -> bool {
        self.candidates(world).all(|p| {
            let threads = asked(p, world) as u16;
            let Some(speedup) = p.profile.speedup else { return false };
            let is_known = speedup.times().first().is_some_and(|(fewest, _)| *fewest == 1)
                && speedup.times().iter().any(|(count, _)| *count >= threads);
            let each = speedup.speed(threads) / speedup.speed(1) / f64::from(threads);
            is_known && threads > 1 && each >= SCALES
        })
    }

    fn look_in(&mut self, time: Nanos, world: &World<'_>) {
        self.look_at = world.now + time;
    }

    /// Says how programs are run from now on, if that is another way than before or another reason.
    fn tell(&mut self, manner: Manner, ground: Ground, in_gangs: Option<f64>, plan: &mut Plan) {
        if self.told.replace((manner, ground)) != Some((manner, ground)) {
            let (side_by_side, explored) = (self.side_by_side, self.explored);
            plan.because(None, Why::Chosen { manner, ground, side_by_side, in_gangs, explored });
        }
    }
}

/// How many CPUs a program asks for, 1 to all.
fn asked(program: &Program, world: &World<'_>) -> usize {
    usize::from(program.asked).clamp(1, world.cpus.len().max(1))
}

/// Whether threads wait for CPUs.
fn is_short(did: &Interval, world: &World<'_>) -> bool {
    let cpus = world.cpus.len() as f64;
    match did.waiting() {
        Some(threads) => threads >= SHORT * cpus,
        None => did.used() >= BUSY * cpus,
    }
}

/// Whether others are there from now on, or may run elsewhere.
fn changes(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Arrived(_)
            | Cause::Exited(..)
            | Cause::Continued(_)
            | Cause::Grouped(_)
            | Cause::MachineChanged
            | Cause::Commanded(_)
    )
}

impl Policy for Auto {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if only_settled(causes) {
            return;
        }
        self.began.get_or_insert(world.now);
        let looked = causes.contains(&Cause::Woke(LOOKS));
        let did = looked.then(|| Interval::of(world.samples, self.looked_at));
        let room = did.as_ref().map_or_else(Room::default, |did| self.room(did, world));
        let was_empty = self.line.is_empty();
        let new = self.line.update(room, world, plan);
        for id in &new {
            let (program, period) = (Some(*id), Nanos::NEVER);
            plan.observe.extend(MEASURES.map(|measure| Observe { program, measure, period }));
        }
        if let Some(did) = did {
            (self.looked_at, self.asked_for) = (world.now, Nanos::NEVER);
            self.looked(&did, world, plan);
            self.disturbed = false;
        }
        if !new.is_empty() || causes.iter().any(changes) {
            // Whoever comes when nobody is there disturbs nobody.
            self.disturbed |= !was_empty;
            self.mix_changed(world, plan);
        }
        let Auto { inner, line, .. } = self;
        inner.decide(causes, &new, |id| line.has(id), world, plan);
        if self.look_at != self.asked_for {
            self.asked_for = self.look_at;
            plan.wake.push(Wake { token: LOOKS, at: self.look_at, first: AtExpiry::Read });
        }
    }
}

#[cfg(test)]
mod tests;
