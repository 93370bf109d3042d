//! The subcommands: their command line, defined once, and where each begins.
//!
//! A subcommand has its own options beside it. `--help`, the man pages and the completions come
//! from here.

pub(crate) mod advise;
pub(crate) mod attach;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod detach;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod manual;
pub(crate) mod misplaced;
pub(crate) mod profile;
pub(crate) mod recover;
mod remedy;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod sim;
pub(crate) mod stat;
pub(crate) mod stats;
pub(crate) mod top;
pub(crate) mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cosched_lab::gaps::{SPIN, spin};

use crate::args::help;
use crate::ui::failure::{self, Failure};
use advise::AdviseArgs;
use attach::AttachArgs;
use calibrate::CalibrateArgs;
use compare::CompareArgs;
use detach::DetachArgs;
use doctor::{DoctorArgs, SpinArgs};
use exec::ExecArgs;
use explain::ExplainArgs;
use manual::ManualArgs;
use profile::ProfileArgs;
use recover::RecoverArgs;
pub(crate) use remedy::with_remedy;
use report::ReportArgs;
use run::RunArgs;
use sim::SimArgs;
use stat::StatArgs;
use stats::StatsArgs;
use top::TopArgs;
use trace::TraceArgs;

/// Co-schedules multithreaded programs that share this machine.
#[derive(Debug, Parser)]
#[command(name = "cosched", version, arg_required_else_help = true,
          after_help = failure::exit_codes(),
          mut_subcommands = help::arranged)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run programs together under a policy.
    Run(RunArgs),
    /// Run one program under a policy in the foreground of this terminal, as `nice` does.
    Exec(ExecArgs),
    /// Put running processes under a policy until they end or you press Ctrl-C; then they run on
    /// with their original settings.
    Attach(AttachArgs),
    /// Detach a process and restore its original settings.
    Detach(DetachArgs),
    /// Run the same programs in several variants, and print one table.
    Compare(Box<CompareArgs>),
    /// Simulate programs under a policy on a modelled machine.
    Sim(Box<SimArgs>),
    /// Measure each program alone on this machine, and keep the figures for later runs.
    Profile(ProfileArgs),
    /// Find the thread counts with which several programs are fastest and fairest together here.
    Advise(AdviseArgs),
    /// Measure what policies need to know about this machine.
    Calibrate(CalibrateArgs),
    /// Show what this kernel, machine and user allow, and how to get more.
    Doctor(DoctorArgs),
    /// Restore the original settings of programs after cosched was killed.
    Recover(RecoverArgs),
    /// Turn results into one HTML page, and into plots for a paper.
    Report(ReportArgs),
    /// Write a run as a trace that Perfetto opens, with every decision and its reasons.
    Trace(TraceArgs),
    /// Explain in words why a run took so long, or why a program ran or waited at a given time.
    Explain(ExplainArgs),
    /// Watch a run in progress: which programs run, which wait, and why.
    Top(TopArgs),
    /// Show what the threads of running programs wait for, and which program takes which CPUs.
    Stat(StatArgs),
    /// Write the man pages and the shell completions into a folder such as /usr/share.
    Manual(ManualArgs),
    /// Judge times that another program measured: medians, ratios and verdicts, for benchmarks.
    #[command(hide = true)]
    Stats(StatsArgs),
    /// The program that `doctor --measure` freezes.
    #[command(name = SPIN, hide = true)]
    Spin(SpinArgs),
}

impl Command {
    /// Whether it fails without a standard output on which its result can be printed.
    pub(crate) fn prints_result(&self) -> bool {
        match self {
            Command::Run(args) => args.prints_result(),
            Command::Report(args) => args.prints_result(),
            Command::Trace(args) => args.prints_result(),
            Command::Exec(_) | Command::Manual(_) | Command::Spin(_) => false,
            // To restore settings matters more than to say so.
            Command::Recover(_) => false,
            _ => true,
        }
    }
}

/// Does what a command line says.
pub(crate) fn carry_out(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Exec(args) => exec::exec(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Detach(args) => detach::detach(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Sim(args) => sim::sim(&args),
        Command::Profile(args) => profile::profile(&args),
        Command::Advise(args) => advise::advise(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Recover(args) => recover::recover(&args),
        Command::Report(args) => report::report(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Stat(args) => stat::stat(&args),
        Command::Stats(args) => stats::stats(&args),
        Command::Top(args) => top::top(&args),
        Command::Manual(args) => manual::manual(&args),
        Command::Spin(args) => Ok(spin(args.threads, args.reader)),
    }
}
