//! `cosched sim`: a workload under a policy, on a machine that is not there.
//!
//! Each program runs alone first, so that slowdowns are known; then all together. The result is the
//! same document and the same table as of a run on a real machine. With `--sweep`, many such
//! runs give one table; with `--from`, the workload is a recorded run.

mod calibrate;
mod check;
mod compared;
mod measure;
pub mod options;
mod pace;
mod params;
mod replay;
mod simulator;
mod slowdowns;
mod sweep;
mod this;
mod watch;

use std::process::ExitCode;

use cosched_workload::Workload;

use crate::how::check::without_malleable;
use crate::out;
use crate::session::Session;
use crate::table::{self, AfterTable};
use crate::ui::failure::{Failure, both, exit_code};
use crate::ui::{print, print_json, say};
pub use calibrate::calibrate;
pub use check::check;
pub use compared::Simulated;
pub use measure::measure;
pub(crate) use measure::{Stream, bytes_of_thread, memory_of_streams, memory_peak, streams};
use options::RunOptions;
pub use pace::MOST_EVENTS;
pub use params::params;
use simulator::{PreparedPrograms, Scene, Simulator, tell_unscaled};
pub use simulator::{SEED, machine};
pub use slowdowns::slowdowns;
pub use this::THIS;

/// Simulates the workload, and shows what came of it.
///
/// # Errors
/// When the options do not fit, or something breaks on the way.
pub fn simulate(args: &RunOptions) -> Result<ExitCode, Failure> {
    if let Some(run) = &args.from {
        return replay::replay(run, args);
    }
    if !args.sweep.is_empty() {
        return sweep::sweep(args);
    }
    let scene = Scene::of(args, "")?;
    let used = scene.how.check_use(&[scene.policy]);
    let ready = Simulator::with_workload(&scene, args).and_then(|(simulator, workload)| {
        let prepared = simulator.prepare(&workload)?;
        Ok((simulator, workload, prepared))
    });
    let (_, (mut simulator, workload, prepared)) = both(used, ready)?;
    simulator.pace.most_events = args.max_events;
    let PreparedPrograms { jobs, mut profiles } = prepared;
    let request = simulator.request(&workload, scene.policy, &profiles);
    let foreign = Session::foreign_table(&simulator.hardware.name, &request);
    let is_malleable = jobs.iter().any(|job| job.model.is_malleable());
    let notes = foreign.into_iter().chain(without_malleable(&[scene.policy], is_malleable));
    notes.for_each(|note| say(format_args!("{note}")));
    if args.no_solo {
        tell_unscaled(&workload, &[scene.policy]);
    }
    if let Some(folder) = &args.out {
        out::prepare(folder, &Workload { programs: Vec::new() })?;
    }
    if let Some(file) = &args.watch {
        watch::check(file)?;
    }
    let shown = simulator.pace.show();
    if !args.no_solo {
        for ((spec, job), profile) in workload.programs.iter().zip(&jobs).zip(&mut profiles) {
            simulator.alone(spec, job)?.note_in(profile);
        }
        simulator.scale(&workload, scene.policy, &mut profiles)?;
    }
    simulator.is_watched = args.watch.is_some();
    let (sim, outcome, result) = simulator.run(&workload, scene.policy, &jobs, &profiles)?;
    drop(shown);
    let saved = args.out.as_ref().map(|folder| result.save(&out::result(folder)));
    match args.json {
        true => print_json(&result.to_json())?,
        false => print(&table::run(&result, &AfterTable::default()))?,
    }
    // A disk that is full by now must not cost the result.
    if let Some(file) = &args.watch {
        watch::write(file, &sim, &result)?;
    }
    saved.transpose().map_err(Failure::broken)?;
    let succeeded = result.programs.iter().all(|program| program.exit_status == Some(0));
    Ok(exit_code(outcome.ended, succeeded))
}
