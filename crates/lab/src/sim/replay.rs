//! `cosched sim --from RUN [--policy Q]`: what another policy would have made of a recorded run.
//!
//! The record becomes a simulated workload ([`program`]): of each program it tells when it came,
//! how many threads it had, how much CPU time it used and how long it ran. It does not tell why its
//! threads waited. The policy of the record is therefore simulated first, and the answer shows how
//! far the model is from what was recorded. A user who reads "Q would have taken 5 s" also reads
//! how wrong the same model is about what is known. Nothing is fitted to make that error small.

mod jobs_file;
mod machine;
mod needs;
mod program;
mod report;

use std::path::Path;
use std::process::ExitCode;

use cosched_core::Profile;
use cosched_policy::{Kind, Need, OptionGroup};
use cosched_report::disturbance;
use cosched_results::result::RunResult;
use cosched_sim::{Hardware, Kernel};
use cosched_workload::shell;
use cosched_workload::{Workload, brief, shown_path};

use super::options::RunOptions;
use super::simulator::{Scene, Simulator, check_weights, hardware};
use super::this::THIS;
use crate::experiment::{self, Variant};
use crate::how::{How, PolicyChoices};
use crate::out;
use crate::ui::failure::Failure;
use crate::ui::{print, print_json, say};
use program::Replayed;
use report::{ReplayFigures, ReplayReport};

/// Replays a run under its own policy and under the one that is asked for, and shows both.
pub(super) fn replay(run: &Path, args: &RunOptions) -> Result<ExitCode, Failure> {
    let record = RecordedRun::load(run)?;
    let policy = args.policy.unwrap_or_default();
    let given = &args.how;
    match record.policy.needs(Need::Slowdowns) {
        // The table is for the recorded policy, too.
        true => given.check_use(&[policy, record.policy])?,
        false => given.check_use(&[policy])?,
    }
    let named = args.machine.as_deref().map(hardware).transpose()?;
    let (hardware, assumed) =
        machine::hardware(&record.result, named).map_err(|failure| record.name_in(failure))?;
    let programs =
        program::programs(&record.result, &hardware).map_err(|failure| record.name_in(failure))?;
    let recorded = record.result.simulation.as_ref();
    let kernel = recorded.and_then(|simulation| Kernel::named(&simulation.kernel));
    let kernel = kernel.unwrap_or(Kernel::EEVDF);
    if args.jobs_file {
        let command = command(args, &record.result, &hardware, kernel);
        print(jobs_file::text(&record.shown, &command, &programs)?.trim_end())?;
        say(format_args!("to simulate the file on the machine of the run: `{command}`"));
        return Ok(ExitCode::SUCCESS);
    }
    let stage = ReplaySetup { hardware: &hardware, kernel, programs: &programs, args };
    let recorded = stage.simulator(record.policy, record.how(&given.policy).into());
    // How programs were measured in the record is not told there.
    let asked =
        How { measure: given.measure.clone(), ..record.how_of(policy, &given.policy).into() };
    let asked = stage.simulator(policy, asked);
    let both = [(&recorded, record.policy), (&asked, policy)];
    for (simulator, kind) in both {
        stage.check(simulator, kind, &record.result).map_err(|failure| record.name_in(failure))?;
    }
    check_weights(policy, given, kernel)?;
    if let Some(folder) = &args.out {
        out::prepare(folder, &Workload { programs: Vec::new() })?;
    }

    let [model, answer] = both.map(|(simulator, kind)| stage.run(simulator, kind));
    let (model, answer) = (model?, answer?);
    if let Some(folder) = &args.out {
        answer.save(&out::result(folder)).map_err(Failure::broken)?;
    }
    let about_programs = program::assumptions(&record.result, &programs, policy);
    let assumptions = record
        .disturbance()
        .into_iter()
        .chain(assumed)
        .chain(record.rival(run))
        .chain(about_programs);
    let assumptions = assumptions.collect();
    let figures = [&record.result, &model, &answer].map(|run| ReplayFigures::of(run, &programs));
    let report =
        ReplayReport::new(&record, &asked.scene, &hardware, &programs, figures, assumptions);
    match args.json {
        true => print_json(&serde_json::to_string_pretty(&report).map_err(Failure::broken)?)?,
        false => print(&report.show())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The command that simulates the jobs file on the machine of the record.
fn command(args: &RunOptions, record: &RunResult, hardware: &Hardware, kernel: Kernel) -> String {
    let is_named = record.machine.is_simulated() || Hardware::is_words(&hardware.name);
    let machine = match &args.machine {
        Some(named) => named,
        None if is_named => &hardware.name,
        None => THIS,
    };
    let machine = shell::quote(machine);
    match kernel {
        Kernel::EEVDF => format!("cosched sim FILE --machine {machine}"),
        other => format!("cosched sim FILE --machine {machine} --kernel {}", other.name()),
    }
}

/// A run that can be replayed.
struct RecordedRun {
    result: RunResult,
    policy: Kind,
    /// As it was named.
    shown: String,
}

impl RecordedRun {
    /// A run that was interrupted is refused, and one of which nothing ran: how much CPU time a
    /// program used is known of its complete runs only.
    fn load(run: &Path) -> Result<RecordedRun, Failure> {
        let shown = shown_path(run);
        let result = out::load(run)?;
        let refused = |why: &str| Err(Failure::Input(format!("--from {shown}: {why}")));
        if let Some(signal) = &result.interrupted_by {
            return refused(&format!(
                "the run was interrupted ({}), so the work that was left is not known; name a \
                 run that went to its end",
                brief(signal)
            ));
        }
        if let Some(from) = result.kept_from_seconds {
            return refused(&format!(
                "decisions before {from:.0} s of the run were not kept, so it cannot be replayed; \
                 name a shorter run"
            ));
        }
        if result.programs.iter().all(|program| program.completions.is_empty()) {
            return refused("nothing to replay: no program ran to its end; run the workload again");
        }
        let policy = result.policy.parse().map_err(Failure::input)?;
        Ok(RecordedRun { result, policy, shown })
    }

    /// That other processes slowed the recorded programs down, if they did: the model has none.
    fn disturbance(&self) -> Option<String> {
        let taken = disturbance::phrase(&self.result)?;
        Some(format!("nothing else runs on the machine, but when the run was recorded {taken}"))
    }

    /// What is to be said of a run if its programs were started differently for a comparison.
    fn rival(&self, run: &Path) -> Option<String> {
        let variant = experiment::ExperimentRecord::variant_of(run)?;
        let rival = variant.parse::<Variant>().is_ok_and(|variant| variant.is_rival());
        let single = self.result.programs.iter().all(|program| program.threads == 1);
        let threads = if single { ", with one thread each" } else { "" };
        rival.then(|| {
            format!(
                "the run is one of variant '{variant}' of a comparison; the replay is of programs \
                 that are started as in that variant{threads}"
            )
        })
    }

    /// What was asked for in the recorded run.
    fn how(&self, given: &PolicyChoices) -> PolicyChoices {
        let time = |seconds: f64| std::time::Duration::from_secs_f64(seconds.max(0.0));
        PolicyChoices {
            placement: self.result.placement.as_ref().and_then(|name| name.parse().ok()),
            quantum: self.result.quantum_seconds.map(time),
            max_frozen: self.result.max_frozen_seconds.map(time),
            fill: self.result.fill == Some(true),
            ..given.clone()
        }
    }

    /// The same for another policy, as far as it has a use for it; what is given goes first.
    fn how_of(&self, policy: Kind, given: &PolicyChoices) -> PolicyChoices {
        let recorded = self.how(given);
        PolicyChoices {
            placement: given.placement.or(recorded.placement),
            quantum: given.quantum.or(recorded.quantum),
            max_frozen: given.max_frozen.or(recorded.max_frozen),
            fill: policy.takes(OptionGroup::Fill) && (given.fill || recorded.fill),
            ..recorded
        }
    }

    fn name_in(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Input(text) => Failure::Input(format!("--from {}: {text}", self.shown)),
            broken => broken,
        }
    }
}

struct ReplaySetup<'a> {
    hardware: &'a Hardware,
    /// That of the record, where it tells one that is known here.
    kernel: Kernel,
    programs: &'a [Replayed],
    args: &'a RunOptions,
}

impl ReplaySetup<'_> {
    fn simulator(&self, policy: Kind, how: How) -> Simulator {
        let scene = Scene {
            policy,
            machine: self.hardware.name.clone(),
            kernel: self.args.kernel.unwrap_or(self.kernel),
            seed: self.args.seed.unwrap_or(1),
            how,
        };
        let mut simulator = Simulator::of(self.hardware.clone(), &scene);
        simulator.pace.most_events = self.args.max_events;
        simulator
    }

    fn workload(&self) -> Workload {
        Workload { programs: self.programs.iter().map(|program| program.spec.clone()).collect() }
    }

    fn profiles(&self) -> Vec<Profile> {
        self.programs.iter().map(|program| program.profile).collect()
    }

    /// Everything that can be wrong, before anything is simulated.
    fn check(&self, simulator: &Simulator, kind: Kind, record: &RunResult) -> Result<(), Failure> {
        let (workload, profiles) = (self.workload(), self.profiles());
        let request = simulator.request(&workload, kind, &profiles);
        let fits = simulator.session.fits(&request);
        fits.map_err(|unfit| needs::refused(&unfit, record, self.programs))?;
        simulator.session.plan(&request).map(|_| ())
    }

    /// The workload under a policy; slowdowns are told of the model's own solo times.
    fn run(&self, simulator: &Simulator, kind: Kind) -> Result<RunResult, Failure> {
        let jobs: Vec<_> = self.programs.iter().map(|program| program.job.clone()).collect();
        let profile = |program: &Replayed| {
            simulator.alone(&program.spec, &program.job).map(|alone| program.profile_of(alone.time))
        };
        let profiles = self.programs.iter().map(profile).collect::<Result<Vec<_>, _>>()?;
        let (.., result) = simulator.run(&self.workload(), kind, &jobs, &profiles)?;
        Ok(result)
    }
}
