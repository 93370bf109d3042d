//! Control groups: named sets of processes that the kernel freezes, binds and weighs together.
//!
//! A cgroup is a folder. Making one is `mkdir`, moving a process in is writing its number to
//! `cgroup.procs`, and everything else is writing small files. There are two versions, and cosched
//! must work with both, also at once:
//!
//! - **v2** is one tree. Freezing (`cgroup.freeze`) is in every cgroup except the root. `cpuset`
//!   and `cpu` are there only where each ancestor enables them, by `cgroup.subtree_control`, and a
//!   cgroup that enables controllers may hold no process itself (`enable_controller`).
//! - **v1** is one tree per controller (or per few). `freezer` has its own file format; `cpuset`
//!   groups start empty and take no process before CPUs and memory nodes are named.
//!
//! The parts: [`Hierarchies`] finds the trees and the caller's own place in each. [`Dir`] is one
//! folder. [`FreezeSwitch`] freezes and thaws one on the hot path. `WeightSwitch` gives one its
//! weight. `bind_to` fills a cpuset. `enable_controller` enables a controller for children.
//! [`name_of`] is the name of a program's cgroup, so that the process that undoes a run finds it.

mod controllers;
mod cpuset;
mod dir;
mod find;
mod freeze;
mod mark;
mod memory;
mod real_time;
pub mod scope;
mod weight;

use cosched_core::ProgramId;

pub use controllers::EnableError;
pub(crate) use controllers::{LEAF, PASSED_ON, enable_controller, leaf_below};
pub(crate) use cpuset::bind_to;
#[cfg(test)]
pub(crate) use dir::MOST_GROUPS;
pub use dir::{Dir, PROBE, Version};
pub use find::{Hierarchies, Hierarchy};
pub use freeze::FreezeSwitch;
pub use mark::Mark;
pub(crate) use mark::{is_part_of_program, make_part_of_program};
pub use memory::memory_left;
pub(crate) use real_time::{grant_real_time, real_time_budget, share_real_time};
pub(crate) use weight::{Weight, WeightSwitch, can_be_idle, even_out, weigh_as_threads};

/// The start of the name of a run's cgroup; the number of its cosched follows.
pub const RUN: &str = "cosched-";

/// Whether a name is such a start with numbers behind it: where a name was taken, there are two.
pub(crate) fn is_numbered(name: &str, start: &str) -> bool {
    let numbers = name.strip_prefix(start).map(|rest| rest.split('-'));
    numbers.is_some_and(|mut numbers| numbers.all(|number| number.parse::<u32>().is_ok()))
}

/// The start of the name of a group for some processes of a program, below that of the program; a
/// number follows.
pub(crate) const UNIT: &str = "unit-";

/// The group for all other processes of a program, where the program's group may hold none itself.
pub(crate) const REST: &str = "rest";

/// The name of a program's cgroup in that of its run.
pub fn name_of(program: ProgramId) -> String {
    format!("p{}-{}", program.slot, program.generation)
}

#[cfg(test)]
pub(crate) mod live;
