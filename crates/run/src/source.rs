//! From what the user named to a workload.

mod mistakes;
mod needs;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use cosched_policy::Kind;
use cosched_workload::input;
use cosched_workload::shell;
use cosched_workload::{Reading, SEPARATOR, Workload, WorkloadError, shown, split_commands};

use crate::session::Session;
use crate::ui::failure::{Failure, current_folder};
pub use mistakes::{check_launcher, check_one_program};
pub use needs::{Needs, Runs, model_on};

/// What to run: a jobs file, or else command lines, or else commands.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The jobs file, or `-` for standard input.
    pub workload: Option<PathBuf>,
    /// Programs, each a line that is split into words as a shell does it.
    pub programs: Vec<String>,
    /// Commands with their arguments, separated by [`SEPARATOR`].
    pub commands: Vec<String>,
}

impl Source {
    /// Whether the jobs file can be read only once: standard input, or what a shell hands over.
    pub fn is_piped(&self) -> bool {
        let is_piped = |path: &PathBuf| path == Path::new("-") || path.starts_with("/dev");
        self.workload.as_ref().is_some_and(is_piped)
    }
}

/// The arguments as text. cosched writes commands into its results and its logs, so they must be
/// text.
///
/// # Errors
/// When an argument is not UTF-8.
pub fn utf8_arguments(arguments: impl Iterator<Item = OsString>) -> Result<Vec<String>, Failure> {
    let text = |(i, argument): (usize, OsString)| {
        argument.into_string().map_err(|argument| {
            let remedy =
                if Path::new(&argument).exists() { "rename the file" } else { "write it in UTF-8" };
            let shown = shown(&argument.to_string_lossy());
            Failure::Input(format!(
                "argument {i} ('{shown}') is not UTF-8; {remedy}, or start the program from a \
                 script"
            ))
        })
    };
    arguments.enumerate().map(text).collect()
}

/// Reads the workload that the command line names, and checks that it can be used like this.
///
/// # Errors
/// When the programs cannot be read, or have mistakes: all of these.
pub fn workload(source: &Source, needs: Needs<'_>) -> Result<Workload, Failure> {
    let here = current_folder()?;
    let reading = match (&source.workload, source.programs.is_empty(), source.commands.is_empty()) {
        (Some(path), ..) => match load(path, &here) {
            Err(error) => {
                return Err(mistakes::program(path, &here).unwrap_or(Failure::input(error)));
            }
            loaded => loaded,
        },
        (None, false, _) => Reading::of_command_lines(source.programs.clone(), &here),
        (None, true, false) => {
            mistakes::check_separators(&source.commands, &here)?;
            Reading::of_commands(split_commands(&source.commands, SEPARATOR), &here)
        }
        (None, true, true) => {
            return Err(Failure::Input(
                "nothing to run; name a jobs file, or commands after all options: `-- CMD ARGS \
                 ::: CMD ARGS`"
                    .to_owned(),
            ));
        }
    };
    needs.checked(reading.map_err(Failure::input)?)
}

/// The same, with so many threads for each program that stands on the command line.
///
/// # Errors
/// When the programs are in a file, where each has its own number.
pub fn with_threads(
    source: &Source,
    threads: Option<u16>,
    needs: Needs<'_>,
) -> Result<Workload, Failure> {
    if threads.is_some() && source.workload.is_some() {
        return Err(Failure::Input(
            "--threads is for programs on the command line: leave it out, and write `threads = N` \
             below each [[program]] of the jobs file"
                .to_owned(),
        ));
    }
    let mut workload = workload(source, needs)?;
    for spec in workload.programs.iter_mut().filter(|_| threads.is_some()) {
        spec.threads = threads;
    }
    Ok(workload)
}

/// Reads the jobs file that is to be simulated on this machine.
///
/// # Errors
/// When the programs cannot be read, or have mistakes: all of these.
pub fn simulated(file: Option<&Path>, machine: &Session) -> Result<Workload, Failure> {
    let file = file.ok_or_else(|| {
        Failure::Input(
            "nothing to simulate; name a recorded run: `cosched sim --from RUN`, or a jobs file \
             with a [program.model] for each program: `cosched sim jobs.toml --machine opteron-64`"
                .to_owned(),
        )
    })?;
    Needs::Models(machine).checked(load(file, &current_folder()?).map_err(Failure::input)?)
}

/// A file's programs start in its folder. Standard input has none, nor has what a shell hands over
/// as `/dev/fd/63`: their programs start here.
fn load(path: &Path, here: &Path) -> Result<Reading, WorkloadError> {
    if path == Path::new("-") || path == Path::new("/dev/stdin") {
        return Reading::read(io::stdin().lock(), Path::new(input::STANDARD_INPUT), here);
    }
    if path.starts_with("/dev") {
        let file = input::open(path)
            .map_err(|source| WorkloadError::Unreadable { file: path.to_owned(), source })?;
        return Reading::read(file, path, here);
    }
    Reading::load(path)
}

/// The command that compares this policy with what users do without it, for the same programs and
/// with these options, to be pasted into a shell.
pub fn compare_command(
    source: &Source,
    policy: Kind,
    threads: Option<u16>,
    options: &[String],
) -> String {
    let mut words = vec!["cosched".to_owned(), "compare".to_owned()];
    words.extend(threads.iter().flat_map(|n| ["--threads".to_owned(), n.to_string()]));
    if ![Kind::default(), Kind::Linux, Kind::Fcfs].contains(&policy) {
        words.extend(["--policies".to_owned(), format!("linux,fcfs,{policy}")]);
    }
    words.extend_from_slice(options);
    words.extend(source.workload.iter().map(|path| path.to_string_lossy().into_owned()));
    words.extend(source.programs.iter().flat_map(|line| ["--prog".to_owned(), line.clone()]));
    if !source.commands.is_empty() {
        words.push("--".to_owned());
        words.extend(source.commands.iter().cloned());
    }
    shell::join(words)
}
