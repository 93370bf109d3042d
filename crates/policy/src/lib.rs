//! The scheduling policies: pure decisions on what should run.
//!
//! Each policy is one file: its first lines explain the problem, the idea and the algorithm.
//! Policies answer [`Cause`](cosched_core::Cause)s with a [`Plan`](cosched_core::Plan), and use no
//! clock and no operating system.
//!
//! | policy | programs that run together | file |
//! |---|---|---|
//! | `linux`, `linux-groups` | all, scheduled by the kernel | `unmanaged.rs` |
//! | `fcfs` | one program until it ends | `fcfs.rs` |
//! | `gang` | one program per quantum | `gang.rs` |
//! | `greedy` | as many threads per quantum as fit | `greedy.rs` |
//! | `cgreedy` | one program that misses the cache often, with one that does not | `cgreedy.rs` |
//! | `bandwidth` | programs that are predicted to slow each other down least | `bandwidth.rs` |
//! | `faithful` | all, with all threads of a program as equals | `faithful.rs` |
//! | `fair-progress` | programs with the least progress, in time alone | `fair_progress.rs` |
//! | `shuffling` | all, with threads that wait for locks alike on one socket | `shuffling.rs` |
//! | `minwait` | programs that have waited longest, chosen at every quantum | `minwait.rs` |
//! | `adaptive-greedy` | as `greedy`, with thread counts that are chosen per round | `greedy.rs`, `thread_limits.rs` |
//! | `adaptive-minwait` | as `minwait`, with thread counts that are chosen per quantum | `minwait.rs`, `thread_limits.rs` |
//! | `turns` | all; programs that have waited longest have most of the CPU time
//! ([`by_weight`](mod@by_weight)) | `by_weight.rs` |
//! | `auto` | as `linux`, or as `minwait` where that loses nothing that can be measured | `auto.rs`
//! |
//!
//! Common parts: programs of one group are one [unit](mod@unit). Gangs take turns in [rounds]. A
//! [quantum] is as long as the limit on frozen time allows. [placement] gives each program its
//! CPUs, and [thread_limits] gives malleable programs their thread limits. A [guard] tries out
//! whether what a policy does to a program helps it.
//!
//! The source of `gang` to `minwait`, with all sections, listings, tables and figures named here,
//! is the diploma thesis on scheduling multithreaded programs in chip multiprocessors with the
//! run-time system *Scaff*.
//!
//! [`Kind`] is the entry point: it names, checks and builds policies. [`advice`] finds thread
//! counts for whole runs, and [`molding`] those that programs are started with.

#![forbid(unsafe_code)]
// The module docs are for readers of this crate's code, and link to private items.
#![allow(rustdoc::private_intra_doc_links)]

pub mod advice;
mod auto;
mod bandwidth;
mod by_weight;
mod cgreedy;
mod fair_progress;
mod faithful;
mod fcfs;
mod gang;
mod goal;
mod greedy;
mod guard;
mod kind;
mod minwait;
pub mod molding;
mod placement;
pub mod quantum;
mod rounds;
mod shuffling;
mod thread_limits;
mod turns;
mod unit;
mod unmanaged;

#[cfg(test)]
mod on_an_engine;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod testkit;

pub use bandwidth::{Slowdowns, SlowdownsError};
pub use by_weight::binds_by_weight;
pub use fair_progress::FairOptions;
pub use faithful::{
    Basis, FaithfulOptions, Fixed, Found, Quanta, QuantaError, RANGE, Row, Trained, derive,
};
pub use goal::Goal;
pub use kind::{Demand, Kind, Options, Unfit, UnknownName};
pub use placement::{Placement, place};
pub use shuffling::{GroupBy, ShufflingOptions, Sockets, SocketsError, SortBy};
pub use turns::Turns;
