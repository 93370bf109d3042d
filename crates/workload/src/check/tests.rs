//! The rules of a workload, one by one.

use super::*;
use crate::Position;

fn parse(text: &str) -> Result<Workload, WorkloadError> {
    Workload::parse(text, Path::new("/tmp/jobs.toml"))
}

fn program(keys: &str) -> ProgramSpec {
    let text = format!("[[program]]\ncommand = 'cg'\n{keys}");
    parse(&text).unwrap().programs.remove(0)
}

/// A file in the place of a stream of the program `conjugate`.
fn stream(path: &str, at: (usize, usize)) -> Option<StreamFile> {
    Some(StreamFile { path: path.into(), place: places(at, at, "conjugate").command })
}

/// The places of the first program of jobs.toml, as lines and columns.
fn places(command: (usize, usize), threads: (usize, usize), name: &str) -> Places {
    let place = |(line, column)| Place {
        file: Some("/tmp/jobs.toml".into()),
        position: Some(Position { line, column }),
        program: Some((1, Some(name.to_owned()))),
    };
    Places { command: place(command), threads: place(threads), model: BTreeMap::new() }
}

fn refusal(keys: &str) -> String {
    let text = format!("[[program]]\ncommand = 'cg'\n{keys}");
    parse(&text).unwrap_err().to_string()
}

#[test]
fn every_key_is_read() {
    let text = r#"
        [[program]]
        name = "conjugate"
        command = ["./cg", "--work", "4"]
        threads = 2
        env = { OMP_PROC_BIND = "false" }
        cwd = "../usr"
        stdin = "in.txt"
        stdout = "/tmp/all.txt"
        stderr = "/tmp/all.txt"
        start = "1s 500ms"
        after = ["other", { program = "third", exit = "any" }]
        weight = 2.5
        misses_per_kilo_instruction = 3.0
        miss_ratio = 0.25
        memory_gigabytes_per_second = 4.0
        repeat = "until-all-finish"
        freezable = true
        group = "solver"
        malleable = true
        moldable = true
        progress = true
        barrier = "donate"

        [[program]]
        command = "other"

        [[program]]
        command = "third"
    "#;
    let expected = ProgramSpec {
        places: places((4, 19), (5, 19), "conjugate"),
        name: "conjugate".into(),
        command: ["./cg", "--work", "4"].map(String::from).to_vec(),
        threads: Some(2),
        env: [("OMP_PROC_BIND".to_owned(), "false".to_owned())].into(),
        cwd: "/tmp/../usr".into(),
        streams: Streams {
            stdin: stream("/tmp/../usr/in.txt", (8, 17)),
            stdout: stream("/tmp/all.txt", (9, 18)),
            stderr: stream("/tmp/all.txt", (10, 18)),
        },
        start: Nanos::from_millis(1500),
        after: vec![
            After { program: "other".into(), any_exit: false },
            After { program: "third".into(), any_exit: true },
        ],
        weight: 2.5,
        misses_per_kilo_instruction: Some(3.0),
        miss_ratio: Some(0.25),
        memory_gigabytes_per_second: Some(4.0),
        repeat: Repeat::UntilAllFinish,
        freezable: Some(true),
        group: Some("solver".into()),
        malleable: true,
        moldable: true,
        progress: true,
        barrier: Some(BarrierMode::Donate),
        model: None,
    };
    assert_eq!(parse(text).unwrap().programs[0], expected);
}

#[test]
fn only_the_command_is_required() {
    let expected = ProgramSpec {
        places: places((2, 11), (2, 11), "cg"),
        name: "cg".into(),
        command: vec!["cg".into()],
        threads: None,
        env: BTreeMap::new(),
        cwd: "/tmp".into(),
        streams: Streams::default(),
        start: Nanos::ZERO,
        after: Vec::new(),
        weight: 1.0,
        misses_per_kilo_instruction: None,
        miss_ratio: None,
        memory_gigabytes_per_second: None,
        repeat: Repeat::Times(1),
        freezable: None,
        group: None,
        malleable: false,
        moldable: false,
        progress: false,
        barrier: None,
        model: None,
    };
    assert_eq!(program(""), expected);
}

#[test]
fn keys_of_a_model_have_their_places() {
    let spec = program("[program.model]\nspin = '1s'\n[[program.model.phase]]\nserial = 5\n");
    let at = |path| spec.places.in_model(path).position.unwrap();
    assert_eq!(at("spin"), Position { line: 4, column: 8 });
    assert_eq!(at("phase[0].serial"), Position { line: 6, column: 10 });
    // A key that is not there: its table.
    assert_eq!(at("phase[0].critical.lines").line, 5);
    assert_eq!(at("repeat").line, 3);
    let without = program("").places;
    assert_eq!(without.in_model("spin"), &without.command);
}

#[test]
fn command_lines_are_split_like_words_and_not_expanded() {
    let text = r#"program = [{ command = "./cg 'a b' $HOME *" }]"#;
    assert_eq!(parse(text).unwrap().programs[0].command, ["./cg", "a b", "$HOME", "*"]);
}

#[test]
fn values_out_of_range_are_refused_with_the_remedy() {
    for (keys, message) in [
        ("threads = 0", "threads is 0, but must be from 1 to 65535; leave the key out"),
        ("threads = -1", "threads is -1, but must be"),
        ("threads = 65536", "threads is 65536, but must be"),
        ("barrier = 'gang'", "barrier is 'gang', but must be one of own, donate, spin, block,"),
        ("weight = 0", "weight is 0.0, but must be from 0.01 to 100; leave the key out"),
        ("weight = 1e300", "weight is 1e300, but must be from 0.01 to 100"),
        ("weight = -1.5", "weight is -1.5, but must be"),
        ("weight = nan", "weight is NaN, but must be"),
        ("weight = inf", "weight is inf, but must be"),
        ("misses_per_kilo_instruction = -1", "misses_per_kilo_instruction is -1, but must be"),
        ("misses_per_kilo_instruction = nan", "misses_per_kilo_instruction is NaN"),
        ("miss_ratio = 1.5", "miss_ratio is 1.5, but must be a share from 0 to 1"),
        ("miss_ratio = nan", "miss_ratio is NaN, but must be a share"),
        ("memory_gigabytes_per_second = -1", "memory_gigabytes_per_second is -1, but must be"),
        ("repeat = 0", "repeat is 0, but must be from 1"),
        ("repeat = 'always'", "repeat is 'always', but must be a number of runs"),
        ("start = '-1s'", "start is '-1s', which is not a time"),
        ("start = '5'", "start is '5', which is not a time"),
        ("start = '800d'", "start is '800d', more than a year away"),
        ("start = '2 years'", "start is '2 years', which is not a time"),
        ("name = ''", "name \"\" cannot be a file name"),
        ("name = 'a/b'", "name \"a/b\" cannot be a file name"),
        ("name = \"a\\u0000b\"", "name \"a\\u{0}b\" cannot be a file name"),
        ("cwd = 'gone'", "cwd is /tmp/gone, which is not an existing directory; create it"),
        ("cwd = ''", "cwd is empty; name a directory, or leave the key out"),
        ("cwd = '/dev/null'", "cwd is /dev/null, which is not an existing directory"),
        ("env = { 'A=B' = '1' }", "env has \"A=B\", which cannot name a variable"),
        ("env = { A = \"\\u0000\" }", "env has a NUL character"),
        ("group = ''", "group is empty; name a group"),
        ("cwd = '~/data'", "cwd has '~', which only a shell replaces; write the path out"),
        ("stdin = '$HOME/in'", "stdin has '$HOME', which only a shell replaces"),
        ("stdout = 'log-${JOB}'", "stdout has '${JOB}', which only a shell replaces"),
        ("stdin = ''", "stdin is empty; name a file, or leave the key out"),
        ("stdout = 'logs/'", "stdout is /tmp/logs/, which names a folder; name a file in it"),
        ("stderr = '..'", "stderr is /tmp/.., which names a folder"),
        ("stdout = \"\\u0000\"", "stdout has a NUL character"),
    ] {
        let refusal = refusal(keys);
        assert!(refusal.starts_with("/tmp/jobs.toml:3:"), "{keys}: {refusal}");
        assert!(refusal.contains(": program 1"), "{keys}: {refusal}");
        assert!(refusal.contains(message), "{keys}: {refusal}");
    }
}

#[test]
fn commands_that_cannot_be_run_are_refused() {
    for (command, message) in [
        ("command = ''", "command is empty; name a program"),
        ("command = []", "command is empty; name a program"),
        ("command = ['', 'a']", "command is empty; name a program"),
        (r#"command = "cg 'a""#, "command cannot be split into words: 'cg 'a' has an unclosed"),
        (r#"command = "cg \u0000""#, "command has a NUL character"),
        ("threads = 1", "command is missing; say what to run"),
        ("command = '~/cg --work 4'", "command has '~', which only a shell replaces; write the"),
        ("command = ['$HOME/cg']", "command has '$HOME', which only a shell replaces"),
    ] {
        let refusal = parse(&format!("[[program]]\n{command}")).unwrap_err().to_string();
        assert!(refusal.contains(&format!(": program 1: {message}")), "{command}: {refusal}");
    }
}

#[test]
fn shell_syntax_is_refused_in_strings_only() {
    for (line, operator) in [
        ("a | b", "|"),
        ("a 'x | y' && b", "&&"),
        ("a 2> log", "2>"),
        ("a >log", ">log"),
        ("a 2>&1", "2>&1"),
        ("a &", "&"),
        ("a ::: b", ":::"),
    ] {
        let refusal = parse(&format!("[[program]]\ncommand = \"{line}\"")).unwrap_err().to_string();
        let message = format!(
            "/tmp/jobs.toml:2:11: program 1: command has '{operator}', but no shell runs it"
        );
        assert!(refusal.starts_with(&message), "{refusal}");
    }
    for command in ["\"a 'x | y' '|' b>c\"", "[\"a\", \"|\", \"b\"]", r#"'find \;'"#] {
        let programs = parse(&format!("[[program]]\ncommand = {command}")).unwrap().programs;
        assert!(programs[0].command.len() > 1, "{command}");
    }
}

#[test]
fn all_mistakes_come_at_once_in_the_order_of_the_file() {
    let text = r#"
[[program]]
name = "a"
command = "true"
thread = 2
start = "5 parsecs"

[[program]]
name = "a"
command = ["true", 3]
after = ["a", "gone"]
weight = 0
"#;
    let lines: Vec<String> =
        parse(text).unwrap_err().to_string().lines().map(str::to_owned).collect();
    let expected = [
        "/tmp/jobs.toml:5:1: program 1 (a): thread is not a known key; did you mean 'threads'?",
        "/tmp/jobs.toml:6:9: program 1 (a): start is '5 parsecs', which is not a time; write",
        "/tmp/jobs.toml:9:8: program 2 (a): name 'a' is also the name of program 1; names must",
        "/tmp/jobs.toml:10:20: program 2 (a): command must be a string or an array of strings",
        "/tmp/jobs.toml:11:15: program 2 (a): after names 'gone', which is no program of this",
        "/tmp/jobs.toml:12:10: program 2 (a): weight is 0.0, but must be from 0.01 to 100",
        "6 errors; nothing was started",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn a_mistake_brings_no_errors_of_what_is_right() {
    for (text, expected) in [
        // The name of the second may be the one that is awaited.
        (
            "after = ['b']
[[program]]
command = 3",
            "5:11: program 2: command must be",
        ),
        (
            "
weight = '1'
repeat = 2",
            "4:10: program 1: weight must be a number",
        ),
        (
            "name = 'a/b'
[[program]]
command = 'b'
after = ['a/b']",
            "3:8: program 1 (a/b): name",
        ),
    ] {
        let refusal = refusal(text);
        assert!(refusal.starts_with(&format!("/tmp/jobs.toml:{expected}")), "{refusal}");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
}

#[test]
fn an_unknown_awaited_name_is_told_beside_other_mistakes() {
    for (text, program) in [
        ("[[program]]\nafter = ['zzz']", "program 1"),
        ("[[program]]\nname = 'a/b'\ncommand = 'c'\nafter = ['zzz']", "program 1 (a/b)"),
    ] {
        let refusal = parse(text).unwrap_err().to_string();
        let expected = format!("{program}: after names 'zzz', which is no program");
        assert!(refusal.contains(&expected), "{refusal}");
        assert!(refusal.ends_with("\n2 errors; nothing was started"), "{refusal}");
    }
}

#[test]
fn every_cycle_is_refused() {
    let refusal = waiting(&["['p2']", "['p1']", "['p4']", "['p3']"]).unwrap_err().to_string();
    assert!(refusal.contains("p1 after p2 after p1"), "{refusal}");
    assert!(refusal.contains("p3 after p4 after p3"), "{refusal}");
    assert!(refusal.ends_with("\n2 errors; nothing was started"), "{refusal}");
}

#[test]
fn a_name_given_twice_is_refused_at_its_second_place() {
    let text = "[[program]]\ncommand = 'a'\nname = 'x'\n[[program]]\ncommand = 'b'\nname = 'x'";
    assert_eq!(
        parse(text).unwrap_err().to_string(),
        "/tmp/jobs.toml:6:8: program 2 (x): name 'x' is also the name of program 1; names must be \
         unique, so give one of them another"
    );
}

#[test]
fn a_default_name_gives_way_to_a_later_given_one() {
    let text = "[[program]]\ncommand = 'x'\n[[program]]\ncommand = 'b'\nname = 'x'";
    let programs = parse(text).unwrap().programs;
    assert_eq!([&*programs[0].name, &*programs[1].name], ["x-2", "x"]);
}

#[test]
fn empty_and_oversized_workloads_are_refused() {
    for empty in ["", "# nothing yet\n", "program = []"] {
        let refusal = parse(empty).unwrap_err().to_string();
        let expected = "/tmp/jobs.toml: no program to run; name at least one: \
                    a line [[program]], and below it a line command = ";
        assert!(refusal.starts_with(expected), "{refusal}");
    }
    let many = |count| parse(&"[[program]]\ncommand = 'cg'\n".repeat(count));
    assert_eq!(many(MAX_PROGRAMS).unwrap().programs[4095].name, "cg-4096");
    assert!(matches!(many(MAX_PROGRAMS + 1), Err(WorkloadError::TooMany { count: 4097, .. })));
}

#[test]
fn shown_names_are_cut_and_without_control_characters() {
    let name = format!("\u{1b}[31m{}", "x".repeat(5000));
    let escaped = name.replace('\u{1b}', "\\u001b");
    let refusal = refusal(&format!("name = \"{escaped}\""));
    assert!(!refusal.contains('\u{1b}'), "{refusal:?}");
    assert!(refusal.contains("program 1 (\\u{1b}[31mxxx"), "{refusal}");
    assert!(refusal.len() < 500, "{refusal}");
}

/// A workload of a program for each list of others that it waits for: p1, p2, ...
fn waiting(lists: &[&str]) -> Result<Workload, WorkloadError> {
    let table = |(i, after): (usize, &&str)| {
        let n = i + 1;
        format!("[[program]]\ncommand = 'c'\nname = 'p{n}'\nafter = {after}\n")
    };
    parse(&lists.iter().enumerate().map(table).collect::<String>())
}

#[test]
fn programs_may_wait_for_others_in_any_order() {
    let workload = waiting(&["['p3']", "[]", "['p2', { program = 'p4' }]", "['p2']"]).unwrap();
    let names = |slot: usize| -> Vec<&str> {
        workload.programs[slot].after.iter().map(|after| after.program.as_str()).collect()
    };
    assert_eq!((names(0), names(2)), (vec!["p3"], vec!["p2", "p4"]));
    assert!(workload.programs[2].after.iter().all(|after| !after.any_exit));
    let [first, second, ..] = &workload.programs[..] else { panic!("four programs") };
    assert!(workload.comes_after(first, second) && !workload.comes_after(second, first));
}

#[test]
fn what_cannot_be_waited_for_is_refused_with_place_and_remedy() {
    for (lists, message) in [
        (
            &["['p2']", "['p']"] as &[_],
            "8:10: program 2 (p2): after names 'p', which is no program",
        ),
        (
            &["['p12']", "[]"],
            "4:10: program 1 (p1): after names 'p12', which is no program of this file; did you \
             mean 'p1'?",
        ),
        (
            &["['quux']"],
            "after names 'quux', which is no program of this file; write the `name` of one",
        ),
        (
            &["['p1']"],
            "4:10: program 1 (p1): after names the program itself, which would never start",
        ),
        (
            &["[]", "['p1', 'p1']"],
            "8:16: program 2 (p2): after names 'p1' twice; take one of them out",
        ),
        (
            &["[]", "['p1', 'p4']", "['p2']", "['p3']"],
            "8:16: program 2 (p2): after makes a cycle, in which no program would ever start (p2 \
             after p4 after p3 after p2); take one",
        ),
        (
            &["'p2'", "[]"],
            "4:9: program 1 (p1): after must be an array of names of programs, such as [\"a\"], \
             but is the string",
        ),
        (
            &["[1]", "[]"],
            "4:10: program 1 (p1): after has an element that is no program; write its name, or { \
             program = \"NAME\"",
        ),
        (&["[{ program = 'p2', when = 1 }]", "[]"], "after has an element that is no program"),
        (&["[{ exit = 'any' }]", "[]"], "after has an element that is no program"),
        (
            &["[{ program = 'p2', exit = 1 }]", "[]"],
            "after has exit = 1, but can have 0, which is the default, or \"any\"",
        ),
    ] {
        let refusal = waiting(lists).unwrap_err().to_string();
        assert!(refusal.starts_with("/tmp/jobs.toml:"), "{refusal}");
        assert!(refusal.contains(message), "{lists:?}: {refusal}");
    }
    let text = "[[program]]\ncommand = 'a'\nrepeat = 'until-all-finish'\n\
                [[program]]\ncommand = 'b'\nafter = ['a']";
    let refusal = parse(text).unwrap_err().to_string();
    let expected =
        "after names 'a', which is repeated until all others have ended, so that neither would end";
    assert!(refusal.contains(expected), "{refusal}");
}

#[test]
fn a_long_chain_of_programs_is_checked_quickly() {
    let after = |i: usize| format!("after = ['p{}']", i - 1);
    let table = |i: usize| {
        let after = if i > 0 { after(i) } else { String::new() };
        format!("[[program]]\ncommand = 'c'\nname = 'p{i}'\n{after}\n")
    };
    let chain: String = (0..MAX_PROGRAMS).rev().map(table).collect();
    assert_eq!(parse(&chain).unwrap().programs.len(), MAX_PROGRAMS);
    let ring = chain.replacen("name = 'p0'", &format!("name = 'p0'\n{}", after(MAX_PROGRAMS)), 1);
    let refusal = parse(&ring).unwrap_err().to_string();
    assert!(refusal.contains(" after … after ") && refusal.len() < 500, "{refusal}");
}
