//! Whether a program builds software.
//!
//! Builds ask `nproc` how many jobs to start. `nproc` obeys the variable of OpenMP, by which only
//! the threads of each job were meant.

use std::path::Path;

use crate::small_script::{interpreter_line, names_shell, small_text};

const TOOLS: [&str; 16] = [
    "bazel", "cargo", "cmake", "ctest", "gmake", "gradle", "gradlew", "make", "makepkg", "meson",
    "mvn", "mvnw", "ninja", "samu", "scons", "xmake",
];
pub(crate) const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];
/// Commands that start another one, which stands behind their options.
pub(crate) const WRAPPERS: [&str; 10] =
    ["env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout"];

/// Commands that hardly compute: what a script does is decided by the others.
pub(crate) const LIGHT: [&str; 19] = [
    ":", "[", "cat", "cd", "echo", "exit", "export", "fi", "head", "ls", "mkdir", "printf", "rm",
    "seq", "set", "shift", "tail", "test", "true",
];

/// Whether a command ends as a build tool: directly, behind a wrapper such as `nice`, as the last
/// command of a text for a shell, or as that of a small script in `folder` if that is given.
pub(crate) fn is_build<S: AsRef<str>>(command: &[S], folder: Option<&Path>) -> bool {
    let mut words = command.iter().map(AsRef::as_ref).skip_while(|word| sets_variable(word));
    let Some(first) = words.next() else { return false };
    let rest: Vec<&str> = words.collect();
    let script = |file: &str| small_text(&folder?.join(file));
    match base_name(first) {
        name if SHELLS.contains(&name) => match text_of(&rest) {
            Some(text) => ends_as_build(text),
            None => {
                let file = rest.iter().find(|word| !word.starts_with(['-', '+']));
                file.and_then(|file| script(file)).is_some_and(|text| ends_as_build(&text))
            }
        },
        name if WRAPPERS.contains(&name) => is_build(wrapped(&rest), folder),
        // What `cargo run` and `make run` start is the program itself.
        name if TOOLS.contains(&name) => !rest.contains(&"run"),
        _ if first.contains('/') => script(first).is_some_and(|text| {
            interpreter_line(&text).is_some_and(names_shell) && ends_as_build(&text)
        }),
        _ => false,
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

/// Whether the last command of a text that may compute is a build; of a pipe, the first such one.
pub(crate) fn ends_as_build(text: &str) -> bool {
    let is_code = |line: &&str| !line.trim_start().starts_with('#');
    let lines: Vec<&str> = text.lines().filter(is_code).collect();
    let text = lines.join("\n").replace(">&", ">").replace("&>", ">").replace("||", ";");
    let is_between_words = |letter: char| letter.is_whitespace() || "(){}<>\"'".contains(letter);
    let words = |command: &'_ str| -> Vec<String> {
        let words = command.split(is_between_words).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let computes =
        |words: &Vec<String>| words.first().is_some_and(|word| !LIGHT.contains(&word.as_str()));
    let mut pipes = text.rsplit([';', '\n', '&']);
    let last = pipes.find_map(|pipe| pipe.split('|').map(words).find(computes));
    last.is_some_and(|words| is_build(&words, None))
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
            assert!(is_build(command, None), "{command:?}");
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
            assert!(!is_build(command, None), "{command:?}");
        }
    }

    #[test]
    fn scripts_that_end_as_a_build_are_builds() {
        let folder = tempfile::tempdir().unwrap();
        let is = |text: &str, command: &[&str]| {
            std::fs::write(folder.path().join("all.sh"), text).unwrap();
            is_build(command, Some(folder.path()))
        };
        let build = "#!/bin/sh\ncd \"$1\" && make -j$(nproc)\n# Built.\necho done\n";
        for command in [&["./all.sh", "x"][..], &["sh", "-e", "all.sh"], &["nice", "./all.sh"]] {
            assert!(is(build, command), "{command:?}");
        }
        assert!(!is_build(&["./all.sh"], None), "no file is read");
        for text in ["#!/bin/sh\nmake\n./solver\n", "#!/bin/sh\nmake; cat a | ./solver\n", "make\n"]
        {
            assert!(!is(text, &["./all.sh"]), "{text}");
        }
    }
}
