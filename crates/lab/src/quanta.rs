//! `cosched calibrate quanta`: a table of slices for this machine, made as the paper made table I.
//!
//! *Source.* The paper on faithful scheduling, section III-A: programs of each category, others
//! than those of the evaluation, were run with many time slices. Here: each training program with
//! each of several thread counts, under plain Linux and with each slice held fixed, interleaved.
//! How a table follows from that is told in `cosched_policy::derive`; for users in
//! docs/research/quanta.md.
//!
//! One run that does not count comes first for each program. It tells how much work makes a run as
//! long as asked.

mod live;
mod show;
mod trainees;

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use cosched_core::Nanos;
use cosched_core::engine::outcome::Ended;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::default_slice;
use cosched_linux::observe::monitor::Monitor;
use cosched_policy::{Quanta, derive};
use cosched_workload::{Workload, shown_path};

use crate::how::check::twice;
use crate::replace::{self, FileKind};
use crate::session::Session;
use crate::ui::failure::{Failure, exit_code};
use crate::ui::{print, say};
use live::Lab;
use show::Calibration;
use trainees::trainees;

/// What the file is to other commands.
const FILE: FileKind = FileKind {
    made_by: "cosched calibrate quanta",
    option: "--out",
    is_one: |beginning| beginning.starts_with(Quanta::BEGINNING.as_bytes()),
};

/// How to measure slices.
#[derive(Clone, Debug)]
pub struct QuantaOptions {
    /// The jobs file with the training programs.
    pub training: PathBuf,
    /// Parts of programs' names; only these are run. Empty: all are.
    pub only: Vec<String>,
    /// Threads per CPU, for programs without a thread count in the file.
    pub loads: Vec<u16>,
    /// The slices to try.
    pub slices: Vec<Nanos>,
    /// Runs of each program with each slice.
    pub runs: u16,
    /// How long each run should take, in seconds.
    pub seconds: f64,
    /// A file for the table.
    pub out: Option<PathBuf>,
    /// Whether JSON is printed instead of tables.
    pub json: bool,
}

/// Measures, derives, shows and writes the table.
///
/// # Errors
/// When the options do not fit, or something breaks on the way.
pub fn quanta(args: &QuantaOptions) -> Result<ExitCode, Failure> {
    if let Some(out) = &args.out {
        replace::check(out, FILE)?;
    }
    check_once("--slices", &args.slices)?;
    check_once("--loads", &args.loads)?;
    let kernel = default_slice().map_err(Failure::broken)?.ok_or_else(|| {
        Failure::Input(
            "nothing to calibrate: this kernel gives no slices to single threads; Linux 6.12 and \
             later do"
                .to_owned(),
        )
    })?;
    let workload = Workload::load(&args.training).map_err(|error| {
        Failure::Input(format!(
            "{error}. Training programs are not part of an installed package: in cosched's source \
             tree workloads/training.toml lists some, which `make kernels` builds; or name a jobs \
             file of your own programs, but not of those that the table is for"
        ))
    })?;
    let session = Session::here()?;
    let trainees = trainees(&workload, &args.only, &args.loads, session.usable.cpus.len());
    if trainees.is_empty() {
        return Err(Failure::Input(format!(
            "{}: --only matches no program; give a part of a program's name",
            shown_path(&args.training)
        )));
    }
    trainees.iter().try_for_each(|trainee| session.executable(&trainee.spec).map(drop))?;
    if let (_, Some(lack)) = Monitor::open(&Proc::own().map_err(Failure::input)?) {
        say(format_args!("lock times are estimated from samples of /proc: {lack}"));
    }
    say(format_args!(
        "{} training programs, {} slices and the kernel's own, {} rounds of {} s",
        trainees.len(),
        args.slices.len(),
        args.runs,
        args.seconds,
    ));
    let lab = Lab { session: &session, slices: &args.slices, seconds: args.seconds };
    let (trained, rounds, ended) = lab.train(trainees, args.runs)?;
    if rounds == 0 {
        say(format_args!("ended before a round was complete; nothing was written"));
        return Ok(exit_code(ended, true));
    }
    if trained.is_empty() {
        return Err(Failure::Broken(
            "every run was too short to measure; give more --seconds".to_owned(),
        ));
    }
    let programs: Vec<_> = trained.iter().map(|program| program.times.clone()).collect();
    let rows = derive(&programs, &args.slices, kernel)
        .ok_or_else(|| Failure::Broken("a program took no time at all".to_owned()))?;
    let calibration = Calibration {
        machine: &session.description,
        kernel,
        slices: &args.slices,
        rounds,
        interrupted: ended != Ended::Complete,
        programs: &trained,
        rows: &rows,
    };
    match args.json {
        true => print(&calibration.json()?)?,
        false => print(&calibration.table())?,
    }
    match &args.out {
        Some(out) if ended == Ended::Complete => {
            let made = format!(
                "{}; {} rounds of {} s",
                humantime::format_rfc3339_seconds(SystemTime::now()),
                rounds,
                args.seconds
            );
            let text = Quanta::file(&rows, &calibration.machine_in_words(), &made);
            replace::replace(out, text.as_bytes(), FILE)?;
            say(format_args!(
                "the table is in {}; use it with --policy faithful --quanta {0}",
                shown_path(out)
            ));
        }
        Some(out) => say(format_args!(
            "interrupted after {rounds} complete round(s): {} was not written",
            shown_path(out)
        )),
        None => {}
    }
    Ok(exit_code(ended, true))
}

fn check_once<T: PartialEq + Display>(option: &str, list: &[T]) -> Result<(), Failure> {
    match twice(list) {
        Some(one) => Err(Failure::Input(format!("{option}: {one} is there twice; name each once"))),
        None => Ok(()),
    }
}
