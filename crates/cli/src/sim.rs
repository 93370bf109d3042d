//! `cosched sim`: a workload under a policy, on a machine that is not there.
//!
//! Each program runs alone first, so that slowdowns are known; then all together. The result is the same document
//! and the same table as of a run on a real machine.

mod calibrate;
mod slowdowns;

use std::path::Path;
use std::process::ExitCode;

use cosched_core::engine::Engine;
use cosched_core::engine::outcome::{Ended, Outcome};
use cosched_core::result::{MachineDescription, NONE, RunResult, Rungs};
use cosched_core::workload::{ProgramSpec, Repeat, Workload};
use cosched_core::{Nanos, Profile};
use cosched_policy::Kind;
use cosched_sim::{Costs, Hardware, Job, Kernel, Model, Sim};

use crate::args::{HowArgs, SimArgs, SimCommand, SimMachineArgs, SimRunArgs};
use crate::failure::{Failure, exit_code};
use crate::session::{Request, Session, print};
use crate::{out, source, table};

/// What stands in the place of a date: the simulated machine's time begins with the run.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// Simulates, or whatever else was asked for.
pub(crate) fn sim(args: &SimArgs) -> Result<ExitCode, Failure> {
    match (&args.command, args.run.policy, &args.run.machine) {
        (Some(SimCommand::Calibrate(args)), ..) => calibrate::calibrate(args),
        (Some(SimCommand::Slowdowns(args)), ..) => slowdowns::slowdowns(args),
        (None, Some(policy), Some(machine)) => simulate(&args.run, policy, machine),
        (None, ..) => {
            Err(Failure::Input("nothing to simulate: `cosched sim --help` tells how".to_owned()))
        }
    }
}

/// Simulates the workload, and shows what came of it.
fn simulate(args: &SimRunArgs, policy: Kind, machine: &str) -> Result<ExitCode, Failure> {
    args.how.check_use(&[policy])?;
    let workload = source::workload(&args.source)?;
    let hardware = hardware(machine)?;
    let kernel = Kernel { groups: policy == Kind::LinuxGroups, ..args.kernel };
    let session = session(&hardware);
    let simulator =
        Simulator { session: &session, hardware, kernel, how: &args.how, seed: args.seed };
    let jobs = simulator.jobs(&workload)?;
    let mut profiles = session.profiles(&workload, &args.how, None)?;
    // What would be refused with the times alone is refused before they are found.
    session.plan(&simulator.request(&workload, policy, &profiles))?;
    if let Some(folder) = &args.out {
        out::prepare(folder, &Workload { programs: Vec::new() })?;
    }
    for ((spec, job), profile) in workload.programs.iter().zip(&jobs).zip(&mut profiles) {
        profile.solo = (!args.no_solo).then(|| simulator.alone(spec, job)).transpose()?;
    }
    let (outcome, result) = simulator.run(&workload, policy, &jobs, &profiles)?;
    if let Some(folder) = &args.out {
        result.save(&out::result(folder)).map_err(Failure::broken)?;
    }
    match args.json {
        true => print(&result.to_json())?,
        false => print(&table::run(&result, ""))?,
    }
    let succeeded = result.programs.iter().all(|program| program.exit_status == Some(0));
    Ok(exit_code(outcome.ended, succeeded))
}

/// The machine as what runs programs.
fn session(hardware: &Hardware) -> Session {
    let description = MachineDescription {
        cpus: hardware.topology.cpus().len(),
        model: Some(hardware.name.clone()),
        kernel: "simulated".to_owned(),
    };
    Session::of(hardware.topology.clone(), description)
}

/// A machine that comes along, by name, or a file's, by its path.
fn hardware(machine: &str) -> Result<Hardware, Failure> {
    match machine.contains('/') || machine.ends_with(".toml") {
        true => Hardware::load(Path::new(machine)).map_err(Failure::input),
        false => Hardware::named(machine).map_err(Failure::input),
    }
}

struct Simulator<'a> {
    session: &'a Session,
    hardware: Hardware,
    kernel: Kernel,
    how: &'a HowArgs,
    seed: u64,
}

impl<'a> Simulator<'a> {
    /// A machine on which programs are to be simulated alone, or together without turns.
    fn of(args: &'a SimMachineArgs, session: &'a Session, hardware: Hardware) -> Simulator<'a> {
        Simulator { session, hardware, kernel: args.kernel, how: &args.how, seed: args.seed }
    }

    fn request<'r>(
        &'r self,
        workload: &'r Workload,
        kind: Kind,
        profiles: &'r [Profile],
    ) -> Request<'r> {
        Request {
            workload,
            kind,
            how: self.how,
            out: None,
            stdout_is_taken: true,
            profiles,
            count: false,
        }
    }

    /// What each program does.
    fn jobs(&self, workload: &Workload) -> Result<Vec<Job>, Failure> {
        let job = |spec: &ProgramSpec| {
            let place = &spec.places.command;
            let table = spec.model.as_ref().ok_or_else(|| {
                Failure::Input(format!(
                    "{place}: there is no [program.model], which tells the simulator what the program does; \
                     docs/simulator.md describes it"
                ))
            })?;
            let model = Model::read(table, self.session.threads(spec)).map_err(|error| {
                Failure::Input(format!("{place}: model: {}", error.to_string().trim_end()))
            })?;
            Ok(Job { model, weight: 1.0 })
        };
        workload.programs.iter().map(job).collect()
    }

    /// How long one run of a program takes alone, placed as beside others.
    fn alone(&self, spec: &ProgramSpec, job: &Job) -> Result<Nanos, Failure> {
        let fits = usize::from(job.model.threads) <= self.hardware.topology.cpus().len();
        let kind = if fits { Kind::Gang } else { Kind::Linux };
        let once = ProgramSpec {
            start: Nanos::ZERO,
            repeat: Repeat::Times(1),
            group: None,
            ..spec.clone()
        };
        let workload = Workload { programs: vec![once] };
        let (outcome, _) =
            self.run(&workload, kind, std::slice::from_ref(job), &[Profile::default()])?;
        outcome.programs[0].done.ok_or_else(|| {
            Failure::Broken(format!("{} did not end alone on the simulated machine", spec.name))
        })
    }

    fn run(
        &self,
        workload: &Workload,
        kind: Kind,
        jobs: &[Job],
        profiles: &[Profile],
    ) -> Result<(Outcome, RunResult), Failure> {
        let request = self.request(workload, kind, profiles);
        let planned = self.session.plan(&request)?;
        let setup = self.session.setup(&request, &planned.threads);
        let sim =
            Sim::new(self.hardware.clone(), self.kernel, jobs.to_vec(), Costs::MEASURED, self.seed);
        let (_, outcome) = Engine::new(sim, planned.policy, setup).run(&mut ());
        let outcome = outcome.map_err(Failure::broken)?;
        debug_assert_eq!(outcome.ended, Ended::Complete, "nobody can interrupt a simulation");
        let how = if kind.makes_gangs() { "simulated" } else { NONE };
        let rungs = Rungs { freezing: how.to_owned(), pinning: how.to_owned() };
        let context =
            self.session.context(&request, &planned.threads, EPOCH.to_owned(), rungs, 0.0);
        let result = RunResult::new(&outcome, &context);
        Ok((outcome, result))
    }
}
