//! How each program of a run waits at barriers, and between parallel regions.

use std::ffi::OsString;

use cosched_policy::between_regions;
use cosched_results::result::BarrierResult;
use cosched_workload::BarrierMode;

use super::here::Session;
use super::request::Request;

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
    between_regions::bound(|variable| environment.iter().any(|(name, _)| name == variable))
}
