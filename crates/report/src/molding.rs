//! Programs that were started with fewer threads than requested.

use std::collections::BTreeSet;

use cosched_core::format::of_requested;
use cosched_results::result::{ProgramResult, RunResult};

use crate::history::nanos;
use crate::words;

const BECAUSE: &str = "because solo times show that the last program then ends sooner";

/// A sentence for each run that names these programs, if there are any. Equal sentences appear
/// once.
pub fn sentences<'a>(results: impl IntoIterator<Item = &'a RunResult>) -> Vec<String> {
    let unique: BTreeSet<String> = results.into_iter().filter_map(sentence).collect();
    unique.into_iter().collect()
}

fn sentence(result: &RunResult) -> Option<String> {
    Some(format!("Started with fewer threads than requested, {BECAUSE}: {}.", named(result)?))
}

/// The programs of a run that were started with fewer threads, with their thread counts.
pub(crate) fn named(result: &RunResult) -> Option<String> {
    let named = |program: &ProgramResult| {
        Some(format!("{} with {} of {}", program.name, program.threads, program.molded_from?))
    };
    let named: Vec<String> = result.programs.iter().filter_map(named).collect();
    (!named.is_empty()).then(|| words::list(&named))
}

pub(crate) fn in_words(program: &ProgramResult) -> Option<String> {
    let requested = program.molded_from?;
    let all = program.solo_seconds.map_or(String::new(), |seconds| {
        format!(" Its solo time with all threads is {}.", words::span(nanos(seconds)))
    });
    let threads = program.threads;
    Some(format!("It was started with {}, {BECAUSE}.{all}", of_requested(threads, requested)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_hand::{A, B, run};

    #[test]
    fn programs_with_fewer_threads_are_named() {
        let mut run = run();
        assert_eq!((sentence(&run), in_words(&run.programs[A])), (None, None));
        let molded = &mut run.programs[A];
        (molded.threads, molded.molded_from) = (1, Some(4));
        (molded.solo_seconds, molded.molded_solo_seconds) = (Some(0.3), Some(0.45));
        assert_eq!(
            sentence(&run).as_deref(),
            Some(
                "Started with fewer threads than requested, because solo times show that the last \
                 program then ends sooner: a with 1 of 4."
            )
        );
        assert_eq!(
            in_words(&run.programs[A]).as_deref(),
            Some(
                "It was started with 1 of 4 requested threads, because solo times show that the \
                 last program then ends sooner. Its solo time with all threads is 300 ms."
            )
        );
        run.programs[B].molded_from = Some(2);
        assert!(sentence(&run).unwrap().contains("a with 1 of 4 and b with"));
    }
}
