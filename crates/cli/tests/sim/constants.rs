//! `cosched sim --set` and `cosched sim params`: other values of the constants of policies.

use super::*;

fn cosched(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cosched")).args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_constant_that_is_set_is_recorded_and_changes_a_run() {
    let options = "--machine dunnington-24 --policy minwait --max-frozen 50ms --no-solo";
    let usual = document(WORKLOAD, options);
    assert!(!String::from_utf8(usual.clone()).unwrap().contains("\"set\""));
    assert_ne!(usual, document(WORKLOAD, &format!("{options} --set gangs.switch=5ms")));
    let run = result(WORKLOAD, &format!("{options} --set gangs.switch=5ms"));
    let set = run.simulation.unwrap().set;
    assert_eq!(set.into_iter().collect::<Vec<_>>(), [("gangs.switch".into(), "5ms".into())]);
    let usual = result(WORKLOAD, options).total_seconds;
    assert_ne!(usual, run.total_seconds);
    let run = result(WORKLOAD, &format!("{options} --set gangs.switch=500us"));
    assert_eq!(usual, run.total_seconds, "that is the default");
}

#[test]
fn constants_without_effect_or_out_of_range_are_refused() {
    let refused = |policy: &str, set: &str| {
        let options = format!("--machine dunnington-24 --policy {policy} --set {set}");
        refused(WORKLOAD, &options)
    };
    let unused = refused("linux", "auto.short=0.2");
    let expected = "--set auto.short is for policies that use this constant (turns, auto)";
    assert!(unused.contains(expected), "{unused}");
    let unknown = refused("auto", "auto.shrt=0.2");
    assert!(unknown.contains("there is no constant 'auto.shrt'; choose from"), "{unknown}");
    let out_of_range = refused("auto", "auto.short=1.5");
    assert!(out_of_range.contains("choose from 0.0 to 1.0"), "{out_of_range}");
}

/// Constants are tried out in simulations only.
#[test]
fn a_real_run_takes_no_constant() {
    for command in ["run", "compare"] {
        let policies: &[&str] =
            if command == "compare" { &["--policies", "auto,linux"] } else { &[] };
        let words = [&[command], policies, &["--set", "auto.short=0.2", "--", "true"]].concat();
        let output = cosched(&words);
        assert_eq!(output.status.code(), Some(2));
        let expected = format!("`cosched {command}` does not support --set");
        assert!(said(&output).contains(&expected), "{}", said(&output));
    }
    let help = String::from_utf8(cosched(&["run", "--help"]).stdout).unwrap();
    assert!(!help.contains("--set "), "{help}");
}

#[test]
fn params_lists_the_constants_of_a_policy() {
    let output = cosched(&["sim", "params", "minwait", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&document["schema"], &document["policy"]),
        (&"cosched-sim-params/1".into(), &"minwait".into())
    );
    let first = &document["constants"][0];
    assert_eq!((&first["name"], &first["value"]), (&"gangs.shortest".into(), &"1ms".into()));
    for key in ["least", "most", "unit", "what", "basis"] {
        assert!(first[key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
    }
    let all = String::from_utf8(cosched(&["sim", "params"]).stdout).unwrap();
    for name in ["auto.short", "guard.clear", "fair-progress.similar", "molding.worth"] {
        assert!(all.contains(&format!("{name}=")), "{name}");
    }
    let none = String::from_utf8(cosched(&["sim", "params", "linux"]).stdout).unwrap();
    assert_eq!(none.trim(), "linux uses no constant");
}

#[test]
fn a_constant_can_be_swept() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = "--machine dunnington-24 --no-solo --max-frozen 50ms --json \
                 --sweep policy=linux,minwait --sweep gangs.switch=500us,5ms";
    let output = sim(folder.path(), WORKLOAD, sweep);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 3, "linux does not use it: {document}");
    assert_eq!(points[2]["set"]["gangs.switch"], "5ms");
    assert_ne!(points[1]["total_seconds"], points[2]["total_seconds"]);
}
