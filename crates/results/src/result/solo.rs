//! Solo times that a run contradicts.
//!
//! No co-runner makes a program faster. A program that ran for much less than its solo time shows
//! that this time cannot be true: the profile is out of date, or its measurement was disturbed.
//! Every figure that rests on it would be as wrong, so the result has none of them. It keeps the
//! time itself as the reason.

use std::collections::BTreeSet;

use cosched_core::Exit;

use super::{ProgramResult, RunResult};

/// The part of a solo time by which two measurements of the same work differ on an idle machine.
const NOISE: f64 = 0.1;
/// A shorter span may come from rounding, seconds.
const ROUNDING: f64 = 1e-5;

impl ProgramResult {
    /// How long another process stopped it until it was done: the part of its turnaround in which
    /// it neither ran nor waited. Zero where that may be rounding.
    pub fn stopped_seconds(&self) -> f64 {
        let turnaround = self.turnaround_seconds.unwrap_or_default();
        let rest = turnaround - self.running_seconds - self.waiting_seconds;
        if rest > ROUNDING { rest } else { 0.0 }
    }

    /// How long it ran until it had done its work; `None` if it did not.
    pub fn ran_seconds(&self) -> Option<f64> {
        let turnaround = self.turnaround_seconds.filter(|_| self.exit == Some(Exit::Code(0)))?;
        Some(turnaround - self.waiting_seconds - self.stopped_seconds())
    }

    /// Its solo time, if that cannot be true.
    fn impossible_solo_seconds(&self) -> Option<f64> {
        let ran = self.ran_seconds()?;
        self.alone_as_started_seconds().filter(|solo| ran < (1.0 - NOISE) * solo)
    }

    /// Removes its solo time and what rests on it; the time is kept as the reason.
    fn reject_solo(&mut self) {
        let Some(solo) = self.alone_as_started_seconds() else { return };
        self.rejected_solo_seconds = Some(solo);
        (self.solo_seconds, self.molded_solo_seconds) = (None, None);
        (self.interference_seconds, self.slowdown, self.solo_cpu_seconds) = (None, None, None);
        if let Some(estimates) = &mut self.estimates {
            (estimates.accuracy, estimates.accuracy_without) = (None, None);
        }
    }
}

impl RunResult {
    /// Removes solo times that cannot be true, and every figure that rests on them. Simulated ones
    /// are true: alone, the threads of a program may share caches that they do not share otherwise.
    pub(super) fn reject_impossible_solos(&mut self) {
        if self.machine.is_simulated() {
            return;
        }
        let programs = self.programs.iter();
        let rejected = programs.filter(|program| program.impossible_solo_seconds().is_some());
        let names = rejected.map(|program| program.name.clone()).collect();
        self.reject_solos(&names);
    }

    fn reject_solos(&mut self, names: &BTreeSet<String>) {
        let rejected = |program: &&mut ProgramResult| names.contains(&program.name);
        self.programs.iter_mut().filter(rejected).for_each(ProgramResult::reject_solo);
        if self.programs.iter().any(|program| program.rejected_solo_seconds.is_some()) {
            let metrics = &mut self.metrics;
            (metrics.fairness_stddev, metrics.unfairness) = (None, None);
            (metrics.weighted_speedup, metrics.extended_weighted_speedup) = (None, None);
        }
    }
}

/// Removes the solo times of the programs of which one run shows that theirs cannot be true, in
/// all these runs: figures of the others would not be comparable with it.
pub fn reject_solos_everywhere<'a>(runs: impl IntoIterator<Item = &'a mut RunResult>) {
    let mut runs: Vec<&mut RunResult> = runs.into_iter().collect();
    let programs = runs.iter().flat_map(|run| &run.programs);
    let rejected = programs.filter(|program| program.rejected_solo_seconds.is_some());
    let names = rejected.map(|program| program.name.clone()).collect();
    runs.iter_mut().for_each(|run| run.reject_solos(&names));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cosched_core::{Molding, Nanos};

    use super::super::SIMULATED;
    use super::super::tests::{context, outcome};
    use super::*;
    use crate::metrics::Metrics;

    /// A program that ran for 2 s, with this solo time.
    fn run(milliseconds: u64) -> RunResult {
        let mut context = context();
        context.programs[0].solo = Some(Nanos::from_millis(milliseconds));
        RunResult::new(&outcome(), &context)
    }

    fn figures(run: &RunResult) -> [Option<f64>; 7] {
        let (program, metrics) = (&run.programs[0], &run.metrics);
        [
            program.solo_seconds,
            program.molded_solo_seconds,
            program.interference_seconds,
            program.slowdown,
            metrics.fairness_stddev,
            metrics.unfairness,
            metrics.weighted_speedup,
        ]
    }

    #[test]
    fn nothing_rests_on_a_solo_time_that_cannot_be_true() {
        let run = run(2300);
        assert_eq!((figures(&run), run.programs[0].rejected_solo_seconds), ([None; 7], Some(2.3)));
        let rest = Metrics { fairness_stddev: None, ..run.metrics };
        assert_eq!(rest.mean_turnaround_seconds, Some(5.0));
        let keys = ["\"solo_seconds\":null", "\"interference_seconds\":null", "\"slowdown\":null"];
        assert!(keys.iter().all(|key| run.to_json().contains(key)), "{}", run.to_json());
    }

    #[test]
    fn a_small_contradiction_is_noise() {
        let run = run(2200);
        assert_eq!(
            (run.programs[0].solo_seconds, run.programs[0].rejected_solo_seconds),
            (Some(2.2), None)
        );
        assert!(run.metrics.unfairness.is_some() && run.programs[0].slowdown.is_some());
    }

    #[test]
    fn a_time_with_fewer_threads_is_judged_in_its_place() {
        let mut context = context();
        context.programs[0].molded = Some(Molding { requested: 4, solo: Nanos::from_secs(4) });
        let run = RunResult::new(&outcome(), &context);
        assert_eq!((figures(&run), run.programs[0].rejected_solo_seconds), ([None; 7], Some(4.0)));
    }

    #[test]
    fn a_simulated_program_may_be_slower_alone() {
        let mut context = context();
        context.programs[0].solo = Some(Nanos::from_millis(2300));
        context.machine.kernel = SIMULATED.to_owned();
        let run = RunResult::new(&outcome(), &context);
        assert_eq!((figures(&run)[0], run.programs[0].rejected_solo_seconds), (Some(2.3), None));
    }

    #[test]
    fn older_files_are_read_without_such_times() {
        let mut old = run(1500);
        (old.programs[0].solo_seconds, old.programs[0].interference_seconds) =
            (Some(4.0), Some(-2.0));
        let read = RunResult::read(old.to_json().as_bytes(), Path::new("run.json")).unwrap();
        assert_eq!(
            (figures(&read), read.programs[0].rejected_solo_seconds),
            ([None; 7], Some(4.0))
        );
        let again = RunResult::read(read.to_json().as_bytes(), Path::new("run.json")).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn a_solo_time_rejected_in_one_run_is_rejected_in_all() {
        let mut runs = [run(1500), run(2300)];
        reject_solos_everywhere(&mut runs);
        assert_eq!(figures(&runs[0]), [None; 7]);
        let rejected = |run: &RunResult| run.programs[0].rejected_solo_seconds;
        assert_eq!([rejected(&runs[0]), rejected(&runs[1])], [Some(1.5), Some(2.3)]);
        let mut possible = [run(1500), run(1600)];
        reject_solos_everywhere(&mut possible);
        assert_eq!(possible, [run(1500), run(1600)]);
    }
}
