//! `cosched run`: programs together, under one policy.

use std::process::ExitCode;

use cosched_linux::cpu_time::Roots;

use crate::args::RunArgs;
use crate::failure::{Failure, exit_code};
use crate::live::Live;
use crate::session::{Origins, Request, Session, print};
use crate::store::Store;
use crate::{source, table};

/// Runs the workload once and shows what came of it.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    args.how.check_use(&[args.policy])?;
    let workload = source::workload(&args.source)?;
    let session = Session::here()?;
    let store = Store::open_if_there().map_err(Failure::input)?;
    let profiles = session.profiles(&workload, &args.how, store.as_ref())?;
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
    let roots = Roots::new(workload.programs.len());
    let mut live = Live::open(&session, &request, args.metrics.as_ref(), roots.clone())?;
    let ran = session.show(&request, &mut live, roots)?;
    drop(live);
    match args.json {
        true => print(&ran.result.to_json())?,
        false => {
            let profile = source::profile_command(&args.source, &args.how);
            print(&table::run(&ran.result, Some(&profile)))?;
        }
    }
    let untroubled = ran.report_troubles();
    Ok(exit_code(ran.ended, untroubled && ran.all_succeeded()))
}
