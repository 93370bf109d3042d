//! The keys `stdin`, `stdout` and `stderr` of a workload file.

use std::fs;
use std::os::unix::fs::symlink;

use super::support::{Place, program};

/// A program that shows that it was started.
fn tell_tale(keys: &str) -> String {
    program("a", keys, "touch started; echo a")
}

/// Relative paths begin at the program's folder, and repetitions append.
#[test]
fn streams_are_the_files_that_the_workload_names() {
    let place = Place::new();
    fs::create_dir(place.path("work")).unwrap();
    place.write("work/in.txt", "input\n");
    let keys = "cwd = 'work'\nrepeat = 2\nstdin = 'in.txt'\nstdout = '../both'\nstderr = '../both'";
    let alone = format!("stdout = '{}'", place.path("b.txt").display());
    let tables = [
        program("a", keys, "cat; echo error >&2"),
        program("b", &alone, "cat; echo b; echo why >&2; exit 3"),
    ];
    let ended = place.run(&tables, "--policy fcfs").ended().with(1);
    assert_eq!(place.read("both"), "input\nerror\n".repeat(2));
    assert_eq!(place.read("b.txt"), "b\n");
    assert_eq!(place.read("out/b.stderr"), "why\n");
    for name in ["a.stdout", "a.stderr", "b.stdout"] {
        assert!(!place.path("out").join(name).exists(), "{name}");
    }
    place.nothing_is_left_of(&ended);
}

#[test]
fn the_stderr_of_a_program_that_failed_is_named() {
    let place = Place::new();
    place.write("jobs.toml", program("a", "stderr = 'a.log'", "echo why >&2; exit 3"));
    let ended = place.cosched(&["run", "jobs.toml", "--policy", "linux"]).ended().with(1);
    let log = place.path("a.log");
    ended.saying(&[&log.display().to_string()]);
    assert_eq!(place.read("a.log"), "why\n");
}

#[test]
fn a_device_may_take_the_outputs_of_several_programs() {
    let place = Place::new();
    let keys = "stdin = '/dev/null'\nstdout = '/dev/null'\nstderr = '/dev/null'";
    let tables = ["a", "b"].map(|name| program(name, keys, "echo out; echo err >&2"));
    place.write("jobs.toml", tables.concat());
    let ended = place.cosched(&["run", "jobs.toml", "--policy", "linux"]).ended().with(0);
    assert!(!ended.stdout.contains("out\n"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "");
}

#[test]
fn streams_that_cannot_be_had_are_refused_with_key_and_remedy() {
    let cases: [(&str, &[&str]); 11] = [
        ("stdin = 'gone'", &["stdin is", "gone, which does not exist; make it"]),
        ("stdin = 'run'", &["stdin is", "run, which is a folder; name a file"]),
        ("stdout = 'kept'", &["stdout is", "kept, which is there and would be overwritten"]),
        ("stderr = 'link'", &["stderr is", "link, which is there and would be overwritten"]),
        ("stdout = 'gone/x'", &["in the folder", "gone, which does not exist; make it"]),
        ("stdout = 'kept/x'", &["in the folder", "kept, which is no folder"]),
        ("stdout = 'run'", &["run, which is a folder; name a file in it"]),
        ("stdout = 'a.txt'", &["a.txt, which takes the stdout of program 1 (a), too"]),
        ("stderr = 'run/../a.txt'", &["a.txt, which takes the stdout of program 1 (a), too"]),
        ("stdout = 'out/run.json'", &["out/run.json, which takes the result of the run, too"]),
        ("stdout = 'out/a.stderr'", &["a.stderr, which takes the stderr of program 1 (a), too"]),
    ];
    for (keys, saying) in cases {
        let place = Place::new();
        place.write("kept", "kept");
        symlink("nowhere", place.path("link")).unwrap();
        let tables = [tell_tale("stdout = 'a.txt'"), program("b", keys, "echo b")];
        let ended = place.run(&tables, "--policy linux").ended().with(2);
        let place_of_key = ["jobs.toml:8:10: program 2 (b): ", "jobs.toml:8:9: program 2 (b): "];
        assert!(
            place_of_key.iter().any(|position| ended.stderr.contains(position)),
            "{}",
            ended.stderr
        );
        let ended = ended.saying(saying);
        assert!(!place.path("started").exists(), "{keys}: a program was started");
        assert_eq!(place.read("kept"), "kept");
        assert!(!place.path("nowhere").exists());
        place.nothing_is_left_of(&ended);
    }
}

/// The folder of the run need not be there before.
#[test]
fn outputs_may_go_to_the_folder_of_the_run_by_another_name() {
    let place = Place::new();
    place.run(&[program("a", "stdout = 'out/log'", "echo a")], "").ended().with(0);
    assert_eq!(place.read("out/log"), "a\n");
}

#[test]
fn compare_keeps_outputs_in_its_own_folders() {
    let place = Place::new();
    place.write("in", "input\n");
    place.write("jobs.toml", program("a", "stdin = 'in'\nstdout = 'a.txt'", "cat"));
    let compare = ["compare", "jobs.toml", "--policies", "linux,fcfs", "--runs", "1"];
    place.cosched(&[&compare[..], &["--out", "all"]].concat()).ended().with(0);
    for policy in ["linux", "fcfs"] {
        assert_eq!(place.read(&format!("all/{policy}/a.stdout")), "input\n");
    }
    assert!(!place.path("a.txt").exists());
}

/// The name is free before the run, and the first program takes it.
#[test]
fn a_file_that_appears_before_a_start_is_kept() {
    let place = Place::new();
    let tables =
        [program("a", "", "echo precious > b.txt"), program("b", "stdout = 'b.txt'", "echo b")];
    let ended = place.run(&tables, "--policy fcfs").ended().with(1);
    assert_eq!(place.read("b.txt"), "precious\n");
    ended.saying(&["b could not be started: cannot open", "b.txt for the program's output"]);
}
