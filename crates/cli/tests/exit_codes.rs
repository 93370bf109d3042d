//! The exit codes that docs/safety.md promises to scripts: each of them is made to happen.

#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const PAGE: &str = include_str!("../../../docs/safety.md");

/// The codes of the page's first table.
fn promised() -> Vec<i32> {
    let code = |line: &str| line.strip_prefix("| ")?.split_once(" | ")?.0.parse().ok();
    let codes: Vec<i32> = PAGE.lines().filter_map(code).collect();
    assert!(!codes.is_empty(), "the page has no table of codes");
    codes
}

fn cosched(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn ends_with(arguments: &[&str], code: i32) {
    let status = cosched(arguments).status().unwrap();
    assert_eq!(status.code(), Some(code), "cosched {arguments:?}");
}

/// Runs a program, and sends cosched a signal once the program has printed that it runs.
fn interrupted_with(signal: Signal, code: i32) {
    let endless = ["run", "--", "sh", "-c", "echo runs; exec sleep 1000"];
    let mut child = cosched(&endless).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 4]).unwrap();
    kill_process(Pid::from_child(&child), signal).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
}

#[test]
fn all_that_a_policy_lacks_is_told_at_once() {
    let arguments = ["run", "--policy", "bandwidth", "--", "true", ":::", "false"];
    let output = cosched(&arguments).stderr(Stdio::piped()).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    for expected in ["'true', which", "'false', which", "--slowdowns", "3 errors; nothing"] {
        assert!(messages.contains(expected), "{expected}: {messages}");
    }
    assert_eq!(output.status.code(), Some(2), "{messages}");
}

#[test]
fn every_documented_exit_code_happens() {
    let folder = tempfile::tempdir().unwrap();
    for code in promised() {
        match code {
            0 => {
                ends_with(&["run", "--", "true", ":::", "true"], 0);
                ends_with(&["doctor"], 0);
                ends_with(&["--version"], 0);
            }
            1 => {
                ends_with(&["run", "--", "true", ":::", "false"], 1);
                let compare = ["compare", "--policies", "fcfs,gang", "--runs", "1", "--", "false"];
                ends_with(&compare, 1);
                // Cannot go on: the disk of the output is full.
                let full = std::fs::File::create("/dev/full").unwrap();
                let mut doctor = cosched(&["doctor"]);
                let output = doctor.stdout(full).stderr(Stdio::piped()).output().unwrap();
                let messages = String::from_utf8(output.stderr).unwrap();
                assert!(messages.contains("standard output"), "{messages}");
                assert_eq!(output.status.code(), Some(1), "{messages}");
            }
            2 => {
                let wrong: [&[&str]; 7] = [
                    &[],
                    &["gang"],
                    &["run"],
                    &["run", "no-such-file.toml"],
                    &["run", "--policy", "gagn", "--", "true"],
                    &["run", "--", "no-such-command"],
                    &["stat", "--", "no-such-command"],
                ];
                wrong.into_iter().for_each(|arguments| ends_with(arguments, 2));
                // A file stands where the folder has to be.
                let file = folder.path().join("file");
                std::fs::write(&file, "").unwrap();
                ends_with(&["manual", file.to_str().unwrap()], 2);
                // This is checked before a minute is spent on the measurement.
                let machine = file.join("machine.toml");
                ends_with(&["sim", "measure", "--out", machine.to_str().unwrap()], 2);
                // A folder for temporary results that cannot be made ends a comparison as well.
                let mut compare =
                    cosched(&["compare", "--policies", "linux", "--runs", "1", "--", "true"]);
                let output = compare.env("TMPDIR", &file).stderr(Stdio::piped()).output().unwrap();
                let messages = String::from_utf8(output.stderr).unwrap();
                assert!(messages.contains("in the variable TMPDIR"), "{messages}");
                assert_eq!(output.status.code(), Some(2), "{messages}");
            }
            130 => interrupted_with(Signal::INT, 130),
            143 => [Signal::TERM, Signal::HUP]
                .into_iter()
                .for_each(|signal| interrupted_with(signal, 143)),
            other => {
                panic!("docs/safety.md promises {other}, and nothing here makes it happen")
            }
        }
    }
}

#[test]
fn help_lists_every_documented_exit_code() {
    let help = cosched(&["--help"]).stdout(Stdio::piped()).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let (_, codes) = help.split_once("Exit codes:").unwrap();
    let listed = |line: &str| line.split_whitespace().next()?.parse().ok();
    assert_eq!(codes.lines().filter_map(listed).collect::<Vec<i32>>(), promised(), "{help}");
    for line in codes.lines().filter(|line| !line.trim().is_empty()) {
        let meaning = line.trim().split_once("  ").unwrap().1;
        assert!(PAGE.contains(&format!(" | {} |", meaning.trim())), "{meaning}");
    }
}

/// Runs a command line, with this place as its standard output.
fn printing_to(to: &str, arguments: &str) -> (Option<i32>, String) {
    let mut shell = Command::new("sh");
    let line = format!("exec \"$0\" {arguments} {to}");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_cosched")]);
    shell.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let output = shell.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    for arguments in ["doctor", "run --help", "--version", "run -- true"] {
        let (code, message) = printing_to(">/dev/full", arguments);
        assert_eq!(code, Some(1), "{arguments}: {message}");
        assert!(
            message.contains("cosched: standard output: ") && message.contains("No space"),
            "{message}"
        );
    }
    ends_with(&["--help"], 0);
}

/// A limit to the size of files stands for a full disk; with this word, run.json is larger.
#[test]
fn only_a_saved_result_is_said_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    for (limit, code) in [("100", 1), ("unlimited", 0)] {
        let line = format!("ulimit -f {limit}; exec \"$0\" run --out {limit} -- true $1");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_cosched"), &"x".repeat(100_000)]);
        shell.current_dir(folder.path());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let [said, shown] = [output.stderr, output.stdout].map(String::from_utf8);
        let (said, shown) = (said.unwrap(), shown.unwrap());
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(said.contains("run.json: cannot be written"), code == 1, "{said}");
        assert_eq!(shown.contains("run.json are in"), code == 0, "{shown}");
        assert!(code == 0 || !shown.contains("cosched explain"), "{shown}");
    }
}

/// Whether or not cosched comes as far as to count what the run needs.
#[test]
fn too_few_open_files_are_bad_input() {
    for files in 4..9 {
        let mut shell = Command::new("sh");
        let line = format!("ulimit -n {files}; exec \"$0\" run -- true");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_cosched")]).stdin(Stdio::null());
        let output = shell.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{files}: {said}");
        assert!(said.contains("ulimit -Hn") && !said.contains("systemd-run"), "{files}: {said}");
    }
}

#[test]
fn an_unusable_output_folder_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let link = link.to_str().unwrap();
    for (out, what) in [
        ("/proc", "/proc: nothing can be written there".to_owned()),
        (link, format!("{link} is a link that leads nowhere; correct the link, or")),
        (&format!("{link}/deeper"), format!("{link} is a link that leads nowhere; correct")),
    ] {
        let mut run = cosched(&["run", "--out", out, "--", "true"]);
        let output = run.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&what) && said.ends_with("choose another folder\n"), "{said}");
    }
}

/// Rust opens `/dev/null` in the place of a closed standard output.
#[test]
fn nothing_is_started_if_standard_output_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let touch = format!("-- touch {}", started.display());
    let runs = ["run", "run --quiet --json", "compare", "profile", "stat", "advise"];
    let runs = runs.map(|command| format!("{command} {touch}"));
    let others = ["doctor", "--help", "explain gone", "trace gone --out -", "report gone --json"];
    for arguments in runs.iter().map(String::as_str).chain(others) {
        let (code, message) = printing_to(">&-", arguments);
        assert_eq!(code, Some(2), "{arguments}: {message}");
        let why = "cosched: standard output: is closed, so the result cannot be printed; ";
        assert!(message.starts_with(why), "{arguments}: {message}");
        assert!(!started.exists(), "{arguments}: a program was started");
    }
}

#[test]
fn commands_that_print_nothing_need_no_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let manual = format!("manual {}", folder.path().display());
    for arguments in ["run --quiet -- true", "exec -- true", &manual] {
        let (code, message) = printing_to(">&-", arguments);
        assert_eq!((code, &message[..]), (Some(0), ""), "{arguments}");
    }
}

/// Runs a shell's line that ends in a run; with a namespace of mounts, if that is `unshare`.
fn run_by(shell: &[&str], line: &str, folder: &std::path::Path) -> (Option<i32>, String) {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(["-c", &format!("{line}; exec \"$0\" run -- touch \"$1\"")]);
    command.arg(env!("CARGO_BIN_EXE_cosched")).arg(folder.join("started"));
    command.env("XDG_RUNTIME_DIR", folder.join("run")).current_dir(folder).stdin(Stdio::null());
    let output = command.env("XDG_CACHE_HOME", folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn places_that_a_run_lacks_are_bad_input_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("run/cosched");
    std::fs::create_dir_all(&logs).unwrap();
    for private in [logs.parent().unwrap(), &logs] {
        std::fs::set_permissions(private, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    let in_a_namespace = ["unshare", "--mount", "sh"];
    let may_mount = Command::new("unshare").args(["--mount", "true"]).output().unwrap();
    let read_only = "mount --bind run run && mount -o remount,bind,ro run || exit 3";
    let lacks: [(&[&str], &str, &str); 5] = [
        (&["sh"], "mkdir gone && cd gone && rmdir ../gone", "as by `cd ~`"),
        (&["sh"], "ulimit -f 0", "`ulimit -f unlimited`"),
        (&in_a_namespace, read_only, "set XDG_RUNTIME_DIR to"),
        (&in_a_namespace, "umount -R -l /proc", "mount -t proc proc /proc"),
        (&in_a_namespace, "umount -R -l /sys", "mount -t sysfs sysfs /sys"),
    ];
    for (shell, line, remedy) in lacks {
        if shell[0] == "unshare" && !may_mount.status.success() {
            eprintln!("skipped: this user may not unmount: {line}");
            continue;
        }
        let (code, said) = run_by(shell, line, folder.path());
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains(remedy), "{line}: {said}");
        assert!(!folder.path().join("started").exists(), "{line}: {said}");
    }
}
