//! The ways to freeze, to bind and to share, as users name them.

/// How programs are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FreezerBackend {
    /// `cgroup.freeze` of version 2.
    CgroupV2,
    /// The freezer controller of version 1.
    CgroupV1,
    /// SIGSTOP and SIGCONT.
    Signals,
}

/// How programs are bound to CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PinningBackend {
    /// The mask of every thread.
    Affinity,
    /// The cpuset controller of either version.
    Cpuset,
}

/// How each program gets its own share of the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShareBackend {
    /// The cpu controller of either version.
    Cgroup,
    /// A session of its own, which the kernel's autogroup feature makes a group.
    Autogroup,
}

impl FreezerBackend {
    /// The name that users see.
    pub fn name(self) -> &'static str {
        match self {
            FreezerBackend::CgroupV2 => "cgroup-v2",
            FreezerBackend::CgroupV1 => "cgroup-v1",
            FreezerBackend::Signals => "signals",
        }
    }
}

impl PinningBackend {
    /// The name that users see.
    pub fn name(self) -> &'static str {
        match self {
            PinningBackend::Affinity => "affinity",
            PinningBackend::Cpuset => "cpuset",
        }
    }
}
