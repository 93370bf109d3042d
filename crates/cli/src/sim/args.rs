//! The command line of `cosched sim` and of what else it does.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use cosched_policy::{Kind, Placement};
use cosched_sim::Kernel;

use crate::args::{HowArgs, MeasureArgs, PolicyArgs, seed, whole};
use crate::choices;

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
    /// Run small workloads here and in the model of this machine, and tell how far the two are
    /// apart.
    Check(Box<SimCheckArgs>),
    /// Fit models of programs to what they do alone, and print them as a workload file.
    Calibrate(SimCalibrateArgs),
    /// Find how programs slow each other down in pairs and triples: the table of the policy
    /// bandwidth.
    Slowdowns(SimSlowdownsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SimMeasureArgs {
    /// Where to write the description [default: machine.toml in cosched's folder of the user's data
    /// folder]
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
    /// The figures of this machine, as `cosched sim measure` writes them [default: those that it
    /// keeps]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,
    /// The folder of the kernels that `make kernels` builds.
    #[arg(long, value_name = "DIR", default_value = "workloads/bin")]
    pub(crate) kernels: PathBuf,
    /// How often to run each workload under each policy, in turn; with 6 or more, orders of
    /// policies are told apart.
    #[arg(long, default_value_t = 6, allow_negative_numbers = true, value_parser = whole(1..=1000u16))]
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
    #[arg(long, short, value_parser = choices::machine(), hide_possible_values = true)]
    pub(crate) machine: String,
    /// Its kernel: eevdf (Linux 6.6 and later), cfs (Linux up to 6.5), rr, balance, solaris-ts,
    /// solaris-fx.
    #[arg(long, short, default_value = "eevdf", value_parser = choices::kernel(), hide_possible_values = true)]
    pub(crate) kernel: Kernel,
    /// What decides where nothing else does; the same seed gives the same run.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
    /// Where the threads of a program go: near each other (packed), or far apart (spread).
    #[arg(long, default_value = Placement::default().name(), value_parser = choices::placement(), hide_possible_values = true)]
    pub(crate) placement: Placement,
}

#[derive(Debug, Args)]
pub(crate) struct SimCalibrateArgs {
    /// What is known of the programs alone (TOML; docs/research/simulator.md lists its keys).
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
    /// The variants: a workload file of programs that differ in their traffic with memory, each
    /// with its model.
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
    /// The workload file (TOML), or - for standard input: every program with a [program.model],
    /// which docs/research/simulator.md describes.
    #[arg(value_name = "WORKLOAD.toml")]
    pub(crate) workload: Option<PathBuf>,
    /// Instead of a workload: a run that was recorded, by its folder or its run.json. It is
    /// simulated under its own policy, too, and the error of that is told.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["workload", "sweep", "no_solo", "watch"])]
    pub(crate) from: Option<PathBuf>,
    /// What decides [default: turns]
    #[arg(long, short, value_parser = choices::policy())]
    pub(crate) policy: Option<Kind>,
    /// The machine: a name of machines/, the path of a description of your own, a short one such as
    /// "package:2 core:8 gigahertz=2.6" (docs/research/simulator.md lists its words), or `this`,
    /// once `cosched sim measure` has measured it.
    #[arg(long, short, required_unless_present_any = ["sweep", "from"], value_parser = choices::machine(),
          hide_possible_values = true)]
    pub(crate) machine: Option<String>,
    /// Its kernel: eevdf (Linux 6.6 and later), cfs (Linux up to 6.5), rr, balance, solaris-ts,
    /// solaris-fx [default: eevdf]
    #[arg(long, short, value_parser = choices::kernel(), hide_possible_values = true)]
    pub(crate) kernel: Option<Kernel>,
    /// What decides where nothing else does; the same seed gives the same run [default: 1]
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Simulate every value of a setting, separated by commas, and print one table: quantum,
    /// policy, placement, kernel, machine, seed, max-frozen. May be repeated: every combination is
    /// simulated, on all CPUs.
    #[arg(long, value_name = "KEY=A,B,C", conflicts_with = "out")]
    pub(crate) sweep: Vec<String>,
    /// End with an error if a simulation takes more events than this: some minutes to an hour.
    #[arg(long, value_name = "N", default_value_t = super::pace::MOST_EVENTS)]
    pub(crate) max_events: u64,
    /// Do not find how long each program takes alone: that is quicker, slowdowns are not told, and
    /// moldable programs keep their threads.
    #[arg(long)]
    pub(crate) no_solo: bool,
    #[command(flatten)]
    pub(crate) how: PolicyArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// A folder for run.json; made if it is not there.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write what each program did in each second, and how its threads lost their CPUs (JSON lines;
    /// docs/research/simulator.md). An earlier such file is replaced, any other file is not.
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pub(crate) watch: Option<PathBuf>,
    /// Print run.json, or of a sweep its figures as JSON, on standard output instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}
