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
mod replay;
mod slowdowns;
mod sweep;
mod this;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cosched_core::engine::Engine;
use cosched_core::engine::outcome::{Completion, Ended, Outcome};
use cosched_core::{Class, Nanos, Profile, Speedup, Usage};
use cosched_linux::control::run_cgroups::ByWeight;
use cosched_policy::{Kind, OptionGroup};
use cosched_results::result::{
    Backends, Context, MachineDescription, NONE, RunResult, SIMULATED, Simulation,
};
use cosched_sim::{Costs, Hardware, Job, Kernel, Sim};
use cosched_workload::{ProgramSpec, Repeat, Workload};

use crate::how::{How, PolicyChoices};
use crate::session::{
    Extras, Molded, Origins, Request, Session, backends_by_weight, by_weight, is_moldable,
};
use crate::table::{self, After};
use crate::ui::failure::{self, Failure, exit_code};
use crate::ui::{print, say};
use crate::{out, source};
pub use calibrate::calibrate;
pub use check::check;
pub use compared::Simulated;
pub use measure::measure;
pub(crate) use measure::memory_peak;
use options::{MachineOptions, RunOptions};
pub use pace::MOST_EVENTS;
use pace::Pace;
pub use slowdowns::slowdowns;
pub use this::THIS;

/// The seed where none is given.
pub const SEED: u64 = 1;

/// What stands in the place of a date: the simulated machine's time begins with the run.
const EPOCH: &str = "1970-01-01T00:00:00Z";

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
    let scene = Scene::of(args)?;
    scene.how.check_use(&[scene.policy])?;
    let mut simulator = Simulator::new(&scene)?;
    let workload = source::simulated(args.workload.as_deref(), &simulator.session)?;
    simulator.pace.most_events = args.max_events;
    let Prepared { jobs, mut profiles } = simulator.prepare(&workload)?;
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
    let (sim, outcome, result) =
        simulator.run_on(&workload, scene.policy, &jobs, &profiles, args.watch.is_some())?;
    drop(shown);
    let saved = args.out.as_ref().map(|folder| result.save(&out::result(folder)));
    match args.json {
        true => print(&result.to_json())?,
        false => print(&table::run(&result, &After::default()))?,
    }
    // A disk that is full by now must not cost the result.
    if let Some(file) = &args.watch {
        watch::write(file, &sim, &result)?;
    }
    saved.transpose().map_err(Failure::broken)?;
    let succeeded = result.programs.iter().all(|program| program.exit_status == Some(0));
    Ok(exit_code(outcome.ended, succeeded))
}

/// Says that moldable programs keep their threads, where they would be molded if it were known what
/// all take alone.
fn tell_unscaled(workload: &Workload, kinds: &[Kind]) {
    if kinds.iter().any(|kind| kind.takes(OptionGroup::Goal))
        && workload.programs.iter().any(is_moldable)
    {
        say(format_args!(
            "moldable programs keep their thread counts: --no-solo leaves out the solo times that \
             a choice needs"
        ));
    }
}

/// A run of a program alone.
#[derive(Clone, Copy, Debug)]
struct Alone {
    time: Nanos,
    usage: Usage,
}

impl Alone {
    fn note_in(&self, profile: &mut Profile) {
        (profile.solo, profile.solo_cpu) = (Some(self.time), Some(self.usage.cpu()));
    }
}

/// All that decides about a run beside the workload.
#[derive(Clone, Debug)]
struct Scene {
    policy: Kind,
    machine: String,
    kernel: Kernel,
    seed: u64,
    how: How,
}

impl Scene {
    /// What repeats a simulation of it.
    fn simulation(&self) -> Simulation {
        Simulation {
            machine: self.machine.clone(),
            kernel: self.kernel.name().to_owned(),
            seed: self.seed,
        }
    }

    /// The one that the options name.
    fn of(args: &RunOptions) -> Result<Scene, Failure> {
        let missing = || Failure::Input(no_machine());
        Ok(Scene {
            policy: args.policy.unwrap_or_default(),
            machine: args.machine.clone().ok_or_else(missing)?,
            kernel: args.kernel.unwrap_or(Kernel::EEVDF),
            seed: args.seed.unwrap_or(SEED),
            how: args.how.clone(),
        })
    }
}

impl From<&MachineOptions> for Scene {
    /// Programs alone, or together without turns.
    fn from(args: &MachineOptions) -> Scene {
        Scene {
            policy: Kind::Gang,
            machine: args.machine.clone(),
            kernel: args.kernel,
            seed: args.seed,
            how: PolicyChoices { placement: Some(args.placement), ..PolicyChoices::default() }
                .into(),
        }
    }
}

/// What to say where no option names a machine.
fn no_machine() -> String {
    let known: Vec<&str> = Hardware::names().collect();
    format!(
        "no machine to simulate; add --machine with a name ({}), with words such as \"core:8\", \
         or with `this` (after `cosched sim measure`)",
        known.join(", ")
    )
}

/// What is known before anything is simulated.
struct Prepared {
    /// What each program does.
    jobs: Vec<Job>,
    profiles: Vec<Profile>,
}

struct Simulator {
    session: Session,
    hardware: Hardware,
    scene: Scene,
    pace: Pace,
}

/// This machine, one that comes along, by name, a file's, by its path, or one described in a few
/// words.
fn hardware(machine: &str) -> Result<Hardware, Failure> {
    if machine == this::THIS {
        return this::hardware(&Session::here()?, None);
    }
    match machine {
        _ if Hardware::is_words(machine) => Hardware::words(machine),
        _ if machine.contains('/') || machine.ends_with(".toml") => {
            Hardware::load(Path::new(machine))
        }
        _ => Hardware::named(machine),
    }
    .map_err(Failure::input)
}

/// The simulated machine of this name, as programs may use it.
///
/// # Errors
/// When there is no such machine.
pub fn machine(name: &str) -> Result<Session, Failure> {
    hardware(name).map(|hardware| session(&hardware))
}

fn session(hardware: &Hardware) -> Session {
    let description = MachineDescription {
        cpus: hardware.topology.cpus().len(),
        model: Some(hardware.name.clone()),
        kernel: SIMULATED.to_owned(),
    };
    Session::of(hardware.topology.clone(), description)
}

/// The program without what the workload says of its co-runners: it comes at once, and belongs to
/// no group.
fn on_its_own(spec: &ProgramSpec) -> ProgramSpec {
    let after = Vec::new();
    ProgramSpec { start: Nanos::ZERO, after, group: None, weight: 1.0, ..spec.clone() }
}

impl Simulator {
    fn new(scene: &Scene) -> Result<Simulator, Failure> {
        Ok(Simulator::of(hardware(&scene.machine)?, scene))
    }

    fn of(hardware: Hardware, scene: &Scene) -> Simulator {
        let session = session(&hardware);
        let mut scene = scene.clone();
        if scene.kernel.is_solaris() {
            scene.how.measure.usual_class = Some(Class::FixedPriority(0));
        }
        scene.how.policy.fair.usual_peak = hardware.peak_lines_per_microsecond();
        Simulator { session, hardware, scene, pace: Pace::default() }
    }

    /// Checks everything that can be wrong before anything is simulated.
    fn prepare(&self, workload: &Workload) -> Result<Prepared, Failure> {
        let jobs = self.jobs(workload)?;
        let profiles = self.session.profiles(workload, &self.scene.how, None);
        self.session.plan(&self.request(workload, self.scene.policy, &profiles))?;
        Ok(Prepared { jobs, profiles })
    }

    /// Finds how moldable programs scale, under a policy that requests it.
    fn scale(
        &self,
        workload: &Workload,
        kind: Kind,
        profiles: &mut [Profile],
    ) -> Result<(), Failure> {
        if !kind.takes(OptionGroup::Goal) {
            return Ok(());
        }
        for (spec, profile) in workload.programs.iter().zip(profiles) {
            if is_moldable(spec) {
                profile.speedup = self.speedup(spec)?;
            }
        }
        Ok(())
    }

    /// How a program scales: how long it takes alone with fewer threads than it requests, with each
    /// number that it can have.
    fn speedup(&self, spec: &ProgramSpec) -> Result<Option<Speedup>, Failure> {
        let asked = self.session.threads(spec);
        let mut times = Vec::new();
        for threads in self.session.counts().into_iter().filter(|count| *count < asked) {
            let counted = ProgramSpec { threads: Some(threads), ..spec.clone() };
            let workload = Workload { programs: vec![counted] };
            // A pipeline has the threads of its stages, and no others.
            if let Ok(jobs) = self.jobs(&workload) {
                times.push((threads, self.alone(&workload.programs[0], &jobs[0])?.time));
            }
        }
        Ok(Speedup::new(&times))
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
            how: &self.scene.how,
            out: None,
            stdout_is_taken: true,
            redirects: false,
            profiles,
            count: false,
            origins: Origins::Started,
            extras: Extras::default(),
        }
    }

    fn jobs(&self, workload: &Workload) -> Result<Vec<Job>, Failure> {
        let job = |spec: &ProgramSpec| {
            let model = source::model_on(spec, &self.session).map_err(Failure::input)?;
            Ok(Job { model, weight: 1.0 })
        };
        failure::all(workload.programs.iter().map(job))
    }

    /// One run of a program alone, placed as beside others.
    fn alone(&self, spec: &ProgramSpec, job: &Job) -> Result<Alone, Failure> {
        let fits = usize::from(job.model.threads) <= self.hardware.topology.cpus().len();
        let kind = if fits { Kind::Gang } else { Kind::Linux };
        let once = ProgramSpec { repeat: Repeat::Times(1), ..on_its_own(spec) };
        let workload = Workload { programs: vec![once] };
        let (outcome, _) =
            self.run(&workload, kind, std::slice::from_ref(job), &[Profile::default()])?;
        let completion = outcome.programs.iter().find_map(|program| program.completions.first());
        let Some(Completion { at, usage, .. }) = completion.copied() else {
            let name = &spec.name;
            return Err(Failure::Broken(format!(
                "{name} did not end when it ran alone on the simulated machine"
            )));
        };
        Ok(Alone { time: at, usage })
    }

    fn run(
        &self,
        workload: &Workload,
        kind: Kind,
        jobs: &[Job],
        profiles: &[Profile],
    ) -> Result<(Outcome, RunResult), Failure> {
        let (_, outcome, result) = self.run_on(workload, kind, jobs, profiles, false)?;
        Ok((outcome, result))
    }

    /// The same, with the machine that it ran on, which may have kept what programs did.
    fn run_on(
        &self,
        workload: &Workload,
        kind: Kind,
        jobs: &[Job],
        profiles: &[Profile],
        watched: bool,
    ) -> Result<(Sim, Outcome, RunResult), Failure> {
        let request = self.request(workload, kind, profiles);
        let molded = self.session.molded(&request);
        let request = Molded::instead(molded.as_ref(), &request);
        let molded = molded.as_ref().map(|molded| self.jobs(&molded.workload)).transpose()?;
        let jobs = molded.as_deref().unwrap_or(jobs);
        let planned = self.session.plan(&request)?;
        let mut setup = self.session.setup(&request, &planned.threads);
        for (entry, job) in setup.programs.iter_mut().zip(jobs) {
            entry.malleable = job.model.is_malleable();
        }
        let kernel = Kernel { groups: kind == Kind::LinuxGroups, ..self.scene.kernel };
        let (hardware, seed) = (self.hardware.clone(), self.scene.seed);
        let joins = kind.makes_gangs() || kind == Kind::LinuxGroups;
        let Costs { start, join, .. } = self.hardware.own;
        let costs = Costs { start: if joins { start + join } else { start }, ..self.hardware.own };
        let mut sim = Sim::new(hardware, kernel, jobs.to_vec(), costs, seed);
        sim.stop_after(self.pace.most_events);
        sim.tell_time(Arc::clone(&self.pace.time));
        if watched {
            sim.watch(watch::INTERVAL);
        }
        let can_weigh = kernel.takes_turns_by_weight();
        let auto = planned.without_weights.filter(|_| !can_weigh);
        let decided_by = auto.is_some().then(|| Kind::Auto.to_string());
        let policy = auto.unwrap_or(planned.policy);
        let (sim, outcome) = Engine::new(sim, policy, setup).run(&mut ());
        let outcome = outcome.map_err(Failure::broken)?;
        debug_assert_eq!(outcome.ended, Ended::Complete, "no signal can interrupt a simulation");
        let how = |does: bool| if does { SIMULATED.to_owned() } else { NONE.to_owned() };
        let backends = match can_weigh && by_weight(kind, &self.scene.how) != ByWeight::No {
            true => backends_by_weight(&self.session, SIMULATED),
            false => Backends { freezing: how(kind.makes_gangs()), pinning: how(kind.binds()) },
        };
        let context = self.session.context(
            &request,
            &planned.threads,
            &Session::barriers(&request),
            EPOCH.to_owned(),
            backends,
            0.0,
        );
        let context = Context { decided_by, simulation: Some(self.scene.simulation()), ..context };
        let result = RunResult::new(&outcome, &context);
        Ok((sim, outcome, result))
    }
}
