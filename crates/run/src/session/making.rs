//! How a run is made: everything is checked, then the engine has this machine obey the policy until
//! the end.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::SystemTime;

use cosched_core::Nanos;
use cosched_core::engine::outcome::Ended;
use cosched_core::engine::{Engine, Watch};
use cosched_core::format::count;
use cosched_linux::clients::cpu_time::Roots;
use cosched_linux::control::ext::loader;
use cosched_linux::control::run_cgroups::{
    ByWeight, FreezerBackend, RunCgroupsError, ShareBackend, Wishes,
};
use cosched_linux::kernel::clock::own_cpu_seconds;
use cosched_linux::kernel::signals;
use cosched_linux::machine::{Config, Job, Linux, MachineError};
use cosched_linux::observe::barrier_stats::StatsOfRun;
use cosched_linux::observe::counters::Events;
use cosched_linux::process::helper::OWN_EXECUTABLE;
use cosched_linux::safety::undo;
use cosched_policy::{Kind, Learns, Turns, binds_by_weight};
use cosched_results::result::{Backends, Instead, NONE, RunResult};
use cosched_workload::BarrierMode;

use super::by_weight::unused_by_weight;
use super::here::{Planned, Session, THIS};
use super::load::{self, Load};
use super::molding::Molded;
use super::pauses::Pauses;
use super::request::{Origins, Ran, Request};
use super::sources::{self, ProgressSource};
use super::{actuators, misses, seen, streams};
use crate::how::How;
use crate::how::check::{unused_weights, without_malleable};
use crate::live::ShownRun;
use crate::out::{self, Folder, RunMark, TakenFolder};
use crate::progress::{Progress, Telling};
use crate::store::{Peak, Store};
use crate::ui::failure::{self, Failure, both};

/// What a check has found out on the way.
pub struct Checked {
    planned: Planned,
    /// The programs that are started with fewer threads.
    molded: Option<Molded>,
    /// What is said of actuators that do not work here.
    lacks_actuators: Option<String>,
    /// How each program waits at barriers.
    barriers: Vec<BarrierMode>,
    jobs: Vec<Job>,
    /// What tells how far each program comes, where a policy has to know.
    sources: Option<Vec<ProgressSource>>,
    /// The measured peak of memory, where it is of use.
    peak: Option<Peak>,
    /// Keeps other commands from replacing the files of this run.
    replaced: Option<TakenFolder>,
    /// Where the result and outputs go.
    folder: Option<Folder>,
    /// Where outputs go for which the workload names files.
    folders: Vec<Folder>,
}

/// The number of decisions that a run keeps: those of the last quarter of an hour, where turns last
/// 100 ms. More of them would let the memory of a run grow for longer than ten minutes.
const HISTORY: usize = 8192;

/// How often clients are told how the run stands. Rounds are hardly ever a multiple of it, so that
/// clients do not always see the same gang.
pub(super) const HEARTBEAT: Nanos = Nanos::from_millis(237);

/// What is said where programs cannot take turns by weight, and need not.
pub const NO_WEIGHTS: &str = "turns by weight are not possible here: the policy auto decides, \
                              which may pause programs. `cosched doctor` says what is missing";

impl Session {
    /// Checks everything that can be wrong before anything is started.
    ///
    /// # Errors
    /// When something is wrong.
    pub fn check(&self, request: &Request<'_>) -> Result<Checked, Failure> {
        let own = both(check_optimal(request), sources::check_peak(request));
        let own = both(own, sources::check_slowdowns(request));
        let own = both(own, check_ext(request));
        let own = both(own, misses::check(request));
        let own = both(own, actuators::usable(request)).map(|(_, usable)| usable);
        let peak = self.memory_peak(request);
        let mut how = request.how.clone();
        if let Some(peak) = &peak {
            how.policy.fair.usual_peak = Some(peak.lines_per_microsecond());
        }
        let mut lacks_actuators = None;
        if let Ok(Some((usable, lacks))) = &own {
            how.measure.actuators = Some(usable.clone());
            lacks_actuators = Some(lacks.clone());
        }
        let request = &Request { how: &how, ..*request };
        let molded = self.molded(request);
        let request = &Molded::instead(molded.as_ref(), request);
        let programs = &request.workload.programs;
        let sources =
            request.kind.learns(Learns::SoloSpeeds).then(|| sources::find(request)).transpose();
        let ((planned, _), sources) = both(both(self.plan(request), own), sources)?;
        let barriers = Session::barriers(request);
        let job = |(slot, spec)| self.job(request.origins.of(slot), spec, barriers[slot], request);
        let mut jobs = failure::all(programs.iter().enumerate().map(job))?;
        let replaced =
            request.out.filter(|_| request.extras.force).map(out::replace).transpose()?;
        let open = |out| out::prepare(out, request.workload).and_then(|()| Folder::open(out));
        let folder = request.out.map(open).transpose()?;
        let outputs = jobs.iter_mut().flat_map(|job| [&mut job.stdout, &mut job.stderr]);
        let folders = streams::hold_folders(outputs, request.out.zip(folder.as_ref()))?;
        Ok(Checked {
            planned,
            molded,
            lacks_actuators,
            barriers,
            jobs,
            sources,
            peak,
            replaced,
            folder,
            folders,
        })
    }

    /// The memory bandwidth, as it was measured. `None` unless the policy requests it, no option
    /// says it, and traffic is known that could be compared with it.
    fn memory_peak(&self, request: &Request<'_>) -> Option<Peak> {
        let fair = &request.how.policy.fair;
        let is_said = fair.peak_bandwidth.or(fair.usual_peak).is_some();
        if !request.kind.learns(Learns::SoloSpeeds) || is_said || !sources::tell_traffic(request) {
            return None;
        }
        Store::open_if_there()?.peak(&self.description)
    }

    /// Checks, and runs.
    ///
    /// # Errors
    /// When something is wrong beforehand, or breaks on the way.
    pub fn execute(&self, request: &Request<'_>) -> Result<Ran, Failure> {
        self.run(request, self.check(request)?, None)
    }

    /// Checks, and runs while clients may watch.
    ///
    /// # Errors
    /// When something is wrong beforehand, or breaks on the way.
    pub fn show(&self, request: &Request<'_>, mut live: ShownRun) -> Result<Ran, Failure> {
        let ran = self.run(request, self.check(request)?, Some(&mut live));
        // From here on nothing is left to be undone, and a signal ends cosched at once, unless a
        // detached program still has its place.
        let stay_blocked = match &ran {
            // A user or `timeout` often sends two: the second one must not cut off the result.
            Ok(Ran { ended: Ended::Interrupted(by), .. }) => signals::number(*by),
            _ => None,
        };
        if !matches!(request.origins, Origins::Child) {
            signals::unblock_all_but(stay_blocked).map_err(Failure::broken)?;
        }
        ran
    }

    fn run(
        &self,
        request: &Request<'_>,
        checked: Checked,
        mut live: Option<&mut ShownRun>,
    ) -> Result<Ran, Failure> {
        let Checked {
            planned,
            molded,
            lacks_actuators,
            barriers,
            jobs,
            sources,
            peak,
            replaced,
            folder,
            folders,
        } = checked;
        // Held to the end of the run.
        let _replaced = replaced;
        let Planned { threads, mut policy, without_weights } = planned;
        let request = &Molded::instead(molded.as_ref(), request);
        let programs = &request.workload.programs;
        let mut setup = self.setup(request, &threads);
        setup.limits.history = HISTORY;
        let (is_shown, talk) = (live.is_some(), request.extras.talk);
        if is_shown {
            setup.limits.heartbeat = HEARTBEAT;
            for (spec, _) in programs.iter().zip(&jobs).filter(|(_, job)| job.hook.is_some()) {
                if self.executable(spec).is_ok_and(|file| spec.is_static(&file)) {
                    talk.tell(format_args!(
                        "{} is statically linked, so cosched's library cannot be in it: its \
                         barriers, progress and number of threads are out of reach. Programs that \
                         it starts may have the library",
                        spec.name
                    ));
                }
            }
            if let Some(molded) = &molded {
                talk.detail(format_args!("{molded}"));
            } else if let Some(lack) = self.cannot_mold(request) {
                talk.tell(format_args!("{lack}"));
            }
            if let Some(lacks) = lacks_actuators {
                talk.tell(format_args!("{lacks}"));
            }
            if let Some(foreign) = Session::foreign_table(THIS, request) {
                talk.tell(format_args!("{foreign}"));
            }
            if let Some(sources) = &sources {
                talk.detail(format_args!("{}", sources::shown(programs, sources)));
            }
            if let Some(peak) = &peak {
                talk.detail(format_args!(
                    "the memory bandwidth is {:.0} cache lines per microsecond at most, as \
                     `cosched profile --machine` has measured",
                    peak.lines_per_microsecond()
                ));
            }
        }
        let (sender, notes) = channel();
        let telling = Telling {
            // The terminal is the program's where it has cosched's own place.
            course: !matches!(request.origins, Origins::Child),
            talk,
            outputs_go_elsewhere: request.outputs_go_elsewhere(),
            grace: request.how.grace,
        };
        let mut progress = Progress::new(programs, telling, notes)?;
        let stats =
            live.as_ref().map_or_else(|| StatsOfRun::new(programs.len()), |live| live.stats());
        let config = Config {
            executable: OWN_EXECUTABLE.into(),
            log_folder: undo::log_folder().map_err(Failure::input)?,
            topology: self.topology.clone(),
            cpus: self.usable.cpus,
            wishes: wishes(request),
            ext: request.is_by_ext().then(loader::find).transpose().map_err(Failure::input)?,
            turns: request.kind.makes_gangs(),
            units: request.kind.makes_gangs() || request.kind.measures(),
            // In a co-run, CPUs are to be shared as they would be without cosched.
            sessions: request.kind.insists_on_gangs(),
            count: request.count.then_some(Events::HARDWARE),
            spin_loops: Some(request.spin_loops.to_vec()),
            jobs,
            user_requests: live.as_ref().map(|live| live.user_requests()),
            notes: sender,
            roots: live.as_ref().map_or_else(Roots::default, |live| live.roots()),
            stats: stats.clone(),
        };
        let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let mark =
            folder.as_ref().map(|folder| RunMark::set(folder, programs)).transpose()?.flatten();
        let unmark = || mark.iter().for_each(RunMark::remove);
        let machine =
            Linux::new(config).inspect_err(|_| unmark()).map_err(|error| match error {
                MachineError::Log(ref log) if !log.is_full() => Failure::input(error),
                MachineError::Files(_)
                | MachineError::Held { .. }
                | MachineError::Claimed { .. }
                | MachineError::Ext(_)
                | MachineError::RunCgroups(
                    RunCgroupsError::NotHere { .. } | RunCgroupsError::Enable(_),
                ) => Failure::input(error),
                error => Failure::broken(error),
            })?;
        let mut decided_by = None;
        if let (Some(why), Some(auto)) = (machine.run_cgroups().no_weights(), without_weights) {
            policy = auto;
            decided_by = Some(Kind::Auto.to_string());
            if let Some(live) = &mut live {
                live.is_decided_by(Kind::Auto.name());
                talk.tell(format_args!("{NO_WEIGHTS}"));
                talk.detail(format_args!("what is missing for turns by weight: {why}"));
            }
        }
        if is_shown {
            if let Origins::Running(_) = request.origins {
                let names: Vec<&str> = programs.iter().map(|spec| spec.name.as_str()).collect();
                talk.tell(format_args!(
                    "attaching to {}; Ctrl-C detaches and restores the original settings",
                    names.join(", ")
                ));
            }
            let weights = unused_weights(&request.workload.programs, [(request.kind, request.how)]);
            let malleable = programs.iter().any(|spec| spec.malleable);
            let notes = weights.into_iter().chain(without_malleable(&[request.kind], malleable));
            notes.for_each(|note| talk.tell(format_args!("{note}")));
            if machine.run_cgroups().is_by_weight() {
                for note in unused_by_weight(self, [(request.kind, request.how)]) {
                    talk.tell(format_args!("{note}"));
                }
            }
            self.tell_of_workers(request);
            let pauses = Pauses::of(machine.run_cgroups());
            self.tell_of_pauses(request, &threads, pauses);
            self.tell_of_turn_lengths(request, &threads, pauses);
        }
        let backends = backends(request.kind, &machine, self);
        let cpu_before = own_cpu_seconds();
        // What ran before would count as other processes.
        let is_ours = !matches!(request.origins, Origins::Running(_));
        let load = Load::begin(self.usable.cpus).filter(|_| is_ours);
        let mut none = ();
        let onlooker: &mut dyn Watch = match live {
            Some(live) => live,
            None => &mut none,
        };
        let (machine, outcome) =
            Engine::new(machine, policy, setup).run(&mut (&mut progress, onlooker));
        let own_cpu_seconds = own_cpu_seconds() - cpu_before;
        let load = load.and_then(|load| load.so_far());
        let left = machine.left_running();
        let seen_of = machine.seen();
        let lacks = machine.lacks_states().map(ToString::to_string);
        let restored = machine.close().map_err(Failure::broken)?;
        drop(folders);
        progress.finish();
        let mut outcome = outcome.map_err(Failure::broken)?;
        for (id, _) in left {
            outcome.programs[usize::from(id.slot)].left_running = true;
        }
        let mut context =
            self.context(request, &threads, &barriers, started_at, backends, own_cpu_seconds);
        context.decided_by = decided_by;
        for (slot, program) in context.programs.iter_mut().enumerate() {
            let estimates = outcome.programs[slot].estimates;
            let is_unknown = estimates.is_some_and(|estimates| estimates.sources.are_unknown());
            let instead = sources
                .as_ref()
                .and_then(|sources| sources[slot].instead(&request.profiles[slot], request));
            program.instead_of_progress = match stats.has_reported_progress(slot) {
                false => instead,
                true => instead.filter(|_| is_unknown).map(|_| Instead::CpuTime),
            };
            let Some(barrier) = &mut program.barrier else { continue };
            barrier.statistics = stats.of(slot);
            if barrier.mode == BarrierMode::Donate {
                barrier.lacks.clone_from(&lacks);
            }
        }
        let mut result = RunResult::new(&outcome, &context);
        result.solo_runs = request.extras.solo_runs;
        seen::tell(seen_of, &mut result);
        if let Some(load) = load {
            load::tell(load, own_cpu_seconds, &mut result);
        }
        let save = |folder: &Folder| {
            let file = folder.place(Path::new(out::RESULT));
            result.save(&file).inspect(|()| unmark()).err().map(|error| folder.failure(&error))
        };
        let mut troubles: Vec<Failure> = folder.as_ref().and_then(save).into_iter().collect();
        if let Some(first) = restored.failed.first() {
            let next = match (first.is_for_root(), restored.failed.len()) {
                (true, 1) => "",
                (true, _) => "; `cosched recover` names the others",
                (false, _) => "; `cosched recover` tries again",
            };
            troubles.push(Failure::Broken(format!(
                "{} could not be restored: {first}{next}",
                count(restored.failed.len(), "original setting", "original settings")
            )));
        }
        let learning = outcome.programs.iter().map(|program| program.learning).collect();
        Ok(Ran { result, learning, ended: outcome.ended, troubles })
    }
}

/// Refuses a choice of `fair-progress` that no real machine can carry out.
fn check_optimal(request: &Request<'_>) -> Result<(), Failure> {
    match request.kind.learns(Learns::SoloSpeeds) && request.how.policy.fair.optimal {
        false => Ok(()),
        true => {
            let text = "--optimal works only on simulated machines, which know solo times exactly; \
                        leave it out";
            Err(Failure::Input(text.to_owned()))
        }
    }
}

/// Asks the kernel whether it would take the scheduler, where a run wants it.
fn check_ext(request: &Request<'_>) -> Result<(), Failure> {
    request.is_by_ext().then(loader::check).transpose().map(drop).map_err(Failure::input)
}

/// A policy that freezes and binds no program needs no cgroup: signals and masks are there without
/// any preparation.
fn wishes(request: &Request<'_>) -> Wishes {
    let (how, makes_gangs) = (&request.how.policy, request.kind.makes_gangs());
    let freezer = if makes_gangs { how.freezer } else { Some(FreezerBackend::Signals) };
    Wishes {
        freezer,
        pinning: how.pinning.filter(|_| makes_gangs),
        shares: request.kind.descriptor().shares,
        by_weight: match by_weight(request.kind, request.how) {
            ByWeight::No => ByWeight::No,
            // That scheduler needs no CPU groups for it.
            _ if request.is_by_ext() => ByWeight::InKernel,
            by_weight => by_weight,
        },
    }
}

/// What is said of freezing and binding in a run with turns by weight, where programs are bound in
/// this way if at all.
pub fn backends_by_weight(session: &Session, pinning: &str) -> Backends {
    let binds = binds_by_weight(&session.topology, &session.usable.cpus);
    let pinning = if binds { pinning } else { NONE };
    Backends { freezing: NONE.to_owned(), pinning: format!("{pinning}, turns by weight") }
}

/// Whether programs are to take turns by weight under a policy.
pub fn by_weight(kind: Kind, how: &How) -> ByWeight {
    match (how.options(kind).turns, kind.descriptor().turns) {
        _ if !kind.descriptor().by_weight => ByWeight::No,
        (Some(Turns::Weight), _) => ByWeight::Always,
        (None, Turns::Weight) => ByWeight::IfPossible,
        _ => ByWeight::No,
    }
}

fn backends(kind: Kind, machine: &Linux, session: &Session) -> Backends {
    if machine.run_cgroups().is_by_weight() {
        return backends_by_weight(session, machine.run_cgroups().pinning().name());
    }
    let share = match machine.run_cgroups().share() {
        None => "",
        Some(ShareBackend::Cgroup) => ", shares by cgroup",
        Some(ShareBackend::Autogroup) => ", shares by autogroup",
    };
    let machine = machine.run_cgroups();
    let freezing = if kind.makes_gangs() { machine.freezer().name() } else { NONE };
    let pinning = if kind.binds() { machine.pinning().name() } else { NONE };
    Backends { freezing: freezing.to_owned(), pinning: format!("{pinning}{share}") }
}
