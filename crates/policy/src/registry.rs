//! What stands behind the name of a policy, and how one is built.

use cosched_core::{CpuSet, Policy, Topology};

use crate::constant::Param;
use crate::descriptor::{Descriptor, Need, OptionGroup};
use crate::gangs::by_weight::ByWeightPolicy;
use crate::gangs::held::HeldPrograms;
use crate::gangs::quantum::{LONGEST, SHORTEST};
use crate::gangs::turns::Turns;
use crate::gangs::{bandwidth, cgreedy, fcfs, gang, goals, greedy, minwait};
use crate::kind::{Kind, Options, Unfit, policies};
use crate::molding::ReportsMolding;
use crate::params::Params;
use crate::{auto, balance, fair_progress, faithful, shuffling, unmanaged};

macro_rules! descriptors {
    ($($(#[$default:ident])? $kind:ident: $descriptor:path,)+) => {
        impl Kind {
            /// What it is and can do.
            pub const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $(Kind::$kind => &$descriptor,)+
                }
            }
        }
    };
}

policies!(descriptors);

impl Kind {
    /// The constants that it uses, with their values.
    pub fn constants(self, params: &Params) -> Vec<Param> {
        params.of(self.descriptor().params)
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
        if !self.needs(Need::Sockets) {
            return Ok(());
        }
        let checked = options.shuffling.sockets.check(topology, usable);
        checked.map_err(|why| Unfit::NoSockets { policy: self, why })
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
        let holds = self.takes(OptionGroup::Goal) && options.goal.lets_end();
        let held = || HeldPrograms::new(options.params.held);
        let policy: Box<dyn Policy + Send> = match by_weight {
            true if holds => Box::new(ByWeightPolicy::holding(freezes, held())),
            true => Box::new(ByWeightPolicy::new(freezes)),
            false => freezes,
        };
        Ok(if self.takes(OptionGroup::Goal) { Box::new(ReportsMolding(policy)) } else { policy })
    }
}
