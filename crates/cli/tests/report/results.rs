//! What counts as a result, and as one of a comparison, for all commands that read results.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{change, cosched, messages, runs};

#[test]
fn a_rivals_run_is_explained_by_the_name_of_its_variant() {
    let folder = runs(&[]);
    let compared = ["compare", "jobs.toml", "--machine", "dunnington-24", "--out", "d"];
    let variants = ["--policies", "linux,one-thread", "--runs", "2"];
    assert!(cosched(folder.path(), &[&compared[..], &variants].concat()).status.success());
    let explained = |arguments: &[&str]| {
        let output = cosched(folder.path(), &[&["explain"][..], arguments].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = "The run is of the variant 'one-thread' of a comparison.";
    assert!(explained(&["d/round-002/one-thread"]).contains(expected));
    assert!(!explained(&["d/round-002/linux/run.json"]).contains("of a comparison"));
    let then = "At 0.010 s, under linux (variant 'one-thread' of a comparison):";
    assert!(explained(&["d/round-001/one-thread", "--at", "0.01"]).starts_with(then));
    for at in [&[][..], &["--at", "0.01"]] {
        let asked = [&["d/round-001/one-thread", "--json"][..], at].concat();
        let explanation: Value = serde_json::from_str(&explained(&asked)).unwrap();
        assert_eq!(
            (&explanation["variant"], &explanation["policy"]),
            (&"one-thread".into(), &"linux".into())
        );
    }
}

/// Turns a result into that of a measured run, on a machine of this name.
fn measured(run: &Path) {
    change(run, |run| run["machine"]["kernel"] = "6.18.0".into());
}

#[test]
fn a_run_named_twice_or_copied_counts_once() {
    let folder = runs(&[("gang", "r1"), ("gang", "d/round-001/gang")]);
    let refused = |arguments: &[&str]| {
        let output = cosched(folder.path(), &[&["report", "-o", "-"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        messages(&output)
    };
    let twice = refused(&["r1", "r1/run.json"]);
    assert!(twice.contains("is the same run as r1/run.json, and a run counts once"), "{twice}");
    let first = folder.path().join("d/round-001/gang/run.json");
    measured(&first);
    let second = folder.path().join("d/round-002/gang");
    fs::create_dir_all(&second).unwrap();
    fs::copy(&first, second.join("run.json")).unwrap();
    let copied = refused(&["d"]);
    assert!(
        copied.contains("d/round-002/gang/run.json: is the same run as d/round-001/gang/run.json"),
        "{copied}"
    );
}

#[test]
fn a_run_under_another_policy_is_not_shown_as_a_variant() {
    let folder = runs(&[("linux", "other")]);
    let compared = ["compare", "jobs.toml", "--machine", "dunnington-24", "--runs", "1"];
    let variants =
        ["--policies", "linux,gang", "--variant", "short=gang --quantum 20ms", "--out", "d"];
    let made = cosched(folder.path(), &[&compared[..], &variants].concat());
    assert!(made.status.success(), "{}", messages(&made));
    for variant in ["gang", "short"] {
        let run = folder.path().join(format!("d/{variant}/run.json"));
        let kept = fs::read(&run).unwrap();
        fs::copy(folder.path().join("other/run.json"), &run).unwrap();
        let output = cosched(folder.path(), &["report", "d", "-o", "-"]);
        assert_eq!(output.status.code(), Some(2));
        let expected = format!(
            "d/{variant}/run.json: is a run with policy linux, but variant {variant} of this \
             comparison has policy gang"
        );
        assert!(messages(&output).contains(&expected), "{}", messages(&output));
        fs::write(&run, kept).unwrap();
    }
    assert_eq!(cosched(folder.path(), &["report", "d", "-o", "-"]).status.code(), Some(0));
}

#[test]
fn a_round_with_a_damaged_run_does_not_count() {
    let folder = runs(&[]);
    let compared = ["compare", "jobs.toml", "--machine", "dunnington-24", "--runs", "3"];
    let asked = [&compared[..], &["--policies", "linux,gang", "--out", "d"]].concat();
    assert!(cosched(folder.path(), &asked).status.success());
    let report = || cosched(folder.path(), &["report", "d", "--json"]);
    fs::write(folder.path().join("d/round-003/gang/run.json"), "{").unwrap();
    // A pipe in place of the plan does not block the report.
    let plan = folder.path().join("d/compare-plan.json");
    fs::remove_file(&plan).unwrap();
    assert!(Command::new("mkfifo").arg(&plan).status().unwrap().success());
    let output = report();
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    let written: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(written["compared"], true);
    assert_eq!(written["variants"][1]["runs"].as_array().unwrap().len(), 2, "{written}");
    let notes = written["notes"].to_string();
    assert!(notes.contains("d/round-003/gang/run.json is damaged (EOF while"), "{notes}");
    assert!(notes.contains("1 incomplete round does not count."), "{notes}");
    for variant in ["linux", "gang"] {
        for round in 1..=3 {
            let run = folder.path().join(format!("d/round-00{round}/{variant}/run.json"));
            fs::write(run, [0u8; 9]).unwrap();
        }
    }
    let output = report();
    assert_eq!(output.status.code(), Some(2));
    let expected = "d: holds no result of a run that can be read: \
                    d/round-001/gang/run.json is damaged (it is not text)";
    assert!(messages(&output).contains(expected), "{}", messages(&output));
}

#[test]
fn a_folder_name_that_is_not_utf_8_is_shown_lossily() {
    let folder = runs(&[("gang", "d/gang"), ("linux", "d/linux")]);
    let odd = folder.path().join("d").join(OsStr::from_bytes(b"g\xff"));
    fs::rename(folder.path().join("d/gang"), odd).unwrap();
    let output = cosched(folder.path(), &["report", "d", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    let written: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(written["variants"][1]["runs"][0], "d/g\u{fffd}/run.json");
}

#[test]
fn equal_names_with_other_commands_are_not_compared() {
    let folder = runs(&[("gang", "a"), ("linux", "b")]);
    let longer = |run: &mut Value| run["programs"][0]["command"] = serde_json::json!(["p0", "-n9"]);
    change(&folder.path().join("b/run.json"), longer);
    let output = cosched(folder.path(), &["report", "a", "b", "--json"]);
    let written: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(written["compared"], false);
    let note = "shown, but not compared: p0 is `p0 -n9` in linux, and `p0` in gang.";
    assert!(written["notes"][0].as_str().unwrap().contains(note), "{written}");
}

#[test]
fn a_printed_comparison_lists_variants_and_refuses_a_window() {
    let folder = runs(&[]);
    let asked = ["compare", "jobs.toml", "--machine", "dunnington-24", "--runs", "1", "--json"];
    let printed = cosched(folder.path(), &[&asked[..], &["--policies", "linux,gang"]].concat());
    fs::write(folder.path().join("c.json"), printed.stdout).unwrap();
    let output = cosched(folder.path(), &["report", "c.json", "--json"]);
    let written: Value = serde_json::from_slice(&output.stdout).unwrap();
    let variant = |name: &str| serde_json::json!({"name": name, "runs": [], "sections": []});
    assert_eq!(written["variants"], serde_json::json!([variant("linux"), variant("gang")]));
    for option in ["--begin", "--end"] {
        let refused = cosched(folder.path(), &["report", "c.json", option, "1"]);
        assert_eq!(refused.status.code(), Some(2));
        let expected = format!("{option}: a comparison in one file holds no runs");
        assert!(messages(&refused).contains(&expected), "{}", messages(&refused));
    }
}

#[test]
fn all_readers_refuse_what_is_no_result_and_never_wait() {
    let folder = runs(&[("gang", "r")]);
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(folder.path().join("later.json"), r#"{"schema": "cosched-run/1"}"#).unwrap();
    let unknown = folder.path().join("unknown.json");
    fs::copy(folder.path().join("r/run.json"), &unknown).unwrap();
    change(&unknown, |run| run["policy"] = "tidal".into());
    let word = folder.path().join("word.json");
    fs::copy(folder.path().join("r/run.json"), &word).unwrap();
    change(&word, |run| run["programs"][0]["command"][0] = "".into());
    for (file, what) in [
        ("word.json", "programs[0].command[0] is empty; no run can be like this"),
        ("pipe", "cannot be read: it is a pipe, a socket or a device"),
        ("/dev/zero", "cannot be read: it is a pipe, a socket or a device"),
        ("jobs.toml", "is not a result of a run (it is no JSON object); name a folder"),
        ("later.json", "is damaged: missing field"),
        (
            "unknown.json",
            "this version of cosched does not know its policy 'tidal'; use the version that made \
             the run",
        ),
    ] {
        for command in [
            &["explain", file][..],
            &["trace", file],
            &["report", file],
            &["sim", "--policy", "gang", "--from", file],
        ] {
            let output = cosched(folder.path(), command);
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            assert!(
                messages(&output).contains(&format!("{file}: {what}")),
                "{}",
                messages(&output)
            );
        }
    }
    for command in [
        &["run", "--policy", "gang", "pipe"][..],
        &["run", "--policy", "faithful", "--quanta", "pipe", "--", "true"],
        &["sim", "jobs.toml", "--policy", "gang", "--machine", "./pipe"],
        &[
            "sim",
            "jobs.toml",
            "--policy",
            "bandwidth",
            "--machine",
            "r905-24",
            "--slowdowns",
            "pipe",
        ],
        &["sim", "calibrate", "pipe", "--machine", "r905-24"],
    ] {
        let output = cosched(folder.path(), command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let printed = messages(&output);
        assert!(
            printed.contains("pipe") && printed.contains("it is a pipe, a socket"),
            "{printed}"
        );
    }
}

#[test]
fn a_run_from_stdin_is_read_once_and_its_trace_needs_out() {
    let folder = runs(&[("gang", "r")]);
    let fed = |arguments: &[&str]| {
        let run = fs::File::open(folder.path().join("r/run.json")).unwrap();
        let mut cat = Command::new("cat");
        let mut cat = cat.stdin(run).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
        let command = command.current_dir(folder.path()).args(arguments);
        let output = command.stdin(cat.stdout.take().unwrap()).output().unwrap();
        cat.wait().unwrap();
        output
    };
    let page = fed(&["report", "/dev/stdin", "-o", "-"]);
    assert_eq!(page.status.code(), Some(0), "{}", messages(&page));
    let trace = fed(&["trace", "/dev/stdin"]);
    assert_eq!(trace.status.code(), Some(2));
    assert!(
        messages(&trace)
            .contains("/dev/stdin: there is no folder to write the trace to; name a file")
    );
    assert_eq!(fed(&["trace", "/dev/stdin", "-o", "t"]).status.code(), Some(0));
}
