//! A simulated machine: runs the same policies, through the same engine, on computers that do not
//! exist.
//!
//! [`Sim`] is a [`Machine`](cosched_core::Machine) like Linux: it takes steps and reports events.
//! Behind it is a discrete-event model:
//!
//! | module | what it has |
//! |---|---|
//! | `machine` | the machine as the engine sees it: steps in, events out |
//! | `settings`, `samples` | a plan's settings in force; measurements for policies |
//! | `world` | the state, and the loop that advances time |
//! | `agenda`, `queue` | what is due: again and again; once |
//! | [`hardware`], `shape` | CPUs, caches, buses and costs; which CPUs share what |
//! | [`model`] | programs as scripts of a few operations |
//! | `behave`, `thread`, `tid` | how threads carry out scripts; one thread; its number |
//! | `sync`, `region` | barriers, locks and queues between threads; parallel regions |
//! | `transfer` | the data that a lock guards moves with it |
//! | `stuck` | finds that no thread can ever go on |
//! | `kernel`, `schedule` | kinds of kernels; how threads get and lose CPUs |
//! | `fair`, `place`, `balance` | order in a CPU's queue; a thread's CPU; moves between CPUs |
//! | `solaris` | priorities as in OpenSolaris |
//! | `by_weight` | turns by weights of CPU groups |
//! | `donate` | the barrier at which threads give their time away |
//! | `contention` | the speed of threads with co-runners |
//! | `prices` | how threads share caches and buses |
//! | `cache` | lines that a program loses between its turns |
//! | `alone` | how long work takes alone |
//! | `delays`, `tally` | waits at barriers; how threads lost their CPUs |
//!
//! Time is whole nanoseconds. All events of one instant are carried out before anything is
//! scheduled or priced again. Events of the same time are ordered by a hash of the seed, never by
//! the number of a CPU or a program. Only additions, multiplications and divisions are used, in a
//! fixed order, so the same scenario and seed give the same result everywhere.

#![forbid(unsafe_code)]

mod agenda;
mod alone;
mod arrivals;
mod balance;
mod behave;
mod by_weight;
mod contention;
mod cpu;
mod delays;
mod donate;
mod eviction;
mod fair;
pub mod hardware;
mod kernel;
mod load_control;
mod lock;
mod machine;
pub mod model;
mod place;
mod prices;
mod queue;
mod region;
mod samples;
mod schedule;
mod settings;
mod shape;
mod solaris;
mod stuck;
mod sync;
mod tally;
#[cfg(test)]
mod tests;
mod thread;
mod tid;
mod transfer;
mod world;

pub use hardware::{Costs, Hardware};
pub use kernel::{Kernel, Order};
pub use machine::{Halted, Sim, SimulatedJob};
pub use model::{Model, ModelError};
pub use tally::{Interval, Tally};
pub use world::Switch;
