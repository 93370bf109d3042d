//! Programs that were to tell from inside how far they come, and never did: what the policy went by
//! in that place.

use std::collections::BTreeSet;

use cosched_core::result::{Instead, ProgramResult, RunResult};

use crate::words;

/// A sentence for each thing that stood in for progress, with the programs of these runs for which
/// it did.
pub fn sentences<'a>(results: impl IntoIterator<Item = &'a RunResult>) -> Vec<String> {
    let (mut by_time, mut by_table) = (BTreeSet::new(), BTreeSet::new());
    for program in results.into_iter().flat_map(|result| &result.programs) {
        match program.instead_of_progress {
            Some(Instead::CpuTime) => by_time.insert(program.name.clone()),
            Some(Instead::Slowdowns) => by_table.insert(program.name.clone()),
            None => continue,
        };
    }
    let told = [(by_time, Instead::CpuTime), (by_table, Instead::Slowdowns)];
    told.into_iter().filter_map(|(names, instead)| sentence(names, instead)).collect()
}

fn sentence(names: BTreeSet<String>, instead: Instead) -> Option<String> {
    let (their, were) = match names.len() {
        0 => return None,
        1 => ("its", "it was"),
        _ => ("their", "they were"),
    };
    let names = words::list(&names.into_iter().collect::<Vec<_>>());
    Some(format!(
        "{names} told nothing of {their} progress: {were} taken to {}.",
        come(instead, their)
    ))
}

/// The same of one program.
pub(crate) fn in_words(program: &ProgramResult) -> Option<String> {
    let come = come(program.instead_of_progress?, "its");
    Some(format!("It told nothing of its progress: it was taken to {come}."))
}

fn come(instead: Instead, their: &str) -> String {
    match instead {
        Instead::CpuTime => format!("come as far as {their} CPU time"),
        Instead::Slowdowns => {
            format!("be slowed as the table of slowdowns says of {their} traffic")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_hand::{A, B, C, run};

    #[test]
    fn who_told_nothing_is_named_once_for_all_runs_with_what_stood_in_for_it() {
        let (mut first, mut second) = (run(), run());
        assert_eq!(sentences([&first, &second]), [""; 0]);
        first.programs[C].instead_of_progress = Some(Instead::CpuTime);
        assert_eq!(in_words(&first.programs[A]), None);
        assert_eq!(
            in_words(&first.programs[C]).as_deref(),
            Some("It told nothing of its progress: it was taken to come as far as its CPU time.")
        );
        assert_eq!(
            sentences([&first, &second]),
            ["c told nothing of its progress: it was taken to come as far as its CPU time."]
        );
        second.programs[C].instead_of_progress = Some(Instead::CpuTime);
        second.programs[A].instead_of_progress = Some(Instead::CpuTime);
        second.programs[B].instead_of_progress = Some(Instead::Slowdowns);
        assert_eq!(
            sentences([&first, &second]),
            [
                "a and c told nothing of their progress: they were taken to come as far as their CPU time.",
                "b told nothing of its progress: it was taken to be slowed as the table of slowdowns says of its traffic.",
            ]
        );
    }
}
