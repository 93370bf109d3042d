//! Whether a program builds software.
//!
//! Builds ask `nproc` how many jobs to start. A thread count that `nproc` obeys would bound the
//! jobs, where only the threads of each were meant.

use std::path::Path;

const TOOLS: [&str; 19] = [
    "bazel",
    "cargo",
    "cmake",
    "ctest",
    "debuild",
    "dpkg-buildpackage",
    "gmake",
    "gradle",
    "gradlew",
    "make",
    "makepkg",
    "meson",
    "mvn",
    "mvnw",
    "ninja",
    "rpmbuild",
    "samu",
    "scons",
    "xmake",
];
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];

/// Whether a command is a build tool, or a shell whose text on the command line calls one. A script
/// in a file is not read.
pub(crate) fn is_build(command: &[String]) -> bool {
    let Some(first) = command.first() else { return false };
    match base_name(first) {
        name if SHELLS.contains(&name) => {
            let mut words = command.iter().skip_while(|word| *word != "-c").skip(1);
            words.next().is_some_and(|text| text.split(is_between_words).any(is_tool))
        }
        // What a wrapper starts is among the words behind it.
        "env" | "nice" | "time" | "taskset" => command.iter().any(|word| is_tool(word)),
        name => is_tool(name),
    }
}

fn is_between_words(letter: char) -> bool {
    letter.is_whitespace() || ";&|()`".contains(letter)
}

fn is_tool(word: &str) -> bool {
    TOOLS.contains(&base_name(word))
}

fn base_name(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builds(command: &[&str]) -> bool {
        is_build(&command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn build_tools_are_found_behind_shells_and_wrappers() {
        assert!(builds(&["make", "-j4"]));
        assert!(builds(&["/usr/bin/ninja"]));
        assert!(builds(&["sh", "-c", "cd x && make -j$(nproc)"]));
        assert!(builds(&["env", "CC=clang", "make"]));
        assert!(!builds(&["./solver", "make"]));
        assert!(!builds(&["sh", "-c", "./make-water.sh; echo makes"]));
        assert!(!builds(&["bash", "make"]));
    }
}
