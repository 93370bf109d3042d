//! From drafts to programs: every rule of a workload, in one place.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cosched_core::engine::Repeat;
use cosched_core::{Nanos, parse_duration};
use toml::Spanned;

use super::after::{self, After};
use super::barrier::BarrierMode;
use super::error::{Place, Problem, WorkloadError, WorkloadOrigin};
use super::file::{Draft, WrittenCommand, WrittenRepeat};
use super::mistakes::Mistakes;
use super::names::{self, Names};
use super::reading::Reading;
use super::script;
use super::shell_paths;
use super::spec::{LONGEST_WORD, MAX_PROGRAMS, Places, ProgramSpec, SEPARATOR, WEIGHTS, Workload};
use super::streams::{self, StreamFile, Streams};
use crate::input::is_loop;

/// A year: a later start is taken for a mistake.
const LATEST_START: Duration = Duration::from_secs(365 * 24 * 3600);

/// What words begin with that a shell would not pass on.
const OPERATORS: [&str; 7] = ["|", "&", ";", ">", "<", "1>", "2>"];

/// Turns drafts into a workload, with its mistakes. Programs without a `cwd` start in `directory`,
/// which is absolute. `mistakes` are those of the drafts.
pub(super) fn check(
    drafts: Vec<Draft>,
    origin: &WorkloadOrigin<'_>,
    directory: &Path,
    mistakes: Mistakes,
) -> Result<Reading, WorkloadError> {
    match drafts.len() {
        0 => {
            if mistakes.is_empty() {
                mistakes.add(WorkloadError::Empty { place: origin.whole() });
            }
            let refused = mistakes.or(Workload { programs: Vec::new() });
            return refused.map(|workload| Reading { workload, mistakes: Mistakes::default() });
        }
        count if count > MAX_PROGRAMS => {
            return Err(WorkloadError::TooMany { place: origin.whole(), count });
        }
        _ => {}
    }
    let mut names = Names::new(given_names(&drafts, origin, &mistakes));
    let elements: Vec<Vec<Range<usize>>> = drafts.iter().map(spans_of_after).collect();
    let mut are_all_named = true;
    let mut programs = Vec::with_capacity(drafts.len());
    for (index, draft) in drafts.into_iter().enumerate() {
        let checker = Checker::new(origin, index, &draft, &mistakes);
        let is_named = draft.name.is_some();
        let spec = checker.program(draft, directory, &mut names);
        are_all_named &= is_named || !spec.command.is_empty();
        programs.push(spec);
    }
    for (slot, element, problem) in after::check(&programs, are_all_named) {
        let name = Some(programs[slot].name.clone());
        let checker = Checker { origin, number: slot + 1, name, mistakes: &mistakes };
        checker.refuse("after", elements[slot][element].clone(), problem);
    }
    Ok(Reading { workload: Workload { programs }, mistakes })
}

fn spans_of_after(draft: &Draft) -> Vec<Range<usize>> {
    let elements = draft.after.iter().flat_map(|elements| elements.get_ref());
    elements.map(Spanned::span).collect()
}

fn given_names(drafts: &[Draft], origin: &WorkloadOrigin<'_>, mistakes: &Mistakes) -> Vec<String> {
    let mut numbers = HashMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        let Some(name) = &draft.name else { continue };
        let first = *numbers.entry(name.get_ref().clone()).or_insert(index + 1);
        if first != index + 1 {
            let problem = Problem::DuplicateName(name.get_ref().clone(), first);
            Checker::new(origin, index, draft, mistakes).refuse("name", name.span(), problem);
        }
    }
    numbers.into_keys().collect()
}

/// Checks one program; knows which program to name in a message.
struct Checker<'a> {
    origin: &'a WorkloadOrigin<'a>,
    number: usize,
    name: Option<String>,
    mistakes: &'a Mistakes,
}

impl<'a> Checker<'a> {
    fn new(
        origin: &'a WorkloadOrigin<'a>,
        index: usize,
        draft: &Draft,
        mistakes: &'a Mistakes,
    ) -> Checker<'a> {
        let name = draft.name.as_ref().map(|name| name.get_ref().clone());
        Checker { origin, number: index + 1, name, mistakes }
    }

    /// The program. What is wrong is as if it were not there; the command is then empty.
    fn program(&self, draft: Draft, directory: &Path, names: &mut Names) -> ProgramSpec {
        if draft.command.is_none() && !draft.has_unread_command {
            self.refuse("command", draft.place.clone(), Problem::Missing);
        }
        let command_place = draft.command.as_ref().map_or(draft.place, Spanned::span);
        let threads_place = draft.threads.as_ref().map(Spanned::span);
        let command = self.optional("command", draft.command, command).unwrap_or_default();
        let name = match draft.name {
            Some(name) => {
                let given = name.get_ref().clone();
                self.value("name", name, names::checked).unwrap_or(given)
            }
            None if command.is_empty() => String::new(),
            None => names.after(script::naming_word(&command)),
        };
        let place = |bytes: &Range<usize>| Place {
            program: Some((self.number, Some(name.clone()))),
            ..self.origin.at(bytes)
        };
        let places = Places {
            command: place(&command_place),
            threads: place(&threads_place.unwrap_or(command_place.clone())),
        };
        let in_directory = |cwd: String| {
            if cwd.is_empty() {
                return Err(Problem::EmptyDirectory);
            }
            shell_paths::check(&cwd, directory)?;
            existing_directory(&directory.join(cwd))
        };
        let cwd = self.optional("cwd", draft.cwd, in_directory).unwrap_or(directory.to_owned());
        if let Some(Err(problem)) =
            command.first().map(|word| shell_paths::check_command(word, &cwd))
        {
            self.refuse("command", command_place, problem);
        }
        let stream = |key, named: Option<Spanned<String>>| {
            let place = named.as_ref().map(|named| place(&named.span()));
            let path = self.optional(key, named, |named: String| streams::path(&named, &cwd));
            path.zip(place).map(|(path, place)| StreamFile { path, place })
        };
        let streams = Streams {
            stdin: stream("stdin", draft.stdin),
            stdout: stream("stdout", draft.stdout),
            stderr: stream("stderr", draft.stderr),
        };
        ProgramSpec {
            places,
            name,
            command,
            threads: self.optional("threads", draft.threads, threads),
            env: self.optional("env", draft.env, variables).unwrap_or_default(),
            cwd,
            streams,
            start: self.optional("start", draft.start, start).unwrap_or_default(),
            after: draft.after.map_or(Vec::new(), |elements| self.after(elements.into_inner())),
            weight: self.optional("weight", draft.weight, weight).unwrap_or(1.0),
            misses_per_kilo_instruction: self.optional(
                "misses_per_kilo_instruction",
                draft.misses_per_kilo_instruction,
                amount,
            ),
            miss_ratio: self.optional("miss_ratio", draft.miss_ratio, share),
            memory_gigabytes_per_second: self.optional(
                "memory_gigabytes_per_second",
                draft.memory_gigabytes_per_second,
                amount,
            ),
            repeat: self.optional("repeat", draft.repeat, repeat).unwrap_or(Repeat::Times(1)),
            freezable: draft.freezable.map(Spanned::into_inner),
            group: self.optional("group", draft.group, group),
            malleable: draft.malleable.is_some_and(Spanned::into_inner),
            moldable: draft.moldable.is_some_and(Spanned::into_inner),
            progress: draft.progress.is_some_and(Spanned::into_inner),
            barrier: self
                .optional("barrier", draft.barrier, |name: String| name.parse::<BarrierMode>()),
            model: draft.model.map(Spanned::into_inner),
        }
    }

    /// What it waits for; nothing if an element is wrong, so that those that are left keep their
    /// positions.
    fn after(&self, elements: Vec<Spanned<toml::Value>>) -> Vec<After> {
        let count = elements.len();
        let read = elements.into_iter().filter_map(|it| self.value("after", it, after::awaited));
        let read: Vec<After> = read.collect();
        if read.len() == count { read } else { Vec::new() }
    }

    fn optional<T, U>(
        &self,
        key: &'static str,
        value: Option<Spanned<T>>,
        check: impl FnOnce(T) -> Result<U, Problem>,
    ) -> Option<U> {
        value.and_then(|value| self.value(key, value, check))
    }

    fn value<T, U>(
        &self,
        key: &'static str,
        value: Spanned<T>,
        check: impl FnOnce(T) -> Result<U, Problem>,
    ) -> Option<U> {
        let place = value.span();
        check(value.into_inner()).map_err(|problem| self.refuse(key, place, problem)).ok()
    }

    fn refuse(&self, key: &'static str, place: Range<usize>, problem: Problem) {
        let place =
            Place { program: Some((self.number, self.name.clone())), ..self.origin.at(&place) };
        let problem = Box::new(problem);
        self.mistakes.add(WorkloadError::Invalid { place, key: key.into(), problem });
    }
}

/// The first word of a line, if there is one, that is meant for a shell and stands outside of
/// quotes.
fn shell_operator(line: &str) -> Option<&str> {
    // Before a word outside of quotes, all quotes are closed.
    let is_outside = |at: usize| shell_words::split(&line[..at]).is_ok();
    line.split_whitespace().find(|word| {
        let is_meant = *word == SEPARATOR || OPERATORS.iter().any(|begin| word.starts_with(begin));
        is_meant && is_outside(word.as_ptr() as usize - line.as_ptr() as usize)
    })
}

fn command(written: WrittenCommand) -> Result<Vec<String>, Problem> {
    let words = match written {
        WrittenCommand::Split(words) => words,
        WrittenCommand::Line(line) => {
            if let Some(operator) = shell_operator(&line) {
                return Err(Problem::ShellOperator(operator.to_owned()));
            }
            shell_words::split(&line).map_err(|_| Problem::UnclosedQuote { line })?
        }
    };
    match words.first() {
        None => Err(Problem::EmptyCommand),
        Some(program) if program.is_empty() => Err(Problem::EmptyCommand),
        Some(_) if words.iter().any(|word| word.contains('\0')) => Err(Problem::HasNul),
        Some(_) => match words.iter().map(String::len).max() {
            Some(longest) if longest > LONGEST_WORD => Err(Problem::TooLong(longest)),
            _ => Ok(words),
        },
    }
}

fn threads(threads: i64) -> Result<u16, Problem> {
    u16::try_from(threads).ok().filter(|n| *n > 0).ok_or(Problem::Threads(threads))
}

fn variables(env: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Problem> {
    for (name, value) in &env {
        if name.is_empty() || name.contains('=') {
            return Err(Problem::VariableName(name.clone()));
        }
        if name.contains('\0') || value.contains('\0') {
            return Err(Problem::HasNul);
        }
        let longest = name.len() + 1 + value.len();
        if longest > LONGEST_WORD {
            return Err(Problem::TooLong(longest));
        }
    }
    Ok(env)
}

fn existing_directory(path: &Path) -> Result<PathBuf, Problem> {
    let path = std::path::absolute(path).unwrap_or(path.to_owned());
    // Only a user who may enter a directory can look at what is in it.
    match path.join(".").metadata() {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(Problem::ClosedDirectory(path))
        }
        Err(error) if is_loop(&error) => Err(Problem::LoopedDirectory(path)),
        Err(_) => Err(Problem::NoDirectory(path)),
    }
}

fn start(text: String) -> Result<Nanos, Problem> {
    match parse_duration(&text) {
        Some(start) if start > LATEST_START => Err(Problem::TooLate(text)),
        Some(start) => Ok(start.into()),
        None => Err(Problem::Duration(text)),
    }
}

fn weight(weight: f64) -> Result<f64, Problem> {
    if WEIGHTS.contains(&weight) { Ok(weight) } else { Err(Problem::Weight(weight)) }
}

fn amount(amount: f64) -> Result<f64, Problem> {
    if amount.is_finite() && amount >= 0.0 { Ok(amount) } else { Err(Problem::Amount(amount)) }
}

fn share(share: f64) -> Result<f64, Problem> {
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(Problem::Share(share)) }
}

fn repeat(written: WrittenRepeat) -> Result<Repeat, Problem> {
    match written {
        WrittenRepeat::Rule(rule) if rule == "until-all-finish" => Ok(Repeat::UntilAllFinish),
        WrittenRepeat::Rule(rule) => Err(Problem::RepeatRule(rule)),
        WrittenRepeat::Count(count) => match u32::try_from(count) {
            Ok(times) if times > 0 => Ok(Repeat::Times(times)),
            _ => Err(Problem::RepeatCount(count)),
        },
    }
}

fn group(name: String) -> Result<String, Problem> {
    if name.is_empty() { Err(Problem::EmptyGroup) } else { Ok(name) }
}
