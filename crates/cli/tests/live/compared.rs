//! Comparisons: rounds, samples, resuming, and variants that start programs differently.

use std::process::Command;

use super::outputs::{keys, talkative};
use super::support::{Place, eventually, program, skip};
use cosched_core::CpuSet;
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn compare_runs_the_same_programs_under_each_policy() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    let compare = ["compare", "jobs.toml", "--policies", "linux,fcfs,gang", "--runs", "1"];
    let ended = place.cosched(&[&compare[..], &["--json"]].concat()).ended().with(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let variants = document["variants"].as_array().unwrap();
    assert_eq!(
        variants.iter().map(|variant| &variant["variant"]).collect::<Vec<_>>(),
        ["linux", "fcfs", "gang"]
    );
    assert_eq!(document["schema"], "cosched-compare/4");
    assert_eq!(document["simulated"], false);
    let documentation = include_str!("../../../../docs/json.md");
    for key in keys(&document) {
        assert!(documentation.contains(&format!("`{key}`")) || key == "value", "{key}");
    }

    let ended = place.cosched(&[&compare[..], &["--out", "all"]].concat()).ended().with(0);
    for policy in ["linux", "fcfs", "gang"] {
        assert!(ended.stdout.contains(policy), "{}", ended.stdout);
        assert_eq!(place.read(&format!("all/{policy}/a.stdout")), "a out\n");
    }
    place.nothing_is_left_of(&ended);
    assert_eq!(std::fs::read_dir(place.path("tmp")).unwrap().count(), 0);
}

#[test]
fn each_round_gives_one_sample_of_each_variant() {
    let place = Place::new();
    let line = "echo $OMP_WAIT_POLICY $OMP_NUM_THREADS >> ../variables";
    place.write("jobs.toml", program("a", "threads = 2\ncwd = 'work'", line));
    std::fs::create_dir(place.path("work")).unwrap();
    let compare = ["compare", "jobs.toml", "--policies", "linux,passive,one-thread", "--solo"];
    let options = ["--runs", "6", "--json", "--out", "all"];
    let ended = place.cosched(&[&compare[..], &options[..]].concat()).ended().with(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    // The warm-up, and six rounds of the program alone and in three variants, each beginning with
    // the next one.
    let three = "2\n2\npassive 2\n1\n2\npassive 2\n1\n2\n2\n1\n2\npassive 2\n";
    assert_eq!(place.read("variables"), format!("2\n{}", three.repeat(2)));
    for (i, variant) in document["variants"].as_array().unwrap().iter().enumerate() {
        assert_eq!(variant["samples"]["total_seconds"].as_array().unwrap().len(), 6);
        let (ratio, null) = (&variant["ratio_to_solo_sum"], Value::is_null);
        assert!(null(ratio) || !null(&ratio["interval"]), "{variant}");
        assert_eq!(variant["against"].is_null(), i == 0);
    }
    assert!(place.path("all/round-006/one-thread/run.json").exists());
    assert!(ended.stderr.contains("round 6 of 6: passive (4 of 4), about"), "{}", ended.stderr);
}

/// A resumed comparison starts at the interrupted run, and its document has the form of an
/// uninterrupted one.
#[test]
fn an_interrupted_comparison_can_be_resumed() {
    let place = Place::new();
    // The fifth run (the first one warms up) waits until it is ended.
    let program =
        program("a", "cwd = 'work'", "echo >> runs; [ $(wc -l < runs) != 5 ] || sleep 1000");
    std::fs::create_dir(place.path("work")).unwrap();
    place.write("jobs.toml", program);
    let compare = ["compare", "jobs.toml", "--policies", "linux,fcfs", "--runs", "3", "--json"];
    let compare = [&compare[..], &["--out", "all"]].concat();
    let started = place.cosched(&compare);
    eventually("the second round's second run", || place.read("work/runs").lines().count() == 5);
    started.signal(Signal::INT);
    let interrupted = started.ended().with(130);
    let found: Value = serde_json::from_str(&interrupted.stdout).unwrap();
    assert_eq!((&found["rounds"], &found["interrupted"]), (&1.into(), &true.into()));
    let kept = place.read("all/round-001/fcfs/run.json");

    let refused = place.cosched(&compare).ended().with(2);
    refused.saying(&["already holds a comparison", "--resume"]);
    let resume = [&compare[..], &["--resume"]].concat();
    let other: Vec<&str> =
        resume.iter().map(|word| if *word == "linux,fcfs" { "linux,gang" } else { word }).collect();
    place.cosched(&other).ended().with(2).saying(&["compare-plan.json", "--policies"]);

    let whole = place.cosched(&resume).ended().with(0);
    let whole = whole.saying(&["round 2 is not complete", "1 complete round found, 2 to run"]);
    let found_now: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!((&found_now["rounds"], &found_now["interrupted"]), (&3.into(), &false.into()));
    assert_eq!(sorted_keys(&found_now), sorted_keys(&found));
    assert_eq!(place.read("all/round-001/fcfs/run.json"), kept);
    // One to warm up, the two of round 1, two of round 2, one of them in vain; and then again one
    // and four.
    assert_eq!(place.read("work/runs").lines().count(), 5 + 1 + 4);
}

#[test]
fn failed_programs_of_a_comparison_are_below_the_table() {
    let place = Place::new();
    place.write("jobs.toml", program("a", "", "echo out of paper >&2; exit 3"));
    let compare = ["compare", "jobs.toml", "--policies", "linux", "--runs", "2"];
    let shown = place.cosched(&compare).ended().with(1).stdout;
    let expected = "linux: a failed in 2 of 2 rounds (status 3); the end of its standard error:\n  \
                out of paper\n";
    assert!(shown.contains(expected), "{shown}");
    let shown = place.cosched(&[&compare[..], &["--out", "all"]].concat()).ended().with(1).stdout;
    assert!(shown.contains("its standard error is in all/round-001/linux/a.stderr"), "{shown}");
    assert_eq!(place.read("all/round-001/linux/a.stderr"), "out of paper\n");
}

/// Without the one that is there only on a busy machine.
fn sorted_keys(document: &Value) -> Vec<&str> {
    let mut keys = keys(document);
    keys.retain(|key| *key != "disturbed_rounds");
    keys.sort_unstable();
    keys
}

#[test]
fn split_gives_every_program_its_own_cpus_from_its_start() {
    let place = Place::new();
    let tell = "grep Cpus_allowed_list: /proc/self/status; echo threads $OMP_NUM_THREADS";
    place.write("jobs.toml", ["a", "b"].map(|name| program(name, "threads = 2", tell)).concat());
    let compare = ["compare", "jobs.toml", "--policies", "split", "--runs", "1", "--out", "all"];
    let ended = place.cosched(&compare).ended().with(0);
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        return skip("split shares one CPU among all here");
    }
    let outputs = ["a", "b"].map(|name| place.read(&format!("all/split/{name}.stdout")));
    let list = |text: &str| -> CpuSet {
        text.lines().next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let (a, b) = (list(&outputs[0]), list(&outputs[1]));
    assert!(!a.intersects(&b) && a.union(&b).len() == cpus, "{outputs:?}");
    for (text, share) in outputs.iter().zip([a, b]) {
        assert!(text.contains(&format!("threads {}", share.len().min(2))), "{text}");
    }
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_comparison_of_one_program_says_that_turns_change_nothing() {
    let place = Place::new();
    let said = |policies: &str, commands: &[&str]| {
        let compare = ["compare", "--policies", policies, "--runs", "1", "--"];
        place.cosched(&[&compare[..], commands].concat()).ended().with(0).stderr
    };
    let note = "there is one program, so it shares CPUs with no other";
    let alone = said("linux,gang", &["true"]);
    assert!(alone.contains(note), "{alone}");
    for other in [said("linux,passive", &["true"]), said("linux,gang", &["true", ":::", "true"])] {
        assert!(!other.contains(note), "{other}");
    }
}

#[test]
fn a_run_offers_a_comparison_only_where_it_can_be_made() {
    let place = Place::new();
    place.write("jobs.toml", "[[program]]\ncommand = 'true'\n".repeat(2));
    let cosched = env!("CARGO_BIN_EXE_cosched");
    for (command, is_offered) in [
        ("run --policy fcfs jobs.toml", true),
        ("run --policy linux jobs.toml", false),
        ("run --policy fcfs - < jobs.toml", false),
        ("run --policy fcfs /dev/stdin < jobs.toml", false),
    ] {
        let line = format!("exec {cosched} {command}");
        let ended = std::process::Command::new("sh")
            .args(["-c", &line])
            .current_dir(place.path("."))
            .output()
            .unwrap();
        let printed = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.status.success(), "{command}: {printed}");
        assert_eq!(printed.contains("measures whether"), is_offered, "{command}: {printed}");
    }
}

/// Where the scheduler in the kernel cannot be had, no variant starts a program, and no folder is
/// left that a later comparison would go on with.
#[test]
fn a_scheduler_that_cannot_be_had_is_refused_in_time() {
    let place = Place::new();
    let mut running = Command::new("sleep").arg("600").spawn().unwrap();
    let (pid, programs) = (running.id().to_string(), ["--", "touch", "made", ":::", "true"]);
    let compare = ["compare", "--policies", "linux", "--variant", "e=turns --scheduler ext"];
    for (command, what) in [
        (&compare[..], &programs[..]),
        (&["run", "--scheduler", "ext"], &programs),
        (&["attach", "--scheduler", "ext"], &[&pid]),
    ] {
        let mut cosched = Command::new(place.executable());
        cosched.args(command).args(["--out", "out"]).args(what);
        cosched.env("COSCHED_EXT", "/nowhere/cosched-ext").current_dir(place.folder());
        let output = cosched.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot start /nowhere/cosched-ext"), "{said}");
        assert!(!said.contains("attaching"), "{said}");
        assert!(!place.path("made").exists() && !place.path("out").exists(), "{said}");
    }
    running.kill().unwrap();
    running.wait().unwrap();
}
