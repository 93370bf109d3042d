//! A machine made of arithmetic: the same policies, through the same engine, on computers that are
//! not there.
//!
//! [`Sim`] is a [`Machine`](cosched_core::Machine) like Linux is one: it takes steps and
//! reports events. Behind it lies a discrete-event model of four parts, each in a file:
//!
//! * [`hardware`]: CPUs, caches, buses, and what switching costs;
//! * [`model`]: programs as scripts of a few operations (compute, barrier, lock, queue, sleep);
//! * the kernel: which thread runs on which CPU ([`Kernel`]);
//! * contention: how fast running threads get on beside each other.
//!
//! Time is whole nanoseconds. Everything that is due at one instant is carried out before anything
//! is scheduled or priced anew, and what is due at the same time is ordered by a hash of the seed,
//! never by a number that a CPU or a program happens to have. Only additions, multiplications and
//! divisions are used, in a fixed order, so the same scenario and seed give the same result
//! everywhere.

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
mod transfer;
mod world;

pub use hardware::Hardware;
pub use kernel::{Kernel, Order};
pub use machine::{Costs, Halted, Job, Sim};
pub use model::{Model, ModelError};
pub use tally::{Interval, Tally};
pub use world::Switch;
