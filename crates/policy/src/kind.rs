//! The policies by name: which ones there are, whether one can run a workload, and how to build it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cosched_core::{CpuSet, Nanos, Policy, Topology};
use cosched_workload::Places;

use crate::auto::Auto;
use crate::common::goal::Goal;
use crate::fair_progress::{FairOptions, FairProgress};
use crate::faithful::{Faithful, FaithfulOptions};
use crate::gangs::bandwidth::Slowdowns;
use crate::gangs::by_weight::ByWeight;
use crate::gangs::fcfs::Fcfs;
use crate::gangs::minwait::Minwait;
use crate::gangs::placement::Placement;
use crate::gangs::quantum::{LONGEST, SHORTEST};
use crate::gangs::rounds::Rounds;
use crate::gangs::thread_limits::ThreadLimits;
use crate::gangs::turns::Turns;
use crate::gangs::{bandwidth, cgreedy, gang, greedy};
use crate::molding::ReportsMolding;
use crate::shuffling::{Shuffling, ShufflingOptions};
use crate::unmanaged::Unmanaged;

mod unfit;

pub use unfit::Unfit;

/// How long a gang runs at a time, unless the user says otherwise.
const QUANTUM: Nanos = Nanos::from_millis(100);
/// The quantum under `auto`, which shortens it as far as needed to serve every program each second.
/// With quanta of 100 ms, switches and cold caches cost programs that compute 3 to 5 %
/// (docs/research/benchmarks.md).
const QUANTUM_OF_AUTO: Nanos = Nanos::from_millis(250);

/// A policy that users can choose. The default is the one that chooses a mode itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Everything at once, in one session and one CPU group.
    Linux,
    /// Everything at once, a CPU group for each program.
    LinuxGroups,
    /// One after another.
    Fcfs,
    /// Section 4.2.1.
    Gang,
    /// Section 4.2.2.
    Greedy,
    /// Section 4.2.3.
    Cgreedy,
    /// Chapter 6.
    Bandwidth,
    /// Section 4.2.4.
    Minwait,
    /// The paper on faithful scheduling.
    Faithful,
    /// The paper on fair-progress scheduling.
    FairProgress,
    /// The slides on thread shuffling.
    Shuffling,
    /// Sections 4.2 and 4.3; the algorithm is ours.
    AdaptiveGreedy,
    /// Sections 4.2 and 4.3; the algorithm is ours.
    AdaptiveMinwait,
    /// Ours: turns by weight.
    #[default]
    Turns,
    /// Ours.
    Auto,
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
            quantum: QUANTUM,
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
    /// Every policy, baselines first.
    pub const ALL: [Kind; 15] = [
        Kind::Linux,
        Kind::LinuxGroups,
        Kind::Fcfs,
        Kind::Gang,
        Kind::Greedy,
        Kind::Cgreedy,
        Kind::Bandwidth,
        Kind::Minwait,
        Kind::Faithful,
        Kind::FairProgress,
        Kind::Shuffling,
        Kind::AdaptiveGreedy,
        Kind::AdaptiveMinwait,
        Kind::Turns,
        Kind::Auto,
    ];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Linux => "linux",
            Kind::LinuxGroups => "linux-groups",
            Kind::Fcfs => "fcfs",
            Kind::Gang => "gang",
            Kind::Greedy => "greedy",
            Kind::Cgreedy => "cgreedy",
            Kind::Bandwidth => "bandwidth",
            Kind::Minwait => "minwait",
            Kind::Faithful => "faithful",
            Kind::FairProgress => "fair-progress",
            Kind::Shuffling => "shuffling",
            Kind::AdaptiveGreedy => "adaptive-greedy",
            Kind::AdaptiveMinwait => "adaptive-minwait",
            Kind::Turns => "turns",
            Kind::Auto => "auto",
        }
    }

    /// How long a gang runs at a time, unless the user says otherwise.
    pub const fn usual_quantum(self) -> Nanos {
        match self {
            Kind::Auto => QUANTUM_OF_AUTO,
            _ => QUANTUM,
        }
    }

    /// A description in one line.
    pub const fn description(self) -> &'static str {
        match self {
            Kind::Linux => "start everything at once and let the kernel share the CPUs by thread",
            Kind::LinuxGroups => {
                "start everything at once and let the kernel share the CPUs by program"
            }
            Kind::Fcfs => "one program after another, each on all CPUs",
            Kind::Gang => "programs take turns, one at a time",
            Kind::Greedy => "taking turns; programs that fill the CPUs together share a turn",
            Kind::Cgreedy => {
                "taking turns in pairs: a program with many cache misses and one with few"
            }
            Kind::Bandwidth => {
                "taking turns; programs with the smallest predicted interference share a turn"
            }
            Kind::Minwait => {
                "taking turns; the programs that have waited longest run, as many as fit"
            }
            Kind::Faithful => {
                "everything at once; the threads of a program are treated alike, and slices suit \
                 its locks and misses"
            }
            Kind::FairProgress => {
                "taking turns; the programs with the least progress run, compared with a solo run"
            }
            Kind::Shuffling => {
                "everything at once; threads that wait equally long for locks share a socket"
            }
            Kind::AdaptiveGreedy => {
                "greedy, and chooses the thread counts of malleable programs in every round"
            }
            Kind::AdaptiveMinwait => {
                "minwait, and chooses the thread counts of malleable programs in every turn"
            }
            Kind::Turns => {
                "every program runs, the one in turn with the largest weight; the others use the \
                 CPUs that it leaves idle"
            }
            Kind::Auto => {
                "like linux, or programs take turns and are paused where that loses nothing"
            }
        }
    }

    /// Whether it gives all threads of a program CPUs at the same time. Only such a policy freezes
    /// programs and binds them to CPUs, and has quanta.
    pub const fn makes_gangs(self) -> bool {
        use Kind::{Bandwidth, Cgreedy, FairProgress, Gang, Greedy, Minwait};
        matches!(self, Gang | Greedy | Cgreedy | Bandwidth | Minwait | FairProgress)
            || self.adapts()
            || self.chooses()
    }

    /// Whether it decides on the thread counts of malleable programs.
    pub const fn adapts(self) -> bool {
        matches!(self, Kind::AdaptiveGreedy | Kind::AdaptiveMinwait)
    }

    /// Whether it accepts a goal ([`Options::goal`]). A program may then have more threads than
    /// there are CPUs.
    pub const fn chooses(self) -> bool {
        matches!(self, Kind::Turns | Kind::Auto)
    }

    /// How programs take turns by default.
    pub const fn usual_turns(self) -> Turns {
        match self {
            Kind::Turns => Turns::Weight,
            _ => Turns::Freeze,
        }
    }

    /// Whether programs can take turns by weight under it ([`Options::turns`]).
    pub const fn takes_turns_by_weight(self) -> bool {
        self.makes_gangs() && !matches!(self, Kind::Auto)
    }

    /// Whether programs run in gangs from their beginning to their end. Then none may be larger
    /// than the machine.
    pub const fn insists_on_gangs(self) -> bool {
        self.makes_gangs() && !self.chooses()
    }

    /// Whether it can backfill CPUs that a gang leaves idle ([`Options::fill`]).
    pub const fn backfills(self) -> bool {
        matches!(self, Kind::Greedy | Kind::Cgreedy)
    }

    /// Whether it can run attached programs: it freezes no program, and moves none to another
    /// cgroup or session.
    pub const fn attaches(self) -> bool {
        matches!(self, Kind::Linux | Kind::Faithful | Kind::Shuffling)
    }

    /// Whether it measures programs while they run.
    pub const fn measures(self) -> bool {
        self.gives_slices() || self.shuffles()
    }

    /// Whether it chooses slices by what threads wait for ([`Options::faithful`]).
    pub const fn gives_slices(self) -> bool {
        matches!(self, Kind::Faithful)
    }

    /// Whether it keeps slowdowns equal by measuring memory traffic ([`Options::fair`]).
    pub const fn equalises(self) -> bool {
        matches!(self, Kind::FairProgress)
    }

    /// Whether it decides by progress that programs report through the library inside them.
    pub fn hears_progress(self, goal: Goal) -> bool {
        self.equalises() || (self.chooses() && goal == Goal::Fair)
    }

    /// Whether it moves threads between sockets ([`Options::shuffling`]).
    pub const fn shuffles(self) -> bool {
        matches!(self, Kind::Shuffling)
    }

    /// Whether it binds programs, or single threads of them, to CPUs.
    pub const fn binds(self) -> bool {
        self.makes_gangs() || self.shuffles()
    }

    /// Whether it predicts slowdowns from a table ([`Options::slowdowns`]).
    pub const fn predicts(self) -> bool {
        matches!(self, Kind::Bandwidth)
    }

    /// Whether it can use a table of slowdowns: it predicts from one, or does where nothing is
    /// counted.
    pub const fn takes_slowdowns(self) -> bool {
        self.predicts() || self.equalises()
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
            if self == Kind::Cgreedy && demand.misses_per_kilo_instruction.is_none() {
                return Err(Unfit::MissesUnknown {
                    place: Box::new(demand.places.command.clone()),
                    program: demand.name.to_owned(),
                    policy: self,
                });
            }
            if self == Kind::Bandwidth && demand.memory_gigabytes_per_second.is_none() {
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
        match self.shuffles() {
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
        if options.fill && !self.backfills() {
            return Err(Unfit::NothingToFill { policy: self });
        }
        if self.makes_gangs() && !(SHORTEST..=LONGEST).contains(&options.quantum) {
            return Err(Unfit::Quantum { asked: options.quantum });
        }
        let freezes = self.freezing(options)?;
        let policy: Box<dyn Policy + Send> = match options.turns.unwrap_or(self.usual_turns()) {
            Turns::Weight if self.takes_turns_by_weight() => Box::new(ByWeight::new(freezes)),
            _ => freezes,
        };
        Ok(if self.chooses() { Box::new(ReportsMolding(policy)) } else { policy })
    }

    /// Builds the policy. If it makes gangs, it freezes programs.
    fn freezing(self, options: &Options) -> Result<Box<dyn Policy + Send>, Unfit> {
        Ok(match self {
            Kind::Linux => Box::new(Unmanaged::together()),
            Kind::LinuxGroups => Box::new(Unmanaged::in_groups()),
            Kind::Fcfs => Box::new(Fcfs::default()),
            Kind::Gang => Box::new(Rounds::new(options, gang::cut, None)),
            Kind::Greedy if options.fill => {
                Box::new(Rounds::new(options, greedy::cut, Some(greedy::fill)))
            }
            Kind::Greedy => Box::new(Rounds::new(options, greedy::cut, None)),
            Kind::Cgreedy if options.fill => {
                Box::new(Rounds::new(options, cgreedy::cut_in_threes, None))
            }
            Kind::Cgreedy => Box::new(Rounds::new(options, cgreedy::cut_in_pairs, None)),
            Kind::Bandwidth => {
                let table = options.slowdowns.clone().ok_or(Unfit::NoSlowdowns { policy: self })?;
                let cut = move |units: &[_], cpus| bandwidth::cut(units, cpus, &table);
                Box::new(Rounds::new(options, cut, None))
            }
            Kind::Minwait => Box::new(Minwait::new(options)),
            Kind::Faithful => Box::new(Faithful::new(options.faithful.clone())),
            Kind::FairProgress => Box::new(FairProgress::new(options)),
            Kind::Shuffling => Box::new(Shuffling::new(options.shuffling.clone())),
            Kind::AdaptiveGreedy => {
                let thread_limits = ThreadLimits::new(greedy::turns, options.quantum);
                Box::new(Rounds::new(options, greedy::cut, None).with_thread_limits(thread_limits))
            }
            Kind::AdaptiveMinwait => Box::new(Minwait::adaptive(options)),
            Kind::Turns | Kind::Auto => {
                let quantum = options.goal.quantum(options.quantum);
                let options = &Options { quantum, ..options.clone() };
                match options.goal {
                    Goal::Throughput => Box::new(Fcfs::default()),
                    Goal::Fair => Box::new(Minwait::fair(options)),
                    Goal::Balanced | Goal::Responsive if self == Kind::Auto => {
                        Box::new(Auto::new(options))
                    }
                    Goal::Balanced | Goal::Responsive => Box::new(Minwait::new(options)),
                }
            }
        })
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
