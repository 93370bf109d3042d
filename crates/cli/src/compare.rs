//! `cosched compare`: the same programs in several ways, several times, in one table.

use std::process::ExitCode;

use cosched_policy::Kind;

use crate::args::CompareArgs;
use crate::experiment::{Comparison, Experiment, Plan};
use crate::failure::{Failure, exit_code};
use crate::session::{Session, print, say};
use crate::source;
use crate::store::Store;

/// Runs the workload in each way, as often as asked.
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let ways = &args.policies;
    if let Some((_, way)) = ways.iter().enumerate().find(|(i, way)| ways[..*i].contains(way)) {
        let refusal =
            format!("--policies: '{way}' is there twice; name each way once, and use --runs");
        return Err(Failure::Input(refusal));
    }
    let kinds: Vec<Kind> = args.policies.iter().map(|way| way.kind()).collect();
    args.how.check_use(&kinds)?;
    let workload = source::workload(&args.source)?;
    let session = Session::here()?;
    let store = if args.solo { Store::open().map(Some) } else { Store::open_if_there() };
    let store = store.map_err(Failure::input)?;
    let plan = Plan {
        workload: &workload,
        ways: &args.policies,
        how: &args.how,
        rounds: args.runs,
        out: args.out.as_deref(),
        solo: args.solo,
    };
    let experiment = Experiment::run(&session, &plan, store)?;
    match Comparison::of(&experiment, &args.policies, &session.description, args.runs) {
        None => {
            say(format_args!("ended before every way had run once: there is nothing to compare"))
        }
        Some(comparison) if args.json => {
            print(&serde_json::to_string_pretty(&comparison).map_err(Failure::broken)?)?;
        }
        Some(comparison) => print(&comparison.show())?,
    }
    Ok(exit_code(experiment.ended, experiment.all_succeeded))
}
