//! What cosched prints and writes: JSON for scripts, a table for people, the programs' own outputs.

use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::Value;

use super::support::{Ended, Place, eventually, program};

pub(crate) fn talkative() -> [String; 2] {
    ["a", "b"]
        .map(|name| program(name, "threads = 1", &format!("echo {name} out; echo {name} err >&2")))
}

/// The lines in alphabetical order: programs that run together write in any order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The names of all fields.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| [vec![key.as_str()], keys(value)].concat())
            .collect(),
        Value::Array(values) => values.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn json_goes_to_stdout_and_everything_else_to_stderr() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    let ended = place.cosched(&["run", "jobs.toml", "--policy", "gang", "--json"]).ended().with(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(sorted(&ended.stderr), ["a err", "a out", "b err", "b out"]);
    for key in ["schema", "policy", "total_seconds", "programs", "metrics"] {
        assert!(!document[key].is_null(), "{key}");
    }
    let program = document["programs"][0].as_object().unwrap();
    for key in [
        "name",
        "turnaround_seconds",
        "running_seconds",
        "waiting_seconds",
        "slowdown",
        "exit_status",
        "timeline",
        "usage",
        "left_running",
    ] {
        assert!(program.contains_key(key), "{key}");
    }
    let metrics = document["metrics"].as_object().unwrap();
    for key in [
        "fairness_stddev",
        "unfairness",
        "weighted_speedup",
        "extended_weighted_speedup",
        "responsiveness_max_seconds",
        "cpu_utilisation",
    ] {
        assert!(metrics.contains_key(key), "{key}");
    }
}

#[test]
fn the_printed_document_is_the_saved_one() {
    let place = Place::new();
    let ended = place.run(&talkative(), "--policy gang --json").ended().with(0);
    assert_eq!(ended.stdout, place.read("out/run.json"));
    assert_eq!(ended.stderr, "");
}

#[test]
fn without_a_folder_programs_write_where_cosched_does() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    let ended = place.cosched(&["run", "jobs.toml", "--policy", "gang"]).ended().with(0);
    for line in ["a out", "b out"] {
        assert!(ended.stdout.lines().any(|printed| printed == line), "{}", ended.stdout);
    }
    assert_eq!(sorted(&ended.stderr), ["a err", "b err"]);
}

#[test]
fn force_replaces_the_files_of_a_run_and_nothing_else() {
    let place = Place::new();
    let again = |option: &str| place.run(&talkative(), option).ended();
    again("").with(0);
    again("").with(2).saying(&["already holds a run"]);
    place.write("out/a.stdout", "old");
    again("--force").with(0);
    place.cosched(&["report", "out"]).ended().with(0);
    place.cosched(&["trace", "out"]).ended().with(0);
    again("--force").with(0);
    assert!(!place.path("out/report.html").exists());
    place.write("out/report.html", "mine");
    again("--force").with(2).saying(&["report.html is something else"]);
    std::fs::remove_file(place.path("out/report.html")).unwrap();
    assert_eq!(place.read("out/a.stdout"), "a out\n");

    place.write("out/notes", "precious");
    let kept = place.read("out/run.json");
    again("--force").with(2).saying(&["--force replaces only what a run wrote", "notes"]);
    assert_eq!((place.read("out/run.json"), place.read("out/notes")), (kept, "precious".into()));
    std::fs::remove_file(place.path("out/notes")).unwrap();

    place.write("precious", "precious");
    std::fs::remove_file(place.path("out/a.stdout")).unwrap();
    std::os::unix::fs::symlink("../precious", place.path("out/a.stdout")).unwrap();
    again("--force").with(2).saying(&["a.stdout is something else"]);
    std::fs::remove_file(place.path("out/a.stdout")).unwrap();

    std::fs::rename(place.path("out"), place.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", place.path("out")).unwrap();
    again("--force").with(2).saying(&["it is a link"]);
    assert!(place.path("elsewhere/run.json").exists());
    assert_eq!(place.read("precious"), "precious");
}

#[test]
fn force_replaces_what_a_killed_run_left() {
    let place = Place::new();
    let table = program("a", "", "echo out; touch begun; while test ! -e end; do sleep 0.01; done");
    let cosched = place.run(&[table], "--policy linux");
    eventually("the program", || place.path("begun").exists());
    let again = || place.cosched(&["run", "jobs.toml", "--out", "out", "--force"]).ended();
    again().with(2).saying(&["another cosched is running programs there"]);
    cosched.kill();
    place.write("end", "");
    place.write("out/notes", "precious");
    again().with(2).saying(&["notes is something else"]);
    std::fs::remove_file(place.path("out/notes")).unwrap();
    let other = ["run", "--out", "out", "--", "true"];
    place.cosched(&other).ended().with(2).saying(&["a run is in progress there, or was killed"]);
    assert!(!place.path("out/run.json").exists());
    eventually("the end of the program, and a new run", || again().code() == Some(0));
    assert_eq!(place.read("out/a.stdout"), "out\n");
    let mut files = std::fs::read_dir(place.path("out")).unwrap().map(|file| file.unwrap().path());
    assert!(files.all(|file| !file.ends_with(".cosched-run")));
}

/// Another `--force` has the folder, and its run is not marked yet: it is still checking.
#[test]
fn force_removes_nothing_while_another_has_the_folder() {
    let place = Place::new();
    let again = |option: &str| place.run(&talkative(), option).ended();
    again("").with(0);
    let kept = place.read("out/run.json");
    let held = std::fs::File::open(place.path("out")).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    again("--force").with(2).saying(&["another cosched is running programs there"]);
    assert_eq!((place.read("out/run.json"), place.read("out/a.stdout")), (kept, "a out\n".into()));
    drop(held);
    again("--force").with(0);
}

/// Programs of a killed cosched run on, and so may their children after a run.
#[test]
fn force_keeps_outputs_that_programs_still_write() {
    let place = Place::new();
    let waits = "echo $$ > pid; while test ! -e end; do sleep 0.01; done; echo end";
    let cosched = place.run(&[program("a", "", waits)], "--policy linux");
    eventually("the program", || place.read("pid").ends_with('\n'));
    cosched.kill();
    let again = || place.cosched(&["run", "jobs.toml", "--out", "out", "--force"]).ended();
    let pid = place.read("pid");
    let refused = again().with(2).saying(&["still write", "or choose another folder"]);
    assert!(refused.stderr.contains(pid.trim()), "{}", refused.stderr);
    place.write("end", "");
    eventually("a new run", || again().code() == Some(0));
    assert_eq!(place.read("out/a.stdout"), "end\n");
}

#[test]
fn force_removes_nothing_from_a_folder_without_a_run() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    std::fs::create_dir(place.path("out")).unwrap();
    let run = || place.cosched(&["run", "jobs.toml", "--out", "out", "--force"]).ended();
    run().with(0);
    for (content, said) in [(None, "there is no run.json"), (Some("{}"), "is no result of a run")] {
        std::fs::remove_file(place.path("out/run.json")).unwrap();
        if let Some(content) = content {
            place.write("out/run.json", content);
        }
        run().with(2).saying(&[said]);
        assert_eq!(place.read("out/a.stdout"), "a out\n");
        place.write("out/run.json", "");
    }
}

#[test]
fn labelled_lines_begin_with_the_name_of_their_program() {
    let place = Place::new();
    let tables = [
        program("a", "", "echo out; printf 'no end' >&2"),
        program("longer", "", "echo out; (sleep 0.3; echo late) &"),
    ];
    place.write("jobs.toml", tables.concat());
    let ended = place.cosched(&["run", "jobs.toml", "--label", "-p", "linux"]).ended().with(0);
    let labelled = |text: &str| -> Vec<String> {
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.contains(" | ")).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(labelled(&ended.stdout), ["a      | out", "longer | late", "longer | out"]);
    assert_eq!(labelled(&ended.stderr), ["a      | no end"]);
    // What the programs print stands above the table.
    let table = ended.stdout.find("threads seen").unwrap();
    assert!(ended.stdout.find("| late").unwrap() < table, "{}", ended.stdout);
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_labelled_program_outlives_a_killed_cosched() {
    let place = Place::new();
    let script = "echo $$ > pid; while [ ! -e stop ]; do echo on; sleep 0.01; done; echo > done";
    place.write("jobs.toml", [program("a", "", script), program("b", "", ":")].concat());
    let cosched = place.cosched(&["run", "jobs.toml", "--label", "-p", "linux"]);
    eventually("the program", || place.path("pid").exists());
    cosched.kill();
    let lines = || place.read("cosched.stdout").lines().count();
    let before = lines();
    eventually("more output", || lines() > before + 3);
    place.write("stop", "");
    eventually("its end", || place.path("done").exists());
}

#[test]
fn a_labelled_program_outlives_its_killed_shim() {
    let place = Place::new();
    let script = "while [ ! -e stop ]; do echo on; sleep 0.01; done; echo over";
    place.write("jobs.toml", [program("a", "", script), program("b", "", "touch b")].concat());
    let cosched = place.cosched(&["run", "jobs.toml", "--label", "-p", "linux"]);
    let lines = || place.read("cosched.stdout").lines().count();
    let marked = place.marked();
    eventually("an output", || lines() > 3);
    // If its shim is killed when it starts or ends, its exit status is not known.
    let has_one_shim = || place.path("b").exists() && marked.named("shim").len() == 1;
    eventually("the end of the other program and of its shim", has_one_shim);
    for shim in marked.named("shim") {
        marked.signal(shim, Signal::KILL);
    }
    eventually("the shims' end", || marked.named("shim").is_empty());
    let before = lines();
    eventually("more output", || lines() > before + 3);
    place.write("stop", "");
    let ended = cosched.ended().with(0);
    assert!(ended.stdout.contains("a | over\n"), "{}", ended.stdout);
    place.nothing_is_left_of(&ended);
}

#[test]
fn quiet_prints_only_errors_and_verbose_the_means() {
    let place = Place::new();
    place.write("jobs.toml", talkative().concat());
    let run = |option: &str| place.cosched(&["run", "jobs.toml", "-p", "linux", option]).ended();
    let quiet = run("--quiet").with(0);
    assert_eq!(sorted(&quiet.stdout), ["a out", "b out"]);
    assert_eq!(sorted(&quiet.stderr), ["a err", "b err"]);
    let verbose = run("--verbose").with(0);
    assert!(
        verbose.stdout.contains("No program was frozen or bound to CPUs"),
        "{}",
        verbose.stdout
    );
    place.write("jobs.toml", program("a", "", "echo '#!/not/there' > b; chmod +x b; exec ./b"));
    let failed = run("--quiet").with(1);
    assert_eq!(failed.stdout, "");
}

#[test]
fn commands_can_be_given_without_a_file() {
    let place = Place::new();
    let run =
        ["run", "-p", "fcfs", "--out", "out", "--", "echo", "a  b", ":::", "sh", "-c", "exit 4"];
    let ended = place.cosched(&run).ended().with(1);
    assert_eq!(place.read("out/echo.stdout"), "a  b\n");
    let result = ended.result();
    assert_eq!(result.programs[0].command, ["echo", "a  b"]);
    assert_eq!(result.programs[1].exit_status, Some(4));

    let place = Place::new();
    let run = ["run", "-p", "fcfs", "--out", "out", "--prog", "echo 'a  b'", "--prog", "echo c"];
    let result = place.cosched(&run).ended().with(0).result();
    let names: Vec<&str> = result.programs.iter().map(|program| program.name.as_str()).collect();
    let outputs: Vec<String> =
        names.iter().map(|name| place.read(&format!("out/{name}.stdout"))).collect();
    assert_eq!(outputs, ["a  b\n", "c\n"]);
}

#[test]
fn the_table_is_printed_if_a_file_cannot_be_written() {
    let place = Place::new();
    let ended = place
        .run(&[program("a", "", "mkdir out/run.json.part")], "--policy linux")
        .ended()
        .with(1)
        .saying(&["out/run.json: cannot be written: Is a directory"]);
    assert!(ended.stdout.contains("linux: "), "{}", ended.stdout);
    assert!(!place.path("out/run.json").exists());
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_link_that_appears_in_the_output_folder_is_not_followed() {
    let place = Place::new();
    let links = "for name in run.json run.json.part b.stdout; do ln -s ../precious out/$name; \
                 done; echo > made";
    let [first, second] =
        [("a", links), ("b", "echo b")].map(|(name, script)| program(name, "", script));
    place.write("precious", "precious");
    let ended = place.run(&[first, second], "--policy fcfs").ended();
    assert!(place.path("made").exists());
    assert_eq!(place.read("precious"), "precious");
    assert!(ended.stderr.contains("b.stdout"), "{}", ended.stderr);
    assert!(!place.path("out/run.json").is_symlink());
    ended.result();
    place.nothing_is_left_of(&ended);
}

#[test]
fn nothing_is_written_to_a_replaced_output_folder() {
    let place = Place::new();
    let swap = "mkdir elsewhere; mv out moved; ln -s elsewhere out";
    let [first, second] =
        [("a", swap), ("b", "echo b")].map(|(name, script)| program(name, "", script));
    let ended = place.run(&[first, second], "--policy fcfs").ended().with(0);
    assert_eq!(place.read("moved/b.stdout"), "b\n", "{}", ended.stderr);
    assert!(place.read("moved/run.json").contains("cosched-run"));
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
}

/// A comparison of two programs, of which the second reads what the first writes. `swap` happens
/// in the first round, after the run that warms up.
fn compared_meanwhile(place: &Place, swap: &str) -> Ended {
    let first = format!("echo a; echo >> runs; [ $(wc -l < runs) != 2 ] || {{ {swap}; }}");
    let jobs = [
        program("a", "stdout = 'a.out'", &first),
        program("b", "after = ['a']\nstdin = 'a.out'", "cat"),
    ];
    place.write("jobs.toml", jobs.concat());
    std::fs::create_dir(place.path("foreign")).unwrap();
    let compare = ["compare", "jobs.toml", "--policies", "linux,fcfs", "--runs", "2"];
    place.cosched(&[&compare[..], &["--out", "all"]].concat()).ended()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().count() == 0
}

#[test]
fn nothing_is_written_to_a_replaced_folder_of_a_comparison() {
    let place = Place::new();
    let ended = compared_meanwhile(&place, "mv all moved; ln -s foreign all").with(0);
    assert!(is_empty(&place.path("foreign")), "{}", ended.stderr);
    for run in ["round-001/linux", "round-001/fcfs", "round-002/fcfs", "round-002/linux"] {
        assert_eq!(place.read(&format!("moved/{run}/b.stdout")), "a\n", "{}", ended.stderr);
        assert!(place.path(&format!("moved/{run}/run.json")).exists(), "{run}");
    }

    let place = Place::new();
    let ended = compared_meanwhile(&place, "ln -s ../foreign all/round-002").with(1);
    assert!(is_empty(&place.path("foreign")), "{}", ended.stderr);
    let ended = ended.saying(&["all/round-002/fcfs: cannot be written", "round 2 is not complete"]);
    assert!(!ended.stderr.contains("/proc/"), "{}", ended.stderr);
}

#[test]
fn the_last_line_says_what_to_type_next_and_it_works() {
    let place = Place::new();
    let run = ["run", "-p", "fcfs", "--", "true", ":::", "true"];
    let ended = place.cosched(&run).ended().with(0);
    let last = ended.stdout.lines().last().unwrap();
    assert!(ended.stdout.contains("\nfcfs: ") && !ended.stdout.contains("solo"), "{last}");
    // On a busy machine other advice stands above it.
    let (_, rest) = last.split_once('`').expect(last);
    let (command, _) = rest.split_once('`').expect(last);
    assert_eq!(command, "cosched compare -- true ::: true");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let few = [&words[..1], &["--runs", "1"], &words[1..]].concat();
    place.cosched(&few).ended().with(0);
}

#[test]
fn what_to_type_next_stands_on_lines_of_its_own() {
    let place = Place::new();
    let ended = place.run(&talkative(), "").ended().with(0);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let outputs = lines.iter().position(|line| *line == "Outputs and run.json are in out.");
    let outputs = outputs.expect(&ended.stdout);
    assert!(lines[outputs - 1].starts_with("turns"), "{}", ended.stdout);
    assert_eq!(lines[outputs + 1], "Next:", "{}", ended.stdout);
    let said = ["  `cosched explain out` says what", "  `cosched compare jobs.toml` measures"];
    for (line, said) in lines[lines.len() - 2..].iter().zip(said) {
        assert!(line.starts_with(said), "{line}");
    }
}

#[test]
fn threads_and_other_processes_are_counted() {
    let place = Place::new();
    let two = program("two", "", "sleep 1.5 & sleep 1.5; wait");
    let quick = program("quick", "", ":");
    let ended = place.run(&[two, quick], "--policy linux").ended().with(0);
    let result = ended.result();
    // The shell, and two that sleep.
    assert_eq!(result.programs[0].threads_seen, Some(3), "{}", ended.stdout);
    assert_eq!(result.programs[1].threads_seen, None, "{}", ended.stdout);
    assert!(result.others_cpu_seconds.is_some() && result.stolen_cpu_seconds.is_some());
    assert!(ended.stdout.contains("threads seen"), "{}", ended.stdout);
}

#[test]
fn the_place_of_a_failed_programs_messages_is_named() {
    let place = Place::new();
    let tables = [
        program("a", "", "echo why >&2; exit 3"),
        program("silent", "", "exit 4"),
        program("fine", "", "echo so far >&2"),
    ];
    let ended = place.run(&tables, "").ended().with(1);
    let names_place = |line: &&str| line.contains("error outputs are in");
    let lines: Vec<&str> = ended.stderr.lines().filter(names_place).collect();
    assert_eq!(lines, ["cosched: the failed programs' error outputs are in out/a.stderr"]);
}
