//! Whether a program builds software.
//!
//! Builds ask `nproc` how many jobs to start. `nproc` obeys the variable of OpenMP, by which only
//! the threads of each job were meant.

use std::path::Path;

const TOOLS: [&str; 16] = [
    "bazel", "cargo", "cmake", "ctest", "gmake", "gradle", "gradlew", "make", "makepkg", "meson",
    "mvn", "mvnw", "ninja", "samu", "scons", "xmake",
];
pub(crate) const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];
/// Commands that start another one, which stands behind their options.
pub(crate) const WRAPPERS: [&str; 10] =
    ["env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout"];

/// Whether a command ends as a build tool: directly, behind a wrapper such as `nice`, or as the
/// last command of a text for a shell. A script in a file is not read.
pub(crate) fn is_build<S: AsRef<str>>(command: &[S]) -> bool {
    let mut words = command.iter().map(AsRef::as_ref).skip_while(|word| sets_variable(word));
    let Some(first) = words.next() else { return false };
    let rest: Vec<&str> = words.collect();
    match base_name(first) {
        name if SHELLS.contains(&name) => text_of(&rest).is_some_and(ends_as_build),
        name if WRAPPERS.contains(&name) => is_build(wrapped(&rest)),
        // What `cargo run` and `make run` start is the program itself.
        name => TOOLS.contains(&name) && !rest.contains(&"run"),
    }
}

/// The command that a wrapper with these arguments starts. Numbers are values of options, or the
/// wrapper's own.
pub(crate) fn wrapped<S: AsRef<str>>(arguments: &[S]) -> &[S] {
    let is_own = |word: &&S| {
        let word = word.as_ref();
        word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) || sets_variable(word)
    };
    &arguments[arguments.iter().take_while(is_own).count()..]
}

/// What a shell with these arguments executes; `None`: a file, or what it reads.
fn text_of<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let options = arguments.iter().take_while(|word| word.starts_with(['-', '+']));
    let index = options.clone().position(|word| !word.starts_with("--") && word.contains('c'))?;
    arguments.get(index + 1).copied()
}

/// Whether the last command of a text is a build; of a pipe, its first.
pub(crate) fn ends_as_build(text: &str) -> bool {
    let text = text.replace(">&", ">").replace("&>", ">").replace("||", ";");
    let mut pipes = text.rsplit([';', '\n', '&']).filter(|pipe| !pipe.trim().is_empty());
    let last = pipes.next().and_then(|pipe| pipe.split('|').next()).unwrap_or_default();
    let is_between_words = |letter: char| letter.is_whitespace() || "(){}<>\"'".contains(letter);
    let words: Vec<&str> = last.split(is_between_words).filter(|word| !word.is_empty()).collect();
    is_build(&words)
}

pub(crate) fn sets_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'))
}

pub(crate) fn base_name(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_tools_are_found_behind_shells_and_wrappers() {
        let builds: [&[&str]; 11] = [
            &["make", "-j4"],
            &["/usr/bin/ninja"],
            &["sh", "-c", "cd x && make -j$(nproc)"],
            &["bash", "-ec", "./configure; (CC=clang make all 2>&1)"],
            &["sh", "-c", "make>log 2>&1 | tee log"],
            &["env", "CC=clang", "make"],
            &["nice", "-n", "5", "make"],
            &["timeout", "10m", "ninja"],
            &["taskset", "-c", "0,1", "make"],
            &["env", "sh", "-c", "exec make -j2"],
            &["cargo", "build"],
        ];
        for command in builds {
            assert!(is_build(command), "{command:?}");
        }
    }

    #[test]
    fn programs_that_a_build_comes_before_are_no_builds() {
        let programs: [&[&str]; 11] = [
            &["./solver", "make"],
            &["sh", "-c", "make && ./solver"],
            &["sh", "-c", "cd /src/ninja && ./solver"],
            &["sh", "-c", "echo make"],
            &["sh", "-c", "./make-water.sh"],
            &["bash", "make"],
            &["bash", "script.sh", "-c", "make"],
            &["env", "OUT=/x/make", "./solver"],
            &["nice", "./solver", "make"],
            &["cargo", "run"],
            &[],
        ];
        for command in programs {
            assert!(!is_build(command), "{command:?}");
        }
    }
}
