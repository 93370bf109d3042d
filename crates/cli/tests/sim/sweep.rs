//! `cosched sim --sweep`: one table of many simulations.

use std::process::{Command, Output};

use cosched_results::result::RunResult;

use super::WORKLOAD;

fn sweep(workload: &str, options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), workload).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder.path()).args(["sim", "jobs.toml"]).args(options).output().unwrap()
}

#[test]
fn a_sweep_has_the_single_runs_figures_in_each_row() {
    let machine = "package:1 core:24 gigahertz=2";
    let options = [
        "--machine",
        machine,
        "--sweep",
        "policy=linux,gang",
        "--sweep",
        "quantum=20ms,50ms",
        "--sweep",
        "seed=1,2",
        "--json",
    ];
    let output = sweep(WORKLOAD, &options);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "cosched-sweep/1");
    assert_eq!(report["keys"], serde_json::json!(["policy", "quantum", "seed"]));
    let points = report["points"].as_array().unwrap();
    // Quanta mean nothing to linux: it has two seeds. gang has two quanta and two seeds.
    let row = |point: &serde_json::Value| {
        (
            point["policy"].as_str().unwrap().to_owned(),
            point["quantum_seconds"].as_f64(),
            point["seed"].as_u64(),
        )
    };
    let rows: Vec<_> = points.iter().map(row).collect();
    let gang = |quantum, seed| ("gang".to_owned(), Some(quantum), Some(seed));
    let linux = |seed| ("linux".to_owned(), None, Some(seed));
    assert_eq!(
        rows,
        [linux(1), linux(2), gang(0.02, 1), gang(0.02, 2), gang(0.05, 1), gang(0.05, 2)]
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), WORKLOAD).unwrap();
    let mut one = Command::new(env!("CARGO_BIN_EXE_cosched"));
    one.current_dir(folder.path()).args(["sim", "jobs.toml", "--machine", machine]);
    one.args("--policy gang --quantum 50ms --seed 2 --out out".split(' '));
    assert_eq!(one.output().unwrap().status.code(), Some(0));
    let one = RunResult::load(&folder.path().join("out/run.json")).unwrap();
    let same = &points[5];
    assert_eq!(same["total_seconds"].as_f64(), Some(one.total_seconds));
    assert_eq!(same["unfairness"].as_f64(), one.metrics.unfairness);
    let alone: f64 = one.programs.iter().map(|program| program.solo_seconds.unwrap()).sum();
    let ratio = same["ratio_to_solo_sum"].as_f64().unwrap();
    assert!((ratio - one.total_seconds / alone).abs() < 1e-9);
}

#[test]
fn a_sweep_shows_a_table_with_a_column_for_each_key() {
    let output = sweep(
        WORKLOAD,
        &[
            "--policy",
            "gang",
            "--sweep",
            "machine=dunnington-24,package:1 core:32",
            "--sweep",
            "kernel=cfs,eevdf",
        ],
    );
    let table = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> =
        table.lines().filter(|line| line.contains("cfs") || line.contains("eevdf")).collect();
    assert_eq!(rows.len(), 4, "{table}");
    assert!(table.contains("machine") && table.contains("total / alone"), "{table}");
    assert!(rows[2].contains("package:1 core:32"), "{table}");
}

#[test]
fn a_wrong_sweep_is_refused_before_anything_is_simulated() {
    let refused = |options: &[&str]| {
        let output = sweep(WORKLOAD, options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let on = |sweep| refused(&["--machine", "dunnington-24", "--policy", "gang", "--sweep", sweep]);
    let message = on("quanta=20ms");
    assert!(message.contains("'quanta'") && message.contains("max-frozen"), "{message}");
    assert!(on("quantum").contains("key=a,b,c"));
    let message = on("quantum=20ms,5");
    assert!(message.contains("'5'") && message.contains("100ms"), "{message}");
    assert!(on("quantum=20ms,20ms").contains("every value once"));
    assert!(on("seed=1,x").contains("'x'"));
    assert!(on("kernel=bsd").contains("balance"));
    assert!(on("machine=dunnington-24,cray").contains("--machine is given as well"));
    assert!(on("policy=linux,gang").contains("--policy is given as well"));
    let message = refused(&["--policy", "gang", "--sweep", "machine=dunnington-24,cray"]);
    assert!(message.contains("cray") && message.contains("opteron-64"), "{message}");
    let message = refused(&["--sweep", "seed=1,2"]);
    assert!(message.contains("--sweep machine=A,B"), "{message}");
    let message = refused(&[
        "--machine",
        "dunnington-24",
        "--policy",
        "linux",
        "--sweep",
        "quantum=20ms,40ms",
    ]);
    assert!(message.contains("gang") && message.contains("quantum"), "{message}");
    let message = refused(&["--machine", "core:2", "--sweep", "quantum=x", "--sweep", "foo=1"]);
    assert!(message.contains("'x'") && message.contains("'foo'"), "{message}");
    let message = refused(&["--policy", "gang", "--sweep", "machine=core:24 gigaherz=2,core:24"]);
    assert!(message.contains("gigaherz=2"), "{message}");
}
