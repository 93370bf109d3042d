//! Programs that report their progress, under the policy that needs it.

use std::process::Command;

use cosched_core::{Aspect, Why};
use cosched_linux::observe::counters::{self, Events};
use cosched_linux::observe::pointers::SampleClock;
use cosched_policy::reasons::FairReason;
use cosched_results::result::Instead;

use super::support::{Place, User, program, skip};

/// Computes, and reports every step.
const TICKS: &str = r#"
#include <stdint.h>
extern void cosched_progress(uint64_t) __attribute__((weak));
int main(void) {
    volatile double sum = 0;
    for (int step = 0; step < 20000; step++) {
        for (int i = 0; i < 10000; i++) sum += i;
        if (cosched_progress) cosched_progress(1);
    }
    return 0;
}
"#;

/// Makes `./ticks`; `false`: there is no compiler.
fn compile(place: &Place) -> bool {
    let source = place.write("ticks.c", TICKS);
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1"]).arg(source).arg("-o").arg(place.path("ticks"));
    compiler.status().is_ok_and(|status| status.success())
}

#[test]
fn a_program_without_known_progress_is_refused_at_the_start() {
    if counters::check(Events::HARDWARE).is_ok() {
        return skip("this machine counts instructions");
    }
    let place = Place::new();
    let tables = [program("a", "progress = true", "touch started"), program("b", "", "true")];
    let said = ["jobs.toml:", "fair-progress", "'b'", "`progress = true`", "--slowdowns"];
    place.run(&tables, "--policy fair-progress").ended().with(2).saying(&said);
    assert!(!place.path("started").exists());
    let tables = [program("a", "progress = true", "touch started")];
    let said = ["--peak-bandwidth", "leave the option out, or set `memory_gigabytes_per_second`"];
    let options = "--policy fair-progress --peak-bandwidth 50";
    place.run(&tables, options).ended().with(2).saying(&said);
    let table = "machine = 'm'\ngigabytes_per_second = [2.0]\npairs = [[1.1]]\n";
    place.write("table.toml", table);
    let said = ["--slowdowns", "leave the option out, or set `memory_gigabytes_per_second`"];
    let options = "--policy fair-progress --slowdowns table.toml";
    place.run(&tables, options).ended().with(2).saying(&said);
    assert!(!place.path("started").exists());
}

/// The paper's *OS with weights*: nice values of 0 and 6 for weights of 4 and 1. `nice` prints its
/// own. A user without the right to lower them again gets none, and is told.
#[test]
fn weights_are_nice_values_where_they_can_be_taken_back() {
    let place = Place::new();
    // As soon as the heavy one has ended, the other one is the heaviest.
    let waits = "until [ -e light.txt ]; do sleep 0.05; done";
    let heavy = program("heavy", "weight = 4", &format!("nice > heavy.txt; {waits}"));
    let light = program("light", "weight = 1", "sleep 0.5; nice > found; mv found light.txt");
    let ended = place.run(&[heavy, light], "--policy linux-weights").ended();
    let result = ended.with(0).result();
    let [heavy, light] =
        ["heavy.txt", "light.txt"].map(|file| place.read(file).trim().parse::<i32>().unwrap());
    let refused = result.deviations.iter().any(|deviation| deviation.what == Aspect::Nice);
    assert_eq!(light - heavy, if refused { 0 } else { 6 }, "{:?}", result.deviations);
    assert!(!refused || !rustix::process::geteuid().is_root());
}

/// Without training, no speed alone is from training. The result says what the policy cost.
#[test]
fn sources_of_estimates_and_the_cost_are_in_the_result() {
    let place = Place::new();
    if !compile(&place) {
        return skip("there is no C compiler");
    }
    let ticks = |name: &str| program(name, "progress = true", "./ticks");
    let tables = ["a", "b", "c"].map(ticks);
    let options = "--policy fair-progress --quantum 20ms --training-limit 0";
    let result = place.run(&tables, options).ended().with(0).result();
    let estimates: Vec<_> = result.programs.iter().filter_map(|of| of.estimates).collect();
    assert_eq!(estimates.len(), 3, "{:?}", result.programs);
    for of in &estimates {
        let sources = of.sources;
        let all = sources.own_low + sources.only_one + sources.none + sources.co_runners;
        let all = all + sources.predicted + sources.sequential + sources.system_low;
        assert!(all > 0 && of.cpu_seconds > 0.0 && of.solo_cpu_seconds > 0.0, "{of:?}");
        assert_eq!((sources.predicted, sources.sequential), (0, 0), "{of:?}");
        assert_eq!(of.training_idle_seconds, 0.0);
    }
    let cost = result.own.policy_cost.unwrap();
    assert!(cost.reading_seconds > 0.0 && cost.deciding_seconds > 0.0, "{cost:?}");
    if SampleClock::here().is_some() {
        assert!(cost.code_samples > 0, "{cost:?}");
    }
}

#[test]
fn measured_memory_bandwidth_is_used_unless_the_user_sets_it() {
    let place = Place::new();
    let attempt = |_| {
        let measured = place.cosched(&["profile", "--machine", "--json"]).ended().with(0);
        (!measured.stderr.contains("not kept")).then_some(measured)
    };
    let measured = (0..20).find_map(attempt).expect("a moment without other processes");
    let report: serde_json::Value = serde_json::from_str(&measured.stdout).unwrap();
    let lines = report["peak_lines_per_microsecond"].as_f64().unwrap();
    let taken = format!("the memory bandwidth is {lines:.0} cache lines per microsecond at most");
    let keys = "progress = true\nmemory_gigabytes_per_second = 1";
    let tables = [program("a", keys, "true"), program("b", keys, "true")];
    let policy = "--policy fair-progress --verbose";
    place.run(&tables, policy).ended().with(0).saying(&[&taken]);
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let said = place.run(&tables, &format!("{policy} --peak-bandwidth 50")).ended().with(0);
    assert!(!said.stderr.contains("memory bandwidth"), "{}", said.stderr);
}

#[test]
fn programs_that_never_reported_progress_are_named_at_the_end() {
    if counters::check(Events::HARDWARE).is_ok() {
        return skip("this machine counts instructions");
    }
    let place = Place::new();
    if !compile(&place) {
        return skip("there is no gcc");
    }
    let keys = "threads = 1\nprogress = true";
    let tables = [program("ticks", keys, "exec ./ticks"), program("quiet", keys, "sleep 0.1")];
    let ended = place.run(&tables, "--policy fair-progress").ended().with(0);
    let said = "quiet reported too little progress: its CPU time was used instead.";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    let programs = &ended.result().programs;
    let instead = [0, 1].map(|slot| programs[slot].instead_of_progress);
    assert_eq!(instead, [None, Some(Instead::CpuTime)]);
    assert!(programs[1].estimates.is_none(), "{:?}", programs[1].estimates);
    let explained = place.cosched(&["explain", "out"]).ended().with(0);
    assert!(explained.stdout.contains(said), "{}", explained.stdout);
}

#[test]
fn programs_that_tick_are_trained_for_their_solo_speed() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        if !compile(&place) {
            return skip("there is no gcc");
        }
        let ticks = |name: usize| {
            program(&format!("p{name}"), "threads = 1\nprogress = true", "exec ./ticks")
        };
        let tables: Vec<String> = (0..cpus + 1).map(ticks).collect();
        let options = "--policy fair-progress --quantum 40ms --training-limit unlimited --verbose";
        let ended = place.run(&tables, options).ended().with(0);
        let result = ended.saying(&["progress is measured for p0"]).result();
        let whys = || result.decisions.iter().flat_map(|decision| &decision.reasons);
        let trained = |why: &Why| matches!(why.read(), Some(FairReason::Trained { .. }));
        assert!(whys().any(|reason| trained(&reason.why)));
        let known = |why: &Why| match why.read() {
            Some(FairReason::LeastProgress { coverage, .. }) => coverage > 0.5,
            _ => false,
        };
        assert!(whys().any(|reason| known(&reason.why)));
    }
}
