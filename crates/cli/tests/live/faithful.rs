//! `faithful` on the real kernel: the source of its figures, and the slices that it chooses.

use std::collections::BTreeSet;

use cosched_core::{Nanos, Why};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SchedAttr, SchedPolicy};
use cosched_linux::observe::counters::{self, Events};
use cosched_linux::process::tree::Process;
use cosched_policy::reasons::FaithfulReason;
use rustix::process::Signal;

use super::support::{Locker, Place, eventually, program};

/// The chosen slices, with the miss ratio, and whether the ratio comes from the profile.
fn choices(keys: &str, options: &str) -> Vec<(Nanos, Option<f64>, bool)> {
    let place = Place::new();
    let [mode, threads] = Locker::ARGUMENTS;
    let script = format!("exec {} {mode} {threads}", place.trap().display());
    let locks = program("locks", keys, &script);
    place.write(
        "table.toml",
        "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 1.0\nslice_milliseconds = 7\n",
    );
    let cosched =
        place.run(&[locks], &format!("--policy faithful --interval 20ms --no-guard {options}"));
    let locker = Locker::in_place(&place);
    eventually("a slice", || locker.is_changed());
    locker.stop(&place);
    let result = cosched.ended().result();
    let reasons = result.decisions.iter().flat_map(|decision| &decision.reasons);
    let choice = |why: &Why| match why.read()? {
        FaithfulReason::Slice { slice, miss_ratio, profiled, .. } => {
            Some((slice, miss_ratio, profiled))
        }
        _ => None,
    };
    reasons.filter_map(|reason| choice(&reason.why)).collect()
}

#[test]
fn without_counters_given_misses_are_used_and_reported() {
    if !Locker::can_be_changed() {
        return;
    }
    let known = choices("miss_ratio = 0.97", "");
    let unknown = choices("", "");
    assert!(!known.is_empty() && !unknown.is_empty());
    if counters::check(Events::HARDWARE).is_ok() {
        eprintln!("skipped: this machine has hardware counters");
        return;
    }
    let longest = (Nanos::from_millis(250), Some(0.97), true);
    assert!(known.iter().all(|choice| *choice == longest), "{known:?}");
    assert!(unknown.iter().all(|choice| (choice.1, choice.2) == (None, false)), "{unknown:?}");
}

#[test]
fn the_slices_are_those_of_the_given_table() {
    if !Locker::can_be_changed() {
        return;
    }
    let chosen = choices("", "--quanta table.toml");
    assert!(!chosen.is_empty());
    assert!(chosen.iter().all(|choice| choice.0 == Nanos::from_millis(7)), "{chosen:?}");
}

/// Section V-E2: with `--io-waits`, time asleep for anything but locks counts too.
#[test]
fn waits_that_are_not_for_locks_count_where_the_user_wants_it() {
    if !Locker::can_be_changed() {
        return;
    }
    for (option, counts) in [("", false), ("--io-waits", true)] {
        let place = Place::new();
        let script = format!("exec {} sleeps 8", place.trap().display());
        let options = format!("--policy faithful --no-guard --interval 50ms {option}");
        let cosched = place.run(&[program("sleeps", "", &script)], &options);
        let has_slice = |process: &Process| {
            let batch = format!("{:?}", SchedPolicy::Batch);
            let all = scheduled(process.pid);
            !all.is_empty() && all.iter().all(|(class, _)| *class == batch)
        };
        eventually("a slice", || place.marked().named("trap").first().is_some_and(has_slice));
        place.write("stop", "");
        let result = cosched.ended().result();
        let reasons = result.decisions.iter().flat_map(|decision| &decision.reasons);
        let chosen = |why: &Why| match why.read()? {
            FaithfulReason::Slice { slice, io_wait, .. } => Some((slice, io_wait)),
            _ => None,
        };
        let chosen: Vec<_> = reasons.filter_map(|reason| chosen(&reason.why)).collect();
        assert!(!chosen.is_empty(), "{option}");
        let is_long = |slice: Nanos| slice >= Nanos::from_millis(150);
        let waits = |io_wait: Option<f64>| io_wait.is_some_and(|part| part > 0.7);
        // Where other processes have the CPUs, a thread that wakes waits for one.
        let counted = chosen.iter().any(|(slice, io_wait)| is_long(*slice) && waits(*io_wait));
        assert_eq!(counted, counts, "{option}: {chosen:?}");
    }
}

/// Without the guard and without further options, a program has the whole of the paper's policy.
#[test]
fn without_the_guard_threads_have_class_and_slice() {
    if !Locker::can_be_changed() {
        return;
    }
    let place = Place::new();
    place.write(
        "table.toml",
        "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 1.0\nslice_milliseconds = 7\n",
    );
    let [mode, threads] = Locker::ARGUMENTS;
    let script = format!("exec {} {mode} {threads}", place.trap().display());
    let options = "--policy faithful --no-guard --interval 20ms --quanta table.toml";
    let cosched = place.run(&[program("locks", "", &script)], options);
    let locker = Locker::in_place(&place);
    let both = (format!("{:?}", SchedPolicy::Batch), Nanos::from_millis(7));
    eventually("class and slice", || scheduled(locker.process.pid) == [both.clone()].into());
    locker.stop(&place);
    place.nothing_is_left_of(&cosched.ended());
}

/// Class and slice of the threads of a process; those that end meanwhile are left out.
fn scheduled(pid: i32) -> BTreeSet<(String, Nanos)> {
    let tids = Proc::default().threads(pid).unwrap_or_default();
    let attrs = tids.into_iter().filter_map(|tid| sched_attr::get(tid).ok());
    attrs.map(|SchedAttr { policy, runtime, .. }| (format!("{policy:?}"), runtime)).collect()
}

/// The threads that compute and those that wait for work get slices of their own, which are undone
/// thread by thread, whatever ends cosched.
#[test]
fn each_stage_of_a_pipeline_has_its_slice_until_the_end() {
    if !Locker::can_be_changed() {
        return;
    }
    let batch =
        |milliseconds| (format!("{:?}", SchedPolicy::Batch), Nanos::from_millis(milliseconds));
    for signal in [Signal::INT, Signal::KILL] {
        let place = Place::new();
        place.write(
            "table.toml",
            "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 0.5\nslice_milliseconds = 40\n\
             [[row]]\nup_to = 1.0\nslice_milliseconds = 7\n",
        );
        let mut child = place.start(&place.trap(), &["stages"]);
        let pid = child.id() as i32;
        let found = scheduled(pid);
        let options = "attach --policy faithful --no-guard --actuators batch-stages \
                       --quanta table.toml --interval 50ms --out out";
        let pid_in_words = pid.to_string();
        let words: Vec<&str> = options.split_whitespace().chain([&*pid_in_words]).collect();
        let cosched = place.cosched(&words);
        let both = [batch(7), batch(40)].into_iter().collect();
        eventually("a slice for each stage", || scheduled(pid) == both);
        cosched.signal(signal);
        if signal == Signal::INT {
            let result = cosched.ended().with(130).result();
            let decisions = serde_json::to_value(&result.decisions).unwrap().to_string();
            assert!(decisions.contains("\"stages\""), "{decisions}");
            assert_eq!(scheduled(pid), found);
        }
        eventually("the original settings", || scheduled(pid) == found);
        place.write("stop", "");
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
}
