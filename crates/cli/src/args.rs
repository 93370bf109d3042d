//! What the command lines of several subcommands share: what to run, and how.

mod backends;
pub(crate) mod choices;
pub(crate) mod fair;
pub(crate) mod help;
mod pid;
mod shuffle;
mod values;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use cosched_core::engine::Limits;
use cosched_core::{Actuator, Class, Nanos};
use cosched_policy::{
    FaithfulOptions, Goal, Kind, Options, Placement, Quanta, ShufflingOptions, Slowdowns, Turns,
};
use cosched_workload::{Barrier, ProgramSpec};

use crate::ui::failure::Failure;
use backends::{FreezerArg, PinningArg};
use fair::FairArgs;
pub(crate) use pid::pid;
pub(crate) use shuffle::{ShuffleArgs, groups};
pub(crate) use values::{duration, instant, kernel, max_frozen, named, quantum, seed, whole};
use values::{interval, quanta, slowdowns};

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

const FILL: &str = "--fill";
const GOAL: &str = "--goal";

/// How policies do their work, on whatever machine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PolicyArgs {
    /// Where to place the threads of a program: on CPUs that share caches (packed), or on CPUs far
    /// apart (spread) [default: packed]
    #[arg(long, value_parser = choices::placement(), hide_possible_values = true)]
    pub(crate) placement: Option<Placement>,
    /// Length of a turn: 1ms to 60s [default: 100ms; 250ms for auto]
    #[arg(long, allow_hyphen_values = true, value_parser = quantum)]
    pub(crate) quantum: Option<Duration>,
    /// Backfill: give CPUs that a gang leaves idle to programs of other gangs (greedy, cgreedy).
    #[arg(long)]
    pub(crate) fill: bool,
    /// A table of how much programs slow each other down on this machine, such as one by `cosched
    /// sim slowdowns` (bandwidth; fair-progress, where nothing better is known of a program).
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
    #[arg(long, value_parser = choices::goal(), hide_possible_values = true)]
    pub(crate) goal: Option<Goal>,
    /// How programs take turns. weight: all programs run, and the program in turn comes first.
    /// freeze: the others are paused (all policies with turns except auto) [default: weight for
    /// turns, freeze for the others]
    #[arg(long, value_parser = choices::turns(), hide_possible_values = true)]
    pub(crate) turns: Option<Turns>,
    #[command(flatten)]
    pub(crate) fair: FairArgs,
}

/// How policies that measure do their work.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MeasureArgs {
    /// Time between two measurements of a program: 10ms or more (faithful, shuffling) [default:
    /// 500ms for shuffling; 1s for faithful, and more often where a program changes its phase]
    #[arg(long, allow_hyphen_values = true, value_parser = interval)]
    pub(crate) interval: Option<Duration>,
    /// What may be changed for a program's threads: none, slice, batch, batch-slice, round-robin
    /// (real-time: it goes before all other programs on the machine) (faithful) [default:
    /// batch,batch-slice; slice with --no-guard]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = choices::actuator())]
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
    #[command(flatten)]
    pub(crate) shuffle: ShuffleArgs,
    /// The class that the kernel has for it, if none is asked for (simulated kernels only).
    #[arg(skip)]
    pub(crate) usual_class: Option<Class>,
}

/// An option that was given: its name, the policies that support it, and what these policies do.
type Given = (&'static str, fn(Kind) -> bool, &'static str);

impl MeasureArgs {
    /// The first option that was given and that none of these policies supports.
    fn unused(&self, kinds: &[Kind]) -> Option<Given> {
        let slices = "measure programs and give slices";
        let shuffle = self.shuffle.given();
        let all: [(bool, Given); 6] = [
            (self.interval.is_some(), ("--interval", Kind::measures, "measure programs")),
            (self.actuators.is_some(), ("--actuators", Kind::gives_slices, slices)),
            (self.no_guard, ("--no-guard", Kind::measures, "measure programs")),
            (self.relearn, ("--relearn", Kind::measures, "measure programs")),
            (self.quanta.is_some(), ("--quanta", Kind::gives_slices, slices)),
            (
                shuffle.is_some(),
                (
                    shuffle.unwrap_or_default(),
                    Kind::shuffles,
                    "move threads between groups of CPUs",
                ),
            ),
        ];
        let used = |(_, used, _): &Given| kinds.iter().any(|kind| used(*kind));
        let mut given = all.into_iter().filter(|(given, _)| *given).map(|(_, option)| option);
        given.find(|option| !used(option))
    }

    /// Refuses what would be tried twice.
    fn check(&self) -> Result<(), Failure> {
        match self.actuators.as_deref().and_then(twice) {
            Some(actuator) => Err(Failure::Input(format!(
                "--actuators: {actuator} is there twice; name each once"
            ))),
            None => Ok(()),
        }
    }
}

const BARRIER: &str = "--barrier";

/// What policies do that support an option of those that make gangs. With turns by weight they
/// pause no program, and bind none on some machines.
pub(crate) fn of_gangs(option: &str) -> &'static str {
    match option {
        "--turns" => "take turns",
        "--max-frozen" | "--freezer" => "can pause programs",
        "--placement" | "--pinning" => "can bind programs to CPUs",
        _ => "have quanta",
    }
}

pub(crate) fn useless(command: &str, option: &str) -> Failure {
    Failure::Input(format!("`cosched {command}` does not support {option}: leave it out"))
}

/// How threads wait for each other.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct BarrierArgs {
    /// How threads wait at barriers, unless the jobs file says so: in the program's own code (own),
    /// or in cosched's barrier, where a waiting thread gives its CPU to a thread that it waits for
    /// (donate). The other values are for comparisons [default: own]
    #[arg(long, value_name = "MODE", value_parser = choices::barrier())]
    pub(crate) barrier: Option<Barrier>,
}

/// The first of a list that is in it before.
pub(crate) fn twice<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter().enumerate().find(|(i, one)| list[..*i].contains(one)).map(|(_, one)| one)
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
    #[arg(long, value_enum)]
    pub(crate) freezer: Option<FreezerArg>,
    /// How to bind programs to CPUs; the default is affinity masks.
    #[arg(long, value_enum)]
    pub(crate) pinning: Option<PinningArg>,
    /// How long programs may take to end after SIGTERM, before they are killed.
    #[arg(long, allow_hyphen_values = true, default_value = "5s", value_parser = duration)]
    pub(crate) grace: Duration,
}

/// A simulated machine leaves no choice of how programs are frozen and bound, or ended.
impl From<PolicyArgs> for HowArgs {
    fn from(policy: PolicyArgs) -> HowArgs {
        let grace = Duration::from_nanos(Limits::default().grace.0);
        let (measure, waiting) = (MeasureArgs::default(), BarrierArgs::default());
        HowArgs { policy, measure, waiting, freezer: None, pinning: None, grace }
    }
}

/// Of programs that are not ours, nothing else is chosen.
impl From<MeasureArgs> for HowArgs {
    fn from(measure: MeasureArgs) -> HowArgs {
        HowArgs { measure, ..HowArgs::from(PolicyArgs::default()) }
    }
}

impl HowArgs {
    /// How a policy is to work: options that it does not support are left out.
    pub(crate) fn options(&self, kind: Kind) -> Options {
        Options {
            quantum: self.policy.quantum.map_or(kind.usual_quantum(), Into::into),
            placement: self.placement(),
            fill: self.policy.fill && kind.backfills(),
            slowdowns: self.policy.slowdowns.clone().filter(|_| kind.takes_slowdowns()),
            faithful: self.faithful(),
            fair: self.policy.fair.options(),
            shuffling: self.shuffling(),
            goal: self.policy.goal.unwrap_or_default(),
            turns: self.policy.turns.filter(|_| kind.takes_turns_by_weight()),
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

    /// Where the threads of a program go.
    pub(crate) fn placement(&self) -> Placement {
        self.policy.placement.unwrap_or(Options::default().placement)
    }

    /// How a program waits at barriers: by its key, else by the option.
    pub(crate) fn barrier(&self, spec: &ProgramSpec) -> Barrier {
        spec.barrier.or(self.waiting.barrier).unwrap_or_default()
    }

    /// No program is frozen longer than this at a time.
    pub(crate) fn max_frozen(&self) -> Nanos {
        self.policy.max_frozen.map_or(Limits::default().max_frozen, Into::into)
    }

    /// Refuses an option that was given and that none of these policies supports.
    pub(crate) fn check_use(&self, kinds: &[Kind]) -> Result<(), Failure> {
        self.measure.check()?;
        let refuse = |option: &str, used: fn(Kind) -> bool, what: &str| {
            let asked = Kind::ALL.into_iter().filter(|kind| kinds.contains(kind));
            let asked: Vec<String> = asked.map(|kind| format!("'{kind}'")).collect();
            let uses = Kind::ALL.into_iter().filter(|kind| used(*kind)).map(Kind::name);
            let (asked, uses) = (asked.join(", "), uses.collect::<Vec<_>>().join(", "));
            Failure::Input(format!(
                "{option} is for policies that {what} ({uses}), not for {asked}: leave it out"
            ))
        };
        if let Some((option, used, what)) = self.measure.unused(kinds) {
            return Err(refuse(option, used, what));
        }
        if self.policy.turns == Some(Turns::Weight)
            && !kinds.iter().any(|kind| kind.takes_turns_by_weight())
        {
            let takes = Kind::takes_turns_by_weight;
            return Err(refuse("--turns weight", takes, "take turns by weight"));
        }
        let of_some = [Some(FILL), Some(GOAL), self.policy.fair.given()];
        match self.given().iter().find(|option| !of_some.contains(&Some(**option))) {
            Some(option) if !kinds.iter().any(|kind| kind.makes_gangs()) => {
                Err(refuse(option, Kind::makes_gangs, of_gangs(option)))
            }
            _ if self.policy.slowdowns.is_some()
                && !kinds.iter().any(|kind| kind.takes_slowdowns()) =>
            {
                Err(refuse("--slowdowns", Kind::takes_slowdowns, "predict slowdowns"))
            }
            _ if self.policy.fair.given().is_some()
                && !kinds.iter().any(|kind| kind.equalises()) =>
            {
                let option = self.policy.fair.given().unwrap_or_default();
                Err(refuse(option, Kind::equalises, "keep slowdowns equal"))
            }
            _ if self.policy.goal.is_some() && !kinds.iter().any(|kind| kind.chooses()) => {
                Err(refuse(GOAL, Kind::chooses, "choose by themselves"))
            }
            _ if self.policy.fill && !kinds.iter().any(|kind| kind.backfills()) => {
                Err(refuse(FILL, Kind::backfills, "give idle CPUs away"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses every option that was given, except those that the command supports.
    pub(crate) fn check_use_by(&self, command: &str, used: &[&str]) -> Result<(), Failure> {
        self.check_own_barriers(command)?;
        match self.given().into_iter().find(|option| !used.contains(option)) {
            Some(option) => Err(useless(command, option)),
            None => Ok(()),
        }
    }

    /// The first option given that only policies which measure or predict support.
    pub(crate) fn given_to_measure(&self) -> Option<&'static str> {
        let slowdowns = self.policy.slowdowns.is_some().then_some("--slowdowns");
        self.measure.unused(&[]).map(|(option, ..)| option).or(slowdowns)
    }

    /// Refuses `--barrier` for a command that does not support it.
    pub(crate) fn check_own_barriers(&self, command: &str) -> Result<(), Failure> {
        match self.waiting.barrier {
            None => Ok(()),
            Some(_) => Err(useless(command, BARRIER)),
        }
    }

    /// The options that were given; without --grace, which every command that runs programs
    /// supports, and --barrier, which does not depend on the policy.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--quantum", self.policy.quantum.is_some()),
            ("--max-frozen", self.policy.max_frozen.is_some()),
            ("--placement", self.policy.placement.is_some()),
            ("--freezer", self.freezer.is_some()),
            ("--pinning", self.pinning.is_some()),
            (FILL, self.policy.fill),
            (GOAL, self.policy.goal.is_some()),
            ("--turns", self.policy.turns.is_some()),
        ];
        let given = all.into_iter().filter(|(_, given)| *given).map(|(option, _)| option);
        given.chain(self.policy.fair.given()).collect()
    }
}
