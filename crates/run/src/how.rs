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
//! | `choice` | what is done with each choice |

pub mod check;
mod choice;
pub mod fair;
pub mod set;
pub mod shuffle;

use std::sync::Arc;
use std::time::Duration;

use cosched_core::engine::Limits;
use cosched_core::{Actuator, Class, Nanos};
use cosched_linux::control::ext::SchedulerBackend;
use cosched_linux::control::run_cgroups::{FreezerBackend, PinningBackend};
use cosched_policy::{
    FaithfulOptions, Goal, Kind, OptionGroup, Options, Placement, Quanta, ShufflingOptions,
    Slowdowns, Turns,
};
use cosched_workload::{BarrierMode, ProgramSpec};

pub use choice::Optional;
use choice::choices;
use fair::FairChoices;
use set::SetConstants;
use shuffle::ShuffleChoices;

choices! {
    /// How policies do their work.
    PolicyChoices {
        /// Length of a turn.
        "quantum" quantum: Option<Duration>,
        /// Longest time that a program may be paused at once.
        "max-frozen" max_frozen: Option<Duration>,
        /// Where the threads of a program go.
        "placement" placement: Option<Placement>,
        /// How to pause programs on this machine; `None`: by the best that this user may use.
        "freezer" freezer: Option<FreezerBackend>,
        /// How to bind programs to CPUs of this machine; `None`: by affinity masks.
        "pinning" pinning: Option<PinningBackend>,
        /// What schedules the programs' threads on this machine; `None`: the kernel.
        "scheduler" scheduler: Option<SchedulerBackend>,
        /// Whether CPUs that a gang leaves idle go to programs of other gangs.
        "fill" fill: bool,
        /// What matters most.
        "goal" goal: Option<Goal>,
        /// How programs take turns.
        "turns" turns: Option<Turns>,
        /// How much programs slow each other down on this machine.
        "slowdowns" slowdowns: Option<Arc<Slowdowns>>,
        /// The constants that were set, on simulated machines.
        "set" set: SetConstants,
    } and {
        /// The choices for `fair-progress`.
        fair: FairChoices,
    }
}

choices! {
    /// How policies that measure do their work.
    MeasureChoices {
        /// Time between two measurements of a program.
        "interval" interval: Option<Duration>,
        /// What may be changed for a program's threads.
        "actuators" actuators: Option<Vec<Actuator>>,
        /// Whether threads are changed at once, without a test whether it helps.
        "no-guard" no_guard: bool,
        /// Whether what earlier runs have shown is ignored.
        "relearn" relearn: bool,
        /// The slice for each scaling factor on this machine.
        "quanta" quanta: Option<Quanta>,
        /// Whether waits for input and output count like waits at locks.
        "io-waits" io_waits: bool,
    } and {
        /// The choices for `shuffling`.
        shuffle: ShuffleChoices,
        /// The class that the kernel has for a program, if none is asked for (simulated kernels
        /// only).
        usual_class: Option<Class>,
    }
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
    /// How long programs may take to end after SIGTERM, before they are killed.
    pub grace: Duration,
}

/// A simulated machine leaves no choice of how programs are frozen and bound, or ended.
impl From<PolicyChoices> for How {
    fn from(policy: PolicyChoices) -> How {
        let grace = Duration::from_nanos(Limits::default().grace.0);
        let measure = MeasureChoices::default();
        How { policy, measure, waiting: None, grace }
    }
}

/// Of programs that are not ours, nothing else is chosen.
impl From<MeasureChoices> for How {
    fn from(measure: MeasureChoices) -> How {
        How { measure, ..How::from(PolicyChoices::default()) }
    }
}

impl How {
    /// How a policy is to work. Options that it cannot be built with are left out.
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
            io_waits: self.measure.io_waits,
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

    /// These choices of a variant, where all variants have others. The grace is that of all.
    pub fn over(&self, all: &How) -> How {
        let mut measure = self.measure.each_over(&all.measure);
        // What is known from earlier runs is of groups as they are for all.
        measure.relearn |= self.measure.shuffle.each().any(|(_, choice)| choice.is_given());
        let policy = self.policy.each_over(&all.policy);
        How { policy, measure, waiting: self.waiting.or(all.waiting), grace: all.grace }
    }

    /// Every choice that has an option, with its name. Left out are --grace, which every command
    /// that runs programs supports, and --barrier, which does not depend on the policy.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &dyn Optional)> {
        let measure = self.measure.each().chain(self.measure.shuffle.each());
        measure.chain(self.policy.each()).chain(self.policy.fair.each())
    }
}
