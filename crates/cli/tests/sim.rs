//! `cosched sim`, from outside: the same table and document as a real run, and errors that say where.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use cosched_core::result::RunResult;

const WORKLOAD: &str = "[[program]]\ncommand = 'a'\nthreads = 24\n\
    [program.model]\nspin = 'forever'\n[[program.model.phase]]\ninstructions = 1e10\nbarriers = 1000\n\
    [[program]]\ncommand = 'b'\nthreads = 12\nmisses_per_kilo_instruction = 1\n\
    [program.model]\n[[program.model.phase]]\ninstructions = 1e10\nbarriers = 10\n";

fn sim(folder: &Path, workload: &str, options: &str) -> Output {
    std::fs::write(folder.join("jobs.toml"), workload).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder).args(["sim", "jobs.toml"]).args(options.split_whitespace());
    command.output().unwrap()
}

fn result(workload: &str, options: &str) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    let output = sim(folder.path(), workload, &format!("{options} --out out"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    RunResult::load(&folder.path().join("out/run.json")).unwrap()
}

fn refused(workload: &str, options: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = sim(folder.path(), workload, options);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_simulated_run_has_the_document_of_a_real_one_and_is_the_same_twice() {
    let options = "--machine dunnington-24 --kernel cfs --policy gang --quantum 20ms";
    let first = result(WORKLOAD, options);
    assert_eq!(first, result(WORKLOAD, options));
    assert_eq!((first.policy.as_str(), first.machine.cpus), ("gang", 24));
    assert!(first.programs.iter().all(|program| program.slowdown.unwrap() > 1.0));
    assert!(first.deviations.is_empty());
}

#[test]
fn spinning_programs_are_done_sooner_in_gangs_than_side_by_side() {
    let both = WORKLOAD.replace("threads = 12", "threads = 24").replace(
        "[program.model]\n[[program.model.phase]]\ninstructions = 1e10\nbarriers = 10",
        "[program.model]\nspin = 'forever'\n[[program.model.phase]]\ninstructions = 1e10\nbarriers = 1000",
    );
    let total =
        |policy| result(&both, &format!("--machine dunnington-24 -p {policy}")).total_seconds;
    assert!(total("gang") < 0.7 * total("linux"));
}

#[test]
fn what_is_wrong_is_told_before_anything_is_simulated() {
    let machine = "--machine dunnington-24 --policy gang";
    let told = refused("[[program]]\ncommand = 'a'\n", machine);
    assert!(told.contains("jobs.toml:2:11") && told.contains("[program.model]"), "{told}");
    let told = refused(&WORKLOAD.replace("spin =", "spins ="), machine);
    assert!(told.contains("jobs.toml:2:11") && told.contains("spins"), "{told}");
    let told = refused(WORKLOAD, "--machine cray --policy gang");
    assert!(told.contains("cray") && told.contains("opteron-64"), "{told}");
    let told = refused(WORKLOAD, "--machine e5410-8 --policy gang");
    assert!(told.contains("24 threads"), "{told}");
}
