//! The programs of a record with their models, as a jobs file to edit and to simulate.

use cosched_core::Nanos;
use cosched_workload::{Repeat, must_be_escaped};
use serde::Serialize;

use super::program::Replayed;
use crate::ui::failure::Failure;

#[derive(Serialize)]
struct JobsFile<'a> {
    program: Vec<JobEntry<'a>>,
}

#[derive(Serialize)]
struct JobEntry<'a> {
    name: String,
    command: Vec<String>,
    threads: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<Before>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<Again>,
    model: &'a toml::Table,
}

/// A program that has to end first.
#[derive(Serialize)]
struct Before {
    program: String,
    exit: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Again {
    Times(u32),
    Words(&'static str),
}

/// The whole file; the comment above says what it was made from, which command simulates it on the
/// machine of the record, and what a record does not tell.
pub(super) fn text(record: &str, command: &str, programs: &[Replayed]) -> Result<String, Failure> {
    let tables = tables(programs)?;
    Ok(format!(
        "# Models of the programs of {record:?}: instructions by the CPU time, `serial` and\n\
         # `sleep` by the solo time. A record tells nothing of barriers, spinning and memory:\n\
         # edit these keys.\n\
         # To simulate them on the machine of the run: {command}\n\n\
         {tables}"
    ))
}

/// The programs as TOML, with TOML's escapes for what must not reach a terminal. A command may hold
/// anything, and is the same when the file is read.
fn tables(programs: &[Replayed]) -> Result<String, Failure> {
    let written = |text: &dyn Fn(&str) -> String| {
        let program = programs.iter().map(|of| program(of, text)).collect();
        toml::to_string(&JobsFile { program }).map_err(Failure::broken)
    };
    let plain = written(&str::to_owned)?;
    let unused = |mark: &char| !plain.contains(*mark);
    let Some(mark) = ('\u{e000}'..='\u{f8ff}').find(unused).filter(|_| plain.contains(is_odd))
    else {
        return Ok(plain);
    };
    Ok(written(&|text| marked(text, mark))?.replace(&format!("\\u0001{mark}"), "\\u"))
}

fn is_odd(c: char) -> bool {
    must_be_escaped(c) && !matches!(c, '\n' | '\t')
}

/// The text with a control character, the mark and its number instead of each odd character. TOML
/// has no escapes between single quotes; a control character has the text written between double
/// quotes, and is itself written as `\u0001`.
fn marked(text: &str, mark: char) -> String {
    let escape = |c: char| match is_odd(c) {
        true => format!("\u{1}{mark}{:04X}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

fn program<'a>(of: &'a Replayed, text: &dyn Fn(&str) -> String) -> JobEntry<'a> {
    let spec = &of.spec;
    JobEntry {
        name: text(&spec.name),
        command: spec.command.iter().map(|word| text(word)).collect(),
        threads: spec.threads,
        start: (spec.start > Nanos::ZERO).then(|| format!("{}us", spec.start.0 / 1000)),
        // A record does not tell which exits were wanted.
        after: spec
            .after
            .iter()
            .map(|after| Before { program: text(&after.program), exit: "any" })
            .collect(),
        weight: (spec.weight != 1.0).then_some(spec.weight),
        group: spec.group.as_deref().map(text),
        repeat: match spec.repeat {
            Repeat::Times(1) => None,
            Repeat::Times(times) => Some(Again::Times(times)),
            Repeat::UntilAllFinish => Some(Again::Words("until-all-finish")),
        },
        model: &of.table,
    }
}
