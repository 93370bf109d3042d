//! `cosched calibrate`: what policies need to know of this machine, found by measurement.

mod quanta;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::ui::failure::Failure;
use quanta::QuantaArgs;

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure which slice suits which scaling factor, as for table I of the paper on faithful
    /// scheduling.
    Quanta(QuantaArgs),
}

/// Measures what was asked for.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Quanta(args) => quanta::quanta(args),
    }
}
