//! How programs are paused and bound to CPUs: the names on the command line.

use clap::ValueEnum;
use cosched_linux::ground::{FreezerRung, PinningRung};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FreezerArg {
    /// cgroup.freeze, in a cgroup v2 that this user may write to.
    CgroupV2,
    /// The freezer controller of cgroup v1.
    CgroupV1,
    /// SIGSTOP and SIGCONT; works without any rights.
    Signals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinningArg {
    /// The CPU mask of every thread; works without any rights.
    Affinity,
    /// The cpuset controller of either cgroup version.
    Cpuset,
}

impl From<FreezerArg> for FreezerRung {
    fn from(arg: FreezerArg) -> FreezerRung {
        match arg {
            FreezerArg::CgroupV2 => FreezerRung::CgroupV2,
            FreezerArg::CgroupV1 => FreezerRung::CgroupV1,
            FreezerArg::Signals => FreezerRung::Signals,
        }
    }
}

impl From<PinningArg> for PinningRung {
    fn from(arg: PinningArg) -> PinningRung {
        match arg {
            PinningArg::Affinity => PinningRung::Affinity,
            PinningArg::Cpuset => PinningRung::Cpuset,
        }
    }
}
