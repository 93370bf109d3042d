//! `cosched run`: programs together, under one policy.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cosched_core::workload::shown_path;
use cosched_policy::Kind;
use cosched_report::words;

use crate::args::{HowArgs, SourceArgs, named};
use crate::choices;
use crate::failure::{Failure, exit_code};
use crate::live::{Live, MetricsAt};
use crate::session::{Origins, Request, Session, enter_scope, print, say};
use crate::store::Store;
use crate::{out, source, table};

/// What to run, and how.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The policy, which decides what runs when.
    #[arg(long, short, default_value = Kind::default().name(), value_parser = choices::policy())]
    pub(crate) policy: Kind,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// A folder for run.json and the programs' outputs; made if it does not exist.
    ///
    /// No file in it is overwritten.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
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

/// Runs the workload once and shows what came of it.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    args.how.check_use(&[args.policy])?;
    let workload = source::workload(&args.source)?;
    enter_scope([(args.policy, &args.how)]);
    let session = Session::here()?;
    let store = Store::open_if_there();
    let profiles = session.profiles(&workload, &args.how, store.as_ref());
    let request = Request {
        workload: &workload,
        kind: args.policy,
        how: &args.how,
        out: args.out.as_deref(),
        stdout_is_taken: args.json,
        profiles: &profiles,
        count: false,
        origins: Origins::Started,
    };
    let live = Live::open(&session, &request, args.metrics.as_ref())?;
    let ran = session.show(&request, live)?;
    session.learn(&request, &ran.result);
    match args.json {
        true => print(&ran.result.to_json())?,
        false => {
            let profile = source::profile_command(&args.source, &args.how);
            print(&table::run(&ran.result, Some(&profile)))?;
        }
    }
    let said = args.out.iter().flat_map(|out| out::said_by_failed(out, &ran.result));
    let files: Vec<String> = said.map(|file| shown_path(&file)).collect();
    if !files.is_empty() {
        say(format_args!("what those that failed have said stands in {}", words::list(&files)));
    }
    let untroubled = ran.report_troubles();
    Ok(exit_code(ran.ended, untroubled && ran.all_succeeded()))
}
