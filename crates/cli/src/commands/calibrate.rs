//! `cosched calibrate`: what policies need to know of this machine, found by measurement.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use cosched_core::Nanos;
use cosched_core::format::span;
use cosched_lab::quanta::quanta;
use cosched_lab::slowdowns::{SlowdownChoices, slowdowns};
use cosched_linux::kernel::sched_attr::{LONGEST_SLICE, SHORTEST_SLICE};
use cosched_policy::Placement;

use crate::args::{choices, duration, whole};
use crate::how::check::twice;
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
    ///
    /// Programs run in the class SCHED_BATCH with each slice, as under faithful --no-guard.
    Quanta(QuantaArgs),
    /// Measure how much programs that stream through memory slow each other down, in pairs and
    /// triples. Writes the table for `--slowdowns`.
    ///
    /// Interrupted, it goes on where it was when it is started again.
    Slowdowns(SlowdownsArgs),
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

#[derive(Debug, Args)]
pub(crate) struct SlowdownsArgs {
    /// The file for the table. Beside it FILE.measured keeps what is measured, until the table is
    /// complete.
    #[arg(long, short, value_name = "FILE", default_value = "slowdowns.toml")]
    out: PathBuf,
    /// Rounds, of which the medians count.
    #[arg(long, default_value_t = 5, allow_negative_numbers = true,
          value_parser = whole(1..=1000u16))]
    runs: u16,
    /// Threads of each program [default: as many as leave room for three programs]
    #[arg(long, allow_negative_numbers = true, value_parser = whole(1..=4096u16))]
    threads: Option<u16>,
    /// Where the threads of a program go.
    #[arg(long, default_value = Placement::default().name(), hide_possible_values = true,
          value_parser = choices::listed(Placement::ALL, Placement::name))]
    placement: Placement,
    /// How long each measurement lasts: 1ms to 60s.
    #[arg(long, default_value = "500ms", value_parser = window)]
    window: Duration,
    /// Also print the table as JSON on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Quanta(QuantaArgs { training, slices, runs }) => match twice(slices) {
            None => quanta(training, slices, *runs),
            Some(slice) => Err(Failure::Input(format!(
                "--slices: {} is there twice; name each once",
                span(*slice)
            ))),
        },
        What::Slowdowns(args) => {
            let SlowdownsArgs { threads, placement, runs, window, .. } = *args;
            slowdowns(&args.out, SlowdownChoices { threads, placement, runs, window }, args.json)
        }
    }
}

fn window(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        window if (Duration::from_millis(1)..=Duration::from_secs(60)).contains(&window) => {
            Ok(window)
        }
        _ => Err("take 1ms to 60s".to_owned()),
    }
}

fn slice(text: &str) -> Result<Nanos, String> {
    match Nanos::from(duration(text)?) {
        slice if (SHORTEST_SLICE..=LONGEST_SLICE).contains(&slice) => Ok(slice),
        _ => Err("the kernel grants 100us to 100ms".to_owned()),
    }
}
