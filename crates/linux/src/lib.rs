//! A machine made of Linux: one module per kernel interface.
//!
//! Every module that reads files takes the folder to read them from, so that it is tested on
//! made-up machines. Modules that call the kernel are thin. This crate is the only place outside
//! the hook where `unsafe` is allowed.

pub mod affinity;
mod again;
pub mod attachable;
pub mod autogroup;
pub mod background;
pub mod barrier_stats;
pub mod bpf;
pub mod cgroup;
pub mod children;
pub mod clock;
pub mod counters;
mod cpu_clocks;
pub mod cpu_time;
pub mod dependencies;
pub mod files;
mod fork;
pub mod freezer;
mod heartbeat;
pub mod helper;
pub mod hook;
pub mod hotplug;
mod labels;
pub mod launch;
pub mod machine;
pub mod monitor;
pub mod onlookers;
pub mod open_files;
pub mod pinning;
pub mod pointers;
pub mod poll;
pub mod procfs;
pub mod rights;
pub mod run_cgroups;
mod run_delays;
pub mod runstate;
pub mod sched_attr;
pub mod scheduling;
pub mod scope;
pub mod sentinel;
pub mod shim;
pub mod signals;
mod spread;
pub mod stdout;
pub mod topology;
pub mod tree;
pub mod undo;
pub mod usable;
pub mod user_requests;
