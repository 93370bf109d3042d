//! What cosched prints and writes: JSON for scripts, a table for people, the programs' own outputs.

use cosched_core::CpuSet;
use rustix::process::Signal;
use serde_json::Value;

use super::support::{Place, eventually, program, skip};

fn talkative() -> [String; 2] {
    ["a", "b"]
        .map(|name| program(name, "threads = 1", &format!("echo {name} out; echo {name} err >&2")))
}

/// Lines, in order of the alphabet: programs that run side by side write in any order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The names of all fields.
fn keys(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| [vec![key.as_str()], keys(value)].concat())
            .collect(),
        Value::Array(values) => values.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn json_is_one_document_on_standard_output_and_everything_else_goes_to_standard_error() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    let ended = place.cosched(&["run", "jobs.toml", "--policy", "gang", "--json"]).ended().with(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(sorted(&ended.stderr), ["a err", "a out", "b err", "b out"]);
    for key in ["schema", "policy", "total_seconds", "programs", "metrics"] {
        assert!(!document[key].is_null(), "{key}");
    }
    let program = document["programs"][0].as_object().unwrap();
    for key in [
        "name",
        "turnaround_seconds",
        "running_seconds",
        "waiting_seconds",
        "slowdown",
        "exit_status",
        "timeline",
        "usage",
        "left_running",
    ] {
        assert!(program.contains_key(key), "{key}");
    }
    let metrics = document["metrics"].as_object().unwrap();
    for key in [
        "fairness_stddev",
        "unfairness",
        "weighted_speedup",
        "responsiveness_max_seconds",
        "cpu_utilisation",
    ] {
        assert!(metrics.contains_key(key), "{key}");
    }
}

#[test]
fn the_document_that_is_printed_is_the_one_that_is_saved() {
    let place = Place::new();
    let ended = place.run(&talkative(), "--policy gang --json").ended().with(0);
    assert_eq!(ended.stdout, place.read("out/run.json"));
    assert_eq!(ended.stderr, "");
}

#[test]
fn without_a_folder_programs_write_where_cosched_does() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    let ended = place.cosched(&["run", "jobs.toml", "--policy", "gang"]).ended().with(0);
    for line in ["a out", "b out"] {
        assert!(ended.stdout.lines().any(|printed| printed == line), "{}", ended.stdout);
    }
    assert_eq!(sorted(&ended.stderr), ["a err", "b err"]);
}

#[test]
fn commands_can_be_given_without_a_file() {
    let place = Place::new();
    let run =
        ["run", "-p", "fcfs", "--out", "out", "--", "echo", "a  b", ":::", "sh", "-c", "exit 4"];
    let ended = place.cosched(&run).ended().with(1);
    assert_eq!(place.read("out/echo.stdout"), "a  b\n");
    let result = ended.result();
    assert_eq!(result.programs[0].command, ["echo", "a  b"]);
    assert_eq!(result.programs[1].exit_status, Some(4));

    let place = Place::new();
    let run = ["run", "-p", "fcfs", "--out", "out", "--prog", "echo 'a  b'", "--prog", "echo c"];
    let result = place.cosched(&run).ended().with(0).result();
    let names: Vec<&str> = result.programs.iter().map(|program| program.name.as_str()).collect();
    let outputs: Vec<String> =
        names.iter().map(|name| place.read(&format!("out/{name}.stdout"))).collect();
    assert_eq!(outputs, ["a  b\n", "c\n"]);
}

#[test]
fn a_file_that_cannot_be_written_at_the_end_costs_the_file_and_not_the_table() {
    let place = Place::new();
    let ended = place
        .run(&[program("a", "", "mkdir out/run.json.part")], "--policy linux")
        .ended()
        .with(1)
        .saying(&["out/run.json: cannot be written: Is a directory"]);
    assert!(ended.stdout.contains("linux: "), "{}", ended.stdout);
    assert!(!place.path("out/run.json").exists());
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_link_that_appears_in_the_output_folder_is_not_followed() {
    let place = Place::new();
    let links = "for name in run.json run.json.part b.stdout; do ln -s ../precious out/$name; done; echo > made";
    let [first, second] =
        [("a", links), ("b", "echo b")].map(|(name, script)| program(name, "", script));
    place.write("precious", "precious");
    let ended = place.run(&[first, second], "--policy fcfs").ended();
    assert!(place.path("made").exists());
    assert_eq!(place.read("precious"), "precious");
    assert!(ended.stderr.contains("b.stdout"), "{}", ended.stderr);
    assert!(!place.path("out/run.json").is_symlink());
    ended.result();
    place.nothing_is_left_of(&ended);
}

#[test]
fn what_takes_the_name_of_the_output_folder_gets_nothing() {
    let place = Place::new();
    let swap = "mkdir elsewhere; mv out moved; ln -s elsewhere out";
    let [first, second] =
        [("a", swap), ("b", "echo b")].map(|(name, script)| program(name, "", script));
    let ended = place.run(&[first, second], "--policy fcfs").ended().with(0);
    assert_eq!(place.read("moved/b.stdout"), "b\n", "{}", ended.stderr);
    assert!(place.read("moved/run.json").contains("cosched-run"));
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn the_command_that_measures_what_is_missing_is_printed_and_works() {
    let place = Place::new();
    let ended = place.cosched(&["run", "-p", "fcfs", "--out", "out", "--", "true"]).ended().with(0);
    let hint = ended.stdout.lines().last().unwrap().trim();
    assert_eq!(hint, "cosched profile -- true");
    let words: Vec<&str> = hint.split(' ').skip(1).collect();
    place.cosched(&words).ended().with(0);
    let again = place.cosched(&["run", "-p", "fcfs", "--", "true"]).ended().with(0);
    assert!(!again.stdout.contains("cosched profile"), "{}", again.stdout);
}

#[test]
fn compare_runs_the_same_programs_under_each_policy() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    let compare = ["compare", "jobs.toml", "--policies", "linux,fcfs,gang", "--runs", "1"];
    let ended = place.cosched(&[&compare[..], &["--json"]].concat()).ended().with(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let ways = document["ways"].as_array().unwrap();
    assert_eq!(ways.iter().map(|way| &way["way"]).collect::<Vec<_>>(), ["linux", "fcfs", "gang"]);
    assert_eq!(document["schema"], "cosched-compare/2");
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
fn ways_take_turns_and_every_round_gives_a_sample_of_each() {
    let place = Place::new();
    let who = "echo $OMP_WAIT_POLICY $OMP_NUM_THREADS >> ../who";
    place.write("jobs.toml", program("a", "threads = 2\ncwd = 'work'", who));
    std::fs::create_dir(place.path("work")).unwrap();
    let compare = ["compare", "jobs.toml", "--policies", "linux,passive,one-thread", "--solo"];
    let options = ["--runs", "6", "--json", "--out", "all"];
    let ended = place.cosched(&[&compare[..], &options[..]].concat()).ended().with(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    // The warm-up, and six rounds of the program alone and in three ways, each beginning with the
    // next one.
    let three = "2\n2\npassive 2\n1\n2\npassive 2\n1\n2\n2\n1\n2\npassive 2\n";
    assert_eq!(place.read("who"), format!("2\n{}", three.repeat(2)));
    for (i, way) in document["ways"].as_array().unwrap().iter().enumerate() {
        assert_eq!(way["samples"]["total_seconds"].as_array().unwrap().len(), 6);
        assert!(way["ratio_to_solo_sum"]["interval"].is_array(), "{way}");
        assert_eq!(way["against"].is_null(), i == 0);
    }
    assert!(place.path("all/round-006/one-thread/run.json").exists());
    assert!(ended.stderr.contains("round 6 of 6: passive (4 of 4), about"), "{}", ended.stderr);
}

#[test]
fn an_interrupted_comparison_goes_on_where_it_was_and_gives_the_same_kind_of_document() {
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
    let whole = whole.saying(&["round 2 is not complete", "1 complete round(s) found, 2 to make"]);
    let found_now: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!((&found_now["rounds"], &found_now["interrupted"]), (&3.into(), &false.into()));
    assert_eq!(sorted_keys(&found_now), sorted_keys(&found));
    assert_eq!(place.read("all/round-001/fcfs/run.json"), kept);
    // One to warm up, the two of round 1, two of round 2, one of them in vain; and then again one
    // and four.
    assert_eq!(place.read("work/runs").lines().count(), 5 + 1 + 4);
}

#[test]
fn below_the_table_stands_which_program_failed_how_and_where_it_tells_why() {
    let place = Place::new();
    place.write("jobs.toml", program("a", "", "echo out of paper >&2; exit 3"));
    let compare = ["compare", "jobs.toml", "--policies", "linux", "--runs", "2"];
    let shown = place.cosched(&compare).ended().with(1).stdout;
    let told = "linux: a failed in 2 of 2 rounds (status 3); the end of its standard error:\n  out of paper\n";
    assert!(shown.contains(told), "{shown}");
    let shown = place.cosched(&[&compare[..], &["--out", "all"]].concat()).ended().with(1).stdout;
    assert!(shown.contains("its standard error is in all/round-001/linux/a.stderr"), "{shown}");
    assert_eq!(place.read("all/round-001/linux/a.stderr"), "out of paper\n");
}

fn sorted_keys(document: &Value) -> Vec<&str> {
    let mut keys = keys(document);
    keys.sort_unstable();
    keys
}

#[test]
fn split_gives_every_program_cpus_of_its_own_from_its_start_on() {
    let place = Place::new();
    let tell = "grep Cpus_allowed_list: /proc/self/status; echo threads $OMP_NUM_THREADS";
    place.write("jobs.toml", ["a", "b"].map(|name| program(name, "threads = 2", tell)).concat());
    let compare = ["compare", "jobs.toml", "--policies", "split", "--runs", "1", "--out", "all"];
    let ended = place.cosched(&compare).ended().with(0);
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        return skip("split shares one CPU among all here");
    }
    let told = ["a", "b"].map(|name| place.read(&format!("all/split/{name}.stdout")));
    let list = |told: &str| -> CpuSet {
        told.lines().next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let (a, b) = (list(&told[0]), list(&told[1]));
    assert!(!a.intersects(&b) && a.union(&b).len() == cpus, "{told:?}");
    for (told, share) in told.iter().zip([a, b]) {
        assert!(told.contains(&format!("threads {}", share.len().min(2))), "{told}");
    }
    place.nothing_is_left_of(&ended);
}

#[test]
fn it_is_told_where_programs_that_failed_have_said_why() {
    let place = Place::new();
    let tables = [
        program("a", "", "echo why >&2; exit 3"),
        program("silent", "", "exit 4"),
        program("fine", "", "echo so far >&2"),
    ];
    let ended = place.run(&tables, "").ended().with(1);
    let told = |line: &&str| line.contains("stands in");
    let lines: Vec<&str> = ended.stderr.lines().filter(told).collect();
    assert_eq!(lines, ["cosched: what those that failed have said stands in out/a.stderr"]);
}
