//! The scheduling policies: pure decisions on what should run.
//!
//! Each policy is one file: its first lines explain the problem, the idea and the algorithm.
//! Policies answer [`Cause`](cosched_core::Cause)s with a [`Plan`](cosched_core::Plan), and use no
//! clock and no operating system.
//!
//! | policy | programs that run together | file |
//! |---|---|---|
//! | `linux`, `linux-groups`, `linux-weights` | all, scheduled by the kernel | `unmanaged.rs` |
//! | `fcfs` | one program until it ends | `gangs/fcfs.rs` |
//! | `gang` | one program per quantum | `gangs/gang.rs` |
//! | `greedy` | as many threads per quantum as fit | `gangs/greedy.rs` |
//! | `cgreedy` | one that misses the cache often, with one that does not | `gangs/cgreedy.rs` |
//! | `bandwidth` | those that slow each other down least, as predicted | `gangs/bandwidth.rs` |
//! | `minwait` | those that have waited longest, at every quantum | `gangs/minwait.rs` |
//! | `adaptive-greedy` | as `greedy`; chooses thread counts per round | `gangs/thread_limits.rs` |
//! | `adaptive-minwait` | as `minwait`; chooses thread counts per quantum | the same |
//! | `request-greedy` | as `greedy`, with the requested counts of each round | the same |
//! | `request-minwait` | as `minwait`, with the requested counts of each quantum | the same |
//! | `turns` | all; those that have waited longest get most CPU time | `gangs/by_weight.rs` |
//! | `faithful` | all, with all threads of a program as equals | `faithful.rs` |
//! | `fair-progress` | those with the least progress, in solo time | `fair_progress.rs` |
//! | `shuffling` | all, with threads that wait for locks alike on one socket | `shuffling.rs` |
//! | `balance` | all, with threads of a program on different CPUs | `balance.rs` |
//! | `auto` | all, or as `minwait` where that loses nothing | `auto.rs` |
//!
//! Common parts: programs of one group are one [unit](mod@common::unit). Gangs take turns in
//! [rounds](gangs::rounds). A [quantum](gangs::quantum) is as long as the limit on frozen time
//! allows. [Placement](gangs::placement) gives each program its CPUs, and
//! [thread limits](gangs::thread_limits) are for malleable programs. A [guard](common::guard) tries
//! out whether what a policy does to a program helps it. The constants of each policy stand in a
//! [`params.rs`](params) beside it.
//!
//! The source of `gang` to `minwait`, with all sections, listings, tables and figures named here,
//! is the diploma thesis on scheduling multithreaded programs in chip multiprocessors with the
//! run-time system *Scaff*.
//!
//! [`Kind`] is the entry point: it names, checks and builds policies. [`advice`] finds thread
//! counts for whole runs, and [`molding`] those that programs are started with. [`between_regions`]
//! says how long their threads spin there.

#![forbid(unsafe_code)]
// The module docs are for readers of this crate's code, and link to private items.
#![allow(rustdoc::private_intra_doc_links)]

pub mod advice;
mod auto;
mod balance;
pub mod between_regions;
mod common;
mod constant;
mod descriptor;
mod fair_progress;
mod faithful;
pub mod gangs;
mod kind;
pub mod molding;
mod params;
pub mod reasons;
mod registry;
mod shuffling;
mod unmanaged;

pub use common::goal::Goal;
pub use constant::Param;
pub use descriptor::{Descriptor, GangCount, Gangs, Learns, Need, OptionGroup, RoundLength};
pub use fair_progress::FairOptions;
pub use faithful::{FaithfulOptions, NOTHING_TO_WIN, Quanta, QuantaError, RANGE, at_locks};
pub use gangs::bandwidth::{Slowdowns, SlowdownsError};
pub use gangs::by_weight::binds_by_weight;
pub use gangs::placement::{Placement, place};
pub use gangs::turns::Turns;
pub use kind::{Demand, Kind, Options, Unfit, UnknownName};
pub use params::{ParamError, Params};
pub use shuffling::{GroupBy, ShufflingOptions, Sockets, SocketsError, SortBy};
