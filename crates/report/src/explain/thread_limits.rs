//! The thread limits of a malleable program over a run: from when on, how many threads it might
//! use, and how many it requested.

use cosched_core::Why;
use cosched_core::format::of_requested;
use cosched_policy::reasons::LimitReason;
use cosched_results::result::RunResult;
use serde::Serialize;

use crate::history::{nanos, reasons_about};
use crate::words::{self, abridged};

/// A thread limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadLimit {
    /// From here on, until the next one.
    pub from_seconds: f64,
    /// How many threads its parallel regions got at most.
    pub threads: u16,
    /// How many threads they requested.
    pub requested: u16,
    /// Its speed with these threads relative to its speed with all requested ones, where that was
    /// known.
    pub speed: Option<f64>,
    /// Whether the limit was set to measure that speed.
    pub trial: bool,
}

pub(crate) fn thread_limits(result: &RunResult, slot: usize) -> Vec<ThreadLimit> {
    let thread_limit = |(from_seconds, why): (f64, &Why)| match why.read()? {
        LimitReason::LimitsThreads { threads, requested, speed } => {
            Some(ThreadLimit { from_seconds, threads, requested, speed, trial: false })
        }
        LimitReason::TriesThreads { threads, requested } => {
            Some(ThreadLimit { from_seconds, threads, requested, speed: None, trial: true })
        }
    };
    reasons_about(result, slot).filter_map(thread_limit).collect()
}

pub(super) fn in_words(thread_limits: &[ThreadLimit]) -> Vec<String> {
    if thread_limits.is_empty() {
        return Vec::new();
    }
    let line = |thread_limit: &ThreadLimit| {
        let from = words::instant(nanos(thread_limit.from_seconds));
        let ThreadLimit { threads, requested, .. } = thread_limit;
        let why = match thread_limit {
            ThreadLimit { trial: true, .. } => ", to measure its speed".to_owned(),
            ThreadLimit { speed: Some(speed), .. }
                if thread_limit.threads != thread_limit.requested =>
            {
                format!(", {speed:.2} times as fast as with all")
            }
            _ => String::new(),
        };
        format!("  from {from}: {}{why}.", of_requested(*threads, *requested))
    };
    let head = "The thread limits of its parallel regions:".to_owned();
    [head].into_iter().chain(abridged(thread_limits, line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn thread_limits_are_listed_in_order_of_time() {
        let run = testkit::adaptive();
        assert_eq!(
            in_words(&thread_limits(&run, 0)),
            [
                "The thread limits of its parallel regions:",
                "  from 0.000 s: 1 of 4 requested threads.",
                "  from 0.100 s: 2 of 4 requested threads, to measure its speed.",
                "  from 0.200 s: 2 of 4 requested threads, 0.80 times as fast as with all.",
            ]
        );
        assert!(in_words(&thread_limits(&run, 1)).is_empty());
    }
}
