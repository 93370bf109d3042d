//! `auto`: chooses between side by side, gangs, fewer threads, and one after another, by what it sees.
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
//! Out of gangs, all may run side by side again for a moment, to compare. And where programs are malleable, both ways lead to
//! [fewer threads](fewer) instead, and from there back if that does less.
//!
//! *Algorithm.* 1. [Whoever comes](line) starts: everybody at once, or with the goal `throughput` as long as CPUs are idle. 2. After
//! [`LOOK`](phases), or sooner where threads are [seen](phases) to do hardly more than wait, and from then on whenever it is time, CPU times of that interval are read. Who [hardly runs](seen) is never
//! frozen, and counts for nothing. With at most one program left, threads for which there are CPUs, or CPUs that are
//! [not short](phases), nothing is done. 3. A trial: each program runs alone for a moment (those of one thread
//! together, as many as there are CPUs), [`TRIAL`](phases) in all where that goes. It tells how
//! many CPUs each uses, how many it keeps busy outside the kernel, and, where that is [seen](watch), on how many its threads
//! only wait. 4. Gangs are made by the CPUs that programs use, not by those
//! that they ask for: by `minwait`, which [lends](crate::minwait) what they leave free, for the goal `fair` by `greedy`. Each [`CHECK`](phases) it is looked whether as much is done as side by
//! side; if not, gangs are made anew by what was seen, and if these are the same, all run side by side again. 5. Programs that tell
//! of their [progress] show whether they spin. Where that is certain enough, it decides instead of CPU time.
//!
//! *Bounds.* A trial costs what it leaves undone of what is done side by side. After one, there is none before its cost, with that of
//! another like it, is a [20th](budget) of the run so far, nor before a pause that doubles each time; other programs make it short again, and it
//! ends where all are seen to wait so much by then that turns, as each was alone, would be better. Only the
//! first, of [`TRIAL`](phases), is not bound by that: in a run of less than 1.6 s it may cost more than 5 %.
//!
//! *Profiles.* Programs that are known to scale well, by times alone with several thread counts, take turns at once.
//! Where the last threads bring some of them little and they may have fewer, they have fewer at once. Those that may only be
//! *started* with fewer [were](crate::molding::mold), before there was anything to decide here; that is told when they come.
//!
//! *What it composes:* [`unmanaged`](crate::unmanaged), [`rounds`](crate::rounds) for trials, [`minwait`](crate::minwait),
//! [`greedy`](crate::greedy), and both with [`grants`](crate::grants); each [sees](inner) what is known of programs, and does what it always does.
//!
//! Ours; none of the papers chooses between policies.

mod budget;
mod fewer;
mod glance;
mod goal;
mod inner;
mod interval;
mod judgement;
mod line;
mod phases;
mod progress;
mod seen;
mod telling;
mod watch;
mod ways;

use std::collections::BTreeMap;

use cosched_core::{
    Aspect, AtExpiry, Cause, Ground, Manner, Measure, Nanos, Observe, Plan, Policy, Program,
    ProgramId, ProgramState, Reason, Refusal, Token, Wake, Why, World,
};

use crate::kind::Options;
use crate::unit::only_settled;
use crate::unmanaged::Unmanaged;
use budget::Budget;
pub use goal::Goal;
use inner::Inner;
use interval::Going;
use judgement::{Beside, Verdict};
use line::{Line, Room};
use phases::{MOST_SPOILT, Phase};
use seen::Seen;
use watch::Watch;

/// The wake-up at which everything is read; those of other policies have small numbers.
const LOOKS: Token = Token(100);
/// The same, for a look that ends only where it shows enough.
const GLANCES: Token = Token(101);
/// What is read of each program, at the wake-ups for that only.
const MEASURES: [Measure; 3] = [Measure::UserTime, Measure::CpuTime, Measure::Progress];

/// The policy that needs no name.
pub(crate) struct Auto {
    options: Options,
    line: Line,
    seen: BTreeMap<u16, Seen>,
    inner: Inner,
    phase: Phase,
    /// What was done while all ran side by side, when that was last looked at.
    side_by_side: Option<Beside>,
    /// The weighted speedup in turns, when all began to run side by side for a moment.
    in_turns: f64,
    /// How many CPUs other people's programs kept from them in the last look, where that is a notable part.
    others: Option<f64>,
    /// What was judged last.
    verdict: Option<Verdict>,
    /// Fewer threads did not help these programs; or they did, by what these tell.
    fewer_did_less: bool,
    fewer_did_more: bool,
    /// They run side by side since a trial ended, and not since turns did less than was expected or were not needed.
    follows_trial: bool,
    interval: Going,
    look_at: Nanos,
    /// When it is glanced at what is done, where that was just decided.
    glance_at: Option<Nanos>,
    /// The wake-up that was asked for last.
    asked_for: Nanos,
    /// Somebody came or went since the last look.
    disturbed: bool,
    /// How many looks in a row were spoilt by that.
    spoilt: u32,
    /// How often a program was not stopped in time since the last look.
    stopped_late: u64,
    budget: Budget,
    watch: Watch,
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
            in_turns: 0.0,
            others: None,
            verdict: None,
            fewer_did_less: false,
            fewer_did_more: false,
            follows_trial: false,
            interval: Going::default(),
            look_at: Nanos::NEVER,
            glance_at: None,
            asked_for: Nanos::NEVER,
            disturbed: false,
            spoilt: 0,
            stopped_late: 0,
            budget: Budget::new(),
            watch: Watch::new(),
            told: None,
        }
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

/// That a program was started with fewer threads, where it was.
fn molded(program: &Program) -> Option<Reason> {
    let asked = program.profile.molded?.asked;
    let why = Why::Molded { threads: program.asked, asked };
    Some(Reason { program: Some(program.id), why })
}

/// Whether a program that runs was not stopped in time.
fn is_late(cause: &Cause, world: &World<'_>) -> bool {
    let Cause::Deviated { program, wanted, why } = cause else { return false };
    let starts = world.program(*program).is_some_and(|p| p.state == ProgramState::Starting);
    !starts && *wanted == Aspect::Frozen && *why == Refusal::TimedOut
}

impl Policy for Auto {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if only_settled(causes) {
            return;
        }
        self.budget.runs(world.now);
        self.stopped_late += causes.iter().filter(|cause| is_late(cause, world)).count() as u64;
        self.interval.add(causes, world.samples);
        let glanced = causes.contains(&Cause::Woke(GLANCES));
        let shows_enough = glanced && self.mostly_wait(world);
        if glanced && !shows_enough {
            self.glance_again(world);
        }
        let looked = shows_enough || causes.contains(&Cause::Woke(LOOKS));
        let did = looked.then(|| self.interval.end());
        let room = did.as_ref().map_or_else(Room::default, |did| self.room(did, world));
        let was_empty = self.line.is_empty();
        let new = self.line.update(room, world, plan);
        for id in &new {
            let (program, period) = (Some(*id), Nanos::NEVER);
            plan.observe.extend(MEASURES.map(|measure| Observe { program, measure, period }));
            plan.reasons.extend(world.program(*id).and_then(molded));
        }
        if let Some(did) = did {
            self.asked_for = Nanos::NEVER;
            self.watch.end();
            self.looked(&did, world, plan);
            self.disturbed = false;
        }
        if !new.is_empty() || causes.iter().any(changes) {
            // Whoever comes when nobody is there disturbs nobody.
            self.disturbed |= !was_empty && self.spoilt < MOST_SPOILT;
            self.mix_changed(world, plan);
        }
        let Auto { inner, line, .. } = self;
        inner.decide(causes, &new, |id| line.has(id), world, plan);
        let inside = world.programs.iter().map(|p| p.id).filter(|id| self.line.has(*id));
        self.watch.switch(&inside.collect::<Vec<ProgramId>>(), plan);
        let glance = self.glance_at.take();
        plan.wake.extend(glance.map(|at| Wake { token: GLANCES, at, first: AtExpiry::Read }));
        if self.look_at != self.asked_for {
            self.asked_for = self.look_at;
            plan.wake.push(Wake { token: LOOKS, at: self.look_at, first: AtExpiry::Read });
        }
    }
}

#[cfg(test)]
mod tests;
