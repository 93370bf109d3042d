//! A simulated machine as the site of an experiment.
//!
//! A simulation has no noise except what its seed decides, such as the order of equals. Every round
//! therefore has a seed of its own, from `--seed` upwards, and intervals show how much depends on
//! it. All variants and solo times of a round have the same seed.

use std::hash::{DefaultHasher, Hash, Hasher};

use cosched_core::Profile;
use cosched_core::engine::outcome::Ended;
use cosched_linux::kernel::poll::{Poll, Ready};
use cosched_linux::kernel::signals::{INTERRUPTIONS, interruption};
use cosched_policy::Kind;
use cosched_results::result::{Context, RunResult};
use cosched_sim::{Hardware, Kernel, SimulatedJob};
use cosched_workload::Workload;

use super::simulator::{PreparedPrograms, Scene, Simulator, check_weights, hardware};
use crate::experiment::{Site, VariantRun};
use crate::how::How;
use crate::how::check::without_malleable;
use crate::out;
use crate::session::{Ran, Session};
use crate::stop::MeasuringStop;
use crate::ui::Talk;
use crate::ui::failure::Failure;

/// A machine that is not there.
pub struct Simulated<'a> {
    workload: &'a Workload,
    hardware: Hardware,
    scene: Scene,
    /// The machine with the seed of the round.
    simulator: Simulator,
    /// What the programs do as the workload has them.
    jobs: Vec<SimulatedJob>,
    profiles: Vec<Profile>,
    signals: Poll,
}

impl<'a> Simulated<'a> {
    /// A hash of all that is known of the machine: a file may say something else under the same
    /// name.
    pub fn description(&self) -> String {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.hardware).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// A machine by its name, for these programs.
    ///
    /// # Errors
    /// When there is no such machine, or it cannot run the programs.
    pub fn new(
        workload: &'a Workload,
        machine: &str,
        kernel: Kernel,
        seed: u64,
        how: &How,
    ) -> Result<Simulated<'a>, Failure> {
        // Each turn brings its own policy; the programs alone are checked under the one that they
        // are alone under.
        let policy = Kind::Linux;
        let scene = Scene { policy, machine: machine.to_owned(), kernel, seed, how: how.clone() };
        let hardware = hardware(machine)?;
        let simulator = Simulator::of(hardware.clone(), &scene);
        let PreparedPrograms { jobs, profiles } = simulator.prepare(workload)?;
        let signals = INTERRUPTIONS.map(|(signal, _)| signal);
        let signals = Poll::new(&signals).map_err(Failure::broken)?;
        Ok(Simulated { workload, hardware, scene, simulator, jobs, profiles, signals })
    }

    /// Says so if policies for malleable programs have none.
    pub fn tell_unused(&self, kinds: &[Kind], talk: Talk) {
        let is_malleable = self.jobs.iter().any(|job| job.model.is_malleable());
        let note = without_malleable(kinds, is_malleable);
        note.iter().for_each(|note| talk.tell(format_args!("{note}")));
    }

    /// The machine of the round, for a variant in which policies do their work like this.
    fn simulator_for(&self, how: &How) -> Simulator {
        let scene = Scene { how: how.clone(), ..self.simulator.scene.clone() };
        Simulator::of(self.hardware.clone(), &scene)
    }

    /// The scene with the seed of a round.
    fn scene_of(&self, round: u16) -> Scene {
        Scene { seed: self.scene.seed.saturating_add(round.into()), ..self.scene.clone() }
    }

    /// A run of a variant.
    fn simulate(&self, turn: &VariantRun<'_>) -> Result<RunResult, Failure> {
        let simulator = self.simulator_for(turn.how);
        let jobs = simulator.jobs(turn.workload)?;
        let mut profiles = self.profiles.clone();
        simulator.scale(turn.workload, turn.kind, &mut profiles)?;
        let (.., result) = simulator.run(turn.workload, turn.kind, &jobs, &profiles)?;
        Ok(result)
    }

    /// What was simulated. A simulation that the user ended is no failure.
    fn unless_ended<T>(&mut self, simulated: Result<T, Failure>) -> Result<T, MeasuringStop> {
        if simulated.is_err() {
            MeasuringStop::if_interrupted(self.ended()?)?;
        }
        Ok(simulated?)
    }

    /// Whether the user has ended it meanwhile.
    fn ended(&mut self) -> Result<Ended, Failure> {
        let mut ready = Vec::new();
        self.signals.look(&mut ready).map_err(Failure::broken)?;
        let came = ready.iter().find_map(|ready| match ready {
            Ready::Signal(signal) => interruption(*signal),
            Ready::Source(_) => None,
        });
        Ok(came.map_or(Ended::Complete, Ended::Interrupted))
    }
}

impl Site for Simulated<'_> {
    fn session(&self) -> &Session {
        &self.simulator.session
    }

    fn warms_up(&self) -> bool {
        false
    }

    fn finds_times_alone(&self) -> bool {
        true
    }

    fn check(&self, workload: &Workload, kind: Kind, how: &How) -> Result<(), Failure> {
        check_weights(kind, how, self.scene.kernel)?;
        let simulator = self.simulator_for(how);
        simulator.jobs(workload)?;
        simulator.session.plan(&simulator.request(workload, kind, &self.profiles))?;
        Ok(())
    }

    fn expected(&self, turn: &VariantRun<'_>, round: u16) -> Context {
        let simulator = self.simulator_for(turn.how);
        let request = simulator.request(turn.workload, turn.kind, &self.profiles);
        let scene = Scene { how: turn.how.clone(), ..self.scene_of(round) };
        let simulation = Some(scene.simulation(turn.kind));
        Context { simulation, ..simulator.session.expected(&request) }
    }

    fn alone(&mut self, round: u16) -> Result<(), MeasuringStop> {
        self.simulator = Simulator::of(self.hardware.clone(), &self.scene_of(round));
        for i in 0..self.jobs.len() {
            let spec = &self.workload.programs[i];
            let alone = self.simulator.alone(spec, &self.jobs[i]);
            self.unless_ended(alone)?.note_in(&mut self.profiles[i]);
            MeasuringStop::if_interrupted(self.ended()?)?;
        }
        Ok(())
    }

    fn run(&mut self, turn: &VariantRun<'_>) -> Result<Ran, MeasuringStop> {
        let simulated = self.simulate(turn);
        let result = self.unless_ended(simulated)?;
        out::prepare(turn.out, turn.workload)?;
        let saved = result.save(&out::result(turn.out));
        let troubles = saved.err().map(Failure::broken).into_iter().collect();
        Ok(Ran { result, learning: Vec::new(), ended: self.ended()?, troubles })
    }
}
