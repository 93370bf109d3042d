//! Programs that were to report their progress, and did not, or hardly: what the policy used
//! instead.

use std::collections::BTreeSet;

use cosched_results::result::{Instead, ProgramResult, RunResult};

use crate::words;

/// A sentence for each substitute for progress, with the programs of these runs for which the
/// policy used it.
pub fn sentences<'a>(results: impl IntoIterator<Item = &'a RunResult>) -> Vec<String> {
    let (mut by_time, mut by_table) = (BTreeSet::new(), BTreeSet::new());
    for program in results.into_iter().flat_map(|result| &result.programs) {
        match program.instead_of_progress {
            Some(Instead::CpuTime) => by_time.insert(program.name.clone()),
            Some(Instead::Slowdowns) => by_table.insert(program.name.clone()),
            None => continue,
        };
    }
    let groups = [(by_time, Instead::CpuTime), (by_table, Instead::Slowdowns)];
    groups.into_iter().filter_map(|(names, instead)| sentence(names, instead)).collect()
}

fn sentence(names: BTreeSet<String>, instead: Instead) -> Option<String> {
    let their = match names.len() {
        0 => return None,
        1 => "its",
        _ => "their",
    };
    let names = words::list(&names.into_iter().collect::<Vec<_>>());
    Some(format!("{names} reported too little progress: {} instead.", substitute(instead, their)))
}

pub(crate) fn in_words(program: &ProgramResult) -> Option<String> {
    let instead = substitute(program.instead_of_progress?, "its");
    Some(format!("It reported too little progress: {instead} instead."))
}

fn substitute(instead: Instead, their: &str) -> String {
    match instead {
        Instead::CpuTime => format!("{their} CPU time was used"),
        Instead::Slowdowns => {
            format!("{their} memory traffic and the table of slowdowns were used")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_hand::{A, B, C, run};

    #[test]
    fn programs_without_progress_are_named_once_for_all_runs() {
        let (mut first, mut second) = (run(), run());
        assert_eq!(sentences([&first, &second]), [""; 0]);
        first.programs[C].instead_of_progress = Some(Instead::CpuTime);
        assert_eq!(in_words(&first.programs[A]), None);
        assert_eq!(
            in_words(&first.programs[C]).as_deref(),
            Some("It reported too little progress: its CPU time was used instead.")
        );
        assert_eq!(
            sentences([&first, &second]),
            ["c reported too little progress: its CPU time was used instead."]
        );
        second.programs[C].instead_of_progress = Some(Instead::CpuTime);
        second.programs[A].instead_of_progress = Some(Instead::CpuTime);
        second.programs[B].instead_of_progress = Some(Instead::Slowdowns);
        assert_eq!(
            sentences([&first, &second]),
            [
                "a and c reported too little progress: their CPU time was used instead.",
                "b reported too little progress: its memory traffic and the table of slowdowns \
                 were used instead.",
            ]
        );
    }
}
