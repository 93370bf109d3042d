//! `cosched advise`: with how many threads each program makes the whole workload fastest and
//! fairest on this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cosched_lab::advise::{self, AdviseOptions};
use cosched_policy::Kind;

use crate::args::choices;
use crate::args::{HowArgs, SourceArgs, whole};
use crate::ui::failure::Failure;

/// What to advise on.
#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The policy under which the programs will run: gang, greedy or minwait.
    #[arg(long, short, default_value = Kind::Greedy.name(),
          value_parser = choices::policy_of_advice(),
          hide_possible_values = true)]
    pub(crate) policy: Kind,
    /// Thread counts to choose from, such as 1..4 or 1,2,4 [default: 1 to 8, then 16, 32 and so on]
    #[arg(long, value_name = "N[..N]")]
    pub(crate) threads: Option<String>,
    /// Solo runs of each program with each thread count. The median is used, and the spread shows
    /// which counts are distinguishable. Runs from earlier are used again.
    #[arg(long, default_value_t = 5, allow_negative_numbers = true,
          value_parser = whole(1..=100u16))]
    pub(crate) runs: u16,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// Run the programs with the recommended thread counts.
    #[arg(long)]
    pub(crate) apply: bool,
    /// With --apply, a folder for run.json and the programs' outputs; made if it does not exist.
    #[arg(long, short, value_name = "DIR", requires = "apply")]
    pub(crate) out: Option<PathBuf>,
    /// Print the advice as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measures what is missing, advises, and runs if that is wanted.
pub(crate) fn advise(args: &AdviseArgs) -> Result<ExitCode, Failure> {
    advise::advise(&AdviseOptions {
        source: args.source.source(),
        policy: args.policy,
        threads: args.threads.clone(),
        runs: args.runs,
        how: args.how.how(),
        apply: args.apply,
        out: args.out.clone(),
        json: args.json,
    })
}
