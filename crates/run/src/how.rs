//! How policies and this machine do their work: what a command was told, and what follows from it.
//!
//! What was not chosen stays `None`, so that a [variant](How::over) of an experiment can be laid
//! over the choices of all variants.
//!
//! | module | what it holds |
//! |---|---|
//! | [`fair`] | the choices for the policy `fair-progress` |
//! | [`set`] | the constants of policies that were set |
//! | [`shuffle`] | the choices for the policy `shuffling` |
//! | [`check`] | which choices a policy or a command supports |

pub mod check;
pub mod fair;
pub mod set;
pub mod shuffle;

use std::sync::Arc;
use std::time::Duration;

use cosched_core::engine::Limits;
use cosched_core::{Actuator, Class, Nanos};
use cosched_linux::control::run_cgroups::{FreezerBackend, PinningBackend};
use cosched_policy::{
    FaithfulOptions, Goal, Kind, OptionGroup, Options, Placement, Quanta, ShufflingOptions,
    Slowdowns, Turns,
};
use cosched_workload::{BarrierMode, ProgramSpec};

use fair::FairChoices;
use set::SetConstants;
use shuffle::ShuffleChoices;

/// How policies do their work, on whatever machine.
#[derive(Clone, Debug, Default)]
pub struct PolicyChoices {
    /// Where the threads of a program go.
    pub placement: Option<Placement>,
    /// Length of a turn.
    pub quantum: Option<Duration>,
    /// Whether CPUs that a gang leaves idle go to programs of other gangs.
    pub fill: bool,
    /// How much programs slow each other down on this machine.
    pub slowdowns: Option<Arc<Slowdowns>>,
    /// Longest time that a program may be paused at once.
    pub max_frozen: Option<Duration>,
    /// What matters most.
    pub goal: Option<Goal>,
    /// How programs take turns.
    pub turns: Option<Turns>,
    /// The choices for `fair-progress`.
    pub fair: FairChoices,
    /// The constants that were set, on simulated machines.
    pub set: SetConstants,
}

/// How policies that measure do their work.
#[derive(Clone, Debug, Default)]
pub struct MeasureChoices {
    /// Time between two measurements of a program.
    pub interval: Option<Duration>,
    /// What may be changed for a program's threads.
    pub actuators: Option<Vec<Actuator>>,
    /// Whether threads are changed at once, without a test whether it helps.
    pub no_guard: bool,
    /// Whether what earlier runs have shown is ignored.
    pub relearn: bool,
    /// The slice for each scaling factor on this machine.
    pub quanta: Option<Quanta>,
    /// The choices for `shuffling`.
    pub shuffle: ShuffleChoices,
    /// The class that the kernel has for a program, if none is asked for (simulated kernels only).
    pub usual_class: Option<Class>,
}

/// How policies and this machine do their work.
#[derive(Clone, Debug)]
pub struct How {
    /// The choices for policies.
    pub policy: PolicyChoices,
    /// The choices for policies that measure.
    pub measure: MeasureChoices,
    /// How threads wait at barriers, unless the jobs file says so.
    pub waiting: Option<BarrierMode>,
    /// How to pause programs; `None`: by the best that this user may use.
    pub freezer: Option<FreezerBackend>,
    /// How to bind programs to CPUs; `None`: by affinity masks.
    pub pinning: Option<PinningBackend>,
    /// How long programs may take to end after SIGTERM, before they are killed.
    pub grace: Duration,
}

/// A simulated machine leaves no choice of how programs are frozen and bound, or ended.
impl From<PolicyChoices> for How {
    fn from(policy: PolicyChoices) -> How {
        let grace = Duration::from_nanos(Limits::default().grace.0);
        let measure = MeasureChoices::default();
        How { policy, measure, waiting: None, freezer: None, pinning: None, grace }
    }
}

/// Of programs that are not ours, nothing else is chosen.
impl From<MeasureChoices> for How {
    fn from(measure: MeasureChoices) -> How {
        How { measure, ..How::from(PolicyChoices::default()) }
    }
}

impl How {
    /// How a policy is to work: options that it does not support are left out.
    pub fn options(&self, kind: Kind) -> Options {
        Options {
            quantum: self.policy.quantum.map_or(kind.descriptor().quantum, Into::into),
            placement: self.placement(),
            fill: self.policy.fill && kind.takes(OptionGroup::Fill),
            slowdowns: self.policy.slowdowns.clone().filter(|_| kind.takes(OptionGroup::Slowdowns)),
            faithful: self.faithful(),
            fair: self.policy.fair.options(),
            shuffling: self.shuffling(),
            goal: self.goal(),
            turns: self.policy.turns.filter(|_| kind.descriptor().by_weight),
            params: self.policy.set.params(),
        }
    }

    fn shuffling(&self) -> ShufflingOptions {
        let options = self.measure.shuffle.options();
        let interval = self.measure.interval.map_or(options.interval, Into::into);
        let (guard, relearn) = (!self.measure.no_guard, self.measure.relearn);
        ShufflingOptions { interval, guard, relearn, ..options }
    }

    fn faithful(&self) -> FaithfulOptions {
        let default = match self.measure.no_guard {
            true => FaithfulOptions::of_the_paper(),
            false => FaithfulOptions::default(),
        };
        FaithfulOptions {
            interval: self.measure.interval.map(Into::into).or(default.interval),
            actuators: self.measure.actuators.clone().unwrap_or(default.actuators),
            class: self.measure.usual_class,
            relearn: self.measure.relearn,
            quanta: self.measure.quanta.clone().unwrap_or(default.quanta),
            ..default
        }
    }

    /// The user's goal, for policies with goals.
    pub fn goal(&self) -> Goal {
        self.policy.goal.unwrap_or_default()
    }

    /// Where the threads of a program go.
    pub fn placement(&self) -> Placement {
        self.policy.placement.unwrap_or(Options::default().placement)
    }

    /// How a program waits at barriers: by its key, else by the option.
    pub fn barrier(&self, spec: &ProgramSpec) -> BarrierMode {
        spec.barrier.or(self.waiting).unwrap_or_default()
    }

    /// No program is frozen longer than this at a time.
    pub fn max_frozen(&self) -> Nanos {
        self.policy.max_frozen.map_or(Limits::default().max_frozen, Into::into)
    }

    /// These choices of a variant, where all variants have others. The machine's (freezer, pinning
    /// and grace) are those of all.
    pub fn over(&self, all: &How) -> How {
        let own = self.policy.clone();
        let PolicyChoices { placement, quantum, fill, slowdowns, max_frozen, goal, turns, .. } =
            own;
        let MeasureChoices { interval, actuators, no_guard, relearn, quanta, shuffle, .. } =
            self.measure.clone();
        How {
            policy: PolicyChoices {
                placement: placement.or(all.policy.placement),
                quantum: quantum.or(all.policy.quantum),
                fill: fill || all.policy.fill,
                slowdowns: slowdowns.or_else(|| all.policy.slowdowns.clone()),
                max_frozen: max_frozen.or(all.policy.max_frozen),
                goal: goal.or(all.policy.goal),
                turns: turns.or(all.policy.turns),
                fair: own.fair.over(&all.policy.fair),
                set: own.set.over(&all.policy.set),
            },
            measure: MeasureChoices {
                interval: interval.or(all.measure.interval),
                actuators: actuators.or_else(|| all.measure.actuators.clone()),
                no_guard: no_guard || all.measure.no_guard,
                // What is known from earlier runs is of groups as they are for all.
                relearn: relearn || all.measure.relearn || shuffle.given().is_some(),
                quanta: quanta.or_else(|| all.measure.quanta.clone()),
                shuffle: shuffle.or(&all.measure.shuffle),
                usual_class: self.measure.usual_class.or(all.measure.usual_class),
            },
            waiting: self.waiting.or(all.waiting),
            ..all.clone()
        }
    }
}
