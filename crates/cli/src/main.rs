//! `cosched`: decides which programs run together, on which CPUs, for how long.
//!
//! | module | what it holds |
//! |---|---|
//! | [`args`] | what the command lines of several commands share |
//! | [`commands`] | the subcommands: one file each |
//!
//! A module uses only those above it.
//!
//! Exit codes are a contract; see [`cosched_ui::failure`].

#![forbid(unsafe_code)]

mod args;
mod commands;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use cosched_lab::experiment;
use cosched_run::{how, live, out, replace, session, source, store, table};
use cosched_ui as ui;

fn main() -> ExitCode {
    // Helper processes are this same executable.
    cosched_linux::helpers::become_one_if_asked();
    // Where it is refused, such a write ends cosched, as it did before.
    let _ = cosched_linux::kernel::signals::outlive_file_size_limit();
    let _ = cosched_linux::kernel::signals::hear_of_children();
    let arguments = match source::utf8_arguments(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(failure) => return failure.report(),
    };
    let command = match commands::Cli::try_parse_from(&arguments) {
        Ok(cli) => cli.command,
        // The parser ignores that help cannot be written.
        Err(help) if !help.use_stderr() && !std::io::stdout().is_terminal() => {
            let put = |()| ui::put(help.render().to_string().as_bytes());
            let printed = ui::check_stdout().and_then(put);
            return printed.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
        }
        Err(error) => commands::with_remedy(error, &arguments).exit(),
    };
    if !matches!(command, commands::Command::Recover(_) | commands::Command::Spin(_)) {
        commands::recover::offer();
    }
    if let Some(note) = commands::misplaced::note(&arguments) {
        ui::say(format_args!("{note}"));
    }
    if command.prints_result() {
        if let Err(failure) = ui::check_stdout() {
            return failure.report();
        }
    }
    match commands::carry_out(command) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
