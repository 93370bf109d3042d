//! The `cosched` command on the real kernel, with the permissions of the caller.
//!
//! Each test has a [`Place`](support::Place) of its own: a folder with its jobs file, its outputs
//! and its undo logs. Every process that comes from it carries a mark in its environment, so that a
//! test can find what is left, and end it. A test that cannot do its work on this machine prints a
//! line that begins with `skipped:`.
//!
//! Nothing here depends on the speed of the machine. What must come true is waited for with
//! patience. What must never happen is detected by orders of events, not by times.

#![allow(clippy::unwrap_used)]

mod after;
mod attach;
mod auto;
mod balance;
mod barrier_times;
mod barriers;
mod cases;
mod compared;
mod dependencies;
mod ends;
mod exec;
mod fair;
mod faithful;
mod faults;
mod guards;
mod helper_faults;
mod hostile;
mod input;
mod killed_together;
mod kills;
mod library;
mod limits;
mod lives;
mod malleable;
mod metrics;
mod odd_cgroups;
mod onlookers;
mod orphans;
mod outputs;
mod pauses;
mod policies;
mod real;
mod recover;
mod recover_by_shims;
mod rights;
mod set_uid;
mod shuffling;
mod spinning;
mod stat;
mod streams;
mod stuck;
mod support;
mod top;
mod traps;
mod turns;
mod unused;
mod weights;
