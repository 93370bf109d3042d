//! `cosched run`: programs together, under one policy.

mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cosched_core::Exit;
use cosched_policy::Kind;
use cosched_report::{disturbance, words};
use cosched_results::result::RunResult;
use cosched_workload::{shell, shown_path};

use crate::args::choices;
use crate::args::{GivenWords, HowArgs, SourceArgs, ThreadsArgs, named};
use crate::live::MetricsAt;
use crate::out;
use crate::session::{Extras, Request, Session, enter_scope};
use crate::source::{self, Needs, Runs};
use crate::store::Store;
use crate::table::{self, AfterTable};
use crate::ui::failure::{Failure, both, exit_code};
use crate::ui::{Talk, print, print_json, say};
use terminal::TerminalArgs;

/// What to run, and how.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The policy, which decides what runs when.
    #[arg(long, short, default_value = Kind::default().name(), value_parser = choices::policy())]
    pub(crate) policy: Kind,
    #[command(flatten)]
    pub(crate) given: GivenWords,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// A folder for run.json and the programs' outputs; made if it does not exist.
    ///
    /// No file in it is overwritten.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the files of an earlier run, also of a killed one, in the folder of --out. A folder
    /// that holds anything else, or outputs that programs still write, is refused, and nothing is
    /// removed. Files that the keys `stdout` and `stderr` name are never replaced.
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
    #[command(flatten)]
    pub(crate) terminal: TerminalArgs,
    /// Print run.json on standard output instead of the table.
    ///
    /// The programs' outputs then go to standard error.
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve metrics during the run (OpenMetrics over HTTP, /metrics) at 127.0.0.1:PORT or
    /// unix:PATH.
    #[arg(long, value_name = "WHERE", value_parser = named::<MetricsAt>)]
    pub(crate) metrics: Option<MetricsAt>,
}

impl RunArgs {
    pub(crate) fn prints_result(&self) -> bool {
        self.json || self.terminal.talk() > Talk::Quiet
    }
}

/// A longer command than this is too long to paste.
const LONGEST_COMMAND: usize = 1000;

/// Runs the workload once and shows what came of it.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let how = args.how.how();
    let used = both(how.check_no_constants("run"), how.check_use(&[args.policy]));
    let out = args.out.as_deref();
    let in_order = args.policy.starts_in_order();
    let runs = Runs { together: true, in_order, redirects: true, out, ..Runs::default() };
    let workload =
        source::with_threads(&args.source.source(), args.threads.threads, Needs::Runs(runs));
    let (_, workload) = both(used, workload)?;
    let talk = args.terminal.talk();
    let labels = args.terminal.labels(workload.programs.len(), args.out.is_some(), args.json)?;
    enter_scope([(args.policy, &how)], talk);
    let session = Session::here()?;
    let store = Store::open_if_there();
    let profiles = session.profiles(&workload, &how, store.as_ref());
    let spin_loops = store.as_ref().map(Store::spin_loops).unwrap_or_default();
    let request = Request {
        spin_loops: &spin_loops,
        out,
        stdout_is_taken: args.json,
        redirects: true,
        extras: Extras { talk, labels, force: args.force, ..Extras::default() },
        ..Request::new(&workload, args.policy, &how, &profiles)
    };
    if session.fits(&request).is_ok() {
        session.tell_if_crowded(&workload, talk);
    }
    let live = session.open_live(&request, args.metrics.as_ref())?;
    let ran = session.show(&request, live)?;
    session.learn(&request, &ran);
    match args.json {
        true => print_json(&ran.result.to_json())?,
        false if talk == Talk::Quiet => {}
        false => {
            let means = talk == Talk::Verbose;
            let after = AfterTable { next: closing(args, &ran.result), means };
            print(&table::run(&ran.result, &after))?;
        }
    }
    let said = request.said_by_failed(&ran.result);
    let files: Vec<String> = said.iter().map(|file| shown_path(file)).collect();
    if !files.is_empty() {
        say(format_args!("the failed programs' error outputs are in {}", words::list(&files)));
    }
    let untroubled = ran.report_troubles();
    Ok(exit_code(ran.ended, untroubled && ran.all_succeeded()))
}

/// Where the outputs are, and what to type next: the last lines.
fn closing(args: &RunArgs, result: &RunResult) -> Vec<String> {
    // On a full disk there is no run.json, and nothing that explains the run.
    let saved = args.out.as_ref().filter(|out| out::result(out).exists());
    let folder = saved.map(|out| shell::quote(&out.to_string_lossy()));
    let outputs = folder.as_ref().map(|folder| format!("Outputs and run.json are in {folder}."));
    outputs.into_iter().chain(next(args, result, folder)).collect()
}

/// What to type next, each on a line of its own; none: nothing would say more.
fn next(args: &RunArgs, result: &RunResult, folder: Option<String>) -> Vec<String> {
    let succeeded = result.programs.iter().all(|program| program.exit == Some(Exit::Code(0)));
    if !succeeded || result.interrupted_by.is_some() {
        return Vec::new();
    }
    let explain =
        folder.map(|folder| format!("`cosched explain {folder}` says what was decided and why"));
    // Under plain Linux nothing was done, and an input that was read cannot be read again.
    let can_compare = args.policy != Kind::Linux && !args.source.source().is_piped();
    let compare = (result.programs.len() > 1 && can_compare).then(|| {
        let command = compare_command(args);
        let command = if command.len() <= LONGEST_COMMAND { &command } else { "cosched compare" };
        format!("`{command}` measures whether it helped")
    });
    let again = disturbance::is_disturbed(result).then(|| {
        "run it again when the machine is idle (the system's `top` shows what uses CPUs)".to_owned()
    });
    let all: Vec<String> = again.into_iter().chain(explain).chain(compare).collect();
    match &all[..] {
        [] => Vec::new(),
        [one] => vec![format!("Next: {one}.")],
        several => {
            let steps = several.iter().map(|step| format!("  {step}"));
            std::iter::once("Next:".to_owned()).chain(steps).collect()
        }
    }
}

/// The command that compares this policy, with the options given, with what users do without it.
fn compare_command(args: &RunArgs) -> String {
    source::compare_command(&args.source.source(), args.policy, args.threads.threads, &args.given.0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::compare_command;
    use crate::commands::{Cli, Command};

    fn hint(arguments: &[&str]) -> String {
        let arguments = ["cosched", "run"].iter().chain(arguments);
        match Cli::parse_from(arguments).command {
            Command::Run(args) => compare_command(&args),
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn the_command_to_compare_the_same_programs_is_understood() {
        for (arguments, expected) in [
            (&["my jobs.toml", "--out", "x"] as &[_], "cosched compare 'my jobs.toml'"),
            (&["--threads", "2", "--", "a"], "cosched compare --threads 2 -- a"),
            (
                &["--policy", "gang", "--", "a", "b  c", ":::", "d"],
                "cosched compare --policies linux,fcfs,gang -- a 'b  c' ::: d",
            ),
            (
                &["--prog", "a 'b c'", "--prog", "d"],
                "cosched compare --prog 'a '\\''b c'\\''' --prog d",
            ),
        ] {
            let hint = hint(arguments);
            assert_eq!(hint, expected);
            let words = shell_words::split(&hint).unwrap();
            assert!(Cli::try_parse_from(words).is_ok(), "{hint}");
        }
    }

    #[test]
    fn the_command_to_compare_is_typed_on_one_line() {
        let arguments = ["--", "sh", "-c", "a\nb", ":::", "\u{1b}[2J"];
        assert_eq!(hint(&arguments), "cosched compare -- sh -c $'a\\nb' ::: $'\\033[2J'");
    }

    #[test]
    fn the_command_to_compare_has_the_options_that_were_given() {
        for (arguments, expected) in [
            ("--goal throughput -- a", "cosched compare --goal throughput -- a"),
            (
                "--turns freeze --json --quantum 20ms --grace 1s -- a",
                "cosched compare --quantum 20ms --turns freeze --grace 1s -- a",
            ),
            (
                "-p greedy --fill --barrier donate --freezer signals --threads 2 -- a",
                "cosched compare --threads 2 --policies linux,fcfs,greedy --fill --barrier donate \
                 --freezer signals -- a",
            ),
            (
                "-p faithful --actuators none,batch --no-guard -- a",
                "cosched compare --policies linux,fcfs,faithful --actuators none,batch \
                 --no-guard -- a",
            ),
        ] {
            let hint = hint(&arguments.split(' ').collect::<Vec<_>>());
            assert_eq!(hint, expected);
            assert!(Cli::try_parse_from(hint.split(' ')).is_ok(), "{hint}");
        }
    }
}
