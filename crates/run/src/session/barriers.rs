//! How each program of a run waits at barriers, and between parallel regions.
//!
//! Between regions, threads of OpenMP wait inside the runtime, where no entry tells of it. gcc's
//! threads look on for milliseconds, on CPUs that other programs may need. A variable can tell them
//! to sleep sooner. A program with barriers of cosched therefore gets a bound there, too, unless
//! the user has said how its threads are to wait. LLVM's threads yield between looks; a bound
//! gained nothing there (`docs/research/barrier.md` has what each gave).

use std::ffi::OsString;

use cosched_results::result::BarrierResult;
use cosched_workload::BarrierMode;

use super::here::Session;
use super::request::Request;

/// The variable of gcc's runtime, in looks, and the one that says the same in other words.
const SPINS: &str = "GOMP_SPINCOUNT";
const POLICY: &str = "OMP_WAIT_POLICY";
/// Some 50 us here: about two wake-ups.
const BOUND: &str = "2000";

impl Session {
    /// How each program waits at barriers.
    pub fn barriers(request: &Request<'_>) -> Vec<BarrierMode> {
        request.workload.programs.iter().map(|spec| request.how.barrier(spec)).collect()
    }
}

/// What the result says of it before the start; `None`: the program waits at its own barriers.
pub(super) fn result(
    mode: BarrierMode,
    environment: &[(OsString, OsString)],
) -> Option<BarrierResult> {
    let bound = bound(environment).filter(|_| mode == BarrierMode::Donate);
    let bound = bound.map(|(name, value)| (name.into(), value.into()));
    let between_regions = bound.into_iter().collect();
    (mode != BarrierMode::Own).then_some(BarrierResult {
        mode,
        lacks: None,
        statistics: None,
        between_regions,
    })
}

/// The variable that a program with this environment gets, and its value.
pub(super) fn bound(environment: &[(OsString, OsString)]) -> Option<(&'static str, &'static str)> {
    let is_said = environment.iter().any(|(name, _)| name == SPINS || name == POLICY);
    (!is_said).then_some((SPINS, BOUND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_policy_in_the_environment_stays() {
        let bound_with = |name: &str| {
            let environment = [(OsString::from(name), OsString::from("5"))];
            bound(&environment)
        };
        assert_eq!(bound_with("OMP_NUM_THREADS"), Some(("GOMP_SPINCOUNT", "2000")));
        assert_eq!((bound_with("GOMP_SPINCOUNT"), bound_with("OMP_WAIT_POLICY")), (None, None));
    }
}
