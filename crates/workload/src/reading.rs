//! A workload between reading and use: the command that reads it may find more mistakes in it.
//!
//! Whether a program can be started, and its files be opened, depends on what is done with it. The
//! simulator needs no files. So commands add what they find, and the user gets all mistakes at
//! once.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use super::check;
use super::error::{WorkloadError, WorkloadOrigin};
use super::file::{self, Draft, WrittenCommand};
use super::mistakes::Mistakes;
use super::spec::{MAX_BYTES, ProgramSpec, Workload};
use crate::input;

/// A workload that was read, with the mistakes found so far.
pub struct Reading {
    pub(super) workload: Workload,
    pub(super) mistakes: Mistakes,
}

impl Reading {
    /// Reads a workload file. Its programs start in its folder.
    ///
    /// # Errors
    /// When the file cannot be read, or names no program.
    pub fn load(path: &Path) -> Result<Reading, WorkloadError> {
        let unreadable = |source| WorkloadError::unreadable(path, source);
        let file = input::open(path).map_err(unreadable)?;
        let absolute = std::path::absolute(path).map_err(unreadable)?;
        Reading::read(file, path, absolute.parent().unwrap_or(Path::new("/")))
    }

    /// Reads a workload file from anywhere. `path` stands in the messages; programs start in
    /// `directory` (absolute).
    ///
    /// # Errors
    /// When it cannot be read, or names no program.
    pub fn read(input: impl Read, path: &Path, directory: &Path) -> Result<Reading, WorkloadError> {
        let file = || path.to_owned();
        let mut bytes = Vec::new();
        let read = input.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|source| WorkloadError::unreadable(path, source))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(WorkloadError::TooLarge { file: file() });
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| WorkloadError::NotUtf8 {
            file: file(),
            line: 1 + bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count(),
        })?;
        let origin = WorkloadOrigin::file(path, text);
        let mistakes = Mistakes::default();
        let drafts = file::drafts(&origin, text, &mistakes)?;
        check::check(drafts, &origin, directory, mistakes)
    }

    /// A workload of commands that are already split into words, started in `directory` (absolute).
    ///
    /// # Errors
    /// When there is no command.
    pub fn of_commands(
        commands: Vec<Vec<String>>,
        directory: &Path,
    ) -> Result<Reading, WorkloadError> {
        Reading::of(commands.into_iter().map(WrittenCommand::Split), directory)
    }

    /// A workload of one-line commands, split as a shell splits words, started in `directory`
    /// (absolute).
    ///
    /// # Errors
    /// When there is no command.
    pub fn of_command_lines(
        lines: Vec<String>,
        directory: &Path,
    ) -> Result<Reading, WorkloadError> {
        Reading::of(lines.into_iter().map(WrittenCommand::Line), directory)
    }

    fn of(
        commands: impl Iterator<Item = WrittenCommand>,
        directory: &Path,
    ) -> Result<Reading, WorkloadError> {
        let drafts = commands.map(Draft::of).collect();
        check::check(drafts, &WorkloadOrigin::CommandLine, directory, Mistakes::default())
    }

    /// All programs, where a key with a mistake is as if it were not there.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The programs that have a command and no mistake in these keys, with their positions. What
    /// follows from a mistake is not to be told as another one.
    pub fn right(&self, keys: &[&str]) -> impl Iterator<Item = (usize, &ProgramSpec)> {
        let wrong: HashSet<usize> = self.mistakes.programs(keys).collect();
        let programs = self.workload.programs.iter().enumerate();
        programs.filter(move |(slot, spec)| !wrong.contains(slot) && !spec.command.is_empty())
    }

    /// Adds a mistake.
    pub fn refuse(&self, mistake: WorkloadError) {
        self.mistakes.add(mistake);
    }

    /// The workload.
    ///
    /// # Errors
    /// When there is a mistake in it: all of them.
    pub fn finish(self) -> Result<Workload, WorkloadError> {
        self.mistakes.or(self.workload)
    }
}

impl Workload {
    /// Reads a workload file. Its programs start in its folder.
    ///
    /// # Errors
    /// When the file cannot be read, or breaks a rule.
    pub fn load(path: &Path) -> Result<Workload, WorkloadError> {
        Reading::load(path)?.finish()
    }

    /// Reads the text of a workload file. `path` stands in the messages, and programs start in its
    /// folder.
    ///
    /// # Errors
    /// When the text breaks a rule.
    pub fn parse(text: &str, path: &Path) -> Result<Workload, WorkloadError> {
        let absolute =
            std::path::absolute(path).map_err(|source| WorkloadError::unreadable(path, source))?;
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        Reading::read(text.as_bytes(), path, folder)?.finish()
    }

    /// A workload of commands that are already split into words, started in `directory` (absolute).
    ///
    /// # Errors
    /// When there is no command, or one is empty.
    pub fn from_commands(
        commands: Vec<Vec<String>>,
        directory: &Path,
    ) -> Result<Workload, WorkloadError> {
        Reading::of_commands(commands, directory)?.finish()
    }
}
