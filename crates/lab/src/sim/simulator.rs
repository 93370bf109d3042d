//! A simulated machine on which workloads run: all that the subcommands of `cosched sim` share.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cosched_core::engine::Engine;
use cosched_core::engine::outcome::{Completion, Ended, Outcome};
use cosched_core::{Class, Nanos, Profile, Speedup, Usage};
use cosched_linux::control::run_cgroups::ByWeight;
use cosched_linux::kernel::poll::is_interrupted;
use cosched_policy::{Kind, OptionGroup};
use cosched_results::result::{
    Backends, Context, MachineDescription, NONE, RunResult, SIMULATED, Simulation,
};
use cosched_sim::{Costs, Hardware, Kernel, Sim, SimulatedJob};
use cosched_workload::{ProgramSpec, Repeat, Workload};

use super::options::{MachineOptions, RunOptions};
use super::pace::SimulatedTime;
use super::{this, watch};
use crate::how::{How, PolicyChoices};
use crate::session::{Molded, Request, Session, backends_by_weight, by_weight, is_moldable};
use crate::source;
use crate::ui::failure::{Failure, both, together};
use crate::ui::say;

/// The seed where none is given.
pub const SEED: u64 = 1;

/// What stands in the place of a date: the simulated machine's time begins with the run.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// Says that moldable programs keep their threads, where they would be molded if it were known what
/// all take alone.
pub(super) fn tell_unscaled(workload: &Workload, kinds: &[Kind]) {
    if kinds.iter().any(|kind| kind.takes(OptionGroup::Goal))
        && workload.programs.iter().any(is_moldable)
    {
        say(format_args!(
            "moldable programs keep their thread counts: --no-solo leaves out the solo times that \
             a choice needs"
        ));
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedSolo {
    pub(super) time: Nanos,
    pub(super) usage: Usage,
}

impl SimulatedSolo {
    pub(super) fn note_in(&self, profile: &mut Profile) {
        (profile.solo, profile.solo_cpu) = (Some(self.time), Some(self.usage.cpu()));
    }
}

/// All that decides about a run beside the workload.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) policy: Kind,
    pub(super) machine: String,
    pub(super) kernel: Kernel,
    pub(super) seed: u64,
    pub(super) how: How,
}

impl Scene {
    /// What repeats a simulation of it under a policy.
    pub(super) fn simulation(&self, kind: Kind) -> Simulation {
        Simulation {
            machine: self.machine.clone(),
            kernel: self.kernel.name().to_owned(),
            seed: self.seed,
            set: self.constants(kind),
        }
    }

    /// The constants that were set and that a policy uses, with their values.
    pub(super) fn constants(&self, kind: Kind) -> BTreeMap<String, String> {
        let set = self.how.policy.set.iter();
        let used = set.filter(|(name, _)| kind.uses_constant(name));
        used.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The one that the options name; `also`: what else to say where they name no machine.
    pub(super) fn of(args: &RunOptions, also: &str) -> Result<Scene, Failure> {
        let no_machine = || {
            let known: Vec<&str> = Hardware::names().collect();
            Failure::Input(format!(
                "no machine to simulate; add --machine with a name ({}), with words such as \
                 \"core:8\", or with `this` (after `cosched sim measure`){also}",
                known.join(", ")
            ))
        };
        // Without a machine the programs are read as for this one: they may lack models, too.
        let file = args.workload.as_deref().filter(|_| args.machine.is_none());
        let read = |file| source::simulated(Some(file), &Session::here()?);
        let machine = args.machine.clone().ok_or_else(no_machine);
        let (machine, _) = both(machine, file.map(read).transpose())?;
        Ok(Scene {
            policy: args.policy.unwrap_or_default(),
            machine,
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

/// What is known before anything is simulated.
pub(super) struct PreparedPrograms {
    /// What each program does.
    pub(super) jobs: Vec<SimulatedJob>,
    pub(super) profiles: Vec<Profile>,
}

pub(super) struct Simulator {
    pub(super) session: Session,
    pub(super) hardware: Hardware,
    pub(super) scene: Scene,
    pub(super) pace: SimulatedTime,
    /// Whether it is kept what programs do.
    pub(super) is_watched: bool,
}

/// This machine, one that comes along, by name, a file's, by its path, or one described in a few
/// words.
pub(super) fn hardware(machine: &str) -> Result<Hardware, Failure> {
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
pub(super) fn on_its_own(spec: &ProgramSpec) -> ProgramSpec {
    let after = Vec::new();
    ProgramSpec { start: Nanos::ZERO, after, group: None, weight: 1.0, ..spec.clone() }
}

/// Refuses turns by weight where they are insisted on and the kernel has none.
pub(super) fn check_weights(kind: Kind, how: &How, kernel: Kernel) -> Result<(), Failure> {
    if by_weight(kind, how) != ByWeight::Always || kernel.takes_turns_by_weight() {
        return Ok(());
    }
    let can =
        |name: &&str| Kernel::named(name).is_some_and(|kernel| kernel.takes_turns_by_weight());
    let can: Vec<&str> = Kernel::NAMES.into_iter().filter(can).collect();
    Err(Failure::Input(format!(
        "{kind}: --turns weight: the kernel '{}' cannot share CPUs by weight; choose --kernel {}, \
         or use --turns freeze, which pauses programs",
        kernel.name(),
        can.join(" or ")
    )))
}

impl Simulator {
    pub(super) fn new(scene: &Scene) -> Result<Simulator, Failure> {
        Ok(Simulator::of(hardware(&scene.machine)?, scene))
    }

    pub(super) fn of(hardware: Hardware, scene: &Scene) -> Simulator {
        let session = session(&hardware);
        let mut scene = scene.clone();
        if scene.kernel.is_solaris() {
            scene.how.measure.usual_class = Some(Class::FixedPriority(0));
        }
        scene.how.policy.fair.usual_peak = hardware.peak_lines_per_microsecond();
        Simulator { session, hardware, scene, pace: SimulatedTime::default(), is_watched: false }
    }

    /// The machine of a scene, and the workload that the options name.
    pub(super) fn with_workload(
        scene: &Scene,
        args: &RunOptions,
    ) -> Result<(Simulator, Workload), Failure> {
        let simulator = Simulator::new(scene)?;
        let workload = source::simulated(args.workload.as_deref(), &simulator.session)?;
        Ok((simulator, workload))
    }

    /// Checks everything that can be wrong before anything is simulated.
    pub(super) fn prepare(&self, workload: &Workload) -> Result<PreparedPrograms, Failure> {
        let Scene { policy, kernel, ref how, .. } = self.scene;
        check_weights(policy, how, kernel)?;
        let jobs = self.jobs(workload)?;
        let profiles = self.session.profiles(workload, &self.scene.how, None);
        self.session.plan(&self.request(workload, self.scene.policy, &profiles))?;
        Ok(PreparedPrograms { jobs, profiles })
    }

    /// Finds how moldable programs scale, under a policy that requests it.
    pub(super) fn scale(
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

    pub(super) fn request<'r>(
        &'r self,
        workload: &'r Workload,
        kind: Kind,
        profiles: &'r [Profile],
    ) -> Request<'r> {
        Request::new(workload, kind, &self.scene.how, profiles)
    }

    pub(super) fn jobs(&self, workload: &Workload) -> Result<Vec<SimulatedJob>, Failure> {
        let mut mistakes = Vec::new();
        let mut job = |spec: &ProgramSpec| match source::model_on(spec, &self.session) {
            Ok(model) => Some(SimulatedJob { model, weight: 1.0 }),
            Err(wrong) => {
                mistakes.extend(wrong.iter().map(ToString::to_string));
                None
            }
        };
        let jobs = workload.programs.iter().filter_map(&mut job).collect();
        if mistakes.is_empty() { Ok(jobs) } else { Err(together(mistakes)) }
    }

    /// One run of a program alone, placed as beside others.
    pub(super) fn alone(
        &self,
        spec: &ProgramSpec,
        job: &SimulatedJob,
    ) -> Result<SimulatedSolo, Failure> {
        let fits = usize::from(job.model.threads) <= self.hardware.topology.cpus().len();
        let kind = if fits { Kind::Gang } else { Kind::Linux };
        let once = ProgramSpec { repeat: Repeat::Times(1), ..on_its_own(spec) };
        let workload = Workload { programs: vec![once] };
        let jobs = std::slice::from_ref(job);
        let (_, outcome, _) = self.run(&workload, kind, jobs, &[Profile::default()])?;
        let completion = outcome.programs.iter().find_map(|program| program.completions.first());
        let Some(Completion { at, usage, .. }) = completion.copied() else {
            let name = &spec.name;
            return Err(Failure::Broken(format!(
                "{name} did not end when it ran alone on the simulated machine"
            )));
        };
        Ok(SimulatedSolo { time: at, usage })
    }

    /// Runs programs together. The machine that they ran on may have kept what they did.
    pub(super) fn run(
        &self,
        workload: &Workload,
        kind: Kind,
        jobs: &[SimulatedJob],
        profiles: &[Profile],
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
        let shares = kind.descriptor().shares;
        let kernel = Kernel { groups: shares, ..self.scene.kernel };
        let (hardware, seed) = (self.hardware.clone(), self.scene.seed);
        let joins = kind.makes_gangs() || shares;
        let Costs { start, join, .. } = self.hardware.own;
        let costs = Costs { start: if joins { start + join } else { start }, ..self.hardware.own };
        let mut sim = Sim::new(hardware, kernel, jobs.to_vec(), costs, seed);
        sim.stop_after(self.pace.most_events);
        sim.stop_if(is_interrupted);
        sim.tell_time(Arc::clone(&self.pace.time));
        if self.is_watched {
            sim.watch(watch::INTERVAL);
        }
        let can_weigh = kernel.takes_turns_by_weight();
        let auto = planned.without_weights.filter(|_| !can_weigh);
        let decided_by = auto.is_some().then(|| Kind::Auto.to_string());
        let policy = auto.unwrap_or(planned.policy);
        let (sim, outcome) = Engine::new(sim, policy, setup).run(&mut ());
        let outcome = outcome.map_err(Failure::broken)?;
        debug_assert_eq!(outcome.ended, Ended::Complete, "it has no other end");
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
        let simulation = Some(self.scene.simulation(kind));
        let context = Context { decided_by, simulation, ..context };
        let result = RunResult::new(&outcome, &context);
        Ok((sim, outcome, result))
    }
}
