//! `cosched recover`: undoes what a killed cosched and its killed sentinel have left behind.

use std::process::ExitCode;

use clap::Args;
use cosched_run::recover::{Recovered, is_anything_left};

use crate::ui::failure::Failure;
use crate::ui::{print, print_json, say};

/// How to tell it.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Print what was restored as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Undoes every log of a cosched that is gone.
pub(crate) fn recover(args: &RecoverArgs) -> Result<ExitCode, Failure> {
    let recovered = Recovered::all()?;
    match args.json {
        true => print_json(&serde_json::to_string_pretty(&recovered).map_err(Failure::broken)?)?,
        false => print(&recovered.sentence())?,
    }
    Ok(if recovered.is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tells the user of every other command that there is something to undo.
pub(crate) fn offer() {
    if is_anything_left() {
        say(format_args!(
            "a killed cosched may have left changed settings behind; `cosched recover` restores \
             them"
        ));
    }
}
