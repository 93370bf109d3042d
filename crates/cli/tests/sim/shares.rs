//! Fair shares of simulated programs.

use std::process::Command;

use super::{result, sim};

/// Two programs with a thread for each of 8 CPUs, of which the second comes later and does less.
const TWO: &str = "[[program]]\ncommand = 'a'\nthreads = 8\n[program.model]\nbarrier = 'spin'\n\
    [[program.model.phase]]\ninstructions = 4e10\nbarriers = 200\n\
    [[program]]\ncommand = 'b'\nthreads = 8\nstart = '300ms'\n[program.model]\n\
    barrier = 'donate'\n[[program.model.phase]]\ninstructions = 2e10\nbarriers = 100\n";

/// The engine counts shares of programs by weight, and the simulator those of threads, as the paper
/// on Tidon does. With as many threads and one weight these are the same, but for the time in which
/// threads are made and end.
#[test]
fn shares_of_programs_are_the_papers_shares_of_equal_threads() {
    let run = result(TWO, "--machine e5410-8 --kernel cfs --policy linux");
    for program in &run.programs {
        let (fair, waits) = (program.fair_share.unwrap(), program.usage.waits.unwrap());
        let of_threads = waits.lag_seconds + waits.useful_seconds + waits.spun_seconds;
        let ratio = fair.share_seconds / of_threads;
        assert!((ratio - 1.0).abs() < 0.01, "{}: {fair:?} {waits:?}", program.name);
    }
}

/// One after the other, the second one lacks its share of the time in which the first one ran, and
/// the first one has that.
#[test]
fn explain_names_the_program_that_had_the_missing_share() {
    let folder = tempfile::tempdir().unwrap();
    let options = "--machine e5410-8 --kernel cfs --policy fcfs --out out";
    assert!(sim(folder.path(), TWO, options).status.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder.path()).args(["explain", "out", "--program", "b"]);
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(
        said.contains("By weight its share was ") && said.contains("than theirs: a ("),
        "{said}"
    );
}
