//! What a command is called by: the script that an interpreter runs, or else its own first word.
//!
//! Three runs of `python3` are easier to distinguish as `a.py`, `b.py` and `c.py`. Only
//! interpreters that are known here are looked behind; any other command has its own name.
//!
//! A script that does not exist would be noticed by its interpreter only when other programs run.

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
}

const INTERPRETERS: [Interpreter; 8] = [
    Interpreter {
        names: &["python", "pypy"],
        code: &["-c"],
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        module: Some("-m"),
    },
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh"],
        code: &["-c", "-s"],
        valued: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"],
        module: None,
    },
    Interpreter { names: &["perl"], code: &["-e", "-E"], valued: &["-I", "-x"], module: None },
    Interpreter {
        names: &["ruby"],
        code: &["-e"],
        valued: &["-I", "-r", "-C", "-E"],
        module: None,
    },
    Interpreter {
        names: &["node", "nodejs"],
        code: &["-e", "--eval", "-p", "--print"],
        valued: &["-r", "--require", "--import", "-C", "--conditions"],
        module: None,
    },
    Interpreter {
        names: &["julia"],
        code: &["-e", "--eval", "-E", "--print"],
        valued: &["-t", "--threads", "-p", "--procs", "-L", "--load", "-J", "--sysimage"],
        module: None,
    },
    Interpreter { names: &["Rscript"], code: &["-e"], valued: &[], module: None },
    Interpreter {
        names: &["java"],
        code: &[],
        valued: &["-cp", "-classpath", "--class-path", "-p", "--module-path"],
        module: Some("-jar"),
    },
];

/// The word of a command that names it. The command is not empty.
pub(super) fn naming_word(command: &[String]) -> &str {
    interpreter(command).and_then(|known| script(command, known)).unwrap_or(&command[0])
}

/// The file that Python or a shell is surely to run, as the command names it; `None`: it may be
/// none, or may be looked for elsewhere. Only options are known here that come before a script and
/// take no value.
pub(super) fn file(command: &[String]) -> Option<&str> {
    let (first, flags): (_, &[&str]) = match *interpreter(command)?.names.first()? {
        "python" => ("python", &["-u", "-B", "-O", "-s", "-E", "-I"]),
        "sh" => ("sh", &["-e", "-u", "-x"]),
        _ => return None,
    };
    let script = command[1..].iter().find(|word| !flags.contains(&word.as_str()))?;
    // A shell looks for other scripts in PATH, too.
    let is_one = match first {
        "python" => script.ends_with(".py"),
        _ => script.ends_with(".sh") && script.contains('/'),
    };
    (is_one && !script.starts_with(['-', '+'])).then_some(script)
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
    fn a_file_is_known_only_where_it_is_surely_one() {
        let of = |line: &str| {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            file(&command).map(str::to_owned)
        };
        for (line, found) in [
            ("python3 -u a.py", "a.py"),
            ("/usr/bin/python3.11 dir/a.py b.py", "dir/a.py"),
            ("bash ./build.sh", "./build.sh"),
            ("sh -x dir/build.sh", "dir/build.sh"),
        ] {
            assert_eq!(of(line).as_deref(), Some(found), "{line}");
        }
        for line in [
            "python3 -m http.server",
            "python3 -um a.py",
            "python3 -ma.py",
            "python3 -c a.py",
            "python3 -cprint(1) a.py",
            "python3 -W error a.py",
            "python3 -uW ignore::a.py a.py",
            "python3 --version a.py",
            "python3 folder",
            "bash build.sh",
            "bash -c ./a.sh",
            "bash -ce ./a.sh",
            "bash -s ./a.sh",
            "bash -O extglob ./a.sh",
            "perl ./a.pl",
            "ruby -C sub ./r.rb",
            "node server.prod",
            "java -cp jj com.Main",
            "./solver a.py",
        ] {
            assert_eq!(of(line), None, "{line}");
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
