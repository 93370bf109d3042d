//! What cosched changes for a program: whether it runs, on which CPUs, and how it is scheduled.

pub mod autogroup;
pub mod ext;
pub(crate) mod freezer;
pub(crate) mod pinning;
pub mod run_cgroups;
pub(crate) mod scheduling;
pub(crate) mod spread;
