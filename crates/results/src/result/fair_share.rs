//! How much less CPU time a program got than its fair share.

use serde::{Deserialize, Serialize};

use cosched_core::Nanos;
use cosched_core::waits::lag;

use super::build::{seconds, to_microseconds};

/// A program's fair share of the CPU time until it was done
/// ([`fair_shares`](cosched_core::fair_share::fair_shares)), and what it lacks of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FairShareResult {
    /// The share, from its arrival on.
    pub share_seconds: f64,
    /// The share without the CPU time that it got, [`lag`]; negative where it got more.
    pub lag_seconds: f64,
}

impl FairShareResult {
    /// Of a share, and the CPU time that was received, seconds; nothing where one is not known.
    pub(super) fn of(share: Option<Nanos>, received: Option<f64>) -> Option<FairShareResult> {
        let (share, received) = (share?, received?);
        let lag_seconds = to_microseconds(lag(share.as_secs_f64(), received));
        Some(FairShareResult { share_seconds: seconds(share), lag_seconds })
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::engine::outcome::Outcome;

    use super::super::RunResult;
    use super::super::tests::{context, outcome};
    use super::*;

    /// A share of 2.75 s until it was done. Its only run used 1.5 s in user mode and 0.5 s in the
    /// kernel.
    #[test]
    fn lag_is_the_share_without_what_was_received() {
        let mut outcome = outcome();
        let found = |outcome: &Outcome| RunResult::new(outcome, &context()).programs[0].fair_share;
        assert_eq!(found(&outcome), None, "it has no share");
        outcome.programs[0].share = Some(Nanos::from_millis(2750));
        let expected = FairShareResult { share_seconds: 2.75, lag_seconds: 0.75 };
        assert_eq!(found(&outcome), Some(expected));
        outcome.programs[0].done = None;
        assert_eq!(found(&outcome), None, "its last run was cut short");
    }
}
