//! `auto`: programs take turns where that loses nothing that can be measured, and run together
//! otherwise.
//!
//! *Problem.* Where programs have no CPU groups, taking turns means being frozen. That saves a
//! multiple of the time where threads spin for siblings without a CPU. It loses where programs
//! leave CPUs idle in their turns.
//!
//! *Idea.* Start as Linux does. Where threads wait for CPUs, let each program run alone for a
//! moment: a *solo probe*. Programs that fill the CPUs alone take turns.
//!
//! ```text
//!                    CPUs are short                alone, they fill the CPUs
//!  running together ───────────────▶ solo probes ────────────────────────────▶ taking turns
//!     ▲        ▲                         │                                         │
//!     │        └─────────────────────────┘ alone, they leave CPUs idle             │
//!     └────────────────────────────────────────────────────────────────────────────┘
//!                 fewer than two compete, or they do less than together
//! ```
//!
//! *Algorithm.* 1. Every program starts at once. 2. [`Params::sample`] after the last one came, CPU
//! times are read. Nothing changes unless two programs compete, one of them has several threads,
//! and threads wait for CPUs. 3. Solo probes: each program runs alone for a moment (those of one
//! thread together, one on each CPU), for [`Params::probes`] in all where that is enough. They tell
//! how many CPUs each one uses. 4. [`judgement`] compares that with what all did together. 5. Gangs
//! are made by [`minwait`](crate::gangs::minwait), which gives leftover CPUs away. Programs that
//! [hardly run](programs) are never frozen. 6. Every [`Params::check`] it is measured whether as
//! much is done as together. If not, all run together again. Where turns are given up there is a
//! pause that doubles, until a program comes that was not there before.
//!
//! *Costs.* Solo probes lose a part of the work of running together, and are in vain where programs
//! leave CPUs idle. They take at most [`Params::probes`] (more with many programs) before each
//! pause of half a second or more.
//!
//! *Source.* Ours; none of the papers chooses between policies.

mod choice;
mod inner;
mod interval;
mod judgement;
pub(crate) mod params;
mod pause;
mod programs;
mod reasons;
mod sampling;

use std::collections::BTreeSet;

use cosched_core::{Cause, Level, Measure, Nanos, Plan, Policy, Program, World};

use crate::common::goal::Goal;
use crate::common::reasons::{ReasonSet, SharedReason};
use crate::common::unit::{Unit, only_settled};
use crate::descriptor::{Descriptor, Gangs, OF_GANGS, OptionGroup};
use crate::gangs::minwait::{self, Minwait};
use crate::gangs::rounds::{Gang, Rounds};
use crate::kind::Options;
use crate::unmanaged::Unmanaged;
pub use choice::{Mode, ReasonCode};
use inner::Inner;
use interval::SampledInterval;
use judgement::{Expected, expected, is_settled};
use params::{Params, QUANTUM};
use pause::Pause;
use programs::{IntervalMode, Programs, asked, present};
pub use reasons::AutoReason;
use sampling::IntervalSampling;

/// The measurements of each program.
const MEASURES: [Measure; 2] = [Measure::UserTime, Measure::CpuTime];

/// The state in the picture above. `together` is how many CPUs were busy outside the kernel when
/// all ran together last.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AutoState {
    /// Not measured since the last time that there were too few programs for a decision: `None`.
    Together {
        together: Option<f64>,
    },
    /// Each program has a probe of this length.
    SoloProbes {
        each: Nanos,
        together: f64,
    },
    InTurns {
        together: f64,
    },
}

impl AutoState {
    fn together(self) -> Option<f64> {
        match self {
            AutoState::Together { together } => together,
            AutoState::SoloProbes { together, .. } | AutoState::InTurns { together } => {
                Some(together)
            }
        }
    }
}

/// Ours.
pub(crate) const AUTO: Descriptor = Descriptor {
    gangs: Gangs::Chosen,
    by_weight: false,
    quantum: QUANTUM,
    options: &[OF_GANGS, &[OptionGroup::Goal]],
    reasons: &[ReasonSet::of::<AutoReason>()],
    params: &["gangs", "auto", "common", "molding"],
    ..Descriptor::of_gangs(
        "auto",
        "like linux, or programs take turns and are paused where that loses nothing",
        |options| Goal::build(options, |options| Ok(Box::new(Auto::new(options)))),
    )
};

pub(crate) struct Auto {
    options: Options,
    inner: Inner,
    state: AutoState,
    programs: Programs,
    sampling: IntervalSampling,
    pause: Pause,
    /// The time of the whole machine that measuring has cost.
    explored: Nanos,
    /// The mode and reason that were reported last.
    last_reason: Option<(Mode, ReasonCode)>,
}

impl Auto {
    pub(crate) fn new(options: &Options) -> Auto {
        Auto {
            options: options.clone(),
            inner: Inner::new(Box::new(Unmanaged::together())),
            state: AutoState::Together { together: None },
            programs: Programs::new(options.params.auto),
            sampling: IntervalSampling::new(),
            pause: Pause::new(options.params.auto),
            explored: Nanos::ZERO,
            last_reason: None,
        }
    }

    fn params(&self) -> Params {
        self.options.params.auto
    }

    /// Handles the end of an interval: CPU times were read.
    fn sampled(&mut self, did: &SampledInterval, world: &World<'_>, plan: &mut Plan) {
        let params = self.params();
        let freezable: BTreeSet<_> =
            present(world).filter(|program| program.freezable).map(|program| program.id).collect();
        let own = did.of_those(|id| freezable.contains(&id));
        let own = own.without_queues_of(&self.inner.take_backfilled());
        let (ran, least, next) = match self.state {
            AutoState::Together { .. } => {
                (IntervalMode::Together, params.longest_probe, params.sample)
            }
            AutoState::SoloProbes { each, .. } => (IntervalMode::Alone, each / 2, Nanos::NEVER),
            AutoState::InTurns { .. } => {
                (IntervalMode::InTurns, params.longest_probe, params.check)
            }
        };
        self.programs.learn(&own, ran, least, world);
        let disturbed = self.sampling.take_disturbed();
        match self.state {
            AutoState::SoloProbes { together, .. } => self.end_probes(&own, together, world, plan),
            _ if disturbed => {
                self.sampling.judged(false);
                self.sample_in(next, world);
            }
            AutoState::Together { .. } => {
                let is_short = is_short(did, &params, world);
                self.sampled_together(is_short, &own, world, plan);
            }
            AutoState::InTurns { together } => self.check_turns(&own, together, world, plan),
        }
    }

    fn sampled_together(
        &mut self,
        is_short: bool,
        own: &SampledInterval,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        self.sampling.judged(true);
        let together = own.busy(world.cpus.len());
        self.state = AutoState::Together { together: Some(together) };
        let settled = self.settled(world).or((!is_short).then_some(ReasonCode::CpusIdle));
        if let Some(reason_code) = settled {
            self.tell(Mode::Corun, reason_code, None, world, plan);
            self.sample_in(self.params().next_sample, world);
        } else if !self.programs.are_loaded(world) {
            self.sample_in(self.params().sample, world);
        } else if let Some(end) = self.pause.end(world.now) {
            self.sampling.end_at(end);
        } else {
            self.begin_probes(together, world, plan);
        }
    }

    fn begin_probes(&mut self, together: f64, world: &World<'_>, plan: &mut Plan) {
        let rivals = self.programs.rivals(world);
        let single = rivals.iter().filter(|rival| rival.threads < 2).count();
        let probes = rivals.len() - single + single.div_ceil(world.cpus.len().max(1));
        let Params { shortest_probe, longest_probe, .. } = self.params();
        let each = self.params().probes / probes.max(1) as u64;
        let each = each.max(shortest_probe).min(longest_probe);
        self.state = AutoState::SoloProbes { each, together };
        let options = Options { quantum: each, ..self.options.clone() };
        let policy = Rounds::new(&options, solo_probes, None);
        self.inner.change(Box::new(policy), self.programs.idle(world), true);
        plan.because(None, AutoReason::SoloProbes { length: each, probes: probes as u16 });
        self.sample_in(each * probes as u64, world);
    }

    fn end_probes(
        &mut self,
        own: &SampledInterval,
        together: f64,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        self.pay(own, together, world);
        if let Some(reason_code) = self.settled(world) {
            return self.leave_turns(reason_code, None, world, plan);
        }
        let expected = self.expected(together, world);
        // Where nothing could be measured, nothing changes.
        if expected.is_enough && self.programs.is_any_probed(world) {
            self.take_turns(&expected, together, world, plan);
        } else {
            self.give_up_turns(expected.in_turns, world, plan);
        }
    }

    fn check_turns(
        &mut self,
        own: &SampledInterval,
        together: f64,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        self.sampling.judged(true);
        if let Some(reason_code) = self.settled(world) {
            return self.leave_turns(reason_code, None, world, plan);
        }
        let busy = own.busy(world.cpus.len());
        let expected = self.expected(together, world);
        if busy < (1.0 - expected.most_lost - self.params().noise) * together {
            self.pay(own, together, world);
            self.give_up_turns(busy, world, plan);
        } else if self.programs.idle(world) != *self.inner.idle() {
            self.take_turns(&expected, together, world, plan);
        } else {
            self.sample_in(self.params().check, world);
        }
    }

    fn expected(&self, together: f64, world: &World<'_>) -> Expected {
        let rivals = self.programs.rivals(world);
        let (cpus, cores) = (world.cpus.len(), world.topology.spanned(world.cpus, Level::Core));
        let sizes: Vec<usize> = rivals.iter().map(|rival| rival.threads).collect();
        let turns = minwait::shares(&sizes, cpus, cpus.div_ceil(cores.max(1)));
        expected(&rivals, &turns, cpus, together, &self.params())
    }

    fn take_turns(
        &mut self,
        expected: &Expected,
        together: f64,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        let policy = Minwait::lending(&self.options);
        self.inner.change(Box::new(policy), self.programs.idle(world), false);
        self.state = AutoState::InTurns { together };
        self.tell(Mode::Gangs, ReasonCode::GangsFill, Some(expected.in_turns), world, plan);
        // The end of the round, in which each program has a turn.
        let round = self.options.quantum * self.programs.competing(world).count() as u64;
        let Params { first_check, check, .. } = self.params();
        self.sample_in(round.max(first_check).min(check), world);
    }

    /// Ends taking turns if it keeps too few CPUs busy, or would.
    fn give_up_turns(&mut self, in_turns: f64, world: &World<'_>, plan: &mut Plan) {
        self.pause.begin(world.now, self.params());
        self.leave_turns(ReasonCode::GangsIdle, Some(in_turns), world, plan);
    }

    fn leave_turns(
        &mut self,
        reason_code: ReasonCode,
        in_turns: Option<f64>,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        self.leave_to_kernel();
        self.tell(Mode::Corun, reason_code, in_turns, world, plan);
        self.sample_in(self.params().next_sample, world);
    }

    fn leave_to_kernel(&mut self) {
        self.inner.change(Box::new(Unmanaged::together()), BTreeSet::new(), false);
        self.state = AutoState::Together { together: self.state.together() };
    }

    /// A program arrived or ended.
    fn mix_changed(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if let Some(reason_code) = self.settled_by_counts(world) {
            if !matches!(self.state, AutoState::Together { .. }) {
                self.leave_to_kernel();
            }
            self.state = AutoState::Together { together: None };
            self.sampling.stop();
            match world.programs.is_empty() {
                true => self.last_reason = None,
                false => self.tell(Mode::Corun, reason_code, None, world, plan),
            }
            return;
        }
        // A program that is repeated is known, and so are the results about it.
        let is_unknown = |cause: &Cause| match cause {
            Cause::Arrived(id) => !self.programs.knows(*id),
            Cause::MachineChanged => true,
            _ => false,
        };
        if causes.iter().any(is_unknown) {
            self.pause.forget(world.now, self.params());
        }
        let disturbed = self.sampling.disturb(self.params().most_spoilt);
        if matches!(self.state, AutoState::Together { .. }) {
            if self.last_reason.is_none() {
                self.tell(Mode::Corun, ReasonCode::Begins, None, world, plan);
            }
            let Params { settle, sample, .. } = self.params();
            let next = if disturbed { settle } else { sample };
            self.sampling.end_by(world.now + next);
        }
    }

    /// The reason for no decision, if all programs may compete.
    fn settled_by_counts(&self, world: &World<'_>) -> Option<ReasonCode> {
        if world.programs.len() == 1 {
            Some(ReasonCode::Alone)
        } else {
            settled(present(world), world)
        }
    }

    /// The reason for no decision, by the programs that compete.
    fn settled(&self, world: &World<'_>) -> Option<ReasonCode> {
        settled(self.programs.competing(world), world)
    }

    /// Accounts for an interval's cost: the work that running together would have done in it and
    /// that was not done.
    fn pay(&mut self, own: &SampledInterval, together: f64, world: &World<'_>) {
        let busy = own.busy(world.cpus.len());
        let lost = if together > 0.0 { 1.0 - busy / together } else { 0.0 };
        self.explored += Nanos((own.seconds() * lost.clamp(0.0, 1.0) * 1e9) as u64);
    }

    fn sample_in(&mut self, time: Nanos, world: &World<'_>) {
        self.sampling.end_at(world.now + time);
    }

    /// Reports the mode in which programs run from now on, if it or its reason is new.
    fn tell(
        &mut self,
        mode: Mode,
        reason_code: ReasonCode,
        gangs: Option<f64>,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        if self.last_reason.replace((mode, reason_code)) != Some((mode, reason_code)) {
            let (corun, explored) = (self.state.together(), self.explored);
            let gangs = gangs.map(|busy| busy.min(world.cpus.len() as f64));
            let why = AutoReason::Chosen { mode, reason_code, corun, gangs, explored };
            match reason_code {
                ReasonCode::Begins => plan.because(None, why),
                _ => plan.announce(why),
            }
        }
    }
}

/// The reason for no decision about these programs.
fn settled<'a>(
    programs: impl Iterator<Item = &'a Program>,
    world: &World<'_>,
) -> Option<ReasonCode> {
    let programs: Vec<&Program> = programs.collect();
    let threads = |programs: &[&Program]| -> Vec<usize> {
        programs.iter().map(|program| asked(program, world)).collect()
    };
    let cpus = world.cpus.len();
    let freezable: Vec<&Program> =
        programs.iter().filter(|program| program.freezable).copied().collect();
    is_settled(&threads(&programs), cpus)
        .or_else(|| is_settled(&threads(&freezable), cpus).map(|_| ReasonCode::FewFreezable))
}

/// The gangs of solo probes: multi-threaded programs alone, and single-threaded ones together, one
/// on each CPU.
fn solo_probes(units: &[Unit], cpus: usize) -> Vec<Gang> {
    let in_gang = |unit| (unit, SharedReason::InGang.into());
    let (several, single): (Vec<usize>, Vec<usize>) =
        (0..units.len()).partition(|unit| units[*unit].threads > 1);
    let together = single.chunks(cpus.max(1));
    let together = together.map(|units| units.iter().copied().map(in_gang).collect());
    several.into_iter().map(|unit| vec![in_gang(unit)]).chain(together).collect()
}

/// Whether threads wait for CPUs.
fn is_short(did: &SampledInterval, params: &Params, world: &World<'_>) -> bool {
    let cpus = world.cpus.len() as f64;
    match did.waiting() {
        Some(threads) => threads >= params.short * cpus,
        None => did.used() >= params.busy * cpus,
    }
}

/// Whether the set of programs or their CPUs changed.
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
        self.sampling.add(causes, world.samples);
        for cause in causes {
            if let Cause::Arrived(id) = cause {
                plan.measure(*id, MEASURES, Nanos::NEVER);
            }
        }
        if let Some(did) = self.sampling.ended(causes) {
            self.sampled(&did, world, plan);
        }
        if causes.iter().any(changes) {
            self.mix_changed(causes, world, plan);
        }
        self.inner.decide(causes, world, plan);
        self.sampling.wake(plan);
    }
}

#[cfg(test)]
mod tests;
