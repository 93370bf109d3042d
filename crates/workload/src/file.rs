//! From the text of a workload file to the tables of its programs, of which each key is taken once.
//!
//! Each table is taken apart key by key. What is left at the end is unknown,
//! and the keys that were asked for are the known ones: so the list in the
//! message, and the suggestion, cannot disagree with what is read.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, WorkloadError, WorkloadOrigin};
use super::found::{Found, culprit};
use super::mistakes::{self, Mistakes};
use crate::nearest::nearest;

/// What the parser says of a key that a table has already.
const TWICE: &str = "duplicate key";

pub(super) struct Draft<'text> {
    /// Where: bytes of the file; empty for the command line.
    pub(super) place: Range<usize>,
    /// Its keys; `None`: what stands there is no table.
    pub(super) table: Option<DeTable<'text>>,
    /// Its command, where it was not given as a key.
    pub(super) command: Option<WrittenCommand>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum WrittenCommand {
    /// To be split as a shell splits words.
    Line(String),
    /// Already split.
    Split(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum WrittenRepeat {
    Count(i64),
    Rule(String),
}

impl<'text> Draft<'text> {
    /// A draft that says nothing but the command.
    pub(super) fn of(command: WrittenCommand) -> Draft<'text> {
        Draft { place: 0..0, table: Some(DeTable::new()), command: Some(command) }
    }

    pub(super) fn value(&self, key: &str) -> Option<&Spanned<DeValue<'text>>> {
        self.table.as_ref()?.get(key)
    }
}

/// The drafts of a workload file's programs.
///
/// # Errors
/// When the text is not TOML: nothing in it can be relied on.
pub(super) fn drafts<'text>(
    origin: &WorkloadOrigin<'_>,
    text: &'text str,
    mistakes: &Mistakes,
) -> Result<Vec<Draft<'text>>, WorkloadError> {
    let file = DeTable::parse(text).map_err(|error| {
        let said = error.message().trim().replace('\n', ", ");
        let key = error.span().and_then(|span| text.get(span)).filter(|_| said == TWICE);
        WorkloadError::Syntax {
            place: error.span().map_or(origin.whole(), |span| origin.at(&span)),
            message: match key {
                Some(key) => format!("{said} '{key}'; a table has each key once, so take one out"),
                None if is_unclosed(&said) => {
                    format!("{said}; end the string with the quote that it began with")
                }
                None => said,
            },
        }
    })?;
    let mut keys = Keys::new(origin, file.into_inner(), None, mistakes);
    let programs = keys.take_value("program");
    keys.none_left();
    let Some(programs) = programs else {
        return Ok(Vec::new());
    };

    let place = programs.span();
    let not_tables = |place: &Range<usize>, found: &DeValue<'_>| {
        let expected =
            "an array of tables (write [[program]], with two brackets, above each program)";
        let problem = Problem::WrongType { expected, found: Found::value(found) };
        mistakes.add(origin.invalid(place, None, "program", problem));
    };
    let programs = match programs.into_inner() {
        DeValue::Array(programs) => programs,
        other => {
            not_tables(&place, &other);
            return Ok(Vec::new());
        }
    };
    let draft = |program: Spanned<DeValue<'text>>| {
        let place = program.span();
        let table = match program.into_inner() {
            DeValue::Table(table) => Some(table),
            other => {
                not_tables(&place, &other);
                None
            }
        };
        Draft { place, table, command: None }
    };
    Ok(programs.into_iter().map(draft).collect())
}

/// Whether this is what the parser says of a string on one line that does not end there.
fn is_unclosed(said: &str) -> bool {
    let strings = ["invalid basic string, expected", "invalid literal string, expected"];
    strings.iter().any(|string| said.starts_with(string))
}

/// A table from which keys are taken; knows which program to name in a message.
pub(super) struct Keys<'a, 'text> {
    origin: &'a WorkloadOrigin<'a>,
    table: DeTable<'text>,
    program: Option<(usize, Option<String>)>,
    known: Vec<&'static str>,
    mistakes: &'a Mistakes,
}

impl<'a, 'text> Keys<'a, 'text> {
    pub(super) fn new(
        origin: &'a WorkloadOrigin<'a>,
        table: DeTable<'text>,
        number: Option<usize>,
        mistakes: &'a Mistakes,
    ) -> Self {
        let name = table.get("name").and_then(|name| name.get_ref().as_str()).map(str::to_owned);
        let program = number.map(|number| (number, name));
        Keys { origin, table, program, known: Vec::new(), mistakes }
    }

    fn take_value(&mut self, key: &'static str) -> Option<Spanned<DeValue<'text>>> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// The value of a key; `expected` says of which type it must be.
    pub(super) fn take<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        expected: &'static str,
    ) -> Option<Spanned<T>> {
        let value = self.take_value(key)?;
        let Ok(read) = T::deserialize(value.clone().into_deserializer()) else {
            let (bytes, found) = culprit::<T>(&value);
            self.refuse(&bytes, key, Problem::WrongType { expected, found });
            return None;
        };
        Some(Spanned::new(value.span(), read))
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.take(key, "true or false").map(Spanned::into_inner)
    }

    /// The value of a key, by this rule.
    pub(super) fn optional<T: DeserializeOwned, U>(
        &mut self,
        key: &'static str,
        expected: &'static str,
        check: impl FnOnce(T) -> Result<U, Problem>,
    ) -> Option<U> {
        let value = self.take(key, expected)?;
        self.checked(key, value, check)
    }

    pub(super) fn checked<T, U>(
        &self,
        key: &'static str,
        value: Spanned<T>,
        check: impl FnOnce(T) -> Result<U, Problem>,
    ) -> Option<U> {
        let place = value.span();
        check(value.into_inner()).map_err(|problem| self.refuse(&place, key, problem)).ok()
    }

    /// Refuses the keys that are left: no code has asked for them.
    pub(super) fn none_left(self) {
        for key in self.table.keys().take(mistakes::MOST) {
            let nearest = synonym(key.get_ref())
                .filter(|meant| self.known.contains(meant))
                .or_else(|| nearest(key.get_ref(), self.known.iter().copied()));
            let option = OPTIONS.iter().find(|option| **option == key.get_ref().as_ref());
            let of_program =
                self.known == ["program"] && OF_PROGRAMS.contains(&key.get_ref().as_ref());
            let problem = match (nearest, option) {
                _ if of_program => Problem::NoProgram,
                (None, Some(option)) => Problem::Option { option },
                _ => Problem::UnknownKey { nearest, known: self.known.clone() },
            };
            self.refuse(&key.span(), key.get_ref().to_string(), problem);
        }
    }

    pub(super) fn refuse(
        &self,
        bytes: &Range<usize>,
        key: impl Into<Cow<'static, str>>,
        problem: Problem,
    ) {
        self.mistakes.add(self.origin.invalid(bytes, self.program.clone(), key, problem));
    }
}

/// What is chosen for a whole run, and not in a jobs file.
const OPTIONS: [&str; 6] = ["policy", "goal", "quantum", "turns", "out", "force"];

/// The keys of a program that may stand above all tables, where its table is forgotten.
const OF_PROGRAMS: [&str; 8] =
    ["name", "command", "threads", "env", "cwd", "start", "after", "weight"];

/// The key that another tool's word stands for.
fn synonym(word: &str) -> Option<&'static str> {
    const SYNONYMS: [(&str, &str); 12] = [
        ("args", "command"),
        ("cmd", "command"),
        ("cores", "threads"),
        ("cpus", "threads"),
        ("delay", "start"),
        ("depends", "after"),
        ("depends_on", "after"),
        ("dir", "cwd"),
        ("environment", "env"),
        ("needs", "after"),
        ("priority", "weight"),
        ("workdir", "cwd"),
    ];
    SYNONYMS.iter().find(|(one, _)| *one == word).map(|(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    /// The only mistake, but for the command that few of these programs have.
    fn refusal(text: &str) -> String {
        let refused = Workload::parse(text, "jobs.toml".as_ref()).unwrap_err().to_string();
        let is_mistake =
            |line: &&str| !line.contains("command is missing") && !line.contains("errors; nothing");
        refused.lines().filter(is_mistake).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_key() {
        let text = "[[program]]\nname = 'cg'\ncommand = 'cg'\n\n  thread = 2\n";
        assert_eq!(
            refusal(text),
            "jobs.toml:5:3: program 1 (cg): thread is not a known key; did you mean 'threads'?"
        );
        assert_eq!(
            refusal("[[programs]]\ncommand = 'cg'"),
            "jobs.toml:1:3: programs is not a known key; did you mean 'program'?"
        );
    }

    #[test]
    fn a_forgotten_table_of_a_program_is_named() {
        let message = refusal("command = 'cg'");
        assert!(message.contains("command is a key of a program; write [[program]]"), "{message}");
    }

    #[test]
    fn words_of_other_tools_are_answered_with_the_key() {
        let message = refusal("[[program]]\ncommand = 'x'\npolicy = 'gang'");
        let option = "policy is no key of a program, but the option --policy of the command line";
        assert!(message.ends_with(option), "{message}");
        for (word, key) in [("cmd", "command"), ("cpus", "threads"), ("depends_on", "after")] {
            let message = refusal(&format!("[[program]]\ncommand = 'cg'\n{word} = 1"));
            assert!(message.ends_with(&format!("did you mean '{key}'?")), "{message}");
        }
    }

    #[test]
    fn an_unknown_key_like_no_other_is_answered_with_all_keys() {
        for key in ["quux", "state"] {
            let message = refusal(&format!("[[program]]\ncommand = 'cg'\n{key} = 1"));
            let all = format!("{key} is not a known key; the keys are name, command, ");
            assert!(message.contains(&all), "{message}");
        }
    }

    #[test]
    fn every_key_is_described_in_the_documentation() {
        let documentation = include_str!("../../../docs/jobs-file.md");
        let message = refusal("[[program]]\nquux = 1");
        let (_, keys) = message.split_once("the keys are ").unwrap();
        for key in keys.split(", ") {
            assert!(documentation.contains(&format!("\n| `{key}` |")), "{key} has no row");
            assert!(documentation.contains(&format!("\n**`{key}`.**")), "{key} has no paragraph");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_with_what_was_expected() {
        assert_eq!(
            refusal("[[program]]\ncommand = 'cg'\nthreads = '2'"),
            "jobs.toml:3:11: program 1: threads must be a whole number from 1 to 65535, such as 2, \
             but is the string \"2\""
        );
        for wrong in ["start = 5", "env = { A = 1 }", "weight = 'x'", "command = 3", "repeat = 1.5"]
        {
            let message = refusal(&format!("[[program]]\n{wrong}"));
            assert!(message.contains("program 1: ") && message.contains("must be"), "{message}");
        }
    }

    #[test]
    fn wrong_values_and_elements_are_pointed_at() {
        for (keys, place, found) in [
            (
                "threads = 99999999999999999999",
                "2:11",
                "but is 99999999999999999999, which is too large a number",
            ),
            ("command = [\"a\", 3]", "2:17", "array of strings, but its element 2 is 3"),
            ("command = { a = 1 }", "2:11", "array of strings, but is a table"),
            ("env = { A = 'x', B = 1.5 }", "2:22", "but its 'B' is the number 1.5"),
            ("env = ['A']", "2:7", "but is an array"),
            (
                "model = { spin = '1s', phase = [{ serial = 0.5, \
                 repeat = 18446744073709551615 }] }",
                "2:58",
                "but its 'repeat' is 18446744073709551615, which is too large a number",
            ),
            ("start = [1]", "2:9", "but is an array"),
            ("freezable = 1979-05-27", "2:13", "true or false, but is a date or a time of day"),
            ("group = true", "2:9", "but is true"),
        ] {
            let message = refusal(&format!("[[program]]\n{keys}"));
            assert!(message.starts_with(&format!("jobs.toml:{place}: ")), "{keys}: {message}");
            assert!(message.ends_with(found), "{keys}: {message}");
        }
    }

    #[test]
    fn a_single_bracket_is_explained() {
        let message = refusal("[program]\ncommand = 'cg'");
        assert!(message.contains("write [[program]], with two brackets"), "{message}");
        assert!(message.ends_with("above each program), but is a table"), "{message}");
    }

    #[test]
    fn text_that_is_not_toml_is_refused_with_its_place() {
        let message = refusal("[[program]]\ncommand = 'cg\n");
        assert!(message.starts_with("jobs.toml:2:"), "{message}");
        assert!(message.contains("not valid TOML"), "{message}");
        for open in ["'cg", "\"cg"] {
            let message = refusal(&format!("[[program]]\ncommand = {open}\nthreads = 1"));
            assert!(
                message.ends_with("; end the string with the quote that it began with"),
                "{message}"
            );
        }
        assert_eq!(
            refusal("[[program]]\nname = 'a'\nname = 'b'"),
            "jobs.toml:3:1: not valid TOML: duplicate key 'name'; a table has each key once, so \
             take one out"
        );
    }

    #[test]
    fn whole_numbers_serve_as_weights() {
        let text = "[[program]]\ncommand = 'cg'\nweight = 2";
        let origin = WorkloadOrigin::file("jobs.toml".as_ref(), text);
        let mistakes = Mistakes::default();
        let table = drafts(&origin, text, &mistakes).unwrap().remove(0).table.unwrap();
        let weight = Keys::new(&origin, table, Some(1), &mistakes).take::<f64>("weight", "");
        let weight = weight.unwrap();
        assert_eq!((weight.span(), weight.into_inner()), (36..37, 2.0));
    }
}
