//! Scripts that are small enough to be read before a program starts.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::build_tool::{SHELLS, base_name};

/// The largest script that is read, bytes.
const LARGEST_SCRIPT: u64 = 64 << 10;

/// What is in a small file; `None`: it is none, or cannot be read.
pub(crate) fn small_text(path: &Path) -> Option<String> {
    // To open a named pipe would wait for another process.
    let is_small = |file: &std::fs::Metadata| {
        // A file of the kernel shows no size, and reading it may wait.
        file.is_file() && (1..=LARGEST_SCRIPT).contains(&file.len())
    };
    std::fs::metadata(path).ok().filter(is_small)?;
    let mut text = String::new();
    File::open(path).ok()?.take(LARGEST_SCRIPT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What stands behind `#!` in the first line of a script.
pub(crate) fn interpreter_line(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix("#!")
}

/// Whether such a line names a shell.
pub(crate) fn names_shell(line: &str) -> bool {
    line.split_whitespace().any(|word| SHELLS.contains(&base_name(word)))
}
