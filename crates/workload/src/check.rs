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
use toml::de::DeValue;

use super::after::{self, After};
use super::barrier::BarrierMode;
use super::error::{Place, Problem, WorkloadError, WorkloadOrigin};
use super::file::{Draft, Keys, WrittenCommand, WrittenRepeat};
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
    drafts: Vec<Draft<'_>>,
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
    let mut unnamed = Vec::new();
    let mut programs = Vec::with_capacity(drafts.len());
    for (index, draft) in drafts.into_iter().enumerate() {
        let is_named = given_name(&draft).is_some();
        let spec = program(draft, index + 1, origin, directory, &mut names, &mistakes);
        if !is_named && spec.command.is_empty() {
            unnamed.push(index);
        }
        programs.push(spec);
    }
    for (slot, element, problem) in after::check(&programs, &unnamed) {
        let name = Some(programs[slot].name.clone()).filter(|name| !name.is_empty());
        let program = (slot + 1, name);
        mistakes.add(origin.invalid(&elements[slot][element], Some(program), "after", problem));
    }
    Ok(Reading { workload: Workload { programs }, mistakes })
}

fn spans_of_after(draft: &Draft<'_>) -> Vec<Range<usize>> {
    match draft.value("after").map(Spanned::get_ref) {
        Some(DeValue::Array(elements)) => elements.iter().map(Spanned::span).collect(),
        _ => Vec::new(),
    }
}

/// Where each value in a value is, by the path of its keys.
fn spans(value: &Spanned<DeValue<'_>>) -> Vec<(String, Range<usize>)> {
    fn collect(value: &Spanned<DeValue<'_>>, path: &str, into: &mut Vec<(String, Range<usize>)>) {
        into.push((path.to_owned(), value.span()));
        match value.get_ref() {
            DeValue::Table(table) => table.iter().for_each(|(key, value)| {
                let dot = if path.is_empty() { "" } else { "." };
                collect(value, &format!("{path}{dot}{}", key.get_ref()), into);
            }),
            DeValue::Array(elements) => elements.iter().enumerate().for_each(|(i, value)| {
                collect(value, &format!("{path}[{i}]"), into);
            }),
            _ => {}
        }
    }
    let mut spans = Vec::new();
    collect(value, "", &mut spans);
    spans
}

fn given_name<'a>(draft: &'a Draft<'_>) -> Option<(&'a str, Range<usize>)> {
    let name = draft.value("name")?;
    Some((name.get_ref().as_str()?, name.span()))
}

fn given_names(
    drafts: &[Draft<'_>],
    origin: &WorkloadOrigin<'_>,
    mistakes: &Mistakes,
) -> Vec<String> {
    let mut numbers = HashMap::new();
    for (draft, number) in drafts.iter().zip(1..) {
        let Some((name, place)) = given_name(draft) else { continue };
        let name = name.to_owned();
        let first = *numbers.entry(name.clone()).or_insert(number);
        if first != number {
            let problem = Problem::DuplicateName(name.clone(), first);
            mistakes.add(origin.invalid(&place, Some((number, Some(name))), "name", problem));
        }
    }
    numbers.into_keys().collect()
}

/// The program of a draft. What is wrong is as if it were not there; the command is then empty.
fn program(
    Draft { place, table, command: given }: Draft<'_>,
    number: usize,
    origin: &WorkloadOrigin<'_>,
    directory: &Path,
    names: &mut Names,
    mistakes: &Mistakes,
) -> ProgramSpec {
    let has_command = table.as_ref().is_none_or(|table| table.contains_key("command"));
    let model = table.as_ref().and_then(|table| table.get("model")).map(spans);
    let mut keys = Keys::new(origin, table.unwrap_or_default(), Some(number), mistakes);
    let name = keys.take::<String>("name", "a string");
    let written = match given {
        Some(command) => Some(Spanned::new(0..0, command)),
        None => keys.take("command", "a string or an array of strings"),
    };
    if written.is_none() && !has_command {
        keys.refuse(&place, "command", Problem::Missing);
    }
    let command_place = written.as_ref().map_or(place, Spanned::span);
    let command = written.and_then(|written| keys.checked("command", written, command));
    let command = command.unwrap_or_default();
    let name = match name {
        Some(name) => {
            let given = name.get_ref().clone();
            keys.checked("name", name, names::checked).unwrap_or(given)
        }
        None if command.is_empty() => String::new(),
        None => names.after(script::naming_word(&command)),
    };
    let place = |bytes: &Range<usize>| Place {
        program: Some((number, Some(name.clone()))),
        ..origin.at(bytes)
    };
    let wanted = keys.take("threads", "a whole number from 1 to 65535, such as 2");
    let places = Places {
        command: place(&command_place),
        threads: place(&wanted.as_ref().map_or(command_place.clone(), Spanned::span)),
        model: model.into_iter().flatten().map(|(path, span)| (path, place(&span))).collect(),
    };
    let threads = wanted.and_then(|wanted| keys.checked("threads", wanted, threads));
    let table = "a table of strings, such as { OMP_PROC_BIND = \"false\" }";
    let env = keys.optional("env", table, variables).unwrap_or_default();
    let in_directory = |cwd: String| {
        if cwd.is_empty() {
            return Err(Problem::EmptyDirectory);
        }
        shell_paths::check(&cwd, directory)?;
        existing_directory(&directory.join(cwd))
    };
    let cwd = keys.optional("cwd", "a string, the path of a directory", in_directory);
    let cwd = cwd.unwrap_or(directory.to_owned());
    if let Some(Err(problem)) = command.first().map(|word| shell_paths::check_command(word, &cwd)) {
        keys.refuse(&command_place, "command", problem);
    }
    let mut stream = |key| {
        let named = keys.take::<String>(key, "a string, the path of a file")?;
        let place = place(&named.span());
        let path = keys.checked(key, named, |named| streams::path(&named, &cwd))?;
        Some(StreamFile { path, place })
    };
    let streams =
        Streams { stdin: stream("stdin"), stdout: stream("stdout"), stderr: stream("stderr") };
    // The keys are listed to users in this order.
    let spec = ProgramSpec {
        start: keys.optional("start", "a string, such as \"100ms\"", start).unwrap_or_default(),
        after: after(&mut keys),
        weight: keys.optional("weight", "a number, such as 1.0", weight).unwrap_or(1.0),
        misses_per_kilo_instruction: keys.optional(
            "misses_per_kilo_instruction",
            "a number, such as 3.0",
            amount,
        ),
        miss_ratio: keys.optional("miss_ratio", "a number, such as 0.3", share),
        memory_gigabytes_per_second: keys.optional(
            "memory_gigabytes_per_second",
            "a number, such as 4.0",
            amount,
        ),
        repeat: keys
            .optional("repeat", "a whole number, or \"until-all-finish\"", repeat)
            .unwrap_or(Repeat::Times(1)),
        freezable: keys.flag("freezable"),
        group: keys.optional("group", "a string, the name of a group", group),
        malleable: keys.flag("malleable").unwrap_or_default(),
        moldable: keys.flag("moldable").unwrap_or_default(),
        progress: keys.flag("progress").unwrap_or_default(),
        barrier: keys.optional("barrier", "a string, such as \"donate\"", barrier),
        model: keys.take("model", "a table: [program.model]").map(Spanned::into_inner),
        places,
        name,
        command,
        threads,
        env,
        cwd,
        streams,
    };
    keys.none_left();
    spec
}

/// What a program waits for; nothing if an element is wrong, so that those that are left keep their
/// positions.
fn after(keys: &mut Keys<'_, '_>) -> Vec<After> {
    let expected = "an array of names of programs, such as [\"a\"]";
    let elements = keys.take::<Vec<Spanned<toml::Value>>>("after", expected);
    let elements = elements.map_or(Vec::new(), Spanned::into_inner);
    let count = elements.len();
    let read = elements.into_iter().filter_map(|it| keys.checked("after", it, after::awaited));
    let read: Vec<After> = read.collect();
    if read.len() == count { read } else { Vec::new() }
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

fn barrier(name: String) -> Result<BarrierMode, Problem> {
    name.parse()
}
