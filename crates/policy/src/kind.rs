//! The policies by name: which ones there are, their options, and whether one can run a workload.
//! What stands behind a name is in the [registry](crate::registry).

use std::sync::Arc;

use cosched_core::Nanos;
use cosched_workload::Places;

use crate::common::goal::Goal;
use crate::descriptor::{Gangs, Learns, Need, OptionGroup};
use crate::fair_progress::options::FairOptions;
use crate::faithful::options::FaithfulOptions;
use crate::gangs::bandwidth::table::Slowdowns;
use crate::gangs::placement::Placement;
use crate::gangs::turns::Turns;
use crate::params::Params;
use crate::shuffling::options::ShufflingOptions;

mod unfit;

pub use crate::common::unknown::UnknownName;
use crate::common::unknown::by_name;
pub use unfit::Unfit;

/// Gives a macro the policies, baselines first: a row for each, with its descriptor.
macro_rules! policies {
    ($make:ident) => {
        $make! {
            Linux: unmanaged::LINUX,
            LinuxGroups: unmanaged::LINUX_GROUPS,
            Fcfs: fcfs::FCFS,
            LinuxWeights: unmanaged::LINUX_WEIGHTS,
            Gang: gang::GANG,
            Greedy: greedy::GREEDY,
            Cgreedy: cgreedy::CGREEDY,
            Bandwidth: bandwidth::BANDWIDTH,
            Minwait: minwait::MINWAIT,
            Faithful: faithful::FAITHFUL,
            FairProgress: fair_progress::FAIR_PROGRESS,
            Shuffling: shuffling::SHUFFLING,
            Balance: balance::BALANCE,
            AdaptiveGreedy: greedy::ADAPTIVE_GREEDY,
            AdaptiveMinwait: minwait::ADAPTIVE_MINWAIT,
            RequestGreedy: greedy::REQUEST_GREEDY,
            RequestMinwait: minwait::REQUEST_MINWAIT,
            #[default]
            Turns: goals::TURNS,
            Auto: auto::AUTO,
        }
    };
}

pub(crate) use policies;

macro_rules! kinds {
    ($($(#[$default:ident])? $kind:ident: $descriptor:path,)+) => {
        /// A policy that users can choose. The default is the one that needs to choose nothing.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $(
                #[doc = concat!("`", stringify!($descriptor), "`")]
                $(#[$default])?
                $kind,
            )+
        }

        impl Kind {
            /// Every policy, baselines first.
            pub const ALL: [Kind; [$(stringify!($kind)),+].len()] = [$(Kind::$kind),+];
        }
    };
}

policies!(kinds);

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
    /// The constants of policies.
    pub params: Params,
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
            params: Params::default(),
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
    /// Whether its model is run, and not the program.
    pub is_simulated: bool,
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

    /// Whether it uses the [constant](Params) of this name.
    pub fn uses_constant(self, name: &str) -> bool {
        let group = name.split('.').next().unwrap_or(name);
        self.descriptor().params.contains(&group)
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

    /// Whether programs start one after another, each when it is its turn.
    pub fn starts_in_order(self) -> bool {
        self.descriptor().in_order
    }

    /// The names of the policies with runs that can be predicted.
    pub fn predictable() -> impl Iterator<Item = &'static str> {
        Kind::ALL.into_iter().filter(|kind| kind.descriptor().round.is_some()).map(Kind::name)
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
        self.makes_gangs() || self.descriptor().binds_threads
    }

    /// Whether it can schedule these programs on this number of CPUs.
    ///
    /// # Errors
    /// Everything that does not fit, program after program. For policies that insist on gangs, when
    /// a program requests more threads than there are CPUs; for `cgreedy`, when a program's cache
    /// misses are not known; for `bandwidth`, when its traffic is not.
    pub fn check(self, demands: &[Demand<'_>], cpus: usize) -> Result<(), Vec<Unfit>> {
        let mut unfit = Vec::new();
        for demand in demands {
            if self.insists_on_gangs() && usize::from(demand.threads) > cpus {
                unfit.push(Unfit::TooManyThreads {
                    place: Box::new(demand.places.threads.clone()),
                    program: demand.name.to_owned(),
                    threads: demand.threads,
                    cpus,
                    policy: self,
                });
            }
            if self.needs(Need::Misses) && demand.misses_per_kilo_instruction.is_none() {
                unfit.push(Unfit::MissesUnknown {
                    place: Box::new(demand.places.command.clone()),
                    program: demand.name.to_owned(),
                    policy: self,
                    is_simulated: demand.is_simulated,
                });
            }
            if self.needs(Need::Traffic) && demand.memory_gigabytes_per_second.is_none() {
                unfit.push(Unfit::TrafficUnknown {
                    place: Box::new(demand.places.command.clone()),
                    program: demand.name.to_owned(),
                    policy: self,
                    is_simulated: demand.is_simulated,
                });
            }
        }
        if unfit.is_empty() { Ok(()) } else { Err(unfit) }
    }
}

by_name!(Kind, "policy");

#[cfg(test)]
mod tests;
