//! `shuffling` on the real kernel: threads are bound to groups of CPUs, one by one, and get their
//! original masks back.

use cosched_core::CpuSet;
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::observe::counters::{self, Events};
use rustix::process::Signal;

use super::support::{Cosched, Locker, Place, eventually, skip};

/// The CPUs that the test may use, and two of them, each a group.
struct Groups {
    found: CpuSet,
    each: [CpuSet; 2],
}

impl Groups {
    /// `None`, with a message, where there are not two CPUs.
    fn here() -> Option<Groups> {
        let found = affinity::get(0).unwrap();
        let one = |n| found.iter().skip(n).take(1).collect::<CpuSet>();
        if found.len() < 2 {
            skip("with one CPU there is nothing to shuffle between");
            return None;
        }
        Some(Groups { found, each: [one(0), one(1)] })
    }

    fn words(&self) -> String {
        self.each.map(|group| group.to_string()).join(",")
    }

    fn attach(&self, place: &Place, locker: &Locker) -> Cosched {
        self.attach_with(&["--no-guard"], place, locker)
    }

    fn attach_with(&self, guard: &[&str], place: &Place, locker: &Locker) -> Cosched {
        let (groups, pid) = (self.words(), locker.process.pid.to_string());
        let options = ["--policy", "shuffling", "--interval", "20ms", "--threshold", "0"];
        let options = [&options[..], guard].concat();
        let named = ["--groups", &groups, "--out", "out", &pid];
        place.cosched(&[&["attach"][..], &options, &named].concat())
    }

    /// Whether threads are in both groups.
    fn are_in_use(&self, locker: &Locker) -> bool {
        let masks = masks(locker);
        self.each.iter().all(|group| masks.contains(group))
    }

    fn has_original_settings(&self, locker: &Locker) -> bool {
        let masks = masks(locker);
        !masks.is_empty() && masks.iter().all(|mask| *mask == self.found)
    }
}

/// The CPUs of each thread; those that end meanwhile are left out.
fn masks(locker: &Locker) -> Vec<CpuSet> {
    let tids = Proc::default().threads(locker.process.pid).unwrap_or_default();
    tids.into_iter().filter_map(|tid| affinity::get(tid).ok()).collect()
}

#[test]
fn threads_are_bound_to_groups_and_ctrl_c_restores_each() {
    let Some(groups) = Groups::here() else { return };
    let place = Place::new();
    let locker = Locker::start(&place);
    let cosched = groups.attach(&place, &locker);
    eventually("threads in both groups", || groups.are_in_use(&locker));
    cosched.signal(Signal::INT);
    let ended = cosched.ended().with(130);
    assert!(groups.has_original_settings(&locker), "{:?}", masks(&locker));
    let decisions = serde_json::to_value(&ended.result().decisions).unwrap().to_string();
    assert!(decisions.contains("\"shuffled\""), "{decisions}");
    assert_eq!(ended.result().backends.pinning, "affinity");
    locker.goes_on(&place);
    place.no_trace_is_left_of(ended.pid);
    assert_eq!(locker.stop(&place), Some(7));
}

#[test]
fn the_guard_compares_groups_with_the_original_masks() {
    let Some(groups) = Groups::here() else { return };
    let place = Place::new();
    let locker = Locker::start(&place);
    let cosched = groups.attach_with(&[], &place, &locker);
    eventually("threads in both groups", || groups.are_in_use(&locker));
    eventually("the original masks", || groups.has_original_settings(&locker));
    eventually("threads in both groups again", || groups.are_in_use(&locker));
    cosched.signal(Signal::INT);
    let ended = cosched.ended().with(130);
    assert!(groups.has_original_settings(&locker), "{:?}", masks(&locker));
    let decisions = serde_json::to_value(&ended.result().decisions).unwrap().to_string();
    assert!(decisions.contains("\"groups-tried\""), "{decisions}");
    assert_eq!(locker.stop(&place), Some(7));
}

#[test]
fn detach_restores_each_thread_and_says_so() {
    let Some(groups) = Groups::here() else { return };
    let place = Place::new();
    let locker = Locker::start(&place);
    let cosched = groups.attach(&place, &locker);
    eventually("threads in both groups", || groups.are_in_use(&locker));
    let mut detach = place.user.command(&place.executable);
    detach
        .args(["detach", &locker.process.pid.to_string()])
        .env("XDG_RUNTIME_DIR", place.path("run"));
    let output = detach.output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("its threads have their original CPUs"), "{said}");
    assert!(groups.has_original_settings(&locker), "{:?}", masks(&locker));
    place.no_trace_is_left_of(cosched.ended().with(1).pid);
    assert_eq!(locker.stop(&place), Some(7));
}

#[test]
fn every_thread_is_restored_after_sigkill() {
    let Some(groups) = Groups::here() else { return };
    let place = Place::new();
    let locker = Locker::start(&place);
    let cosched = groups.attach(&place, &locker);
    let pid = cosched.pid();
    eventually("threads in both groups", || groups.are_in_use(&locker));
    cosched.kill();
    eventually("the original masks", || groups.has_original_settings(&locker));
    locker.goes_on(&place);
    assert_eq!(locker.stop(&place), Some(7));
    eventually("the end of the sentinel's work", || place.undo_logs().is_empty());
    place.no_trace_is_left_of(pid);
}

#[test]
fn a_thread_bound_by_others_is_left_alone() {
    let Some(groups) = Groups::here() else { return };
    let place = Place::new();
    let locker = Locker::start(&place);
    let main = locker.process.pid;
    affinity::set(main, &groups.each[1]).unwrap();
    let cosched = groups.attach(&place, &locker);
    eventually("threads in both groups", || groups.are_in_use(&locker));
    assert_eq!(affinity::get(main), Ok(groups.each[1]));
    cosched.signal(Signal::INT);
    cosched.ended().with(130);
    assert_eq!(affinity::get(main), Ok(groups.each[1]));
    locker.stop(&place);
}

/// Misses of single threads need counters, which most virtual machines do not have.
#[test]
fn sorting_by_misses_is_refused_where_none_can_be_counted() {
    let Some(groups) = Groups::here() else { return };
    let place = Place::new();
    let words = groups.words();
    let start = ["exec", "--policy", "shuffling", "--groups", &words, "--sort-by", "misses"];
    let ended = place.cosched(&[&start[..], &["--", "touch", "started"]].concat()).ended();
    if counters::check(Events::HARDWARE).is_ok() {
        ended.with(0);
        assert!(place.path("started").exists());
        return;
    }
    ended.with(2).saying(&["--sort-by misses", "of each thread", "--sort-by lock"]);
    assert!(!place.path("started").exists());
}

#[test]
fn impossible_groups_are_refused_before_anything_starts() {
    let Some(groups) = Groups::here() else { return };
    let place = Place::new();
    let words = groups.words();
    let foreign = format!("{words},1023");
    for (options, said) in [
        (["--groups", foreign.as_str()], ": CPU 1023 may not be used here"),
        (["--groups", "0"], "more than one group"),
        (["--quanta", words.as_str()], "--quanta"),
    ] {
        let start = ["exec", "--policy", "shuffling"];
        let program = ["--", "touch", "started"];
        let arguments = [&start[..], &options, &program].concat();
        place.cosched(&arguments).ended().with(2).saying(&[said]);
        assert!(!place.path("started").exists());
    }
}
