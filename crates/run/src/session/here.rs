//! This machine, or one that is not there, as programs may use it.

use std::ffi::OsString;
use std::path::PathBuf;

use cosched_core::{Nanos, Policy, Profile, Speedup, Topology};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::rights::usable::Usable;
use cosched_policy::{Demand, Kind, Options, Turns, Unfit};
use cosched_results::result::MachineDescription;
use cosched_workload::shell::quote;
use cosched_workload::{ProgramSpec, Workload, shown};

use super::request::Request;
use crate::how::How;
use crate::store::{Key, Store};
use crate::ui::failure::{Failure, together};

/// This machine, as programs may use it.
#[derive(Debug)]
pub struct Session {
    /// The CPUs of the machine, and which of them share what.
    pub topology: Topology,
    /// The CPUs that programs may use, and what limits them.
    pub usable: Usable,
    /// What results say of the machine.
    pub description: MachineDescription,
    /// What programs inherit.
    pub environment: Vec<(OsString, OsString)>,
}

/// What stands for this machine where a simulated one is named.
pub const THIS: &str = "this";

/// Up to so many threads every count is looked at, beyond them every doubling.
const FEW_THREADS: u16 = 8;

/// The thread counts with which programs are worth knowing alone, ascending, up to the most.
fn counts_up_to(most: u16) -> Vec<u16> {
    let doublings = (0..16).map(|power| 1u16 << power);
    let all = (1..=FEW_THREADS).filter(|_| most <= FEW_THREADS).chain(doublings).chain([most]);
    let mut counts: Vec<u16> = all.filter(|count| (1..=most).contains(count)).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// A policy that can do what is asked of it.
pub struct Planned {
    /// How many threads each program has.
    pub threads: Vec<u16>,
    /// What decides.
    pub policy: Box<dyn Policy + Send>,
    /// What decides where programs cannot take turns by weight; `None`: they must. Without CPU
    /// groups `auto` was the best of what was measured (docs/research/turns.md).
    pub without_weights: Option<Box<dyn Policy + Send>>,
}

impl Session {
    /// Finds out what this machine is.
    ///
    /// # Errors
    /// When the kernel's files cannot be read.
    pub fn here() -> Result<Session, Failure> {
        let (proc, sys) = (Proc::own().map_err(Failure::input)?, Sys::default());
        let topology = sys.topology().map_err(Failure::input)?;
        let usable = Usable::find(&topology, &proc).map_err(Failure::broken)?;
        let description = MachineDescription {
            cpus: usable.cpus.len(),
            model: proc.cpu_model(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        };
        Ok(Session { topology, usable, description, environment: std::env::vars_os().collect() })
    }

    /// A machine that is not there: all of it may be used, and no environment has anything to say.
    pub fn of(topology: Topology, description: MachineDescription) -> Session {
        let usable = Usable { cpus: topology.all(), limited_by: Vec::new() };
        Session { topology, usable, description, environment: Vec::new() }
    }

    /// How many threads a program has; where it starts several workers, each of them.
    pub fn threads(&self, spec: &ProgramSpec) -> u16 {
        spec.asked_threads(self.environment.iter().cloned(), self.usable.cpus.len())
    }

    /// Under which key a program's solo time is kept.
    pub fn key(&self, spec: &ProgramSpec, how: &How) -> Key {
        Key::new(spec, self.threads(spec), how.placement(), &self.description)
    }

    /// Whether the programs are such that the policy can have them.
    ///
    /// # Errors
    /// When programs do not fit: all of them, and why.
    pub fn fits(&self, request: &Request<'_>) -> Result<(), Vec<Unfit>> {
        let programs = request.workload.programs.iter().zip(request.profiles);
        let demands: Vec<Demand<'_>> = programs
            .map(|(spec, profile)| Demand {
                name: &spec.name,
                places: &spec.places,
                threads: self.demand(spec),
                is_simulated: self.description.is_simulated(),
                misses_per_kilo_instruction: profile.misses_per_kilo_instruction,
                memory_gigabytes_per_second: profile.memory_gigabytes_per_second,
            })
            .collect();
        request.kind.check(&demands, self.usable.cpus.len())
    }

    /// Checks whether the policy can do what is asked of it.
    ///
    /// # Errors
    /// When the policy cannot do it: everything that is in the way.
    pub fn plan(&self, request: &Request<'_>) -> Result<Planned, Failure> {
        let programs = &request.workload.programs;
        let threads: Vec<u16> = programs.iter().map(|spec| self.demand(spec)).collect();
        let options = request.how.options(request.kind);
        let (topology, usable) = (&self.topology, &self.usable.cpus);
        let mut unfit = self.fits(request).err().unwrap_or_default();
        unfit.extend(request.kind.check_machine(&options, topology, usable).err());
        let policy = match request.kind.build(&options) {
            Ok(policy) if unfit.is_empty() => policy,
            built => {
                unfit.extend(built.err());
                return Err(together(unfit.iter().map(ToString::to_string).collect()));
            }
        };
        let by_itself = options.turns.is_none() && request.kind.descriptor().turns == Turns::Weight;
        let without_weights = || {
            // The result tells one quantum, whatever decides.
            let auto = Options { quantum: options.quantum, ..request.how.options(Kind::Auto) };
            Kind::Auto.build(&auto).map_err(Failure::input)
        };
        let without_weights = by_itself.then(without_weights).transpose()?;
        Ok(Planned { threads, policy, without_weights })
    }

    /// That the table of slowdowns was simulated for another machine than `name`, where the file
    /// tells that.
    pub fn foreign_table(name: &str, request: &Request<'_>) -> Option<String> {
        let options = request.how.options(request.kind);
        let table = options.slowdowns.as_ref()?;
        let machine = table.simulated_machine().filter(|machine| *machine != name)?;
        Some(format!(
            "the table of slowdowns is of another machine ({}), so its predictions do not hold; \
             `cosched sim slowdowns MODELS.toml --machine {}` makes one",
            shown(machine),
            quote(name),
        ))
    }

    /// What is known of each program: from the workload file, else from the store.
    pub fn profiles(&self, workload: &Workload, how: &How, store: Option<&Store>) -> Vec<Profile> {
        let keys: Vec<Key> = workload.programs.iter().map(|spec| self.key(spec, how)).collect();
        let (in_hand, division) = (self.keys_in_hand(workload, how), self.division(how));
        let profile = |(slot, spec): (usize, &ProgramSpec)| {
            let stored = store.and_then(|store| store.look_up(&keys[slot]));
            let misses = stored.as_ref().and_then(|entry| entry.misses_per_kilo_instruction);
            let ratio = stored.as_ref().and_then(|entry| entry.miss_ratio);
            let learned = |store: &Store| store.learned(&in_hand, slot, division.as_ref());
            Profile {
                solo: stored.as_ref().map(|entry| entry.solo),
                solo_cpu: stored.and_then(|entry| entry.cpu),
                misses_per_kilo_instruction: spec.misses_per_kilo_instruction.or(misses),
                miss_ratio: spec.miss_ratio.or(ratio),
                memory_gigabytes_per_second: spec.memory_gigabytes_per_second,
                speedup: store.and_then(|store| self.speedup(spec, how, store)),
                molded: None,
                learned: store.map(learned).unwrap_or_default(),
            }
        };
        workload.programs.iter().enumerate().map(profile).collect()
    }

    /// How a program scales, from what was measured of it alone with several thread counts.
    pub fn speedup(&self, spec: &ProgramSpec, how: &How, store: &Store) -> Option<Speedup> {
        let solo = |threads| Some((threads, self.solo_with(threads, spec, how, store)?));
        let known: Vec<(u16, Nanos)> = self.counts().into_iter().filter_map(solo).collect();
        Speedup::new(&known).filter(|_| known.len() > 1)
    }

    /// How long a program took alone with this thread count.
    pub(super) fn solo_with(
        &self,
        threads: u16,
        spec: &ProgramSpec,
        how: &How,
        store: &Store,
    ) -> Option<Nanos> {
        let counted = ProgramSpec { threads: Some(threads), ..spec.clone() };
        Some(store.look_up(&self.key(&counted, how))?.solo)
    }

    /// The thread counts with which programs are worth knowing alone here.
    pub fn counts(&self) -> Vec<u16> {
        counts_up_to(u16::try_from(self.usable.cpus.len()).unwrap_or(u16::MAX))
    }

    /// The file that a program's command runs.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn executable(&self, spec: &ProgramSpec) -> Result<PathBuf, Failure> {
        let env = spec.environment(self.environment.iter().cloned());
        let path = env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
        spec.executable(path).map_err(Failure::input)
    }
}
