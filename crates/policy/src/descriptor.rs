//! What a policy is, as data: its name, what it can do, what it needs, which words its reasons
//! have, and how it is built.
//!
//! Each policy has its descriptor in its own file. The command line, its checks and its help read
//! descriptors, as do `cosched doctor` and simulations. Some places know policies by name: the
//! baselines of `compare`, and measurements of solo times.

use cosched_core::{Nanos, Policy};

use crate::common::reasons::ReasonSet;
use crate::gangs::params::QUANTUM;
use crate::gangs::turns::Turns;
use crate::kind::{Options, Unfit};

/// A policy.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The name by which users choose it.
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
    /// Whether it stands for plain Linux: programs are started as without cosched.
    pub baseline: bool,
    /// Whether it gives all threads of a program CPUs at the same time. Only such a policy freezes
    /// programs and has quanta.
    pub gangs: Gangs,
    /// Whether programs start one after another, each when it is its turn.
    pub in_order: bool,
    /// How programs take turns by default, if it makes gangs.
    pub turns: Turns,
    /// Whether programs can take turns by weight under it ([`Options::turns`]).
    pub by_weight: bool,
    /// Whether every program has the same share of the CPUs, whatever its number of threads.
    pub shares: bool,
    /// Whether it chooses how many threads malleable programs have.
    pub limits_threads: bool,
    /// Whether a program of a larger weight gets more, or sooner.
    pub weights: bool,
    /// How many quanta a round has; `None`: its runs cannot be predicted.
    pub round: Option<RoundLength>,
    /// How many gangs share the limit on frozen time; `None`: that is not known before the start.
    pub gang_count: Option<GangCount>,
    /// How long a gang runs at a time by default.
    pub quantum: Nanos,
    /// Whether it can run attached programs: it freezes no program, and moves none to another
    /// cgroup or session.
    pub attaches: bool,
    /// Whether it binds single threads.
    pub binds_threads: bool,
    /// What it finds out about programs while they run.
    pub learns: Learns,
    /// The options that it takes, in lists that policies share.
    pub options: &'static [&'static [OptionGroup]],
    /// What it has to know of programs and machine.
    pub needs: &'static [Need],
    /// Its reasons and their words, where it has reasons of its own.
    pub(crate) reasons: &'static [ReasonSet],
    /// The groups of [constants](crate::Params) that it uses.
    pub params: &'static [&'static str],
    /// Builds it. If it makes gangs, it freezes programs.
    pub(crate) build: Build,
}

impl Descriptor {
    /// A policy under which all programs run, or one after another. It takes no option.
    pub(crate) const fn without_gangs(
        name: &'static str,
        description: &'static str,
        build: Build,
    ) -> Descriptor {
        Descriptor {
            name,
            description,
            baseline: false,
            gangs: Gangs::Never,
            in_order: false,
            turns: Turns::Freeze,
            by_weight: false,
            shares: false,
            limits_threads: false,
            weights: false,
            round: None,
            gang_count: None,
            quantum: QUANTUM,
            attaches: false,
            binds_threads: false,
            learns: Learns::Nothing,
            options: &[],
            needs: &[],
            reasons: &[],
            params: &[],
            build,
        }
    }

    /// A policy under which gangs take turns.
    pub(crate) const fn of_gangs(
        name: &'static str,
        description: &'static str,
        build: Build,
    ) -> Descriptor {
        Descriptor {
            gangs: Gangs::Always,
            by_weight: true,
            weights: true,
            options: &[OF_GANGS],
            params: &["gangs"],
            ..Descriptor::without_gangs(name, description, build)
        }
    }

    /// Whether it gives all threads of a program CPUs at the same time.
    pub fn makes_gangs(&self) -> bool {
        self.gangs != Gangs::Never
    }

    /// Whether it takes these options.
    pub fn takes(&self, options: OptionGroup) -> bool {
        self.options.iter().any(|groups| groups.contains(&options))
    }
}

/// How many quanta a round of programs of these sizes has, on this number of CPUs. No program is
/// larger than the machine.
pub type RoundLength = fn(&[usize], usize) -> f64;

/// How many gangs programs of these sizes take turns in, on this number of CPUs.
pub type GangCount = fn(&[usize], usize) -> usize;

pub(crate) type Build = fn(&Options) -> Result<Box<dyn Policy + Send>, Unfit>;

/// Whether programs run in gangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gangs {
    /// Never.
    Never,
    /// From their beginning to their end. None may be larger than the machine.
    Always,
    /// As far as the policy chooses. A program may have more threads than there are CPUs.
    Chosen,
}

/// What a policy finds out about programs while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learns {
    /// Nothing.
    Nothing,
    /// Which class and slice suit what their threads wait for.
    Slices,
    /// Between which groups of CPUs their threads are best divided.
    Groups,
    /// How fast they would be alone.
    SoloSpeeds,
}

/// What a policy has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The cache misses of each program.
    Misses,
    /// The memory traffic of each program.
    Traffic,
    /// A table of slowdowns by memory traffic.
    Slowdowns,
    /// Several groups of CPUs.
    Sockets,
    /// The right to lower nice values again that were raised.
    Nice,
}

/// Lists groups of options, in the order of the help: what the policies do that take them, and the
/// options.
macro_rules! option_groups {
    ($($(#[$doc:meta])+ $group:ident, $what:literal, $options:expr;)+) => {
        /// Options on the command line that the same policies take.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum OptionGroup {
            $($(#[$doc])+ $group,)+
        }

        impl OptionGroup {
            /// All groups, in the order of the help.
            pub const ALL: [OptionGroup; [$($what),+].len()] = [$(OptionGroup::$group),+];

            /// Its options, without their dashes.
            pub const fn options(self) -> &'static [&'static str] {
                match self {
                    $(OptionGroup::$group => $options,)+
                }
            }

            /// What the policies do that take these options. With turns by weight, those that make
            /// gangs pause no program, and bind none on some machines.
            pub const fn what(self) -> &'static str {
                match self {
                    $(OptionGroup::$group => $what,)+
                }
            }
        }
    };
}

option_groups! {
    /// The length of a turn.
    Quantum, "have quanta", &["quantum"];
    /// How programs take turns.
    Turns, "take turns", &["turns"];
    /// How programs are paused.
    Pauses, "can pause programs", &["max-frozen", "freezer"];
    /// Where programs run.
    Places, "can bind programs to CPUs", &["placement", "pinning"];
    /// Backfill.
    Fill, "give idle CPUs away", &["fill"];
    /// The user's goal.
    Goal, "choose by themselves", &["goal"];
    /// A table of slowdowns.
    Slowdowns, "predict slowdowns", &["slowdowns"];
    /// How programs are measured.
    Measuring, "measure programs", &["interval", "no-guard", "relearn"];
    /// Classes and slices.
    Slices, "measure programs and give slices", &["actuators", "quanta", "io-waits"];
    /// Groups of CPUs.
    Shuffling, "move threads between groups of CPUs", &[
        "groups", "group-by", "threshold", "hysteresis", "sort-by",
    ];
    /// How slowdowns are kept equal.
    Equality, "keep slowdowns equal", &[
        "peak-bandwidth", "training-limit", "fairness", "no-distribution", "no-sequences",
        "by-corunners", "no-phases", "optimal",
    ];
}

/// The options of gangs that take turns.
pub(crate) const OF_GANGS: &[OptionGroup] =
    &[OptionGroup::Quantum, OptionGroup::Turns, OptionGroup::Pauses, OptionGroup::Places];

impl OptionGroup {
    /// The group with an option, which is named without its dashes.
    pub fn of(option: &str) -> Option<OptionGroup> {
        OptionGroup::ALL.into_iter().find(|group| group.options().contains(&option))
    }
}
