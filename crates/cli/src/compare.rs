//! `cosched compare`: the same programs under several policies, one table.

use std::path::PathBuf;
use std::process::ExitCode;

use cosched_core::engine::outcome::Ended;
use cosched_core::result::RunResult;
use cosched_policy::Kind;

use crate::args::CompareArgs;
use crate::failure::{Failure, exit_code};
use crate::session::{Request, Session, print, say};
use crate::store::Store;
use crate::{profile, source, table};

/// Runs the workload under each policy, in the order given.
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let workload = source::workload(&args.source)?;
    let session = Session::here()?;
    let mut store = if args.solo { Some(Store::open()?) } else { Store::open_if_there()? };
    if let (true, Some(store)) = (args.solo, &mut store) {
        let ended = profile::measure_unknown(&session, &workload, &args.how, store)?;
        if ended != Ended::Complete {
            return Ok(exit_code(ended, false));
        }
    }
    // Many outputs of the same programs would bury the table.
    let hidden = tempfile::tempdir().map_err(Failure::broken)?;
    let folder = args.out.as_deref().unwrap_or(hidden.path());
    let folders: Vec<PathBuf> =
        (0..args.policies.len()).map(|i| folder.join(folder_name(&args.policies, i))).collect();
    let requests: Vec<Request<'_>> = args
        .policies
        .iter()
        .zip(&folders)
        .map(|(kind, folder)| Request {
            workload: &workload,
            kind: *kind,
            how: &args.how,
            out: Some(folder),
            stdout_is_taken: true,
            store: store.as_ref(),
            count: false,
        })
        .collect();
    // What is wrong with the last one is said before the first one runs.
    for request in &requests {
        session.check(request)?;
    }
    let mut results: Vec<RunResult> = Vec::new();
    let (mut ended, mut all_succeeded) = (Ended::Complete, true);
    for (i, request) in requests.iter().enumerate() {
        say(format_args!("{} ({} of {})", request.kind, i + 1, requests.len()));
        let ran = session.execute(request)?;
        ended = ran.ended;
        all_succeeded &= ran.all_succeeded();
        results.push(ran.result);
        if ended != Ended::Complete {
            break;
        }
    }
    match args.json {
        true => print(&serde_json::to_string_pretty(&results).map_err(Failure::broken)?)?,
        false => print(&table::comparison(&results))?,
    }
    Ok(exit_code(ended, all_succeeded))
}

/// The policy's name, told apart when a policy is asked for more than once.
fn folder_name(policies: &[Kind], i: usize) -> String {
    match policies[..i].iter().filter(|kind| **kind == policies[i]).count() {
        0 => policies[i].to_string(),
        earlier => format!("{}-{}", policies[i], earlier + 1),
    }
}
