//! The command line, defined once: parser, `--help` and everything derived from it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use cosched_core::engine::Limits;
use cosched_core::{Actuator, Class, Nanos};
use cosched_linux::ground::{FreezerRung, PinningRung};
use cosched_policy::{FaithfulOptions, Kind, Options, Placement, Slowdowns};
use cosched_sim::Kernel;

use crate::attach::AttachArgs;
use crate::choices;
use crate::compare::CompareArgs;
use crate::detach::DetachArgs;
use crate::exec::ExecArgs;
use crate::explain::ExplainArgs;
use crate::failure::{self, Failure};
use crate::live::MetricsAt;
use crate::manual::ManualArgs;
use crate::report::ReportArgs;
use crate::stat::StatArgs;
use crate::top::TopArgs;
use crate::trace::TraceArgs;

/// Co-schedules multithreaded programs that share this machine.
#[derive(Debug, Parser)]
#[command(name = "cosched", version, arg_required_else_help = true, after_help = failure::exit_codes())]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommand that cosched calls itself.
pub(crate) const SPIN: &str = "__spin";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run programs together under a policy.
    Run(RunArgs),
    /// Run one program under a policy, in cosched's place at the terminal, as `nice` does.
    Exec(ExecArgs),
    /// Put running processes under a policy until they end, or Ctrl-C; they run on as they were found.
    Attach(AttachArgs),
    /// Have the cosched that has a process let it go, as it was found.
    Detach(DetachArgs),
    /// Run the same programs in several ways, in turn, and print one table.
    Compare(Box<CompareArgs>),
    /// Simulate programs under a policy, on a machine that is not there.
    Sim(Box<SimArgs>),
    /// Measure how programs run alone on this machine, and keep the figures for later runs.
    Profile(ProfileArgs),
    /// Tell what this kernel, machine and user allow, and how to get more.
    Doctor(DoctorArgs),
    /// Undo what a killed cosched may have left behind.
    Recover(RecoverArgs),
    /// Show what came of runs: one HTML page, and plots for a paper.
    Report(ReportArgs),
    /// Write a run as a trace that Perfetto opens, with every decision and its reasons.
    Trace(TraceArgs),
    /// Tell in words why a run took so long, or why a program ran or did not at a time.
    Explain(ExplainArgs),
    /// Watch a run that is under way: who runs, who waits, and why.
    Top(TopArgs),
    /// Look at running programs: what their threads wait for, and who takes whose CPU.
    Stat(StatArgs),
    /// Write the man pages and the shell completions into a folder like /usr/share.
    #[command(hide = true)]
    Manual(ManualArgs),
    /// The program that `doctor --measure` freezes.
    #[command(name = SPIN, hide = true)]
    Spin(SpinArgs),
}

/// What to run: a workload file, or commands.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The workload file (TOML; docs/workload-file.md lists its keys), or - for standard input.
    #[arg(value_name = "WORKLOAD.toml", conflicts_with_all = ["programs", "commands"])]
    pub(crate) workload: Option<PathBuf>,
    /// A program, as one string that is split as a shell splits words (run without a shell). May be repeated.
    #[arg(long = "prog", value_name = "CMD", conflicts_with = "commands")]
    pub(crate) programs: Vec<String>,
    /// Commands with their arguments, separated by ':::'.
    #[arg(last = true, value_name = "CMD ARGS ::: CMD ARGS")]
    pub(crate) commands: Vec<String>,
}

const FILL: &str = "--fill";

/// How policies do their work, on whatever machine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PolicyArgs {
    /// Where the threads of a program go: near each other (packed), or far apart (spread) [default: packed]
    #[arg(long, value_parser = choices::placement(), hide_possible_values = true)]
    pub(crate) placement: Option<Placement>,
    /// How long a gang runs at a time: 1ms to 60s [default: 100ms]
    #[arg(long, value_parser = duration)]
    pub(crate) quantum: Option<Duration>,
    /// Give CPUs that a gang leaves idle to programs of other gangs (greedy, cgreedy).
    #[arg(long)]
    pub(crate) fill: bool,
    /// How programs slow each other down on this machine: a table (TOML; docs/policies.md) for the policy bandwidth.
    #[arg(long, value_name = "FILE", value_parser = slowdowns, value_hint = ValueHint::FilePath)]
    pub(crate) slowdowns: Option<Arc<Slowdowns>>,
    /// No program is frozen longer than this at a time, at most a day; quanta are shortened to keep it [default: 1s]
    #[arg(long, value_parser = duration)]
    pub(crate) max_frozen: Option<Duration>,
}

/// How policies that measure do their work.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MeasureArgs {
    /// How often programs are measured: 10ms or more (faithful) [default: 1s; with the guard as often as phases change]
    #[arg(long, value_parser = interval)]
    pub(crate) interval: Option<Duration>,
    /// What may be done to a program's threads: none, slice, batch, batch-slice, round-robin (real-time: before everything
    /// else on the machine) (faithful) [default: slice,batch,batch-slice]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = choices::actuator())]
    pub(crate) actuators: Option<Vec<Actuator>>,
    /// Do not try out what helps: every program gets the first of the actuators, as in the paper (faithful).
    #[arg(long)]
    pub(crate) no_guard: bool,
    /// The class that the kernel has for it, if none is asked for (simulated kernels only).
    #[arg(skip)]
    pub(crate) usual_class: Option<Class>,
}

impl MeasureArgs {
    /// The first option that was given.
    fn given(&self) -> Option<&'static str> {
        let all = [
            ("--interval", self.interval.is_some()),
            ("--actuators", self.actuators.is_some()),
            ("--no-guard", self.no_guard),
        ];
        all.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// How policies and this machine do their work.
#[derive(Clone, Debug, Args)]
pub(crate) struct HowArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// How to freeze programs; the default is the best there is.
    #[arg(long, value_enum)]
    pub(crate) freezer: Option<FreezerArg>,
    /// How to bind programs to CPUs; the default is affinity masks.
    #[arg(long, value_enum)]
    pub(crate) pinning: Option<PinningArg>,
    /// How long programs may take to end when asked to, before they are killed.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub(crate) grace: Duration,
}

/// On a machine that is not there nobody chooses how programs are frozen and bound, or ended.
impl From<PolicyArgs> for HowArgs {
    fn from(policy: PolicyArgs) -> HowArgs {
        let grace = Duration::from_nanos(Limits::default().grace.0);
        let measure = MeasureArgs::default();
        HowArgs { policy, measure, freezer: None, pinning: None, grace }
    }
}

/// Of programs that are not ours, nothing else is chosen.
impl From<MeasureArgs> for HowArgs {
    fn from(measure: MeasureArgs) -> HowArgs {
        HowArgs { measure, ..HowArgs::from(PolicyArgs::default()) }
    }
}

impl HowArgs {
    /// How a policy is to work: what it has no use for is left out.
    pub(crate) fn options(&self, kind: Kind) -> Options {
        let default = Options::default();
        Options {
            quantum: self.policy.quantum.map_or(default.quantum, Into::into),
            placement: self.placement(),
            fill: self.policy.fill && kind.fills(),
            slowdowns: self.policy.slowdowns.clone().filter(|_| kind.predicts()),
            faithful: self.faithful(),
        }
    }

    fn faithful(&self) -> FaithfulOptions {
        let default = FaithfulOptions::default();
        FaithfulOptions {
            interval: self.measure.interval.map(Into::into),
            actuators: self.measure.actuators.clone().unwrap_or(default.actuators),
            guard: !self.measure.no_guard,
            class: self.measure.usual_class,
            ..default
        }
    }

    /// Where the threads of a program go.
    pub(crate) fn placement(&self) -> Placement {
        self.policy.placement.unwrap_or(Options::default().placement)
    }

    /// No program is frozen longer than this at a time.
    pub(crate) fn max_frozen(&self) -> Nanos {
        self.policy.max_frozen.map_or(Limits::default().max_frozen, Into::into)
    }

    /// An option that was given and that none of these policies has a use for is a misunderstanding.
    pub(crate) fn check_use(&self, kinds: &[Kind]) -> Result<(), Failure> {
        let refuse = |option: &str, used: fn(Kind) -> bool, what: &str| {
            let asked: Vec<String> = kinds.iter().map(|kind| format!("'{kind}'")).collect();
            let uses = Kind::ALL.into_iter().filter(|kind| used(*kind)).map(Kind::name);
            let (asked, uses) = (asked.join(", "), uses.collect::<Vec<_>>().join(", "));
            Failure::Input(format!(
                "{option} is for policies that {what} ({uses}), not for {asked}: leave it out"
            ))
        };
        match self.given().iter().find(|option| **option != FILL) {
            Some(option) if !kinds.iter().any(|kind| kind.makes_gangs()) => {
                Err(refuse(option, Kind::makes_gangs, "freeze programs and bind them to CPUs"))
            }
            _ if self.policy.slowdowns.is_some() && !kinds.iter().any(|kind| kind.predicts()) => {
                Err(refuse("--slowdowns", Kind::predicts, "predict slowdowns"))
            }
            _ if !kinds.iter().any(|kind| kind.measures()) && self.measure.given().is_some() => {
                let option = self.measure.given().unwrap_or_default();
                Err(refuse(option, Kind::measures, "measure programs"))
            }
            _ if self.policy.fill && !kinds.iter().any(|kind| kind.fills()) => {
                Err(refuse(FILL, Kind::fills, "give idle CPUs away"))
            }
            _ => Ok(()),
        }
    }

    /// The same for a command that has a use for these only.
    pub(crate) fn check_use_by(&self, command: &str, used: &[&str]) -> Result<(), Failure> {
        match self.given().into_iter().find(|option| !used.contains(option)) {
            Some(option) => Err(Failure::Input(format!(
                "`cosched {command}` has no use for {option}: leave it out"
            ))),
            None => Ok(()),
        }
    }

    /// The options that were given, but for --grace, which every command uses that runs programs.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--quantum", self.policy.quantum.is_some()),
            ("--max-frozen", self.policy.max_frozen.is_some()),
            ("--placement", self.policy.placement.is_some()),
            ("--freezer", self.freezer.is_some()),
            ("--pinning", self.pinning.is_some()),
            (FILL, self.policy.fill),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(option, _)| option).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// What decides.
    #[arg(long, short, default_value = Kind::Gang.name(), value_parser = choices::policy())]
    pub(crate) policy: Kind,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// A folder for run.json and the programs' outputs; made if it is not there. No file in it is overwritten.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print run.json on standard output instead of the table; the programs' outputs go to standard error then.
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve metrics while the run lasts (OpenMetrics over HTTP, /metrics): 127.0.0.1:PORT, or unix:PATH.
    #[arg(long, value_name = "WHERE", value_parser = named::<MetricsAt>)]
    pub(crate) metrics: Option<MetricsAt>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SimArgs {
    /// Something else than a simulation.
    #[command(subcommand)]
    pub(crate) command: Option<SimCommand>,
    #[command(flatten)]
    pub(crate) run: SimRunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Measure this machine, so that `--machine this` can stand for it.
    Measure(SimMeasureArgs),
    /// Run small workloads here and in the model of this machine, and tell how far the two are apart.
    Check(SimCheckArgs),
    /// Fit models of programs to what they do alone, and print them as a workload file.
    Calibrate(SimCalibrateArgs),
    /// Find how programs slow each other down in pairs and triples: the table of the policy bandwidth.
    Slowdowns(SimSlowdownsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SimMeasureArgs {
    /// Where to write the description [default: machine.toml in cosched's folder of the user's data folder]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Measure so briefly that the figures mean little: to try it out.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the figures as JSON instead of the file.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimCheckArgs {
    /// The figures of this machine, as `cosched sim measure` writes them [default: those that it keeps]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,
    /// The folder of the kernels that `make kernels` builds.
    #[arg(long, value_name = "DIR", default_value = "workloads/bin")]
    pub(crate) kernels: PathBuf,
    /// How often to run each workload under each policy, in turn; with 6 or more, orders of policies are told apart.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) runs: u16,
    /// Only workloads whose names contain one of these, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// Two tiny workloads, once: to try it out. The errors mean nothing.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the figures as JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// On what to simulate programs alone.
#[derive(Debug, Args)]
pub(crate) struct SimMachineArgs {
    /// The machine: a name of machines/, or the path of a description of your own.
    #[arg(long, short)]
    pub(crate) machine: String,
    /// Its kernel: eevdf (Linux 6.6 and later), cfs (Linux up to 6.5), rr, balance, solaris-ts,
    /// solaris-fx.
    #[arg(long, short, default_value = "eevdf", value_parser = choices::kernel(), hide_possible_values = true)]
    pub(crate) kernel: Kernel,
    /// What decides where nothing else does; the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where the threads of a program go: near each other (packed), or far apart (spread).
    #[arg(long, default_value = Placement::default().name(), value_parser = choices::placement(), hide_possible_values = true)]
    pub(crate) placement: Placement,
}

#[derive(Debug, Args)]
pub(crate) struct SimCalibrateArgs {
    /// What is known of the programs alone (TOML; docs/simulator.md lists its keys).
    #[arg(value_name = "TABLE.toml")]
    pub(crate) table: PathBuf,
    #[command(flatten)]
    pub(crate) on: SimMachineArgs,
    /// Print the models as JSON instead of a workload file.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimSlowdownsArgs {
    /// The variants: a workload file of programs that differ in their traffic with memory, each with its model.
    #[arg(value_name = "WORKLOAD.toml")]
    pub(crate) workload: PathBuf,
    #[command(flatten)]
    pub(crate) on: SimMachineArgs,
    /// Print the table as JSON instead of TOML.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimRunArgs {
    /// The workload file (TOML), or - for standard input: every program with a [program.model], which docs/simulator.md
    /// describes.
    #[arg(value_name = "WORKLOAD.toml")]
    pub(crate) workload: Option<PathBuf>,
    /// Instead of a workload: a run that was recorded, by its folder or its run.json. It is simulated under its own policy,
    /// too, and the error of that is told.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["workload", "sweep", "no_solo", "watch"])]
    pub(crate) from: Option<PathBuf>,
    /// What decides.
    #[arg(long, short, value_parser = choices::policy(), required_unless_present = "sweep")]
    pub(crate) policy: Option<Kind>,
    /// The machine: a name of machines/, the path of a description of your own, a short one such as
    /// "package:2 core:8 gigahertz=2.6" (docs/simulator.md lists its words), or `this`, once `cosched sim measure` has
    /// measured it.
    #[arg(long, short, required_unless_present_any = ["sweep", "from"])]
    pub(crate) machine: Option<String>,
    /// Its kernel: eevdf (Linux 6.6 and later), cfs (Linux up to 6.5), rr, balance, solaris-ts,
    /// solaris-fx [default: eevdf]
    #[arg(long, short, value_parser = choices::kernel(), hide_possible_values = true)]
    pub(crate) kernel: Option<Kernel>,
    /// What decides where nothing else does; the same seed gives the same run [default: 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Simulate every value of a setting, separated by commas, and print one table: quantum, policy, placement, kernel,
    /// machine, seed, max-frozen. May be repeated: every combination is simulated, on all CPUs.
    #[arg(long, value_name = "KEY=A,B,C", conflicts_with = "out")]
    pub(crate) sweep: Vec<String>,
    /// Do not find how long each program takes alone: that is quicker, and slowdowns are not told.
    #[arg(long)]
    pub(crate) no_solo: bool,
    #[command(flatten)]
    pub(crate) how: PolicyArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// A folder for run.json; made if it is not there.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write what each program did in each second, and how its threads lost their CPUs (JSON lines; docs/simulator.md).
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pub(crate) watch: Option<PathBuf>,
    /// Print run.json, or of a sweep its figures as JSON, on standard output instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// Measure with these thread counts, such as 1..4 or 1,2,4; the default is what each program asks for.
    #[arg(long, value_name = "N[..N]")]
    pub(crate) threads: Option<String>,
    /// How often to run each; the median counts.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) runs: u16,
    /// Print the profiles as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also measure how long freezing and thawing take on each rung (takes some seconds).
    #[arg(long)]
    pub(crate) measure: bool,
    /// Print the findings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Print what was undone as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SpinArgs {
    /// How many threads spin.
    pub(crate) threads: u16,
    /// The process that waits for what they note.
    pub(crate) reader: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FreezerArg {
    /// cgroup.freeze of a writable cgroup v2.
    CgroupV2,
    /// The v1 freezer controller.
    CgroupV1,
    /// SIGSTOP and SIGCONT: needs no right.
    Signals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinningArg {
    /// The mask of every thread: needs no right.
    Affinity,
    /// The cpuset controller of either cgroup version.
    Cpuset,
}

impl From<FreezerArg> for FreezerRung {
    fn from(arg: FreezerArg) -> FreezerRung {
        match arg {
            FreezerArg::CgroupV2 => FreezerRung::CgroupV2,
            FreezerArg::CgroupV1 => FreezerRung::CgroupV1,
            FreezerArg::Signals => FreezerRung::Signals,
        }
    }
}

impl From<PinningArg> for PinningRung {
    fn from(arg: PinningArg) -> PinningRung {
        match arg {
            PinningArg::Affinity => PinningRung::Affinity,
            PinningArg::Cpuset => PinningRung::Cpuset,
        }
    }
}

fn slowdowns(file: &str) -> Result<Arc<Slowdowns>, String> {
    let help = "docs/policies.md describes such a table, and `cosched sim slowdowns` makes one";
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("cannot be read: {error}; {help}"))?;
    Slowdowns::parse(&text).map(Arc::new).map_err(|error| format!("{error}; {help}"))
}

pub(crate) fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::named(text)
        .ok_or_else(|| format!("there is no such kernel; choose from {}", Kernel::NAMES.join(", ")))
}

/// A value that knows its own names.
pub(crate) fn named<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Between two measurements of a program.
fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        interval if interval < Duration::from_millis(10) => Err("10ms is the least".to_owned()),
        interval => Ok(interval),
    }
}

/// A time as people write it: 100ms, 1s, 2min.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let help = "write a time with its unit, such as 100ms or 1s";
    let parsed: Duration =
        humantime::parse_duration(text).map_err(|error| format!("{error}; {help}"))?;
    match parsed.is_zero() || parsed > Duration::from_secs(24 * 3600) {
        true => Err(format!("it must be more than zero and at most a day; {help}")),
        false => Ok(parsed),
    }
}

/// A time since the beginning of a run: seconds as in run.json, or with a unit.
pub(crate) fn instant(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => {
            Ok(cosched_report::history::nanos(seconds))
        }
        Ok(_) => Err("a time in a run is from 0 s on".to_owned()),
        Err(_) => humantime::parse_duration(text)
            .map(Nanos::from)
            .map_err(|error| format!("{error}; write seconds such as 12.35, or 350ms")),
    }
}
