//! What the command lines of several subcommands share: what to run, and how.

pub(crate) mod choices;
pub(crate) mod fair;
mod given;
pub(crate) mod help;
pub(crate) mod in_place;
mod pid;
mod shuffle;
pub(crate) mod sim;
pub(crate) mod variant;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use cosched_core::Actuator;
pub(crate) use cosched_lab::values::{
    duration, instant, kernel, max_frozen, named, quantum, seed, whole,
};
use cosched_lab::values::{interval, quanta, slowdowns};
use cosched_linux::control::ext::SchedulerBackend;
use cosched_linux::control::run_cgroups::{FreezerBackend, PinningBackend};
use cosched_policy::{Goal, Placement, Quanta, Slowdowns, Turns};
use cosched_workload::BarrierMode;

use crate::how::set::SetTo;
use crate::how::{How, MeasureChoices, PolicyChoices};
use crate::source::Source;
use fair::FairArgs;
pub(crate) use given::GivenWords;
pub(crate) use pid::pid;
pub(crate) use shuffle::{ShuffleArgs, groups};

/// What to run: a jobs file, or commands.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The jobs file (TOML), or - for standard input. Programs of a file start in the folder of the
    /// file, all others in the current folder.
    ///
    /// Each program is a table `[[program]]` with the key command, and others as needed: name,
    /// threads, env, cwd, stdin, stdout, stderr, start, after, weight, misses_per_kilo_instruction,
    /// miss_ratio, memory_gigabytes_per_second, repeat, freezable, group, malleable, moldable,
    /// progress, barrier, model.
    #[arg(value_name = "JOBS.toml", conflicts_with_all = ["programs", "commands"])]
    pub(crate) workload: Option<PathBuf>,
    /// A program in quotes, such as --prog "./solver --size 400". May be repeated.
    ///
    /// The string is split into words as a shell does it, but no shell runs.
    #[arg(long = "prog", value_name = "CMD", conflicts_with = "commands")]
    pub(crate) programs: Vec<String>,
    /// Commands with their arguments, after '--' and separated by ':::'.
    #[arg(last = true, value_name = "CMD ARGS ::: CMD ARGS")]
    pub(crate) commands: Vec<String>,
}

impl SourceArgs {
    /// What to run.
    pub(crate) fn source(&self) -> Source {
        let SourceArgs { workload, programs, commands } = self;
        let (workload, programs) = (workload.clone(), programs.clone());
        Source { workload, programs, commands: commands.clone() }
    }
}

/// How policies do their work, on whatever machine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PolicyArgs {
    /// Where to place the threads of a program: on CPUs that share caches (packed), or on CPUs far
    /// apart (spread) [default: packed]
    #[arg(long, value_parser = choices::listed(Placement::ALL, Placement::name),
          hide_possible_values = true)]
    pub(crate) placement: Option<Placement>,
    /// Length of a turn: 1ms to 60s [default: 100ms; 250ms for --policy auto]
    #[arg(long, allow_hyphen_values = true, value_parser = quantum)]
    pub(crate) quantum: Option<Duration>,
    /// Backfill: give CPUs that a gang leaves idle to programs of other gangs (greedy, cgreedy).
    #[arg(long)]
    pub(crate) fill: bool,
    /// A table of how much programs slow each other down on this machine, by `cosched calibrate
    /// slowdowns` (bandwidth; fair-progress, where nothing better is known of a program).
    #[arg(long, value_name = "FILE", value_parser = slowdowns, value_hint = ValueHint::FilePath)]
    pub(crate) slowdowns: Option<Arc<Slowdowns>>,
    /// Longest time that a program may be paused at once: 1ms to a day. Turns are shortened to keep
    /// it [default: 1s]
    #[arg(long, allow_hyphen_values = true, value_parser = max_frozen)]
    pub(crate) max_frozen: Option<Duration>,
    /// What matters most: balanced, throughput, fair or responsive [default: balanced]
    ///
    /// throughput: programs run in the order of arrival, each until it ends. fair: equal slowdowns.
    /// responsive: short turns. For the policies turns and auto.
    #[arg(long, value_parser = choices::listed(Goal::ALL, Goal::name),
          hide_possible_values = true)]
    pub(crate) goal: Option<Goal>,
    /// How programs take turns. weight: all programs run, and the program in turn comes first (all
    /// policies with turns except auto). freeze: the others are paused [default: weight for turns,
    /// freeze for the others]
    #[arg(long, value_parser = choices::listed(Turns::ALL, Turns::name),
          hide_possible_values = true)]
    pub(crate) turns: Option<Turns>,
    /// Set a constant of a policy, such as auto.short=0.2. May be repeated. In simulations only;
    /// `cosched sim params` lists all constants.
    #[arg(long, value_name = "NAME=VALUE", value_parser = named::<SetTo>)]
    pub(crate) set: Vec<SetTo>,
    #[command(flatten)]
    pub(crate) fair: FairArgs,
}

impl PolicyArgs {
    pub(crate) fn choices(&self) -> PolicyChoices {
        let PolicyArgs { placement, quantum, fill, slowdowns, max_frozen, goal, turns, set, fair } =
            self.clone();
        let (set, fair) = (set.into_iter().collect(), fair.choices());
        let default = PolicyChoices::default();
        let default = PolicyChoices { placement, fill, slowdowns, fair, set, ..default };
        PolicyChoices { quantum, max_frozen, goal, turns, ..default }
    }
}

/// How policies that measure do their work.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MeasureArgs {
    /// Time between two measurements of a program: 10ms or more (faithful, shuffling) [default:
    /// 500ms for shuffling; 1s for faithful, and 100ms until its first choice]
    #[arg(long, allow_hyphen_values = true, value_parser = interval)]
    pub(crate) interval: Option<Duration>,
    /// What may be changed for a program's threads: none, slice, batch, batch-slice, batch-stages
    /// (a slice for each stage of a pipeline), round-robin (real-time: it goes before all other
    /// programs on the machine) (faithful) [default: batch,batch-slice; batch-slice with
    /// --no-guard]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = choices::listed(Actuator::ALL, Actuator::name))]
    pub(crate) actuators: Option<Vec<Actuator>>,
    /// Change threads at once, as in the papers, without a test whether it helps (faithful,
    /// shuffling).
    #[arg(long)]
    pub(crate) no_guard: bool,
    /// Test again what helps; ignore what was learned from earlier runs of the same programs
    /// (faithful, shuffling).
    #[arg(long, conflicts_with = "no_guard")]
    pub(crate) relearn: bool,
    /// A table by `cosched calibrate quanta`, with the slice for each scaling factor on this
    /// machine (faithful) [default: table I of the paper]
    #[arg(long, value_name = "FILE", value_parser = quanta, value_hint = ValueHint::FilePath)]
    pub(crate) quanta: Option<Quanta>,
    /// Count time asleep for input and output like time at locks when a slice is chosen (faithful).
    #[arg(long)]
    pub(crate) io_waits: bool,
    #[command(flatten)]
    pub(crate) shuffle: ShuffleArgs,
}

impl MeasureArgs {
    pub(crate) fn choices(&self) -> MeasureChoices {
        let given = self.clone();
        MeasureChoices {
            interval: given.interval,
            actuators: given.actuators,
            no_guard: given.no_guard,
            relearn: given.relearn,
            quanta: given.quanta,
            io_waits: given.io_waits,
            shuffle: given.shuffle.choices(),
            usual_class: None,
        }
    }
}

/// How many threads programs are told to start.
#[derive(Debug, Args)]
pub(crate) struct ThreadsArgs {
    /// How many threads each program on the command line uses (OMP_NUM_THREADS and the like). In a
    /// jobs file, the key `threads` says it.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(1..=u16::MAX))]
    pub(crate) threads: Option<u16>,
}

/// How threads wait for each other.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct BarrierArgs {
    /// How threads wait at barriers, unless the jobs file says so: in the program's own code (own),
    /// or in cosched's barrier, where a waiting thread gives its CPU to a thread that it waits for
    /// (donate). The other values are for comparisons [default: own]
    #[arg(long, value_name = "MODE",
          value_parser = choices::listed(BarrierMode::ALL, BarrierMode::name))]
    pub(crate) barrier: Option<BarrierMode>,
}

/// What schedules the programs' threads.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct SchedulerArgs {
    /// What schedules the programs' threads. ext: cosched's scheduler in the kernel (sched_ext),
    /// where waiting threads give their CPU to a named thread and slices have any length; its
    /// threads come after all others of the machine [default: kernel]
    #[arg(long, value_parser = choices::scheduler())]
    pub(crate) scheduler: Option<SchedulerBackend>,
}

/// How policies and this machine do their work.
#[derive(Clone, Debug, Args)]
pub(crate) struct HowArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    #[command(flatten)]
    pub(crate) waiting: BarrierArgs,
    /// How to pause programs; the default is the best that this user may use.
    #[arg(long, value_parser = choices::freezer())]
    pub(crate) freezer: Option<FreezerBackend>,
    /// How to bind programs to CPUs; the default is affinity masks.
    #[arg(long, value_parser = choices::pinning())]
    pub(crate) pinning: Option<PinningBackend>,
    #[command(flatten)]
    pub(crate) by: SchedulerArgs,
    /// How long programs may take to end after SIGTERM, before they are killed.
    #[arg(long, allow_hyphen_values = true, default_value = "5s", value_parser = duration)]
    pub(crate) grace: Duration,
}

impl HowArgs {
    pub(crate) fn how(&self) -> How {
        How {
            policy: PolicyChoices {
                freezer: self.freezer,
                pinning: self.pinning,
                scheduler: self.by.scheduler,
                ..self.policy.choices()
            },
            measure: self.measure.choices(),
            waiting: self.waiting.barrier,
            grace: self.grace,
        }
    }
}
