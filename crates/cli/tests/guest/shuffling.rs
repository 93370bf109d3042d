//! `shuffling` on a machine with several packages: threads really are where the plan says, even
//! when a package goes offline. Tested in the root of a tree of cgroups and in a cpuset below it,
//! where the kernel takes CPUs away differently.

use std::collections::BTreeSet;
use std::fs;

use cosched_core::{CpuSet, Why};
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::{Proc, ProcState};
use cosched_policy::reasons::ShufflingReason;
use rustix::process::Signal;

use super::guest_is_one_of;
use super::offline::Unplugged;
use super::support::{Cosched, Locker, Place, eventually};

const PACKAGES: [&str; 4] = ["0-1", "2-3", "4-5", "6-7"];

/// A program of eight threads on a machine with these packages, shuffled until there are threads on
/// each of them; `None` elsewhere. Groups are made once and then kept: a thread that is moved while
/// it sleeps arrives only when it has been woken.
fn shuffled() -> Option<(Place, Locker, Cosched)> {
    guest_is_one_of(&["packages", "numa"])?;
    let place = Place::new();
    let locker = Locker::of_threads("8", &place);
    let pid = locker.process.pid.to_string();
    let options = "attach --policy shuffling --no-guard --interval 200ms --threshold 0 \
                   --hysteresis 1 --group-by package";
    let words: Vec<&str> = options.split(' ').chain(["--out", "out", &pid]).collect();
    let cosched = place.cosched(&words);
    eventually("threads on all packages", || are_on(&PACKAGES, &locker));
    Some((place, locker, cosched))
}

/// The CPUs that each thread may use, and the one on which it ran last. Threads that end meanwhile
/// are left out.
fn places(locker: &Locker) -> Vec<(CpuSet, usize)> {
    let pid = locker.process.pid;
    let of = |tid: i32| {
        let mask = affinity::get(tid).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        // The 39th field; the second one ends with the last bracket.
        let cpu = stat.rsplit_once(") ")?.1.split(' ').nth(36)?.parse().ok()?;
        Some((mask, cpu))
    };
    Proc::default().threads(pid).unwrap_or_default().into_iter().filter_map(of).collect()
}

/// Whether all threads are bound to these packages, each package has some, and all run there.
fn are_on(packages: &[&str], locker: &Locker) -> bool {
    let packages: BTreeSet<String> = packages.iter().map(|cpus| (*cpus).to_owned()).collect();
    let places = places(locker);
    let used: BTreeSet<String> = places.iter().map(|(mask, _)| mask.to_string()).collect();
    used == packages && places.iter().all(|(mask, cpu)| mask.contains(*cpu))
}

#[test]
fn threads_run_on_planned_packages_and_are_restored_afterwards() {
    let Some((place, locker, cosched)) = shuffled() else { return };
    cosched.signal(Signal::INT);
    let ended = cosched.ended().with(130);
    let reasons = ended.result().decisions.into_iter().flat_map(|decision| decision.reasons);
    let is_of_four =
        |why: &Why| matches!(why.read(), Some(ShufflingReason::Shuffled { groups: 4, .. }));
    assert!(reasons.into_iter().any(|reason| is_of_four(&reason.why)));
    let all = CpuSet::first(8);
    assert!(places(&locker).iter().all(|(mask, _)| *mask == all), "{:?}", places(&locker));
    locker.stop(&place);
    place.no_trace_is_left_of(ended.pid);
}

/// Stops cosched, and waits until it is.
fn stop(cosched: &Cosched) {
    cosched.signal(Signal::STOP);
    let stat = || Proc::default().stat(cosched.pid()).unwrap();
    eventually("cosched's stop", || stat().state == ProcState::Stopped);
}

/// The last package.
const LAST: [usize; 2] = [6, 7];

#[test]
fn a_group_goes_offline_and_returns_with_its_package() {
    let Some((place, locker, cosched)) = shuffled() else { return };
    let unplugged = Unplugged::now(&LAST);
    eventually("threads on the others", || are_on(&PACKAGES[..3], &locker));
    drop(unplugged);
    eventually("threads on all packages again", || are_on(&PACKAGES, &locker));
    cosched.signal(Signal::INT);
    cosched.ended().with(130);
    let all = CpuSet::first(8);
    assert!(places(&locker).iter().all(|(mask, _)| *mask == all), "{:?}", places(&locker));
    locker.stop(&place);
}

/// The package goes offline and comes back while cosched is stopped.
#[test]
fn threads_are_rebound_after_an_unseen_loss_of_a_package() {
    let Some((place, locker, cosched)) = shuffled() else { return };
    let all = CpuSet::first(8);
    // Now and then the next round of shuffling binds just these threads.
    for _ in 0..4 {
        stop(&cosched);
        drop(Unplugged::now(&LAST));
        assert!(places(&locker).iter().any(|(mask, _)| *mask == all), "the kernel's doing");
        cosched.signal(Signal::CONT);
        eventually("threads on all packages", || are_on(&PACKAGES, &locker));
    }
    cosched.signal(Signal::INT);
    cosched.ended().with(130);
    assert!(places(&locker).iter().all(|(mask, _)| *mask == all), "{:?}", places(&locker));
    locker.stop(&place);
}

/// Half of the package of these threads is offline when cosched is killed.
#[test]
fn threads_are_restored_after_sigkill_with_a_cpu_offline() {
    let Some((place, locker, cosched)) = shuffled() else { return };
    stop(&cosched);
    let unplugged = Unplugged::now(&LAST[1..]);
    cosched.kill();
    eventually("the undo log's end", || place.undo_logs().is_empty());
    drop(unplugged);
    let all = CpuSet::first(8);
    assert!(places(&locker).iter().all(|(mask, _)| *mask == all), "{:?}", places(&locker));
    locker.stop(&place);
}
