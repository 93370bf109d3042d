//! Which programs of a comparison failed, and where they tell why.

use std::collections::BTreeMap;

use cosched_core::Exit;
use cosched_core::format::count;
use cosched_report::after;
use cosched_results::result::ProgramResult;
use cosched_workload::{escaped, shown_path};

use super::rounds::{ReadyPlan, RoundResults};
use crate::alone;
use crate::out;

/// A sentence for each variant and program that failed, with the standard error of its first
/// failure: where it is, or, where no folder keeps it, how it ends.
pub(super) fn sentences(
    ready: &ReadyPlan<'_>,
    rounds: &BTreeMap<u16, RoundResults>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    for (i, variant) in ready.plan.variants.iter().enumerate() {
        for slot in 0..ready.plan.workload.programs.len() {
            let of_round = |(round, results): (&u16, &RoundResults)| {
                let program = &results[i].programs[slot];
                failure(program).map(|how| (*round, how))
            };
            let failed: Vec<(u16, String)> = rounds.iter().filter_map(of_round).collect();
            let Some((first, _)) = failed.first() else { continue };
            let name = &ready.plan.workload.programs[slot].name;
            let stderr = out::output(&ready.run_folder(*first, i), name, "stderr");
            let details = match ready.plan.out {
                Some(_) if stderr.exists() => {
                    let file = shown_path(&stderr).to_string();
                    format!("its standard error is in {}", ready.held.named(&file))
                }
                _ => alone::complaint(&stderr),
            };
            let mut ends: Vec<&str> = failed.iter().map(|(_, how)| how.as_str()).collect();
            ends.dedup();
            let sentence = format!(
                "{variant}: {name} failed in {} of {} ({}); {details}",
                failed.len(),
                count(rounds.len(), "round", "rounds"),
                ends.join(", ")
            );
            sentences.push(sentence.split('\n').map(escaped).collect::<Vec<_>>().join("\n"));
        }
    }
    sentences
}

/// How a program failed, in words, if it did.
fn failure(program: &ProgramResult) -> Option<String> {
    match program.exit {
        Some(Exit::Code(0)) => None,
        _ => Some(after::end(program)),
    }
}
