//! `cosched`: decides which programs run together, on which CPUs, for how long.
//!
//! This crate is thin: one file per subcommand, one for what they share
//! ([`session`]: a workload, a policy and this machine become a result), and
//! one each for tables, progress and errors. Exit codes are a contract; see
//! [`failure`].

#![forbid(unsafe_code)]

mod advise;
mod args;
mod attach;
mod calibrate;
mod choices;
mod compare;
mod detach;
mod deviations;
mod doctor;
mod environment;
mod exec;
mod experiment;
mod explain;
mod failure;
mod fair;
mod in_place;
mod live;
mod manual;
mod out;
mod profile;
mod progress;
mod recover;
mod replace;
mod report;
mod run;
mod session;
mod sim;
mod source;
mod stat;
mod store;
mod table;
mod top;
mod trace;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

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
    let command = match args::Cli::try_parse_from(&arguments) {
        Ok(cli) => cli.command,
        // The parser ignores that help cannot be written.
        Err(help) if !help.use_stderr() && !std::io::stdout().is_terminal() => {
            let printed = session::put(help.render().to_string().as_bytes());
            return printed.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
        }
        Err(error) => args::with_remedy(error, &arguments).exit(),
    };
    if !matches!(command, args::Command::Recover(_) | args::Command::Spin(_)) {
        recover::offer();
    }
    let result = match command {
        args::Command::Run(args) => run::run(&args),
        args::Command::Exec(args) => exec::exec(&args),
        args::Command::Attach(args) => attach::attach(&args),
        args::Command::Detach(args) => detach::detach(&args),
        args::Command::Compare(args) => compare::compare(&args),
        args::Command::Sim(args) => sim::sim(&args),
        args::Command::Profile(args) => profile::profile(&args),
        args::Command::Advise(args) => advise::advise(&args),
        args::Command::Calibrate(args) => calibrate::calibrate(&args),
        args::Command::Doctor(args) => doctor::doctor(&args),
        args::Command::Recover(args) => recover::recover(&args),
        args::Command::Report(args) => report::report(&args),
        args::Command::Trace(args) => trace::trace(&args),
        args::Command::Explain(args) => explain::explain(&args),
        args::Command::Stat(args) => stat::stat(&args),
        args::Command::Top(args) => top::top(&args),
        args::Command::Manual(args) => manual::manual(&args),
        args::Command::Spin(args) => Ok(doctor::spin(args.threads, args.reader)),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
