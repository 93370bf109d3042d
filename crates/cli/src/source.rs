//! From the command line to a workload.

use std::ffi::OsString;

use cosched_core::workload::{Workload, split_commands};

use crate::args::SourceArgs;
use crate::failure::Failure;

/// The arguments as text. cosched writes commands into its results and its logs, so they must be text.
pub(crate) fn utf8_arguments(
    arguments: impl Iterator<Item = OsString>,
) -> Result<Vec<String>, Failure> {
    let text = |(i, argument): (usize, OsString)| {
        argument.into_string().map_err(|argument| {
            let shown = argument.to_string_lossy().into_owned();
            Failure::Input(format!(
                "argument {i} ('{shown}') is not UTF-8; rename the file, or start the program from a script"
            ))
        })
    };
    arguments.enumerate().map(text).collect()
}

/// Reads the workload that the command line names.
pub(crate) fn workload(args: &SourceArgs) -> Result<Workload, Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::Input(format!("the current directory cannot be found: {error}"))
    })?;
    let workload = match (&args.workload, args.programs.is_empty(), args.commands.is_empty()) {
        (Some(path), ..) => Workload::load(path),
        (None, false, _) => Workload::from_command_lines(args.programs.clone(), &here),
        (None, true, false) => {
            Workload::from_commands(split_commands(&args.commands, ":::"), &here)
        }
        (None, true, true) => {
            return Err(Failure::Input(
                "nothing to run; name a workload file, or commands: \
                 `cosched run --policy gang -- CMD ARGS ::: CMD ARGS`"
                    .to_owned(),
            ));
        }
    };
    workload.map_err(Failure::input)
}
