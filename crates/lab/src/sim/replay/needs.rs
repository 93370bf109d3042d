//! What a policy has to know of programs, and a record may not tell.
//!
//! Programs of a record stand in no workload file and on no command line that could be mended. What
//! helps is another record, of a workload that says more.

use cosched_core::Profile;
use cosched_core::format::count;
use cosched_policy::{Kind, Unfit};
use cosched_results::result::RunResult;
use cosched_workload::shell;

use super::program::Replayed;
use crate::ui::failure::{Failure, together};

/// Why a policy cannot have the programs of a record, and how a record is made that it can have.
pub(super) fn refused(unfit: &[Unfit], record: &RunResult, programs: &[Replayed]) -> Failure {
    let again = again(record);
    let lacking = |policy: Kind, what: &str, key: &str, figure: fn(&Profile) -> Option<f64>| {
        let lack = programs.iter().filter(|program| figure(&program.profile).is_none());
        let names: Vec<&str> = lack.map(|program| program.spec.name.as_str()).collect();
        format!(
            "policy '{policy}' needs {what}, which the run does not hold for {}. Set `{key}` of \
             these programs in the jobs file, and record the run again: {again}",
            names.join(", ")
        )
    };
    let text = |unfit: &Unfit| match unfit {
        Unfit::MissesUnknown { policy, .. } => {
            lacking(*policy, "cache misses", "misses_per_kilo_instruction", |profile| {
                profile.misses_per_kilo_instruction
            })
        }
        Unfit::TrafficUnknown { policy, .. } => {
            lacking(*policy, "memory traffic", "memory_gigabytes_per_second", |profile| {
                profile.memory_gigabytes_per_second
            })
        }
        Unfit::TooManyThreads { program, threads, cpus, policy, .. } => format!(
            "policy '{policy}' runs all threads of a program at once, and '{program}' had \
             {threads} on {}. Choose the policy 'fcfs' or 'linux'; or set its `threads` \
             to at most {cpus} in the jobs file, and record the run again: {again}",
            count(*cpus, "CPU", "CPUs")
        ),
        other => other.to_string(),
    };
    let mut texts: Vec<String> = Vec::new();
    for unfit in unfit {
        let text = text(unfit);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    together(texts)
}

/// The command that makes such a record.
fn again(record: &RunResult) -> String {
    let policy = &record.policy;
    match &record.simulation {
        Some(simulation) => {
            let machine = shell::quote(&simulation.machine);
            format!("cosched sim JOBS.toml --machine {machine} --policy {policy} --out DIR")
        }
        None => format!("cosched run JOBS.toml --policy {policy} --out DIR"),
    }
}
