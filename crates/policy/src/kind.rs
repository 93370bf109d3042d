//! The policies by name: which ones there are, whether one can run a workload, and how to build it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cosched_core::{CpuSet, Nanos, Policy, Topology};
use cosched_workload::Places;

use crate::common::goal::Goal;
use crate::descriptor::{Descriptor, Gangs, Learns, Need, OptionGroup};
use crate::fair_progress::{self, FairOptions};
use crate::faithful::{self, FaithfulOptions};
use crate::gangs::bandwidth::{self, Slowdowns};
use crate::gangs::by_weight::ByWeight;
use crate::gangs::placement::Placement;
use crate::gangs::quantum::{LONGEST, SHORTEST};
use crate::gangs::turns::{self, Turns};
use crate::gangs::{cgreedy, fcfs, gang, greedy, minwait};
use crate::molding::ReportsMolding;
use crate::shuffling::{self, ShufflingOptions};
use crate::{auto, unmanaged};

mod unfit;

pub use unfit::Unfit;

/// Lists the policies: `Kind`, and the descriptor of each.
macro_rules! registry {
    ($($(#[$meta:meta])* $kind:ident => $descriptor:path,)+) => {
        /// A policy that users can choose. The default is the one that needs to choose nothing.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$meta])* #[doc = concat!("[`", stringify!($descriptor), "`]")] $kind,)+
        }

        impl Kind {
            /// Every policy, baselines first.
            pub const ALL: [Kind; [$(stringify!($kind)),+].len()] = [$(Kind::$kind),+];

            /// What it is and can do.
            pub const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $(Kind::$kind => &$descriptor,)+
                }
            }
        }
    };
}

registry! {
    Linux => unmanaged::LINUX,
    LinuxGroups => unmanaged::LINUX_GROUPS,
    Fcfs => fcfs::FCFS,
    Gang => gang::GANG,
    Greedy => greedy::GREEDY,
    Cgreedy => cgreedy::CGREEDY,
    Bandwidth => bandwidth::BANDWIDTH,
    Minwait => minwait::MINWAIT,
    Faithful => faithful::FAITHFUL,
    FairProgress => fair_progress::FAIR_PROGRESS,
    Shuffling => shuffling::SHUFFLING,
    AdaptiveGreedy => greedy::ADAPTIVE_GREEDY,
    AdaptiveMinwait => minwait::ADAPTIVE_MINWAIT,
    #[default]
    Turns => turns::TURNS,
    Auto => auto::AUTO,
}

/// Options of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How long a gang runs at a time, if the limit on frozen time allows. 1 ms to 60 s.
    pub quantum: Nanos,
    /// Where the threads of a program go.
    pub placement: Placement,
    /// Whether CPUs that a gang leaves idle are backfilled (`greedy` and `cgreedy` only).
    pub fill: bool,
    /// The table of slowdowns by traffic with memory (`bandwidth` only, which needs it).
    pub slowdowns: Option<Arc<Slowdowns>>,
    /// Options of `faithful`.
    pub faithful: FaithfulOptions,
    /// Options of `fair-progress`.
    pub fair: FairOptions,
    /// Options of `shuffling`.
    pub shuffling: ShufflingOptions,
    /// The user's goal (`turns` and `auto` only).
    pub goal: Goal,
    /// How programs take turns (policies that make gangs only); `None`: the policy's default.
    pub turns: Option<Turns>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            quantum: Kind::default().descriptor().quantum,
            placement: Placement::Packed,
            fill: false,
            slowdowns: None,
            faithful: FaithfulOptions::default(),
            fair: FairOptions::default(),
            shuffling: ShufflingOptions::default(),
            goal: Goal::default(),
            turns: None,
        }
    }
}

/// A program's needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand<'a> {
    /// Its name in the workload.
    pub name: &'a str,
    /// The places of its keys in the workload.
    pub places: &'a Places,
    /// How many CPUs it requests at once.
    pub threads: u16,
    /// Last-level cache misses per 1000 instructions, if known.
    pub misses_per_kilo_instruction: Option<f64>,
    /// Traffic with memory alone, GB/s, if known.
    pub memory_gigabytes_per_second: Option<f64>,
}

impl Kind {
    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// Whether it gives all threads of a program CPUs at the same time.
    pub fn makes_gangs(self) -> bool {
        self.descriptor().makes_gangs()
    }

    /// Whether it takes these options.
    pub fn takes(self, options: OptionGroup) -> bool {
        self.descriptor().takes(options)
    }

    /// Whether it finds this out about programs while they run.
    pub fn learns(self, what: Learns) -> bool {
        self.descriptor().learns == what
    }

    /// Whether it needs to know this.
    pub fn needs(self, what: Need) -> bool {
        self.descriptor().needs.contains(&what)
    }

    /// Whether programs run in gangs from their beginning to their end. Then none may be larger
    /// than the machine.
    pub fn insists_on_gangs(self) -> bool {
        self.descriptor().gangs == Gangs::Always
    }

    /// Whether it measures what threads wait for while they run.
    pub fn measures(self) -> bool {
        self.takes(OptionGroup::Measuring)
    }

    /// Whether it decides by progress that programs report through the library inside them.
    pub fn hears_progress(self, goal: Goal) -> bool {
        self.learns(Learns::SoloSpeeds) || (self.takes(OptionGroup::Goal) && goal == Goal::Fair)
    }

    /// Whether it binds programs, or single threads of them, to CPUs.
    pub fn binds(self) -> bool {
        self.makes_gangs() || self.learns(Learns::Groups)
    }

    /// Whether it can schedule these programs on this number of CPUs.
    ///
    /// # Errors
    /// For policies that insist on gangs, when a program requests more threads than there are CPUs;
    /// for `cgreedy`, when a program's cache misses are not known; for `bandwidth`, when its
    /// traffic is not.
    pub fn check(self, demands: &[Demand<'_>], cpus: usize) -> Result<(), Unfit> {
        for demand in demands.iter().filter(|_| self.insists_on_gangs()) {
            if usize::from(demand.threads) > cpus {
                return Err(Unfit::TooManyThreads {
                    place: Box::new(demand.places.threads.clone()),
                    program: demand.name.to_owned(),
                    threads: demand.threads,
                    cpus,
                    policy: self,
                });
            }
            if self.needs(Need::Misses) && demand.misses_per_kilo_instruction.is_none() {
                return Err(Unfit::MissesUnknown {
                    place: Box::new(demand.places.command.clone()),
                    program: demand.name.to_owned(),
                    policy: self,
                });
            }
            if self.needs(Need::Traffic) && demand.memory_gigabytes_per_second.is_none() {
                return Err(Unfit::TrafficUnknown {
                    place: Box::new(demand.places.command.clone()),
                    program: demand.name.to_owned(),
                    policy: self,
                });
            }
        }
        Ok(())
    }

    /// Whether it has something to decide on this machine, with these CPUs.
    ///
    /// # Errors
    /// For `shuffling`, when there are no two sockets to shuffle between.
    pub fn check_machine(
        self,
        options: &Options,
        topology: &Topology,
        usable: &CpuSet,
    ) -> Result<(), Unfit> {
        match self.needs(Need::Sockets) {
            true => {
                let checked = options.shuffling.sockets.check(topology, usable);
                checked.map_err(|why| Unfit::NoSockets { policy: self, why })
            }
            false => Ok(()),
        }
    }

    /// Builds the policy for a run.
    ///
    /// # Errors
    /// When an option does not fit: a quantum outside 1 ms to 60 s, `fill` for a policy that cannot
    /// backfill, no table for one that predicts.
    pub fn build(self, options: &Options) -> Result<Box<dyn Policy + Send>, Unfit> {
        if options.fill && !self.takes(OptionGroup::Fill) {
            return Err(Unfit::NothingToFill { policy: self });
        }
        if self.makes_gangs() && !(SHORTEST..=LONGEST).contains(&options.quantum) {
            return Err(Unfit::Quantum { asked: options.quantum });
        }
        let descriptor = self.descriptor();
        let freezes = (descriptor.build)(options)?;
        let turns = options.turns.unwrap_or(descriptor.turns);
        let by_weight = turns == Turns::Weight && descriptor.by_weight;
        let policy: Box<dyn Policy + Send> =
            if by_weight { Box::new(ByWeight::new(freezes)) } else { freezes };
        Ok(if self.takes(OptionGroup::Goal) { Box::new(ReportsMolding(policy)) } else { policy })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Kind, UnknownName> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownName::new("policy", name, Kind::ALL.map(Kind::name)))
    }
}

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} '{name}'; choose from {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

impl UnknownName {
    pub(crate) fn new<const N: usize>(
        what: &'static str,
        name: &str,
        known: [&str; N],
    ) -> UnknownName {
        UnknownName { what, name: name.to_owned(), known: known.join(", ") }
    }
}

#[cfg(test)]
mod tests;
