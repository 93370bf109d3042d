//! What a command is called by: the script that an interpreter runs, or else its own first word.
//!
//! Three runs of `python3` are easier to distinguish as `a.py`, `b.py` and `c.py`. Only
//! interpreters that are known here are looked behind; any other command has its own name.
//!
//! A script that does not exist would be noticed by its interpreter only when other programs run.

use std::path::Path;

/// An interpreter's options, as far as they stand before the script.
struct Interpreter {
    /// Its names, without the version at their end.
    names: &'static [&'static str],
    /// Options after which there is no script, but code.
    code: &'static [&'static str],
    /// Options that take the next word.
    valued: &'static [&'static str],
    /// An option with a value that is run.
    module: Option<&'static str>,
    /// Where it looks for a script without a '/' in its path.
    searches: Searches,
}

/// Where an interpreter looks for its script.
#[derive(Clone, Copy, PartialEq)]
enum Searches {
    /// In its working directory alone.
    Here,
    /// In the folders of `PATH`, too, or only with some options.
    Path,
}

const INTERPRETERS: [Interpreter; 8] = [
    Interpreter {
        names: &["python", "pypy"],
        code: &["-c"],
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        module: Some("-m"),
        searches: Searches::Here,
    },
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh"],
        code: &["-c", "-s"],
        valued: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"],
        module: None,
        searches: Searches::Path,
    },
    Interpreter {
        names: &["perl"],
        code: &["-e", "-E"],
        valued: &["-I", "-x"],
        module: None,
        searches: Searches::Path,
    },
    Interpreter {
        names: &["ruby"],
        code: &["-e"],
        valued: &["-I", "-r", "-C", "-E"],
        module: None,
        searches: Searches::Path,
    },
    Interpreter {
        names: &["node", "nodejs"],
        code: &["-e", "--eval", "-p", "--print"],
        valued: &["-r", "--require", "--import", "-C", "--conditions"],
        module: None,
        searches: Searches::Here,
    },
    Interpreter {
        names: &["julia"],
        code: &["-e", "--eval", "-E", "--print"],
        valued: &["-t", "--threads", "-p", "--procs", "-L", "--load", "-J", "--sysimage"],
        module: None,
        searches: Searches::Here,
    },
    Interpreter {
        names: &["Rscript"],
        code: &["-e"],
        valued: &[],
        module: None,
        searches: Searches::Here,
    },
    Interpreter {
        names: &["java"],
        code: &[],
        valued: &["-cp", "-classpath", "--class-path", "-p", "--module-path"],
        module: Some("-jar"),
        searches: Searches::Here,
    },
];

/// The word of a command that names it. The command is not empty.
pub(super) fn naming_word(command: &[String]) -> &str {
    interpreter(command).and_then(|known| script(command, known)).unwrap_or(&command[0])
}

/// The file that an interpreter is to run, as the command names it; `None`: the command has no such
/// file, or the interpreter may find it elsewhere. A file without a suffix may be anything.
pub(super) fn file(command: &[String]) -> Option<&str> {
    let known = interpreter(command)?;
    let script = script(command, known)?;
    let is_module = known.module == Some("-m") && command.iter().any(|word| word == "-m");
    let is_here = known.searches == Searches::Here || script.contains('/');
    let has_suffix = Path::new(script).extension().is_some();
    (is_here && has_suffix && !is_module).then_some(script)
}

/// The interpreter that a command runs, if it is known here.
fn interpreter(command: &[String]) -> Option<&'static Interpreter> {
    let base = command.first()?.rsplit('/').next()?;
    let base = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|known| known.names.contains(&base))
}

/// The script, or the module, that this interpreter is to run; `None`: it runs code from the
/// command line or from its standard input.
fn script<'a>(command: &'a [String], known: &Interpreter) -> Option<&'a str> {
    let (_, rest) = command.split_first()?;
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--" => return words.next(),
            _ if known.module == Some(word) => return words.next(),
            _ if known.code.contains(&word) || is_code(word, known) => return None,
            _ if known.valued.contains(&word) => drop(words.next()),
            _ if word.len() > 1 && word.starts_with(['-', '+']) => {}
            "-" | "" => return None,
            script => return Some(script),
        }
    }
    None
}

/// Whether short options that stand together end with one for code: `-lc`.
fn is_code(word: &str, known: &Interpreter) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let last = letters.and_then(|letters| letters.chars().last());
    let is_short = letters.is_some_and(|letters| letters.chars().all(char::is_alphabetic));
    is_short && last.is_some_and(|last| known.code.contains(&format!("-{last}").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(line: &str) -> String {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        naming_word(&command).to_owned()
    }

    #[test]
    fn a_script_gives_the_name_and_not_its_interpreter() {
        for (line, named) in [
            ("python3 a.py", "a.py"),
            ("/usr/bin/python3.11 -u -W ignore dir/a.py --size 4", "dir/a.py"),
            ("python3 -m http.server 80", "http.server"),
            ("bash -e -o pipefail build.sh", "build.sh"),
            ("sh -- a.sh", "a.sh"),
            ("julia -t 4 --project=. a.jl", "a.jl"),
            ("java -Xmx4g -jar solver.jar x", "solver.jar"),
            ("Rscript fit.R", "fit.R"),
        ] {
            assert_eq!(name(line), named, "{line}");
        }
    }

    #[test]
    fn a_file_is_known_where_the_interpreter_looks_only_there() {
        let of = |line: &str| {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            file(&command).map(str::to_owned)
        };
        for (line, found) in [
            ("python3 -u a.py", Some("a.py")),
            ("python3 -m http.server", None),
            ("python3 folder", None),
            ("bash build.sh", None),
            ("bash ./build.sh", Some("./build.sh")),
            ("java -jar solver.jar", Some("solver.jar")),
            ("python3 -c a.py", None),
            ("./solver a.py", None),
        ] {
            assert_eq!(of(line).as_deref(), found, "{line}");
        }
    }

    #[test]
    fn without_a_script_the_command_keeps_its_own_name() {
        for line in [
            "python3",
            "python3 -c print(1)",
            "python3 -",
            "sh -c ./a",
            "bash -lc ./a",
            "perl -we 1",
            "julia -e 1",
            "./python3-solver a.py",
            "./solver a.py",
            "env python3 a.py",
        ] {
            assert_eq!(name(line), line.split(' ').next().unwrap(), "{line}");
        }
    }
}
