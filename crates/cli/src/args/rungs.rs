//! How programs are frozen and bound, by the names that users give it.

use clap::ValueEnum;
use cosched_linux::ground::{FreezerRung, PinningRung};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FreezerArg {
    /// cgroup.freeze of a writable cgroup v2.
    CgroupV2,
    /// The v1 freezer controller.
    CgroupV1,
    /// SIGSTOP and SIGCONT: needs no right.
    Signals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinningArg {
    /// The mask of every thread: needs no right.
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
