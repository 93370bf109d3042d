//! From one way to run to another, by what was seen: the picture at the top of `auto.rs`.

use cosched_core::{Ground, Manner, Nanos, Plan, Program, ProgramId, Why, World};

use super::inner::{Inner, Known};
use super::interval::Interval;
use super::judgement::{Verdict, is_settled, judge};
use super::line::Room;
use super::seen::Seen;
use super::{Auto, Goal};
use crate::kind::Options;
use crate::minwait::Minwait;
use crate::rounds::Rounds;
use crate::unmanaged::Unmanaged;
use crate::{gang, greedy};

/// How long programs run before they are looked at.
pub(super) const LOOK: Nanos = Nanos::from_millis(100);
/// How soon after somebody came or went an interval begins that has nothing of before.
const SOON: Nanos = Nanos::from_millis(10);
/// How long it is until the next look where CPUs are idle.
const NEXT_LOOK: Nanos = Nanos::from_millis(500);
/// How long a trial takes, if that gives everybody a moment within [`MOMENT`].
const TRIAL: Nanos = Nanos::from_millis(120);
/// The shortest moment of one program alone, and the longest.
pub(super) const MOMENT: (Nanos, Nanos) = (Nanos::from_millis(5), Nanos::from_millis(30));
/// How often gangs are looked at.
const CHECK: Nanos = Nanos::from_secs(1);
/// CPUs are short where so many threads wait for one, as part of the CPUs that there are,
const SHORT: f64 = 0.1;
/// and if that is not known, where this part of them is used.
const BUSY: f64 = 0.9;

/// Where it is in the picture above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    SideBySide,
    Trial { moment: Nanos },
    InGangs,
}

impl Auto {
    /// CPUs for those who wait for their start.
    pub(super) fn room(&self, did: &Interval, world: &World<'_>) -> Room {
        let (cpus, programs) = (world.cpus.len() as f64, did.0.len());
        let idle = cpus - did.useful(world.cpus.len());
        let is_idle = idle >= (cpus * (1.0 - BUSY)).max(0.5) && !is_short(did, world);
        if self.phase != Phase::SideBySide || self.disturbed || programs == 0 || !is_idle {
            return Room::default();
        }
        let each = (did.used() / programs as f64).max(1.0);
        Room { idle, programs: ((idle / each) as usize).max(1) }
    }

    pub(super) fn looked(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
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
        } else if world.now < self.budget.next() {
            self.look_at = self.budget.next();
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
        self.budget.pause(world.now);
        self.tell(Manner::SideBySide, verdict.ground, verdict.in_gangs, plan);
        self.look_in(if self.line.waits() { LOOK } else { NEXT_LOOK }, world);
    }

    /// An interval has cost what was not done in it of what is done side by side.
    fn pay(&mut self, did: &Interval, world: &World<'_>) {
        let length = did.0.values().map(|did| did.seconds).fold(0.0, f64::max);
        let reference = self.side_by_side.filter(|rate| *rate > 0.0);
        let lost = reference.map_or(0.0, |rate| 1.0 - did.useful(world.cpus.len()) / rate);
        self.budget.pay(length, lost);
    }

    /// Somebody came or went.
    pub(super) fn mix_changed(&mut self, world: &World<'_>, plan: &mut Plan) {
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
        self.budget.renew(world.now);
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

    fn look_in(&mut self, time: Nanos, world: &World<'_>) {
        self.look_at = world.now + time;
    }
}

/// Whether threads wait for CPUs.
fn is_short(did: &Interval, world: &World<'_>) -> bool {
    let cpus = world.cpus.len() as f64;
    match did.waiting() {
        Some(threads) => threads >= SHORT * cpus,
        None => did.used() >= BUSY * cpus,
    }
}
