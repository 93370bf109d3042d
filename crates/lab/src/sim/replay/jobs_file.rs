//! The programs of a record with their models, as a jobs file to edit and to simulate.

use cosched_core::Nanos;
use cosched_workload::Repeat;
use serde::Serialize;

use super::program::Replayed;
use crate::ui::failure::Failure;

#[derive(Serialize)]
struct JobsFile<'a> {
    program: Vec<JobEntry<'a>>,
}

#[derive(Serialize)]
struct JobEntry<'a> {
    name: &'a str,
    command: &'a [String],
    threads: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<Before<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<Again>,
    model: &'a toml::Table,
}

/// A program that has to end first.
#[derive(Serialize)]
struct Before<'a> {
    program: &'a str,
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
    let file = JobsFile { program: programs.iter().map(program).collect() };
    let tables = toml::to_string(&file).map_err(Failure::broken)?;
    Ok(format!(
        "# Models of the programs of {record:?}: instructions by the CPU time, `serial` and\n\
         # `sleep` by the solo time. A record tells nothing of barriers, spinning and memory:\n\
         # edit these keys.\n\
         # To simulate them on the machine of the run: {command}\n\n\
         {tables}"
    ))
}

fn program(of: &Replayed) -> JobEntry<'_> {
    let spec = &of.spec;
    JobEntry {
        name: &spec.name,
        command: &spec.command,
        threads: spec.threads,
        start: (spec.start > Nanos::ZERO).then(|| format!("{}us", spec.start.0 / 1000)),
        // A record does not tell which exits were wanted.
        after: spec
            .after
            .iter()
            .map(|after| Before { program: &after.program, exit: "any" })
            .collect(),
        weight: (spec.weight != 1.0).then_some(spec.weight),
        group: spec.group.as_deref(),
        repeat: match spec.repeat {
            Repeat::Times(1) => None,
            Repeat::Times(times) => Some(Again::Times(times)),
            Repeat::UntilAllFinish => Some(Again::Words("until-all-finish")),
        },
        model: &of.table,
    }
}
