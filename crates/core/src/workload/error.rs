//! What can be wrong with a workload, where, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::MAX_PROGRAMS;
use super::check::WEIGHTS;

/// Why a workload was refused. Nothing has been started.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}; check the path and its permissions", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not text.
    #[error("{}:{line}: is not UTF-8 text; save the file as UTF-8", file.display())]
    NotUtf8 {
        /// The file.
        file: PathBuf,
        /// The line with the first bad byte, from 1.
        line: usize,
    },
    /// The file is not TOML.
    #[error("{place}: not valid TOML: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the TOML parser said.
        message: String,
    },
    /// There is nothing to run.
    #[error("{place}: no program to run; name at least one")]
    Empty {
        /// Where.
        place: Place,
    },
    /// There is too much to run.
    #[error("{place}: {count} programs; at most {MAX_PROGRAMS} can run in one workload")]
    TooMany {
        /// Where.
        place: Place,
        /// How many there are.
        count: usize,
    },
    /// A key is not known, or has a value that cannot be.
    #[error("{place}: {key} {problem}")]
    Invalid {
        /// Where.
        place: Place,
        /// The key.
        key: Cow<'static, str>,
        /// What is wrong, and the remedy.
        problem: Box<Problem>,
    },
}

/// What can be wrong with a key; each message starts as a predicate of its key and ends with the remedy.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and fields mean")]
pub enum Problem {
    #[error("is not a known key; {}", match nearest {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("the keys are {}", known.join(", ")),
    })]
    UnknownKey { nearest: Option<&'static str>, known: Vec<&'static str> },
    #[error("must be {expected}, but is of type {found}")]
    WrongType { expected: &'static str, found: &'static str },
    #[error("is missing; say what to run, such as command = \"./cg --work 4\"")]
    Missing,
    #[error("is empty; name a program to run")]
    EmptyCommand,
    #[error(
        "cannot be split into words: '{line}' has an unclosed quote; close it, or write the words as an array"
    )]
    UnclosedQuote { line: String },
    #[error("has a NUL character, which no argument, variable or path can hold; take it out")]
    HasNul,
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
    Misses(f64),
    #[error(
        "is {0}, but must be from 1 to 4294967295, or \"until-all-finish\"; leave the key out to run once"
    )]
    RepeatCount(i64),
    #[error("is '{0}', but must be a number of runs, or \"until-all-finish\"")]
    RepeatRule(String),
    #[error(
        "is '{text}', which is not a time ({why}); write one such as \"0s\", \"100ms\" or \"1m 30s\""
    )]
    Duration { text: String, why: humantime::DurationError },
    #[error("is '{0}', more than a year away; give an earlier time")]
    TooLate(String),
    #[error("'{0}' is also the name of program {1}; names must be unique")]
    DuplicateName(String, usize),
    #[error(
        "{0:?} cannot be a file name, as a program's name must; use 1 to 200 bytes without '/' or control characters, and neither '.' nor '..'"
    )]
    NotAFileName(String),
    #[error("has {0:?}, which cannot name a variable; use a name without '='")]
    VariableName(String),
    #[error("is {}, which is not an existing directory; create it or correct the path", .0.display())]
    NoDirectory(PathBuf),
    #[error("is empty; name a group, or leave the key out to have it found out")]
    EmptyGroup,
}

/// A place in a file or on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The workload file; `None` for the command line.
    pub file: Option<PathBuf>,
    /// Where in the file.
    pub position: Option<Position>,
    /// The program's number in the workload, from 1, and its name if it was given one.
    pub program: Option<(usize, Option<String>)>,
}

/// A position in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display())?,
            None => f.write_str("command line")?,
        }
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        match &self.program {
            Some((number, Some(name))) => write!(f, ": program {number} ({name})"),
            Some((number, None)) => write!(f, ": program {number}"),
            None => Ok(()),
        }
    }
}

/// Where a workload comes from: turns byte ranges into places.
pub(super) enum Origin<'a> {
    /// A file and its text.
    File {
        /// The path as the user gave it.
        path: &'a Path,
        /// What is in it.
        text: &'a str,
    },
    /// The command line, which has no positions.
    CommandLine,
}

impl Origin<'_> {
    /// The file or the command line as a whole.
    pub(super) fn whole(&self) -> Place {
        let file = match self {
            Origin::File { path, .. } => Some((*path).to_owned()),
            Origin::CommandLine => None,
        };
        Place { file, position: None, program: None }
    }

    /// The place where a range of bytes begins.
    pub(super) fn at(&self, bytes: &Range<usize>) -> Place {
        let position = match self {
            Origin::File { text, .. } => {
                let before = text.get(..bytes.start).unwrap_or(text);
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                Some(Position {
                    line: 1 + before.matches('\n').count(),
                    column: 1 + before[line_start..].chars().count(),
                })
            }
            Origin::CommandLine => None,
        };
        Place { position, ..self.whole() }
    }
}
