//! Programs that were never paused, while others could be.

use cosched_results::result::{NONE, ProgramResult, RunResult};

pub(crate) fn in_words(run: &RunResult, program: &ProgramResult) -> Option<String> {
    const TEXT: &str = "It was never paused: `freezable = false`, an interactive shell or \
                        WATCHDOG_USEC in its environment forbids that.";
    let pauses = run.backends.freezing != NONE;
    let is_forbidden = program.terms.as_ref().is_some_and(|terms| terms.freezable == Some(false));
    (pauses && is_forbidden).then(|| TEXT.to_owned())
}

#[cfg(test)]
mod tests {
    use cosched_results::result::Terms;

    use super::*;
    use crate::testkit;

    #[test]
    fn programs_that_must_not_be_paused_are_named_where_others_are() {
        let mut run = testkit::gang();
        let said = |run: &RunResult| in_words(run, &run.programs[0]).is_some();
        assert!(!said(&run));
        run.programs[0].terms = Some(Terms {
            weight: 1.0,
            group: None,
            freezable: Some(false),
            misses_per_kilo_instruction: None,
            memory_gigabytes_per_second: None,
        });
        assert!(said(&run));
        run.backends.freezing = NONE.to_owned();
        assert!(!said(&run), "no program is paused");
    }
}
