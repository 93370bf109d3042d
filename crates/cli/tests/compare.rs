//! `cosched compare` on a simulated machine, from outside.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Three programs with threads that wait for each other; two of them fit on 8 CPUs together.
fn workload() -> String {
    let program = |i: usize| {
        format!(
            "[[program]]\nname = 'p{i}'\ncommand = 'p{i}'\nthreads = 4\n[program.model]\n\
             spin = 'forever'\n\
             imbalance = 0.05\n[[program.model.phase]]\ninstructions = 2e9\nbarriers = 200\n"
        )
    };
    (0..3).map(program).collect()
}

fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.toml"), workload()).unwrap();
    folder
}

fn compare(folder: &Path, options: &str) -> Output {
    compare_with(folder, &options.split_whitespace().collect::<Vec<_>>())
}

fn compare_with(folder: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let fixed = ["compare", "jobs.toml", "--machine", "e5410-8"];
    command.current_dir(folder).args(fixed).args(options).output().unwrap()
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", messages(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn all_variants_are_simulated_in_each_round() {
    let place = place();
    let variants = "--policies linux,gang,passive --runs 6";
    let found = document(&compare(place.path(), &format!("{variants} --json --out all")));
    assert_eq!(
        (&found["simulated"], &found["machine"]["kernel"]),
        (&true.into(), &"simulated".into())
    );
    assert_eq!((&found["rounds"], &found["interrupted"]), (&6.into(), &false.into()));
    let totals = |i: usize| found["variants"][i]["samples"]["total_seconds"].as_array().unwrap();
    assert_eq!(totals(0).len(), 6);
    assert!(totals(0).iter().any(|total| *total != totals(0)[0]), "seeds differ: {:?}", totals(0));
    for variant in found["variants"].as_array().unwrap() {
        assert!(
            variant["ratio_to_solo_sum"]["value"].is_number(),
            "solo times are simulated: {variant}"
        );
    }
    assert!(place.path().join("all/round-006/passive/run.json").exists());

    let shown = compare(place.path(), variants);
    let table = String::from_utf8_lossy(&shown.stdout);
    assert!(table.contains("Simulated on ") && table.contains("no program was run"), "{table}");
    let told = messages(&shown);
    assert!(!told.contains("warm up"), "{told}");
    let told: Vec<&str> = told.lines().filter(|line| line.contains(" round")).collect();
    let runs = "6 rounds of 3 variants: 18 runs, and in each round each program alone";
    assert!(told[0].ends_with(runs), "{told:?}");
    assert!(told[1].ends_with("round 1 of 6: each program alone (1 of 4)"), "{told:?}");
    assert!(told[2].contains("round 1 of 6: linux (2 of 4), about "), "{told:?}");
}

#[test]
fn by_default_turns_is_compared_with_linux_and_fcfs() {
    let place = place();
    let variants = |options: &str| {
        let found = document(&compare(place.path(), &format!("{options} --runs 1 --json")));
        let variants = found["variants"].as_array().unwrap().iter();
        variants.map(|variant| variant["variant"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(variants(""), ["linux", "fcfs", "turns"]);
    let once = document(&compare(place.path(), "--runs 1 --json"));
    assert_eq!(once["variants"][2]["against"]["verdict"], "too-few-rounds");
    assert_eq!(variants("--variant plain=linux"), ["plain"]);
    assert_eq!(variants("--policies gang --variant plain=linux"), ["gang", "plain"]);
}

#[test]
fn a_round_has_the_seed_that_sim_would_use() {
    let place = place();
    let found = document(&compare(place.path(), "--policies linux --runs 2 --seed 5 --json"));
    let mut sim = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let second =
        ["sim", "jobs.toml", "--machine", "e5410-8", "-p", "linux", "--seed", "6", "--json"];
    let second = document(&sim.current_dir(place.path()).args(second).output().unwrap());
    let samples = &found["variants"][0]["samples"];
    assert_eq!(samples["total_seconds"][1], second["total_seconds"]);
    let alone = second["programs"].as_array().unwrap().iter();
    let alone: f64 = alone.map(|program| program["solo_seconds"].as_f64().unwrap()).sum();
    assert_eq!(samples["solo_sum_seconds"][1].as_f64(), Some(alone));
}

#[test]
fn variants_that_cannot_be_simulated_are_refused_with_the_rest() {
    let place = place();
    for (options, said) in [
        (
            "--policies linux,llvm,gang,split",
            "llvm,split cannot be simulated; use --policies linux,gang",
        ),
        ("--policies llvm", "llvm cannot be simulated"),
        (
            "--policies linux,gang --freezer signals",
            "`cosched compare --machine` does not support --freezer",
        ),
        (
            "--policies linux,gang --grace 1s",
            "`cosched compare --machine` does not support --grace: leave it out",
        ),
        ("--policies linux,gang --kernel vms", "vms"),
    ] {
        let refused = compare(place.path(), options);
        assert_eq!(refused.status.code(), Some(2), "{options}");
        assert!(messages(&refused).contains(said), "{options}: {}", messages(&refused));
    }
    let mut here = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let output =
        here.args(["compare", "--policies", "linux", "--seed", "3", "--", "true"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(messages(&output).contains("--machine"), "{}", messages(&output));
}

#[test]
fn a_policy_is_compared_with_itself_under_other_options() {
    let place = place();
    let long = ["--variant", "long=gang --quantum 200ms", "--variant", "plain=gang"];
    let shared = ["--runs", "1", "--quantum", "10ms", "--json"];
    let policies = ["--policies", "gang"];
    let output = compare_with(place.path(), &[&policies[..], &long, &shared].concat());
    let found = document(&output);
    let variants = found["variants"].as_array().unwrap();
    let listed = variants
        .iter()
        .map(|variant| (variant["variant"].as_str().unwrap(), variant["options"].as_str()));
    let expected =
        [("gang", None), ("long", Some("gang --quantum 200ms")), ("plain", Some("gang"))];
    assert_eq!(listed.collect::<Vec<_>>(), expected);
    let longest = |i: usize| variants[i]["responsiveness_longest_gap_seconds"]["value"].as_f64();
    assert!(longest(1) > longest(0), "{found}");
    assert_eq!(longest(2), longest(0), "the options beside it hold for it, too");

    let alone = document(&compare_with(place.path(), &[&long[..], &shared].concat()));
    assert_eq!(alone["variants"][1]["against"]["variant"], "long");
}

#[test]
fn variants_with_senseless_options_are_refused() {
    let place = place();
    for (variants, said) in [
        (&["--variant", "a=gang", "--variant", "a=greedy"][..], "--variant: 'a' is there twice"),
        (&["--variant", "gang=greedy"], "'gang' is already the name of a variant"),
        (&["--variant", "a=linux --quantum 5ms"], "--variant a: --quantum is for policies"),
        (&["--variant", "a=gang --json"], "unexpected argument '--json'"),
    ] {
        let refused = compare_with(place.path(), variants);
        assert_eq!(refused.status.code(), Some(2), "{variants:?}");
        assert!(messages(&refused).contains(said), "{variants:?}: {}", messages(&refused));
    }
}

/// A comparison of very many rounds in the folder `d`, once it has begun.
fn endless(folder: &Path, more: &str) -> Child {
    let options = format!("--policies linux,gang --runs 1000 --out d {more}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let fixed = ["compare", "jobs.toml", "--machine", "e5410-8"];
    command.current_dir(folder).args(fixed).args(options.split_whitespace());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let second = folder.join("d/round-002/gang/run.json");
    for _ in 0..3000 {
        if second.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// It does not matter how the first comparison ends.
#[test]
fn a_folder_in_use_by_a_comparison_is_refused_until_it_ends() {
    let place = place();
    let mut first = endless(place.path(), "");
    for more in ["--resume", ""] {
        let options = format!("--policies linux,gang --runs 2 --out d {more}");
        let second = compare(place.path(), &options);
        assert_eq!(second.status.code(), Some(2), "{}", messages(&second));
        assert!(
            messages(&second).contains("--out d: another cosched is running a comparison there")
        );
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let second = compare(place.path(), "--policies linux,gang --runs 2 --out d --resume");
    assert_eq!(second.status.code(), Some(0), "{}", messages(&second));
}

#[test]
fn seeds_that_end_before_the_rounds_do_are_refused() {
    let place = place();
    let last = u64::MAX;
    let refused = compare(place.path(), &format!("--policies linux --runs 3 --seed {last}"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        messages(&refused).contains("give at most 18446744073709551613"),
        "{}",
        messages(&refused)
    );
    for (seed, runs) in [(last, 1), (last - 2, 3)] {
        document(&compare(
            place.path(),
            &format!("--policies linux --runs {runs} --seed {seed} --json"),
        ));
    }
}

#[test]
fn an_error_about_an_option_names_the_variant_once() {
    let place = place();
    let refused = compare(place.path(), "--policies linux,linux-2 --quantum 20ms");
    assert_eq!(refused.status.code(), Some(2));
    assert!(messages(&refused).contains("not for 'linux': leave it out"), "{}", messages(&refused));
}

#[test]
fn an_interrupted_simulated_comparison_shows_complete_rounds() {
    let place = place();
    let child = endless(place.path(), "--json");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["interrupted"], true);
    assert!((1..1000).contains(&found["rounds"].as_u64().unwrap()), "{}", found["rounds"]);
}

/// Each simulation of it would take hours.
#[test]
fn ctrl_c_ends_a_simulation_that_is_under_way() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = place();
        let long = workload().replace("]]\ninstructions", "]]\nrepeat = 2000000\ninstructions");
        fs::write(place.path().join("jobs.toml"), long).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
        command.args(["compare", "jobs.toml", "--machine", "e5410-8", "--policies", "linux,gang"]);
        command.current_dir(place.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        said.find(|line| line.as_ref().unwrap().contains("each program alone")).unwrap().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let rest: Vec<String> = said.map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("nothing to compare")), "{rest:?}");
    }
}

#[test]
fn the_signal_that_ended_a_comparison_is_below_the_table() {
    let place = place();
    let child = endless(place.path(), "");
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(
        table.contains("Interrupted (SIGHUP): ") && table.contains(" complete round"),
        "{table}"
    );
}

#[test]
fn other_programs_are_reported_by_name_only() {
    let place = place();
    let options = "--policies linux,gang --runs 2 --out d";
    compare(place.path(), options);
    fs::write(place.path().join("jobs.toml"), workload().replace("'p", "'q")).unwrap();
    let other = compare(place.path(), &format!("{options} --resume"));
    assert_eq!(other.status.code(), Some(2));
    let printed = messages(&other);
    let names =
        "there, the programs, in their order: \"p0, p1, p2\"; now: \"q0, q1, q2\". Such rounds";
    assert!(printed.contains(names) && !printed.contains(" of the program "), "{printed}");
}

#[test]
fn a_run_copied_from_another_round_is_found_by_its_seed() {
    let place = place();
    let options = "--policies linux,gang --runs 2 --out d";
    compare(place.path(), options);
    let folder = place.path().join("d");
    let run = |round: u16| folder.join(format!("round-00{round}/gang/run.json"));
    let second = fs::read_to_string(run(2)).unwrap();
    let other = second.replace("\"kernel\":\"eevdf\"", "\"kernel\":\"cfs\"");
    fs::copy(run(1), run(2)).unwrap();
    let refused = || {
        let output = compare(place.path(), &format!("{options} --resume"));
        assert_eq!(output.status.code(), Some(2));
        messages(&output)
    };
    assert!(refused().contains("there, the seed: 1; now: 2"), "{}", refused());
    fs::write(run(2), other).unwrap();
    assert!(refused().contains("there, --kernel: \"cfs\"; now: \"eevdf\""), "{}", refused());
}

#[test]
fn a_resumed_simulated_comparison_equals_an_uninterrupted_one() {
    let place = place();
    let variants = "--policies linux,gang --json";
    document(&compare(place.path(), &format!("{variants} --runs 3 --out d")));
    let left = place.path().join("d/round-003/gang/run.json");
    fs::remove_file(&left).unwrap();
    let output = compare(place.path(), &format!("{variants} --runs 7 --out d --resume"));
    assert!(
        messages(&output)
            .contains("round 3 is not complete; it is run again, which overwrites 1 file of"),
        "{}",
        messages(&output)
    );
    assert!(
        messages(&output).contains("2 complete rounds found, 5 to run"),
        "{}",
        messages(&output)
    );
    assert!(left.exists());
    let at_once = compare(place.path(), &format!("{variants} --runs 7"));
    assert_eq!(document(&output), document(&at_once));

    let other = compare(place.path(), &format!("{variants} --runs 7 --out d --resume --seed 2"));
    assert_eq!(other.status.code(), Some(2));
    assert!(messages(&other).contains("there, --seed: 1; now: 2"), "{}", messages(&other));
    let text = workload().replace("2e9", "3e9");
    fs::write(place.path().join("jobs.toml"), text).unwrap();
    let other = compare(place.path(), &format!("{variants} --runs 7 --out d --resume"));
    assert!(messages(&other).contains("model of the program 'p0'"), "{}", messages(&other));
}

#[test]
fn quiet_leaves_the_verdict_and_errors() {
    let place = place();
    let options = "--policies linux,gang --runs 2 --out all";
    let ended = compare(place.path(), &format!("{options} --quiet"));
    assert_eq!((ended.status.code(), &*messages(&ended)), (Some(0), ""));
    let shown = String::from_utf8(ended.stdout).unwrap();
    assert!(
        shown.starts_with("Simulated in 2 rounds: cosched ") && shown.lines().count() == 1,
        "{shown}"
    );
    let ended = compare(place.path(), &format!("{options} --quiet"));
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(2), 0));
    assert!(messages(&ended).contains("--resume"), "{}", messages(&ended));
    let ended = compare(place.path(), &format!("{options} --quiet --resume --json"));
    assert!(
        document(&ended)["variants"].is_array() && messages(&ended).is_empty(),
        "{}",
        messages(&ended)
    );
    assert!(!compare(place.path(), "--quiet --verbose").status.success());
}
