//! CPU time that a program lacked of its fair share while others got more than theirs.
//!
//! *Problem.* A program that does not want its share lacks some of it, too, and no other program is
//! the cause. Equation 1 of the paper on the time donating barrier assumes that all threads always
//! want to run.
//!
//! *Idea.* Only CPU time that other programs got beyond their shares can have been this program's.
//! Where that is less than half of what it lacks, most of it has another cause.

use cosched_results::result::{FairShareResult, RunResult};

use crate::history::nanos;
use crate::words;

/// Less than this part of its share is no matter of fairness.
const TELLING: f64 = 0.1;

/// A sentence about a program that others kept from its share.
pub(super) fn in_words(run: &RunResult, slot: usize) -> Option<String> {
    let of = |fair: &FairShareResult| (fair.share_seconds, fair.lag_seconds);
    let (share, lag) = of(run.programs[slot].fair_share.as_ref()?);
    let others = run.programs.iter().filter_map(|program| {
        let more = -program.fair_share?.lag_seconds;
        (more > 0.0).then_some((program.name.as_str(), more))
    });
    let beyond: f64 = others.clone().map(|(_, more)| more).sum();
    (lag >= TELLING * share && lag > 0.0 && beyond >= lag / 2.0).then(|| {
        let span = |seconds: f64| words::span(nanos(seconds));
        let named = others.map(|(name, more)| format!("{name} ({})", span(more)));
        format!(
            "By weight its share was {} of CPU time. It got {} less, \
             and others got more than theirs: {}. That was unfair if its threads wanted to run.",
            span(share),
            span(lag),
            words::list(&named.collect::<Vec<_>>())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    /// What the first program is told, if the first two have shares of 4 s and these lags.
    fn told(lags: [f64; 2]) -> Option<String> {
        let mut run = testkit::linux();
        for (program, lag_seconds) in run.programs.iter_mut().zip(lags) {
            program.fair_share = Some(FairShareResult { share_seconds: 4.0, lag_seconds });
        }
        in_words(&run, 0)
    }

    #[test]
    fn only_lag_that_others_can_have_caused_is_told() {
        let name = &testkit::linux().programs[1].name;
        let expected = format!(
            "By weight its share was 4.00 s of CPU time. It got 1.00 s less, \
             and others got more than theirs: {name} (800 ms). \
             That was unfair if its threads wanted to run."
        );
        assert_eq!(told([1.0, -0.8]), Some(expected));
        assert_eq!(told([1.0, -0.4]), None, "most of it went to no program");
        assert_eq!(told([0.3, -0.3]), None, "a few percent");
        assert_eq!(told([-1.0, 1.0]), None, "it got more");
        assert_eq!(in_words(&testkit::linux(), 0), None, "an older file");
    }
}
