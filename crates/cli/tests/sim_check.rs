//! `cosched sim measure` and `cosched sim check`, from outside: their form. Their figures are for
//! people to judge, so no time is tested here.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cosched_sim::Hardware;
use serde_json::Value;
use tempfile::TempDir;

fn cosched(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(arguments).env("XDG_DATA_HOME", home).current_dir(home).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A user's folder, in which this machine has been measured.
fn measured() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let output = cosched(home.path(), &["sim", "measure", "--quick"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let kept = home.path().join("cosched/machine.toml");
    assert_eq!(text(&output.stdout), std::fs::read_to_string(kept).unwrap());
    home
}

/// The kernels, built if they are not there yet; `None` where they cannot be built.
fn kernels(folder: &Path) -> Option<PathBuf> {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let built = workloads.join("bin");
    let needed = ["barrier-storm", "lock-loop", "compute", "triad"];
    if needed.iter().all(|name| built.join(name).is_file()) {
        return Some(built);
    }
    let cc = |name: &&str| {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O2", "-fopenmp", "-pthread"]);
        command.arg(workloads.join(format!("src/{name}.c")));
        let linked = command.arg("-o").arg(folder.join(name)).arg("-lm").status();
        linked.is_ok_and(|status| status.success())
    };
    needed.iter().all(cc).then(|| folder.to_owned())
}

#[test]
fn a_measured_machine_is_described_and_can_be_simulated() {
    let home = measured();
    let described = Hardware::load(&home.path().join("cosched/machine.toml")).unwrap();
    assert!(described.gigahertz > 0.0 && described.own.freeze.0 > 0);
    let jobs = "[[program]]\ncommand = 'a'\nthreads = 1\n\
        [program.model]\n[[program.model.phase]]\ninstructions = 1e6\n";
    std::fs::write(home.path().join("jobs.toml"), jobs).unwrap();
    let output = cosched(home.path(), &["sim", "jobs.toml", "-p", "gang", "-m", "this", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["machine"]["cpus"], described.topology.cpus().len());
}

#[test]
fn json_has_the_machines_figures_and_the_path_of_its_file() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["sim", "measure", "--quick", "--json", "--out", "mine.toml"];
    let output = cosched(home.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["schema"], &report["file"]),
        (&"cosched-sim-measure/1".into(), &"mine.toml".into())
    );
    let described = Hardware::load(&home.path().join("mine.toml")).unwrap();
    assert_eq!(report["own"]["freeze_nanos"], described.own.freeze.0);
    assert_eq!(report["own"]["join_nanos"], described.own.join.0);
    let tick = report["tick_nanos"].as_f64().unwrap();
    assert!((tick - described.tick_nanos).abs() <= 0.5, "{report}");
    let gigahertz = report["gigahertz"].as_f64().unwrap();
    assert!((gigahertz - described.gigahertz).abs() < 0.001, "{report}");
    for figure in ["memory_nanos", "bus_bytes_per_nano"] {
        assert!(report[figure].as_f64().unwrap() > 0.0, "{figure}: {report}");
    }
    // A difference of two times is meaningless on a busy machine.
    assert!(report["switch_nanos"].as_f64().unwrap() >= 0.0, "{report}");
    assert_eq!(report["wake_nanos"].as_array().unwrap().len(), 3);
}

#[test]
fn without_a_measurement_or_kernels_the_remedy_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let jobs = home.path().join("jobs.toml");
    std::fs::write(&jobs, "[[program]]\ncommand = 'a'\n").unwrap();
    let jobs = jobs.to_str().unwrap();
    for arguments in [&["sim", "check"][..], &["sim", jobs, "-p", "gang", "-m", "this"]] {
        let output = cosched(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("cosched sim measure"), "{}", text(&output.stderr));
    }
    let home = measured();
    let refusal_of = |arguments: &[&str]| {
        let output = cosched(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let missing = refusal_of(&["sim", "check", "--kernels", "nowhere"]);
    assert!(
        missing.contains("nowhere: there is no '")
            && missing.contains("source tree `make kernels`"),
        "{missing}"
    );
    let unknown = refusal_of(&["sim", "check", "--only", "barrier,cray"]);
    assert!(unknown.contains("--only cray") && unknown.contains("triad x2"), "{unknown}");
    std::fs::write(home.path().join("mine.toml"), "").unwrap();
    let there = refusal_of(&["sim", "measure", "--out", "mine.toml"]);
    assert!(there.contains("mine.toml: exists and would be overwritten"), "{there}");
}

#[test]
fn a_check_reports_errors_by_workload_and_policy() {
    let home = measured();
    let Some(kernels) = kernels(home.path()) else {
        println!(
            "skipped: a check of the model needs a C compiler with OpenMP, or the built kernels"
        );
        return;
    };
    let kernels = kernels.display().to_string();
    let arguments = ["sim", "check", "--quick", "--kernels", &kernels];
    let output = cosched(home.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "cosched-sim-check/2");
    assert!(report["constants"]["barrier_step"].is_number());
    let sections = report["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 2);
    for section in sections {
        let rows = section["rows"].as_array().unwrap();
        let policies: Vec<&str> = rows.iter().map(|row| row["policy"].as_str().unwrap()).collect();
        let (always, with_groups) = policies.split_at(5);
        assert_eq!(always, ["linux", "linux-groups", "fcfs", "gang", "minwait"]);
        let without = text(&output.stderr).contains("without turns");
        assert_eq!(with_groups, if without { &[][..] } else { &["turns"] });
        for cell in rows.iter().flat_map(|row| row["cells"].as_array().unwrap()) {
            let [live, model] =
                [&cell["live"]["value"], &cell["simulated"]].map(|v| v.as_f64().unwrap());
            let error = (model - live).abs() / live;
            assert!((cell["error"].as_f64().unwrap() - error).abs() < 1e-9, "{cell}");
        }
    }
    let output = cosched(home.path(), &[&arguments[..], &["--only", "mixed"]].concat());
    let shown = text(&output.stdout);
    let last = shown.lines().last().unwrap();
    assert!(
        last.starts_with("median error ") && last.ends_with(" %, policy orders wrong: 0"),
        "{shown}"
    );
}
