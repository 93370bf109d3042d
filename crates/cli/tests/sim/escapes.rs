//! Text of users in what is printed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// In a literal string TOML has no escapes, so quotes and backslashes make a difference.
#[test]
fn odd_characters_of_a_command_are_escaped_and_kept() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let recording = fs::read_to_string(recording.join("barriers-linux.json")).unwrap();
    let mut run: Value = serde_json::from_str(&recording).unwrap();
    let odd = "a\u{9b}31m\u{202e}\u{1}\u{feff}\u{e000}";
    let words = ["p".to_owned(), odd.to_owned(), format!("\"\\u0001{odd}'\n\t")];
    run["programs"][0]["command"] = serde_json::json!(words);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    fs::write(&file, run.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    let output = command.args(["sim", "--jobs-file", "--from"]).arg(&file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let is_odd = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{feff}".contains(c));
    assert!(!text.contains(is_odd), "{text}");
    let file: toml::Table = toml::from_str(&text).unwrap();
    let command = file["program"][0]["command"].as_array().unwrap();
    assert_eq!(command.iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>(), words);
}
