//! Finding the file behind a command, before anything starts.
//!
//! The kernel would say the same when the program is started, but late (others
//! run by then) and without a remedy. The rules are those of `execvp`: a command
//! with a '/' is a path, any other is looked for in the folders of `PATH`.
//! Whether *this* user may execute the file is left to the kernel.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::ProgramSpec;

/// Where `execvp` looks when there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Why a command cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecutableError {
    /// No folder of `PATH` has it.
    #[error("program {program}: command '{command}' was not found in PATH ({}); {}", searched.display(),
        if *here { format!("write ./{command} to run the one in its working directory") }
        else { "install it, or write its path".to_owned() })]
    NotInPath {
        /// The program's name.
        program: String,
        /// The command as written.
        command: String,
        /// The value of `PATH`.
        searched: PathBuf,
        /// Whether the working directory has such a file.
        here: bool,
    },
    /// There is no such file.
    #[error("program {program}: command {} does not exist; correct its path, or build it first", file.display())]
    NoSuchFile {
        /// The program's name.
        program: String,
        /// Where it should be.
        file: PathBuf,
    },
    /// It is a directory, a device or a socket.
    #[error("program {program}: command {} is not a regular file; name an executable file", file.display())]
    NotAFile {
        /// The program's name.
        program: String,
        /// What was found.
        file: PathBuf,
    },
    /// Nobody may execute it.
    #[error("program {program}: command {0} is not executable; run chmod +x {0}, or name its interpreter first", file.display())]
    NotExecutable {
        /// The program's name.
        program: String,
        /// What was found.
        file: PathBuf,
    },
}

impl ProgramSpec {
    /// The file that the command runs, absolute. `inherited_path` is the inherited value of `PATH`;
    /// the program's own `env` goes before it.
    ///
    /// # Errors
    /// When there is no such file, or it is not an executable one.
    pub fn executable(&self, inherited_path: Option<&OsStr>) -> Result<PathBuf, ExecutableError> {
        let program = || self.name.clone();
        let command = self.command[0].as_str();
        if command.contains('/') {
            let file = self.cwd.join(command);
            return match kind(&file) {
                Kind::Executable => Ok(file),
                Kind::Plain => Err(ExecutableError::NotExecutable { program: program(), file }),
                Kind::Other => Err(ExecutableError::NotAFile { program: program(), file }),
                Kind::Missing => Err(ExecutableError::NoSuchFile { program: program(), file }),
            };
        }
        let own = self.env.get("PATH").map(OsString::from);
        let searched = own.or(inherited_path.map(OsStr::to_owned)).unwrap_or(DEFAULT_PATH.into());
        let mut not_executable = None;
        for folder in std::env::split_paths(&searched) {
            let file = self.cwd.join(folder).join(command);
            match kind(&file) {
                Kind::Executable => return Ok(file),
                Kind::Plain => not_executable = not_executable.or(Some(file)),
                Kind::Other | Kind::Missing => {}
            }
        }
        Err(match not_executable {
            Some(file) => ExecutableError::NotExecutable { program: program(), file },
            None => ExecutableError::NotInPath {
                program: program(),
                command: command.to_owned(),
                searched: searched.into(),
                here: kind(&self.cwd.join(command)) == Kind::Executable,
            },
        })
    }
}

/// What stands at a path, seen as a command.
#[derive(PartialEq)]
enum Kind {
    Missing,
    Other,
    Plain,
    Executable,
}

fn kind(file: &Path) -> Kind {
    match file.metadata() {
        Err(_) => Kind::Missing,
        Ok(found) if !found.is_file() => Kind::Other,
        Ok(found) if found.permissions().mode() & 0o111 == 0 => Kind::Plain,
        Ok(_) => Kind::Executable,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use crate::workload::Workload;

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

    fn find(folder: &Path, command: &str, path: &str) -> Result<PathBuf, ExecutableError> {
        let workload = Workload::from_commands(vec![vec![command.to_owned()]], folder).unwrap();
        workload.programs[0].executable(Some(OsStr::new(path)))
    }

    #[test]
    fn a_command_with_a_slash_is_a_path_from_the_working_directory() {
        let folder = folder();
        let here = folder.path();
        assert_eq!(find(here, "./run", "/nowhere").unwrap(), here.join("./run"));
        assert!(matches!(find(here, "./notes", ""), Err(ExecutableError::NotExecutable { .. })));
        assert!(matches!(find(here, "./bin", ""), Err(ExecutableError::NotAFile { .. })));
        assert!(matches!(find(here, "./gone", ""), Err(ExecutableError::NoSuchFile { .. })));
    }

    #[test]
    fn other_commands_are_looked_for_in_path_in_its_order() {
        let folder = folder();
        let here = folder.path();
        assert_eq!(find(here, "run", "/nowhere:bin:.").unwrap(), here.join("bin/run"));
        assert_eq!(find(here, "run", "/nowhere:").unwrap(), here.join("run"));
        assert!(matches!(find(here, "notes", "bin:."), Err(ExecutableError::NotExecutable { .. })));
    }

    #[test]
    fn a_command_that_is_only_in_the_working_directory_is_pointed_out() {
        let folder = folder();
        let message = find(folder.path(), "run", "/nowhere").unwrap_err().to_string();
        assert!(message.contains("'run' was not found in PATH (/nowhere)"), "{message}");
        assert!(message.contains("write ./run"), "{message}");
        let message = find(folder.path(), "gone", "/nowhere").unwrap_err().to_string();
        assert!(message.contains("install it"), "{message}");
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
