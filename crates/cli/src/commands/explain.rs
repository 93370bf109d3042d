//! `cosched explain`: a run in words.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cosched_core::Nanos;
use cosched_report::explain::{Moment, Story};
use cosched_report::history::nanos;
use cosched_results::result::RunResult;
use cosched_workload::{escaped, shown};

use crate::args::instant;
use crate::experiment::ExperimentRecord;
use crate::out;
use crate::ui::failure::Failure;
use crate::ui::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// An earlier run: its folder, or its run.json.
    run: PathBuf,
    /// Explain only this program; without --at, in more detail.
    name: Option<String>,
    /// Explain only this time: seconds since the start of the run, or a time such as 350ms or 2min.
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = instant)]
    at: Option<Nanos>,
    /// The same as NAME.
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    program: Option<String>,
    /// Print the explanation as JSON.
    #[arg(long)]
    json: bool,
}

/// Tells the whole story, or what happened at a time.
pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let result = out::load(&args.run)?;
    let slot =
        args.program.as_ref().or(args.name.as_ref()).map(|name| slot(&result, name)).transpose()?;
    let variant = ExperimentRecord::variant_of(&args.run);
    let (json, lines) = match args.at {
        Some(at) => {
            check_time(&result, at)?;
            let moment = Moment::of(&result, at, slot).of_variant(variant);
            (serde_json::to_string(&moment), moment.lines())
        }
        None => {
            let story = Story::of(&result, slot).of_variant(variant);
            let lines = match slot {
                Some(_) => story.programs.iter().flat_map(|p| p.sentences.clone()).collect(),
                None => story.lines(),
            };
            (serde_json::to_string(&story), lines)
        }
    };
    match args.json {
        true => print_json(&json.map_err(Failure::broken)?)?,
        // A line break in a name is none of the text.
        false => print(&lines.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn slot(result: &RunResult, name: &str) -> Result<usize, Failure> {
    let names = || result.programs.iter().map(|program| program.name.as_str());
    names().position(|other| other == name).ok_or_else(|| {
        let names: Vec<&str> = names().collect();
        Failure::Input(format!(
            "{}: this run has no such program; it has {}",
            shown(name),
            names.join(", ")
        ))
    })
}

fn check_time(result: &RunResult, at: Nanos) -> Result<(), Failure> {
    let kept_from = nanos(result.kept_from_seconds.unwrap_or(0.0));
    let (named, total) = (at.as_secs_f64(), result.total_seconds);
    let why = if named > total {
        format!("the run took {total} s; name a time within it")
    } else if at < kept_from {
        let from = kept_from.as_secs_f64();
        format!("what was decided before {from} s was not kept; name a later time")
    } else {
        return Ok(());
    };
    Err(Failure::Input(format!("--at {named} s: {why}")))
}
