//! `cosched sim`: a workload under a policy, on a machine that is not there.

use std::process::ExitCode;

use cosched_lab::sim::{calibrate, check, measure, params, simulate, slowdowns};

pub(crate) use crate::args::sim::SimArgs;
use crate::args::sim::SimCommand;
use crate::ui::failure::Failure;

/// Simulates, or whatever else was asked for.
pub(crate) fn sim(args: &SimArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(SimCommand::Measure(args)) => measure(args.out.as_deref(), args.quick, args.json),
        Some(SimCommand::Check(args)) => check(&args.options()),
        Some(SimCommand::Calibrate(args)) => calibrate(&args.table, &args.on.options(), args.json),
        Some(SimCommand::Slowdowns(args)) => {
            slowdowns(&args.workload, &args.on.options(), args.json)
        }
        Some(SimCommand::Params(args)) => params(args.policy, args.json),
        None => simulate(&args.run.options()),
    }
}
