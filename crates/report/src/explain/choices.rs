//! The modes in which `auto` ran the programs: from when on, which, and why.

use cosched_core::{Nanos, Reason, Why};
use cosched_policy::reasons::{AutoReason, Mode, ReasonCode};
use cosched_results::result::RunResult;
use serde::Serialize;

use crate::history::{nanos, reasons};
use crate::words::{self, abridged};

/// A choice of the policy `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// From here on, until the next one.
    pub from_seconds: f64,
    /// The mode in which the programs were run.
    pub mode: Mode,
    /// Why.
    pub reason_code: ReasonCode,
    /// CPUs that the programs kept busy outside the kernel when running together, where that had
    /// been measured.
    pub corun_cpus: Option<f64>,
    /// CPUs that the programs kept busy when taking turns, measured or expected.
    pub gangs_cpus: Option<f64>,
    /// What measuring had cost by then: time of the whole machine.
    pub explored_seconds: f64,
}

impl Choice {
    pub(super) fn why(&self) -> Why {
        let chosen = AutoReason::Chosen {
            mode: self.mode,
            reason_code: self.reason_code,
            corun: self.corun_cpus,
            gangs: self.gangs_cpus,
            explored: nanos(self.explored_seconds),
        };
        chosen.into()
    }
}

pub(super) fn choices(result: &RunResult) -> Vec<Choice> {
    let choice = |(from_seconds, reason): (f64, &Reason)| match reason.why.read()? {
        AutoReason::Chosen { mode, reason_code, corun, gangs, explored } => Some(Choice {
            from_seconds,
            mode,
            reason_code,
            corun_cpus: corun,
            gangs_cpus: gangs,
            explored_seconds: explored.as_secs_f64(),
        }),
        _ => None,
    };
    reasons(result).filter_map(choice).collect()
}

/// The choices and the solo probes in words, and what measuring cost, in percent of the whole run.
pub(super) fn in_words(result: &RunResult, total: Nanos) -> Vec<String> {
    let Some(last) = choices(result).pop() else { return Vec::new() };
    let line = |(at_seconds, Reason { why, .. }): (f64, &Reason)| {
        // Policies report new modes and reasons only: after solo probes, a mode may just go on.
        let from = match why.read()? {
            AutoReason::Chosen { .. } => "from",
            AutoReason::SoloProbes { .. } => "at",
            AutoReason::HardlyRuns => return None,
        };
        let at = words::instant(nanos(at_seconds));
        Some(format!("  {from} {at}: {}.", words::reason(why)))
    };
    let lines: Vec<String> = reasons(result).filter_map(line).collect();
    let share = 100.0 * last.explored_seconds / total.as_secs_f64().max(1e-9);
    let cost = (last.explored_seconds > 0.0)
        .then(|| format!("  Measuring cost {share:.1} % of the run's time."));
    let head = "From its measurements, cosched chose how the programs ran:".to_owned();
    [head].into_iter().chain(abridged(&lines, String::clone)).chain(cost).collect()
}

#[cfg(test)]
mod tests {
    use cosched_results::result::DecisionResult;

    use super::*;
    use crate::testkit;

    fn chosen(mode: Mode, reason_code: ReasonCode, cpus: Option<[f64; 2]>) -> AutoReason {
        let (corun, gangs) = (cpus.map(|cpus| cpus[0]), cpus.map(|cpus| cpus[1]));
        let explored = Nanos::from_millis(if cpus.is_some() { 20 } else { 0 });
        AutoReason::Chosen { mode, reason_code, corun, gangs, explored }
    }

    #[test]
    fn choices_have_their_reasons_and_what_measuring_cost() {
        let decision = |(at_seconds, why): (f64, AutoReason)| DecisionResult {
            at_seconds,
            reasons: vec![Reason { program: None, why: why.into() }],
        };
        let probes = AutoReason::SoloProbes { length: Nanos::from_millis(20), probes: 2 };
        let decisions = [
            (0.0, chosen(Mode::Corun, ReasonCode::Begins, None)),
            (0.18, probes),
            (0.22, chosen(Mode::Gangs, ReasonCode::GangsFill, Some([2.0, 1.96]))),
        ];
        let run = RunResult {
            decisions: decisions.into_iter().map(decision).collect(),
            ..testkit::gang()
        };
        let sentences = in_words(&run, Nanos::from_secs(4));
        assert_eq!(
            sentences,
            [
                "From its measurements, cosched chose how the programs ran:",
                "  from 0.000 s: running together, because nothing has been measured yet.",
                "  at 0.180 s: solo probe: each program runs by itself for a moment, to measure \
                 how many CPUs it uses (2 times 20 ms).",
                "  from 0.220 s: taking turns, because each program can fill its CPUs by itself \
                 (2.00 CPUs busy when running together, 1.96 when taking turns; measuring has cost \
                 20 ms so far).",
                "  Measuring cost 0.5 % of the run's time.",
            ]
        );
        assert!(in_words(&testkit::gang(), Nanos::from_secs(4)).is_empty());
    }
}
