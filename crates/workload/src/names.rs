//! Names of programs: unique, and fit to be file names, since a program's output goes to files of
//! its name.
//!
//! Names that the user gives stay as they are. A program without one is called after its
//! [script](super::script), or else its command, with the first of -2, -3, ... that no other
//! program has.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::error::Problem;

/// File systems allow 255 bytes; the rest is for endings such as `-2.stdout`.
const MAX_BYTES: usize = 200;
/// The name of a program if its command has no name that a file could have.
const NAMELESS: &str = "program";
/// As many characters never take more than [`MAX_BYTES`] in UTF-8.
const MAX_DEFAULT_CHARS: usize = 50;

pub(super) struct Names {
    taken: HashSet<String>,
    /// The highest number tried per base name, so that a thousand equal commands take a thousand
    /// tries.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// Names of which the given ones are taken.
    pub(super) fn new(given: impl IntoIterator<Item = String>) -> Names {
        Names { taken: given.into_iter().collect(), numbers: HashMap::new() }
    }

    /// A name for a program that was not given one, from the path of a file.
    pub(super) fn after(&mut self, path: &str) -> String {
        let base = Path::new(path).file_name().map(|base| base.to_string_lossy());
        let base: String = base.unwrap_or(path.into()).chars().take(MAX_DEFAULT_CHARS).collect();
        let base = checked(base).unwrap_or(NAMELESS.to_owned());
        let number = self.numbers.entry(base.clone()).or_default();
        loop {
            *number += 1;
            let name = if *number == 1 { base.clone() } else { format!("{base}-{number}") };
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The name, if it can be a file name.
pub(super) fn checked(name: String) -> Result<String, Problem> {
    let fits = (1..=MAX_BYTES).contains(&name.len())
        && !matches!(name.as_str(), "." | "..")
        && !name.contains(|c: char| c == '/' || c.is_control());
    if fits { Ok(name) } else { Err(Problem::NotAFileName(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_base_names_are_numbered_around_given_names() {
        let mut names = Names::new(["cg-2".to_owned()]);
        let called = ["./cg", "/bin/cg", "lu", "cg", ".."].map(|command| names.after(command));
        assert_eq!(called, ["cg", "cg-3", "lu", "cg-4", "program"]);
    }

    #[test]
    fn long_base_names_are_cut_to_what_a_file_name_can_hold() {
        let name = Names::new([]).after(&"\u{1f427}".repeat(100));
        assert_eq!(name.len(), MAX_BYTES);
    }

    #[test]
    fn what_cannot_be_a_file_name_is_refused() {
        for bad in ["", ".", "..", "a/b", "a\0b", "a\nb", &"x".repeat(201)] {
            assert!(checked(bad.to_owned()).is_err(), "{bad:?} must be refused");
        }
        for good in ["cg", "...", "a b", "été", &"x".repeat(200)] {
            assert_eq!(checked(good.to_owned()).unwrap(), good);
        }
    }
}
