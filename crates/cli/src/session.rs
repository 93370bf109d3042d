//! What every subcommand that runs programs shares: a workload, a policy and this machine become a result.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::SystemTime;

use cosched_core::engine::outcome::Ended;
use cosched_core::engine::{Engine, Entry, Limits, Setup, Watch};
use cosched_core::result::{
    Context, MachineDescription, NONE, ProgramContext, RunResult, Rungs, Terms,
};
use cosched_core::workload::{ProgramSpec, Workload, escaped};
use cosched_core::{Exit, GroupId, Nanos, Policy, Profile, Topology};
use cosched_linux::counters::Events;
use cosched_linux::cpu_time::Roots;
use cosched_linux::ground::{FreezerRung, GroundError, ShareRung, Wishes};
use cosched_linux::helper::OWN_EXECUTABLE;
use cosched_linux::launch::{Order, Output};
use cosched_linux::machine::{Config, Job, Linux, MachineError, Origin};
use cosched_linux::procfs::Proc;
use cosched_linux::topology::Sys;
use cosched_linux::tree::Process;
use cosched_linux::undo;
use cosched_linux::usable::Usable;
use cosched_policy::{Demand, Kind};
use rustix::time::{ClockId, clock_gettime};

use crate::args::HowArgs;
use crate::failure::Failure;
use crate::live::Live;
use crate::out;
use crate::progress::Progress;
use crate::store::{Key, Store};

/// How often those who look on are told how the run stands. Rounds are hardly ever a multiple of it, so that no look
/// always meets the same gang.
const HEARTBEAT: Nanos = Nanos::from_millis(237);
/// Groups that the user names are numbered from here, so that they are never taken for groups that were found.
const FIRST_NAMED_GROUP: u16 = 1 << 15;

/// This machine, as programs may use it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) topology: Topology,
    pub(crate) usable: Usable,
    pub(crate) description: MachineDescription,
    environment: Vec<(OsString, OsString)>,
}

/// One run to be made.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) kind: Kind,
    pub(crate) how: &'a HowArgs,
    /// A folder for the programs' outputs and run.json.
    pub(crate) out: Option<&'a Path>,
    /// Whether standard output is wanted for something else.
    pub(crate) stdout_is_taken: bool,
    /// What is known of each program.
    pub(crate) profiles: &'a [Profile],
    /// Whether to count instructions and cache misses.
    pub(crate) count: bool,
    /// How the programs come to be there.
    pub(crate) origins: Origins<'a>,
}

/// How the programs of a run come to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origins<'a> {
    /// cosched starts them.
    Started,
    /// cosched starts the only one, in its own place.
    Child,
    /// They run already: the first process of each.
    Running(&'a [Process]),
}

impl Origins<'_> {
    fn of(self, slot: usize) -> Origin {
        match self {
            Origins::Started => Origin::Started,
            Origins::Child => Origin::Child,
            Origins::Running(processes) => Origin::Running(processes[slot]),
        }
    }
}

/// A run that was made.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: RunResult,
    pub(crate) ended: Ended,
    /// What went wrong after the programs had run; the result is whole all the same.
    pub(crate) troubles: Vec<Failure>,
}

/// A policy that can do what is asked of it.
pub(crate) struct Planned {
    /// How many threads each program has.
    pub(crate) threads: Vec<u16>,
    pub(crate) policy: Box<dyn Policy + Send>,
}

/// What a check has found out on the way.
pub(crate) struct Checked {
    planned: Planned,
    jobs: Vec<Job>,
}

impl Ran {
    /// Tells what went wrong after the programs had run; says whether nothing did.
    pub(crate) fn report_troubles(&self) -> bool {
        self.troubles.iter().for_each(|trouble| {
            trouble.report();
        });
        self.troubles.is_empty()
    }

    /// Whether every program ended with status 0.
    pub(crate) fn all_succeeded(&self) -> bool {
        self.result.programs.iter().all(|program| program.exit == Some(Exit::Code(0)))
    }
}

impl Session {
    /// Finds out what this machine is.
    pub(crate) fn here() -> Result<Session, Failure> {
        let (proc, sys) = (Proc::own().map_err(Failure::input)?, Sys::default());
        let topology = sys.topology().map_err(Failure::broken)?;
        let usable = Usable::find(&topology, &proc).map_err(Failure::broken)?;
        let description = MachineDescription {
            cpus: usable.cpus.len(),
            model: proc.cpu_model(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        };
        Ok(Session { topology, usable, description, environment: std::env::vars_os().collect() })
    }

    /// A machine that is not there: all of it may be used, and no environment has anything to say.
    pub(crate) fn of(topology: Topology, description: MachineDescription) -> Session {
        let usable = Usable { cpus: topology.all(), limited_by: Vec::new() };
        Session { topology, usable, description, environment: Vec::new() }
    }

    /// How many CPUs a program wants at once.
    pub(crate) fn threads(&self, spec: &ProgramSpec) -> u16 {
        spec.asked_threads(self.environment.iter().cloned(), self.usable.cpus.len())
    }

    /// Under which key a program's solo time is kept.
    pub(crate) fn key(&self, spec: &ProgramSpec, how: &HowArgs) -> Key {
        Key::new(spec, self.threads(spec), how.placement(), &self.description)
    }

    /// Checks whether the policy can do what is asked of it.
    pub(crate) fn plan(&self, request: &Request<'_>) -> Result<Planned, Failure> {
        let programs = &request.workload.programs;
        let threads: Vec<u16> = programs.iter().map(|spec| self.threads(spec)).collect();
        let demands: Vec<Demand<'_>> = programs
            .iter()
            .zip(&threads)
            .zip(request.profiles)
            .map(|((spec, threads), profile)| Demand {
                name: &spec.name,
                places: &spec.places,
                threads: *threads,
                misses_per_kilo_instruction: profile.misses_per_kilo_instruction,
                memory_gigabytes_per_second: profile.memory_gigabytes_per_second,
            })
            .collect();
        request.kind.check(&demands, self.usable.cpus.len()).map_err(Failure::input)?;
        let policy =
            request.kind.build(&request.how.options(request.kind)).map_err(Failure::input)?;
        Ok(Planned { threads, policy })
    }

    /// Checks everything that can be wrong before anything is started.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<Checked, Failure> {
        let planned = self.plan(request)?;
        let programs = &request.workload.programs;
        let job = |(slot, spec)| self.job(request.origins.of(slot), spec, request);
        let jobs = programs.iter().enumerate().map(job).collect::<Result<Vec<_>, _>>()?;
        if let Some(out) = request.out {
            out::prepare(out, request.workload)?;
        }

        Ok(Checked { planned, jobs })
    }

    /// Checks, and runs.
    pub(crate) fn execute(&self, request: &Request<'_>) -> Result<Ran, Failure> {
        self.run(request, self.check(request)?, None, Roots::default())
    }

    /// The same under a policy that has no name.
    pub(crate) fn execute_under(
        &self,
        request: &Request<'_>,
        policy: Box<dyn Policy + Send>,
    ) -> Result<Ran, Failure> {
        let checked = self.check(request)?;
        let planned = Planned { policy, ..checked.planned };
        self.run(request, Checked { planned, ..checked }, None, Roots::default())
    }

    /// Checks, and runs while somebody looks on, who is told the programs' shims.
    pub(crate) fn show(
        &self,
        request: &Request<'_>,
        live: &mut Live,
        roots: Roots,
    ) -> Result<Ran, Failure> {
        self.run(request, self.check(request)?, Some(live), roots)
    }

    fn run(
        &self,
        request: &Request<'_>,
        checked: Checked,
        live: Option<&mut Live>,
        roots: Roots,
    ) -> Result<Ran, Failure> {
        let programs = &request.workload.programs;
        let Checked { planned: Planned { threads, policy }, jobs } = checked;
        let mut setup = self.setup(request, &threads);
        if live.is_some() {
            setup.limits.heartbeat = HEARTBEAT;
        }
        let (sender, notes) = channel();
        let config = Config {
            executable: OWN_EXECUTABLE.into(),
            log_folder: undo::log_folder().map_err(Failure::input)?,
            topology: self.topology.clone(),
            cpus: self.usable.cpus,
            wishes: wishes(request),
            turns: request.kind.makes_gangs(),
            count: request.count.then_some(Events::HARDWARE),
            jobs,
            asks: live.as_ref().map(|live| live.asks()),
            notes: sender,
            roots,
        };
        let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let machine = Linux::new(config).map_err(|error| match error {
            MachineError::Files(_)
            | MachineError::Ground(GroundError::NotHere { .. } | GroundError::Enable(_)) => {
                Failure::input(error)
            }
            error => Failure::broken(error),
        })?;
        let rungs = rungs(request.kind, &machine);
        let cpu_before = own_cpu_seconds();
        let mut progress = match request.origins {
            // The terminal is the program's.
            Origins::Child => Progress::of_notes(programs, notes),
            _ => Progress::new(programs, request.out.is_some(), notes),
        };
        let mut nobody = ();
        let onlooker: &mut dyn Watch = match live {
            Some(live) => live,
            None => &mut nobody,
        };
        let (machine, outcome) =
            Engine::new(machine, policy, setup).run(&mut (&mut progress, onlooker));
        let own_cpu_seconds = own_cpu_seconds() - cpu_before;
        let left = machine.left_running();
        let restored = machine.close().map_err(Failure::broken)?;
        progress.finish();
        let mut outcome = outcome.map_err(Failure::broken)?;
        for (id, _) in left {
            outcome.programs[usize::from(id.slot)].left_running = true;
        }
        let context = self.context(request, &threads, started_at, rungs, own_cpu_seconds);
        let result = RunResult::new(&outcome, &context);
        let saved = request.out.map_or(Ok(()), |out| result.save(&out::result(out)));
        let mut troubles: Vec<Failure> = saved.err().map(Failure::broken).into_iter().collect();
        if let Some(first) = restored.failed.first() {
            troubles.push(Failure::Broken(format!(
                "{} thing(s) could not be put back as found: {first}; `cosched recover` tries again",
                restored.failed.len()
            )));
        }
        Ok(Ran { result, ended: outcome.ended, troubles })
    }

    /// What is known of each program: from the workload file, else from the store.
    pub(crate) fn profiles(
        &self,
        workload: &Workload,
        how: &HowArgs,
        store: Option<&Store>,
    ) -> Result<Vec<Profile>, Failure> {
        let profile = |spec: &ProgramSpec| {
            let stored = match store {
                Some(store) => store.get(&self.key(spec, how))?,
                None => None,
            };
            let misses = stored.as_ref().and_then(|entry| entry.misses_per_kilo_instruction);
            let ratio = stored.as_ref().and_then(|entry| entry.miss_ratio);
            Ok(Profile {
                solo: stored.map(|entry| entry.solo),
                misses_per_kilo_instruction: spec.misses_per_kilo_instruction.or(misses),
                miss_ratio: spec.miss_ratio.or(ratio),
                memory_gigabytes_per_second: spec.memory_gigabytes_per_second,
            })
        };
        workload.programs.iter().map(profile).collect()
    }

    /// The file that a program's command runs.
    pub(crate) fn executable(&self, spec: &ProgramSpec) -> Result<PathBuf, Failure> {
        let env = spec.environment(self.environment.iter().cloned());
        let path = env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
        spec.executable(path).map_err(Failure::input)
    }

    fn job(
        &self,
        origin: Origin,
        spec: &ProgramSpec,
        request: &Request<'_>,
    ) -> Result<Job, Failure> {
        if let Origin::Running(_) = origin {
            return Ok(Job {
                origin,
                order: Order::default(),
                stdout: Output::Inherit,
                stderr: Output::Inherit,
                freezable_for_sure: false,
                grouped_by_user: true,
            });
        }
        let env = spec.environment(self.environment.iter().cloned());
        let order = Order {
            executable: self.executable(spec)?,
            argv: spec.command.clone(),
            cwd: spec.cwd.clone(),
            env,
            ..Order::default()
        };
        let file = |end: &str| request.out.map(|out| out::output(out, &spec.name, end));
        let output = |path: Option<_>, otherwise| match path {
            Some(path) => Output::File { path, append: false },
            None => otherwise,
        };
        let taken = if request.stdout_is_taken { Output::Stderr } else { Output::Inherit };
        Ok(Job {
            origin,
            order,
            stdout: output(file("stdout"), taken),
            stderr: output(file("stderr"), Output::Inherit),
            freezable_for_sure: spec.freezable == Some(true),
            grouped_by_user: spec.group.is_some(),
        })
    }

    pub(crate) fn setup(&self, request: &Request<'_>, threads: &[u16]) -> Setup {
        let mut names: HashMap<&str, GroupId> = HashMap::new();
        let mut entries = Vec::new();
        let known = request.workload.programs.iter().zip(threads).zip(request.profiles);
        for ((spec, asked), profile) in known {
            let next = GroupId(FIRST_NAMED_GROUP + names.len() as u16);
            entries.push(Entry {
                arrives: spec.start,
                asked: *asked,
                weight: spec.weight,
                repeat: spec.repeat,
                freezable: spec.freezable != Some(false),
                malleable: spec.malleable,
                runs_already: matches!(request.origins, Origins::Running(_)),
                group: spec.group.as_deref().map(|name| *names.entry(name).or_insert(next)),
                profile: *profile,
            });
        }
        Setup {
            topology: self.topology.clone(),
            cpus: self.usable.cpus,
            programs: entries,
            limits: Limits {
                max_frozen: request.how.max_frozen(),
                grace: request.how.grace.into(),
                heartbeat: if request.out.is_some() && watched() {
                    HEARTBEAT
                } else {
                    Nanos::NEVER
                },
                ..Limits::default()
            },
        }
    }

    pub(crate) fn context(
        &self,
        request: &Request<'_>,
        threads: &[u16],
        started_at: String,
        rungs: Rungs,
        own_cpu_seconds: f64,
    ) -> Context {
        let options = Some(request.how.options(request.kind));
        let options = options.filter(|_| request.kind.makes_gangs());
        let program =
            |((spec, threads), profile): ((&ProgramSpec, &u16), &Profile)| ProgramContext {
                name: spec.name.clone(),
                command: spec.command.clone(),
                threads: *threads,
                solo: profile.solo,
                terms: Some(Terms {
                    weight: spec.weight,
                    group: spec.group.clone(),
                    freezable: spec.freezable,
                    misses_per_kilo_instruction: profile.misses_per_kilo_instruction,
                    memory_gigabytes_per_second: profile.memory_gigabytes_per_second,
                }),
            };
        Context {
            policy: request.kind.to_string(),
            placement: options.as_ref().map(|options| options.placement.to_string()),
            max_frozen: options.as_ref().map(|_| request.how.max_frozen()),
            fill: options.as_ref().map(|options| options.fill).filter(|_| request.kind.fills()),
            quantum: options.map(|options| options.quantum),
            started_at,
            machine: self.description.clone(),
            simulation: None,
            rungs,
            own_cpu_seconds,
            programs: request
                .workload
                .programs
                .iter()
                .zip(threads)
                .zip(request.profiles)
                .map(program)
                .collect(),
        }
    }
}

/// A policy that freezes and binds nobody needs no cgroup: signals and masks are there without any
/// preparation.
fn wishes(request: &Request<'_>) -> Wishes {
    let (how, makes_gangs) = (request.how, request.kind.makes_gangs());
    let freezer =
        if makes_gangs { how.freezer.map(Into::into) } else { Some(FreezerRung::Signals) };
    Wishes {
        freezer,
        pinning: how.pinning.filter(|_| makes_gangs).map(Into::into),
        shares: request.kind == Kind::LinuxGroups,
    }
}

fn rungs(kind: Kind, machine: &Linux) -> Rungs {
    let share = match machine.ground().share() {
        None => "",
        Some(ShareRung::Cgroup) => ", shares by cgroup",
        Some(ShareRung::Autogroup) => ", shares by autogroup",
    };
    let (freezing, pinning) = match kind.makes_gangs() {
        true => (machine.ground().freezer().name(), machine.ground().pinning().name()),
        false => (NONE, NONE),
    };
    Rungs { freezing: freezing.to_owned(), pinning: format!("{pinning}{share}") }
}

/// CPU time of this process so far.
pub(crate) fn own_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Tells people something; that nobody listens any more must not stop anything.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    // Names and paths of users may hold anything; a terminal must not obey it.
    let lines: Vec<String> = text.to_string().split('\n').map(escaped).collect();
    let _ = writeln!(std::io::stderr(), "cosched: {}", lines.join("\n"));
}

/// Prints a result, and says so if nobody takes it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::broken(error)),
        _ => Ok(()),
    }
}

/// Whether people look at standard error.
pub(crate) fn watched() -> bool {
    std::io::stderr().is_terminal()
}
