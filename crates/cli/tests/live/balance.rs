//! `balance` on the real kernel: siblings are bound to different CPUs, and get their original masks
//! back.

use std::collections::BTreeMap;

use cosched_core::CpuSet;
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use rustix::process::Signal;

use super::support::{Cosched, Locker, Place, eventually, skip};

/// The CPUs that the test may use; `None`, with a message, where there is only one.
fn several_cpus() -> Option<CpuSet> {
    let found = affinity::get(0).unwrap();
    if found.len() < 2 {
        skip("on one CPU no thread is kept from its siblings");
        return None;
    }
    Some(found)
}

fn attach(place: &Place, locker: &Locker) -> Cosched {
    let pid = locker.process.pid.to_string();
    place.cosched(&["attach", "--policy", "balance", "--out", "out", &pid])
}

fn masks(locker: &Locker) -> Vec<CpuSet> {
    let tids = Proc::default().threads(locker.process.pid).unwrap_or_default();
    tids.into_iter().filter_map(|tid| affinity::get(tid).ok()).collect()
}

/// Whether no CPU may be used by more threads than an even division gives.
fn are_apart(locker: &Locker, found: &CpuSet) -> bool {
    let masks = masks(locker);
    let mut threads: BTreeMap<usize, usize> = BTreeMap::new();
    for cpu in masks.iter().flat_map(|mask| mask.iter()) {
        *threads.entry(cpu).or_default() += 1;
    }
    let most = masks.len().div_ceil(found.len());
    masks.len() > 1 && threads.values().all(|threads| *threads <= most)
}

fn are_restored(locker: &Locker, found: &CpuSet) -> bool {
    let masks = masks(locker);
    !masks.is_empty() && masks.iter().all(|mask| mask == found)
}

#[test]
fn siblings_are_kept_apart_and_ctrl_c_restores_each() {
    let Some(found) = several_cpus() else { return };
    let place = Place::new();
    let locker = Locker::start(&place);
    assert!(!are_apart(&locker, &found));
    let cosched = attach(&place, &locker);
    eventually("threads on different CPUs", || are_apart(&locker, &found));
    cosched.signal(Signal::INT);
    let ended = cosched.ended().with(130);
    assert!(are_restored(&locker, &found), "{:?}", masks(&locker));
    let decisions = serde_json::to_value(&ended.result().decisions).unwrap().to_string();
    assert!(decisions.contains("\"kept-apart\""), "{decisions}");
    assert_eq!(ended.result().backends.pinning, "affinity");
    locker.goes_on(&place);
    place.no_trace_is_left_of(ended.pid);
    assert_eq!(locker.stop(&place), Some(7));
}

#[test]
fn a_killed_cosched_leaves_no_thread_bound() {
    let Some(found) = several_cpus() else { return };
    let place = Place::new();
    let locker = Locker::start(&place);
    let cosched = attach(&place, &locker);
    eventually("threads on different CPUs", || are_apart(&locker, &found));
    cosched.kill();
    eventually("the original masks", || are_restored(&locker, &found));
    locker.goes_on(&place);
    assert_eq!(locker.stop(&place), Some(7));
}

#[test]
fn balance_is_a_variant_of_compare() {
    let place = Place::new();
    let variants = ["--policies", "linux,balance", "--runs", "1"];
    let programs = ["--", "true", ":::", "true"];
    let ended = place.cosched(&[&["compare"][..], &variants, &programs].concat()).ended().with(0);
    assert!(ended.stdout.contains("balance"), "{}", ended.stdout);
}
