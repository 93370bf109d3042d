//! Programs that were started with fewer threads than they ask for: who, and what they take alone
//! so.

use std::collections::BTreeSet;

use cosched_core::result::{ProgramResult, RunResult};

use crate::history::nanos;
use crate::words;

const SINCE: &str = "since by runs alone the last program ends sooner so";

/// A sentence that names all of a run, if there are any; each that is told of one of these runs
/// once.
pub fn sentences<'a>(results: impl IntoIterator<Item = &'a RunResult>) -> Vec<String> {
    let told: BTreeSet<String> = results.into_iter().filter_map(sentence).collect();
    told.into_iter().collect()
}

fn sentence(result: &RunResult) -> Option<String> {
    Some(format!("Started with fewer threads than asked for, {SINCE}: {}.", named(result)?))
}

/// All of a run, with their threads.
pub(crate) fn named(result: &RunResult) -> Option<String> {
    let named = |program: &ProgramResult| {
        Some(format!("{} with {} of {}", program.name, program.threads, program.molded_from?))
    };
    let named: Vec<String> = result.programs.iter().filter_map(named).collect();
    (!named.is_empty()).then(|| words::list(&named))
}

/// The same of one program.
pub(crate) fn in_words(program: &ProgramResult) -> Option<String> {
    let asked = program.molded_from?;
    let all = program.solo_seconds.map_or(String::new(), |seconds| {
        format!(" With all it takes {} alone.", words::span(nanos(seconds)))
    });
    let threads = words::count(program.threads.into(), "thread", "threads");
    Some(format!("It was started with {threads} of {asked}, {SINCE}.{all}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_hand::{A, B, run};

    #[test]
    fn who_was_started_with_fewer_threads_is_named_with_the_time_that_all_would_take() {
        let mut run = run();
        assert_eq!((sentence(&run), in_words(&run.programs[A])), (None, None));
        let molded = &mut run.programs[A];
        (molded.threads, molded.molded_from) = (1, Some(4));
        (molded.solo_seconds, molded.molded_solo_seconds) = (Some(0.3), Some(0.45));
        assert_eq!(
            sentence(&run).as_deref(),
            Some(
                "Started with fewer threads than asked for, since by runs alone the last program ends sooner so: a with 1 of 4."
            )
        );
        assert_eq!(
            in_words(&run.programs[A]).as_deref(),
            Some(
                "It was started with 1 thread of 4, since by runs alone the last program ends sooner so. With all it takes \
                 300 ms alone."
            )
        );
        run.programs[B].molded_from = Some(2);
        assert!(sentence(&run).unwrap().contains("a with 1 of 4 and b with"));
    }
}
