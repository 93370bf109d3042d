//! From figures of solo runs to a simulated run of the policy that predicts: `cosched sim
//! calibrate`, `sim slowdowns`, `sim --policy bandwidth`, from outside.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

const TABLE: &str = "[[program]]\nname = 'loud'\nthreads = 4\nseconds = 0.02\n\
    misses_per_kilo_instruction = 100\n\
    misses_in_flight = 10\n\
    [[program]]\nname = 'quiet'\nthreads = 4\nseconds = 0.02\nmisses_per_kilo_instruction = 100\n\
    misses_in_flight = 10\n\
    point = [{ threads = 4, traffic = { of = 'loud', share = 0.2 } }]\n\
    [[program]]\nname = 'serial'\nthreads = 4\nseconds = 0.02\nmisses_per_kilo_instruction = 0.1\n\
    point = [{ threads = 4, speedup = 2.0, share_of_best = 0.8 }]\n";
const ON: &str = "--machine dunnington-24 --kernel cfs --placement spread";

fn sim(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder).arg("sim").args(arguments.split_whitespace());
    command.output().unwrap()
}

fn printed(folder: &Path, arguments: &str) -> String {
    let output = sim(folder, arguments);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{messages}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str) -> String {
    let output = sim(folder, arguments);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn solo_figures_become_models_a_table_and_a_prediction() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("table.toml"), TABLE).unwrap();
    let models = printed(folder, &format!("calibrate table.toml {ON}"));
    assert!(models.contains("# fitted: cycles_per_instruction = "), "{models}");
    assert!(
        models.contains("# share of the traffic of loud with 4 threads: 0.20 for 0.20"),
        "{models}"
    );
    assert!(models.contains("# speedup with 4 threads: 2.00 for 2.00"), "{models}");
    assert!(models.contains("# threads for 80 % of the best speedup: "), "{models}");
    std::fs::write(folder.join("models.toml"), &models).unwrap();
    let document = printed(folder, &format!("calibrate table.toml {ON} --json"));
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "cosched-sim-calibrate/2");
    let quiet = &document["programs"][1];
    assert_eq!(
        (&quiet["name"], &quiet["fitted"]["key"]),
        (&"quiet".into(), &"cycles_per_instruction".into())
    );
    let value = quiet["fitted"]["value"].as_f64().unwrap();
    assert!(models.contains(&format!("# fitted: cycles_per_instruction = {value:.4}")), "{models}");
    assert_eq!(quiet["residuals"][0]["target"], 0.2);
    assert!(quiet["model"]["phase"][0]["instructions"].is_number(), "{quiet}");

    // Only loud and quiet: `serial` has hardly any traffic, and is a level of its own.
    let table = printed(folder, &format!("slowdowns models.toml {ON}"));
    let read = cosched_policy::Slowdowns::parse(&table).unwrap();
    assert!(read.machine().starts_with("dunnington-24, simulated, 4 threads each, spread"));
    assert!(read.of(read.most(), &[read.most()]) > 1.5);
    std::fs::write(folder.join("slowdowns.toml"), &table).unwrap();
    let document = printed(folder, &format!("slowdowns models.toml {ON} --json"));
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "cosched-sim-slowdowns/1");
    let loudest = document["pairs"][2][2].as_f64().unwrap();
    assert!(table.contains(&format!("{loudest:.4}")) && loudest > 1.5, "{document}");
    assert_eq!(document["triples"][0][1].as_array().unwrap().len(), 3);

    let run = "models.toml --machine dunnington-24 --policy bandwidth --json";
    let message = refused(folder, run);
    assert!(message.contains("--slowdowns") && message.contains("sim slowdowns"), "{message}");
    let json = printed(folder, &format!("{run} --slowdowns slowdowns.toml"));
    let result: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(result["policy"], "bandwidth");
    assert!(json.contains("least-lost"), "{json}");
    let elsewhere = run.replace("dunnington-24", "r905-24");
    for (run, is_foreign) in [(run, false), (elsewhere.as_str(), true)] {
        let output = sim(folder, &format!("{run} --slowdowns slowdowns.toml"));
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            messages.contains("of another machine (dunnington-24)"),
            is_foreign,
            "{messages}"
        );
    }
}

#[test]
fn the_example_of_the_guide_can_be_calibrated() {
    let page = include_str!("../../../docs/research/simulator.md");
    let (_, section) = page.split_once("## Models from solo runs").unwrap();
    let example = section.split("```").nth(1).unwrap().strip_prefix("toml").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("table.toml"), example).unwrap();
    let (_, command) = section.split_once("`cosched sim ").unwrap();
    let command = command.split('`').next().unwrap().replace("TABLE.toml", "table.toml");
    let models = printed(folder.path(), &command);
    assert!(models.contains("stream-60"), "{models}");
}

#[test]
fn an_error_in_a_table_names_file_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refusal_with = |from: &str, to: &str, command: &str| {
        std::fs::write(folder.join("table.toml"), TABLE.replace(from, to)).unwrap();
        refused(folder, command)
    };
    let calibrate = format!("calibrate table.toml {ON}");
    assert!(refusal_with("seconds", "second", &calibrate).contains("table.toml: "));
    let message = refusal_with("'loud', share", "'lout', share", &calibrate);
    assert!(
        message.contains("table.toml: program 'quiet': point.traffic.of is 'lout'"),
        "{message}"
    );
    let message = refusal_with(TABLE, "program = []", &calibrate);
    assert!(message.contains("table.toml: there is no [[program]] to fit"), "{message}");
    let message = refusal_with("threads = 4\n", "threads = 40\n", &calibrate);
    assert!(message.contains("'loud': threads is 40, but must be from 1 to 24"), "{message}");
    let message = refusal_with("speedup = 2.0", "speedup = 0", &calibrate);
    assert!(
        message.contains("'serial': point 1: speedup is 0, but must be a number above 0"),
        "{message}"
    );
    let message = refusal_with(
        "",
        "",
        "jobs.toml --machine dunnington-24 --policy gang --slowdowns table.toml",
    );
    assert!(message.contains("`cosched calibrate slowdowns` makes such a table"), "{message}");
}

#[test]
fn slowdowns_are_of_programs_that_arrive_together() {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, keys: &str, traffic: f64| {
        format!(
            "[[program]]\ncommand = '{name}'\nthreads = 2\n\
             memory_gigabytes_per_second = {traffic}\n{keys}\n\
             [program.model]\n[[program.model.phase]]\ninstructions = 1e7\n\
             misses_per_kilo_instruction = {traffic}\n"
        )
    };
    let table = |keys: &str| {
        let text = program("quiet", keys, 1.0) + &program("loud", keys, 20.0);
        std::fs::write(folder.path().join("jobs.toml"), text).unwrap();
        printed(folder.path(), "slowdowns jobs.toml --machine e5410-8")
    };
    assert_eq!(table("start = '1s'\ngroup = 'both'\nweight = 3.0"), table(""));
}

#[test]
fn without_solo_runs_a_simulation_reports_no_slowdowns() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[program]]\ncommand = 'a'\nthreads = 2\n\
        [program.model]\n[[program.model.phase]]\ninstructions = 1e8";
    std::fs::write(folder.path().join("a.toml"), text).unwrap();
    let run = "a.toml --machine e5410-8 --policy gang --json";
    let slowdown = |arguments: &str| {
        let result: serde_json::Value =
            serde_json::from_str(&printed(folder.path(), arguments)).unwrap();
        result["programs"][0]["slowdown"].clone()
    };
    assert_eq!(slowdown(run), 1.0);
    assert_eq!(slowdown(&format!("{run} --no-solo")), serde_json::Value::Null);
}
