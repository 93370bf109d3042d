//! Mistakes on the command line that would otherwise get a misleading answer, or none: a program in
//! the place of a jobs file, `::` in the place of `:::`, and launchers that start processes out of
//! cosched's reach.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cosched_workload::input;
use cosched_workload::shell;
use cosched_workload::{ProgramSpec, SEPARATOR, Workload, WorkloadError, shown_path};

use crate::ui::failure::Failure;

/// What runs scripts that are not executable.
const INTERPRETERS: [(&str, &str); 6] = [
    ("py", "python3"),
    ("sh", "sh"),
    ("pl", "perl"),
    ("rb", "ruby"),
    ("R", "Rscript"),
    ("jl", "julia"),
];

/// What stands in the place of the separator by mistake.
const NEARLY_SEPARATORS: [&str; 3] = [":", "::", "::::"];

/// The refusal of a program in the place of a jobs file; `None`: it is something else.
pub(super) fn program(path: &Path, here: &Path) -> Option<Failure> {
    let command = if path.is_file() { script(path)? } else { found(path, here)? };
    Some(Failure::Input(format!(
        "{}: is a program, not a jobs file; commands come after '--', as in `cosched run -- {}`",
        shown_path(path),
        shell::join(command)
    )))
}

/// How to run a file that is a program.
fn script(path: &Path) -> Option<Vec<String>> {
    let mut start = Vec::new();
    input::open(path).ok()?.take(4).read_to_end(&mut start).ok()?;
    let extension = path.extension().unwrap_or_default();
    let interpreter = INTERPRETERS.iter().find(|(known, _)| extension == *known);
    let is_program = start.starts_with(b"#!") || start == b"\x7fELF" || interpreter.is_some();
    if !is_program || extension == "toml" {
        return None;
    }
    let executable = path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
    let word = path.to_string_lossy().into_owned();
    Some(match interpreter {
        Some((_, interpreter)) if !executable => vec![(*interpreter).to_owned(), word],
        _ if word.contains('/') => vec![word],
        _ => vec![format!("./{word}")],
    })
}

/// The command of this name, or with its arguments in the same word.
fn found(path: &Path, here: &Path) -> Option<Vec<String>> {
    let command = shell_words::split(path.to_str()?).ok()?;
    is_command(command.first()?, here).then_some(command)
}

fn is_command(word: &str, here: &Path) -> bool {
    let path = std::env::var_os("PATH");
    Workload::from_commands(vec![vec![word.to_owned()]], here)
        .is_ok_and(|workload| workload.programs[0].executable(path.as_deref()).is_ok())
}

fn is_glued(word: &&String) -> bool {
    word.contains(SEPARATOR) && word.chars().any(|c| c != ':')
}

/// What interpreters have before a line of a program: `sh -c LINE`, `perl -e LINE`.
const BEFORE_LINES: [&str; 4] = ["-c", "-e", "-E", "--eval"];

/// The words without those that are lines for an interpreter: a word with a blank was quoted.
fn outside_of_lines(words: &[String]) -> impl Iterator<Item = &String> {
    let follows_option = |i: usize| i > 0 && BEFORE_LINES.contains(&words[i - 1].as_str());
    let is_line = move |i: usize| follows_option(i) || words[i].contains(char::is_whitespace);
    words.iter().enumerate().filter(move |(i, _)| !is_line(*i)).map(|(_, word)| word)
}

/// These words as the argument of a shell, so that no separator is seen in them.
fn by_a_shell(words: &[String]) -> String {
    shell::join(["sh".to_owned(), "-c".to_owned(), shell::join(words.iter().cloned())])
}

/// GNU parallel takes `:::` itself.
fn is_parallel(words: &[String]) -> bool {
    words.first().is_some_and(|word| Path::new(word).file_name() == Some("parallel".as_ref()))
}

/// What stands before a command in the place of `:::`, and the command.
fn near_separator<'a>(words: &'a [String], here: &Path) -> Option<&'a [String]> {
    words
        .windows(2)
        .find(|pair| NEARLY_SEPARATORS.contains(&pair[0].as_str()) && is_command(&pair[1], here))
}

/// Refuses several commands for a subcommand that takes one, also where they are separated with a
/// slip: the first program would get the other commands as arguments.
///
/// # Errors
/// When there are several commands.
pub fn check_one_program(subcommand: &str, words: &[String], here: &Path) -> Result<(), Failure> {
    let separator = outside_of_lines(words).find(|word| *word == SEPARATOR || is_glued(word));
    let near = || near_separator(words, here).map(|pair| &pair[0]);
    let Some(separator) = separator.or_else(near) else { return Ok(()) };
    if is_parallel(words) {
        return Err(Failure::Input(format!(
            "command line: '{separator}' separates programs, and `cosched {subcommand}` starts \
             one; to pass it to parallel, quote the command: `cosched {subcommand} -- {}`",
            by_a_shell(words)
        )));
    }
    let cut = |word: &String| word.replace(SEPARATOR, &format!(" {SEPARATOR} "));
    let several: Vec<String> = words
        .iter()
        .flat_map(|word| match word == separator && !is_glued(&word) {
            true => vec![SEPARATOR.to_owned()],
            false if is_glued(&word) => cut(word).split_whitespace().map(shell::quote).collect(),
            false => vec![shell::quote(word)],
        })
        .collect();
    Err(Failure::Input(format!(
        "command line: `cosched {subcommand}` starts one program, but '{separator}' separates \
         several; start them together: `cosched run -- {}` (to pass it to the program, quote the \
         command: `cosched {subcommand} -- {}`)",
        several.join(" "),
        by_a_shell(words)
    )))
}

/// Refuses `::` before a command, and `:::` without blanks: programs are separated by `:::`.
pub(super) fn check_separators(words: &[String], here: &Path) -> Result<(), Failure> {
    let commands: Vec<&[String]> = words.split(|word| word == SEPARATOR).collect();
    if let Some(at) = commands.iter().position(|command| is_parallel(command)) {
        let is_no_command =
            |words: &&&[String]| words.first().is_some_and(|w| !is_command(w, here));
        let further = commands[at + 1..].iter().take_while(is_no_command).count();
        if further > 0 {
            return Err(Failure::Input(format!(
                "command line: '{SEPARATOR}' separates programs, and '{}' is none; to pass both to \
                 parallel, quote the command: `-- {}`",
                commands[at + 1][0],
                by_a_shell(&commands[at..=at + further].join(&SEPARATOR.to_owned()))
            )));
        }
    }
    if let Some(word) = outside_of_lines(words).find(is_glued) {
        return Err(Failure::Input(format!(
            "command line: '{word}' does not separate programs; write blanks around '{SEPARATOR}' \
             (a program with the argument '{word}' can be given by --prog)"
        )));
    }
    match near_separator(words, here) {
        None => Ok(()),
        Some(pair) => Err(Failure::Input(format!(
            "command line: '{}' before '{}' does not separate programs; write '{SEPARATOR}' (a \
             program with the argument '{0}' can be given by --prog)",
            pair[0], pair[1]
        ))),
    }
}

/// A command that lets another program start its processes.
struct LauncherCommand {
    name: &'static str,
    /// The subcommands that start processes; none: it always does.
    verbs: &'static [&'static str],
    /// What starts the processes.
    through: &'static str,
    /// How cosched gets there.
    remedy: &'static str,
}

const IN_STEP: &str = "start cosched in the job step: `srun --ntasks=1 cosched run -- ./a ::: ./b`";
const IN_SCRIPT: &str = "put `cosched run -- ./a ::: ./b` into the script of the job";
const IN_CONTAINER: &str =
    "start cosched in the container, before the command: `cosched run -- ./a ::: ./b`";

/// Of `salloc` the command itself is a child, so only an `srun` in it is refused.
const LAUNCHERS: [LauncherCommand; 10] = [
    LauncherCommand { name: "srun", verbs: &[], through: "Slurm", remedy: IN_STEP },
    LauncherCommand { name: "salloc", verbs: &["srun"], through: "Slurm", remedy: IN_STEP },
    LauncherCommand { name: "sbatch", verbs: &[], through: "Slurm", remedy: IN_SCRIPT },
    LauncherCommand { name: "qsub", verbs: &[], through: "the batch system", remedy: IN_SCRIPT },
    LauncherCommand { name: "bsub", verbs: &[], through: "the batch system", remedy: IN_SCRIPT },
    LauncherCommand {
        name: "kubectl",
        verbs: &["run", "exec", "create", "apply", "debug"],
        through: "Kubernetes",
        remedy: IN_CONTAINER,
    },
    LauncherCommand {
        name: "docker",
        verbs: &["run", "exec", "start", "compose"],
        through: "Docker's daemon",
        remedy: IN_CONTAINER,
    },
    LauncherCommand {
        name: "nerdctl",
        verbs: &["run", "exec", "start", "compose"],
        through: "containerd",
        remedy: IN_CONTAINER,
    },
    // It has no daemon, but moves containers into cgroups of their own.
    LauncherCommand {
        name: "podman",
        verbs: &["run", "exec", "start"],
        through: "Podman's monitor",
        remedy: IN_CONTAINER,
    },
    LauncherCommand {
        name: "systemd-run",
        verbs: &[],
        through: "systemd",
        remedy: "leave out systemd-run: `cosched run` gets CPU groups from systemd by itself",
    },
];

/// Refuses a command if its processes would be no children of cosched: a policy could not reach
/// them, and its figures would be those of a client that waits.
///
/// # Errors
/// When the command is such a launcher.
pub fn check_launcher(spec: &ProgramSpec) -> Result<(), WorkloadError> {
    let name = PathBuf::from(&spec.command[0]);
    let name = name.file_name().unwrap_or_default();
    let words = &spec.command[1..];
    let starts = |launcher: &&LauncherCommand| {
        let verb = match launcher.name {
            "salloc" => words.iter().find(|word| *word == "srun"),
            _ => words.iter().find(|word| !word.starts_with('-')),
        };
        let verb = verb.is_some_and(|verb| launcher.verbs.contains(&verb.as_str()));
        // A scope is a cgroup, and its process stays a child.
        let in_scope = launcher.name == "systemd-run" && words.iter().any(|word| word == "--scope");
        name == launcher.name && (launcher.verbs.is_empty() || verb) && !in_scope
    };
    match LAUNCHERS.iter().find(starts) {
        None => Ok(()),
        Some(LauncherCommand { name, through, remedy, .. }) => Err(WorkloadError::Unusable {
            place: spec.places.command.clone(),
            what: format!(
                "command '{name}' starts its processes through {through}, where cosched cannot \
                 schedule them; {remedy}"
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn programs_in_the_place_of_a_jobs_file_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            file
        };
        let refusal = |path: &Path| program(path, folder.path()).map(|it| it.text().to_owned());
        let script = write("a.sh", "#!/bin/sh\n", 0o755);
        let message = refusal(&script).unwrap();
        assert!(message.ends_with(&format!("`cosched run -- {}`", script.display())), "{message}");
        assert!(message.contains("a.sh: is a program, not a jobs file"), "{message}");
        let message = refusal(&write("mm.py", "import numpy\n", 0o644)).unwrap();
        assert!(message.contains("`cosched run -- python3 /"), "{message}");
        let message = refusal(Path::new("true")).unwrap();
        assert!(message.ends_with("`cosched run -- true`"), "{message}");
        let message = refusal(Path::new("true 'a b' c")).unwrap();
        assert!(message.ends_with("`cosched run -- true 'a b' c`"), "{message}");
        assert_eq!(refusal(Path::new("no-such-command a")), None);
        for other in ["#!/usr/bin/env cosched\n", "[[program]]\n"] {
            assert_eq!(refusal(&write("jobs.toml", other, 0o755)), None, "{other}");
        }
        assert_eq!(refusal(&write("notes", "[[program]]\n", 0o755)), None);
        assert_eq!(refusal(folder.path()), None);
    }

    #[test]
    fn separators_with_a_slip_are_refused() {
        let check = |line: &str| {
            let checked = check_separators(&words(line), Path::new("/tmp"));
            checked.err().map(|failure| failure.text().to_owned())
        };
        for line in ["true :: true", "true 1 :::: true", "true : true"] {
            let refusal = check(line).unwrap();
            assert!(refusal.contains("write ':::'"), "{refusal}");
        }
        for line in ["true :::true", "true::: true", "a.py:::python3"] {
            let refusal = check(line).unwrap();
            assert!(refusal.contains("write blanks around ':::'"), "{refusal}");
        }
        for line in ["true ::: true", "listen :: 8080", "true ::", "a : b"] {
            assert_eq!(check(line), None, "{line}");
        }
    }

    #[test]
    fn separators_for_parallel_are_to_be_quoted() {
        let quoted = "-- sh -c 'parallel echo ::: no-command 2 ::: 3 :::+ 4'`";
        let line = words("parallel echo ::: no-command 2 ::: 3 :::+ 4");
        let here = Path::new("/tmp");
        for refused in [check_separators(&line, here), check_one_program("exec", &line, here)] {
            let refusal = refused.unwrap_err().text().to_owned();
            assert!(refusal.ends_with(quoted), "{refusal}");
        }
        for line in
            [["sh", "-c", "parallel a:::b"], ["perl", "-e", "a:::b"], ["awk", "a:::b c", "d"]]
        {
            let line = line.map(str::to_owned);
            assert!(check_separators(&line, here).is_ok());
            assert!(check_one_program("exec", &line, here).is_ok());
        }
        assert!(check_separators(&words("parallel x ::: true"), here).is_ok(), "two programs");
    }

    #[test]
    fn several_programs_are_refused_where_one_is_started() {
        let check = |line: &str| {
            let checked = check_one_program("exec", &words(line), Path::new("/tmp"));
            checked.err().map(|failure| failure.text().to_owned())
        };
        for line in ["true ::: true", "true :::true", "true::: true", "true :: true"] {
            let refusal = check(line).unwrap();
            assert!(refusal.contains("`cosched exec` starts one program"), "{refusal}");
            assert!(refusal.contains("`cosched run -- true ::: true`"), "{refusal}");
        }
        for line in ["true 1", "listen :: 8080", "true ::", "a : b"] {
            assert_eq!(check(line), None, "{line}");
        }
    }

    #[test]
    fn launchers_are_refused_where_their_processes_run_elsewhere() {
        let check = |line: &str| {
            let workload = Workload::from_commands(vec![words(line)], Path::new("/tmp")).unwrap();
            let checked = check_launcher(&workload.programs[0]);
            checked.err().map(|refusal| refusal.to_string())
        };
        for (line, remedy) in [
            ("srun -n 4 ./a", "`srun --ntasks=1 cosched run"),
            ("/usr/bin/srun ./a", "srun --ntasks=1"),
            ("salloc -n 4 srun ./a", "srun --ntasks=1"),
            ("sbatch job.sh", "script of the job"),
            ("kubectl exec pod -- ./a", "in the container"),
            ("docker run --rm image ./a", "in the container"),
            ("podman run image", "in the container"),
            ("systemd-run --user ./a", "leave out systemd-run"),
        ] {
            let refusal = check(line).unwrap();
            assert!(refusal.starts_with("command line: program 1"), "{refusal}");
            assert!(refusal.contains(remedy), "{line}: {refusal}");
        }
        for line in ["./a", "salloc -n 4 ./a", "docker images", "systemd-run --scope ./a"] {
            assert_eq!(check(line), None, "{line}");
        }
    }
}
