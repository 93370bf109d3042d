//! Mistakes of different kinds are told at once, and each remedy fits a simulation.

use std::process::Command;

use super::refused;

const WRONG_MODELS: &str = "[[program]]\ncommand = 'a'\nthreads = 2\n\
    [program.model]\nspin = 'long'\n[[program.model.phase]]\ninstructions = 'x'\nserial = 2\n\
    [[program]]\ncommand = 'b'\nthreads = 2\n\
    [program.model]\n[[program.model.phase]]\nsleep = 'late'\n";

const WIDE: &str = "[[program]]\ncommand = 'a'\nthreads = 4\n\
    [program.model]\n[[program.model.phase]]\ninstructions = 1e8\n\
    misses_per_kilo_instruction = 3\n";

/// Each of these is in a message, and there are no others.
#[track_caller]
fn assert_all(message: &str, expected: &[&str]) {
    for part in expected {
        assert!(message.contains(part), "no {part}: {message}");
    }
    let all = format!("{} errors; nothing was started", expected.len());
    assert!(message.contains(&all), "{message}");
}

#[test]
fn mistakes_of_models_and_options_are_told_at_once() {
    let message = refused(WRONG_MODELS, "--machine core:2 --policy gang --goal fair --fill");
    assert_all(
        &message,
        &[
            "--goal is for policies",
            "--fill is for policies",
            "jobs.toml:5:8: program 1 (a): model: spin is \"long\"",
            "jobs.toml:7:16: program 1 (a): model: phase[0].instructions: invalid type",
            "jobs.toml:8:10: program 1 (a): model: phase.serial is 2",
            "jobs.toml:14:9: program 2 (b): model: phase.sleep is \"late\"",
        ],
    );
}

#[test]
fn a_missing_machine_and_missing_models_are_told_at_once() {
    let message = refused("[[program]]\ncommand = 'a'\n", "--policy gang");
    assert_all(&message, &["add --machine with a name", "program 1 (a): the program has no [prog"]);
    let message = refused(WIDE, "--policy gang");
    assert!(message.contains("add --machine") && !message.contains("errors"), "{message}");
    let message = refused(WIDE, "--machine cray");
    assert!(message.contains("or take 'this'"), "{message}");
}

#[test]
fn turns_by_weight_are_refused_on_a_kernel_without_them() {
    let refusal = "greedy: --turns weight: the kernel 'cfs' cannot share CPUs by weight; choose \
                   --kernel eevdf, or use --turns freeze";
    let options = "--machine core:4 --kernel cfs --turns weight --policy greedy";
    let message = refused(WIDE, options);
    assert!(message.contains(refusal), "{message}");
    let words =
        "compare jobs.toml --machine core:4 --kernel cfs --variant a=greedy\t--turns=weight";
    let message = refusal_of(words, WIDE);
    assert!(message.contains(refusal), "{message}");
    let message =
        refused(WIDE, "--machine core:4 --turns weight --sweep kernel=eevdf,cfs -p greedy");
    assert!(message.contains(refusal), "{message}");
}

#[test]
fn what_several_policies_lack_is_told_at_once() {
    let lacks = [
        "'a' requests 4 threads, but there are 2 CPUs to use, and policy 'gang'",
        "and policy 'cgreedy' runs all threads",
        "policy 'cgreedy' needs the cache misses of 'a'",
        "and policy 'bandwidth' runs all threads",
        "policy 'bandwidth' needs the memory traffic of 'a'",
        "`cosched sim slowdowns MODELS.toml --machine M`",
    ];
    let message = refused(WIDE, "--machine core:2 --sweep policy=linux,gang,cgreedy,bandwidth");
    assert_all(&message, &lacks);
    let words = "compare jobs.toml --machine core:2 --policies linux,gang,cgreedy,bandwidth";
    assert_all(&refusal_of(words, WIDE), &lacks);
}

/// What a command says that refuses this jobs file.
fn refusal_of(words: &str, workload: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), workload).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let output = command.current_dir(&folder).args(words.split(' ')).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn other_commands_tell_all_mistakes_at_once_too() {
    let file = "[[program]]\ncommand = 'true'\nthreads = 0\n";
    let of_file = "jobs.toml:3:11: program 1: threads is 0";
    for (words, options) in [
        ("run jobs.toml --policy fcfs --goal fair --fill", ["--goal is for", "--fill is for"]),
        ("advise jobs.toml --policy gang --goal fair --fill", ["--goal is for", "--fill is for"]),
        ("profile jobs.toml --goal fair --fill", ["support --goal", "support --fill"]),
    ] {
        assert_all(&refusal_of(words, file), &[of_file, options[0], options[1]]);
    }
    let wide = file.replace("= 0", "= 2000");
    let message = refusal_of("run jobs.toml --policy fair-progress --optimal", &wide);
    let both = ["'true' requests 2000 threads", "--optimal works only on simulated machines"];
    assert!(both.iter().all(|part| message.contains(part)), "{message}");
}

/// `cosched profile` measures programs, and the figures of a model are not those of a program.
#[test]
fn remedies_in_a_simulation_are_those_of_its_jobs_file() {
    for policy in ["cgreedy", "bandwidth"] {
        let message = refused(WIDE, &format!("--machine core:4 --policy {policy}"));
        let remedy = "of the program below its line [[program]], beside `command`";
        assert!(message.contains(remedy) && !message.contains("cosched profile"), "{message}");
    }
}
