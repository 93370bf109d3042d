//! `cosched calibrate`: what policies need to know of this machine, found by measurement.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cosched_core::Nanos;
use cosched_lab::quanta::quanta;
use cosched_linux::kernel::sched_attr::{LONGEST_SLICE, SHORTEST_SLICE};

use crate::args::{duration, whole};
use crate::ui::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure which slice suits which scaling factor, as for table I of the paper on faithful
    /// scheduling. Prints the table for `--quanta`.
    Quanta(QuantaArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QuantaArgs {
    /// The training programs (a jobs file). They should not be among the programs that the table
    /// is for, and each should run for a second or more. One without `threads` runs with 2 and
    /// with 4 threads per CPU.
    #[arg(value_name = "TRAINING.toml", default_value = "workloads/training.toml")]
    training: PathBuf,
    /// The slices to try, separated by commas: 100us to 100ms, the range that the kernel grants.
    #[arg(long, value_delimiter = ',', value_name = "TIMES", value_parser = slice,
          default_value = "100us,500us,1ms,3ms,5ms,10ms,20ms,30ms,50ms,80ms,100ms")]
    slices: Vec<Nanos>,
    /// Runs of each program with each slice, taking turns. With 9 or more, one of eleven slices is
    /// distinguishable from the kernel's own.
    #[arg(long, default_value_t = 10, allow_negative_numbers = true,
          value_parser = whole(1..=1000u16))]
    runs: u16,
}

pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<ExitCode, Failure> {
    let What::Quanta(QuantaArgs { training, slices, runs }) = &args.what;
    quanta(training, slices, *runs)
}

fn slice(text: &str) -> Result<Nanos, String> {
    match Nanos::from(duration(text)?) {
        slice if (SHORTEST_SLICE..=LONGEST_SLICE).contains(&slice) => Ok(slice),
        _ => Err("the kernel grants 100us to 100ms".to_owned()),
    }
}
