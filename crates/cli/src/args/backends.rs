//! How programs are paused and bound to CPUs: the names on the command line.

use clap::ValueEnum;
use cosched_linux::control::run_cgroups::{FreezerBackend, PinningBackend};

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

impl From<FreezerArg> for FreezerBackend {
    fn from(arg: FreezerArg) -> FreezerBackend {
        match arg {
            FreezerArg::CgroupV2 => FreezerBackend::CgroupV2,
            FreezerArg::CgroupV1 => FreezerBackend::CgroupV1,
            FreezerArg::Signals => FreezerBackend::Signals,
        }
    }
}

impl From<PinningArg> for PinningBackend {
    fn from(arg: PinningArg) -> PinningBackend {
        match arg {
            PinningArg::Affinity => PinningBackend::Affinity,
            PinningArg::Cpuset => PinningBackend::Cpuset,
        }
    }
}
