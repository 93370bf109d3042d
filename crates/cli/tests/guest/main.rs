//! The `cosched` command on machines that are not at hand: real kernels in emulated machines.
//!
//! `guest/` makes such machines: several packages, caches or memory nodes, SMT, and a tree of
//! version 2 cgroups with every controller. These tests need such machines: where threads are
//! placed, what a cpuset of version 2 does, and what happens when a CPU goes offline.
//!
//! `COSCHED_GUEST` names the machine; anywhere else these tests skip, because they take CPUs
//! offline and expect to be alone. An emulated machine is slow, so programs are few and do little.

#![allow(clippy::unwrap_used)]

mod by_itself;
mod controllers;
mod ext;
mod offline;
mod placement;
mod shuffling;
#[path = "../live/support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;
mod twice;
mod unit;
mod unplug;
mod user;

/// The guest's variant; `None`, with a message, outside of any guest.
fn guest() -> Option<String> {
    let name = std::env::var("COSCHED_GUEST").ok();
    if name.is_none() {
        support::skip("this is no guest of `make test-guest`");
    }
    name
}

/// The guest's variant, if it is one of those that this test needs.
fn guest_is_one_of(names: &[&str]) -> Option<String> {
    let name = guest()?;
    if names.contains(&name.as_str()) {
        return Some(name);
    }
    support::skip(format!("nothing to test in the guest '{name}'"));
    None
}
