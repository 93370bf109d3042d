//! `cosched doctor`: what this kernel, machine and user allow, and how to get more.
//!
//! cosched works without any right, and better with some. Which ones are there can hardly be told
//! from the outside, so [`Rights`] tries them all. This command says whether what is needed is
//! there, and which command gives what is missing. With `--all` it shows the capability level, each
//! ability, and what each policy does with it. With `--measure` it also freezes a program of its
//! own with every backend that is possible, and shows how long that takes.

mod barriers;
mod machine;
mod outlook;
mod show;

use std::process::ExitCode;

use clap::Args;
use cosched_lab::gaps::{self, Latency};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::rights::Rights;
use serde::Serialize;

use crate::session::{ByWeightReport, Session};
use crate::ui::failure::Failure;
use crate::ui::{Talk, print, print_json};
use barriers::BarrierReport;
use machine::MachineReport;
use outlook::Outlook;

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also measure how long pausing and continuing a program takes with each backend (takes some
    /// seconds).
    #[arg(long)]
    pub(crate) measure: bool,
    /// Show every ability, and what each policy does with it.
    #[arg(long)]
    all: bool,
    /// Print the findings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What cosched says to the program of its own.
#[derive(Debug, Args)]
pub(crate) struct SpinArgs {
    /// How many threads spin.
    pub(crate) threads: u16,
    /// The process that waits for what they note.
    pub(crate) reader: u32,
}

const SCHEMA: &str = "cosched-doctor/2";

#[derive(Debug, Serialize)]
struct DoctorReport {
    schema: &'static str,
    #[serde(flatten)]
    rights: Rights,
    turns_by_weight: ByWeightReport,
    machine: MachineReport,
    policies: Vec<Outlook>,
    barriers: BarrierReport,
    /// `null` unless it was asked for.
    gaps: Option<Vec<Latency>>,
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let session = Session::here()?;
    let proc = Proc::own().map_err(Failure::input)?;
    let rights = Rights::probe(&proc, &Sys::default()).map_err(Failure::broken)?;
    if args.measure {
        session.tell_if_busy(Talk::Usual);
    }
    let gaps = match args.measure.then(|| gaps::measure(&session, &rights)).transpose() {
        Ok(gaps) => gaps,
        Err(stop) => return stop.code(),
    };
    let turns_by_weight = ByWeightReport::new(&proc, &rights).map_err(Failure::broken)?;
    let report = DoctorReport {
        schema: SCHEMA,
        machine: MachineReport::new(&session),
        policies: outlook::all(&rights, turns_by_weight.available),
        turns_by_weight,
        barriers: BarrierReport::new(&proc),
        rights,
        gaps,
    };
    match args.json {
        true => print_json(&serde_json::to_string_pretty(&report).map_err(Failure::broken)?)?,
        false if args.all => print(&show::everything(&report))?,
        false => print(&show::text(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}
