//! A simulated machine: runs the same policies, through the same engine, on computers that do not
//! exist.
//!
//! [`Sim`] is a [`Machine`](cosched_core::Machine) like Linux: it takes steps and reports events.
//! Behind it is a discrete-event model of four parts, each in a file:
//!
//! * [`hardware`]: CPUs, caches, buses, and the cost of switches;
//! * [`model`]: programs as scripts of a few operations (compute, barrier, lock, queue, sleep);
//! * the kernel: which thread runs on which CPU ([`Kernel`]);
//! * contention: the speed of running threads with their co-runners.
//!
//! Time is whole nanoseconds. All events of one instant are carried out before anything is
//! scheduled or priced again. Events of the same time are ordered by a hash of the seed, never by
//! the number of a CPU or a program. Only additions, multiplications and divisions are used, in a
//! fixed order, so the same scenario and seed give the same result everywhere.

#![forbid(unsafe_code)]

mod agenda;
mod alone;
mod balance;
mod behave;
mod by_weight;
mod cache;
mod contention;
mod delays;
mod donate;
mod fair;
pub mod hardware;
mod kernel;
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
pub use machine::{Halted, Job, Sim};
pub use model::{Model, ModelError};
pub use tally::{Interval, Tally};
pub use world::Switch;
