//! `cosched attach`: a policy for processes that run already, until they end or the user has seen
//! enough.
//!
//! The processes get their original settings back, and are never ended. They can only have policies
//! that freeze no process and move no process.

use std::process::ExitCode;

use clap::Args;
use cosched_core::Profile;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::{Process, Tree};
use cosched_linux::safety::attachable::attachable;
use cosched_linux::safety::undo::Held;
use cosched_policy::reasons::SharedReason;
use cosched_report::{explain, words};
use cosched_results::result::{DecisionResult, RunResult};
use cosched_workload::{Workload, must_be_escaped};

use crate::args::BarrierArgs;
use crate::args::in_place::InPlaceArgs;
use crate::args::pid;
use crate::how::check::useless;
use crate::session::{Origins, Request, Session};
use crate::table::{self, AfterTable};
use crate::ui::failure::{Failure, exit_code};
use crate::ui::{print, print_json};

/// What to attach to.
#[derive(Debug, Args)]
#[command(mut_arg("barrier", |barrier| barrier.hide(true)))]
#[command(mut_arg("relearn", |relearn| relearn.hide(true)))]
pub(crate) struct AttachArgs {
    /// Running processes; their descendants are included.
    #[arg(value_name = "PID", required = true, allow_negative_numbers = true, value_parser = pid)]
    pids: Vec<i32>,
    #[command(flatten)]
    place: InPlaceArgs,
    /// Refused: programs that run already have their barriers.
    #[command(flatten)]
    waiting: BarrierArgs,
    /// Print run.json on standard output at the end instead of the table.
    #[arg(long)]
    json: bool,
}

/// Attaches until the processes have ended or the user ends it.
pub(crate) fn attach(args: &AttachArgs) -> Result<ExitCode, Failure> {
    let how = args.place.how("attach to programs")?;
    // It knows no program from earlier, and keeps nothing for later.
    let refused = [("relearn", how.measure.relearn), ("barrier", args.waiting.barrier.is_some())];
    if let Some((option, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        return Err(useless("attach", option));
    }
    let proc = Proc::own().map_err(Failure::input)?;
    let held = Held::anywhere(&proc).map_err(Failure::input)?;
    let processes = attachable(&proc, &args.pids, &held)
        .map_err(|(pid, why)| Failure::Input(format!("process {pid}: {why}")))?;
    let workload = workload(&processes, &proc)?;
    let session = Session::here()?;
    let profiles = vec![Profile::default(); processes.len()];
    let request = Request {
        out: args.place.out.as_deref(),
        stdout_is_taken: args.json,
        origins: Origins::Running(&processes),
        ..Request::new(&workload, args.place.policy, &how, &profiles)
    };
    let live = session.open_live(&request, args.place.metrics.as_ref())?;
    let ran = session.show(&request, live)?;
    match args.json {
        true => print_json(&ran.result.to_json())?,
        false => {
            let after = AfterTable { next: vec![changes(&ran.result)], ..AfterTable::default() };
            print(&table::run(&ran.result, &after))?;
        }
    }
    // How processes end that are not ours is their affair. A detached one has not.
    let all_ended = !(0..ran.result.programs.len()).any(|slot| ran.result.was_detached(slot));
    Ok(exit_code(ran.ended, ran.report_troubles() && all_ended))
}

/// What was done to the processes. What could not be restored is
/// reported separately.
fn changes(result: &RunResult) -> String {
    let kept: Vec<bool> =
        (0..result.programs.len()).map(|slot| explain::why_unset(result, slot).is_some()).collect();
    let changes = |decision: &&DecisionResult| {
        decision.reasons.iter().any(|reason| {
            let is_kept = reason.program.is_some_and(|program| kept[usize::from(program.slot)]);
            !is_kept && reason.why.read() != Some(SharedReason::LeftToKernel)
        })
    };
    match result.decisions.iter().filter(changes).count() {
        0 if kept.contains(&true) => {
            format!("Nothing was changed. {}", explain::unset(result).join(" "))
        }
        0 => "Nothing was changed: the policy saw no reason.".to_owned(),
        times => format!(
            "The policy decided {} how threads run; every setting is restored.",
            words::count(times, "time", "times")
        ),
    }
}

/// The processes as the programs of a workload.
fn workload(processes: &[Process], proc: &Proc) -> Result<Workload, Failure> {
    let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let name = |process: &Process| {
        // It has to be fit for a file name and a terminal, and a process chooses it freely.
        let name = proc.name(process.pid).unwrap_or_default();
        format!("{}-{}", name.replace(|c| c == '/' || must_be_escaped(c), "_"), process.pid)
    };
    let commands = processes.iter().map(|process| {
        let words = proc.command_line(process.pid).unwrap_or_default();
        if words.is_empty() { vec![name(process)] } else { words }
    });
    let mut workload =
        Workload::from_commands(commands.collect(), &here).map_err(Failure::input)?;
    for (spec, process) in workload.programs.iter_mut().zip(processes) {
        let tree = Tree { main: Some(*process), ..Tree::default() };
        let members = tree.members(proc).into_iter();
        let threads: usize =
            members.map(|process| proc.threads(process.pid).map_or(0, |tids| tids.len())).sum();
        spec.name = name(process);
        spec.threads = Some(u16::try_from(threads.max(1)).unwrap_or(u16::MAX));
    }
    Ok(workload)
}
