//! `cosched stats` from outside.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn stats(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.arg("stats").args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

const INPUT: &str = r#"{"version": 1, "rounds": {"linux": [2, 4, 3, 5, 6, 7, 8],
    "turns": [1, 2, 1.5, 2.5, 3, 3.5, 4]}, "over": "linux"}"#;

#[test]
fn times_on_standard_input_are_judged() {
    let output = stats(&["--json"], INPUT);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["schema"], "cosched-stats/1");
    assert_eq!(found["variants"]["turns"]["verdict"], "better");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn times_in_a_file_are_judged_in_words() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), INPUT).unwrap();
    let output = stats(&[file.path().to_str().unwrap()], "");
    let words = String::from_utf8(output.stdout).unwrap();
    assert!(words.contains("turns: median 2.500"), "{words}");
    assert!(words.contains("0.500 (0.500 to 0.500) of linux"), "{words}");
}

#[test]
fn a_mistake_is_bad_input_with_its_place() {
    let output = stats(&["--json"], "{}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("standard input: missing field `version`"), "{message}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}
