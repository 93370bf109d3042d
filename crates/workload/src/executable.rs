//! Finding the file behind a command, before anything starts.
//!
//! The kernel would say the same when the program is started, but late (others
//! run by then) and without a remedy. The rules are those of `execvp`: a command
//! with a '/' is a path, any other is looked for in the folders of `PATH`.
//! Whether *this* user may execute the file is left to the kernel.
//! What the file needs besides, its [interpreter](super::interpreter), must be there too.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cosched_core::Nanos;

use super::error::Place;
use super::interpreter::{self, RequiredFile};
use super::script;
use super::shown::{shown, shown_path};
use super::spec::ProgramSpec;
use crate::input::is_loop;

/// Where `execvp` looks when there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The interpreter of a script may be a script, and so on: the kernel runs up to this many.
const MOST_SCRIPTS: usize = 5;

/// A command that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: command {problem}")]
pub struct ExecutableError {
    /// Where it stands.
    pub place: Box<Place>,
    /// Why it cannot.
    pub problem: CommandProblem,
}

/// Why a command cannot be run; each message begins with the command and ends with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and fields mean")]
pub enum CommandProblem {
    #[error("'{}' was not found in PATH; {} (PATH is {})", shown(command),
        if *here { format!("write ./{} to run the one in its working directory", shown(command)) }
        else { "install it, or write its path".to_owned() }, shown_path(searched))]
    NotInPath {
        command: String,
        searched: PathBuf,
        /// Whether the working directory has such a file.
        here: bool,
    },
    #[error(
        "'{}' is one word with a blank in it, and no program has that name; {}",
        shown(command),
        if *in_file { "write it without inner quotes, or as an array with one word per element" }
        else { "leave out the quotes around it (`cosched run` also takes it quoted, after --prog)" }
    )]
    OneWord {
        command: String,
        /// Whether it stands in a file, and not on the command line.
        in_file: bool,
    },
    #[error(
        "'{word}' sets a variable, and no program has that name; write `env {word} ...`, or use \
         the key `env` of a jobs file",
        word = shown(.0)
    )]
    Variable(String),
    #[error("{} does not exist; correct its path, or build it first", shown_path(file))]
    NoSuchFile { file: PathBuf },
    #[error(
        "runs {}, which does not exist; correct its path, or its folder (cwd)",
        shown_path(file)
    )]
    NoScript { file: PathBuf },
    #[error(
        "{} is a symbolic link to {}, which does not exist; correct the link, or build that first",
        shown_path(file),
        shown_path(target)
    )]
    LeadsNowhere { file: PathBuf, target: PathBuf },
    #[error(
        "{} is a loop of symbolic links and leads to no file; correct the links, or name the file \
         itself",
        shown_path(file)
    )]
    Loop {
        /// The first of the links, or a path through one.
        file: PathBuf,
    },
    #[error(
        "{}: permission denied for this user; ask for the right to enter its folder, or use a copy",
        shown_path(file)
    )]
    Denied { file: PathBuf },
    #[error(
        "'{}' was not found in PATH; install it, or write its path (PATH is {}; this user may not \
         enter {})",
        shown(command),
        shown_path(searched),
        shown_path(closed)
    )]
    NotInOpenPath { command: String, searched: PathBuf, closed: PathBuf },
    #[error("{} is not a regular file; name an executable file", shown_path(file))]
    NotAFile { file: PathBuf },
    #[error(
        "{0} is not executable; run chmod +x {0}, or name its interpreter first",
        shown_path(file)
    )]
    NotExecutable { file: PathBuf },
    #[error(
        "{} is a script for {}, which {why}; install that, or correct the first line of the script",
        shown_path(file),
        shown_path(interpreter)
    )]
    NoInterpreter { file: PathBuf, interpreter: PathBuf, why: &'static str },
    #[error(
        "{} is a script for another script, and so on, further than the kernel follows; correct \
         the first line of one of them",
        shown_path(file)
    )]
    TooManyScripts { file: PathBuf },
    #[error(
        "{} needs the loader {}, which {why}; install the libraries that it was built for, or \
         build it here",
        shown_path(file),
        shown_path(loader)
    )]
    NoLoader { file: PathBuf, loader: PathBuf, why: &'static str },
}

impl ProgramSpec {
    /// The file that the command runs, absolute. `inherited_path` is the inherited value of `PATH`;
    /// the program's own `env` goes before it.
    ///
    /// # Errors
    /// When there is no such file, it is not an executable one, or its interpreter is missing.
    pub fn executable(&self, inherited_path: Option<&OsStr>) -> Result<PathBuf, ExecutableError> {
        self.find(inherited_path).and_then(|file| self.check_needs(&file).map(|()| file)).map_err(
            |problem| ExecutableError { place: Box::new(self.places.command.clone()), problem },
        )
    }

    /// Checks that the file is there that the command's interpreter is to run. Another program may
    /// still make it if this one starts later.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn check_script(&self) -> Result<(), ExecutableError> {
        let file = script::file(&self.command).map(|file| self.cwd.join(file));
        let starts_first = self.after.is_empty() && self.start == Nanos::ZERO;
        match file.filter(|file| starts_first && kind(file) == CommandKind::Missing) {
            None => Ok(()),
            Some(file) => Err(ExecutableError {
                place: Box::new(self.places.command.clone()),
                problem: CommandProblem::NoScript { file },
            }),
        }
    }

    /// Whether the program that the kernel runs for a file is statically linked: no library can be
    /// preloaded into it.
    pub fn is_static(&self, file: &Path) -> bool {
        interpreter::needs(&self.program_of(file)) == Some(RequiredFile::Nothing)
    }

    /// The program that the kernel runs for a file: of a script its interpreter, else the file
    /// itself.
    pub fn program_of(&self, file: &Path) -> PathBuf {
        let mut file = file.to_owned();
        for _ in 0..MOST_SCRIPTS {
            let Some(RequiredFile::Interpreter(named)) = interpreter::needs(&file) else { break };
            file = self.cwd.join(named);
        }
        file
    }

    fn find(&self, inherited_path: Option<&OsStr>) -> Result<PathBuf, CommandProblem> {
        let command = self.command[0].as_str();
        if command.contains('/') {
            let file = self.cwd.join(command);
            return match kind(&file) {
                CommandKind::Executable => Ok(file),
                CommandKind::Plain => Err(CommandProblem::NotExecutable { file }),
                CommandKind::Other => Err(CommandProblem::NotAFile { file }),
                CommandKind::Missing => Err(match file.read_link() {
                    Ok(target) => CommandProblem::LeadsNowhere { file, target },
                    Err(_) => self.misread().unwrap_or(CommandProblem::NoSuchFile { file }),
                }),
                CommandKind::Loop => Err(CommandProblem::Loop { file }),
                CommandKind::Denied => Err(CommandProblem::Denied { file }),
            };
        }
        let own = self.env.get("PATH").map(OsString::from);
        let searched = own.or(inherited_path.map(OsStr::to_owned)).unwrap_or(DEFAULT_PATH.into());
        let (mut not_executable, mut denied, mut looped, mut closed) = (None, None, None, None);
        for folder in std::env::split_paths(&searched) {
            let folder = self.cwd.join(folder);
            let file = folder.join(command);
            match kind(&file) {
                CommandKind::Executable => return Ok(file),
                CommandKind::Plain => not_executable = not_executable.or(Some(file)),
                CommandKind::Denied if file.symlink_metadata().is_ok() => {
                    denied = denied.or(Some(file));
                }
                // Whether it is there is unknown.
                CommandKind::Denied => closed = closed.or(Some(folder)),
                CommandKind::Loop => looped = looped.or(Some(file)),
                CommandKind::Other | CommandKind::Missing => {}
            }
        }
        let here = kind(&self.cwd.join(command)) == CommandKind::Executable;
        let misread = || self.misread().filter(|_| !here);
        Err(match (not_executable, denied, looped) {
            (Some(file), ..) => CommandProblem::NotExecutable { file },
            (None, Some(file), _) => CommandProblem::Denied { file },
            (None, None, Some(file)) => CommandProblem::Loop { file },
            (None, None, None) => misread().unwrap_or_else(|| match closed.filter(|_| !here) {
                Some(closed) => CommandProblem::NotInOpenPath {
                    command: command.to_owned(),
                    searched: searched.into(),
                    closed,
                },
                None => CommandProblem::NotInPath {
                    command: command.to_owned(),
                    searched: searched.into(),
                    here,
                },
            }),
        })
    }

    /// What is wrong with a command that does not exist, if its first word is a whole line or a
    /// variable.
    fn misread(&self) -> Option<CommandProblem> {
        let command = self.command[0].clone();
        if command.contains(char::is_whitespace) {
            let in_file = self.places.command.file.is_some();
            return Some(CommandProblem::OneWord { command, in_file });
        }
        let name = command.split_once('=')?.0;
        let is_name = name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        is_name.then_some(CommandProblem::Variable(command))
    }

    /// Whether what the file needs in order to run can be run itself.
    fn check_needs(&self, file: &Path) -> Result<(), CommandProblem> {
        let mut needing = file.to_owned();
        for _ in 0..MOST_SCRIPTS {
            let Some(needs) = interpreter::needs(&needing) else { break };
            let (named, is_loader) = match needs {
                RequiredFile::Interpreter(named) => (named, false),
                RequiredFile::Loader(named) => (named, true),
                RequiredFile::Nothing => break,
            };
            let needed = self.cwd.join(&named);
            let why = match kind(&needed) {
                CommandKind::Executable => {
                    needing = needed;
                    continue;
                }
                CommandKind::Missing => "does not exist",
                CommandKind::Loop => "is a loop of symbolic links",
                CommandKind::Denied => "this user may not look at",
                CommandKind::Other => "is not a regular file",
                CommandKind::Plain => "is not executable",
            };
            return Err(match is_loader {
                true => CommandProblem::NoLoader { file: needing, loader: named, why },
                false => CommandProblem::NoInterpreter { file: needing, interpreter: named, why },
            });
        }
        match interpreter::needs(&needing) {
            Some(RequiredFile::Interpreter(_)) => {
                Err(CommandProblem::TooManyScripts { file: file.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// What stands at a path, seen as a command.
#[derive(PartialEq)]
enum CommandKind {
    Missing,
    Loop,
    Denied,
    Other,
    Plain,
    Executable,
}

fn kind(file: &Path) -> CommandKind {
    match file.metadata() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => CommandKind::Denied,
        Err(error) if is_loop(&error) => CommandKind::Loop,
        Err(_) => CommandKind::Missing,
        Ok(found) if !found.is_file() => CommandKind::Other,
        Ok(found) if found.permissions().mode() & 0o111 == 0 => CommandKind::Plain,
        Ok(_) => CommandKind::Executable,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::symlink;

    use crate::Workload;

    use super::*;

    /// A folder with an executable `run`, a plain `notes` and a folder `bin` with another `run`.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        for (name, mode) in [("run", 0o755), ("notes", 0o644), ("bin/run", 0o755)] {
            let file = folder.path().join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        folder
    }

    fn find(folder: &Path, command: &str, path: &str) -> Result<PathBuf, CommandProblem> {
        let workload = Workload::from_commands(vec![vec![command.to_owned()]], folder).unwrap();
        workload.programs[0].executable(Some(OsStr::new(path))).map_err(|error| error.problem)
    }

    #[test]
    fn a_command_with_a_slash_is_a_path_from_the_working_directory() {
        let folder = folder();
        let here = folder.path();
        assert_eq!(find(here, "./run", "/nowhere").unwrap(), here.join("./run"));
        assert!(matches!(find(here, "./notes", ""), Err(CommandProblem::NotExecutable { .. })));
        assert!(matches!(find(here, "./bin", ""), Err(CommandProblem::NotAFile { .. })));
        assert!(matches!(find(here, "./gone", ""), Err(CommandProblem::NoSuchFile { .. })));
    }

    #[test]
    fn a_script_that_no_other_program_can_make_must_be_there() {
        let folder = folder();
        let check = |keys: &str| {
            let text = format!("[[program]]\ncommand = ['python3', 'gone.py']\n{keys}");
            let more = "\n[[program]]\ncommand = ['true']\nname = 'first'";
            let workload = Workload::parse(&(text + more), &folder.path().join("jobs.toml"));
            workload.unwrap().programs[0].check_script().map_err(|error| error.to_string())
        };
        let refusal = check("").unwrap_err();
        assert!(refusal.contains("gone.py, which does not exist; correct its path"), "{refusal}");
        assert_eq!(check("after = ['first']"), Ok(()));
        assert_eq!(check("start = '1s'"), Ok(()));
        fs::write(folder.path().join("gone.py"), "").unwrap();
        assert_eq!(check(""), Ok(()));
    }

    #[test]
    fn a_link_that_leads_to_no_file_is_called_what_it_is() {
        let folder = folder();
        let here = folder.path();
        symlink("gone", here.join("dangling")).unwrap();
        symlink("pong", here.join("ping")).unwrap();
        symlink("ping", here.join("pong")).unwrap();
        let error_of = |command: &str| find(here, command, "").unwrap_err().to_string();
        assert!(
            error_of("./ping").contains("ping is a loop of symbolic links"),
            "{}",
            error_of("./ping")
        );
        assert!(error_of("./pong/run").contains("is a loop of symbolic links"));
        let in_path = find(here, "ping", "/nowhere:.").unwrap_err().to_string();
        assert!(in_path.contains("ping is a loop of symbolic links"), "{in_path}");
        let dangling = error_of("./dangling");
        assert!(
            dangling.contains("is a symbolic link to gone, which does not exist"),
            "{dangling}"
        );
        fs::write(here.join("run"), format!("#!{}\n", here.join("ping").display())).unwrap();
        assert!(
            error_of("./run").contains("ping, which is a loop of symbolic links"),
            "{}",
            error_of("./run")
        );
    }

    #[test]
    fn a_command_line_in_one_word_is_named_with_its_remedy() {
        let folder = folder();
        for command in ["sleep 0.1", "./run 3", "/bin/true -x"] {
            let refusal = find(folder.path(), command, "/bin").unwrap_err().to_string();
            let expected = format!("'{command}' is one word with a blank in it");
            assert!(refusal.starts_with(&expected), "{refusal}");
            assert!(refusal.contains("leave out the quotes") && refusal.contains("--prog"));
        }
        let refusal = find(folder.path(), "FOO=a/b", "/bin").unwrap_err().to_string();
        assert!(refusal.contains("write `env FOO=a/b ...`"), "{refusal}");
        let text = "[[program]]\ncommand = ['sleep 0.1']";
        let workload = Workload::parse(text, &folder.path().join("jobs.toml")).unwrap();
        let refusal = workload.programs[0].executable(None).unwrap_err().to_string();
        assert!(refusal.contains("an array with one word per element"), "{refusal}");
        fs::copy(folder.path().join("run"), folder.path().join("my run")).unwrap();
        let refusal = find(folder.path(), "my run", "/bin").unwrap_err().to_string();
        assert!(refusal.contains("write ./my run"), "a file may have a blank: {refusal}");
        assert!(find(folder.path(), "./my run", "/bin").is_ok());
    }

    #[test]
    fn other_commands_are_looked_for_in_path_in_its_order() {
        let folder = folder();
        let here = folder.path();
        assert_eq!(find(here, "run", "/nowhere:bin:.").unwrap(), here.join("bin/run"));
        assert_eq!(find(here, "run", "/nowhere:").unwrap(), here.join("run"));
        assert!(matches!(find(here, "notes", "bin:."), Err(CommandProblem::NotExecutable { .. })));
    }

    #[test]
    fn commands_only_in_the_working_directory_are_pointed_out() {
        let folder = folder();
        let message = find(folder.path(), "run", "/nowhere").unwrap_err().to_string();
        assert!(message.contains("'run' was not found in PATH; write ./run"), "{message}");
        assert!(message.ends_with("(PATH is /nowhere)"), "{message}");
        let message = find(folder.path(), "gone", "/nowhere").unwrap_err().to_string();
        assert!(message.contains("install it"), "{message}");
    }

    #[test]
    fn unusable_interpreters_of_scripts_are_named() {
        let folder = folder();
        let script = |first_line: &str| {
            fs::write(folder.path().join("run"), first_line).unwrap();
            find(folder.path(), "./run", "").map_err(|error| error.to_string())
        };
        for (line, expected) in [
            ("#!/no/interp\n", "/run is a script for /no/interp, which does not exist"),
            ("#!/etc/passwd -x\n", "/etc/passwd, which is not executable"),
            ("#!/bin/sh\r\n", "/bin/sh\\r, which does not exist"),
            ("#!bin/run\n", ""),
            ("#!run\n", "further than the kernel follows"),
        ] {
            match script(line) {
                Ok(_) => assert_eq!(expected, "", "{line:?}"),
                Err(refusal) => {
                    assert!(!expected.is_empty() && refusal.contains(expected), "{refusal}")
                }
            }
        }
        fs::write(folder.path().join("bin/run"), "#!/no/interp").unwrap();
        let refusal = script("#!bin/run").unwrap_err();
        assert!(refusal.contains("bin/run is a script for /no/interp"), "{refusal}");
        fs::write(folder.path().join("bin/run"), "#!/bin/sh\n").unwrap();
        for number in 1..=5 {
            let (before, next) = (format!("bin/run{number}"), format!("bin/run{}", number + 1));
            fs::copy(folder.path().join("bin/run"), folder.path().join(&next)).unwrap();
            let before = if number == 1 { "bin/run" } else { &before };
            fs::write(folder.path().join(next), format!("#!{before}\n")).unwrap();
        }
        let found = |name| find(folder.path(), name, "").map(drop).map_err(|e| e.to_string());
        assert_eq!(found("bin/run5"), Ok(()));
        assert!(found("bin/run6").unwrap_err().contains("bin/run6 is a script for another"), "six");
    }

    #[test]
    fn a_scripts_program_is_its_last_interpreter() {
        let folder = folder();
        let here = folder.path();
        let workload = Workload::from_commands(vec![vec!["run".to_owned()]], here).unwrap();
        let program_of = |name: &str| workload.programs[0].program_of(&here.join(name));
        assert_eq!(program_of("notes"), here.join("notes"));
        fs::write(here.join("run"), "#!bin/run -x\n").unwrap();
        assert_eq!(program_of("run"), here.join("bin/run"));
        fs::write(here.join("bin/run"), "#!/bin/sh\n").unwrap();
        assert_eq!(program_of("run"), Path::new("/bin/sh"));
    }

    #[test]
    fn errors_name_the_file_the_line_and_the_program() {
        let folder = folder();
        let file = folder.path().join("jobs.toml");
        let text = "[[program]]\ncommand = './gone'\n[[program]]\nname = 'x'\ncommand = './gone'";
        let workload = Workload::parse(text, &file).unwrap();
        for (program, place) in workload
            .programs
            .iter()
            .zip([":2:11: program 1 (gone): command ", ":5:11: program 2 (x): command "])
        {
            let refusal = program.executable(None).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("{}{place}", file.display())), "{refusal}");
        }
    }

    #[test]
    fn the_programs_own_path_goes_before_the_inherited_one() {
        let folder = folder();
        let text = "[[program]]\ncommand = 'run'\nenv = { PATH = 'bin' }";
        let workload = Workload::parse(text, &folder.path().join("jobs.toml")).unwrap();
        let found = workload.programs[0].executable(Some(OsStr::new("/nowhere")));
        assert_eq!(found.unwrap(), folder.path().join("bin/run"));
    }
}
