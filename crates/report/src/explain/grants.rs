//! The threads that a malleable program was granted over a run: from when on, how many, and of how
//! many.

use cosched_core::Why;
use cosched_core::result::RunResult;
use serde::Serialize;

use super::slices::{reasons, told};
use crate::history::nanos;
use crate::words;

/// A number of threads that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Grant {
    /// From here on, until the next one.
    pub from_seconds: f64,
    /// How many its parallel regions got at most.
    pub threads: u16,
    /// How many they asked for.
    pub asked: u16,
    /// How fast it was with them, relative to all that it asked for, where that was known.
    pub speed: Option<f64>,
    /// Whether it was to find that out.
    pub trial: bool,
}

/// All that were granted to a program, in order of time.
pub(super) fn grants(result: &RunResult, slot: usize) -> Vec<Grant> {
    let grant = |(from_seconds, why)| match why {
        Why::Granted { threads, asked, speed } => {
            Some(Grant { from_seconds, threads, asked, speed, trial: false })
        }
        Why::TriesThreads { threads, asked } => {
            Some(Grant { from_seconds, threads, asked, speed: None, trial: true })
        }
        _ => None,
    };
    reasons(result, slot).filter_map(grant).collect()
}

/// The same in words.
pub(super) fn in_words(grants: &[Grant]) -> Vec<String> {
    if grants.is_empty() {
        return Vec::new();
    }
    let line = |grant: &Grant| {
        let from = words::instant(nanos(grant.from_seconds));
        let threads = words::count(grant.threads.into(), "thread", "threads");
        let why = match grant {
            Grant { trial: true, .. } => ", to see how fast it is".to_owned(),
            Grant { speed: Some(speed), .. } if grant.threads != grant.asked => {
                format!(", {speed:.2} times as fast as with all")
            }
            _ => String::new(),
        };
        format!("  from {from} on {threads} of {}{why}.", grant.asked)
    };
    let head = "Its parallel regions were granted, of the threads that they asked for:".to_owned();
    [head].into_iter().chain(told(grants, line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn grants_are_told_in_order_with_what_was_known() {
        let run = testkit::adaptive();
        assert_eq!(
            in_words(&grants(&run, 0)),
            [
                "Its parallel regions were granted, of the threads that they asked for:",
                "  from 0.000 s on 1 thread of 4.",
                "  from 0.100 s on 2 threads of 4, to see how fast it is.",
                "  from 0.200 s on 2 threads of 4, 0.80 times as fast as with all.",
            ]
        );
        assert!(in_words(&grants(&run, 1)).is_empty());
    }
}
