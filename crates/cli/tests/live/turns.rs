//! Turns by weight on the real kernel: the default. No program is stopped, and weights say which
//! has its turn.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use cosched_core::{Aspect, CpuSet, Refusal};
use cosched_linux::kernel::affinity;
use cosched_linux::process::tree::Process;
use cosched_policy::reasons::MinwaitReason;
use rustix::process::Signal;
use serde_json::Value;

mod unnoticed;
mod within;

use super::kills::{firsts, kills, moment, recovers_nothing, restored};
use super::support::{Place, User, cgroups_of, eventually, program, skip};

/// As many processes as the machine has CPUs, each of which computes until there is a file `stop`.
const BUSY: &str = "work() { while [ ! -e stop ]; do i=0; \
    while [ $i -lt 20000 ]; do i=$((i+1)); done; done; }\n\
    for one in $(seq $(nproc)); do work & done\nwait";
const NAMES: [&str; 3] = ["a", "b", "c"];
/// The weight of a group in turn, and of one without a part: version 2 and version 1.
const IN_TURN: [&str; 2] = ["10000", "262144"];
const ORDINARY: [&str; 2] = ["100", "1024"];

/// Three programs, each of which can use all CPUs and tells its first process.
pub(super) fn three() -> [String; 3] {
    let threads = format!("threads = {}", cpus().len());
    NAMES.map(|name| program(name, &threads, &format!("echo $$ > {name}; {BUSY}")))
}

pub(super) fn cpus() -> CpuSet {
    affinity::get(0).unwrap()
}

/// Whether the caller has CPU groups that can be idle, found once; says so if not.
pub(super) fn caller_has_groups() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| has_groups(&Place::new()))
}

/// Whether this user has CPU groups that can be idle; says so if not.
fn has_groups(place: &Place) -> bool {
    let report = place.cosched(&["doctor", "--json"]).ended().with(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let rights = report["rights"].as_array().unwrap();
    let idle = rights.iter().find(|right| right["name"] == "idle-groups").unwrap();
    let has = idle["available"] == true;
    if !has {
        skip("this user has no CPU groups that can be idle");
    }
    has
}

/// A place of the caller's, where programs can take turns by weight.
fn place() -> Option<Place> {
    caller_has_groups().then(Place::new)
}

fn all_started(place: &Place) -> [Process; 3] {
    let have_started = || NAMES.iter().all(|name| place.read(name).ends_with('\n'));
    eventually("the programs", have_started);
    firsts(place).try_into().unwrap()
}

/// The CPU group that a run has made for a process.
fn group(process: Process) -> Option<PathBuf> {
    cgroups_of(process.pid).into_iter().find(|folder| folder.join("cpu.idle").exists())
}

/// What `cpu.idle` and the weight of a process' group are.
fn weights(process: Process) -> Option<(String, String)> {
    let group = group(process)?;
    let read = |file: &str| Some(fs::read_to_string(group.join(file)).ok()?.trim().to_owned());
    Some((read("cpu.idle")?, read("cpu.weight").or_else(|| read("cpu.shares"))?))
}

fn has_weight(process: Process, of: [&str; 2]) -> bool {
    weights(process).is_some_and(|(idle, weight)| idle == "0" && of.contains(&weight.as_str()))
}

pub(super) fn is_filler(process: Process) -> bool {
    weights(process).is_some_and(|(idle, _)| idle == "1")
}

/// Which one has its turn while all others are fillers.
fn in_turn(programs: &[Process]) -> Option<Process> {
    let (turn, others): (Vec<Process>, _) =
        programs.iter().partition(|process| has_weight(**process, IN_TURN));
    let others: Vec<Process> = others;
    (turn.len() == 1 && others.into_iter().all(is_filler)).then(|| turn[0])
}

/// Waits until each program has had its turn from here on.
fn turns_go_round(programs: &[Process]) {
    for target in programs {
        eventually("a program's turn", || in_turn(programs) == Some(*target));
    }
}

#[test]
fn the_default_stops_no_program() {
    let Some(place) = place() else { return };
    let cosched = place.run(&three(), "--quantum 20ms");
    let programs = all_started(&place);
    let marked = place.marked();
    let (mut turns, mut last) = ([0; 3], None);
    eventually("many turns of each", || {
        let held: Vec<Process> =
            marked.programs().into_iter().filter(|process| marked.is_held(*process)).collect();
        assert!(held.is_empty(), "{held:?}");
        let turn = in_turn(&programs);
        if let Some(turn) = turn.filter(|_| turn != std::mem::replace(&mut last, turn)) {
            turns[programs.iter().position(|process| *process == turn).unwrap()] += 1;
        }
        turns.iter().all(|turns| *turns >= 3)
    });
    place.write("stop", "");
    let ended = cosched.ended().with(0);
    let result = ended.result();
    assert_eq!((result.policy.as_str(), result.backends.freezing.as_str()), ("turns", "none"));
    assert!(result.backends.pinning.ends_with("turns by weight"));
    for program in &result.programs {
        assert!(program.turns.len() >= 3, "{}: {:?}", program.name, program.turns);
        assert_eq!(program.longest_frozen_seconds, 0.0);
        assert_eq!(program.timeline.len(), 1, "it ran from its start to its end");
    }
    assert_eq!(result.own.switch_gap, None, "a switch that freezes has a gap");
    place.nothing_is_left_of(&ended);
}

#[test]
fn the_program_in_turn_has_the_largest_weight() {
    let Some(place) = place() else { return };
    let cosched = place.run(&three(), "--quantum 100ms");
    let programs = all_started(&place);
    turns_go_round(&programs);
    turns_go_round(&programs);
    place.write("stop", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

/// Every process is where the test itself is, and has the mask that it was born with.
fn all_is_as_before(place: &Place) {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    // The kernel shows a process that is about to end in the root of its hierarchies.
    eventually("the programs' own cgroups", || {
        place.marked().programs().into_iter().all(|process| {
            let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", process.pid));
            cgroups.map_or(true, |cgroups| cgroups == own)
        })
    });
    for thread in threads(place) {
        assert!(affinity::get(thread).map_or(true, |mask| mask == cpus()), "{thread} is bound");
    }
}

/// All threads of the programs.
fn threads(place: &Place) -> Vec<i32> {
    let proc = cosched_linux::kernel::procfs::Proc::default();
    let programs = place.marked().programs();
    programs.iter().flat_map(|process| proc.threads(process.pid).unwrap_or_default()).collect()
}

#[test]
fn killed_cosched_leaves_no_weights() {
    for kill in 0..kills() {
        let Some(place) = place() else { return };
        let cosched = place.run(&three(), "--quantum 5ms");
        let pid = cosched.pid();
        // Every other one dies in the middle of many switches, the rest while they prepare.
        if kill % 2 == 1 {
            turns_go_round(&all_started(&place));
        }
        std::thread::sleep(moment(kill));
        cosched.kill();
        restored(&place, pid);
        all_is_as_before(&place);
        let marked = place.marked();
        for process in firsts(&place) {
            assert!(!marked.is_held(process));
        }
        recovers_nothing(&place);
        place.no_trace_is_left_of(pid);
        // No program lost its end.
        place.write("stop", "");
        eventually("the programs' end", || marked.all().is_empty());
    }
}

#[test]
fn a_stopped_cosched_leaves_no_program_idle() {
    let Some(place) = place() else { return };
    let cosched = place.run(&three(), "--quantum 20ms");
    let programs = all_started(&place);
    for _ in 0..2 {
        turns_go_round(&programs);
        cosched.signal(Signal::STOP);
        eventually("equal weights", || {
            programs.iter().all(|process| has_weight(*process, ORDINARY))
        });
        // The sentinel evens them out again and again.
        std::thread::sleep(std::time::Duration::from_secs(2));
        cosched.signal(Signal::CONT);
    }
    turns_go_round(&programs);
    place.write("stop", "");
    let ended = cosched.ended().with(0);
    let stops = |slot: u16| {
        let deviations = ended.result().deviations.into_iter();
        let are_stops = deviations.filter(|one| {
            let what = (one.program.slot, one.what, one.why);
            what == (slot, Aspect::Turn, Refusal::CoschedStopped)
        });
        are_stops.count()
    };
    // It may also have got no CPU in between.
    assert!((0..3).all(|slot| (2..5).contains(&stops(slot))), "{:?}", ended.result().deviations);
    place.nothing_is_left_of(&ended);
}

#[test]
fn leftover_processes_have_the_weight_of_a_turn() {
    let Some(place) = place() else { return };
    let [_, b, c] = three();
    let leaves = program("a", "", &format!("setsid sh -c 'echo $$ > a; {BUSY}' & sleep 0.1"));
    let cosched = place.run(&[leaves, b, c], "--quantum 20ms");
    let [daemon, b, c] = all_started(&place);
    eventually("the end of the command", || {
        place.read("cosched.stderr").contains("a ended and left")
    });
    for _ in 0..3 {
        turns_go_round(&[b, c]);
        assert!(has_weight(daemon, IN_TURN), "{:?}", weights(daemon));
    }
    cosched.signal(Signal::STOP);
    eventually("equal weights", || has_weight(daemon, ORDINARY));
    cosched.signal(Signal::CONT);
    eventually("its weight again", || has_weight(daemon, IN_TURN));
    place.write("stop", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

#[test]
fn a_lost_cpu_group_is_reported_at_once() {
    let Some(place) = place() else { return };
    let cosched = place.run(&three(), "--quantum 20ms");
    let programs = all_started(&place);
    let own = group(programs[0]).unwrap();
    // In version 2, only a cgroup without others below it takes processes.
    let mut others = cgroups_of(cosched.pid());
    others.extend(own.ancestors().nth(2).map(PathBuf::from));
    eventually("a cgroup without processes", || {
        for pid in fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default().lines() {
            others.iter().any(|other| fs::write(other.join("cgroup.procs"), pid).is_ok());
        }
        fs::remove_dir(&own).is_ok()
    });
    let report = "a does not take turns by weight because";
    eventually("a word on it", || place.read("cosched.stderr").contains(report));
    turns_go_round(&programs[1..]);
    place.write("stop", "");
    let ended = cosched.ended().with(0);
    assert_eq!(ended.stderr.matches(report).count(), 1, "{}", ended.stderr);
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_thread_keeps_a_mask_of_its_own() {
    let Some(place) = place() else { return };
    if cpus().len() < 2 {
        return skip("with one CPU there is one mask");
    }
    let last = cpus().iter().last().unwrap();
    let bound: CpuSet = [last].into_iter().collect();
    let script = format!("echo $$ > a; taskset -p -c {last} $$ >> said; echo > bound; {BUSY}");
    let [_, b, c] = three();
    let a = program("a", &format!("threads = {}", cpus().len()), &script);
    let cosched = place.run(&[a, b, c], "--quantum 5ms");
    let programs = all_started(&place);
    eventually("the mask", || place.path("bound").exists());
    for _ in 0..5 {
        for target in programs {
            eventually("a program's turn", || {
                let masks = cosched_linux::kernel::procfs::Proc::default().threads(programs[0].pid);
                for mask in masks.unwrap().into_iter().filter_map(|tid| affinity::get(tid).ok()) {
                    assert_eq!(mask, bound);
                }
                in_turn(&programs) == Some(target)
            });
        }
    }
    place.write("stop", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

#[test]
fn without_cpu_groups_auto_decides() {
    let place = Place::of(User::ordinary());
    if has_groups(&place) {
        return skip("this user has CPU groups");
    }
    let tables = three();
    let remedy = ["not available here: turns by weight", "`cosched doctor` names a remedy"];
    let ended = place.run(&tables, "--turns weight").ended().with(2).saying(&remedy);
    assert!(NAMES.iter().all(|name| place.read(name).is_empty()), "{}", ended.stderr);
    let _ = fs::remove_dir_all(place.path("out"));

    let cosched = place.run(&tables, "--quantum 20ms");
    all_started(&place);
    place.write("stop", "");
    let said =
        ["turns by weight are not possible here: the policy auto decides", "`cosched doctor`"];
    let ended = cosched.ended().with(0).saying(&said);
    let result = ended.result();
    assert_ne!(result.backends.freezing, "none");
    assert_eq!(result.policy_in_words(), "turns (auto decided)");
    assert!(ended.stdout.contains("turns (auto decided): "), "{}", ended.stdout);
    assert!(result.programs.iter().all(|program| program.turns.is_empty()));
    place.nothing_is_left_of(&ended);
}

#[test]
fn comparisons_tell_first_that_turns_by_weight_cannot_be_had() {
    let place = Place::of(User::ordinary());
    if has_groups(&place) {
        return skip("this user has CPU groups");
    }
    let compared = |options: &str| {
        let words =
            format!("compare --policies linux,turns --runs 1 {options} -- touch ran ::: true");
        place.cosched(&words.split_whitespace().collect::<Vec<_>>()).ended()
    };
    compared("--turns weight").with(2).saying(&[
        "turns: --turns weight: ",
        "missing: ",
        "Remedy: ",
    ]);
    assert!(!place.path("ran").exists(), "nothing has run");
    compared("")
        .with(0)
        .saying(&["turns: turns by weight are not possible here", "`cosched doctor`"]);
}

#[test]
fn goal_fair_gives_the_turn_to_the_most_slowed_program() {
    let Some(place) = place() else { return };
    let cosched = place.run(&three(), "--goal fair --quantum 20ms");
    let programs = all_started(&place);
    // A slowdown is known once a program has had turns.
    (0..5).for_each(|_| turns_go_round(&programs));
    place.write("stop", "");
    let ended = cosched.ended().with(0);
    let decisions = ended.result().decisions;
    let reasons = decisions.iter().flat_map(|decision| &decision.reasons);
    let slowed = reasons.filter_map(|reason| match reason.why.read()? {
        MinwaitReason::SlowedMost { slowdown } => slowdown,
        _ => None,
    });
    let slowdowns: Vec<f64> = slowed.collect();
    assert!(slowdowns.iter().any(|slowdown| *slowdown > 1.5), "{slowdowns:?}");
    place.nothing_is_left_of(&ended);
}

#[test]
fn frozen_turns_are_there_on_request() {
    for policy in ["turns", "gang"] {
        let place = Place::new();
        let cosched = place.run(&three(), &format!("-p {policy} --turns freeze --quantum 20ms"));
        all_started(&place);
        place.write("stop", "");
        let ended = cosched.ended().with(0);
        let result = ended.result();
        assert_ne!(result.backends.freezing, "none");
        assert!(!result.backends.pinning.contains("by weight"), "{}", result.backends.pinning);
        assert!(result.programs.iter().all(|program| program.turns.is_empty()));
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn policies_that_make_gangs_take_turns_by_weight() {
    for policy in ["gang", "greedy", "minwait"] {
        let Some(place) = place() else { return };
        let options = "--turns weight --quantum 20ms";
        let cosched = place.run(&three(), &format!("-p {policy} {options}"));
        let programs = all_started(&place);
        let marked = place.marked();
        turns_go_round(&programs);
        assert!(!marked.programs().into_iter().any(|process| marked.is_held(process)), "{policy}");
        place.write("stop", "");
        let ended = cosched.ended().with(0);
        let result = ended.result();
        assert!(result.backends.pinning.ends_with("turns by weight"), "{policy}");
        assert!(result.programs.iter().all(|program| !program.turns.is_empty()), "{policy}");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn policies_without_turns_refuse_turns_by_weight() {
    for policy in ["linux", "fcfs", "auto", "faithful"] {
        let place = Place::new();
        let said = ["--turns", "leave it out", &format!("'{policy}'")];
        place.run(&three(), &format!("-p {policy} --turns weight")).ended().with(2).saying(&said);
        assert!(NAMES.iter().all(|name| place.read(name).is_empty()));
    }
}

#[test]
fn a_detached_program_has_the_weight_of_a_turn_all_the_time() {
    let Some(place) = place() else { return };
    let cosched = place.run(&three(), "--quantum 20ms");
    let programs = all_started(&place);
    turns_go_round(&programs);
    let mut detach = place.user.command(&place.executable);
    detach.args(["detach", &programs[0].pid.to_string()]);
    let output = detach.env("XDG_RUNTIME_DIR", place.path("run")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("it stays in its cgroup; nothing else"), "{output:?}");
    for _ in 0..3 {
        turns_go_round(&programs[1..]);
        assert!(has_weight(programs[0], IN_TURN));
    }
    place.write("stop", "");
    let ended = cosched.ended();
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_real_time_class_can_be_chosen_as_without_cosched() {
    let Some(place) = place() else { return };
    let choose = "chrt -f 1 true";
    if !Command::new("sh").args(["-c", choose]).status().unwrap().success() {
        return skip("this user may not choose a real-time class");
    }
    // All at once, beside two other runs, which have budgets, too.
    let others = [(); 2].map(|()| Place::new());
    let keep = ["run", "--", "sh", "-c", "echo yes > there; sleep 3", ":::", "sleep", "3"];
    let runs = others.each_ref().map(|other| other.cosched(&keep));
    eventually("two runs", || others.iter().all(|other| other.read("there").ends_with('\n')));
    let names: Vec<String> = (0..12).map(|i| format!("p{i}")).collect();
    let hold = "chrt -f 1 sleep 0.5";
    let programs: Vec<String> =
        names.iter().map(|name| program(name, "threads = 1", hold)).collect();
    let result = place.run(&programs, "").ended().with(0).result();
    assert_eq!(result.backends.pinning, "none, turns by weight");
    for run in runs {
        run.ended().with(0);
    }
}
