//! `cosched calibrate`: what policies need to know of this machine, found by measurement.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueHint};
use cosched_core::Nanos;
use cosched_lab::quanta::{self, QuantaOptions};
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
    /// scheduling.
    Quanta(QuantaArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QuantaArgs {
    /// The training programs (a jobs file). They should not be among the programs that the table
    /// is for.
    #[arg(value_name = "TRAINING.toml", default_value = "workloads/training.toml")]
    training: PathBuf,
    /// Only programs with one of these in their names, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Threads per CPU, for programs without a thread count in the file. Each value makes a
    /// training program of its own.
    #[arg(long, value_delimiter = ',', value_name = "N,N", default_value = "2,4",
          allow_negative_numbers = true, value_parser = whole(1..=64u16))]
    loads: Vec<u16>,
    /// The slices to try, separated by commas: 100us to 100ms, the range that the kernel grants.
    #[arg(long, value_delimiter = ',', value_name = "TIMES", value_parser = slice,
          default_value = "100us,500us,1ms,3ms,5ms,10ms,20ms,30ms,50ms,80ms,100ms")]
    slices: Vec<Nanos>,
    /// Runs of each program with each slice, taking turns. With 9 or more, one of eleven slices is
    /// distinguishable from the kernel's own.
    #[arg(long, default_value_t = 10, allow_negative_numbers = true,
          value_parser = whole(1..=1000u16))]
    runs: u16,
    /// Target length of each run, in seconds: the number after `--work` in a program's command is
    /// changed to reach it.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Write the table to this file, for `--quanta`. An earlier table is replaced, no other file
    /// is.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Print the table and all measurements as JSON.
    #[arg(long)]
    json: bool,
}

impl QuantaArgs {
    fn options(&self) -> QuantaOptions {
        QuantaOptions {
            training: self.training.clone(),
            only: self.only.clone(),
            loads: self.loads.clone(),
            slices: self.slices.clone(),
            runs: self.runs,
            seconds: self.seconds,
            out: self.out.clone(),
            json: self.json,
        }
    }
}

/// Measures what was asked for.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Quanta(args) => quanta::quanta(&args.options()),
    }
}

fn slice(text: &str) -> Result<Nanos, String> {
    match Nanos::from(duration(text)?) {
        slice if (SHORTEST_SLICE..=LONGEST_SLICE).contains(&slice) => Ok(slice),
        _ => Err("the kernel grants 100us to 100ms".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.05 to 600".to_owned()),
    }
}
