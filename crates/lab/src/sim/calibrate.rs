//! `cosched sim calibrate`: models of programs from what they do alone.
//!
//! The table of figures goes in, a workload file comes out, with every error that is left as a
//! comment beside its model. Programs are simulated alone, placed as asked; nothing that was
//! measured with co-runners is used. How a model is fitted: [`cosched_sim::model::fit`].

use std::path::Path;
use std::process::ExitCode;

use cosched_sim::model::fit::{FitError, Fitted, ModelRun, Residual, SoloTable, fit};
use cosched_sim::{Model, SimulatedJob};
use cosched_workload::input;
use cosched_workload::{Workload, shown_path, toml_mistake};
use serde::Serialize;

use super::options::MachineOptions;
use super::simulator::{Scene, Simulator};
use crate::ui::failure::Failure;
use crate::ui::{print, print_json};

const SCHEMA: &str = "cosched-sim-calibrate/2";

/// Where a table is described.
const HELP: &str = "`cosched sim calibrate --help` describes such a table";

/// Fits the programs of a table of figures, simulated alone on a machine, and prints them.
///
/// # Errors
/// When the table cannot be used, or something breaks on the way.
pub fn calibrate(table: &Path, on: &MachineOptions, json: bool) -> Result<ExitCode, Failure> {
    let file = shown_path(table);
    let text = input::text(table)
        .map_err(|error| Failure::Input(format!("{file}: cannot be read: {error}; {HELP}")))?;
    let table: SoloTable = toml::from_str(&text).map_err(|error| {
        Failure::Input(format!("{file}: {}; {HELP}", toml_mistake(&text, &error)))
    })?;
    if table.programs.is_empty() {
        return Err(Failure::Input(format!("{file}: there is no [[program]] to fit; {HELP}")));
    }
    let simulator = Simulator::new(&Scene::from(on))?;
    let cpus = simulator.session.topology.cpus().len() as u16;
    let alone = |model: &Model| {
        let command = vec![vec!["alone".to_owned()]];
        let mut workload =
            Workload::from_commands(command, "/".as_ref()).map_err(Failure::broken)?;
        workload.programs[0].threads = Some(model.threads);
        let job = SimulatedJob { model: model.clone(), weight: 1.0 };
        let outcome = simulator.alone(&workload.programs[0], &job)?;
        Ok(ModelRun { time: outcome.time, misses: outcome.usage.counts.llc_misses.unwrap_or(0) })
    };
    let refused = |error: &dyn std::fmt::Display| Failure::Input(format!("{file}: {error}"));
    let fitted = fit(&table, cpus, alone).map_err(|error| match error {
        FitError::Run(failure) => failure,
        FitError::Table(error) => refused(&error),
    })?;
    let machine = &simulator.hardware.name;
    let placement = on.placement;
    if json {
        let programs = fitted.iter().map(CalibratedProgram::of).collect::<Result<_, _>>()?;
        let placement = placement.to_string();
        let document =
            CalibrationDocument { schema: SCHEMA, table: file, machine, placement, programs };
        print_json(&serde_json::to_string_pretty(&document).map_err(Failure::broken)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let head = format!(
        "# Fitted by `cosched sim calibrate` to {file}, on {machine}, {placement}.\n\
         # One number of each model is fitted, and told with the errors that are left; \
         the others were given.\n"
    );
    print(fitted.iter().fold(head, |text, fitted| text + "\n" + &program(fitted)).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The workload file as JSON, with the errors that are comments there.
#[derive(Debug, Serialize)]
struct CalibrationDocument<'a> {
    schema: &'static str,
    table: String,
    machine: &'a str,
    placement: String,
    programs: Vec<CalibratedProgram<'a>>,
}

#[derive(Debug, Serialize)]
struct CalibratedProgram<'a> {
    name: &'a str,
    threads: u16,
    misses_per_kilo_instruction: f64,
    memory_gigabytes_per_second: f64,
    /// `null` where no figure is given.
    fitted: Option<FittedNumber>,
    residuals: &'a [Residual],
    model: toml::Table,
}

#[derive(Debug, Serialize)]
struct FittedNumber {
    key: &'static str,
    value: f64,
}

impl CalibratedProgram<'_> {
    fn of(fitted: &Fitted) -> Result<CalibratedProgram<'_>, Failure> {
        let known = &fitted.known;
        Ok(CalibratedProgram {
            name: &known.name,
            threads: known.threads,
            misses_per_kilo_instruction: known.misses_per_kilo_instruction,
            memory_gigabytes_per_second: fitted.gigabytes_per_second,
            fitted: fitted.free.map(|(free, value)| FittedNumber { key: free.key(), value }),
            residuals: &fitted.residuals,
            model: toml::from_str(&fitted.model).map_err(Failure::broken)?,
        })
    }
}

/// A program of the workload file.
fn program(fitted: &Fitted) -> String {
    let known = &fitted.known;
    let free = fitted.free.map(|(free, value)| format!("# fitted: {} = {value:.4}\n", free.key()));
    let residuals = fitted.residuals.iter().map(|residual| {
        let error = 100.0 * (residual.found / residual.target - 1.0);
        let (what, target, found) = (&residual.what, residual.target, residual.found);
        format!("# {what}: {found:.2} for {target:.2} ({error:+.1} %)\n")
    });
    let comments: String = free.into_iter().chain(residuals).collect();
    let model = fitted.model.replace("[[phase]]", "[[program.model.phase]]");
    format!(
        "{comments}[[program]]\ncommand = {:?}\nthreads = {}\nmisses_per_kilo_instruction = {:?}\n\
         memory_gigabytes_per_second = {:.4}\n\
         repeat = \"until-all-finish\"\n\n[program.model]\n{model}",
        known.name, known.threads, known.misses_per_kilo_instruction, fitted.gigabytes_per_second,
    )
}
