//! What programs do: their threads, counters, code, barriers and IPC dependencies.

pub mod barrier_stats;
pub mod counters;
pub(crate) mod cpu_clocks;
pub(crate) mod dependencies;
pub mod monitor;
pub mod pointers;
pub(crate) mod ring;
pub(crate) mod run_delays;
pub mod runstate;
pub(crate) mod spinning;
