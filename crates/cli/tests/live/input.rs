//! Bad input: exit code 2, a message with the place and the remedy, and nothing started or left.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::support::{Cosched, Ended, Place, User, program, skip};

/// A program that shows that it was started.
fn tell_tale(keys: &str) -> String {
    program("first", keys, "touch started")
}

/// Checks that a run was refused before anything happened.
#[track_caller]
fn refused(place: &Place, ended: Ended, saying: &[&str]) {
    let ended = ended.with(2).saying(saying);
    assert_eq!(ended.stdout, "");
    assert!(!place.path("started").exists(), "a program was started");
    assert!(!place.path("out/run.json").exists());
    place.nothing_is_left_of(&ended);
}

/// Checks that a workload of a tell-tale and `tables` is refused with these options.
#[track_caller]
fn refuses(tables: &[String], options: &str, saying: &[&str]) {
    let place = Place::new();
    let tables: Vec<String> =
        [tell_tale("threads = 1")].into_iter().chain(tables.to_vec()).collect();
    let ended = place.run(&tables, options).ended();
    refused(&place, ended, saying);
}

#[test]
fn a_wrong_value_in_a_jobs_file_has_its_place_and_remedy() {
    let second = |keys: &str| vec![program("second", keys, ":")];
    let cases: [(&str, &[&str]); 11] = [
        (
            "thread = 2",
            &["jobs.toml:8:1", "program 2 (second)", "thread", "did you mean 'threads'?"],
        ),
        (
            "threads = 0",
            &["jobs.toml:8:11", "threads is 0", "from 1 to 65535", "leave the key out"],
        ),
        ("threads = 'two'", &["jobs.toml:8:11", "threads must be a whole number from 1 to 65535"]),
        ("cwd = 'not/there'", &["jobs.toml:8:", "cwd", "not/there", "create it"]),
        ("start = '2 bananas'", &["jobs.toml:8:", "start", "2 bananas", "100ms"]),
        ("weight = -1.0", &["jobs.toml:8:", "weight is -1", "0.01 to 100"]),
        ("repeat = 'forever'", &["jobs.toml:8:", "repeat", "until-all-finish"]),
        ("env = { 'A=B' = 'c' }", &["jobs.toml:8:", "env", "A=B"]),
        ("= 3", &["jobs.toml:8:", "not valid TOML"]),
        ("model = { foo = 1 }", &["jobs.toml:", "model", "foo"]),
        ("model = { repeat = 2 }", &["jobs.toml:", "model", "phase is missing; say what"]),
    ];
    for (keys, saying) in cases {
        refuses(&second(keys), "--policy gang", saying);
    }
    refuses(&[program("first", "", ":")], "--policy gang", &["name 'first'", "unique"]);
}

#[test]
fn all_mistakes_of_a_jobs_file_come_at_once() {
    let tables = [
        program("a", "thread = 2\nweight = 'much'", ":"),
        program("b", "start = '5 parsecs'\nafter = ['gone']", ":"),
        program("b", "", ":"),
    ];
    let places = ["jobs.toml:8:1: ", "jobs.toml:9:10: ", "jobs.toml:13:9: ", "jobs.toml:14:10: "];
    let rest =
        ["jobs.toml:16:8: ", "'b' is also the name", "\ncosched: 5 errors; nothing was started\n"];
    refuses(&tables, "", &[&places[..], &rest[..]].concat());
    let tables = ["a", "b"].map(|name| program(name, "model = { foo = 1 }", ":"));
    refuses(
        &tables,
        "",
        &["program 2 (a): model", "program 3 (b): model: foo", "\ncosched: 4 errors; nothing"],
    );
    let table = |name| format!("[[program]]\ncommand = '{name}-is-gone'\nthreads = 1\n");
    refuses(
        &["a", "b"].map(table),
        "",
        &["a-is-gone", "b-is-gone", "\ncosched: 2 errors; nothing"],
    );
}

/// What depends on the command that runs the programs comes with the rest.
#[test]
fn unusable_commands_files_and_models_come_with_all_mistakes() {
    let gone = "[[program]]\ncommand = 'gone'\nthread = 1\nstdout = 'no/x'\nstderr = 'no/y'\n";
    let wrong = "[[program]]\nname = 'wrong'\ncommand = 'srun a'\nstdin = 'missing'\n\
                 model = { foo = 1 }\n";
    let tables = [gone.to_owned(), wrong.to_owned()];
    let both = [
        "jobs.toml:6:11: program 2 (gone): command 'gone' was not found in PATH",
        "\ncosched: jobs.toml:7:1: program 2: thread is not a known key",
    ];
    let outputs = [
        "\ncosched: jobs.toml:8:10: program 2 (gone): stdout is /",
        "\ncosched: jobs.toml:9:10: program 2 (gone): ",
    ];
    let rest = [
        "\ncosched: jobs.toml:12:11: program 3 (wrong): command 'srun' starts",
        "program 3 (wrong): model: ",
        "\ncosched: jobs.toml:13:9: program 3 (wrong): stdin is /",
    ];
    let all = [&both[..], &outputs[..], &rest[..], &["\ncosched: 8 errors; nothing was started\n"]]
        .concat();
    refuses(&tables, "", &all);
    let place = Place::new();
    place.write("jobs.toml", tables.concat());
    for command in ["compare", "profile"] {
        let ended = place.cosched(&[command, "jobs.toml"]).ended();
        refused(
            &place,
            ended,
            &["'gone' was", "thread is", "'srun'", "model: ", "\ncosched: 6 errors; "],
        );
    }
    let sim = ["sim", "jobs.toml", "--machine", "core:2"];
    let ended = place.cosched(&sim).ended();
    refused(
        &place,
        ended,
        &["thread is", "no [program.model]", "model: ", "\ncosched: 4 errors; nothing"],
    );
}

/// The kernel says so of these only when the program starts.
#[test]
fn too_long_names_and_commands_are_refused_before_the_start() {
    let long = format!("stdout = '{}'", "x".repeat(256));
    refuses(
        &[program("b", &long, ":")],
        "",
        &["jobs.toml:8:10: program 2 (b): stdout is", "with a name longer than 255 bytes"],
    );
    let words = "'x', ".repeat(300_000);
    let many = format!("[[program]]\nname = 'b'\ncommand = ['true', {words}]\n");
    let place = Place::new();
    place.write("jobs.toml", [tell_tale(""), many].concat());
    let mut command = Command::new("prlimit");
    command.arg("--stack=8388608").arg(&place.executable).args(["run", "jobs.toml"]);
    let said = ["program 2 (b): command has 300001 words", "at most 2.0 MiB", "into a file"];
    refused(&place, Cosched::start(command, &place).ended(), &said);
}

/// A path in a wrong folder, or after a wrong name, is no mistake of its own.
#[test]
fn what_follows_from_a_mistake_is_not_reported() {
    let follows = "cwd = 'no/folder'\nstdin = 'in'\nstdout = 'here/out'";
    let place = Place::new();
    let table = format!("[[program]]\ncommand = './a'\n{follows}\n");
    place.write("jobs.toml", format!("{table}[[program]]\ncommand = ''\nmodel = 1\n"));
    let ended = place.cosched(&["run", "jobs.toml"]).ended();
    refused(
        &place,
        ended,
        &["cwd is", "command is empty", "model must", "\ncosched: 3 errors; nothing"],
    );
}

#[test]
fn threads_on_the_command_line_are_for_programs_there() {
    refuses(&[], "--threads 2", &["--threads is for programs on the command line", "threads = N"]);
    let place = Place::new();
    let run = ["run", "--threads", "3", "--out", "out", "--"];
    let script = ["sh", "-c", "echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS"];
    let ended = place.cosched(&[&run[..], &script[..]].concat()).ended().with(0);
    assert_eq!(place.read("out/sh.stdout"), "3 3\n");
    assert_eq!(ended.result().programs[0].threads, 3);
}

#[test]
fn nproc_in_a_build_counts_all_cpus() {
    let place = Place::new();
    let script = "#!/bin/sh\nnproc; echo \"make: $MAKEFLAGS\"; echo \"$CARGO_BUILD_JOBS\"\n";
    let told = |name: &str| {
        let path = place.write(name, script);
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        let (out, command) = (format!("out-{name}"), format!("./{name}"));
        place.cosched(&["run", "--threads", "1", "--out", &out, "--", &command]).ended().with(0);
        place.read(&format!("{out}/{name}.stdout"))
    };
    assert_eq!(told("script"), "1\nmake: \n1\n");
    let mut alone = std::process::Command::new("nproc");
    let alone = alone.env_remove("OMP_NUM_THREADS").env_remove("OMP_THREAD_LIMIT");
    let cpus = String::from_utf8(alone.output().unwrap().stdout).unwrap();
    assert_eq!(told("make"), format!("{cpus}make:  -j1\n1\n"));
}

#[test]
fn programs_with_too_many_threads_are_named_before_they_start() {
    let place = Place::new();
    place.write("jobs.toml", program("a", "threads = 999", "true"));
    let told = "is told to start 999 threads";
    let run = ["run", "jobs.toml", "--policy", "linux"];
    place.cosched(&run).ended().with(0).saying(&[told]);
    let compare = ["compare", "jobs.toml", "--policies", "linux,fcfs", "--runs", "1"];
    place.cosched(&compare).ended().with(0).saying(&[told]);
    let mut exec = place.user.command(&place.executable);
    exec.args(["exec", "--policy", "linux", "--", "true"]).current_dir(place.folder());
    exec.env("XDG_RUNTIME_DIR", place.path("run")).env("OMP_NUM_THREADS", "999");
    let stderr = exec.output().unwrap().stderr;
    assert!(String::from_utf8_lossy(&stderr).contains(told));
}

#[test]
fn a_missing_command_is_refused_before_anything_starts() {
    for command in ["no-such-command", "./no-such-command", "/etc/passwd", "/etc"] {
        let table = format!("[[program]]\ncommand = ['{command}']\nthreads = 1\n");
        let shown = command.trim_start_matches("./");
        refuses(&[table], "--policy gang", &["jobs.toml:6:11: program 2 (", shown]);
    }
}

#[test]
fn a_missing_interpreter_is_refused_before_anything_starts() {
    let place = Place::new();
    let script = place.write("script", "#!/no/interp\n");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let tables = [tell_tale("threads = 1"), "[[program]]\ncommand = './script'".to_owned()];
    let ended = place.run(&tables, "--policy linux").ended();
    refused(&place, ended, &["jobs.toml:", "/script is a script for /no/interp", "install"]);
}

#[test]
fn unreadable_commands_are_reported_as_denied_not_missing() {
    let place = Place::of(User::ordinary());
    fs::create_dir(place.path("closed")).unwrap();
    place.write("closed/tool", "#!/bin/sh\n");
    fs::set_permissions(place.path("closed"), Permissions::from_mode(0o000)).unwrap();
    for (keys, key) in
        [("command = 'closed/tool'", "command"), ("command = ':'\ncwd = 'closed'", "cwd")]
    {
        let tables = [tell_tale("threads = 1"), format!("[[program]]\n{keys}\n")];
        let ended = place.run(&tables, "--policy linux").ended();
        refused(&place, ended, &["jobs.toml:", key, "permission denied for this user"]);
    }
    // What is in a folder of PATH that cannot be entered is unknown; a link to it is there.
    let closed = place.path("closed").display().to_string();
    std::os::unix::fs::symlink(place.path("closed/tool"), place.path("tool")).unwrap();
    let in_path = |path: &str| {
        let keys = format!("command = 'tool'\nenv = {{ PATH = '{path}:/usr/bin' }}");
        let tables = [tell_tale("threads = 1"), format!("[[program]]\n{keys}\n")];
        place.run(&tables, "--policy linux").ended()
    };
    let expected = format!("this user may not enter {closed}");
    refused(&place, in_path(&closed), &["'tool' was not found in PATH", &expected]);
    refused(&place, in_path("."), &["/tool: permission denied for this user"]);
    fs::set_permissions(place.path("closed"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_jobs_file_from_stdin_starts_programs_in_the_current_folder() {
    for name in ["-", "/dev/stdin"] {
        let place = Place::new();
        place.write("jobs.toml", program("a", "", "pwd"));
        let mut command = place.user.command(&place.executable);
        let input = fs::File::open(place.path("jobs.toml")).unwrap();
        let output = command
            .args(["run", "--policy", "linux", name])
            .current_dir(place.folder())
            .env("XDG_RUNTIME_DIR", place.path("run"))
            .env("XDG_DATA_HOME", place.path("data"))
            .stdin(input)
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.starts_with(place.folder().to_str().unwrap()), "{printed}");
    }
    let place = Place::new();
    let ended = place.cosched(&["run", "--policy", "linux", "-"]).ended();
    refused(&place, ended, &["standard input: no program to run", "[[program]]"]);
}

#[test]
fn an_empty_or_unreadable_jobs_file_is_refused() {
    let place = Place::new();
    let ended = place.run(&[], "--policy gang").ended();
    refused(&place, ended, &["jobs.toml", "no program to run", "name at least one"]);

    let run = ["run", "missing.toml", "--policy", "gang"];
    let ended = place.cosched(&run).ended();
    refused(&place, ended, &["missing.toml", "cannot be read", "check the path"]);

    fs::create_dir(place.path("folder.toml")).unwrap();
    let ended = place.cosched(&["run", "folder.toml", "--policy", "gang"]).ended();
    refused(&place, ended, &["folder.toml: is a folder, not a jobs file", "name the file"]);

    place.write("latin1.toml", b"# caf\xe9\n");
    let ended = place.cosched(&["run", "latin1.toml", "--policy", "gang"]).ended();
    refused(&place, ended, &["latin1.toml:1", "UTF-8"]);

    let ended = place.cosched(&["run", "--policy", "gang"]).ended();
    refused(&place, ended, &["nothing to run", "after all options: `-- CMD"]);
}

#[test]
fn mistakes_on_the_command_line_are_refused_with_the_remedy() {
    let place = Place::new();
    place.write("mm.py", "import numpy\n");
    place.write("file", "");
    let cases: [(&[&str], &[&str]); 6] = [
        (&["run", "mm.py"], &["mm.py: is a program", "`cosched run -- python3 mm.py`"]),
        (&["run", "--", "sleep 0.1", ":::", "true"], &["program 1", "one word", "quotes"]),
        (&["run", "--", "true", "::", "true"], &["'::'", "write ':::'"]),
        (&["run", "--", "srun", "./a"], &["'srun'", "Slurm", "cosched run -- ./a"]),
        (&["run", "--out", "file", "--", "true"], &["--out file: it is a file", "name a folder"]),
        (&["run", "--topology", "2", "--", "true"], &["unexpected argument '--topology'"]),
    ];
    for (arguments, saying) in cases {
        let ended = place.cosched(arguments).ended();
        assert!(!ended.stderr.contains("tip:"), "{}", ended.stderr);
        refused(&place, ended, saying);
    }
}

#[test]
fn a_jobs_file_without_permission_to_read_is_refused() {
    let place = Place::of(User::ordinary());
    place.write("jobs.toml", tell_tale(""));
    fs::set_permissions(place.path("jobs.toml"), Permissions::from_mode(0o000)).unwrap();
    let ended = place.cosched(&["run", "jobs.toml", "--policy", "gang"]).ended();
    refused(&place, ended, &["jobs.toml", "cannot be read", "check the path and its permissions"]);
}

#[test]
fn a_senseless_quantum_is_refused() {
    for quantum in ["0", "0s", "1year", "100", "1us", "2min", "-1s", "soon"] {
        let options = format!("--policy gang --quantum={quantum}");
        refuses(&[], &options, &["--quantum", "100ms or 1s"]);
    }
}

#[test]
fn other_options_are_checked_before_the_start() {
    refuses(&[], "--policy gang --grace 5", &["--grace", "unit"]);
    refuses(&[], "--policy gang --max-frozen 0s", &["--max-frozen"]);
    refuses(&[], "--policy tetris", &["tetris", "linux-groups", "minwait"]);
    refuses(&[], "--policy gang --placement diagonal", &["diagonal", "packed", "spread"]);
    refuses(&[], "--policy gang --freezer ice", &["ice", "cgroup-v2", "signals"]);
    refuses(&[], "--policy gang --fill", &["fill", "greedy", "'gang'", "leave it out"]);
}

#[test]
fn an_argument_that_is_not_utf_8_is_refused() {
    let place = Place::new();
    place.write("jobs.toml", tell_tale(""));
    let odd = OsStr::from_bytes(b"od\xffd");
    let plain = ["run", "--policy", "gang", "--", "touch", "started", ":::", "echo"];
    let arguments: Vec<&OsStr> = plain.iter().map(OsStr::new).chain([odd]).collect();
    let ended = place.cosched(&arguments).ended();
    refused(&place, ended, &["argument 9", "not UTF-8; write it in UTF-8"]);
    fs::write(place.path("x").with_file_name(odd), "").unwrap();
    refused(&place, place.cosched(&arguments).ended(), &["not UTF-8; rename the file"]);
}

#[test]
fn only_gang_policies_refuse_more_threads_than_cpus() {
    let big = vec![program("big", "threads = 1000\nmisses_per_kilo_instruction = 1", "echo ran")];
    for policy in ["gang", "greedy", "minwait"] {
        let saying = [
            "jobs.toml:8:11",
            "'big' requests 1000 threads",
            "Set `threads`",
            policy,
            "choose a policy that does not: turns, linux, ",
        ];
        refuses(&big, &format!("--policy {policy}"), &saying);
    }
    for policy in ["linux", "fcfs"] {
        let place = Place::new();
        let ended = place.run(&big, &format!("--policy {policy}")).ended().with(0);
        assert_eq!(place.read("out/big.stdout"), "ran\n");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn cgreedy_does_not_guess_cache_misses() {
    let saying = [
        "jobs.toml:3:11",
        "cache misses",
        "'first'",
        "`misses_per_kilo_instruction`",
        "`cosched profile`",
    ];
    refuses(&[], "--policy cgreedy", &saying);
}

#[test]
fn an_earlier_run_is_not_overwritten() {
    let place = Place::new();
    place.run(&[program("a", "", "echo one")], "--policy linux").ended().with(0);
    let before = place.read("out/run.json");
    let ended = place.run(&[tell_tale("")], "--policy linux").ended();
    let ended =
        ended.with(2).saying(&["--out out", "already holds a run", "choose another folder"]);
    assert_eq!(place.read("out/run.json"), before);
    assert_eq!(place.read("out/a.stdout"), "one\n");
    assert!(!place.path("started").exists());
    place.nothing_is_left_of(&ended);
}

#[test]
fn no_file_in_the_output_folder_is_overwritten() {
    for (file, arguments) in [
        ("out/first.stdout", &["run", "--policy", "gang"] as &[_]),
        ("out/first.stderr", &["run", "--policy", "gang"]),
        ("out/run.json.part", &["run", "--policy", "gang"]),
        ("out/gang/first.stdout", &["compare", "--policies", "linux,gang", "--runs", "1"]),
        ("out/round-002/gang/run.json", &["compare", "--policies", "linux,gang", "--runs", "2"]),
    ] {
        let place = Place::new();
        place.write("jobs.toml", tell_tale("threads = 1"));
        fs::create_dir_all(place.path(file).parent().unwrap()).unwrap();
        place.write(file, "keep");
        let ended = place.cosched(&[arguments, &["jobs.toml", "--out", "out"]].concat()).ended();
        refused(&place, ended, &["--out out", "choose another folder"]);
        assert_eq!(place.read(file), "keep");
    }
}

#[test]
fn an_output_folder_that_cannot_be_created_is_refused() {
    let place = Place::new();
    place.write("file", "");
    place.write("jobs.toml", tell_tale(""));
    let run = ["run", "jobs.toml", "--policy", "linux", "--out", "file/out"];
    let ended = place.cosched(&run).ended();
    refused(&place, ended, &["--out file/out", "cannot be made"]);
}

#[test]
fn an_unsupported_option_is_refused_with_policies_that_have_it() {
    for option in
        ["--quantum 5ms", "--max-frozen 1s", "--placement spread", "--freezer signals", "--fill"]
    {
        let name = option.split(' ').next().unwrap();
        for policy in ["linux", "linux-groups", "fcfs"] {
            let expected = &[name, policy, "greedy", "leave it out"];
            refuses(&[], &format!("--policy {policy} {option}"), expected);
        }
    }
    // In a comparison the option applies to the policies that have it.
    let place = Place::new();
    let compare = ["compare", "--policies", "linux,greedy", "--quantum", "5ms", "--fill"];
    place.cosched(&[&compare[..], &["--runs", "1", "--", "true"]].concat()).ended().with(0);
    let twice = place.cosched(&["compare", "--policies", "linux,gang,linux", "--", "true"]).ended();
    twice.with(2).saying(&["'linux' is there twice", "--runs", "call it 'linux-2'"]);
    let profile = place.cosched(&["profile", "--quantum", "5ms", "--", "true"]).ended();
    profile.with(2).saying(&["`cosched profile` does not support --quantum"]);
    let profile = place.cosched(&["profile", "--interval", "1s", "--", "true"]).ended();
    profile.with(2).saying(&["`cosched profile` does not support --interval"]);
}

#[test]
fn an_argument_too_long_for_the_kernel_is_refused() {
    let long = "y".repeat(200_000);
    let table = format!("[[program]]\ncommand = ['true', '{long}']\n");
    refuses(&[table], "--policy linux", &["command", "200000 bytes", "pass the file"]);
}

#[test]
fn a_command_that_is_a_folder_is_refused_as_a_folder() {
    for command in ["./", "../", "/"] {
        let table = format!("[[program]]\ncommand = '{command}'\n");
        refuses(&[table], "--policy linux", &["not a regular file", "name an executable"]);
    }
}

#[test]
fn a_freezer_without_permission_is_refused_with_the_remedy() {
    let place = Place::of(User::ordinary());
    for freezer in ["cgroup-v2", "cgroup-v1"] {
        let options = format!("--policy gang --freezer {freezer}");
        let ended = place.run(&[tell_tale("threads = 1")], &options).ended();
        if place.path("out/run.json").exists() {
            return skip(format!("{freezer} is open to this user"));
        }
        refused(&place, ended, &["not available here", "leave the option out"]);
    }
}

#[test]
fn a_jobs_file_and_commands_exclude_each_other() {
    let place = Place::new();
    place.write("jobs.toml", tell_tale(""));
    let run = ["run", "jobs.toml", "--policy", "linux", "--prog", "touch started"];
    let ended = place.cosched(&run).ended();
    refused(&place, ended, &["cannot be used with"]);
}
