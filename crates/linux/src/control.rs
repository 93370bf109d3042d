//! What cosched changes for a program: whether it runs, on which CPUs, and how it is scheduled.

pub mod autogroup;
pub mod freezer;
pub mod pinning;
pub mod run_cgroups;
pub mod scheduling;
pub(crate) mod spread;
