//! From one way to run to another, by what was seen: the picture at the top of `auto.rs`.

use cosched_core::{Ground, Level, Manner, Nanos, Plan, Program, ProgramId, Speedups, Why, World};

use super::goal::NOISE;
use super::inner::Known;
use super::interval::Interval;
use super::judgement::{
    Beside, Rival, SAVED, Spinning, Verdict, by_progress, is_settled, judge, speedup_in_turns,
    spinning,
};
use super::line::Room;
use super::progress;
use super::seen::Seen;
use super::{Auto, Goal};
use crate::greedy;
use crate::kind::Options;
use crate::minwait::{self, Share};
use crate::rounds::{Gang, Rounds};
use crate::unit::Unit;

/// How long programs run before they are looked at.
pub(super) const LOOK: Nanos = Nanos::from_millis(75);
/// How soon after somebody came or went an interval begins that has nothing of before, nor of how programs make their threads.
pub(super) const SETTLE: Nanos = Nanos::from_millis(12);
/// Where somebody comes and goes all the time, no more looks in a row than these are begun anew for it.
pub(super) const MOST_SPOILT: u32 = 3;
/// How long it is until the next look where CPUs are idle.
pub(super) const NEXT_LOOK: Nanos = Nanos::from_millis(500);
/// How long a trial takes, if that gives everybody a moment within [`MOMENT`].
const TRIAL: Nanos = Nanos::from_millis(80);
/// The shortest moment of one program alone, and the longest.
pub(super) const MOMENT: (Nanos, Nanos) = (Nanos::from_millis(5), Nanos::from_millis(30));
/// How long all run side by side at most, out of gangs.
const LOOK_BACK: Nanos = Nanos::from_millis(100);
/// How often gangs are looked at.
pub(super) const CHECK: Nanos = Nanos::from_secs(1);
/// When gangs and fewer threads are looked at first, where quanta are short. That they do as much is only an assumption.
pub(super) const FIRST_CHECK: Nanos = Nanos::from_millis(300);
/// For so long (the engine's patience with a freeze) others have to wait for whoever is not stopped in time, and share its turn then,
const LATE: Nanos = Nanos::from_millis(50);
/// which is no way to run where it takes this part of the time.
const MOST_OVERLAP: f64 = 0.2;
/// CPUs are short where so many threads wait for one, as part of the CPUs that there are,
const SHORT: f64 = 0.1;
/// and if that is not known, where this part of them is used.
const BUSY: f64 = 0.9;

/// Where it is in the picture above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    SideBySide,
    Trial {
        moment: Nanos,
    },
    InGangs,
    /// Side by side for a moment, out of gangs.
    LooksBack,
    FewerThreads,
}

impl Auto {
    /// CPUs for those who wait for their start.
    pub(super) fn room(&self, did: &Interval, world: &World<'_>) -> Room {
        let (cpus, programs) = (world.cpus.len() as f64, did.0.len());
        let idle = cpus - did.busy(world.cpus.len());
        let is_idle = idle >= (cpus * (1.0 - BUSY)).max(0.5) && !is_short(did, world);
        if self.phase != Phase::SideBySide || self.disturbed || programs == 0 || !is_idle {
            return Room::default();
        }
        let each = (did.used() / programs as f64).max(1.0);
        Room { idle, programs: ((idle / each) as usize).max(1) }
    }

    pub(super) fn looked(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        let ids: Vec<ProgramId> = self.candidates(world).map(|p| p.id).collect();
        let borrowed = self.inner.take_borrowed();
        self.see_others(&did.clone().without_queues_of(&borrowed), world);
        let own = did.of_those(|id| ids.contains(&id)).without_queues_of(&borrowed);
        let waited = |id| self.seen(world.program(id)?).waited(self.phase);
        let own = own.waiting_as(waited);
        self.learn(&own, &borrowed, world);
        let late = std::mem::take(&mut self.stopped_late);
        let overlap = (LATE * late).as_secs_f64();
        let are_late = late > 1 && overlap >= MOST_OVERLAP * own.seconds();
        match self.phase {
            Phase::Trial { .. } | Phase::InGangs | Phase::FewerThreads if are_late => {
                self.give_up_turns(&own, world, plan);
            }
            Phase::SideBySide => self.looked_side_by_side(is_short(did, world), &own, world, plan),
            Phase::Trial { .. } => self.end_trial(&own, world, plan),
            Phase::InGangs => self.looked_at_gangs(&own, world, plan),
            Phase::LooksBack => self.looked_back(&own, world, plan),
            Phase::FewerThreads => self.looked_at_fewer_threads(&own, world, plan),
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
            self.spoilt += 1;
            // Where somebody comes and goes all the time, only every other interval is seen.
            return match self.watch.was_on() {
                true => self.look_in(LOOK, world),
                false => self.look_closely(world),
            };
        }
        self.spoilt = 0;
        self.see_side_by_side(did, world);
        let soon = if self.line.waits() { LOOK } else { NEXT_LOOK };
        let settled = is_settled(&self.rivals(Seen::beside, world), world.cpus.len());
        if let Some(ground) = settled.or((!is_short).then_some(Ground::CpusIdle)) {
            self.tell(Verdict::new(Manner::SideBySide, ground), world, plan);
            self.look_in(soon, world);
        } else if !self.are_loaded(world) {
            self.look_in(LOOK, world);
        } else if let Some(verdict) = self.overruled(world) {
            self.follow(verdict, world, plan);
        } else if self.hardly_waits(world) {
            let verdict = Verdict::new(Manner::SideBySide, Ground::LittleWaiting);
            self.verdict = Some(verdict);
            self.tell(verdict, world, plan);
            let pause = self.watch.pause();
            self.look_in(if self.line.waits() { LOOK } else { pause }, world);
        } else if world.now < self.budget.next() {
            self.look_between_trials(world, plan);
        } else if self.somebody_shows_waits(world) && !self.watch.was_on() {
            // What is compared with the trial is to be seen as well as that.
            self.look_closely(world);
        } else {
            self.watch.renew();
            self.begin_trial(world, plan);
        }
    }

    /// There is no trial for some time. Programs go on to something else meanwhile, and side by side may become worse than what
    /// each did alone would come to in turns. Then it is time for one, since it is not expected to cost anything. Where turns
    /// have ended otherwise than by a trial, what was expected of them has been wrong before, and the pause is kept.
    fn look_between_trials(&mut self, world: &World<'_>, plan: &mut Plan) {
        let is_by_waiting =
            self.follows_trial && self.is_by_cpu_time() && self.somebody_shows_waits(world);
        if self.line.waits() {
            self.look_in(LOOK, world);
        } else if !is_by_waiting {
            self.look_at = self.budget.next();
        } else if !self.watch.was_on() {
            self.look_closely(world);
        } else if self.shows_loss(world) && self.budget.is_kept(world.now) {
            self.begin_trial(world, plan);
        } else {
            let pause = self.watch.pause();
            self.look_at = self.budget.next().min(world.now + pause);
        }
    }

    /// Whether it is seen, of all, that they wait so much by now that they would do more in turns.
    fn shows_loss(&self, world: &World<'_>) -> bool {
        let is_seen = self.side_by_side.is_some_and(|beside| beside.waiting.is_some());
        is_seen && self.by_cpu_time(world).manner == Manner::InGangs
    }

    /// Whether it was judged by CPU time that turns would bring less.
    fn is_by_cpu_time(&self) -> bool {
        let grounds = [Ground::GangsIdle, Ground::LittleWaiting];
        self.verdict.is_some_and(|verdict| grounds.contains(&verdict.ground))
    }

    /// Begins an interval in which it is seen whether threads wait.
    fn look_closely(&mut self, world: &World<'_>) {
        self.watch.want();
        self.look_in(LOOK, world);
        self.glance(world);
    }

    /// Whether threads were seen to wait so little that turns can bring nothing, and so no trial is needed to tell.
    fn hardly_waits(&self, world: &World<'_>) -> bool {
        let spinning = self.spinning(&self.rivals(Seen::beside, world), world);
        let waiting = self.side_by_side.and_then(|beside| beside.waiting);
        let is_little = |waiting: f64| waiting < SAVED * world.cpus.len() as f64;
        let has_to_win = self.options.goal.most_lost(spinning) < 0.0;
        // Progress tells more, but only where it is known alone.
        let somebody_tells = self.competing(world).any(|p| self.seen(p).tells);
        self.watch.was_on()
            && waiting.is_some_and(is_little)
            && has_to_win
            && !somebody_tells
            && !self.may_have_fewer(Manner::SideBySide, world)
    }

    /// What programs tell against a judgement by CPU time that turns would leave CPUs idle: what they did alone is known from
    /// the trial, and what they do side by side since then. So that needs no other trial.
    fn overruled(&self, world: &World<'_>) -> Option<Verdict> {
        if !self.is_by_cpu_time() {
            return None;
        }
        let rivals = self.rivals(Seen::alone, world);
        let in_turns = speedup_in_turns(&self.shares(&rivals, world));
        let told = self.by_what_they_tell(in_turns, world)?;
        (told.manner == Manner::InGangs).then_some(told)
    }

    fn begin_trial(&mut self, world: &World<'_>, plan: &mut Plan) {
        let rivals = self.rivals(Seen::beside, world);
        let single = rivals.iter().filter(|rival| rival.threads < 2).count();
        let moments = rivals.len() - single + single.div_ceil(world.cpus.len().max(1));
        let moments = moments as u64;
        let moment = (TRIAL / moments.max(1)).clamp(MOMENT.0, MOMENT.1);
        self.phase = Phase::Trial { moment };
        self.watch.want_anew();
        let options = Options { quantum: moment, ..self.options.clone() };
        let known =
            |p: &Program| Known { idles: self.seen(p).idles, threads: None, on_trial: true };
        let known = self.candidates(world).map(|p| (p.id, known(p))).collect();
        self.inner.change(Box::new(Rounds::new(&options, moments_of, None)), known, false);
        plan.because(None, Why::LooksAtEach { moment, moments: moments as u16 });
        self.look_in(moment * moments, world);
    }

    /// Where some run on into the turns of others, nobody waits less, and what stopping costs is lost: all that time is paid for.
    fn give_up_turns(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        self.budget.pay(did.seconds(), 1.0);
        let verdict = Verdict::new(Manner::SideBySide, Ground::StoppedLate);
        self.go_side_by_side(verdict, world, plan);
    }

    fn end_trial(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        self.pay(did, None, world);
        let verdict = match self.candidates(world).any(|p| self.seen(p).alone.is_some()) {
            true => self.by_cpu_time(world),
            false => Verdict::UNSEEN,
        };
        let rivals = self.rivals(Seen::alone, world);
        let in_turns = speedup_in_turns(&self.shares(&rivals, world));
        let verdict =
            self.by_what_they_tell(in_turns, world).filter(|_| is_open(verdict)).unwrap_or(verdict);
        self.follow(verdict, world, plan);
    }

    /// By CPU time.
    fn by_cpu_time(&self, world: &World<'_>) -> Verdict {
        self.against(self.side_by_side.unwrap_or_default(), world)
    }

    /// By CPU time, against what is done so side by side.
    fn against(&self, beside: Beside, world: &World<'_>) -> Verdict {
        let rivals = self.rivals(Seen::alone, world);
        let turns = self.shares(&rivals, world);
        let spinning = spinning(&rivals, beside, world.cpus.len(), self.others.is_some());
        let most_lost = self.options.goal.most_lost(spinning);
        judge(&rivals, &turns, world.cpus.len(), beside, spinning, most_lost)
    }

    fn spinning(&self, rivals: &[Rival], world: &World<'_>) -> Spinning {
        let beside = self.side_by_side.unwrap_or_default();
        spinning(rivals, beside, world.cpus.len(), self.others.is_some())
    }

    /// Takes in what was done side by side.
    fn see_side_by_side(&mut self, did: &Interval, world: &World<'_>) {
        let is_seen = self.watch.was_on() && self.all_show_waits(did, world);
        self.side_by_side = Some(Beside::of(did, world.cpus.len(), is_seen));
    }

    /// What these would have of the machine in the gangs that would be made of them.
    pub(super) fn shares(&self, rivals: &[Rival], world: &World<'_>) -> Vec<Share> {
        let sizes: Vec<usize> = rivals.iter().map(|rival| rival.threads).collect();
        let cpus = world.cpus.len();
        match self.options.goal {
            Goal::Fair => {
                let seated = 1.0 / greedy::turns(&sizes, cpus).max(1.0);
                vec![Share { seated, lent: 0.0 }; sizes.len()]
            }
            _ => {
                let cores = world.topology.spanned(world.cpus, Level::Core);
                minwait::shares(&sizes, cpus, cpus.div_ceil(cores.max(1)))
            }
        }
    }

    /// By what programs tell of their progress, if that is enough.
    fn by_what_they_tell(&self, in_turns: f64, world: &World<'_>) -> Option<Verdict> {
        by_progress(self.speedup_side_by_side(world)?, in_turns, self.options.goal.worth())
    }

    /// Whether as much is done as side by side, by CPU time, but for this part of it.
    pub(super) fn is_as_much(&self, did: &Interval, most_lost: f64, world: &World<'_>) -> bool {
        let reference = self.reference(world).unwrap_or_default();
        reference.alike(did, world.cpus.len()) >= (1.0 - most_lost) * reference.useful
    }

    /// What is done side by side, as other ways are to be compared with it.
    fn reference(&self, world: &World<'_>) -> Option<Beside> {
        let spinning = self.spinning(&self.rivals(Seen::alone, world), world);
        match spinning {
            Spinning::AmongOthers => self.side_by_side.map(Beside::with_all_at_work),
            _ => self.side_by_side,
        }
    }

    fn looked_at_gangs(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        if self.disturbed {
            return self.look_in(CHECK, world);
        }
        let in_turns = self.share_of_turns(did, world);
        let told = self.by_what_they_tell(in_turns, world);
        let spinning = self.spinning(&self.rivals(Seen::alone, world), world);
        // What had to be won, or might be lost, may be noise later.
        let most_lost = self.options.goal.most_lost(spinning).max(0.0) + NOISE;
        let stays = match told {
            Some(told) => told.manner == Manner::InGangs,
            None => self.progress_decided(world) || self.is_as_much(did, most_lost, world),
        };
        if stays && !self.somebody_woke(world) && !self.somebody_dozes(world) {
            self.look_in(CHECK, world);
            return self.look_back(in_turns, world, plan);
        }
        let verdict = told.unwrap_or_else(|| self.by_cpu_time(world));
        let is_new = self.known(false, world) != *self.inner.known();
        if verdict.manner == Manner::InGangs && (is_new || told.is_some()) {
            return self.make_gangs(verdict, world, plan);
        }
        // What was expected did not come.
        self.pay(did, verdict.speedups, world);
        let ground = match verdict.ground {
            Ground::GangsFill | Ground::MuchWaiting => Ground::GangsIdle,
            other => other,
        };
        let in_gangs = Some(did.useful(world.cpus.len()));
        let verdict = Verdict { manner: Manner::SideBySide, ground, in_gangs, ..verdict };
        self.follow(verdict, world, plan);
    }

    /// Whether gangs were chosen for what programs tell, and they still tell something: then only that may end it, and CPU
    /// time does not.
    fn progress_decided(&self, world: &World<'_>) -> bool {
        let decided = |verdict: Verdict| verdict.ground == Ground::FurtherInTurns;
        self.verdict.is_some_and(decided) && self.somebody_tells(world)
    }

    /// The weighted speedup in turns, by the turns that those had who compete.
    fn share_of_turns(&self, did: &Interval, world: &World<'_>) -> f64 {
        let shares = self.competing(world).filter_map(|p| did.0.get(&p.id));
        shares.map(|did| did.running / did.seconds).sum()
    }

    /// Lets all run side by side for a moment, if their progress can tell in that whether turns are the better way, or it is
    /// seen whether they wait.
    fn look_back(&mut self, in_turns: f64, world: &World<'_>, plan: &mut Plan) {
        let alone = self.competing(world).map(|p| self.seen(p).in_turns);
        let by_progress = progress::moment(alone, in_turns).filter(|moment| *moment <= LOOK_BACK);
        let shows_waits = self.side_by_side.is_some_and(|beside| beside.waiting.is_some());
        let Some(moment) = by_progress.or(shows_waits.then_some(MOMENT.1)) else {
            return;
        };
        let moment = moment.max(MOMENT.1);
        if self.budget.allows_looking_back(world.now, moment) {
            self.in_turns = in_turns;
            self.leave_to_kernel(Phase::LooksBack);
            self.watch.want_anew();
            plan.because(None, Why::LooksBack { moment });
            self.look_in(moment, world);
            // Progress needs all of it.
            if by_progress.is_none() {
                self.glance_back(world);
            }
        }
    }

    fn looked_back(&mut self, did: &Interval, world: &World<'_>, plan: &mut Plan) {
        let least = self.speedup_side_by_side(world).map_or(0.0, |speedup| speedup.least);
        let kept = if self.in_turns > 0.0 { least / self.in_turns } else { 0.0 };
        self.budget.pay(did.seconds(), 1.0 - kept);
        let told = self.by_what_they_tell(self.in_turns, world);
        let by_cpu_time = || {
            let is_seen = self.watch.was_on() && self.all_show_waits(did, world);
            let found = self.against(Beside::of(did, world.cpus.len(), true), world);
            // That they hardly wait may be so for this moment only, and then turns cost hardly anything.
            let is_worse = is_seen && found.ground == Ground::GangsIdle;
            (is_worse && !self.progress_decided(world)).then_some(found)
        };
        match told.or_else(by_cpu_time).filter(|_| !self.disturbed) {
            Some(verdict) if verdict.manner == Manner::SideBySide => {
                self.see_side_by_side(did, world);
                self.follow(verdict, world, plan);
            }
            told => {
                self.budget.pause(world.now);
                let verdict = told.or(self.verdict).unwrap_or(Verdict::UNSEEN);
                self.make_gangs(verdict, world, plan);
            }
        }
    }

    /// An interval has cost what was not done in it of what is done side by side: by CPU time or by progress, whichever is more.
    pub(super) fn pay(&mut self, did: &Interval, speedups: Option<Speedups>, world: &World<'_>) {
        let length = did.seconds();
        let reference = self.reference(world).filter(|beside| beside.useful > 0.0);
        let done = |beside: Beside| beside.alike(did, world.cpus.len()) / beside.useful;
        let lost = reference.map_or(0.0, |beside| 1.0 - done(beside));
        let further = speedups.map_or(0.0, |told| 1.0 - told.in_turns / told.side_by_side);
        self.budget.pay(length, lost.max(further));
    }

    /// Somebody came or went.
    pub(super) fn mix_changed(&mut self, world: &World<'_>, plan: &mut Plan) {
        self.watch.renew();
        let cpus = world.cpus.len();
        let alone = (world.programs.len() == 1).then_some(Ground::Alone);
        if let Some(ground) = alone.or_else(|| is_settled(&self.in_the_dark(world), cpus)) {
            if self.phase != Phase::SideBySide {
                self.leave_to_kernel(Phase::SideBySide);
            }
            // What was seen is of those who were there before.
            (self.side_by_side, self.others) = (None, None);
            if !world.programs.is_empty() {
                self.tell(Verdict::new(Manner::SideBySide, ground), world, plan);
            }
            self.look_at = Nanos::NEVER;
            self.watch.stop();
            if self.line.waits() {
                self.look_in(LOOK, world);
            }
            return;
        }
        self.budget.renew(world.now);
        self.fewer_did_less = false;
        if self.phase != Phase::SideBySide {
            self.side_by_side = self.side_by_side.map(Beside::with_all_at_work);
            return;
        }
        if self.told.is_none() {
            let is_known = match () {
                () if self.all_scale(world) => Some((Manner::InGangs, Ground::KnownToScale)),
                () if self.some_scale_badly(world) => {
                    Some((Manner::SideBySide, Ground::KnownToScaleBadly))
                }
                () => None,
            };
            let is_known = is_known.filter(|(manner, _)| {
                *manner == Manner::InGangs || self.may_have_fewer(*manner, world)
            });
            if let Some((manner, ground)) = is_known {
                self.side_by_side = Some(Beside { useful: cpus as f64, waiting: None });
                return self.follow(Verdict::new(manner, ground), world, plan);
            }
            self.tell(Verdict::new(Manner::SideBySide, Ground::Begins), world, plan);
        }
        self.disturbed = self.spoilt < MOST_SPOILT;
        let next = if self.disturbed { SETTLE } else { LOOK };
        self.look_at = self.look_at.min(world.now + next);
    }

    pub(super) fn look_in(&mut self, time: Nanos, world: &World<'_>) {
        self.look_at = world.now + time;
    }
}

/// Whose moments are those of a trial: whoever has several threads is alone, and those of one thread have a CPU each.
fn moments_of(units: &[Unit], cpus: usize) -> Vec<Gang> {
    let in_gang = |unit| (unit, Why::InGang);
    let (wide, single): (Vec<usize>, Vec<usize>) =
        (0..units.len()).partition(|unit| units[*unit].threads > 1);
    let together = single.chunks(cpus.max(1));
    let together = together.map(|units| units.iter().copied().map(in_gang).collect());
    wide.into_iter().map(|unit| vec![in_gang(unit)]).chain(together).collect()
}

/// Whether the judgement is open to what programs tell: there is something to decide, and something was seen.
fn is_open(verdict: Verdict) -> bool {
    verdict.in_gangs.is_some() || verdict.ground == Ground::MuchWaiting
}

/// Whether threads wait for CPUs.
fn is_short(did: &Interval, world: &World<'_>) -> bool {
    let cpus = world.cpus.len() as f64;
    match did.waiting() {
        Some(threads) => threads >= SHORT * cpus,
        None => did.used() >= BUSY * cpus,
    }
}
