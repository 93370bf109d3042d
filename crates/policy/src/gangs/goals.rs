//! Turns by weight, as the user's goal wants them.

use cosched_core::Policy;

use crate::common::goal::Goal;
use crate::descriptor::{Build, Descriptor, Gangs, OF_GANGS, OptionGroup};
use crate::gangs::fcfs::Fcfs;
use crate::gangs::minwait::Minwait;
use crate::gangs::turns::Turns;
use crate::kind::{Options, Unfit};

/// Ours: turns by weight, as [`minwait`](crate::gangs::minwait) gives them.
pub(crate) const TURNS: Descriptor = Descriptor {
    gangs: Gangs::Chosen,
    turns: Turns::Weight,
    options: &[OF_GANGS, &[OptionGroup::Goal]],
    // `auto` decides where the kernel has no weights.
    params: &["gangs", "held", "auto", "common", "molding"],
    ..Descriptor::of_gangs(
        "turns",
        "every program runs, the one in turn with the largest weight; the others use the CPUs that \
         it leaves idle",
        |options| {
            let balanced = |options: &_| Ok(Box::new(Minwait::sharing(options)) as _);
            Goal::build(options, balanced)
        },
    )
};

impl Goal {
    /// The policy for these options: `balanced` builds the one without a special aim.
    pub(crate) fn build(
        options: &Options,
        balanced: Build,
    ) -> Result<Box<dyn Policy + Send>, Unfit> {
        match options.goal {
            Goal::Balanced => balanced(options),
            Goal::Throughput => Ok(Box::new(Fcfs::default())),
            Goal::Fair => Ok(Box::new(Minwait::fair(options))),
            Goal::Responsive => {
                let quantum = options.quantum.min(options.params.common.short_quantum);
                balanced(&Options { quantum, ..options.clone() })
            }
        }
    }
}
