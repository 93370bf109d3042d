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

/// Words of a shell's language before which, or in place of which, a command stands.
pub(crate) const KEYWORDS: [&str; 14] = [
    "!", "builtin", "command", "do", "elif", "else", "eval", "if", "then", "until", "while", "{",
    "}", "",
];
/// Commands that hardly compute: what a script does is decided by the others.
pub(crate) const LIGHT: [&str; 25] = [
    ":", "[", "cat", "cd", "cp", "echo", "exit", "export", "fi", "head", "install", "ln", "ls",
    "mkdir", "mv", "popd", "printf", "pushd", "rm", "seq", "set", "shift", "tail", "test", "true",
];

/// Words that end a part of a script, and start no command.
const ENDS: [&str; 4] = ["done", "esac", "return", "wait"];
/// Scripts with a folder in their name that prepare a build.
const PREPARE: [&str; 4] = ["autogen.sh", "bootstrap", "bootstrap.sh", "configure"];
/// Options of wrappers that take the next word, which is no number.
const VALUED: [&str; 7] = ["-C", "-o", "-s", "-u", "--chdir", "--signal", "--unset"];

/// Whether a command ends as a build tool: directly, behind a wrapper such as `nice`, as the last
/// command of a text for a shell, or as that of a small script in `folder` if that is given. Such a
/// script is no build if it also starts programs of its own.
pub(crate) fn is_build<S: AsRef<str>>(command: &[S], folder: Option<&Path>) -> bool {
    let mut words = command.iter().map(AsRef::as_ref).skip_while(|word| sets_variable(word));
    let Some(first) = words.next() else { return false };
    let rest: Vec<&str> = words.collect();
    let script = |file: &str| small_text(&folder?.join(file));
    match base_name(first) {
        name if SHELLS.contains(&name) => match executed_by_shell(&rest) {
            Some((true, words)) => ends_as_build(words[0]),
            Some((false, words)) => script(words[0]).is_some_and(|text| is_build_script(&text)),
            None => false,
        },
        name if WRAPPERS.contains(&name) => is_build(wrapped(&rest), folder),
        // What `cargo run` and `make run` start is the program itself.
        name if TOOLS.contains(&name) => !rest.contains(&"run"),
        _ if first.contains('/') => script(first).is_some_and(|text| {
            interpreter_line(&text).is_some_and(names_shell) && is_build_script(&text)
        }),
        _ => false,
    }
}

/// The command that a wrapper with these arguments starts. Numbers are values of options, or the
/// wrapper's own.
pub(crate) fn wrapped<S: AsRef<str>>(arguments: &[S]) -> &[S] {
    let mut own = 0;
    while let Some(word) = arguments.get(own).map(AsRef::as_ref) {
        let is_own = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if !is_own && !sets_variable(word) {
            break;
        }
        own += if VALUED.contains(&word) { 2 } else { 1 };
    }
    &arguments[own.min(arguments.len())..]
}

/// What a shell with these arguments executes, with what stands behind it, and whether that is a
/// text; `None`: what it reads.
fn executed_by_shell<S: AsRef<str>>(arguments: &[S]) -> Option<(bool, &[S])> {
    let (mut at, mut is_text) = (0, false);
    loop {
        let word = arguments.get(at)?.as_ref();
        let Some(letters) = word.strip_prefix(['-', '+']) else {
            return Some((is_text, &arguments[at..]));
        };
        at += 1;
        if letters.starts_with('-') {
            continue;
        }
        is_text |= word.starts_with('-') && letters.contains('c');
        // The name of an option: `-o pipefail`.
        at += usize::from(letters.contains(['o', 'O']));
    }
}

/// Whether the last command of a text that may compute is a build; of a pipe, the first such one.
pub(crate) fn ends_as_build(text: &str) -> bool {
    commands_of(text).last().is_some_and(|words| is_build(words, None))
}

/// Whether a script ends as a build and starts no program of its own.
fn is_build_script(text: &str) -> bool {
    ends_as_build(text) && !commands_of(text).iter().any(|words| starts_own(words))
}

/// Whether a command of a script, which may stand behind wrappers, is the script's own program.
fn starts_own(words: &[String]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let is_own = |name| !TOOLS.contains(&name) && !PREPARE.contains(&name);
    match base_name(first) {
        name if WRAPPERS.contains(&name) => starts_own(wrapped(rest)),
        name if SHELLS.contains(&name) => match executed_by_shell(rest) {
            Some((true, words)) => starts_own(words),
            Some((false, words)) => is_own(base_name(&words[0])),
            None => false,
        },
        name => first.contains('/') && is_own(name),
    }
}

/// The commands of a text for a shell that may compute, each split into words; of a pipe, the first
/// such one. A command with an open quote, or with others within it, has one word: its program, if
/// that is in a folder.
fn commands_of(text: &str) -> Vec<Vec<String>> {
    let mut code = String::new();
    for line in text.replace("\\\n", " ").lines() {
        let words = line.split(' ').take_while(|word| !word.starts_with('#'));
        code.push_str(&words.collect::<Vec<_>>().join(" "));
        code.push('\n');
    }
    let code = code.replace(">&", ">").replace("&>", ">").replace("|&", "|").replace("||", ";");
    let pipes = code.split([';', '\n', '&']);
    pipes.filter_map(|pipe| pipe.split('|').find_map(computing)).collect()
}

/// The words of a command of a text, if it may compute.
fn computing(command: &str) -> Option<Vec<String>> {
    let has_open_quote = ['"', '\''].iter().any(|quote| command.matches(*quote).count() % 2 == 1);
    let inner = command.replace("$(nproc)", "").replace("`nproc`", "");
    if has_open_quote || ["$(", "`", "<(", ">("].iter().any(|sign| inner.contains(sign)) {
        let first = command.split_whitespace().next().filter(|word| word.contains('/'));
        return Some(vec![first.unwrap_or_default().to_owned()]);
    }
    let is_between_words = |letter: char| letter.is_whitespace() || "()<>".contains(letter);
    let unquoted = command.replace(['"', '\''], "");
    let words = unquoted.split(is_between_words).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| KEYWORDS.contains(word) || sets_variable(word));
    let first = words.next().filter(|word| !LIGHT.contains(word) && !ENDS.contains(word))?;
    Some(std::iter::once(first).chain(words).map(str::to_owned).collect())
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
        let builds: [&[&str]; 13] = [
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
            &["bash", "-euo", "pipefail", "-c", "make"],
            &["env", "-u", "CC", "-C", "src", "make"],
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
        let build = "#!/bin/sh\ncd \"$1\" && echo $(nproc) && make \\\n -j$(nproc) # all\n\
                     # Built.\nrc=$?; echo \"done\"\nexit $rc\n";
        for command in [&["./all.sh", "x"][..], &["sh", "-e", "all.sh"], &["nice", "./all.sh"]] {
            assert!(is(build, command), "{command:?}");
        }
        assert!(!is_build(&["./all.sh"], None), "no file is read");
        for text in [
            "bash -c 'git pull'; sh -c 'exec make'; make",
            "./configure --prefix=$(pwd); make",
            "./configure\nif [ -f Makefile ]; then make -j4; fi",
            "make -j`nproc` && cp prog /usr/bin; popd",
            "make & wait",
            "make |& tee log",
        ] {
            assert!(is(&format!("#!/bin/bash\n{text}\n"), &["./all.sh"]), "{text}");
        }
        let others = [
            "make\n./solver",
            "./solver\nmake plots",
            "make; cat a | ./solver",
            "make && echo \"$(./solver)\"",
            "make; export R=$(./solver)",
            "./solver # before: cd x; make",
            "./solver; echo \"done; make clean\"",
            "./solver --mode \\\n make",
            "time ./solver; make",
            "nice -n 5 timeout 5 ./solver; make",
            "sh ./solver.sh; make",
            "bash -c './solver 3'; make",
            "./solver $(cat n); make",
            "./solver 'a; b'; make",
            "\"$PWD\"/solver; make",
            "${PWD}/solver; make",
        ];
        for text in others {
            assert!(!is(&format!("#!/bin/sh\n{text}\n"), &["./all.sh"]), "{text}");
        }
        assert!(!is("make\n", &["./all.sh"]), "no interpreter is named");
    }
}
