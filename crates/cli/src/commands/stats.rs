//! `cosched stats`: medians, ratios and verdicts of times that another program measured.
//!
//! The benchmarks of bench/ have their statistics from here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use cosched_lab::stats::Stats;
use cosched_workload::{input, shown_path};

use crate::ui::failure::Failure;
use crate::ui::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// A JSON file with version, rounds and over, or - for standard input.
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Print what was found as JSON.
    #[arg(long)]
    json: bool,
}

/// Judges the times in a file.
pub(crate) fn stats(args: &StatsArgs) -> Result<ExitCode, Failure> {
    let is_stdin = args.file == Path::new("-");
    let text = match is_stdin {
        true => std::io::read_to_string(std::io::stdin()).map_err(|error| error.to_string()),
        false => input::text(&args.file).map_err(|error| {
            let remedy = input::remedy(&error, "name the JSON file with the times");
            format!("{error}; {remedy}")
        }),
    };
    let of_place = |text: &str| {
        let place = if is_stdin { "standard input".to_owned() } else { shown_path(&args.file) };
        Failure::Input(format!("{place}: {text}"))
    };
    let text = text.map_err(|error| of_place(&format!("cannot be read: {error}")))?;
    let stats = Stats::of_json(&text).map_err(|failure| of_place(failure.text()))?;
    match args.json {
        true => print_json(&serde_json::to_string(&stats).map_err(Failure::broken)?)?,
        false => print(&stats.lines().join("\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}
