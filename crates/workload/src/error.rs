//! What can be wrong with a workload, where, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::barrier::BarrierMode;
use super::found::Found;
use super::shown::{escaped, shown, shown_path};
use super::spec::{LONGEST_WORD, MAX_BYTES, MAX_PROGRAMS, WEIGHTS};
use crate::input::is_loop;

/// Why a workload was refused. Nothing has been started.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and fields mean")]
pub enum WorkloadError {
    #[error("{}: is a folder, not a jobs file; name the file{}", shown_path(file), match inside {
        Some(inside) => format!(", such as {}", shown_path(inside)),
        None => " itself, such as jobs.toml".to_owned(),
    })]
    Folder {
        file: PathBuf,
        /// A file in it that may be meant.
        inside: Option<PathBuf>,
    },
    #[error(
        "{}: is a loop of symbolic links and leads to no file; correct the links, or name the \
         file itself",
        shown_path(file)
    )]
    Loop {
        /// The first of the links, or a path through one.
        file: PathBuf,
    },
    #[error("{}: cannot be read: {source}; {}", shown_path(file), match is_pipe(file) {
        true => "to read from it, write `- <FILE` in its place, so that the shell opens it",
        false => "check the path and its permissions",
    })]
    Unreadable { file: PathBuf, source: io::Error },
    #[error(
        "{}: is larger than {} MiB, so it is no jobs file; check the path",
        shown_path(file),
        MAX_BYTES >> 20
    )]
    TooLarge { file: PathBuf },
    #[error("{}:{line}: is not UTF-8 text; save the file as UTF-8", shown_path(file))]
    NotUtf8 {
        file: PathBuf,
        /// The line with the first bad byte, from 1.
        line: usize,
    },
    #[error("{place}: not valid TOML: {}", escaped(message))]
    Syntax { place: Place, message: String },
    #[error(
        "{place}: no program to run; name at least one: a line [[program]], and below it a line \
         command = \"./cg --work 4\" (`cosched run --help` lists the keys)"
    )]
    Empty { place: Place },
    #[error("{place}: {count} programs; at most {MAX_PROGRAMS} can run in one workload")]
    TooMany { place: Place, count: usize },
    #[error("{place}: {} {problem}", shown(key))]
    Invalid { place: Place, key: Cow<'static, str>, problem: Box<Problem> },
    #[error("{place}: {what}")]
    Unusable { place: Place, what: String },
    /// More than one mistake, in the order of the file.
    #[error("{}{} errors; nothing was started", lines(.0), .0.len())]
    Several(Vec<WorkloadError>),
}

impl WorkloadError {
    /// Where in the file the mistake is.
    pub(super) fn position(&self) -> Option<Position> {
        match self {
            WorkloadError::Invalid { place, .. } | WorkloadError::Unusable { place, .. } => {
                place.position
            }
            _ => None,
        }
    }

    /// The error of a file that could not be read.
    pub(super) fn unreadable(path: &Path, source: io::Error) -> WorkloadError {
        let file = path.to_owned();
        match source.kind() {
            io::ErrorKind::IsADirectory => WorkloadError::Folder { inside: inside(path), file },
            _ if is_loop(&source) => WorkloadError::Loop { file },
            _ => WorkloadError::Unreadable { file, source },
        }
    }
}

fn lines(mistakes: &[WorkloadError]) -> String {
    mistakes.iter().map(|mistake| format!("{mistake}\n")).collect()
}

fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

/// The first file in a folder that may be a jobs file.
fn inside(folder: &Path) -> Option<PathBuf> {
    let entries = folder.read_dir().ok()?.flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).min()
}

/// What can be wrong with a key; each message starts as a predicate of its key and ends with the
/// remedy.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and fields mean")]
pub enum Problem {
    #[error("is not a known key; {}", match nearest {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("the keys are {}", known.join(", ")),
    })]
    UnknownKey { nearest: Option<&'static str>, known: Vec<&'static str> },
    #[error("is a key of a program; write [[program]] in a line above it")]
    NoProgram,
    #[error("is no key of a program, but the option --{option} of the command line")]
    Option { option: &'static str },
    #[error("must be {expected}, but {found}")]
    WrongType { expected: &'static str, found: Found },
    #[error("is missing; say what to run, such as command = \"./cg --work 4\"")]
    Missing,
    #[error("is empty; name a program to run")]
    EmptyCommand,
    #[error(
        "cannot be split into words: '{}' has an unclosed quote; close it, or write the words as \
         an array",
        shown(line)
    )]
    UnclosedQuote { line: String },
    #[error(
        "has '{0}', but no shell runs it; write [\"sh\", \"-c\", \"...\"] to use one (after --: \
         sh -c '...'), or put the {0} in quotes"
    )]
    ShellOperator(String),
    #[error("has a NUL character, which no argument, variable or path can hold; take it out")]
    HasNul,
    #[error(
        "holds a word of {0} bytes, but the kernel accepts at most {LONGEST_WORD}; write it to a \
         file, and pass the file"
    )]
    TooLong(usize),
    #[error("is {0}, but must be from 1 to 65535; leave the key out to let the program choose")]
    Threads(i64),
    #[error(
        "is {:?}, but must be from {} to {}; leave the key out for an equal share",
        .0,
        WEIGHTS.start(),
        WEIGHTS.end()
    )]
    Weight(f64),
    #[error(
        "is {0}, but must be a finite number, 0 or above; leave the key out if it is not known"
    )]
    Amount(f64),
    #[error(
        "is {0}, but must be a share from 0 to 1, such as 0.3; leave the key out if it is not known"
    )]
    Share(f64),
    #[error(
        "is {0}, but must be from 1 to 4294967295, or \"until-all-finish\"; leave the key out to \
         run once"
    )]
    RepeatCount(i64),
    #[error("is '{}', but must be a number of runs, or \"until-all-finish\"", shown(.0))]
    RepeatRule(String),
    #[error(
        "is '{}', which is not a time; write a number with a unit, such as \"0s\", \
         \"100ms\" or \"1m 30s\"",
        shown(.0)
    )]
    Duration(String),
    #[error("is '{}', more than a year away; give an earlier time", shown(.0))]
    TooLate(String),
    #[error(
        "'{}' is also the name of program {}; names must be unique, so give one of them another",
        shown(.0),
        .1
    )]
    DuplicateName(String, usize),
    #[error(
        "\"{}\" cannot be a file name, as a program's name must; use 1 to 200 bytes without '/' \
         or control characters, and neither '.' nor '..'",
        shown(.0)
    )]
    NotAFileName(String),
    #[error("has \"{}\", which cannot name a variable; use a name without '='", shown(.0))]
    VariableName(String),
    #[error(
        "is {}, which is not an existing directory; create it or correct the path",
        shown_path(.0)
    )]
    NoDirectory(PathBuf),
    #[error(
        "is {}, a loop of symbolic links that leads to no directory; correct the links, or name \
         the directory itself",
        shown_path(.0)
    )]
    LoopedDirectory(PathBuf),
    #[error(
        "is {}: permission denied for this user; ask for the right to enter it, or name another \
         directory",
        shown_path(.0)
    )]
    ClosedDirectory(PathBuf),
    #[error("has '{}', which only a shell replaces; write the path out", shown(.0))]
    ShellPath(String),
    #[error("is empty; name a file, or leave the key out")]
    EmptyPath,
    #[error("is empty; name a directory, or leave the key out for that of the file")]
    EmptyDirectory,
    #[error("is {}, which names a folder; name a file in it", shown_path(.0))]
    NamesAFolder(PathBuf),
    #[error("is empty; name a group, or leave the key out to let cosched find it")]
    EmptyGroup,
    #[error(
        "has an element that is no program; write its name, or \
         {{ program = \"NAME\", exit = \"any\" }}"
    )]
    AfterElement,
    #[error("has exit = {}, but can have 0, which is the default, or \"any\"", shown(.0))]
    AfterExit(String),
    #[error("names '{}', which is no program of this file; {}", shown(program), match nearest {
        Some(nearest) => format!("did you mean '{}'?", shown(nearest)),
        None => "write the `name` of one that must end first".to_owned(),
    })]
    AfterUnknown { program: String, nearest: Option<String> },
    #[error("names the program itself, which would never start; take it out")]
    AfterItself,
    #[error("names '{}' twice; take one of them out", shown(.0))]
    AfterTwice(String),
    #[error(
        "names '{}', which is repeated until all others have ended, so that neither would end; \
         give that a number for `repeat`",
        shown(.0)
    )]
    AfterEndless(String),
    #[error(
        "makes a cycle, in which no program would ever start ({0}); take one of these names out"
    )]
    AfterCycle(String),
    #[error("is '{}', but must be one of {}; leave the key out for the program's own barriers",
        shown(.0), BarrierMode::ALL.map(BarrierMode::name).join(", "))]
    Barrier(String),
}

/// A place in a file or on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The jobs file; `None` for the command line.
    pub file: Option<PathBuf>,
    /// Where in the file.
    pub position: Option<Position>,
    /// The program's number in the workload, from 1, and its name if it was given one.
    pub program: Option<(usize, Option<String>)>,
}

/// A position in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => f.write_str(&shown_path(file))?,
            None => f.write_str("command line")?,
        }
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        match &self.program {
            Some((number, Some(name))) => write!(f, ": program {number} ({})", shown(name)),
            Some((number, None)) => write!(f, ": program {number}"),
            None => Ok(()),
        }
    }
}

/// Where a workload comes from: turns byte ranges into places.
pub(super) enum WorkloadOrigin<'a> {
    /// A file and its text.
    File {
        /// The path as the user gave it.
        path: &'a Path,
        /// What is in it.
        text: &'a str,
        /// Where its lines begin, in bytes: thousands of programs are looked up.
        lines: Vec<usize>,
    },
    /// The command line, which has no positions.
    CommandLine,
}

impl<'a> WorkloadOrigin<'a> {
    pub(super) fn file(path: &'a Path, text: &'a str) -> WorkloadOrigin<'a> {
        let lines = text.match_indices('\n').map(|(newline, _)| newline + 1);
        WorkloadOrigin::File { path, text, lines: [0].into_iter().chain(lines).collect() }
    }

    /// The file or the command line as a whole.
    pub(super) fn whole(&self) -> Place {
        let file = match self {
            WorkloadOrigin::File { path, .. } => Some((*path).to_owned()),
            WorkloadOrigin::CommandLine => None,
        };
        Place { file, position: None, program: None }
    }

    /// The place where a range of bytes begins.
    pub(super) fn at(&self, bytes: &Range<usize>) -> Place {
        let position = match self {
            WorkloadOrigin::File { text, lines, .. } => {
                let line = lines.partition_point(|start| *start <= bytes.start);
                let before = lines[line - 1]..bytes.start;
                let column = 1 + text.get(before).map_or(0, |before| before.chars().count());
                Some(Position { line, column })
            }
            WorkloadOrigin::CommandLine => None,
        };
        Place { position, ..self.whole() }
    }

    /// What is wrong with a key, of this program where it is one of a program.
    pub(super) fn invalid(
        &self,
        bytes: &Range<usize>,
        program: Option<(usize, Option<String>)>,
        key: impl Into<Cow<'static, str>>,
        problem: Problem,
    ) -> WorkloadError {
        let place = Place { program, ..self.at(bytes) };
        WorkloadError::Invalid { place, key: key.into(), problem: Box::new(problem) }
    }
}
