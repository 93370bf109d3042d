//! The `cosched` command on the real kernel, with whatever rights the caller has.
//!
//! Each test has a [`Place`](support::Place) of its own: a folder with its workload, its outputs
//! and its undo logs. Every process that comes from it carries a mark in its environment, so that a
//! test can look for what is left, and end it. What a test cannot do on this machine it says in a
//! line that begins with `skipped:`.
//!
//! Nothing here depends on how fast the machine is: what must come true is waited for with
//! patience, and what must never be is told from orders of events, not from times.

#![allow(clippy::unwrap_used)]

mod after;
mod attach;
mod auto;
mod barriers;
mod bonds;
mod ends;
mod exec;
mod fair;
mod faithful;
mod faults;
mod hostile;
mod input;
mod kills;
mod limits;
mod lives;
mod malleable;
mod metrics;
mod onlookers;
mod orphans;
mod outputs;
mod policies;
mod recover;
mod rights;
mod shuffling;
mod stat;
mod streams;
mod stuck;
mod support;
mod top;
mod traps;
mod turns;
mod weights;
