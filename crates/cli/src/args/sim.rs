//! The command line of `cosched sim` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use cosched_lab::sim::MOST_EVENTS;
use cosched_lab::sim::options::{CheckOptions, MachineOptions, RunOptions};
use cosched_policy::{Kind, Placement};
use cosched_sim::Kernel;

use crate::args::choices;
use crate::args::{HowArgs, MeasureArgs, PolicyArgs, seed, whole};
use crate::how::How;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SimArgs {
    /// A subcommand instead of a simulation.
    #[command(subcommand)]
    pub(crate) command: Option<SimCommand>,
    #[command(flatten)]
    pub(crate) run: SimRunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Measure this machine, so that `--machine this` can simulate it.
    Measure(SimMeasureArgs),
    /// Run small workloads here and on the model of this machine, and show how far the two differ.
    Check(Box<SimCheckArgs>),
    /// Fit models of programs to figures of their solo runs, and print them as a jobs file.
    Calibrate(SimCalibrateArgs),
    /// Simulate how programs slow each other down in pairs and triples: a table for --slowdowns.
    Slowdowns(SimSlowdownsArgs),
    /// List the constants of policies that --set can set.
    Params(SimParamsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SimMeasureArgs {
    /// Where to write the description [default: cosched/machine.toml in the user's data folder]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// A short test; the figures mean little.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the figures as JSON instead of the file.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimCheckArgs {
    /// The description of this machine that `cosched sim measure` has written [default: the one
    /// that it keeps]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,
    /// The folder with the programs that `make kernels` builds.
    #[arg(long, value_name = "DIR", default_value = "workloads/bin")]
    pub(crate) kernels: PathBuf,
    /// Runs of each workload under each policy, taking turns; 6 or more make the order of policies
    /// distinguishable.
    #[arg(long, default_value_t = 6, allow_negative_numbers = true,
          value_parser = whole(1..=1000u16))]
    pub(crate) runs: u16,
    /// Only workloads with one of these in their names, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// A short test with two tiny workloads; the errors mean nothing.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the figures as JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The machine on which programs are simulated alone.
#[derive(Debug, Args)]
pub(crate) struct SimMachineArgs {
    /// The machine: a name such as opteron-64, or the path of your own description.
    #[arg(long, short, value_parser = choices::machine(), hide_possible_values = true)]
    pub(crate) machine: String,
    /// Its kernel: eevdf (Linux 6.6 and later), cfs (Linux up to 6.5), rr, balance, solaris-ts,
    /// solaris-fx.
    #[arg(long, short, default_value = "eevdf", value_parser = choices::kernel(),
          hide_possible_values = true)]
    pub(crate) kernel: Kernel,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
    /// Where to place the threads of a program: on CPUs that share caches (packed), or on CPUs far
    /// apart (spread).
    #[arg(long, default_value = Placement::default().name(), hide_possible_values = true,
          value_parser = choices::listed(Placement::ALL, Placement::name))]
    pub(crate) placement: Placement,
}

#[derive(Debug, Args)]
pub(crate) struct SimCalibrateArgs {
    /// Figures of the programs' solo runs (TOML): a `[[program]]` with name, threads and seconds,
    /// and a `[[program.point]]` with threads and speedup for each measured thread count.
    ///
    /// More keys of a program: misses_per_kilo_instruction, misses_without_cache, footprint_mib,
    /// cycles_per_instruction, misses_in_flight, spin, repeat, barriers. More keys of a point:
    /// share_of_best, and traffic = { of = "NAME", share = 0.5 }.
    #[arg(value_name = "TABLE.toml")]
    pub(crate) table: PathBuf,
    #[command(flatten)]
    pub(crate) on: SimMachineArgs,
    /// Print the models as JSON instead of a jobs file.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimSlowdownsArgs {
    /// A jobs file of programs that differ in their memory traffic, each with its model.
    #[arg(value_name = "JOBS.toml")]
    pub(crate) workload: PathBuf,
    #[command(flatten)]
    pub(crate) on: SimMachineArgs,
    /// Print the table as JSON instead of TOML.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimParamsArgs {
    /// Only those that this policy uses.
    #[arg(value_name = "POLICY", value_parser = choices::policy())]
    pub(crate) policy: Option<Kind>,
    /// Print the constants as JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimRunArgs {
    /// The jobs file (TOML), or - for standard input. Every program needs a [program.model];
    /// `cosched sim --from RUN --jobs-file` writes such a file of a recorded run.
    #[arg(value_name = "JOBS.toml")]
    pub(crate) workload: Option<PathBuf>,
    /// Replay a recorded run instead of a jobs file: its folder, or its run.json.
    ///
    /// It is also simulated under its own policy, which shows the error of the simulation.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["workload", "sweep", "no_solo", "watch"])]
    pub(crate) from: Option<PathBuf>,
    /// Only print the programs of the recorded run, with a model of each, as a jobs file.
    #[arg(long, requires = "from", conflicts_with_all = ["policy", "out", "json"])]
    pub(crate) jobs_file: bool,
    /// The policy, which decides what runs when [default: turns]
    #[arg(long, short, value_parser = choices::policy())]
    pub(crate) policy: Option<Kind>,
    /// The machine: a name such as opteron-64, a file, words such as "core:8", or `this`.
    ///
    /// A wrong name or word is answered with all names or words. A file is your own description.
    /// Words can say more, as in "package:2 core:8 gigahertz=2.6". `this` is the machine that
    /// `cosched sim measure` has measured.
    #[arg(long, short, value_parser = choices::machine(), hide_possible_values = true)]
    pub(crate) machine: Option<String>,
    /// Its kernel [default: eevdf]
    ///
    /// eevdf (Linux 6.6 and later), cfs (Linux up to 6.5), rr, balance, solaris-ts or solaris-fx.
    #[arg(long, short, value_parser = choices::kernel(), hide_possible_values = true)]
    pub(crate) kernel: Option<Kernel>,
    /// The seed of all random choices [default: 1]
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Simulate several values of a setting, and print one table. May be repeated.
    ///
    /// The settings are quantum, policy, placement, kernel, machine, seed, max-frozen, and all that
    /// --set can set. Every combination is simulated.
    #[arg(long, value_name = "KEY=A,B,C", conflicts_with = "out")]
    pub(crate) sweep: Vec<String>,
    /// End with an error if a simulation needs more events than this. The default takes some
    /// minutes to an hour.
    #[arg(long, value_name = "N", default_value_t = MOST_EVENTS)]
    pub(crate) max_events: u64,
    /// Do not simulate each program alone.
    ///
    /// That is quicker, but there are no slowdowns, and moldable programs keep their thread counts.
    #[arg(long)]
    pub(crate) no_solo: bool,
    #[command(flatten)]
    pub(crate) how: PolicyArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// A folder for run.json; made if it does not exist.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write what each program did in each second, and how its threads lost their CPUs (JSON
    /// lines). An earlier file of this kind is replaced, no other file is.
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pub(crate) watch: Option<PathBuf>,
    /// Print run.json (with --sweep: the figures as JSON) instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

impl SimCheckArgs {
    pub(crate) fn options(&self) -> CheckOptions {
        CheckOptions {
            machine: self.machine.clone(),
            kernels: self.kernels.clone(),
            runs: self.runs,
            only: self.only.clone(),
            how: self.how.how(),
            quick: self.quick,
            json: self.json,
        }
    }
}

impl SimMachineArgs {
    pub(crate) fn options(&self) -> MachineOptions {
        let (machine, kernel) = (self.machine.clone(), self.kernel);
        MachineOptions { machine, kernel, seed: self.seed, placement: self.placement }
    }
}

impl SimRunArgs {
    pub(crate) fn options(&self) -> RunOptions {
        RunOptions {
            workload: self.workload.clone(),
            from: self.from.clone(),
            jobs_file: self.jobs_file,
            policy: self.policy,
            machine: self.machine.clone(),
            kernel: self.kernel,
            seed: self.seed,
            sweep: self.sweep.clone(),
            max_events: self.max_events,
            no_solo: self.no_solo,
            how: How { measure: self.measure.choices(), ..self.how.choices().into() },
            out: self.out.clone(),
            watch: self.watch.clone(),
            json: self.json,
        }
    }
}
