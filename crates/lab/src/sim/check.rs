//! `cosched sim check`: the same small workloads here and in the model of this machine, and how far
//! the two are apart.
//!
//! The model of a machine is worth something only as far as it was held against one. So the kernels
//! of `workloads/` run here, in [mixtures](suite) under several policies, and the simulator runs
//! [models](program) of the same kernels on the machine that `cosched sim measure` has described.
//! What a model is made with comes from runs of the kernels alone with other parameters
//! ([constants]): nothing is fitted to what is predicted.
//!
//! Everything is interleaved: a round is each calibrating program alone, each checked program
//! alone, and each mixture under each policy, once. Medians over the rounds are compared with
//! medians over as many seeds.

mod constants;
mod live;
mod program;
mod report;
mod suite;

use std::path::Path;
use std::process::ExitCode;

use cosched_core::engine::outcome::Ended;
use cosched_core::{Nanos, Profile};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::signals;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::rights::{Ability, Rights};
use cosched_policy::Kind;
use cosched_sim::{Hardware, Kernel, SimulatedJob};
use cosched_workload::Workload;

use super::options::CheckOptions;
use super::simulator::{Scene, Simulator};
use super::this;
use crate::how::How;
use crate::session::Session;
use crate::stop::MeasuringStop;
use crate::ui::failure::{self, Failure, exit_code};
use crate::ui::{print, print_json, say};
use constants::{ConstantRuns, Constants};
use live::LiveRuns;
use program::KernelRun;
use report::{CheckReport, ComparedFigures, FigureSamples, SoloError};
use suite::Mixture;

/// The policies that are compared. The other policies differ from these only in which programs
/// run together.
const POLICIES: [Kind; 6] =
    [Kind::Linux, Kind::LinuxGroups, Kind::Fcfs, Kind::Gang, Kind::Minwait, Kind::Turns];
/// How many seeds the simulator gets at least: where chance decides, the median of a few is a
/// chance itself.
const FEWEST_SEEDS: u16 = 25;
/// How much of the calibrating runs `--quick` makes.
const QUICK: f64 = 0.05;

/// Runs everything on both machines, and shows how far they are apart.
///
/// # Errors
/// When the options do not fit, or something breaks on the way.
pub fn check(args: &CheckOptions) -> Result<ExitCode, Failure> {
    let how = &args.how;
    let policies = policies()?;
    failure::all([
        how.check_own_barriers("sim check"),
        how.check_no_constants("sim check"),
        how.check_use(&policies),
    ])?;
    let here = Session::here()?;
    let hardware = this::hardware(&here, args.machine.as_deref())?;
    let cpus = here.usable.cpus.len() as u16;
    let mixtures = chosen(args, cpus)?;
    let folder = kernels(&args.kernels, &mixtures)?;
    let rounds = if args.quick { 1 } else { args.runs };
    let runs = ConstantRuns::new(cpus, if args.quick { QUICK } else { 1.0 });

    let mut live = LiveRuns::new(&here, how, &folder, runs, &mixtures, &policies);
    let ended = MeasuringStop::ended(live.run(rounds))?;
    let Some(constants) = live.runs.constants().filter(|_| live.is_complete()) else {
        say(format_args!("nothing to compare: it ended before everything had run once"));
        return Ok(exit_code(ended, true));
    };

    // No program is left that would have to be ended.
    signals::unblock().map_err(Failure::broken)?;
    if constants.are_doubtful() {
        say(format_args!(
            "this machine is busy with other programs (more of the same work took less time), so \
             the figures below mean little"
        ));
    }
    let seeds = rounds.max(if args.quick { 1 } else { FEWEST_SEEDS });
    let hardware = constants.machine(hardware);
    let model = Twin { hardware: &hardware, constants: &constants, how };
    let mut samples = Vec::new();
    for (i, (mixture, live)) in mixtures.iter().zip(live.samples).enumerate() {
        say(format_args!("simulating {} ({} of {})", mixture.name, i + 1, mixtures.len()));
        let mut rows = Vec::new();
        for (policy, live) in policies.iter().copied().zip(live) {
            let simulated = (1..=u64::from(seeds))
                .map(|seed| model.together(mixture, policy, seed))
                .collect::<Result<Vec<ComparedFigures>, Failure>>()?;
            rows.push((policy.to_string(), FigureSamples { live, simulated }));
        }
        samples.push((mixture.name.to_owned(), rows));
    }
    let mut alone = Vec::new();
    for (program, times) in live.alone {
        let simulated = model.alone(program)?.as_secs_f64();
        let words = program.command(Path::new(""));
        alone.extend(SoloError::new(words.join(" "), &times, simulated));
    }
    let report = CheckReport::new(here.description.clone(), constants, alone, &samples);
    match args.json {
        true => print_json(&serde_json::to_string_pretty(&report).map_err(Failure::broken)?)?,
        false => print(&report.show())?,
    }
    Ok(exit_code(ended, true))
}

/// The policies that this user's machine can carry out. Without turns by weight, `turns` falls back
/// to another policy, and the model does not.
fn policies() -> Result<Vec<Kind>, Failure> {
    let proc = Proc::own().map_err(Failure::input)?;
    let rights = Rights::probe(&proc, &Sys::default()).map_err(Failure::broken)?;
    let can_weigh =
        rights.rights.iter().any(|one| one.name == Ability::IdleGroups && one.available);
    if !can_weigh {
        say(format_args!("{} left out: turns by weight are not possible here", Kind::Turns));
    }
    Ok(POLICIES.into_iter().filter(|kind| can_weigh || *kind != Kind::Turns).collect())
}

/// The workloads that were asked for.
fn chosen(args: &CheckOptions, cpus: u16) -> Result<Vec<Mixture>, Failure> {
    let all = if args.quick { suite::quick(cpus) } else { suite::all(cpus) };
    let names: Vec<&str> = all.iter().map(|mixture| mixture.name).collect();
    if let Some(unknown) =
        args.only.iter().find(|part| !names.iter().any(|name| name.contains(part.as_str())))
    {
        let names = names.join("', '");
        return Err(Failure::Input(format!(
            "--only {unknown}: there is no such workload; choose from '{names}'"
        )));
    }
    let is_selected = |mixture: &Mixture| {
        args.only.is_empty() || args.only.iter().any(|part| mixture.name.contains(part.as_str()))
    };
    Ok(all.into_iter().filter(is_selected).collect())
}

/// The folder of the kernels, absolute.
fn kernels(folder: &Path, mixtures: &[Mixture]) -> Result<std::path::PathBuf, Failure> {
    let missing = |program: &KernelRun| !folder.join(program.name()).is_file();
    if let Some(program) =
        mixtures.iter().flat_map(|mixture| &mixture.programs).find(|p| missing(p))
    {
        return Err(Failure::Input(format!(
            "{}: there is no '{}'. The kernels are not part of an installed package: in cosched's \
             source tree `make kernels` builds them; name their folder with --kernels",
            folder.display(),
            program.name()
        )));
    }
    std::path::absolute(folder).map_err(Failure::broken)
}

/// The programs as a workload: started from a folder, or only named.
fn workload(programs: &[KernelRun], folder: &Path) -> Result<Workload, Failure> {
    let commands = programs.iter().map(|program| program.command(folder)).collect();
    let mut workload =
        Workload::from_commands(commands, Path::new("/")).map_err(Failure::broken)?;
    for (spec, program) in workload.programs.iter_mut().zip(programs) {
        spec.threads = Some(program.threads);
        spec.env.extend(live::environment());
    }
    Ok(workload)
}

/// The model of this machine.
struct Twin<'a> {
    hardware: &'a Hardware,
    constants: &'a Constants,
    how: &'a How,
}

impl Twin<'_> {
    fn job(&self, program: &KernelRun) -> Result<SimulatedJob, Failure> {
        let model = program.model(self.constants, self.hardware).map_err(Failure::broken)?;
        Ok(SimulatedJob { model, weight: 1.0 })
    }

    fn simulator(&self, policy: Kind, seed: u64) -> Simulator {
        let scene = Scene {
            policy,
            machine: this::THIS.to_owned(),
            kernel: Kernel::EEVDF,
            seed,
            how: self.how.clone(),
        };
        Simulator::of(self.hardware.clone(), &scene)
    }

    fn alone(&self, program: KernelRun) -> Result<Nanos, Failure> {
        let spec = &workload(&[program], Path::new(""))?.programs[0];
        Ok(self.simulator(Kind::Gang, 1).alone(spec, &self.job(&program)?)?.time)
    }

    fn together(
        &self,
        mixture: &Mixture,
        policy: Kind,
        seed: u64,
    ) -> Result<ComparedFigures, Failure> {
        let workload = workload(&mixture.programs, Path::new(""))?;
        let jobs = mixture.programs.iter().map(|program| self.job(program));
        let jobs = jobs.collect::<Result<Vec<SimulatedJob>, Failure>>()?;
        let profile = |program: &KernelRun| {
            Ok(Profile { solo: Some(self.alone(*program)?), ..Profile::default() })
        };
        let profiles =
            mixture.programs.iter().map(profile).collect::<Result<Vec<Profile>, Failure>>()?;
        let simulator = self.simulator(policy, seed);
        let (_, outcome, result) = simulator.run(&workload, policy, &jobs, &profiles)?;
        debug_assert_eq!(outcome.ended, Ended::Complete, "it has no other end");
        let switches = self.constants.switches * mixture.programs.len() as f64;
        Ok(ComparedFigures::of(&result).with_switches(switches))
    }
}
